"""Adversary by property testing: Hypothesis looks for a high ratio, then for the simplest such case.

Source: targeted property-based testing, Löscher and Sagonas, ISSTA 2017; internal shrinking,
MacIver and Donaldson, ECOOP 2020. Needs hypothesis, which the ``test`` extra installs.
"""

from __future__ import annotations

import importlib
from fractions import Fraction
from random import Random
from typing import Any

from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob, InstanceFamily
from shadowprice.analysis.adversary.judge import Trail
from shadowprice.errors import InputError

_BATCH = 400
"""Examples of one run of Hypothesis; the effort is looked at between runs."""


def search(trail: Trail) -> None:
    """Look for a bad case with up to the family's number of jobs, then shrink it.

    Runs differ in their seeds only. The one that found the worst case is run again, now failing
    where the ratio is as bad as that, which is what Hypothesis shrinks from.

    Raises
    ------
    InputError
        If hypothesis is not installed.
    """
    try:
        hypothesis: Any = importlib.import_module("hypothesis")
    except ImportError:
        raise InputError(
            "method hypothesis: hypothesis is not installed, expected `pip install shadowprice[test]`"
        ) from None
    cases = _cases(trail.judge.family)
    known: dict[FamilyInstance, Fraction] = {}
    batch, best = 0, (Fraction(0), 0, 0)
    while not trail.over():
        examples = min(_BATCH, trail.effort.evaluations - trail.evaluations)
        _find(hypothesis, cases, _Aim(trail, hypothesis, known), examples, batch)
        if trail.ratio > best[0]:
            best = (trail.ratio, batch, examples)
        batch += 1
    goal, batch, examples = best
    found = _find(hypothesis, cases, _Aim(trail, hypothesis, known, goal), examples, batch)
    if found is not None:
        trail.look(found)


def _cases(family: InstanceFamily) -> Any:
    st: Any = importlib.import_module("hypothesis.strategies")
    job = st.builds(
        FamilyJob,
        arrival=st.integers(0, family.max_arrival),
        work=st.integers(1, family.max_work),
        gpus=st.integers(1, family.widest),
        error=st.integers(-family.max_error, family.max_error),
    )
    return st.lists(job, min_size=1, max_size=family.jobs).map(FamilyInstance.of)


class _Aim:
    """Tells Hypothesis how bad a case is; satisfied by a goal, never if there is none."""

    def __init__(
        self,
        trail: Trail,
        hypothesis: Any,
        known: dict[FamilyInstance, Fraction],
        goal: Fraction | None = None,
    ) -> None:
        self.trail, self.hypothesis, self.known, self.goal = trail, hypothesis, known, goal

    def __call__(self, case: FamilyInstance) -> bool:
        if case not in self.known:
            self.known[case] = self.trail.look(case)
        elif self.goal is None:
            self.trail.evaluations += 1  # An example is one whether it is new or not.
        ratio = self.known[case]
        self.hypothesis.target(float(ratio), label="ratio")
        return self.goal is not None and ratio >= self.goal


def _find(
    hypothesis: Any, cases: Any, condition: _Aim, examples: int, batch: int
) -> FamilyInstance | None:
    phases = hypothesis.Phase
    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(phases.generate, phases.target, phases.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    random = Random(f"{condition.trail.effort.seed}/{batch}")
    try:
        found: FamilyInstance = hypothesis.find(cases, condition, settings=settings, random=random)
    except hypothesis.errors.NoSuchExample:
        return None
    return found
