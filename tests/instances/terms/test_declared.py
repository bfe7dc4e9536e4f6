"""Declared terms: racks by hand, terms of one's own and their rules, and every way to declare one wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.declared import (
    Amount,
    DeclaredRun,
    HoldingTerm,
    Place,
    SlowingTerm,
)
from shadowprice.instances.terms.racks import Racks
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.verification.rules import TermRule
from shadowprice.solvers.registry import policy
from support.own_terms import Curfew

TWO_WIDE = Workload.from_columns(arrival_s=[0.0, 0.0], gpus=[3, 3], work=[2.0, 2.0])
RACKS = Racks(nodes=1, across_nodes=1.0, across_racks=0.5, uplink=1)


def rows_of(
    instance: Instance, name: str = "fifo-skip"
) -> list[tuple[int, int, int, float, float]]:
    """Rows of the engine's schedule, which the verifier accepts."""
    s = run(instance, policy(name)).schedule
    verify(instance, s)
    columns = (s.job, s.node, s.gpus, s.start_s, s.end_s)
    return sorted(zip(*(each.tolist() for each in columns), strict=True))


def test_two_gangs_wait_for_one_uplink() -> None:
    """Each of 2 s crosses the rack in the middle, at half the speed: 4 s one after the other."""
    nodes = Cluster.load("3x2")
    assert rows_of(Instance(nodes, TWO_WIDE, declared=(RACKS,))) == [
        (0, 0, 2, 0.0, 4.0),
        (0, 1, 1, 0.0, 4.0),
        (1, 0, 2, 4.0, 8.0),
        (1, 2, 1, 4.0, 8.0),
    ]
    wider = replace(RACKS, uplink=2)
    assert rows_of(Instance(nodes, TWO_WIDE, declared=(wider,))) == [
        (0, 0, 2, 0.0, 4.0),
        (0, 1, 1, 0.0, 4.0),
        (1, 1, 1, 0.0, 4.0),
        (1, 2, 2, 0.0, 4.0),
    ]


def test_within_a_rack_no_uplink_is_crossed() -> None:
    """Of nodes two and two: the first gang is within a rack at 3/4 of the speed, the second across at 1/2."""
    term = Racks(nodes=2, across_nodes=0.75, across_racks=0.5, uplink=1)
    jobs = replace(TWO_WIDE, work=np.array([3.0, 3.0]))
    assert rows_of(Instance(Cluster.load("4x2"), jobs, declared=(term,))) == [
        (0, 0, 2, 0.0, 4.0),
        (0, 1, 1, 0.0, 4.0),
        (1, 1, 1, 0.0, 6.0),
        (1, 2, 2, 0.0, 6.0),
    ]


@pytest.mark.parametrize(
    ("changed", "rule"), [({"uplink": 1}, "racks: row"), ({"across_racks": 0.25}, "work: job")]
)
def test_the_verifier_sees_what_breaks_racks(changed: dict[str, Any], rule: str) -> None:
    loose = Instance(Cluster.load("3x2"), TWO_WIDE, declared=(replace(RACKS, uplink=2),))
    schedule = run(loose, policy("fifo-skip")).schedule
    strict = replace(loose, declared=(replace(RACKS, **{"uplink": 2, **changed}),))
    with pytest.raises(Violation, match=rule):
        verify(strict, schedule)


@given(st.integers(0, 10**6), st.sampled_from(["fifo", "fifo-skip", "srtf", "las2d"]))
def test_one_gang_at_a_time_in_a_curfew(seed: int, name: str) -> None:
    """The rule finds every schedule of a run without the term that begins too much by night, and no other."""
    random = np.random.default_rng(seed)
    jobs = Workload.from_columns(
        arrival_s=np.sort(random.integers(0, 8, 5)).astype(float),
        gpus=random.integers(1, 3, 5),
        work=random.integers(1, 6, 5).astype(float),
    )
    free = Instance(Cluster.load("2x2"), jobs)
    bound = replace(free, declared=(Curfew(2, 3.0),))
    verify(bound, run(bound, policy(name)).schedule)
    schedule = run(free, policy(name)).schedule
    times = sorted(set(schedule.start_s.tolist()))
    held = {
        t: int(schedule.gpus[(schedule.start_s <= t) & (schedule.end_s > t)].sum()) for t in times
    }
    late = any(gpus > 2 and int(t // 3.0) % 2 for t, gpus in held.items())
    if late:
        with pytest.raises(Violation, match="curfew"):
            verify(bound, schedule)
    else:
        verify(bound, schedule)


@dataclass(frozen=True)
class Odd(HoldingTerm, SlowingTerm):
    """Says whatever it is told to."""

    name: ClassVar[str] = "odd"
    rule: ClassVar[TermRule] = TermRule(lambda term, runs: ())

    amount: int = 0
    factor: Any = 1.0
    later_s: float = 10.0

    def holds(self, run: DeclaredRun) -> Iterator[Amount]:
        """As told."""
        yield "here", self.amount

    def limit(self, place: Place, now_s: float) -> int:
        """As good as none."""
        return 10

    def next_change_s(self, now_s: float) -> float:
        """As told."""
        return now_s + self.later_s

    def speed(self, run: DeclaredRun) -> float:
        """As told."""
        return 1.0 / self.factor if self.factor != 0.5 else self.factor + 1.0


PLAIN = Instance(Cluster.load("3x2"), TWO_WIDE)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (
            Odd(factor=0.5),
            "odd: the speed of job '0' on .* is 1.5, expected a number above 0 and at most 1",
        ),
        (Odd(factor=0), "odd: .*test_declared.py, line .*: ZeroDivisionError"),
        (Odd(factor=-1.0), "odd: the speed of job '0' .* is -1.0, expected"),
        (Odd(amount=-1), r"odd: a run holds \(\('here', -1\),\), expected amounts >= 0"),
        (Odd(later_s=0.0), r"odd: next_change_s\(0.0\) is 0.0, expected a later time"),
        (Odd(later_s=float("nan")), r"odd: next_change_s\(0.0\) is nan, expected a later time"),
    ],
)
def test_what_a_term_cannot_say_is_refused(term: Odd, message: str) -> None:
    with pytest.raises((InputError, PolicyError), match=message):
        run(replace(PLAIN, declared=(term,)), policy("fifo"))


def test_a_job_that_never_may_begin_is_no_hang() -> None:
    with pytest.raises(PolicyError, match="leaves 2 jobs waiting for ever"):
        run(replace(PLAIN, declared=(Odd(amount=11),)), policy("fifo"))


def test_runs_that_never_pay_are_no_hang() -> None:
    """Limits that change more often than charges are paid let a preemptive policy go back and forth."""
    jobs = Workload.from_columns(arrival_s=[0.0, 0.0], gpus=[3, 1], work=[1.0, 1.0])
    charges = Overheads(start_s=1.0, migration_s=1.0)
    instance = Instance(Cluster.load("1x2,1x1"), jobs, charges, declared=(Curfew(2, 0.5),))
    with pytest.raises(PolicyError, match="stopped 2001 runs in a row before they had paid"):
        run(instance, policy("srtf"))


def test_a_term_without_a_rule_is_not_approved() -> None:
    @dataclass(frozen=True)
    class Bare(Odd):
        """The same, and nobody says how to check it."""

        rule: ClassVar[None] = None

    instance = replace(PLAIN, declared=(Bare(),))
    schedule = run(instance, policy("fifo")).schedule
    with pytest.raises(
        InputError, match=r"has terms of one's own \(odd\), not known to the verifier"
    ):
        verify(instance, schedule)
    verify(replace(PLAIN, declared=(Odd(),)), schedule)


def test_a_term_is_there_once() -> None:
    with pytest.raises(InputError, match="has the term racks twice, expected once"):
        replace(PLAIN, declared=(RACKS, replace(RACKS, uplink=2)))
    with pytest.raises(
        InputError, match=r"across_racks is 0\.5, expected at most across_nodes, 0.25"
    ):
        replace(PLAIN, declared=(replace(RACKS, across_nodes=0.25),))


def test_a_rule_may_not_make_runs_faster() -> None:
    @dataclass(frozen=True)
    class Fast(Odd):
        """The same, with a rule by which runs are faster."""

        rule: ClassVar[TermRule] = TermRule(lambda term, runs: (), lambda term, run: 2.0)

    schedule = run(PLAIN, policy("fifo")).schedule
    with pytest.raises(InputError, match=r"odd: its rule says the speed 2.0, expected one above 0"):
        verify(replace(PLAIN, declared=(Fast(),)), schedule)
