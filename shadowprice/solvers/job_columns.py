"""Columns of jobs that have arrived, as a policy reads them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.grid import TICK_S
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.knowledge import Knowledge


class Moment(Protocol):
    """Part of a state that columns are read by: the time, what is known at the start, what a policy may read."""

    @property
    def now_s(self) -> float:
        """Current time [s]."""

    @property
    def environment(self) -> Environment:
        """Knowledge before any job arrives."""

    def require(self, knowledge: Knowledge) -> None:
        """Raise ``PolicyError`` unless the policy has declared this knowledge."""


class JobColumns:
    """Columns over some jobs that have arrived, all of shape (jobs,) and in the order of :attr:`jobs`.

    Attributes
    ----------
    jobs : ndarray of int
        Numbers of the jobs, in order of arrival from 0.
    """

    __slots__ = ("_state", "_table", "jobs")

    def __init__(self, state: Moment, table: JobTable, jobs: NDArray[np.int64]) -> None:
        self._state = state
        self._table = table
        self.jobs = jobs

    @property
    def gpus(self) -> NDArray[np.int64]:
        """Gang sizes [GPUs]."""
        return self._table.counts("gpus")[self.jobs]

    @property
    def arrival_s(self) -> NDArray[np.float64]:
        """Arrival times [s]."""
        return self._table.column("arrival_s")[self.jobs]

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weights."""
        return self._table.column("weight")[self.jobs]

    @property
    def deadline_s(self) -> NDArray[np.float64]:
        """Deadlines [s], infinity for none."""
        return self._table.column("deadline_s")[self.jobs]

    @property
    def id(self) -> NDArray[np.object_]:
        """Names, unique."""
        return self._table.text("id", self.jobs)

    @property
    def tenant(self) -> NDArray[np.object_]:
        """Owners, empty where unknown."""
        return self._table.text("tenant", self.jobs)

    @property
    def model(self) -> NDArray[np.object_]:
        """Kinds of model, empty where unknown."""
        return self._table.text("model", self.jobs)

    @property
    def group(self) -> NDArray[np.object_]:
        """Groups of jobs that run the same program on the same inputs, empty where unknown."""
        return self._table.text("group", self.jobs)

    @property
    def name(self) -> NDArray[np.object_]:
        """Names under which jobs were submitted, which may recur; empty where unknown."""
        return self._table.text("name", self.jobs)

    @property
    def job_class(self) -> NDArray[np.object_]:
        """Classes of the jobs at their submission, as a log calls them; empty where unknown."""
        return self._table.text("job_class", self.jobs)

    @property
    def limit_s(self) -> NDArray[np.float64]:
        """Limits of run time that were submitted with the jobs [s], infinity for none."""
        return self._table.column("limit_s")[self.jobs]

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Nodes that the jobs asked for, 0 where unknown."""
        return self._table.counts("nodes")[self.jobs]

    @property
    def gpu_milli(self) -> NDArray[np.int64]:
        """Thousandths of each of their GPUs that the jobs hold: 1000, or less of one GPU."""
        return self._table.counts("gpu_milli")[self.jobs]

    @property
    def throughput(self) -> NDArray[np.float64]:
        """Work a second of the whole gang on each pool, 0 where it cannot run; shape (jobs, pools).

        With job graphs, iterations a second at alpha_min.
        """
        environment = self._state.environment
        if environment.network is not None:
            # Not from run times, which tell how much work there is when rounded to the grid.
            return np.asarray(1.0 / np.maximum(self.alpha_min_s, TICK_S)[:, None])
        if not environment.typed:
            return np.ones((len(self.jobs), 1))
        return self._table.column("throughput")[self.jobs]

    @property
    def alpha_min_s(self) -> NDArray[np.float64]:
        """Time of an iteration under the best mapping [s]; of jobs with graphs."""
        return self._table.column("alpha_min_s")[self.jobs]

    @property
    def alpha_max_s(self) -> NDArray[np.float64]:
        """Time of an iteration under the worst mapping [s]; of jobs with graphs."""
        return self._table.column("alpha_max_s")[self.jobs]

    @property
    def sharing_pairs(self) -> Pairs:
        """Pairs of these jobs that may share GPUs, by position among them; O(jobs^2)."""
        environment = self._state.environment
        pools, rates = len(environment.pools.names), environment.pair_rates
        if rates is None:
            return Pairs.none(pools)
        return self._table.shared_runs(rates).pairs(self.jobs, pools)

    @property
    def work(self) -> NDArray[np.float64]:
        """Whole work, in the workload's units; needs ``duration``."""
        self._state.require(Knowledge.DURATION)
        return self._table.column("work")[self.jobs]

    @property
    def remaining_work(self) -> NDArray[np.float64]:
        """Work left, in the workload's units; needs ``duration``."""
        environment = self._state.environment
        if not environment.typed and environment.network is None:
            return self.remaining_s
        share = self.remaining_s / self._table.column("shortest_s")[self.jobs]
        return np.asarray(share * self._table.column("work")[self.jobs])

    @property
    def running(self) -> NDArray[np.bool_]:
        """Running now, one flag a job."""
        return self._table.column("relative_speed")[self.jobs] > 0

    @property
    def rate(self) -> NDArray[np.float64]:
        """Work a second of every job as it runs now, overheads left aside, 0 if it does not run.

        What a progress report tells: beside a partner, on its GPUs, with its CPUs and memory.
        """
        table, jobs = self._table, self.jobs
        fastest = table.column("work")[jobs] / table.column("shortest_s")[jobs]
        return np.asarray(table.column("relative_speed")[jobs] * fastest)

    @property
    def attained_s(self) -> NDArray[np.float64]:
        """Time [s] the job has run so far, without overheads and checkpoints; what it lost counts."""
        attained: NDArray[np.float64] = (
            self._table.column("attained_s")[self.jobs] + self._ran_s() * self.running
        )
        return attained

    @property
    def first_start_s(self) -> NDArray[np.float64]:
        """Time [s] of the first start, infinity before it."""
        return self._table.column("first_start_s")[self.jobs]

    @property
    def waited_s(self) -> NDArray[np.float64]:
        """Time [s] since the job last stopped or arrived; 0 while it runs."""
        since_s = self._table.column("waiting_since_s")[self.jobs]
        return np.where(self.running, 0.0, self._state.now_s - since_s)

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Run time [s] left on the fastest GPU type, at alpha_min of a graph; needs ``duration``."""
        self._state.require(Knowledge.DURATION)
        left: NDArray[np.float64] = (
            self._table.column("left_s")[self.jobs]
            - self._table.column("relative_speed")[self.jobs] * self._ran_s()
        )
        return left

    @property
    def owed_s(self) -> NDArray[np.float64]:
        """Overhead [s] the job still has to pay: for a waiting job when it resumes, else in this run."""
        unpaid = np.maximum(
            self._table.column("progress_from_s")[self.jobs] - self._state.now_s, 0.0
        )
        return np.where(self.running, unpaid, self._table.column("owed_s")[self.jobs])

    def takes_s(self, progress_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Time [s] in which each makes so much more progress if it runs from now on, with what it owes and checkpoints.

        Of a waiting job without what the start itself will be charged.
        """
        environment = self._state.environment
        since_s = self._state.now_s - self._table.column("progress_from_s")[self.jobs]
        elapsed_s = np.where(self.running, since_s, -self._table.column("owed_s")[self.jobs])
        made_s = environment.progress_s(np.maximum(elapsed_s, 0.0))
        return np.asarray(environment.elapsed_s(made_s + progress_s) - elapsed_s)

    @property
    def processing_s(self) -> NDArray[np.float64]:
        """Whole run time [s] on the fastest GPU type, at alpha_min of a graph; needs ``duration``."""
        self._state.require(Knowledge.DURATION)
        return self._table.column("shortest_s")[self.jobs]

    def _ran_s(self) -> NDArray[np.float64]:
        """Time in which the current run made progress; meaningless for jobs that do not run."""
        since_s = self._state.now_s - self._table.column("progress_from_s")[self.jobs]
        return self._state.environment.progress_s(np.maximum(since_s, 0.0))

    def __len__(self) -> int:
        return len(self.jobs)
