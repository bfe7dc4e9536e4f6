"""How much each lower bound can lose: the loosest instance found of each kind, with its optimum.

``python benchmarks/loose_bounds.py FOLDER [--evaluations N] [--only NAME,...]`` writes a file for each kind of bound,
and prints a table. The files of the package in ``shadowprice/instances/loose`` come from 150 evaluations of each.

The optimum is that of :mod:`shadowprice.solvers.offline.completions.completion_search`, exact or not counted. Bounds
are those of a fixed effort, so that the same seed finds the same instance. A search starts with random cases, several
equal jobs among them, and changes one number at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

import numpy as np
from searches import Found, search_each

from shadowprice.analysis.adversary.family import (
    KNOWS,
    FamilyInstance,
    FamilyJob,
    InstanceFamily,
)
from shadowprice.analysis.certificates.exact_cost import verified_cost
from shadowprice.analysis.optimum import preemptive_optimum
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.hard_instances import LooseBound
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.bounds import Relaxation, offset_ticks, simple_bounds
from shadowprice.solvers.offline.completions.completion_search import search_optimum
from shadowprice.solvers.offline.interval_prices import interval_prices
from shadowprice.solvers.offline.lagrangian import interval_bound
from shadowprice.solvers.offline.priced_plans import search
from shadowprice.version import __version__

_EFFORT_S, _COLUMNS = 0.2, 2_000
"""Effort of searches of prices [s of a common machine], and size of interval LPs."""

Evaluation = Callable[[Relaxation, Instance], Fraction]
"""A bound of total weighted completion time [ticks]."""


def _simple(kind: str) -> Evaluation:
    def evaluate(jobs: Relaxation, instance: Instance) -> Fraction:
        every = simple_bounds(instance, Objective.COMPLETION)
        return next(bound.ticks for bound in every if bound.kind == kind)

    return evaluate


def _searched(kind: str) -> Evaluation:
    def evaluate(jobs: Relaxation, instance: Instance) -> Fraction:
        every = search(jobs, _EFFORT_S, rigid=True)
        # Where nobody waits, or the first prices are the best, a bound is that of what came before.
        least = sum(
            (w * (r + p) for w, r, p in zip(jobs.weight, jobs.release, jobs.work, strict=True)),
            Fraction(0),
        )
        known = ("priced-plans",) if kind == "priced-plans" else ("priced-plans", kind)
        return max([least, *(bound.ticks for bound in every if bound.kind in known)])

    return evaluate


def _interval(jobs: Relaxation, instance: Instance) -> Fraction:
    found = interval_prices(jobs, 60.0, _COLUMNS)
    if found is None:
        raise InputError("interval-lp: expected an instance with times that fit the programme")
    grid = list(found.grid_ticks)
    return interval_bound(
        jobs.release, jobs.work, jobs.gpus, jobs.weight, jobs.capacity, grid, found.prices
    )


def _windows(jobs: Relaxation, instance: Instance) -> Fraction:
    """Before any window is cut."""
    return next(search_optimum(jobs)).lower_ticks


EVALUATIONS: Mapping[str, Evaluation] = {
    "job": _simple("job"),
    "fluid": _simple("fluid"),
    "mean-busy-time": _simple("mean-busy-time"),
    "wide-gangs": _simple("wide-gangs"),
    "interval-lp": _interval,
    "priced-plans": _searched("priced-plans"),
    "configurations": _searched("configurations"),
    "completion-windows": _windows,
}
"""Bounds of a fixed effort, by kind; the last one as it is before it cuts any window."""


def bound_ticks(kind: str, instance: Instance, objective: Objective) -> Fraction:
    """A bound of a fixed effort [ticks] in an objective.

    Raises
    ------
    InputError
        If there is none of this kind, or the instance says more than an adversary knows.
    """
    require(instance, KNOWS, "adversaries")
    if kind not in EVALUATIONS:
        raise InputError(f"bound {kind!r}: expected one of {', '.join(EVALUATIONS)}")
    jobs = Relaxation.of(instance)
    return EVALUATIONS[kind](jobs, instance) - offset_ticks(jobs.weight, jobs.release, objective)


@dataclass
class _Gaps:
    """Gaps of a bound on cases of a family."""

    kind: str
    objective: Objective
    family: InstanceFamily
    left: int
    known: dict[FamilyInstance, Fraction]

    def of(self, case: FamilyInstance) -> Fraction:
        """Optimum over bound; 0 where the optimum is not known exactly, or the bound is 0."""
        self.left -= 1  # Also of one that is known: small families have few others.
        if case not in self.known:
            self.known[case] = self._fresh(case)
        return self.known[case]

    def _fresh(self, case: FamilyInstance) -> Fraction:
        instance = self.family.instance(case)
        bound = bound_ticks(self.kind, instance, self.objective)
        jobs = Relaxation.of(instance)
        found = list(search_optimum(jobs))[-1]
        if bound <= 0 or found.lower_ticks != found.upper_ticks:
            return Fraction(0)
        shift = offset_ticks(jobs.weight, jobs.release, self.objective)
        return (found.lower_ticks - shift) / bound


def loosest(
    kind: str,
    family: InstanceFamily,
    objective: Objective | str = Objective.FLOW,
    *,
    evaluations: int = 1_000,
    seed: int = 0,
) -> LooseBound:
    """The instance of a family on which a bound was found to be furthest below the preemptive optimum.

    Parameters
    ----------
    kind : str
        Of :data:`EVALUATIONS`.
    evaluations : int
        Instances looked at.

    Raises
    ------
    InputError
        If there is no bound of this kind.
    """
    gaps = _Gaps(kind, Objective(objective), family, evaluations, {})
    rng, best = np.random.default_rng([seed, len(kind)]), FamilyInstance((FamilyJob(0, 1, 1),))
    most = Fraction(0)
    while gaps.left > 0:
        case = _random(family, rng)
        now, improved = gaps.of(case), True
        while improved and gaps.left > 0:
            improved = False
            for other in _neighbours(case, family, rng):
                gap = gaps.of(other)
                if gap > now:
                    case, now, improved = other, gap, True
                    break
                if gaps.left <= 0:
                    break
        if now > most:
            best, most = case, now
    instance = family.instance(best)
    found = preemptive_optimum(instance, objective=gaps.objective)
    bound = bound_ticks(kind, instance, gaps.objective)
    return LooseBound(
        name=kind,
        bound=kind,
        objective=gaps.objective,
        instance=instance,
        witness=found.schedule,
        optimum_s=found.upper_s,
        bound_s=float(bound / TICKS_PER_S),
        ratio=found.upper_ticks / bound,
        provenance={
            "family": asdict(family),
            "seed": seed,
            "evaluations": evaluations,
            "version": __version__,
        },
    )


def recheck(loose: LooseBound) -> Fraction:
    """Check a stored instance: its schedule, that it is optimal, and its bound; the ratio found now.

    Raises
    ------
    VerificationError
        If one of them is not as stored.
    """
    cost = verified_cost(loose.instance, loose.objective, loose.witness)
    found = preemptive_optimum(loose.instance, objective=loose.objective)
    if cost is None or cost != found.lower_ticks:
        raise VerificationError(f"{loose.name}: its schedule is none, or not optimal")
    ratio = cost / bound_ticks(loose.bound, loose.instance, loose.objective)
    # Bounds of a solver may differ from one version to the next by their last bits.
    if abs(ratio / loose.ratio - 1) > Fraction(1, 10**4):
        raise VerificationError(
            f"{loose.name}: optimum over bound is {float(ratio):.6g}, stored is {float(loose.ratio):.6g}"
        )
    return ratio


def _random(family: InstanceFamily, rng: np.random.Generator) -> FamilyInstance:
    """Jobs of one to three kinds."""
    kinds = [
        FamilyJob(
            int(rng.integers(0, family.max_arrival + 1)) if rng.random() < 0.5 else 0,
            int(rng.integers(1, family.max_work + 1)),
            int(rng.integers(1, family.widest + 1)),
        )
        for _ in range(int(rng.integers(1, 4)))
    ]
    return FamilyInstance.of([kinds[int(rng.integers(len(kinds)))] for _ in range(family.jobs)])


def _neighbours(
    case: FamilyInstance, family: InstanceFamily, rng: np.random.Generator
) -> Iterator[FamilyInstance]:
    """Cases in which one number of one job is another, in random order."""
    changes = [
        (k, name, value)
        for k, job in enumerate(case.jobs)
        for name, least, most in (
            ("arrival", 0, family.max_arrival),
            ("work", 1, family.max_work),
            ("gpus", 1, family.widest),
        )
        for value in {least, most, getattr(job, name) - 1, getattr(job, name) + 1}
        if least <= value <= most and value != getattr(job, name)
    ]
    for at in rng.permutation(len(changes)).tolist():
        k, name, value = changes[at]
        jobs = list(case.jobs)
        jobs[k] = replace(jobs[k], **{name: value})
        yield FamilyInstance.of(jobs)


FAMILY = InstanceFamily(jobs=6, gpus=4, max_arrival=6, max_work=6)


def find(kind: str, evaluations: int) -> Found:
    """The loosest instance of a kind of bound."""
    found = loosest(kind, FAMILY, evaluations=evaluations)
    says = f"{float(found.ratio):.4f} (optimum {found.optimum_s:g} s)"
    return Found(f"{kind}.json", found.to_json(), says)


if __name__ == "__main__":
    search_each(__doc__, EVALUATIONS, 150, find)
