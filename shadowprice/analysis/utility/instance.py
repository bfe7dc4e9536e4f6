"""Utility instances of runs: jobs as the bounds take them, rounds, prices and what was earned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S, check_seconds
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import first_of_each
from shadowprice.instances.utility import (
    UtilityTable,
    deadline,
    effective_throughput,
    finish_time_fairness,
    over_duration,
)
from shadowprice.models.round_jobs import gang_seconds
from shadowprice.proofs.hadar.any_schedule import BoundedJob
from shadowprice.solvers.hadar.commit_schedule import CommittableJob

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # who pays them has less time
        Feature.SHARING,  # of schedules in which nobody does
        Feature.CORES,  # are GPUs of a type
        Feature.AMOUNTS,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

ROUND_S = 360.0
"""Round of utilities [s] where none is given, that of Hadar's policies."""
UTILITIES: Mapping[str, Callable[[Instance, float, int], UtilityTable]] = {
    "effective_throughput": effective_throughput,
    "completion_time": over_duration,
    "fairness": finish_time_fairness,
    "deadline": deadline,
}
"""Utilities of completion by the end of a round: iterations, weight, or isolated time over the time in
the system, and the weight of jobs that meet their deadline."""


@dataclass(frozen=True, eq=False)
class UtilityInstance:
    """Jobs, rounds and utilities that several runs over one workload have in common.

    Parameters
    ----------
    instance : Instance
        Overheads do not matter.
    round_s : float
        Length of a round [s].
    values : ndarray, shape (jobs, rounds + 1)
        Utility of completion in each round up to the last in which a job of a run completes; the last
        column is that of the round after, which bounds all later ones.
    done : tuple of Fraction
        The least share, at most 1, that a run did of each job: the engine rounds the progress of
        jobs that change speeds to ticks.
    """

    instance: Instance
    round_s: float
    values: NDArray[np.float64]
    done: tuple[Fraction, ...]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], utility: str, round_s: float) -> UtilityInstance:
        """Common utility instance of runs over the same workload and cluster.

        Raises
        ------
        InputError
            If the utility is unknown, the rounds are not on the grid, or a run is outside of what the
            bounds are about: another workload, features that are not in ``KNOWS``, shared GPUs.
        """
        for outcome in outcomes:
            _refuse(outcome, outcomes[0].instance)
        if utility not in UTILITIES:
            raise InputError(f"utility {utility!r}: expected one of {', '.join(UTILITIES)}")
        check_seconds("round of utilities", round_s)
        instance = outcomes[0].instance
        last = max((float(o.end_s.max(initial=0.0)) for o in outcomes), default=0.0)
        rounds = max(math.ceil(last / round_s), 1)
        values = UTILITIES[utility](instance, round_s, rounds + 1).values[:, : rounds + 1]
        shares = [shares_done(outcome) for outcome in outcomes]
        done = tuple(min(Fraction(1), *each) for each in zip(*shares, strict=True))
        return cls(instance, round_s, values, done)

    @property
    def rounds(self) -> int:
        """T: all jobs of all runs complete in rounds before it."""
        return int(self.values.shape[1]) - 1

    @property
    def round_ticks(self) -> int:
        """Length of a round [ticks]."""
        return int(self.round_s * TICKS_PER_S)

    def earned(self, outcome: Outcome) -> Fraction:
        """Total utility of a run, exactly: of each job at the end of the round of its completion."""
        numbers = np.maximum(np.ceil(outcome.end_s / self.round_s).astype(np.int64) - 1, 0)
        values = self.values[np.arange(len(numbers)), numbers]
        return sum(map(Fraction, values.tolist()), Fraction(0))

    def demands(self) -> list[BoundedJob]:
        """Jobs for the bound of any schedule."""
        jobs = self.instance.workload
        arrival = (jobs.arrival_s * TICKS_PER_S).astype(np.int64).tolist()
        return [
            BoundedJob(gang, arrived, ticks, share, values)
            for gang, arrived, ticks, share, values in zip(
                jobs.gpus.tolist(),
                arrival,
                self._ticks(),
                self.done,
                self.values.tolist(),
                strict=True,
            )
        ]

    def committable_jobs(self) -> list[CommittableJob]:
        """Jobs for the bound of schedules of whole rounds."""
        first = np.ceil(self.instance.workload.arrival_s / self.round_s).astype(np.int64).tolist()
        committable = []
        for job, ticks in enumerate(self._ticks()):
            work = math.lcm(*(time for time in ticks if time))
            units = tuple(self.round_ticks * work // time if time else 0 for time in ticks)
            values = self.values[job].tolist()
            committable.append(
                CommittableJob(
                    int(self.instance.workload.gpus[job]),
                    first[job],
                    units,
                    math.floor(self.done[job] * work),
                    values.__getitem__,
                    self.rounds - 1,
                )
            )
        return committable

    def beyond(self) -> list[Fraction]:
        """Utility of each job of completion in the first round after all runs are over."""
        return [Fraction(value) for value in self.values[:, -1].tolist()]

    def table(self) -> UtilityTable:
        """Utilities within the rounds, 0 beyond, as the offline programme has them."""
        values = self.values.copy()
        values[:, -1] = 0.0
        return UtilityTable(values, self.round_s)

    def prices(self, outcome: Outcome) -> NDArray[np.float64] | None:
        """Prices that a run has left, shape (rounds, nodes); None if it left none."""
        if outcome.prices is None or not outcome.prices.time_s:
            return None
        nodes = len(self.instance.cluster.nodes)
        return outcome.prices.by_round(self.round_s, self.rounds, nodes)

    def by_type(self, prices: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean price over the GPUs of each type, shape (rounds, types), of prices by node."""
        cluster = self.instance.cluster
        share = np.zeros((len(cluster.nodes), len(cluster.gpu_types)))
        nodes = np.arange(len(cluster.nodes))
        share[nodes, cluster.type_of_node] = cluster.gpus_per_node
        share /= share.sum(axis=0)
        mean: NDArray[np.float64] = prices @ share
        return mean

    def _ticks(self) -> list[tuple[int, ...]]:
        """Run time of every job at the speed of each type [ticks], 0 where it cannot run."""
        seconds = gang_seconds(self.instance)
        whole = np.where(np.isfinite(seconds), seconds, 0.0) * TICKS_PER_S
        return [tuple(row) for row in whole.astype(np.int64).tolist()]


def _refuse(outcome: Outcome, first: Instance) -> None:
    """Raise InputError for a run that may do more than the statements of the bounds allow."""
    instance = outcome.instance
    require(instance, KNOWS, f"bounds of utilities, for policy {outcome.policy!r}")
    for wrong, say in [
        (instance.workload != first.workload, "changes the workload, expected the same for all"),
        (instance.cluster != first.cluster, "has another cluster, expected the same for all"),
        (bool((outcome.schedule.partner >= 0).any()), "lets jobs share GPUs, expected none"),
    ]:
        if wrong:
            raise InputError(f"policy {outcome.policy!r}: no bound of utilities: it {say}")


def shares_done(outcome: Outcome) -> list[Fraction]:
    """Share of every job that a run did, exactly: time with progress over run time at its speed."""
    instance, schedule = outcome.instance, outcome.schedule
    order = np.lexsort((schedule.start_s, schedule.job))
    job = schedule.job[order]
    begin = first_of_each(job, schedule.start_s[order])
    kind = instance.cluster.type_of_node[schedule.node[order]]
    times = instance.processing_s[job, kind]
    slowest = np.maximum.reduceat(times, begin) if len(begin) else np.zeros(0)
    first = order[begin]
    ran = schedule.end_s[first] - schedule.start_s[first] - schedule.overhead_s[first]
    shares = [Fraction(0)] * len(instance.workload)
    for row, ticks, whole in zip(
        schedule.job[first].tolist(),
        (ran * TICKS_PER_S).tolist(),
        (slowest * TICKS_PER_S).tolist(),
        strict=True,
    ):
        shares[row] += Fraction(int(ticks), int(whole))
    return shares
