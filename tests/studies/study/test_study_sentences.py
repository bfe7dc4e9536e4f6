"""Sentences of a study on who is better: only what the differences on the same seeds tell apart."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from shadowprice.studies.comparisons import places, policy_rows, settings_of
from shadowprice.studies.difference import difference
from shadowprice.studies.page import policies_sheet
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_study import study
from shadowprice.studies.statements import findings, ranked_as, rules

GIVEN = {
    "study": "sentences",
    "workloads": {"drawn": {"generator": "lognormal", "parameters": {"jobs": 20}}},
    "loads": [0.3],
    "clusters": ["1x4"],
    "policies": ["fifo", "easy", "srtf"],
    "seeds": 4,
    "bounds": {"columns": 1000},
}


@pytest.fixture(scope="module")
def found() -> StudyResults:
    return study(GIVEN)


def with_means(found: StudyResults, means: Mapping[str, Sequence[float]]) -> StudyResults:
    """The same results where policies have these mean JCTs, a seed each, and no class is unserved."""
    groups = found.groups[found.groups["by"] == "all"].copy()
    groups = groups[groups["seed"] < len(means["fifo"])]
    for policy, values in means.items():
        mine = groups["policy"] == policy
        groups.loc[mine, "jct_s_mean"] = groups.loc[mine, "seed"].map(dict(enumerate(values)))
    return replace(found, groups=groups.assign(growth=0.0))


def told(found: StudyResults) -> str:
    (setting,) = settings_of(found)
    return next(iter(findings(found))).removeprefix(f"{setting}: ")


SEEDS = (100.0, 900.0, 500.0, 2000.0)


def test_the_smallest_mean_is_said_only_where_every_difference_is_clear(
    found: StudyResults,
) -> None:
    clear = with_means(
        found, {"fifo": [s + 900 for s in SEEDS], "easy": [s + 50 for s in SEEDS], "srtf": SEEDS}
    )
    # The means of seeds are far apart and the differences are not: 50 s on every seed.
    assert told(clear).startswith("srtf has the smallest mean JCT, 875 [")
    noisy = with_means(
        found,
        {"fifo": [8000.0, 901.0, 501.0, 1.0], "easy": [90.0, 910.0, 520.0, 2010.0], "srtf": SEEDS},
    )
    words = told(noisy)
    assert "smallest" not in words
    assert words.startswith("srtf, with a mean JCT of 875 [")
    assert "cannot be told apart from easy, 882 [" in words
    assert "; fifo, 2,350 [" in words, "however much larger the mean is"


def test_policies_that_cannot_be_told_apart_are_ties(found: StudyResults) -> None:
    results = with_means(
        found,
        {"fifo": [s + 500 for s in SEEDS], "easy": [90.0, 910.0, 520.0, 2010.0], "srtf": SEEDS},
    )
    (setting,) = settings_of(results)
    assert ranked_as(setting) == {"srtf": "1 to 2", "easy": "1 to 2", "fifo": "3"}
    apart = with_means(
        found,
        {"fifo": [s + 500 for s in SEEDS], "easy": [s + 9 for s in SEEDS], "srtf": SEEDS},
    )
    (of_apart,) = settings_of(apart)
    assert ranked_as(of_apart) == {"srtf": "1", "easy": "2", "fifo": "3"}
    lines = list(difference(results, apart).lines())
    where = f"{setting}: places were"
    assert f"{where} srtf 1 to 2, easy 1 to 2, fifo 3 and are srtf 1, easy 2, fifo 3" in lines
    swapped = with_means(
        found,
        {"fifo": [s + 500 for s in SEEDS], "srtf": [90.0, 910.0, 520.0, 2010.0], "easy": SEEDS},
    )
    assert [each for each in difference(results, swapped).lines() if "places were" in each] == []


def test_nothing_is_smallest_of_policies_that_are_not_compared(found: StudyResults) -> None:
    served = with_means(found, {"fifo": SEEDS, "easy": SEEDS, "srtf": SEEDS}).groups
    alone = replace(found, groups=served[served["policy"] == "fifo"])
    assert re.search(r"^fifo has a mean JCT of .* s, with nothing beside it\.$", told(alone))
    # All jobs pile up under two policies: srtf is slower than they are, and alone.
    piled = with_means(found, {"fifo": SEEDS, "easy": SEEDS, "srtf": [s + 50 for s in SEEDS]})
    groups = piled.groups
    growth = groups["policy"].map({"fifo": 0.9, "easy": 0.9, "srtf": 0.0})
    words = told(replace(piled, groups=groups.assign(growth=growth)))
    assert words.startswith("srtf alone serves every class, with a mean JCT of 925 [")
    assert words.endswith(
        "; on these seeds fifo, easy have a smaller one and leave a class unserved."
    )
    one = groups["policy"].map({"fifo": 0.9, "easy": 0.0, "srtf": 0.0})
    words = told(replace(piled, groups=groups.assign(growth=one)))
    assert words.startswith("easy has the smallest mean JCT, 875 [")
    assert words.endswith(" s, of the policies that serve every class.")


def test_one_seed_tells_nothing_apart(found: StudyResults) -> None:
    results = with_means(found, {"fifo": [9.0], "easy": [5.0], "srtf": [4.0]})
    (setting,) = settings_of(results)
    assert {each.text for each in places(setting).values()} == {"1 to 3"}
    expected = "srtf, with a mean JCT of 4 s, cannot be told apart from easy, 5 s; fifo, 9 s; one seed has no interval."
    assert told(results) == expected


def test_policies_are_compared_on_the_seeds_of_both_where_runs_are_missing(
    found: StudyResults,
) -> None:
    """A policy that lacks the hardest seeds has the smallest mean and is behind on all others."""
    results = with_means(
        found, {"fifo": [s + 50 for s in SEEDS], "easy": [s + 99 for s in SEEDS], "srtf": SEEDS}
    )
    lacks = (results.groups["policy"] == "fifo") & (results.groups["seed"] == 3)
    results = replace(results, groups=results.groups[~lacks])
    (setting,) = settings_of(results)
    assert ranked_as(setting) == {"srtf": "1", "fifo": "2", "easy": "3"}
    words = told(results)
    assert words.startswith("srtf has the smallest mean JCT, 875 [")
    assert "; each mean is over the seeds that the policy has" in words


def test_no_interval_of_a_study_reaches_below_what_is_possible(found: StudyResults) -> None:
    wild = with_means(
        found, {"fifo": (1.0, 4000.0, 3.0, 2.0), "easy": (1.0, 1.0, 9000.0, 1.0), "srtf": SEEDS}
    )
    wild = replace(
        wild, runs=wild.runs.assign(ratio_flow=wild.runs["seed"].map({0: 1.0, 1: 1.1, 2: 1, 3: 9}))
    )
    slowdown = wild.groups["seed"].map({0: 1.0, 1: 1.1, 2: 30.0, 3: 2.0})
    wild = replace(wild, groups=wild.groups.assign(slowdown_mean=slowdown))
    (setting,) = settings_of(wild)
    for row in policy_rows(setting):
        for name, value in row.values.items():
            assert value is not None, name
            least = 1.0 if name.startswith(("ratio_", "slowdown_")) else 0.0
            assert least <= value.low <= value.mean <= value.high, name
        assert row.relative is None or row.relative.low >= -1.0
    assert any(row.relative is not None and row.relative.low == -1 for row in policy_rows(setting))


def test_ratios_are_called_upper_bounds_and_that_of_one_seed_is_rounded_up(
    found: StudyResults,
) -> None:
    (setting,) = settings_of(found)
    sheet = policies_sheet(setting)
    assert "mean of upper bounds of the ratio, flow" in sheet.heads
    assert not any("ratio at most" in head for head in sheet.heads)
    assert any("upper bounds of the ratio to the optimum" in each for each in rules(found))
    one = found.runs[found.runs["seed"] == 0].assign(ratio_flow=1.23401)
    groups = found.groups[found.groups["seed"] == 0]
    (of_one,) = settings_of(replace(found, runs=one, groups=groups))
    alone = policies_sheet(of_one)
    column = list(alone.heads).index("mean of upper bounds of the ratio, flow")
    assert {row[column] for row in alone.rows} == {"1.235x"}


def test_ratios_where_nodes_fail_are_of_nodes_that_never_do() -> None:
    law = {"mtbf_s": 20000, "repair_s": 600}
    failing = {"failing": {"with": {"failures": law}}, "plain": {}}
    results = study({**GIVEN, "seeds": 1, "policies": ["fifo"], "conditions": failing})
    assert results.record.failed == {}
    (told_of,) = [each for each in rules(results) if each.startswith("Ratios")]
    assert (
        "all preemptive schedules on nodes that never fail, or of all preemptive schedules of"
        in told_of
    )
