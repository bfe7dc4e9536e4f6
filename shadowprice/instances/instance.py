"""An instance: everything that is given to a scheduler and to its verifier, and its pools of GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import COLUMNS, Brief, cut, html_table, screen
from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.instances.cluster import ANY_TYPE, CORES, Cluster
from shadowprice.instances.clusters.cpu_memory import (
    AskedCpuMemory,
    capacities,
    grant_capacities,
    has_room,
)
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature, require_compatible
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.grid import MAX_TOTAL_S, TICK_S, up_to_grid
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.speeds.sharing import SharedRuns, SharingRates
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.copies import CopyRules
from shadowprice.instances.terms.declared import (
    CourseTerm,
    DeclaredFactor,
    DeclaredTerm,
    SlowingTerm,
    expect_declared,
)
from shadowprice.instances.terms.effect import Effect
from shadowprice.instances.terms.quotas import within_quotas
from shadowprice.instances.terms.registry import TERMS
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.term import Term
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload


@dataclass(frozen=True, repr=False)
class Instance:
    """A cluster, a workload and the overheads of moving jobs about.

    Parameters
    ----------
    cluster, workload, overheads
        What runs where, and what moving costs. Jobs that may run on some GPU types only have rates
        of 0 on the others (:meth:`Workload.on_allowed_types`). A rate is that of the whole gang on a type: it
        counts only where the type has as many GPUs as the gang.
    sharing_rates : Throughputs, optional
        Rates of two jobs that share their GPUs, by model, gang size and GPU type, in units of
        their work a second, with graphs against 1 alone; those that were not measured cannot share. Nobody shares
        without it.
    graphs : JobGraphs, optional
        Stages of every job, whose ``work`` then counts iterations: a run takes as long as where its
        replicas are makes them. All GPUs are of one speed.
    sensitivity : Sensitivity, optional
        Speeds of jobs by the CPUs and memory of their runs, which are then handed out beside GPUs.
    locality : Locality, optional
        Speeds of gangs that are spread.
    elasticity : Elasticity, optional
        Jobs that may hold more GPUs than their gang. Speeds under each of the three are multiplied.
    copies : CopyRules, optional
        Rules under which jobs run as several copies, each on a whole node, instead of one gang; not
        with overheads, since copies have charges of their own.
    until_complete : JobWindow, optional
        Jobs whose completion ends the run: those outside the window need not be complete then.
    failures : NodeFailures, optional
        When nodes are down, and what jobs save of their work by then; of copies what was averaged, so
        that these write no checkpoints.
    stopped_s : float, optional
        Time at which the run was stopped before its end [s]: no job need be complete, and nothing goes
        on after it. A window of jobs ends the run where it is complete earlier.
    preemption : Preemption
        Whether a job that is preempted keeps its work; with ``RESTART`` it writes no checkpoints.
    declared : tuple of DeclaredTerm
        What else holds or slows runs.

    Raises
    ------
    InputError
        If there are two of these that do not go together, or one does not fit the jobs or the nodes: see
        the ``check`` of each term.
    InfeasibleJobError
        If a job fits no GPU type of the cluster, or no nodes have the CPUs and memory that it asks for; see
        :meth:`feasible` for dropping such jobs.
    """

    cluster: Cluster
    workload: Workload
    overheads: Overheads = field(default_factory=Overheads)
    sharing_rates: Throughputs | None = None
    graphs: JobGraphs | None = None
    sensitivity: Sensitivity | None = None
    locality: Locality | None = None
    elasticity: Elasticity | None = None
    copies: CopyRules | None = None
    until_complete: JobWindow | None = None
    failures: NodeFailures | None = None
    stopped_s: float | None = None
    preemption: Preemption = Preemption.RESUME
    declared: tuple[DeclaredTerm, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "workload", self.workload.on_allowed_types(self.cluster))
        object.__setattr__(self, "preemption", Preemption.parse(self.preemption))
        require_compatible(self.features, self.workload.source)
        expect_declared(self.declared, self.cluster, self.workload)
        for each in self.present:
            each.check(each.of(self), self)
        bad = np.flatnonzero(~_can_run(self.cluster, self.workload))
        if len(bad):
            job = int(bad[0])
            more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
            if self.workload.on_cores[job]:
                raise InfeasibleJobError(
                    f"{self.workload.source}: job {self.workload.id[job]!r} needs {self.workload.gpus[job]} cores of "
                    f"CPUs, cluster {self.cluster} has {self.cluster.cores}{more}; add nodes of type {CORES} "
                    f"(NODESxCORES:{CORES}), leave such jobs out or drop infeasible jobs"
                )
            raise InfeasibleJobError(
                f"{self.workload.source}: job {self.workload.id[job]!r} needs {self.workload.gpus[job]} GPUs "
                f"of one type on which it can run, cluster {self.cluster} has no such type{more}; "
                "use a larger cluster or drop infeasible jobs"
            )
        held_s = np.cumsum(self.workload.gpus * self.shortest_s)
        if not (held_s <= MAX_TOTAL_S).all():
            job = int((held_s > MAX_TOTAL_S).argmax())
            raise InputError(
                f"{self.workload.source}: job {self.workload.id[job]!r} takes {float(self.shortest_s[job])!r} s on "
                f"{self.workload.gpus[job]} GPUs, with those before it {held_s[job]:.10g} GPU-seconds, "
                f"expected at most {MAX_TOTAL_S:.10g} of all jobs together"
            )

    @cached_property
    def present(self) -> tuple[Term[Any], ...]:
        """Terms that it has, but for declared ones; O(jobs + nodes), once."""
        return tuple(each for each in TERMS if each.present(self))

    @cached_property
    def features(self) -> frozenset[Feature]:
        """All that the instance says beyond nodes and jobs."""
        own = {each.feature for each in self.declared}
        return frozenset(each.feature for each in self.present) | own

    def __repr__(self) -> str:
        more = [str(each) for each in Feature if each in self.features]
        jobs, cluster = self.workload, self.cluster
        told = f"{len(jobs)} jobs from {cut(jobs.source, 40)} on {cut(str(cluster), 40)}"
        return screen(f"Instance({told}{''.join(f', {each}' for each in more)})")

    def _repr_html_(self) -> str:
        """Show jobs, cluster and what is said beside them as a table in a notebook."""
        more = {str(each): each.phrase for each in Feature if each in self.features}
        jobs = f"{len(self.workload)} from {cut(self.workload.source, COLUMNS)}"
        return html_table({"jobs": jobs, "cluster": cut(repr(self.cluster), COLUMNS), **more})

    @property
    def restarts(self) -> bool:
        """True if a job that is preempted loses its work and starts from the beginning."""
        return self.preemption is Preemption.RESTART

    @property
    def all_complete(self) -> bool:
        """True if every job has to be complete at the end: no window of jobs ends the run, nobody stopped it."""
        return self.until_complete is None and self.stopped_s is None

    def select(self, keep: NDArray[Any]) -> Instance:
        """The jobs of a mask, or of rows in increasing order, with all that is said of them."""
        fields: dict[str, Any] = {"workload": self.workload.select(keep)}
        for each in self.present:
            fields |= each.select(each.of(self), keep)
        return replace(self, **fields)

    @classmethod
    def feasible(
        cls, cluster: Cluster, workload: Workload, sensitivity: Sensitivity | None = None
    ) -> tuple[Instance, NDArray[np.object_]]:
        """The instance without the jobs that can never run, and their ids."""
        workload = workload.on_allowed_types(cluster)
        can_run = _can_run(cluster, workload)
        if cluster.quotas is not None:
            can_run = can_run & within_quotas(cluster.quotas, workload, workload.held_gpus)
        of_nodes = capacities if sensitivity is None else grant_capacities
        can_run = can_run & has_room(cluster, workload, of_nodes(cluster))
        names = workload.id[~can_run]
        if len(names):
            workload = workload.select(can_run)
            sensitivity = None if sensitivity is None else sensitivity.select(can_run)
        return cls(cluster, workload, sensitivity=sensitivity), names

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """Effects of its terms on runs: rates, factors in the order of their product, and fields."""
        declared = (each for each in self.declared if isinstance(each, SlowingTerm))
        course = () if self.course is None else (self.course.effect(self.cluster, self.workload),)
        return (
            *(effect for term in self.present for effect in term.effects(term.of(self), self)),
            *course,
            *(DeclaredFactor(term, self.cluster, self.workload) for term in declared),
        )

    @cached_property
    def course(self) -> CourseTerm | None:
        """Term by which jobs go through their work, where that follows from no run time."""
        return next((each for each in self.declared if isinstance(each, CourseTerm)), None)

    @cached_property
    def undelayed(self) -> Instance:
        """The first of :attr:`relaxations`."""
        return self.relaxations[0]

    @cached_property
    def relaxations(self) -> tuple[Instance, ...]:
        """Instances without declared terms, of which each bound from below is one of this.

        This one without them where they only delay; those of least times on each number of GPUs where they say how
        jobs go through their work.
        """
        if not self.declared:
            return (self,)
        several = ({},) if self.course is None else self.course.relaxed(self.cluster, self.workload)
        return tuple(replace(self, declared=(), **fields) for fields in several)

    @cached_property
    def asked_cpu_memory(self) -> AskedCpuMemory | None:
        """CPUs and memory of nodes and jobs, by default with profiles; None if nobody asks, or copies hold nodes."""
        if self.copies is not None or not self.workload.asking.any():
            return None
        if Feature.PROFILES in self.features:
            return AskedCpuMemory.by_default(self.cluster, self.workload)
        shared = self.sharing_rates is not None
        return AskedCpuMemory.of(self.cluster, self.workload, shared=shared)

    @cached_property
    def pools(self) -> Pools:
        """Pools of GPUs that are alike to the jobs."""
        return Pools.of(self)

    @cached_property
    def processing_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on every GPU type, shape (n, types), infinite where impossible.

        Under the best of what its terms say: with job graphs if each iteration took alpha_min.
        """
        times = self.plain_processing_s
        for term in self.present:
            if (least_s := term.least_s(term.of(self), self)) is not None:
                times = np.repeat(least_s[:, None], len(self.cluster.gpu_types), axis=1)
        if any(each.varies for each in self.present):
            times = np.maximum(up_to_grid(times / self.best_speed[:, None]), TICK_S)
        times.flags.writeable = False
        return times

    @cached_property
    def best_speed(self) -> NDArray[np.float64]:
        """Largest product of factors on the speed of every job, shape (n,)."""
        best = np.ones(len(self.workload))
        for term in self.present:
            if (speed := term.best_speed(term.of(self), self)) is not None:
                best = best * speed
        return best

    @cached_property
    def plain_processing_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on every GPU type at speed 1, whatever its terms say."""
        times = self.workload.processing_s(self.cluster)
        times.flags.writeable = False
        return times

    @cached_property
    def shortest_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on its fastest GPU type, shape (n,)."""
        times: NDArray[np.float64] = self.processing_s.min(axis=1)
        times.flags.writeable = False
        return times

    @cached_property
    def has_small_types(self) -> bool:
        """True if a job has a rate on a GPU type of the cluster with fewer GPUs than its gang, where it cannot run.

        A rate is that of the whole gang, of which there are not enough GPUs. Copies of a job have no gang.
        """
        jobs, cluster = self.workload, self.cluster
        if jobs.throughput is None or self.copies is not None:
            return False
        rates = jobs.throughput[:, [jobs.gpu_types.index(name) for name in cluster.gpu_types]]
        return bool(((rates > 0) & (jobs.gpus[:, None] > cluster.gpus_per_type)).any())

    @cached_property
    def equal_speeds(self) -> bool:
        """True if each job takes equal time wherever it runs; never where a term lets runs differ by more than type."""
        slowed = any(isinstance(each, SlowingTerm) for each in self.declared)
        varies = slowed or any(each.varies for each in self.present)
        varies = varies or self.course is not None
        return not varies and bool(np.all(self.processing_s == self.processing_s[:, :1]))

    @cached_property
    def shared_runs(self) -> SharedRuns:
        """Run times of jobs that share GPUs."""
        jobs, rates = self.workload, self.pair_rates
        # Parts of GPUs and cores are shared otherwise than by a pair.
        kind = np.where(jobs.on_whole_gpus, rates.rows(jobs.model, jobs.gpus), 0)
        work = jobs.work if self.graphs is None else self.shortest_s
        return SharedRuns(rates, kind, jobs.gpus, work, self.processing_s)

    @cached_property
    def pair_rates(self) -> SharingRates:
        """Rates of kinds that share GPUs, on the cluster's types."""
        return SharingRates.of(self.sharing_rates, self.cluster.gpu_types)


def _can_run(cluster: Cluster, workload: Workload) -> NDArray[np.bool_]:
    finite: NDArray[np.bool_] = np.isfinite(workload.processing_s(cluster))
    able: NDArray[np.bool_] = np.logical_or.reduce(finite, axis=1)
    return able


@dataclass(frozen=True, eq=False, repr=False)
class Pools(Brief):
    """The pools of an instance.

    Parameters
    ----------
    names : tuple of str
        GPU types, or a single name for all.
    gpus : ndarray of int, shape (pools,)
    price_per_gpu_h : ndarray, shape (pools,)
        Mean price of a GPU [$/h]; 0 where unknown.
    """

    names: tuple[str, ...]
    gpus: NDArray[np.int64]
    price_per_gpu_h: NDArray[np.float64]

    @classmethod
    def of(cls, instance: Instance) -> Pools:
        """GPU types if the workload has throughputs, else one pool; O(nodes)."""
        cluster = instance.cluster
        names: tuple[str, ...]
        if instance.workload.throughput is None:
            names, gpus = (ANY_TYPE,), np.array([cluster.total_gpus], dtype=np.int64)
            pool = np.zeros(len(cluster.nodes), dtype=np.int64)
        else:
            names, gpus, pool = cluster.gpu_types, cluster.gpus_per_type, cluster.type_of_node
        prices = np.bincount(pool, [node.price_per_hour for node in cluster.nodes], len(names))
        return cls(names, gpus, np.asarray(prices / gpus))


def pool_throughput(instance: Instance, jobs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Work a second of whole gangs on each pool, 0 where they cannot run; shape (jobs, pools).

    Without throughputs, 1 a second; job graphs are not looked at.
    """
    workload = instance.workload
    if workload.throughput is None:
        return np.ones((len(jobs), 1))
    columns = [workload.gpu_types.index(name) for name in instance.cluster.gpu_types]
    rates = workload.throughput[jobs][:, columns]
    return np.where(np.isfinite(instance.processing_s[jobs]), rates, 0.0)
