"""Adversary by differential evolution over arrivals, sizes, gangs and predictions.

Source: Storn and Price, Journal of Global Optimization 11, 1997, in SciPy's implementation, with
whole numbers. What it finds is then improved one number at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import differential_evolution

from shadowprice.analysis.adversary.family import FamilyInstance, FamilyJob, InstanceFamily
from shadowprice.analysis.adversary.judge import Trail, simpler

_POPULATION = 24
_GENERATIONS = 10
"""Of one restart; short, because polishing many starts finds more than settling on one."""


class _Spent(Exception):
    """The effort is spent."""


def search(trail: Trail) -> None:
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
    found = differential_evolution(
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
    return case(found.x)


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
