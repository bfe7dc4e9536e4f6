"""Prices of GPUs by round that bound the total utility of any schedule: HADAR-any, for every class.

Of gangs whose speed depends on the GPU type alone prices are by type, as in
:mod:`shadowprice.proofs.hadar.any_schedule`. Of all others there is one machine: a job does at most a tick of service
in a tick, ``shortest`` complete it, each takes ``area / shortest`` of the GPUs, and no schedule of the class gives
more than all of them (``analysis/certificates/checked_class.py``). That is what HADAR-any asks for, with one type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.job_utilities import JobUtilities, rounded_sum
from shadowprice.analysis.certificates.speeds import types_alone
from shadowprice.analysis.certificates.whole_rounds import proposing, whole_round_jobs
from shadowprice.analysis.utility.bound import improve
from shadowprice.instances.instance import Instance
from shadowprice.proofs import run_speed
from shadowprice.proofs.hadar import any_schedule
from shadowprice.proofs.hadar.any_schedule import BoundedJob, least_costs
from shadowprice.proofs.hadar.run_certificate import SCALES

Prices = NDArray[np.float64]

TYPED = "typed-round-prices"
WHOLE_ROUNDS = "whole-round-prices"
_MOST_CELLS = 5_000_000
"""Jobs times rounds up to which prices are searched for."""


@dataclass(frozen=True, eq=False)
class RoundMarket:
    """Jobs and GPUs as bounds of the total utility have them.

    Parameters
    ----------
    kind : str
        Name of the bound in a certificate.
    utilities : JobUtilities
    jobs : list of BoundedJob
        Without their utilities.
    relaxed : list of tuple of BoundedJob
        Of each job those whose least costs hold for it.
    capacity : ndarray of int, shape (types,)
        GPUs of each type, in parts of a GPU.
    parts : int
        Parts of a GPU.
    rent : tuple of Fraction
        GPUs of each type in the certificate, of which there are no more than ``capacity`` says.
    """

    kind: str
    utilities: JobUtilities
    jobs: list[BoundedJob]
    relaxed: list[tuple[BoundedJob, ...]]
    capacity: NDArray[np.int64]
    parts: int
    rent: tuple[Fraction, ...]

    @classmethod
    def of(
        cls, instance: Instance, schedules: CheckedClass, utilities: JobUtilities
    ) -> RoundMarket:
        """Types where nothing but these matters, else one machine; of the jobs that count."""
        work = schedules.work
        if work.gangs and types_alone(instance):
            types, of_node = run_speed.gpu_types(instance.cluster)
            sizes = [node.gpus for node in instance.cluster.nodes]
            capacity = np.bincount(of_node, weights=sizes, minlength=len(types)).astype(np.int64)
            rows = zip(
                work.gang,
                work.arrival,
                run_speed.alone_ticks(instance).tolist(),
                strict=True,
            )
            jobs = [BoundedJob(g, r, tuple(row), Fraction(1), ()) for g, r, row in rows]
            rent = tuple(map(Fraction, capacity.tolist()))
            alone: list[tuple[BoundedJob, ...]] = [(job,) for job in jobs]
            return cls(TYPED, utilities, jobs, alone, capacity, 1, rent)
        relaxed, parts = schedules.searched()
        most = ceil(relaxed.total_gpus * relaxed.speedup)
        columns = zip(relaxed.gpus, relaxed.release, relaxed.work, strict=True)
        jobs = [BoundedJob(min(g, most), r, (p,), Fraction(1), ()) for g, r, p in columns]
        rent = (Fraction(work.capacity, work.scale),)
        alone = [(job,) for job in jobs]
        return cls("round-prices", utilities, jobs, alone, np.array([most]), parts, rent)

    def in_whole_rounds(self) -> RoundMarket:
        """The same of schedules in whole rounds alone; of prices by type."""
        length = self.utilities.length
        return replace(
            self,
            kind=WHOLE_ROUNDS,
            jobs=[proposing(job, length) for job in self.jobs],
            relaxed=[whole_round_jobs(job, length) for job in self.jobs],
        )

    def valued(self, rounds: int) -> list[BoundedJob]:
        """Jobs with their utilities in doubles."""
        table = self.utilities.table(rounds).tolist()
        rows = zip(self.jobs, table, strict=True)
        return [BoundedJob(j.gpus, j.arrival, j.ticks, j.share, values) for j, values in rows]

    def bound(self, unit: Fraction, prices: NDArray[np.int64]) -> Fraction:
        """D of prices, shape (rounds, types), in a unit; exactly, or rounded up by 2**-1200 a job."""
        columns = zip(self.rent, prices.sum(axis=0, dtype=object).tolist(), strict=True)
        paid = sum((gpus * price for gpus, price in columns), Fraction(0)) * unit * self.parts
        return paid - rounded_sum(
            -self._payoff(number, unit, prices) for number in range(len(self.jobs))
        )

    def _payoff(self, number: int, unit: Fraction, prices: NDArray[np.int64]) -> Fraction:
        """mu_j."""
        relaxed, length = self.relaxed[number], self.utilities.length
        first = relaxed[0].arrival // length
        best = self.utilities.of_round(number, max(first, len(prices)))
        every = (least_costs(job, self.capacity, prices, length) for job in relaxed)
        for at, costs in enumerate(zip(*every, strict=True), first):
            worth = self.utilities.of_round(number, at)
            if worth <= best:
                break
            known = [cost for cost in costs if cost is not None]
            if len(known) == len(costs):
                best = max(best, worth - max(known) * unit)
        return best

    def record(self, unit: Fraction, prices: NDArray[np.int64]) -> dict[str, Any]:
        """The bound's record."""
        exact = unit * self.parts
        return {
            "kind": "bound",
            "bound": self.kind,
            "grid": [],
            "prices": prices.T.tolist(),
            "unit": exact.numerator if exact.denominator == 1 else str(exact),
        }


@dataclass(frozen=True, eq=False)
class UtilityPrices:
    """Prices by round and type, and the bound that they give.

    Parameters
    ----------
    origin : str
        Whose they are.
    unit : Fraction
        Utility of a price of 1.
    prices : ndarray of int, shape (rounds, types)
    value : Fraction
        No schedule of the class has a larger total utility.
    """

    origin: str
    unit: Fraction
    prices: NDArray[np.int64]
    value: Fraction


def search(
    market: RoundMarket, rounds: int, earned: Fraction, budget_s: float, left: Prices | None
) -> Iterator[UtilityPrices]:
    """Prices of 0, those that a run left, and better ones; in order.

    Parameters
    ----------
    rounds : int
        T, by which all jobs of the run are complete.
    earned : Fraction
        Utility of the run.
    budget_s : float
        CPU time for better prices [s], none for 0.
    left : ndarray, shape (rounds, types), optional
        Prices that the run left.
    """
    none = np.zeros((rounds, len(market.capacity)), dtype=np.int64)
    yield UtilityPrices("each job alone", Fraction(1), none, market.bound(Fraction(1), none))
    if budget_s <= 0 or len(market.jobs) * rounds > _MOST_CELLS:
        return
    jobs, length, capacity = market.valued(rounds), market.utilities.length, market.capacity
    start: Prices = none.astype(np.float64)
    if left is not None:
        bound = any_schedule.bound(jobs, capacity, left, length, SCALES)
        start = bound.prices.astype(np.float64) * float(bound.unit)
        value = market.bound(bound.unit, bound.prices)
        yield UtilityPrices("prices of the run", bound.unit, bound.prices, value)
    better = improve(jobs, capacity, start, length, float(earned), budget_s)
    bound = any_schedule.bound(jobs, capacity, better, length, [Fraction(1)])
    value = market.bound(bound.unit, bound.prices)
    yield UtilityPrices("improved prices", bound.unit, bound.prices, value)
