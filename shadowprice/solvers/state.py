"""State given to a policy: the past and present of the jobs that have arrived, as columns."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.instances.clusters.cpu_memory import CpuMemory, RunCpuMemory, proportional_share
from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.graphs.workload_graphs import shape_of
from shadowprice.instances.instance import Pools
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.terms.effect import NO_FIELDS, Fields
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.widths import speed_up
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Allocator, Pieces

Notes = TypeVar("Notes")


class State:
    """The cluster at one moment; kept by the engine, read by policies.

    It holds what is known at the start and the jobs that have arrived, and nothing else: the engine
    copies the rows of a job when it arrives. Jobs are numbered in order of arrival.

    Parameters
    ----------
    environment : Environment
        What is known at the start.
    knows : collection of Knowledge
        What the policy has declared.
    allocator : Allocator
        Of the cluster, with all GPUs free.
    service_gpu_s : ndarray, optional
        Services of all jobs, sorted [GPU-s]; for policies that have declared to know them.

    Attributes
    ----------
    environment : Environment
        What is known at the start.
    goodput : GoodputJobs or None
        Jobs that run at any width and batch; None where jobs have run times.
    now_s : float
        Current time [s].
    gang : list of int
        Gang sizes of the jobs that have arrived [GPUs].
    pools : list of tuple of int
        Pools of GPUs each of them may use, fastest first.
    waiting : OrderedDict of int
        Jobs that have arrived and do not run, in the order they began to wait.
    waiting_gpus : int
        GPUs that they need together.
    running : dict of int to pieces
        Running jobs and the nodes they hold.
    partner_of : dict of int to int
        For each running job that shares its GPUs, the job it shares them with.
    cpu_memory_of : dict of int to RunCpuMemory
        For each running job its CPUs and memory [GB] on each of its nodes, where jobs have profiles.
    one_pool : bool
        Whether all GPUs are alike to the jobs.
    allocator : Allocator
        Free GPUs, where the next gang would go, and what else jobs hold: parts of GPUs, CPUs and memory that they
        ask for, the quotas of their tenants. What has no room for all of it does not fit.
    arrived, finished : list of int
        Jobs that arrived or finished since the last decision. A job that lost a node has finished, and
        arrives again with the work that it had not saved.
    failed : list of int
        Those of ``finished`` that lost a node.
    changed_nodes : list of (int, int)
        Nodes that went down or came up since the last decision, in order of time, each with how many of ``finished``
        had left by then.
    down_nodes : set of int
        Nodes that are down now; none of their GPUs is free. Of simulations: where a real host is lost, its
        GPUs are not free, and it is not listed here.
    """

    __slots__ = (
        "_counts_by_job",
        "_jobs",
        "_knows",
        "_live",
        "_notes",
        "_service_gpu_s",
        "allocator",
        "arrived",
        "changed_nodes",
        "cpu_memory_of",
        "down_nodes",
        "environment",
        "failed",
        "finished",
        "gang",
        "goodput",
        "now_s",
        "one_pool",
        "partner_of",
        "pools",
        "running",
        "waiting",
        "waiting_gpus",
    )

    def __init__(
        self,
        environment: Environment,
        knows: Collection[Knowledge],
        allocator: Allocator,
        service_gpu_s: NDArray[np.float64] | None = None,
    ) -> None:
        self.environment = environment
        self._knows = frozenset(knows)
        self._service_gpu_s = service_gpu_s
        self._jobs = JobTable(environment)
        self._live: dict[int, None] = {}
        self._notes: dict[type, object] = {}
        self.gang = self._jobs.gang
        self.pools = self._jobs.pools
        self.one_pool = len(environment.pools.names) == 1
        self.allocator = allocator
        self._counts_by_job = allocator.counts_by_job
        course = environment.course
        known = course if isinstance(course, Goodput) else None
        self.goodput = (
            None if known is None else GoodputJobs(known, self._jobs, environment.cluster, self)
        )
        self.now_s = 0.0
        self.waiting: OrderedDict[int, None] = OrderedDict()
        self.waiting_gpus = 0
        self.running: dict[int, Pieces] = {}
        self.partner_of: dict[int, int] = {}
        self.cpu_memory_of: dict[int, RunCpuMemory] = {}
        self.arrived: list[int] = []
        self.finished: list[int] = []
        self.failed: list[int] = []
        self.changed_nodes: list[tuple[int, int]] = []
        self.down_nodes: set[int] = set()

    # What is known at the start.

    @property
    def total_gpus(self) -> int:
        """GPUs of the cluster, those of nodes that are down included."""
        return self.environment.cluster.total_gpus

    @property
    def up_gpus(self) -> int:
        """GPUs of the nodes that are up now."""
        nodes = self.environment.cluster.nodes
        return self.total_gpus - sum(nodes[node].gpus for node in self.down_nodes)

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return len(self.environment.cluster.nodes)

    @property
    def pools_of_gpus(self) -> Pools:
        """Pools of GPUs that are alike to the jobs: names, GPUs, prices."""
        return self.environment.pools

    @property
    def share_per_gpu(self) -> CpuMemory:
        """CPUs and memory [GB] for each GPU when both are divided by GPUs."""
        return proportional_share(self.environment.cluster)

    @property
    def sharing(self) -> bool:
        """True if any jobs may share GPUs."""
        return self.environment.pair_rates is not None

    @property
    def profiled(self) -> bool:
        """True if jobs have profiles by CPUs and memory, which are then handed out beside GPUs."""
        return self.environment.profiled

    @property
    def mapped(self) -> bool:
        """True if jobs have graphs, whose replicas are mapped to nodes."""
        return self.environment.network is not None

    @property
    def network(self) -> Network:
        """Bandwidths that the iterations of job graphs depend on.

        Raises
        ------
        PolicyError
            If jobs have no graphs.
        """
        if self.environment.network is None:
            raise _no_graphs()
        return self.environment.network

    def service_gpu_s(self) -> NDArray[np.float64]:
        """Total services gpus x processing time [GPU-s] of the workload, sorted; needs ``distribution``."""
        self.require(Knowledge.DISTRIBUTION)
        assert self._service_gpu_s is not None
        return self._service_gpu_s

    def require(self, knowledge: Knowledge) -> None:
        """Raise :class:`PolicyError` unless the policy has declared this knowledge."""
        if knowledge not in self._knows:
            declared = ", ".join(sorted(self._knows)) or "nothing"
            raise PolicyError(
                f"the policy reads {str(knowledge)!r}, but declares that it knows {declared}"
            )

    # What a policy remembers.

    def notes(self, kind: type[Notes], make: Callable[[], Notes] | None = None) -> Notes:
        """Notes that the policy keeps between decisions: one object of a class, for one run.

        Parameters
        ----------
        kind : type
            Class of the notes, usually a dataclass in the policy's file.
        make : callable, optional
            Makes them at the run's first decision; the class itself if not given.
        """
        found = self._notes.get(kind)
        if found is None:
            found = self._notes[kind] = kind() if make is None else make()
        assert isinstance(found, kind)
        return found

    # Jobs that have arrived.

    @property
    def everything_fits(self) -> bool:
        """True if all waiting jobs can start beside the running ones, wherever the GPUs are."""
        allocator = self.allocator
        return (
            allocator.anywhere
            and self.waiting_gpus <= allocator.free_gpus
            and not allocator.limits_starts
        )

    @property
    def fits_by_count(self) -> bool:
        """True if as many GPUs are free as all waiting jobs need, though perhaps badly spread."""
        allocator = self.allocator
        fits = self.one_pool and self.waiting_gpus <= allocator.free_gpus
        return fits and allocator.by_count

    def free_gpus_by_node(self) -> list[int]:
        """Free GPUs of every node, what the decision so far reserves left out; O(nodes)."""
        return self.allocator.free_by_node()

    def live(self) -> JobColumns:
        """The jobs that have arrived and not finished, as columns; O(number of them)."""
        live = np.fromiter(self._live, dtype=np.int64, count=len(self._live))
        return JobColumns(self, self._jobs, live)

    def columns(self, jobs: Collection[int]) -> JobColumns:
        """The same columns for some of the jobs that have arrived, in the order given.

        Raises
        ------
        PolicyError
            If one of them has not arrived.
        """
        rows = np.fromiter(jobs, dtype=np.int64, count=len(jobs))
        # Those who wait have arrived; a negative number is a very large one without its sign.
        asked = jobs is not self.waiting and len(rows)
        if asked and rows.view(np.uint64).max() >= len(self.gang):
            self.require_arrived(*rows.tolist())
        return JobColumns(self, self._jobs, rows)

    @property
    def completed(self) -> list[int]:
        """Jobs in :attr:`finished` whose work is done: all but those that lost a node."""
        return [job for job in self.finished if job not in self.failed]

    def completed_work(self) -> NDArray[np.float64]:
        """Whole work of the jobs in :attr:`completed`, which everyone knows once it is done."""
        return self._jobs.column("work")[self.completed]

    def graph_of(self, job: int) -> JobGraph:
        """Stages, replicas and traffic of a job.

        Raises
        ------
        PolicyError
            If it has not arrived, or jobs have no graphs.
        """
        self.require_arrived(job)
        if not self.mapped:
            raise _no_graphs()
        return self._jobs.graphs[job]

    def iteration_s(self, job: int, mapping: StageMapping) -> float:
        """alpha, the time of an iteration of a job under a mapping of its replicas [s].

        O(nodes of the mapping) if these replicas were on any nodes before.

        Raises
        ------
        InputError
            If it is no mapping of the job's replicas; that its nodes differ is not checked.
        """
        graph = self.graph_of(job)
        times, number = self.environment.times, int(self._jobs.counts("graph")[job])
        assert times is not None
        return times.iteration_s(number, graph, shape_of(stages for _, stages in mapping))

    def profile_of(self, job: int) -> Profile:
        """Speed of a job by CPUs and memory, where jobs have such profiles."""
        self.require_arrived(job)
        return self._jobs.profiles[job]

    def widest(self, job: int) -> int:
        """Most GPUs that a job may hold: its gang, unless it has opted in for more."""
        self.require_arrived(job)
        return int(self._jobs.counts("widest")[job]) if self.environment.elastic else self.gang[job]

    def speed_up(self, job: int, width: int) -> float:
        """Speed of a job on so many GPUs, over that on its gang; needs ``speed-up``.

        O(1) if some job of this gang and this efficiency was asked about so many before.

        Parameters
        ----------
        width : int
            From its gang to :meth:`widest`.

        Raises
        ------
        PolicyError
            If it has not arrived, or may not hold so many.
        """
        widest = self.widest(job)
        self.require(Knowledge.SPEED_UP)
        gang = self.gang[job]
        if not gang <= width <= widest:
            raise PolicyError(
                f"the policy asks for the speed of job {job} on {width} GPUs, expected {gang} to {widest}"
            )
        if width == gang:
            return 1.0
        return speed_up(float(self._jobs.column("efficiency")[job]), gang, width)

    def can_share(self, job: int, partner: int, pieces: Pieces) -> bool:
        """True if two jobs of equal gang have rates for running together on these nodes, as many GPUs as that."""
        self.require_arrived(job, partner)
        rates = self.environment.pair_rates
        if rates is None or sum(gpus for _, gpus in pieces) != self.gang[job]:
            return False
        shared = self._jobs.shared_runs(rates)
        type_of_node = self.environment.cluster.type_of_node
        types = {int(type_of_node[node]) for node, _ in pieces}
        return all(shared.can_share(job, partner, gpu_type) for gpu_type in types)

    def require_arrived(self, *jobs: int) -> None:
        """Raise :class:`PolicyError` if one of these jobs has not arrived."""
        known = len(self.gang)
        for job in jobs:
            if not 0 <= job < known:
                arrived = f"only jobs 0 to {known - 1} have" if known else "none has"
                raise PolicyError(
                    f"the policy asks for job {job} at {self.now_s} s, but {arrived} arrived"
                )

    # The engine's side.

    @property
    def rows(self) -> JobTable:
        """Engine: rows of the jobs that have arrived."""
        return self._jobs

    def admit(self, jobs: JobTable, end: int) -> None:
        """Engine: the jobs up to this row arrive, exclusively; theirs are copied, and no others."""
        gang, live, waiting, arrived = self.gang, self._live, self.waiting, self.arrived
        first = len(gang)
        self._jobs.extend(jobs, end)
        for job in range(first, end):
            live[job] = waiting[job] = None
            self.waiting_gpus += gang[job]
            arrived.append(job)
        if self._counts_by_job:
            self.allocator.arrive(self._jobs, range(first, end))

    def readmit(self, job: int, left_s: float) -> None:
        """Engine: a job that had to leave before its end arrives again with so much work left."""
        self._jobs.left_s[job] = left_s
        self._jobs.waiting_since_s[job] = self.now_s
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        self.arrived.append(job)
        # Columns are in order of the jobs, whoever comes back.
        self._live = dict.fromkeys(sorted((*self._live, job)))

    def fail(self, job: int, at_s: float, left_s: float, owed_s: float) -> None:
        """Engine: a running job lost a node; it leaves, and arrives again with so much work left."""
        del self.running[job]
        self.forget(job, at_s)
        self.finished.append(job)
        self.failed.append(job)
        self.readmit(job, left_s)
        self._jobs.owed_s[job] = owed_s
        self._jobs.waiting_since_s[job] = at_s

    def learn(self, environment: Environment, jobs: JobTable) -> None:
        """Engine: better estimates of the throughputs of the same jobs."""
        self.environment = environment
        self._jobs.relearn(jobs)

    def forget(self, job: int, end_s: float) -> None:
        """Engine: a job has finished at this time; what it attained can still be read."""
        jobs = self._jobs
        del self._live[job]
        ran_s = max(end_s - jobs.progress_from_s[job], 0.0)
        if self.environment.checkpoints is not None:
            ran_s = float(self.environment.progress_s(ran_s))
        jobs.attained_s[job] += ran_s
        jobs.relative_speed[job] = 0.0
        if self.goodput is not None:
            self.goodput.forget(job)
        if self.cpu_memory_of:
            self.cpu_memory_of.pop(job, None)

    def started(
        self,
        job: int,
        pieces: Pieces,
        progress_from_s: float,
        relative_speed: float,
        fields: Fields = NO_FIELDS,
    ) -> None:
        """Engine: a waiting job runs on these nodes, with these fields, and makes progress from then on."""
        jobs = self._jobs
        del self.waiting[job]
        self.waiting_gpus -= self.gang[job]
        self.running[job] = pieces
        jobs.progress_from_s[job] = progress_from_s
        jobs.relative_speed[job] = relative_speed
        if jobs.first_start_s[job] == math.inf:
            jobs.first_start_s[job] = self.now_s
        if fields:
            self._note_cpu_memory(job, fields)
        if self.goodput is not None:
            self.goodput.started(job, pieces, progress_from_s, fields[Feature.GOODPUT])

    def stopped(self, job: int, ran_s: float, left_s: float, owed_s: float) -> None:
        """Engine: a running job was preempted after making progress for ``ran_s``."""
        jobs = self._jobs
        del self.running[job]
        if self.goodput is not None:
            self.goodput.stopped(job, ran_s)
        if self.cpu_memory_of:
            self.cpu_memory_of.pop(job, None)
        self.waiting[job] = None
        self.waiting_gpus += self.gang[job]
        jobs.relative_speed[job] = 0.0
        jobs.attained_s[job] += ran_s
        jobs.left_s[job] = left_s
        jobs.owed_s[job] = owed_s
        jobs.waiting_since_s[job] = self.now_s

    def continued(
        self,
        job: int,
        ran_s: float,
        left_s: float,
        progress_from_s: float,
        relative_speed: float,
        fields: Fields = NO_FIELDS,
    ) -> None:
        """Engine: a running job got other conditions, these fields, after making progress for ``ran_s``."""
        jobs = self._jobs
        jobs.attained_s[job] += ran_s
        jobs.left_s[job] = left_s
        jobs.progress_from_s[job] = progress_from_s
        jobs.relative_speed[job] = relative_speed
        if fields:
            self._note_cpu_memory(job, fields)
        if self.goodput is not None:
            self.goodput.continued(job, ran_s, progress_from_s, fields.get(Feature.GOODPUT))

    def _note_cpu_memory(self, job: int, fields: Fields) -> None:
        if Feature.PROFILES in fields:
            self.cpu_memory_of[job] = fields[Feature.PROFILES]


def _no_graphs() -> PolicyError:
    return PolicyError("the policy asks for job graphs, but the instance has none")
