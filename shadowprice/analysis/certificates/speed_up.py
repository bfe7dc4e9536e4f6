"""Powers of widths as a multiplier of a certificate: HESRPT (d), of gangs that may grow.

Any exponent p bounds the optimum, as any prices do, and so do any moments that divide jobs by their arrivals. Both are
searched in doubles; the bound of the best is computed in decimals, and lowered by what whole numbers of the
program that checks it may round off: a part of 2^-33 of each coefficient, of which it takes three factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.records import Record
from shadowprice.analysis.certificates.speeds import may_grow
from shadowprice.instances.features import Feature, missing
from shadowprice.proofs.classic.hesrpt import GrowingJob, least_weighted_total

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.checked_class import CheckedClass
    from shadowprice.instances.instance import Instance

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # of a job the fastest counts
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # where nobody does
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,
        Feature.FAILURES,  # what is lost is done again
        Feature.RESTART,  # only restricts
    }
)

Numbers = NDArray[np.float64]

UNIT = 2**20
"""Exponents are whole numbers of one over it."""
_LESS = 1 - Fraction(1, 2**30)
_MOST_JOBS = 20_000
_MOST_SUMS = 2_000_000
"""Jobs times different weights up to which the bound is computed."""
_MOST_CUTS = 24
"""Moments at which jobs may be divided, at most."""
_EXPONENTS = np.linspace(0.0, 0.98, 50)
_FINER = 8


def speed_up_bounds(instance: Instance, schedules: CheckedClass) -> Iterator[BoundCandidate]:
    """The bound at the best exponent that is found, with all jobs together and with the best cuts of their arrivals.

    Parameters
    ----------
    instance : Instance
        Jobs that count; none is bounded unless some of them may grow.
    """
    work = schedules.work
    n, weights = len(work.arrival), len(set(work.weight))
    if not work.gangs or n > _MOST_JOBS or n * weights > _MOST_SUMS:
        return
    if missing(instance, KNOWS) or not may_grow(instance).any():
        return
    times = schedules.times_by_width()
    search = _Search.of(schedules, times)
    columns = zip(work.arrival, work.weight, times, strict=True)
    jobs = [GrowingJob(*each) for each in columns]
    together, value = search.best_exponent(())
    yield _candidate(jobs, work.gpus, together, ())
    cuts = search.best_cuts(together)
    if cuts:
        apart, more = search.best_exponent(cuts)
        if more > value:
            yield _candidate(jobs, work.gpus, apart, cuts)


def _candidate(
    jobs: Sequence[GrowingJob], gpus: int, p: float, cuts: Sequence[int]
) -> BoundCandidate:
    exponent = round(p * UNIT)
    value = least_weighted_total(jobs, gpus, Decimal(exponent) / UNIT, cuts) * _LESS
    record: Record = {"kind": "bound", "bound": "speed-up-power", "grid": list(cuts), "prices": []}
    return BoundCandidate({**record, "exponent": exponent}, value)


@dataclass(frozen=True, eq=False)
class _Search:
    """Jobs in doubles, in order of their release dates; times are of each width, infinite where there is none."""

    release: Numbers
    weight: Numbers
    width: Numbers
    ticks: Numbers
    ticks_of_release: list[int]

    @classmethod
    def of(cls, schedules: CheckedClass, times: Sequence[Sequence[tuple[int, int]]]) -> _Search:
        """Those of a certificate."""
        work = schedules.work
        order = np.argsort(work.arrival, kind="stable")
        width = np.ones((len(times), max(map(len, times))))
        ticks = np.full(width.shape, np.inf)
        for row, j in enumerate(order.tolist()):
            width[row, : len(times[j])], ticks[row, : len(times[j])] = zip(*times[j], strict=True)
        release = [work.arrival[j] for j in order.tolist()]
        weight = np.array([float(work.weight[j]) for j in order.tolist()])
        part = width / work.gpus
        return cls(np.array(release, dtype=np.float64), weight, part, ticks, release)

    def best_exponent(self, cuts: Sequence[int]) -> tuple[float, float]:
        """Exponent of the largest bound that is found, and the bound."""
        starts = [0, *np.searchsorted(self.release, np.array(cuts, dtype=np.float64)).tolist()]
        slices = [*zip(starts, [*starts[1:], len(self.release)], strict=True)]

        def total(p: float) -> float:
            sizes, factors = self._sizes(p), _factors(len(self.release), p)
            return sum(self._of_batch(sizes, factors, a, b) for a, b in slices if b > a)

        tried = _EXPONENTS
        best, value = 0.0, -1.0
        for _ in range(_FINER):
            totals = [total(float(p)) for p in tried]
            k = int(np.argmax(totals))
            if totals[k] > value:
                best, value = float(tried[k]), totals[k]
            step = float(tried[1] - tried[0])
            tried = np.clip(np.linspace(best - step, best + step, 9), 0.0, 0.999)
        return best, value

    def best_cuts(self, p: float) -> tuple[int, ...]:
        """Release dates at which batches begin, the first aside, that have the largest bound together."""
        places = np.unique(self.release, return_index=True)[1]
        if len(places) > _MOST_CUTS:
            places = places[np.linspace(0, len(places) - 1, _MOST_CUTS).astype(np.int64)]
        ends = [*places.tolist(), len(self.release)]
        sizes, factors = self._sizes(p), _factors(len(self.release), p)
        best: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
        for b in range(1, len(ends)):
            best.append(
                max(
                    (
                        best[a][0] + self._of_batch(sizes, factors, ends[a], ends[b]),
                        (*best[a][1], ends[a]),
                    )
                    for a in range(b)
                )
            )
        return tuple(self.ticks_of_release[row] for row in best[-1][1][1:])

    def _sizes(self, p: float) -> Numbers:
        return np.asarray((self.ticks * self.width**p).min(axis=1))

    def _of_batch(self, sizes: Numbers, factors: Numbers, first: int, last: int) -> float:
        """Bound of jobs that are released one after the other."""
        order = first + np.argsort(-sizes[first:last], kind="stable")
        weight, size, release = self.weight[order], sizes[order], self.release[order]
        least = before = 0.0
        for level in np.unique(weight).tolist():
            some = weight >= level
            count = int(some.sum())
            work = float(factors[:count] @ size[some])
            least += (level - before) * (count * float(release[some].min()) + work)
            before = level
        return max(least, float(weight @ (release + self.ticks[order].min(axis=1))))


def _factors(count: int, p: float) -> Numbers:
    """c_1, ..., c_n in doubles."""
    k = np.arange(1, count + 1, dtype=np.float64)
    return np.asarray(k * (1 - ((k - 1) / k) ** (1 / (1 - p))) ** (1 - p))
