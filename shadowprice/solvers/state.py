"""State given to a policy: the past and present of the jobs that have arrived, as columns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, shape_of
from shadowprice.instances.instance import Instance, Pools
from shadowprice.instances.speeds.conditions import Conditions
from shadowprice.instances.speeds.sensitivity import Amounts, Sensitivity
from shadowprice.solvers.decision import Decision
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.placement.protocol import Allocator, JobAllocator, Pieces

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
    partner_of : dict of int to int
        For each running job that shares its GPUs, the job it shares them with.
    amounts : dict of int to amounts
        For each running job its CPUs and memory [GB] on each of its nodes, where jobs have profiles.
    one_pool : bool
        Whether all GPUs are alike to the jobs.
    allocator : Allocator
        Free GPUs, and where the next gang would go.
    by_job : JobAllocator or None
        The same if it treats jobs differently.
    memory : dict
        A policy's own notes from one decision to the next; empty at the start of a run.
    arrived, finished : list of int
        Rows of the jobs that arrived or finished since the last decision.
    """

    __slots__ = (
        "_attained_s",
        "_first_start_s",
        "_gpus",
        "_instance",
        "_knows",
        "_left_s",
        "_live",
        "_owed_s",
        "_progress_from_s",
        "_rate",
        "_type_of_node",
        "_waiting_since_s",
        "allocator",
        "amounts",
        "arrived",
        "by_job",
        "finished",
        "gang",
        "memory",
        "now_s",
        "one_pool",
        "partner_of",
        "pools",
        "running",
        "waiting",
        "waiting_gpus",
    )

    def __init__(
        self, instance: Instance, knows: Collection[Knowledge], allocator: Allocator
    ) -> None:
        n = len(instance.workload)
        self._instance = instance
        self._knows = frozenset(knows)
        self._gpus = instance.workload.gpus
        self._type_of_node: list[int] = instance.cluster.type_of_node.tolist()
        self._left_s = instance.shortest_s.copy()
        self._attained_s = np.zeros(n)
        self._owed_s = np.zeros(n)
        self._rate = np.zeros(n)
        self._progress_from_s = np.zeros(n)
        self._first_start_s = np.full(n, np.inf)
        self._waiting_since_s = instance.workload.arrival_s.copy()
        self._live: dict[int, None] = {}
        self.gang: list[int] = self._gpus.tolist()
        self.one_pool = instance.workload.throughput is None or len(instance.pools.names) == 1
        self.pools = instance_pools(instance)
        self.allocator = allocator
        self.by_job = allocator if isinstance(allocator, JobAllocator) else None
        self.now_s = 0.0
        self.waiting: OrderedDict[int, None] = OrderedDict()
        self.waiting_gpus = 0
        self.running: dict[int, Pieces] = {}
        self.partner_of: dict[int, int] = {}
        self.amounts: dict[int, Amounts] = {}
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
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return len(self._type_of_node)

    @property
    def jobs_total(self) -> int:
        """Jobs of the workload, those that have not arrived included."""
        return len(self.gang)

    @property
    def pools_of_gpus(self) -> Pools:
        """Pools of GPUs that are alike to the jobs: names, GPUs, prices."""
        return self._instance.pools

    @property
    def everything_fits(self) -> bool:
        """True if all waiting jobs can start beside the running ones, wherever the GPUs are."""
        return self.allocator.anywhere and self.waiting_gpus <= self.allocator.free_gpus

    @property
    def fits_by_count(self) -> bool:
        """True if as many GPUs are free as all waiting jobs need, though perhaps badly spread."""
        return self.one_pool and self.waiting_gpus <= self.allocator.free_gpus

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Profiles of all jobs by CPUs and memory, None where these do not matter."""
        conditions = self._instance.conditions
        return None if conditions is None else conditions.sensitivity

    @property
    def conditions(self) -> Conditions | None:
        """On what the speeds of runs depend, None if on nothing."""
        return self._instance.conditions

    @property
    def graphs(self) -> JobGraphs:
        """The jobs' graphs.

        Raises
        ------
        PolicyError
            If the instance has none.
        """
        graphs = self._instance.graphs
        if graphs is None:
            raise PolicyError("the policy asks for job graphs, but the instance has none")
        return graphs

    @property
    def network(self) -> Network:
        """Bandwidths that the iterations of job graphs depend on."""
        return self.graphs.network

    def graph_of(self, job: int) -> JobGraph:
        """Stages, replicas and traffic of a job."""
        graphs = self.graphs
        return graphs.graph[int(graphs.of[job])]

    def iteration_s(self, job: int, mapping: StageMapping) -> float:
        """alpha, the time of an iteration of a job under a mapping of its replicas [s].

        O(nodes of the mapping) if these replicas were on any nodes before.

        Raises
        ------
        InputError
            If it is no mapping of the job's replicas; that its nodes differ is not checked.
        """
        graphs = self.graphs
        shape = shape_of(stages for _, stages in mapping)
        return graphs.times.iteration_s(int(graphs.of[job]), shape)

    def free_gpus_by_node(self) -> list[int]:
        """Free GPUs of every node, what the decision so far reserves left out; O(nodes)."""
        return self.allocator.free_by_node()

    def live(self) -> JobColumns:
        """The jobs that have arrived and not finished, as columns; O(number of them)."""
        return JobColumns(self, np.fromiter(self._live, dtype=np.int64, count=len(self._live)))

    def columns(self, jobs: Collection[int]) -> JobColumns:
        """The same columns for some of the live jobs, in the order given."""
        return JobColumns(self, np.fromiter(jobs, dtype=np.int64, count=len(jobs)))

    def admit(self, job: int) -> None:
        """Engine: a job arrives."""
        self._live[job] = None
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        self.arrived.append(job)

    def readmit(self, job: int, left_s: float) -> None:
        """Engine: a job that had to leave before its end arrives again with so much work left."""
        self._left_s[job] = left_s
        self._waiting_since_s[job] = self.now_s
        self.admit(job)
        # Columns are in order of the jobs, whoever comes back.
        self._live = dict.fromkeys(sorted(self._live))

    def learn(self, instance: Instance) -> None:
        """Engine: the same jobs with better estimates of their throughputs."""
        self._left_s *= instance.shortest_s / self._instance.shortest_s
        self._instance = instance
        self.pools = instance_pools(instance)

    @property
    def sharing(self) -> bool:
        """True if any jobs may share GPUs."""
        return self._instance.together is not None

    def can_share(self, job: int, partner: int, pieces: Pieces) -> bool:
        """True if two jobs of equal gang have rates for running together on these nodes."""
        instance = self._instance
        if instance.together is None:
            return False
        types = {self._type_of_node[node] for node, _ in pieces}
        return all(instance.shared_s(job, partner, kind) != np.inf for kind in types)

    def forget(self, job: int, end_s: float) -> None:
        """Engine: a job has finished at this time; what it attained can still be read."""
        del self._live[job]
        self._attained_s[job] += max(end_s - self._progress_from_s[job], 0.0)
        self._rate[job] = 0.0
        if self.amounts:
            self.amounts.pop(job, None)

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
        if self.amounts:
            self.amounts.pop(job, None)
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        self._rate[job] = 0.0
        self._attained_s[job] += ran_s
        self._left_s[job] = left_s
        self._owed_s[job] = owed_s
        self._waiting_since_s[job] = self.now_s

    def goes_on(
        self, job: int, ran_s: float, left_s: float, progress_from_s: float, rate: float
    ) -> None:
        """Engine: a running job got other conditions after making progress for ``ran_s``."""
        self._attained_s[job] += ran_s
        self._left_s[job] = left_s
        self._progress_from_s[job] = progress_from_s
        self._rate[job] = rate

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


def instance_pools(instance: Instance) -> list[tuple[int, ...]]:
    """Pools of GPUs each job may use, fastest first.

    Without a throughput table all GPUs are one pool; with one, a pool is a GPU type.
    """
    if instance.workload.throughput is None:
        return [(0,)] * len(instance.workload)
    order = np.argsort(instance.processing_s, axis=1, kind="stable")
    usable = np.isfinite(instance.processing_s).sum(axis=1)
    return [tuple(row[:k]) for row, k in zip(order.tolist(), usable.tolist(), strict=True)]
