"""Allocation policies as they are written: a name and flags, each of which means one thing."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.solvers.gavel.earlier_names import WRITTEN_NOW
from shadowprice.solvers.gavel.gavel import Gavel
from shadowprice.solvers.registry import (
    allocation,
    allocations,
    name_with_parameters,
    policy,
    registered_name,
)
from support.allocation_policies import EVERY_POLICY

WERE = {
    "allox": "Allox",
    "fifo": "FirstCome",
    "fifo_packed": "FirstCome aware packed",
    "fifo_perf": "FirstCome aware",
    "fifo_programme": "QueueOrder",
    "fifo_programme_packed": "QueueOrder aware packed",
    "fifo_programme_perf": "QueueOrder aware",
    "finish_time_fairness": "FinishTimeFairness",
    "finish_time_fairness_agnostic_packed": "FinishTimeFairness packed weighted",
    "finish_time_fairness_packed": "FinishTimeFairness aware packed weighted",
    "finish_time_fairness_perf": "FinishTimeFairness aware",
    "gandiva": "GandivaPacking",
    "isolated": "Isolated",
    "max_min_fairness": "MaxMinFairness",
    "max_min_fairness_agnostic_packed": "MaxMinFairness packed",
    "max_min_fairness_packed": "MaxMinFairness aware packed",
    "max_min_fairness_perf": "MaxMinFairness aware",
    "max_min_fairness_water_filling": "WaterFilling",
    "max_min_fairness_water_filling_agnostic_packed": "WaterFilling packed",
    "max_min_fairness_water_filling_packed": "WaterFilling aware packed",
    "max_min_fairness_water_filling_perf": "WaterFilling aware",
    "max_sum_throughput": "MaxSumThroughput",
    "max_sum_throughput_normalized_by_cost": "MaxSumThroughput per_price",
    "max_sum_throughput_normalized_by_cost_packed": "MaxSumThroughput aware packed per_price",
    "max_sum_throughput_normalized_by_cost_packed_SLOs": "MaxSumThroughput aware packed per_price slos",
    "max_sum_throughput_normalized_by_cost_perf": "MaxSumThroughput aware per_price",
    "max_sum_throughput_normalized_by_cost_perf_SLOs": "MaxSumThroughput aware per_price slos",
    "max_sum_throughput_packed": "MaxSumThroughput aware packed",
    "max_sum_throughput_perf": "MaxSumThroughput aware",
    "min_cost": "LeastCost",
    "min_cost_packed": "LeastCost aware packed",
    "min_cost_packed_SLOs": "LeastCost aware packed slos",
    "min_cost_perf": "LeastCost aware",
    "min_cost_perf_SLOs": "LeastCost aware slos",
    "min_total_duration": "MinTotalDuration",
    "min_total_duration_agnostic_packed": "MinTotalDuration packed",
    "min_total_duration_packed": "MinTotalDuration aware packed",
    "min_total_duration_perf": "MinTotalDuration aware",
    "pop": "Pop",
    "proportional": "ProportionalShares",
    "proportional_fairness": "ProportionalFairness",
    "proportional_fairness_perf": "ProportionalFairness aware",
    "sjf_programme": "QueueOrder",
    "sjf_programme_packed": "QueueOrder aware packed",
    "sjf_programme_perf": "QueueOrder aware",
}
"""The 45 names that there were, and what each was: its class, and the switches that were on."""


def flags(thing: Any) -> set[str]:
    """Switches that are on, of those that a text can set."""
    return {each.name for each in fields(thing) if getattr(thing, each.name) is True}


def written(name: str) -> str:
    return WRITTEN_NOW.get(name, name)


def test_each_of_the_45_names_has_one_text_of_the_same_policy() -> None:
    assert len(WERE) == 45
    assert len({written(name) for name in WERE}) == 45
    assert {written(name) for name in WERE} == set(EVERY_POLICY)
    assert set(WRITTEN_NOW) == set(WERE) - set(allocations())
    for name, was in WERE.items():
        found = allocation(written(name))
        assert {type(found).__name__, *flags(found)} == set(was.split()), name
        assert found.name == written(name)
    for name in (
        "fifo_programme",
        "sjf_programme_perf",
        "sjf_programme_packed",
        "fifo_programme_perf",
    ):
        by_length = allocation(written(name)).order == "shortest"
        assert by_length == name.startswith("sjf")


@pytest.mark.parametrize("name", sorted(WRITTEN_NOW))
def test_an_earlier_name_is_refused_with_the_text_of_today(name: str) -> None:
    for text in (name, f"{name}:weighted=true"):
        with pytest.raises(InputError) as refused:
            allocation(text)
        assert (
            str(refused.value) == f"allocation policy {name!r}: is written {WRITTEN_NOW[name]} now"
        )
    with pytest.raises(InputError, match="is written"):
        policy(f"gavel:{name},round_s=60")


def test_a_flag_means_the_same_wherever_it_is_set() -> None:
    """What was accepted before means what it meant: flags that are not named are off."""
    assert flags(allocation("min_cost:packed=true")) == {"packed"}
    assert flags(allocation("min_cost:slos=true,packed=true,aware=true")) == {
        "aware",
        "packed",
        "slos",
    }
    for name, each in allocations().items():
        settable = {one.name for one in fields(each) if isinstance(getattr(each, one.name), bool)}
        for flag in settable:
            assert flags(allocation(f"{name}:{flag}=true")) == {flag}
            assert flags(allocation(f"{name}:{flag}=false")) == set()


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "round_s": st.integers(1, 10**6).map(float),
        "reset_s": st.integers(0, 10**6).map(float),
        "seed": st.integers(0, 99),
    },
)


@given(st.sampled_from([*EVERY_POLICY, "pop:seed=5,parts=8"]), SETTINGS)
@example("pop:seed=5,parts=8", {"seed": 3})
def test_what_a_scheduler_prints_of_its_allocation_is_read_as_the_same(
    text: str, own: dict[str, Any]
) -> None:
    scheduler = Gavel(text, **own)
    printed = name_with_parameters(scheduler)
    assert policy(printed) == scheduler
    assert registered_name(scheduler) == printed


def test_settings_of_an_allocation_and_of_the_scheduler_are_told_apart() -> None:
    both = Gavel("min_cost:aware=true,slos=true", round_s=600.0)
    assert policy("gavel:min_cost:aware=true,slos=true,round_s=600") == both
    assert policy("gavel:min_cost:aware=true,round_s=600,slos=true") == both
    assert policy("gavel:round_s=600,allocation=min_cost:aware=true,slos=true") == both
    told = asdict(policy("gavel:seed=1,allocation=pop:seed=2,parts=8"))  # type: ignore[call-overload]
    assert (told["seed"], told["allocation"]) == (1, "pop:seed=2,parts=8")
    with pytest.raises(InputError) as refused:
        policy("gavel:allocation=pop:parts=8,seed=1")
    assert str(refused.value) == (
        "policy 'gavel': 'seed=1' behind allocation=pop:parts=8, which has a parameter seed too; expected it "
        "before allocation="
    )
    # What no text says has none: a setting that both have is the first of the allocation's own.
    assert registered_name(Gavel("pop:seed=2,parts=8")) == "gavel:allocation=pop:seed=2,parts=8"
    assert registered_name(Gavel("pop:parts=8,seed=2")) is None
    with pytest.raises(
        InputError, match="'min_cost': parameter 'roun_s=4', expected NAME=VALUE with"
    ):
        policy("gavel:min_cost:aware=true,roun_s=4")
