"""Prices of GPUs by round that bound the total utility of any schedule: HADAR-any, for every class.

Of gangs whose speed depends on the GPU type alone prices are by type, as in
:mod:`shadowprice.proofs.hadar.any_schedule`. Of all others there is one machine: a job does at most a tick of service
in a tick, ``shortest`` complete it, each takes ``area / shortest`` of the GPUs, and no schedule of the class gives
more than all of them (``analysis/certificates/checked_class.py``). That is what HADAR-any asks for, with one type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.job_utilities import JobUtilities
from shadowprice.analysis.certificates.price_steps import Prices, improve
from shadowprice.analysis.certificates.speeds import types_alone
from shadowprice.analysis.certificates.whole_rounds import proposing
from shadowprice.instances.instance import Instance
from shadowprice.proofs import run_speed
from shadowprice.proofs.hadar import any_schedule
from shadowprice.proofs.hadar.any_schedule import BoundedJob
from shadowprice.proofs.hadar.run_certificate import SCALES

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
    schedules : CheckedClass
    utilities : JobUtilities
    jobs : list of BoundedJob
        Without their utilities; with them prices are searched for.
    capacity : ndarray of int, shape (types,)
        GPUs of each type, in parts of a GPU.
    parts : int
        Parts of a GPU.
    """

    kind: str
    schedules: CheckedClass
    utilities: JobUtilities
    jobs: list[BoundedJob]
    capacity: NDArray[np.int64]
    parts: int

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
            return cls(TYPED, schedules, utilities, jobs, capacity, 1)
        relaxed, parts = schedules.searched()
        most = ceil(relaxed.total_gpus * relaxed.speedup)
        columns = zip(relaxed.gpus, relaxed.release, relaxed.work, strict=True)
        jobs = [BoundedJob(min(g, most), r, (p,), Fraction(1), ()) for g, r, p in columns]
        return cls("round-prices", schedules, utilities, jobs, np.array([most]), parts)

    def in_whole_rounds(self) -> RoundMarket:
        """The same of schedules in whole rounds alone; of prices by type."""
        length = self.utilities.length
        jobs = [proposing(job, length) for job in self.jobs]
        return replace(self, kind=WHOLE_ROUNDS, jobs=jobs)

    def valued(self, rounds: int) -> list[BoundedJob]:
        """Jobs with their utilities in doubles."""
        table = self.utilities.table(rounds).tolist()
        rows = zip(self.jobs, table, strict=True)
        return [BoundedJob(j.gpus, j.arrival, j.ticks, j.share, values) for j, values in rows]

    def bound(self, unit: Fraction, prices: NDArray[np.int64]) -> Fraction:
        """Upper bound of the total utility from prices, shape (rounds, types), in a unit; as the checker has it."""
        whole_rounds = self.kind == WHOLE_ROUNDS
        record = self.record(unit, prices)
        return self.schedules.most_earned(self.utilities, record, whole_rounds=whole_rounds)

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
    market: RoundMarket,
    rounds: int,
    earned: Fraction,
    budget_s: float,
    offered: Mapping[str, Prices],
) -> Iterator[UtilityPrices]:
    """Prices of 0, those that are offered, and better ones; in order.

    Parameters
    ----------
    rounds : int
        T, by which all jobs that runs complete are complete.
    earned : Fraction
        The largest utility of a run.
    budget_s : float
        CPU time for better prices [s], none for 0.
    offered : mapping of str to ndarray, shape (rounds, types)
        Prices by origin, such as those that runs left.
    """
    none = np.zeros((rounds, len(market.capacity)), dtype=np.int64)
    lowest = market.bound(Fraction(1), none)
    yield UtilityPrices("each job alone", Fraction(1), none, lowest)
    if budget_s <= 0 or not 0 < len(market.jobs) * rounds <= _MOST_CELLS:
        return
    jobs, length, capacity = market.valued(rounds), market.utilities.length, market.capacity
    start: Prices = none.astype(np.float64)
    for origin, prices in offered.items():
        best = any_schedule.bound(jobs, capacity, prices, length, SCALES)
        value = market.bound(best.unit, best.prices)
        yield UtilityPrices(origin, best.unit, best.prices, value)
        if value < lowest:
            lowest, start = value, best.prices.astype(np.float64) * float(best.unit)
    better = improve(jobs, capacity, start, length, float(earned), budget_s)
    bound = any_schedule.bound(jobs, capacity, better, length, [Fraction(1)])
    value = market.bound(bound.unit, bound.prices)
    yield UtilityPrices("improved prices", bound.unit, bound.prices, value)
