"""State of a sealed policy: rebuilt from the messages of a run, equal to the state that an unsealed one sees.

What the engine does to a state is done here in the same order: a decision is carried out, then come ends, failures and
arrivals. Which run times are not sent are not there: they count as :data:`HIDDEN_S`, and work left as no number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.execution.sealed.outline import environment_of, placement_of
from shadowprice.execution.sealed.protocol import (
    ArrivedJob,
    Begin,
    Down,
    Due,
    Ended,
    Epoch,
    Failed,
    Progress,
    Up,
    WrittenProfile,
)
from shadowprice.instances.cluster import CORES
from shadowprice.instances.clusters.cpu_memory import (
    CpuMemoryDemand,
    RunCpuMemory,
    capacities,
    grant_capacities,
)
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Batching
from shadowprice.instances.goodput.course import Position
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.terms.goodput import BatchField
from shadowprice.solvers.job_table import PROGRESS, Environment, JobTable
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource
from shadowprice.solvers.placement.declared import DeclaredResource
from shadowprice.solvers.placement.ledger import ResourceLedger
from shadowprice.solvers.placement.parts import PartsAllocator
from shadowprice.solvers.placement.protocol import Allocator
from shadowprice.solvers.placement.resource import Resource
from shadowprice.solvers.placement.tenant_quotas import TenantQuotas
from shadowprice.solvers.policy import Decision
from shadowprice.solvers.state import State

HIDDEN_S = 2.0**20
"""Run time of every job where they are not sent [s]; a power of two, so that rates come out as they are."""


class Mirror:
    """State of one run in the process of a sealed policy.

    Parameters
    ----------
    begin : Begin

    Attributes
    ----------
    state : State
    """

    def __init__(self, begin: Begin) -> None:
        environment = environment_of(begin)
        self._times = Knowledge.DURATION in begin.knows
        self._demands: list[CpuMemoryDemand] = []
        self._on_cores: list[bool] = []
        self._jobs = JobTable(environment)
        self._graphs: list[Any] = []
        self._profiles: list[Profile] = []
        self._decision: Decision | None = None
        self._left_alone: list[int] = []
        allocator = self._ledger(begin, environment)
        self._changing = allocator if allocator.changes else None
        service = None if begin.service_gpu_s is None else np.array(begin.service_gpu_s)
        self.state = State(environment, begin.knows, allocator, service)

    def _ledger(self, begin: Begin, environment: Environment) -> Allocator:
        """Ledger of who holds what, as that of the engine."""
        cluster = environment.cluster
        pools = cluster.type_of_node.tolist() if begin.typed else [0] * len(cluster.nodes)
        gpus = placement_of(begin.placement).allocator(cluster, pools)
        if begin.parts:
            gpus = PartsAllocator(gpus, cluster)
        resources: list[Resource] = []
        if begin.quotas is not None:
            names = environment.pools.names
            cores = names.index(CORES) if CORES in names else -1
            resources.append(TenantQuotas(begin.quotas, cores))
        if begin.racks is not None:
            resources.append(DeclaredResource(begin.racks, cluster, self))  # type: ignore[arg-type]
        cpu_memory = None
        if begin.asking:
            nodes = grant_capacities(cluster) if begin.profiled else capacities(cluster)
            cpu_memory = CpuMemoryResource(nodes, self._demands, pools)
        return ResourceLedger(gpus, resources, cpu_memory) if resources or cpu_memory else gpus

    @property
    def on_cores(self) -> list[bool]:
        """Flags of the jobs that have arrived, true for those on cores: all that racks ask of a workload."""
        return self._on_cores

    def decided(self, decision: Decision) -> None:
        """Take note of the decision that was sent."""
        self._decision = decision

    def advance(self, due: Due) -> State:
        """The state as it is when the next decision is due."""
        state = self.state
        if self._decision is not None:
            self._apply(self._decision, dict(due.cpu_memory))
        for listed in (state.arrived, state.finished, state.failed, state.changed_nodes):
            listed.clear()
        state.now_s = due.now_s
        if self._changing is not None:
            self._changing.at(due.now_s)
        for event in due.events:
            self._happen(event)
        for arrival in due.arrived:
            self._take(arrival)
        state.admit(self._jobs, len(self._jobs.gang))
        self._note(due)
        return state

    def _apply(self, decision: Decision, cpu_memory: dict[int, RunCpuMemory]) -> None:
        """Stops, those that go on otherwise, and starts; numbers follow in progress."""
        state = self.state
        for job in decision.stops:
            state.stopped(job, 0.0, math.nan, 0.0)
        if decision.fields:
            self._share(decision)
        for job, pieces in decision.starts.items():
            fields: dict[Feature, Any] = {}
            if state.profiled:
                fields[Feature.PROFILES] = cpu_memory.get(job, ())
            if state.goodput is not None:
                fields[Feature.GOODPUT] = BatchField(state.goodput.batching(job, _width(pieces)))
            state.started(job, pieces, 0.0, 0.0, fields)

    def _share(self, decision: Decision) -> None:
        """Partners after a decision."""
        state = self.state
        fields: dict[int, dict[Feature, Any]] = decision.fields or {}
        partners = {
            job: each[Feature.SHARING] for job, each in fields.items() if Feature.SHARING in each
        }
        for job in partners:
            state.partner_of.pop(job, ALONE)
        state.partner_of.update((job, other) for job, other in partners.items() if other != ALONE)

    def _happen(self, event: Ended | Failed | Down | Up) -> None:
        state = self.state
        if isinstance(event, Ended):
            pieces = state.running.pop(event.job)
            state.forget(event.job, state.now_s)
            self._release(event.job, pieces)
            state.finished.append(event.job)
            for table in (self._jobs, state.rows):
                table.column("work")[event.job] = event.work
            return
        if isinstance(event, Failed):
            pieces = state.running[event.job]
            state.fail(event.job, state.now_s, math.nan, 0.0)
            self._release(event.job, pieces)
            return
        everything = ((event.node, state.environment.cluster.nodes[event.node].gpus),)
        if isinstance(event, Up):
            state.down_nodes.remove(event.node)
            state.allocator.give_back(everything)
        else:
            state.allocator.take_exact(everything)
            state.down_nodes.add(event.node)
        state.changed_nodes.append((event.node, len(state.finished)))

    def _release(self, job: int, pieces: Any) -> None:
        """Free what a job holds, beside a partner or alone."""
        state = self.state
        partner = state.partner_of.pop(job, None)
        if partner is None:
            state.allocator.release(job, pieces)
            return
        state.allocator.leave(job, partner, pieces)
        del state.partner_of[partner]
        self._left_alone.append(partner)

    def _take(self, arrival: ArrivedJob) -> None:
        """Add the row of a job that arrives."""
        environment = self.state.environment
        a = arrival
        pace = 1.0
        numbers: dict[str, object] = {
            "gpus": a.gpus,
            "arrival_s": a.arrival_s,
            "weight": a.weight,
            "deadline_s": _endless(a.deadline_s),
            "limit_s": _endless(a.limit_s),
            "nodes": a.nodes,
            "gpu_milli": a.gpu_milli,
            "batch_size": a.batch_size,
            "waiting_since_s": a.arrival_s,
            "first_start_s": math.inf,
        }
        if a.throughput is not None:
            numbers["throughput"] = a.throughput
            pace = max(a.throughput)
        if environment.elastic:
            numbers |= {"widest": a.widest, "efficiency": _number(a.efficiency)}
        if a.graph is not None and a.alpha_s is not None:
            if a.graph_is is not None:
                self._graphs.append(a.graph_is)
            self._jobs.graphs.append(self._graphs[a.graph])
            least_s, most_s = a.alpha_s
            numbers |= {"graph": a.graph, "alpha_min_s": least_s, "alpha_max_s": most_s}
            pace = 1.0 / least_s if least_s else 1.0
        if a.profile is not None:
            if a.profile_is is not None:
                self._profiles.append(_profile(a.profile_is))
            self._jobs.profiles.append(self._profiles[a.profile])
        run_s, work = HIDDEN_S, HIDDEN_S * pace
        if self._times:
            run_s, work = _number(a.run_s), _number(a.work)
        numbers |= {"shortest_s": run_s, "work": work, "left_s": run_s if self._times else math.nan}
        if environment.pair_rates is not None:
            numbers |= {"kind": a.kind, "alone_s": self._alone_s(arrival)}
        if a.asks is not None:
            self._demands.append(a.asks)
        names = environment.pools.names
        self._on_cores.append(bool(a.pools) and names[a.pools[0]] == CORES)
        texts = (a.id, a.tenant, a.model, a.group, a.name, a.job_class)
        self._jobs.add(numbers, a.gpus, a.pools, texts)

    def _alone_s(self, arrival: ArrivedJob) -> NDArray[np.float64]:
        """Run times on each GPU type; where they are not sent, whether it runs there at all."""
        if arrival.alone_s is not None:
            return np.array([_endless(each) for each in arrival.alone_s])
        types = len(self.state.environment.cluster.gpu_types)
        times = np.full(types, np.inf)
        times[list(arrival.runs_on or ())] = HIDDEN_S
        return times

    def _note(self, due: Due) -> None:
        """Numbers, CPUs and memory, and batches of all of whom they are new."""
        state = self.state
        for progress in due.progress:
            _write(state.rows, progress)
        for job, held in due.cpu_memory:
            if job in state.running:
                state.cpu_memory_of[job] = held
        for job in self._left_alone:
            if job in state.running and job in state.cpu_memory_of:
                held = state.cpu_memory_of[job]
                state.allocator.cpu_memory.adjust(job, state.running[job], held)
        self._left_alone.clear()
        for epoch in due.epochs:
            self._note_epoch(epoch)

    def _note_epoch(self, epoch: Epoch) -> None:
        goodput, job = self.state.goodput, epoch.job
        assert goodput is not None
        if job not in self.state.running and job not in self.state.waiting:
            return
        goodput.forget(job)
        goodput.reached(job, Position(epoch.epoch, int(epoch.done)))
        if epoch.batching is not None:
            field = BatchField(Batching(*epoch.batching), epoch.slowed)
            goodput.started(job, self.state.running[job], epoch.from_s, field)


def _write(rows: JobTable, progress: Progress) -> None:
    values = (
        math.nan if progress.left_s is None else progress.left_s,
        progress.attained_s,
        progress.owed_s,
        progress.speed,
        progress.from_s,
        _endless(progress.first_start_s),
        progress.waiting_since_s,
    )
    for name, value in zip(PROGRESS, values, strict=True):
        getattr(rows, name)[progress.job] = value


def _profile(written: WrittenProfile) -> Profile:
    return Profile(
        np.array(written.cpus_per_gpu),
        np.array(written.memory_gb_per_gpu),
        np.array(written.speed),
        written.name,
    )


def _width(pieces: Any) -> int:
    return sum(gpus for _, gpus in pieces)


def _endless(value: float | None) -> float:
    return math.inf if value is None else value


def _number(value: float | None) -> float:
    return math.nan if value is None else value
