"""Ideal execution of an allocation policy: every job gets exactly its fractions, without rounds.

Between two arrivals or completions job m makes throughput(m, X) steps per second: Gavel's ideal
mode (OSDI'20, sec. 7.5), which its rounds are compared with. No schedule of whole gangs does this;
what can be checked is checked: that every allocation is one, and that every job does its work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.instance import Instance, pool_throughput
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation as find_allocation

FloatArray = NDArray[np.float64]
Rows = NDArray[np.int64]

_DONE = 1e-9
"""Share of a job's work below which it is complete."""


@dataclass(frozen=True, eq=False)
class Period:
    """A time between two events.

    Parameters
    ----------
    start_s, end_s : float
    jobs : ndarray of int, shape (jobs,)
        Rows of the jobs that are there.
    throughput : ndarray, shape (jobs,)
        Steps per second each makes.
    """

    start_s: float
    end_s: float
    jobs: Rows
    throughput: FloatArray


@dataclass(frozen=True, eq=False)
class FluidRun:
    """An ideal execution.

    Parameters
    ----------
    instance : Instance
    policy : str
    end_s : ndarray, shape (jobs,)
        Completion times [s].
    periods : tuple of Period
        All of them, in order.
    """

    instance: Instance
    policy: str
    end_s: FloatArray
    periods: tuple[Period, ...]

    @property
    def jct_s(self) -> FloatArray:
        """Completion minus arrival [s], shape (jobs,)."""
        return np.asarray(self.end_s - self.instance.workload.arrival_s)


def run_fluid(instance: Instance, policy: str | AllocationPolicy) -> FluidRun:
    """Execute an allocation policy ideally; it is asked again at every arrival and completion.

    Raises
    ------
    PolicyError
        If jobs are left that never make progress.
    VerificationError
        If the policy returns something that is no allocation.
    """
    chosen = find_allocation(policy) if isinstance(policy, str) else policy
    return _Fluid(instance, chosen).run()


class _Fluid:
    """State of one execution."""

    def __init__(self, instance: Instance, policy: AllocationPolicy) -> None:
        workload = instance.workload
        self.instance, self.policy = instance, policy
        self.workspace = Workspace()
        self.pools = instance.pools
        mixed = workload.throughput is not None
        self.work = workload.work if mixed else instance.shortest_s
        self.rates = pool_throughput(instance, np.arange(len(workload)))
        self.left = self.work.astype(np.float64).copy()
        self.isolated_s = np.zeros(len(workload))
        self.now_s = 0.0

    def run(self) -> FluidRun:
        """From event to event."""
        arrival_s = self.instance.workload.arrival_s
        end_s = np.full(len(arrival_s), np.inf)
        live: Rows = np.zeros(0, dtype=np.int64)
        admitted, periods = 0, []
        while admitted < len(arrival_s) or len(live):
            if not len(live):
                self.now_s = float(arrival_s[admitted])
            upto = int(np.searchsorted(arrival_s, self.now_s, side="right"))
            live = np.concatenate((live, np.arange(admitted, upto)))
            admitted = upto
            next_s = float(arrival_s[admitted]) if admitted < len(arrival_s) else np.inf
            period = self._period(live, next_s)
            periods.append(period)
            done = self.left[live] <= _DONE * self.work[live]
            end_s[live[done]] = self.now_s
            live = live[~done]
        return FluidRun(self.instance, self.policy.name, end_s, tuple(periods))

    def _period(self, live: Rows, next_s: float) -> Period:
        """Allocate, and go on until the next job comes or goes."""
        problem = self._problem(live)
        found = self.policy.allocate(problem, self.workspace)
        found.verify()
        rate = found.effective_throughput
        with np.errstate(divide="ignore"):
            ends_s = self.now_s + self.left[live] / rate
        end_s = min(float(ends_s.min()), next_s)
        if not np.isfinite(end_s):
            name = self.instance.workload.id[live[0]]
            raise PolicyError(
                f"{self.policy.name}: leaves {len(live)} jobs without progress for ever at "
                f"{self.now_s} s, the first is {name!r}"
            )
        period = Period(self.now_s, end_s, live, rate)
        elapsed_s = end_s - self.now_s
        alone = (problem.throughput * isolated_shares(problem)).sum(axis=1)
        self.isolated_s[live] += rate * elapsed_s / alone
        self.left[live] = np.where(ends_s <= end_s, 0.0, self.left[live] - rate * elapsed_s)
        self.now_s = end_s
        return period

    def _problem(self, live: Rows) -> AllocationProblem:
        workload = self.instance.workload
        return AllocationProblem.from_columns(
            gpu_types=self.pools.names,
            capacity=self.pools.gpus,
            price=self.pools.price_per_gpu_h,
            throughput=self.rates[live],
            gpus=workload.gpus[live],
            weight=np.maximum(workload.weight[live], 1e-9),
            steps=self.left[live],
            elapsed_s=self.now_s - workload.arrival_s[live],
            isolated_s=self.isolated_s[live],
            slo_s=np.maximum(workload.deadline_s[live] - self.now_s, 0.0),
            id=workload.id[live],
            entity=workload.tenant[live],
            pairs=self.instance.shared_runs.pairs(live, len(self.instance.pools.names))
            if self.policy.packed
            else None,
            source=workload.source,
        )
