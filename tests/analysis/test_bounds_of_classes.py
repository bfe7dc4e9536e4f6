"""Bounds of comparisons and schedules that nothing made to attain them: none is above one of its class."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.metrics import end_s
from shadowprice.instances.schedule_class import ScheduleClass
from support.certificate_cases import CASES

KINDS = ("types", "pairs", "conditions", "graphs", "failures", "restarts")


@pytest.mark.parametrize("examples", [3, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_bound_is_above_a_schedule_of_its_class(kind: str, examples: int) -> None:
    """Schedules stop, move, share and grow at random; both kinds of preemption and of placement are asked for."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        case=CASES[kind][0],
        goal=st.sampled_from(sp.Objective),
        preemptive=st.booleans(),
        consolidated=st.booleans(),
        budget_s=st.sampled_from([0.0, 0.05]),
    )
    def never_above(case, goal, preemptive, consolidated, budget_s):
        instance, schedule = case
        if not len(instance.workload) or instance.workload.fractional.any():
            return
        used = ScheduleClass.used(instance, schedule)
        cost = exact_cost(instance, goal, end_s(instance, schedule))
        found = bounds_of(
            instance, goal, BoundEffort(budget_s), preemptive=preemptive, consolidated=consolidated
        )
        for bound in found:
            assert not bound.holds_for.contains(used) or bound.ticks <= cost, bound

    never_above()


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("grow", [False, True])
@pytest.mark.parametrize("share", [False, True])
def test_a_class_in_json_says_what_it_says_in_words(share: bool, grow: bool, few: bool) -> None:
    found = ScheduleClass(True, sharing=share, elastic=grow, consolidated=few)
    assert found.to_dict() == {
        "preemptive": True,
        "sharing": share,
        "widths": "elastic" if "grow" in str(found) else "rigid",
        "placement": "consolidated" if "few nodes" in str(found) else "any",
    }
    assert ("share GPUs" in str(found), "grow" in str(found)) == (share, grow)
    assert ("few nodes" in str(found)) == few
