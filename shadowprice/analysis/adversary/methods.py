"""Three ways to look for the worst instance of a family."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution

from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob, InstanceFamily
from shadowprice.analysis.adversary.judge import Trail, simpler
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.models.bilevel import RULES, InstanceLimits
from shadowprice.solvers.offline.worst_case import worst_list
from shadowprice.solvers.registry import registered_name

# Adversary by property testing: Hypothesis looks for a high ratio, then for the simplest such case.
#
# Source: targeted property-based testing, Löscher and Sagonas, ISSTA 2017; internal shrinking,
# MacIver and Donaldson, ECOOP 2020. Needs hypothesis, which the ``test`` extra installs.


_BATCH = 400
"""Examples of one run of Hypothesis; the effort is looked at between runs."""


def by_hypothesis(trail: Trail) -> None:
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
            "method hypothesis: hypothesis is not installed, expected pip install 'shadowprice[test]'"
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
    worst = _find(hypothesis, cases, _Aim(trail, hypothesis, known, goal), examples, batch)
    if worst is not None:
        trail.look(worst)


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
        member: FamilyInstance = hypothesis.find(cases, condition, settings=settings, random=random)
    except hypothesis.errors.NoSuchExample:
        return None
    return member


# Adversary by differential evolution over arrivals, sizes, gangs and predictions.
#
# Source: Storn and Price, Journal of Global Optimization 11, 1997, in SciPy's implementation, with
# whole numbers. What it finds is then improved one number at a time.


_POPULATION = 24
_GENERATIONS = 10
"""Of one restart; short, because polishing many starts finds more than settling on one."""


class _Spent(Exception):
    """The effort is spent."""


def by_evolution(trail: Trail) -> None:
    """Evolve cases of exactly the family's number of jobs, again and again, and polish each best."""
    family, restart = trail.judge.family, 0
    try:
        while not trail.over():
            _polish(trail, _evolve(trail, family, restart))
            restart += 1
    except _Spent:
        pass


def _evolve(trail: Trail, family: InstanceFamily, restart: int) -> FamilyInstance:
    bounds = [
        limits
        for _ in range(family.jobs)
        for limits in (
            (0, family.max_arrival),
            (1, family.max_work),
            (1, family.widest),
            (-family.max_error, family.max_error),
        )
    ]
    free = [k for k, (least, most) in enumerate(bounds) if least < most]
    fixed = np.array([least for least, _ in bounds], dtype=np.float64)

    def case(numbers: NDArray[np.float64]) -> FamilyInstance:
        full = fixed.copy()
        full[free] = numbers
        rows = np.rint(full).astype(np.int64).reshape(family.jobs, 4).tolist()
        return FamilyInstance.of([FamilyJob(*row) for row in rows])

    def cost(numbers: NDArray[np.float64]) -> float:
        if trail.over():
            raise _Spent
        return -float(trail.look(case(numbers)))

    rng = np.random.default_rng([trail.effort.seed, restart])
    ranges = [bounds[k] for k in free]
    evolved = differential_evolution(
        cost,
        ranges,
        integrality=np.ones(len(free), dtype=bool),
        init=_first(ranges, family.jobs, rng),
        maxiter=_GENERATIONS,
        tol=0.0,
        atol=0.0,
        mutation=(0.4, 0.9),
        recombination=0.6,
        polish=False,
        seed=rng,
    )
    return case(evolved.x)


def _first(
    bounds: list[tuple[int, int]], jobs: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The first generation: jobs of one to three kinds, with many numbers at the ends of their ranges.

    Bad cases are of this form: a few jobs in the way of many equal ones.
    """
    low = np.array([least for least, _ in bounds], dtype=np.float64).reshape(jobs, -1)
    high = np.array([most for _, most in bounds], dtype=np.float64).reshape(jobs, -1)
    shape = (_POPULATION, 3, low.shape[1])
    drawn = np.floor(low[0] + rng.random(shape) * (high[0] - low[0] + 1))
    ends = np.where(rng.random(shape) < 0.6, low[0], high[0])
    kinds = np.minimum(np.where(rng.random(shape) < 0.5, ends, drawn), high[0])
    last = rng.integers(1, 4, size=(_POPULATION, 1))
    chosen = (rng.random((_POPULATION, jobs)) * last).astype(np.int64)
    first: NDArray[np.float64] = kinds[np.arange(_POPULATION)[:, None], chosen]
    return first.reshape(_POPULATION, -1)


def _polish(trail: Trail, case: FamilyInstance) -> None:
    """Change a number, repeat, replace or leave out a job, while the ratio grows or the case gets simpler."""
    best, ratio = case, trail.look(case)
    improved = True
    while improved:
        improved = False
        for other in list(_neighbours(best, trail.judge.family)):
            if trail.over():
                raise _Spent
            value = trail.look(other)
            if value > ratio or (value == ratio and simpler(other, best)):
                best, ratio, improved = other, value, True
                break


def _neighbours(case: FamilyInstance, family: InstanceFamily) -> Iterator[FamilyInstance]:
    for k, job in enumerate(case.jobs):
        rest = [*case.jobs[:k], *case.jobs[k + 1 :]]
        if rest:
            yield FamilyInstance.of(rest)
        if len(case.jobs) < family.jobs:
            yield FamilyInstance.of([*case.jobs, job])
        for name, least, most in (
            ("arrival", 0, family.max_arrival),
            ("work", 1, family.max_work),
            ("gpus", 1, family.widest),
            ("error", -family.max_error, family.max_error),
        ):
            now = getattr(job, name)
            for value in sorted({least, most, now - 1, now + 1, (least + now) // 2} - {now}):
                if least <= value <= most:
                    yield FamilyInstance.of([*rest[:k], replace(job, **{name: value}), *rest[k:]])
        for other in sorted(set(case.jobs) - {job}):
            yield FamilyInstance.of([*rest, other])


# Adversary by an exact search: the worst instance of a list policy within whole limits.


def by_enumeration(trail: Trail) -> None:
    """Find the worst case with exactly the family's number of jobs; note whether it is proven.

    Raises
    ------
    InputError
        If the policy is not one of those that ``models/bilevel.py`` covers, or the objective is the
        makespan.
    """
    judge, family = trail.judge, trail.judge.family
    if judge.objective is Objective.MAKESPAN:
        raise InputError("method bilevel: the objective is makespan, expected completion or flow")
    limits = InstanceLimits(
        family.jobs, family.gpus, family.max_arrival, family.max_work, family.widest
    )
    covered = registered_name(judge.acting)
    if covered is None:
        raise InputError(
            f"method bilevel: policy {judge.name!r} is none of ours, expected one of {', '.join(RULES)}"
        )
    worst = worst_list(
        covered,
        limits,
        flow=judge.objective is Objective.FLOW,
        budget_s=trail.effort.budget_s,
    )
    columns = zip(worst.arrival, worst.work, worst.gpus, strict=True)
    trail.look(
        FamilyInstance.of([FamilyJob(arrival, work, gpus) for arrival, work, gpus in columns])
    )
    trail.notes["worst_of_family"] = worst.proven
