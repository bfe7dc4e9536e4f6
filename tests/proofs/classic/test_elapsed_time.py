"""SETF-speed: sharing on one machine in exact fractions, and what its theorem says of random jobs."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.classic import elapsed_time
from shadowprice.proofs.tiresias.las import continuous_completions
from shadowprice.solvers.offline.bounds import fluid_ticks

JOBS = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 8)), min_size=1, max_size=7)
SPEEDS = st.sampled_from([Fraction(9, 8), Fraction(3, 2), Fraction(2), Fraction(7, 2)])


def columns(jobs: list[tuple[int, int]]) -> tuple[list[Fraction], list[Fraction]]:
    return [Fraction(r) for r, _ in jobs], [Fraction(p) for _, p in jobs]


@settings(max_examples=35)
@given(jobs=JOBS, speed=SPEEDS)
def test_sharing_keeps_what_the_theorem_says(jobs: list[tuple[int, int]], speed: Fraction) -> None:
    release, work = columns(jobs)
    instance = Instance(
        Cluster.parse("1x1"),
        Workload.from_columns(
            arrival_s=[float(r) for r in release], gpus=1, work=[float(p) for p in work]
        ),
    )
    # Jobs are in order of arrival there as here: ends belong to the same ones.
    instance_jobs = sorted(jobs, key=lambda job: job[0])
    ends = elapsed_time.completions(*columns(instance_jobs), speed)
    assert elapsed_time.check(instance, speed, ends)


@settings(max_examples=35)
@given(jobs=JOBS)
def test_both_rules_are_those_of_other_files(jobs: list[tuple[int, int]]) -> None:
    """SRPT as of the lower bounds, and without arrivals equal shares as of Tiresias' theorem."""
    release, work = columns(jobs)
    ends = elapsed_time.srpt_completions(release, work)
    assert sum(ends) == fluid_ticks([r for r, _ in jobs], [p for _, p in jobs], [1] * len(jobs), 1)
    together = elapsed_time.completions([Fraction(0)] * len(work), work, Fraction(3))
    assert sorted(together) == sorted(end / 3 for end in continuous_completions(work, 1))


@settings(max_examples=35)
@given(jobs=JOBS, speed=SPEEDS)
def test_no_time_is_lost(jobs: list[tuple[int, int]], speed: Fraction) -> None:
    """The machine works while somebody is there: it is done when any rule that does not idle is."""
    release, work = columns(jobs)
    now = Fraction(0)
    for arrival, needs in sorted(zip(release, work, strict=True)):
        now = max(now, arrival) + needs / speed
    assert max(elapsed_time.completions(release, work, speed)) == now


def test_equal_shares_by_hand() -> None:
    """Of 3 and 1 from 0 and 1: alone until 1, the second until 2, then the first again."""
    found = elapsed_time.completions(
        [Fraction(0), Fraction(1)], [Fraction(3), Fraction(1)], Fraction(1)
    )
    # From 2 on both have 1 of work done, and the second is finished.
    assert found == [4, 2]
    two = elapsed_time.completions([Fraction(0)] * 2, [Fraction(2), Fraction(1)], Fraction(1))
    assert two == [3, 2]
