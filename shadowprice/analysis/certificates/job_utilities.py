"""Utilities of jobs by the round in which they complete, exactly, as certificates have them.

They are those of :mod:`shadowprice.instances.utility`, computed there in doubles: a worth over the seconds from the
arrival to the end of the round, a round at least; or a worth for completion in a round that ends by the deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S, check_seconds, to_ticks
from shadowprice.instances.instance import Instance

DEADLINE = "deadline"
NO_DEADLINE = 2**60
"""Tick after every completion."""
ROUND_S = 360.0
"""Round of utilities [s] where none is given, that of Hadar's policies."""


def _isolated(instance: Instance) -> NDArray[np.float64]:
    return len(instance.workload) * instance.shortest_s


WORTHS: dict[str, Callable[[Instance], NDArray[np.float64]]] = {
    "effective_throughput": lambda instance: instance.workload.work,
    "completion_time": lambda instance: instance.workload.weight,
    "fairness": _isolated,
    DEADLINE: lambda instance: instance.workload.weight,
}
"""Numerators of utilities by name: iterations, weights, n times the time alone; weights of jobs in time."""


@dataclass(frozen=True, eq=False)
class JobUtilities:
    """Utilities by round of completion; round k ends with tick (k + 1) ``length``.

    Parameters
    ----------
    name : str
        One of ``WORTHS``.
    length : int
        Length of a round [ticks].
    arrival : list of int
        r_j [ticks].
    worth : list of Fraction
    deadline : list of int or None
        Of ``deadline`` alone [ticks].
    until : int or None
        When the run was stopped [ticks]; rounds that begin then or later are worth nothing.
    """

    name: str
    length: int
    arrival: list[int]
    worth: list[Fraction]
    deadline: list[int] | None
    until: int | None

    @classmethod
    def of(cls, instance: Instance, name: str, round_s: float) -> JobUtilities:
        """Those of all jobs of an instance.

        Raises
        ------
        InputError
            If the name is unknown, the round is not on the grid, or a job has no such worth.
        """
        if name not in WORTHS:
            raise InputError(f"utility {name!r}: expected one of {', '.join(WORTHS)}")
        check_seconds("round of utilities", round_s)
        jobs = instance.workload
        worth = np.asarray(WORTHS[name](instance), dtype=np.float64)
        bad = ~(np.isfinite(worth) & (worth >= 0))
        if bad.any():
            k = int(bad.argmax())
            raise InputError(
                f"{jobs.source}: job {jobs.id[k]!r}: has {float(worth[k])!r} as the worth of {name}, expected a "
                "number >= 0"
            )
        deadline = None
        if name == DEADLINE:
            # Rounds end with ticks: a deadline between two is that of the first.
            ticks = np.floor(np.minimum(jobs.deadline_s * TICKS_PER_S, float(NO_DEADLINE)))
            deadline = [int(tick) for tick in ticks.tolist()]
        known: dict[float, Fraction] = {}
        return cls(
            name,
            int(round_s * TICKS_PER_S),
            to_ticks(jobs.arrival_s).tolist(),
            [known.setdefault(each, Fraction(each)) for each in worth.tolist()],
            deadline,
            None
            if instance.stopped_s is None
            else int(to_ticks(np.array([instance.stopped_s]))[0]),
        )

    def select(self, rows: Sequence[int]) -> JobUtilities:
        """Those of some jobs."""
        return replace(
            self,
            arrival=[self.arrival[j] for j in rows],
            worth=[self.worth[j] for j in rows],
            deadline=None if self.deadline is None else [self.deadline[j] for j in rows],
        )

    def fields(self, job: int) -> dict[str, Any]:
        """Fields of a job's record."""
        worth = self.worth[job]
        columns: dict[str, Any] = {
            "worth": worth.numerator if worth.denominator == 1 else str(worth)
        }
        if self.deadline is not None:
            columns["deadline"] = self.deadline[job]
        return columns

    def table(self, rounds: int) -> NDArray[np.float64]:
        """Utilities in doubles, shape (jobs, rounds + 1)."""
        ends = (np.arange(rounds + 1) + 1) * self.length
        worth = np.array([float(each) for each in self.worth])[:, None]
        if self.deadline is not None:
            values = np.where(ends[None, :] <= np.array(self.deadline)[:, None], worth, 0.0)
        else:
            since = np.maximum(ends[None, :] - np.array(self.arrival)[:, None], self.length)
            values = worth * (TICKS_PER_S / since)
        if self.until is not None:
            values = np.where(ends[None, :] - self.length < self.until, values, 0.0)
        return values
