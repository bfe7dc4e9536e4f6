"""The recurrent law, and groups and names of jobs from columns to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.recurrent import GANG_SHARES
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_files import read_workload, write_workload

TWO: dict[str, Any] = {"arrival_s": [0, 1], "gpus": [1, 2], "work": [3, 4]}


def group_sizes(workload: Workload) -> Any:
    return pd.Series(workload.group).value_counts()


# The law.


@settings(max_examples=30, deadline=None)
@given(
    jobs=st.integers(1, 400),
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.3, 0.65, 0.9, 1.0]),
)
def test_enough_jobs_recur_at_least_five_times(jobs: int, seed: int, share: float) -> None:
    workload = generate("recurrent", jobs=jobs, seed=seed, recurring_share=share)
    sizes = group_sizes(workload)
    assert len(workload) == sizes.sum() == jobs
    recurring = sizes[sizes >= 5].sum()
    if jobs >= 5:
        assert recurring >= share * jobs
        assert recurring <= max(np.ceil(share * jobs), 5 if share else 0)


def test_by_default_two_thirds_recur_and_no_group_has_most_jobs() -> None:
    workload = generate("recurrent", jobs=20_000, seed=1)
    sizes = group_sizes(workload)
    assert 0.65 <= sizes[sizes >= 5].sum() / 20_000 < 0.66
    assert sizes.max() < 0.03 * 20_000
    assert len(set(workload.tenant)) > 200
    assert len(set(workload.tenant)) < len(set(workload.name)) < len(sizes)


def test_a_group_is_one_program_of_one_user() -> None:
    frame = generate("recurrent", jobs=3000, seed=2).to_frame()
    for column in ("tenant", "name", "model", "gpus"):
        assert (frame.groupby("group")[column].nunique() == 1).all()
    assert (frame.groupby("name")["tenant"].nunique() == 1).all()
    assert frame.groupby("name")["group"].nunique().max() > 1


def test_iterations_are_lognormal_around_the_median_of_the_group() -> None:
    workload = generate("recurrent", jobs=20_000, seed=3, spread_low=0.1, spread_high=0.1)
    assert np.array_equal(workload.work, np.round(workload.work))
    assert workload.work.min() >= 1
    large = workload.work > 100  # Rounding to whole iterations does not show.
    logs = pd.Series(np.log(workload.work[large])).groupby(workload.group[large])
    spread = logs.std()[logs.size() >= 30]
    assert len(spread) > 20
    assert 0.08 < spread.quantile(0.1) < spread.quantile(0.9) < 0.12
    assert logs.mean().std() > 1.0


def test_spreads_differ_between_groups_by_default() -> None:
    workload = generate("recurrent", jobs=20_000, seed=3)
    logs = pd.Series(np.log(workload.work)).groupby(workload.group)
    spread = logs.std()[logs.size() >= 30]
    assert spread.quantile(0.1) < 0.06
    assert spread.quantile(0.9) > 0.25


def test_runs_of_a_group_are_near_one_another_in_time() -> None:
    workload = generate("recurrent", jobs=20_000, seed=4)
    rank = pd.Series(np.arange(len(workload))).groupby(workload.group)
    spans = (rank.max() - rank.min())[rank.size() >= 30] / len(workload)
    assert spans.quantile(0.1) < 0.1
    assert spans.quantile(0.9) > 0.5


def test_the_same_seed_gives_the_same_jobs() -> None:
    assert generate("recurrent", seed=5) == generate("recurrent", seed=5)
    one, other = generate("recurrent", seed=5), generate("recurrent", seed=6)
    assert one != other
    assert not set(one.group) & set(other.group)


def test_load_is_what_was_asked_for_and_counts_seconds_per_iteration() -> None:
    kinds = {("bert", 8): 0.5, ("vgg19", 1): 0.02}
    workload = generate(
        "recurrent",
        jobs=20_000,
        seed=6,
        load=0.7,
        gpus_total=64,
        kinds=kinds,
        median_iterations=1e4,
    )
    seconds = np.where(workload.model == "bert", 0.5, 0.02) * workload.work
    span_s = workload.arrival_s[-1]
    assert (seconds * workload.gpus).sum() / (64 * span_s) == pytest.approx(0.7, rel=0.05)
    pairs = set(zip(workload.model.tolist(), workload.gpus.tolist(), strict=True))
    assert pairs == set(kinds)


def test_gangs_wider_than_the_cluster_are_left_out() -> None:
    assert generate("recurrent", jobs=500, gpus_total=4).gpus.max() == 4
    rate = generate("recurrent", jobs=20_000, jobs_per_hour=100.0)
    assert rate.arrival_s[-1] == pytest.approx(200 * 3600, rel=0.05)


def test_gangs_have_the_shares_that_are_asked_for() -> None:
    kinds = {("a", 1): 1.0, ("b", 1): 1.0, ("c", 4): 1.0, ("d", 16): 1.0}
    asked = {"jobs": 20_000, "gpus_total": 8, "recurring_share": 0.0, "kinds": kinds}
    drawn = generate("recurrent", **asked, gang_shares={1: 3, 2: 5, 4: 1, 16: 7})
    # Nobody has gangs of 2, and those of 16 are wider than the cluster.
    share = {model: float(np.mean(drawn.model == model)) for model, _ in kinds}
    assert share["a"] == pytest.approx(3 / 8, abs=0.02)
    assert share["b"] == pytest.approx(3 / 8, abs=0.02)
    assert share["c"] == pytest.approx(2 / 8, abs=0.02)
    assert share["d"] == 0.0
    # Without shares all kinds are alike, the wide one too.
    plain = generate("recurrent", **asked)
    assert np.mean(plain.model == "d") == pytest.approx(1 / 4, abs=0.02)


def test_the_usual_shares_may_be_given() -> None:
    given_shares = generate("recurrent", seed=3, gpus_total=8, gang_shares=GANG_SHARES)
    assert given_shares == generate("recurrent", seed=3, gpus_total=8)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"gang_shares": {}}, "expected a share > 0 of a gang that a kind of job has"),
        ({"gang_shares": {0: 1.0}}, "gang size of gang_shares is 0"),
        ({"gang_shares": {1: -1.0}}, "share of gangs of 1 is -1.0"),
        ({"gang_shares": {32: 1.0}, "gpus_total": 16}, "of at most 16 GPUs"),
        ({"jobs": 0}, "jobs is 0"),
        ({"users": -1}, "users is -1, expected an integer from 0"),
        ({"recurring_share": 1.1}, "recurring_share is 1.1, expected a number >= 0, at most 1"),
        ({"spread_low": 0.6}, "expected spread_low <= spread_high"),
        ({"spread_low": 0}, "spread_low is 0, expected a number > 0"),
        ({"median_iterations": 0.5}, "1 <= median_iterations <= longest_iterations"),
        ({"longest_iterations": 100}, "1 <= median_iterations <= longest_iterations"),
        ({"kinds": {}}, "kinds is empty"),
        ({"kinds": {("bert", 0): 1.0}}, "gang size of kind 'bert' is 0"),
        ({"kinds": {("bert", 1): 0.0}}, "seconds per iteration of kind 'bert' is 0.0"),
        ({"load": 0.5, "jobs_per_hour": 3.0}, "expected one of them"),
        ({"group": 3}, "unknown key 'group'; expected jobs, seed"),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        generate("recurrent", **parameters)
    assert expected in str(caught.value)


# Groups and names in workloads.


def test_groups_and_names_are_empty_where_unknown_and_then_no_columns_of_frames() -> None:
    workload = Workload.from_columns(**TWO)
    assert workload.group.tolist() == workload.name.tolist() == ["", ""]
    assert not {"group", "name"} & set(workload.to_frame())
    named = Workload.from_columns(**TWO, group=["", "g"])
    assert "group" in named.to_frame()
    assert "name" not in named.to_frame()
    assert named != workload
    assert Workload.from_columns(**TWO, name=["", "g"]) != workload


def test_groups_and_names_follow_their_jobs() -> None:
    workload = Workload.from_columns(
        arrival_s=[5, 1, 3], gpus=1, work=1, id=["a", "b", "c"], group=["A", "B", "C"], name="n"
    )
    assert workload.group.tolist() == ["B", "C", "A"]
    chosen = workload.select(np.array([0, 2]))
    assert chosen.group.tolist() == ["B", "A"]
    assert chosen.name.tolist() == ["n", "n"]
    with pytest.raises(ValueError, match="read-only"):
        workload.group[0] = "x"


@pytest.mark.parametrize("column", ["group", "name"])
def test_groups_and_names_are_text(column: str) -> None:
    with pytest.raises(InputError, match=f"row 2, column '{column}': got .*, expected text"):
        Workload.from_columns(**TWO, **{column: ["a", ("b",)]})
    with pytest.raises(InputError, match=f"column '{column}' has 3 rows, expected 2"):
        Workload.from_columns(**TWO, **{column: ["a", "b", "c"]})


TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LETTERS = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters=TURNS)
TEXTS = st.lists(
    st.text(LETTERS, max_size=8),
    min_size=2,
    max_size=2,
)


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@settings(max_examples=20, deadline=None)
@given(group=TEXTS, name=TEXTS)
def test_files_give_groups_and_names_back(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, group: list[str], name: list[str]
) -> None:
    path = tmp_path_factory.mktemp("jobs") / f"jobs{suffix}"
    workload = Workload.from_columns(**TWO, group=group, name=name)
    assert Workload.from_frame(workload.to_frame()) == workload
    write_workload(workload, path)
    assert read_workload(path) == workload


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_give_a_recurrent_workload_back(tmp_path: Path, suffix: str) -> None:
    workload = generate("recurrent", jobs=300, seed=8)
    write_workload(workload, tmp_path / f"jobs{suffix}")
    assert read_workload(tmp_path / f"jobs{suffix}") == workload
