"""What a policy sees: the past and present of the jobs that have arrived, as columns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.instance import Instance
from shadowprice.solvers.decision import Decision
from shadowprice.solvers.placement.protocol import Allocator, Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.policy import Knowledge


class State:
    """The cluster at one moment; kept by the engine, read by policies.

    Attributes
    ----------
    now_s : float
        Current time [s].
    waiting : OrderedDict of int
        Rows of the jobs that have arrived and do not run, in the order they began to wait.
    running : dict of int to pieces
        Rows of the running jobs and the nodes they hold.
    allocator : Allocator
        Free GPUs, and where the next gang would go.
    memory : dict
        A policy's own notes from one decision to the next; empty at the start of a run.
    arrived, finished : list of int
        Rows of the jobs that arrived or finished since the last decision.
    """

    __slots__ = (
        "_attained_s", "_first_start_s", "_gpus", "_instance", "_knows", "_left_s", "_live", "_owed_s",
        "_progress_from_s", "_rate", "_waiting_since_s", "allocator", "arrived", "finished",
        "gang", "memory", "now_s", "pools", "running", "waiting", "waiting_gpus",
    )  # fmt: skip

    def __init__(
        self, instance: Instance, knows: Collection[Knowledge], allocator: Allocator
    ) -> None:
        n = len(instance.workload)
        self._instance = instance
        self._knows = frozenset(knows)
        self._gpus = instance.workload.gpus
        self._left_s = instance.shortest_s.copy()
        self._attained_s = np.zeros(n)
        self._owed_s = np.zeros(n)
        self._rate = np.zeros(n)
        self._progress_from_s = np.zeros(n)
        self._first_start_s = np.full(n, np.inf)
        self._waiting_since_s = instance.workload.arrival_s.copy()
        self._live: dict[int, None] = {}
        self.gang: list[int] = self._gpus.tolist()
        self.pools = instance_pools(instance)
        self.allocator = allocator
        self.now_s = 0.0
        self.waiting: OrderedDict[int, None] = OrderedDict()
        self.waiting_gpus = 0
        self.running: dict[int, Pieces] = {}
        self.arrived: list[int] = []
        self.finished: list[int] = []
        self.memory: dict[str, Any] = {}

    def decision(self) -> Decision:
        """An empty decision about this state: nothing starts, nothing stops."""
        return Decision(self)

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster."""
        return self._instance.cluster.total_gpus

    @property
    def everything_fits(self) -> bool:
        """Whether all waiting jobs can start beside the running ones, wherever the GPUs are."""
        return self.allocator.anywhere and self.waiting_gpus <= self.allocator.free_gpus

    def live(self) -> Live:
        """The jobs that have arrived and not finished, as columns; O(number of them)."""
        return Live(self, np.fromiter(self._live, dtype=np.int64, count=len(self._live)))

    def columns(self, jobs: Collection[int]) -> Live:
        """The same columns for some of the live jobs, in the order given."""
        return Live(self, np.fromiter(jobs, dtype=np.int64, count=len(jobs)))

    def admit(self, job: int) -> None:
        """Engine: a job arrives."""
        self._live[job] = None
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        self.arrived.append(job)

    def forget(self, job: int) -> None:
        """Engine: a job has finished."""
        del self._live[job]
        self._rate[job] = 0.0

    def started(self, job: int, pieces: Pieces, progress_from_s: float, rate: float) -> None:
        """Engine: a waiting job runs on these nodes and makes progress from then on."""
        del self.waiting[job]
        self.waiting_gpus -= self.gang[job]
        self.running[job] = pieces
        self._progress_from_s[job] = progress_from_s
        self._rate[job] = rate
        if self._first_start_s[job] == np.inf:
            self._first_start_s[job] = self.now_s

    def stopped(self, job: int, ran_s: float, left_s: float, owed_s: float) -> None:
        """Engine: a running job was preempted after making progress for ``ran_s``."""
        del self.running[job]
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        self._rate[job] = 0.0
        self._attained_s[job] += ran_s
        self._left_s[job] = left_s
        self._owed_s[job] = owed_s
        self._waiting_since_s[job] = self.now_s

    def require(self, knowledge: str) -> None:
        """Raise :class:`PolicyError` unless the policy has declared this knowledge."""
        if knowledge not in self._knows:
            declared = ", ".join(sorted(self._knows)) or "nothing"
            raise PolicyError(
                f"the policy reads {knowledge!r}, but declares that it knows {declared}"
            )

    def service_gpu_s(self) -> NDArray[np.float64]:
        """Total services gpus x processing time [GPU-s] of the workload, sorted; needs ``distribution``."""
        self.require("distribution")
        return np.sort(self._gpus * self._instance.shortest_s)


class Live:
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
    def running(self) -> NDArray[np.bool_]:
        """Whether the job runs now."""
        return self._state._rate[self.jobs] > 0

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
        """Run time [s] left on the fastest GPU type; needs ``duration``."""
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
        """Whole run time [s] on the fastest GPU type; needs ``duration``."""
        self._state.require("duration")
        return self._state._instance.shortest_s[self.jobs]

    def _ran_s(self) -> NDArray[np.float64]:
        """Time since progress began in the current run; meaningless for jobs that do not run."""
        return np.maximum(self._state.now_s - self._state._progress_from_s[self.jobs], 0.0)

    def __len__(self) -> int:
        return len(self.jobs)


def instance_pools(instance: Instance) -> list[tuple[int, ...]]:
    """Pools of GPUs each job may use, fastest first.

    Without a throughput table all GPUs are one pool; with one, a pool is a GPU type.
    """
    if instance.workload.throughput is None:
        return [(0,)] * len(instance.workload)
    order = np.argsort(instance.processing_s, axis=1, kind="stable")
    usable = np.isfinite(instance.processing_s).sum(axis=1)
    return [tuple(row[:k]) for row, k in zip(order.tolist(), usable.tolist(), strict=True)]
