"""The jobs that have arrived and not finished, as columns: what a policy reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import pool_throughput, sharing_pairs

if TYPE_CHECKING:
    from shadowprice.solvers.state import State


class JobColumns:
    """Columns over some live jobs, all of shape (jobs,) and in the order of :attr:`jobs`.

    Attributes
    ----------
    jobs : ndarray of int
        Rows in the workload, which is in order of arrival.
    """

    __slots__ = ("_state", "jobs")

    def __init__(self, state: State, jobs: NDArray[np.int64]) -> None:
        self._state = state
        self.jobs = jobs

    @property
    def gpus(self) -> NDArray[np.int64]:
        """Gang sizes [GPUs]."""
        return self._state._gpus[self.jobs]

    @property
    def arrival_s(self) -> NDArray[np.float64]:
        """Arrival times [s]."""
        return self._state._instance.workload.arrival_s[self.jobs]

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weights."""
        return self._state._instance.workload.weight[self.jobs]

    @property
    def id(self) -> NDArray[np.object_]:
        """Names."""
        return self._state._instance.workload.id[self.jobs]

    @property
    def tenant(self) -> NDArray[np.object_]:
        """Owners, empty where unknown."""
        return self._state._instance.workload.tenant[self.jobs]

    @property
    def model(self) -> NDArray[np.object_]:
        """Kinds of model, empty where unknown."""
        return self._state._instance.workload.model[self.jobs]

    @property
    def deadline_s(self) -> NDArray[np.float64]:
        """Deadlines [s], infinity for none."""
        return self._state._instance.workload.deadline_s[self.jobs]

    @property
    def throughput(self) -> NDArray[np.float64]:
        """Work a second of the whole gang on each pool, 0 where it cannot run; shape (jobs, pools).

        With job graphs, iterations a second at alpha_min.
        """
        instance = self._state._instance
        if instance.graphs is not None:
            # Not from run times, which tell how much work there is when rounded to the grid.
            alpha_s = instance.graphs.shortest_iteration_s[instance.graphs.of[self.jobs]]
            return np.asarray(1.0 / np.maximum(alpha_s, TICK_S)[:, None])
        return pool_throughput(instance, self.jobs)

    @property
    def sharing_pairs(self) -> Pairs:
        """Pairs of these jobs that may share GPUs, by position among them."""
        return sharing_pairs(self._state._instance, self.jobs)

    @property
    def remaining_work(self) -> NDArray[np.float64]:
        """Work left, in the workload's units; needs ``duration``."""
        instance = self._state._instance
        if instance.workload.throughput is None and instance.graphs is None:
            return self.remaining_s
        share = self.remaining_s / instance.shortest_s[self.jobs]
        return np.asarray(share * instance.workload.work[self.jobs])

    @property
    def running(self) -> NDArray[np.bool_]:
        """Running now, one flag a job."""
        return self._state._rate[self.jobs] > 0

    @property
    def rate(self) -> NDArray[np.float64]:
        """Work a second of every job as it runs now, overheads left aside, 0 if it does not run.

        What a progress report tells: beside a partner, on its GPUs, with its CPUs and memory.
        """
        instance = self._state._instance
        whole_s = instance.shortest_s[self.jobs]
        return np.asarray(
            self._state._rate[self.jobs] * (instance.workload.work[self.jobs] / whole_s)
        )

    @property
    def attained_s(self) -> NDArray[np.float64]:
        """Time [s] the job has run so far, without overheads."""
        attained: NDArray[np.float64] = (
            self._state._attained_s[self.jobs] + self._ran_s() * self.running
        )
        return attained

    @property
    def first_start_s(self) -> NDArray[np.float64]:
        """Time [s] of the first start, infinity before it."""
        return self._state._first_start_s[self.jobs]

    @property
    def waited_s(self) -> NDArray[np.float64]:
        """Time [s] since the job last stopped or arrived; 0 while it runs."""
        return np.where(
            self.running, 0.0, self._state.now_s - self._state._waiting_since_s[self.jobs]
        )

    @property
    def remaining_s(self) -> NDArray[np.float64]:
        """Run time [s] left on the fastest GPU type, at alpha_min of a graph; needs ``duration``."""
        self._state.require("duration")
        left: NDArray[np.float64] = (
            self._state._left_s[self.jobs] - self._state._rate[self.jobs] * self._ran_s()
        )
        return left

    @property
    def owed_s(self) -> NDArray[np.float64]:
        """Overhead [s] the job still has to pay: for a waiting job when it resumes, else in this run."""
        unpaid = np.maximum(self._state._progress_from_s[self.jobs] - self._state.now_s, 0.0)
        return np.where(self.running, unpaid, self._state._owed_s[self.jobs])

    @property
    def processing_s(self) -> NDArray[np.float64]:
        """Whole run time [s] on the fastest GPU type, at alpha_min of a graph; needs ``duration``."""
        self._state.require("duration")
        return self._state._instance.shortest_s[self.jobs]

    def _ran_s(self) -> NDArray[np.float64]:
        """Time since progress began in the current run; meaningless for jobs that do not run."""
        return np.maximum(self._state.now_s - self._state._progress_from_s[self.jobs], 0.0)

    def __len__(self) -> int:
        return len(self.jobs)
