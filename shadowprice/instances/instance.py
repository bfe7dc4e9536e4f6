"""An instance: everything that is given to a scheduler and to its verifier, and its pools of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import COLUMNS, Brief, cut, html_table, screen
from shadowprice.errors import EarlyEndError, InfeasibleJobError, InputError
from shadowprice.instances.allocation_problem import Pairs
from shadowprice.instances.cluster import ANY_TYPE, CORES, Cluster
from shadowprice.instances.clusters.amounts import (
    CountedCapacity,
    FixedAmounts,
    capacities,
    default_amounts,
    expect_amounts,
    expect_whole_nodes,
    grant_capacities,
    has_room,
)
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.copies import CopyRules, total_steps
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.features import Feature, expect_together
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.grid import MAX_TOTAL_S, TICK_S, check_seconds, up_to_grid
from shadowprice.instances.speeds.conditions import Conditions, fewest_nodes, on_whole_gpus
from shadowprice.instances.speeds.sharing import SharedRuns, SharingRates
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.steady_state.job_window import JobWindow
from shadowprice.instances.terms.declared import (
    DeclaredFactor,
    DeclaredTerm,
    SlowingTerm,
    expect_declared,
)
from shadowprice.instances.terms.graphs import GraphsTerm
from shadowprice.instances.terms.parts import PartsTerm
from shadowprice.instances.terms.profiles import ProfilesTerm
from shadowprice.instances.terms.sharing import SharedGraphsTerm, SharingTerm
from shadowprice.instances.terms.spread import SpreadTerm
from shadowprice.instances.terms.term import Term
from shadowprice.instances.terms.widths import WidthsTerm
from shadowprice.instances.workload import Workload


@dataclass(frozen=True, slots=True, repr=False)
class Overheads(Brief):
    """Time a gang holds its GPUs without progress, owed when a run begins and paid first.

    A job that is preempted before it has paid still owes the rest: what is owed adds up, so that
    the run time of a job is exactly its processing time plus all that was charged.

    Parameters
    ----------
    start_s : float
        Charged for every run of a job, the first included [s].
    restart_s : float
        Charged in addition when a job resumes after a preemption [s]: checkpoint and restore.
    migration_s : float
        Charged in addition when it resumes on other GPUs than it had before, counted by node [s].
    restart_by_gpus : tuple of (int, float)
        Restart charges by gang size instead of ``restart_s``: pairs (largest gang, seconds) in
        increasing order; a gang larger than all pays the last.
    """

    start_s: float = 0.0
    restart_s: float = 0.0
    migration_s: float = 0.0
    restart_by_gpus: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        steps = [(f"restart_by_gpus up to {gpus}", cost) for gpus, cost in self.restart_by_gpus]
        for name, value in [
            ("start_s", self.start_s),
            ("restart_s", self.restart_s),
            ("migration_s", self.migration_s),
            *steps,
        ]:
            check_seconds(f"overheads: {name}", value, zero=True)
        limits = [gpus for gpus, _ in self.restart_by_gpus]
        if limits != sorted(set(limits)):
            raise InputError(
                f"overheads: restart_by_gpus has limits {limits}, expected increasing ones"
            )

    @property
    def free(self) -> bool:
        """True if nothing is ever charged."""
        return self == Overheads()

    def restart_charge_s(self, gpus: int) -> float:
        """Charge for resuming a gang [s], without start and migration."""
        for limit, cost in self.restart_by_gpus:
            if gpus <= limit:
                return cost
        return self.restart_by_gpus[-1][1] if self.restart_by_gpus else self.restart_s


@dataclass(frozen=True, repr=False)
class Instance:
    """A cluster, a workload and the overheads of moving jobs about.

    Parameters
    ----------
    cluster, workload, overheads
        What runs where, and what moving costs. Jobs that may run on some GPU types only have rates
        of 0 on the others (:meth:`Workload.on_allowed_types`). A rate is that of the whole gang on a type: it
        counts only where the type has as many GPUs as the gang.
    pair_throughputs : Throughputs, optional
        Rates of two jobs that share their GPUs, by model, gang size and GPU type, in units of
        their work a second, with graphs against 1 alone; those that were not measured cannot share. Nobody shares
        without it.
    graphs : JobGraphs, optional
        Stages of every job, whose ``work`` then counts iterations: a run takes as long as where its
        replicas are makes them. All GPUs are of one speed.
    conditions : Conditions, optional
        CPUs and memory, spreading and width, on which speeds depend.
    copies : CopyRules, optional
        Rules under which jobs run as several copies, each on a whole node, instead of one gang; not
        with overheads, since copies have charges of their own.
    until_complete : JobWindow, optional
        Jobs whose completion ends the run: those outside the window need not be complete then.
    failures : NodeFailures, optional
        When nodes are down, and what jobs save of their work by then; of copies what was averaged, so
        that these write no checkpoints. Not with profiles by CPUs and memory; where there are rates of jobs
        that share GPUs, none may do so.
    stopped_s : float, optional
        Time at which the run was stopped before its end [s]: no job need be complete, and nothing goes
        on after it. A window of jobs ends the run where it is complete earlier.
    preemption : Preemption
        Whether a job that is preempted keeps its work. With ``RESTART`` not with rates of jobs that share GPUs or
        profiles by CPUs and memory, where runs are cut that go on, nor with nodes that fail.
    declared : tuple of DeclaredTerm
        What else holds or slows runs.

    Raises
    ------
    InputError
        If there are two of these that do not go together, the graphs or conditions are not those of
        the jobs, copies would share work that is not a whole number of steps, the window has jobs
        that the workload does not have, or a node fails that the cluster does not have.
    InfeasibleJobError
        If a job fits no GPU type of the cluster, or no nodes have the CPUs and memory that it asks for; see
        :meth:`feasible` for dropping such jobs.
    """

    cluster: Cluster
    workload: Workload
    overheads: Overheads = field(default_factory=Overheads)
    pair_throughputs: Throughputs | None = None
    graphs: JobGraphs | None = None
    conditions: Conditions | None = None
    copies: CopyRules | None = None
    until_complete: JobWindow | None = None
    failures: NodeFailures | None = None
    stopped_s: float | None = None
    preemption: Preemption = Preemption.RESUME
    declared: tuple[DeclaredTerm, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "workload", self.workload.on_allowed_types(self.cluster))
        object.__setattr__(self, "preemption", Preemption.parse(self.preemption))
        if self.until_complete is not None:
            self._check_window(self.until_complete)
        if self.stopped_s is not None:
            check_seconds("stopped_s", self.stopped_s, zero=True)
        expect_together(self.features, self.workload.source)
        expect_declared(self.declared, self.cluster, self.workload)
        if self.graphs is not None:
            self._check_graphs(self.graphs)
        if self.conditions is not None:
            self.conditions.check(self.cluster, self.workload)
        if self.copies is not None:
            total_steps(self.workload)
        if self.failures is not None:
            self.failures.check(self.cluster)
            if self.copies is not None:
                who = f"{self.workload.source}: jobs run as copies"
                self.failures.checkpoints.expect_none(who, "what was averaged is saved")
            if self.restarts:
                who = f"{self.workload.source}: jobs restart from nothing when preempted"
                self.failures.checkpoints.expect_none(who, "they keep nothing of a run")
        if self.cluster.quotas is not None:
            self._check_quotas(self.cluster.quotas)
        if Feature.AMOUNTS in self.features and self.copies is None:
            expect_amounts(self.cluster, self.workload, _capacities(self.cluster, self.conditions))
        elif Feature.AMOUNTS in self.features:
            expect_whole_nodes(self.cluster, self.workload)
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

    def _check_graphs(self, graphs: JobGraphs) -> None:
        graphs.check(self.cluster, self.workload)
        if self.pair_throughputs is not None:
            self.pair_throughputs.expect_relative()

    def _check_quotas(self, quotas: Quotas) -> None:
        jobs = self.workload
        needs = jobs.held_gpus if self.copies is None else _smallest_nodes(self.cluster, jobs)
        able, known = _within_quotas(quotas, jobs, needs), np.isin(jobs.tenant, quotas.tenants)
        if not able.all():
            job = int((~able).argmax())
            tenant = jobs.tenant[job]
            why = (
                f"more than any later quota of {tenant!r}"
                if known[job]
                else "no tenant with a quota"
            )
            what, leave = "", "drop infeasible jobs"
            if self.copies is not None:
                what, leave = "a node of ", "leave such jobs out"
            raise InfeasibleJobError(
                f"{jobs.source}: job {jobs.id[job]!r} of tenant {tenant!r} needs {what}{needs[job]:g} GPUs: "
                f"{why} ({int((~able).sum())} such jobs); {leave}, or give other quotas"
            )

    def _check_window(self, window: JobWindow) -> None:
        if window.last > len(self.workload):
            raise EarlyEndError(
                f"{self.workload.source}: has {len(self.workload)} jobs, jobs {window.first} to "
                f"{window.last - 1} are to be complete; expected a longer trace, or an endless one"
            )

    @cached_property
    def features(self) -> frozenset[Feature]:
        """All that the instance says beyond nodes and jobs; O(jobs + nodes), once."""
        declared = {each.feature for each in self.declared}
        return frozenset(each for each, has in _HAS.items() if has(self)) | declared

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

    def select(self, keep: NDArray[np.bool_]) -> Instance:
        """The jobs of a mask, with all that is said of them."""
        return replace(
            self,
            workload=self.workload.select(keep),
            graphs=None if self.graphs is None else self.graphs.select(keep),
            conditions=None if self.conditions is None else self.conditions.select(keep),
        )

    @classmethod
    def feasible(
        cls,
        cluster: Cluster,
        workload: Workload,
        overheads: Overheads | None = None,
        pair_throughputs: Throughputs | None = None,
        graphs: JobGraphs | None = None,
        conditions: Conditions | None = None,
    ) -> tuple[Instance, NDArray[np.object_]]:
        """The instance without the jobs that can never run, and their ids."""
        workload = workload.on_allowed_types(cluster)
        can_run = _can_run(cluster, workload)
        if cluster.quotas is not None:
            can_run = can_run & _within_quotas(cluster.quotas, workload, workload.held_gpus)
        can_run = can_run & has_room(cluster, workload, _capacities(cluster, conditions))
        if not can_run.all():
            workload, names = workload.select(can_run), workload.id[~can_run]
            graphs = None if graphs is None else graphs.select(can_run)
            conditions = None if conditions is None else conditions.select(can_run)
        else:
            names = workload.id[:0]
        charges = overheads or Overheads()
        return cls(cluster, workload, charges, pair_throughputs, graphs, conditions), names

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Terms by which its jobs run: rates, then factors in the order of their product, then the rest."""
        jobs, types = self.workload, self.cluster.type_of_node.tolist()
        terms: list[Term] = []
        if self.graphs is not None:
            terms.append(GraphsTerm(self.graphs, jobs.work.tolist()))
        if self.pair_throughputs is not None and self.graphs is not None:
            terms.append(SharedGraphsTerm(self.shared_runs.one_rate, types))
        elif self.pair_throughputs is not None:
            terms.append(SharingTerm(self.shared_s, types))
        parts = self.conditions
        if parts is not None and parts.sensitivity is not None:
            default = default_amounts(self.cluster, jobs).tolist()
            part = (jobs.held_gpus / jobs.gpus).tolist()
            terms.append(ProfilesTerm(parts.sensitivity, default, part))
        if parts is not None and parts.locality is not None:
            fewest = fewest_nodes(self.cluster).tolist()
            terms.append(SpreadTerm(parts.locality.of(jobs).tolist(), fewest))
        if parts is not None and parts.elasticity is not None:
            terms.append(WidthsTerm(parts.elasticity, jobs.gpus.tolist()))
        for each in self.declared:
            if isinstance(each, SlowingTerm):
                terms.append(DeclaredFactor(each, self.cluster, jobs))
        if Feature.PARTS in self.features:
            terms.append(PartsTerm())
        return tuple(terms)

    @property
    def undelayed(self) -> Instance:
        """The instance without its declared terms, which only delay: a bound of it from below is one of this."""
        return replace(self, declared=()) if self.declared else self

    @cached_property
    def fixed_amounts(self) -> FixedAmounts | None:
        """CPUs and memory of nodes and jobs, by default with profiles; None if nobody asks, or copies hold nodes."""
        if self.copies is not None or not self.workload.asking.any():
            return None
        if Feature.PROFILES in self.features:
            return FixedAmounts.by_default(self.cluster, self.workload)
        shared = self.pair_throughputs is not None
        return FixedAmounts.of(self.cluster, self.workload, shared=shared)

    @cached_property
    def pools(self) -> Pools:
        """Pools of GPUs that are alike to the jobs."""
        return Pools.of(self)

    @cached_property
    def processing_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on every GPU type, shape (n, types), infinite where impossible.

        With job graphs, of every job if each iteration took alpha_min; with conditions, under the
        best.
        """
        times = self.plain_processing_s
        if self.graphs is not None:
            shortest = self.graphs.shortest_s(self.workload)
            times = np.repeat(shortest[:, None], len(self.cluster.gpu_types), axis=1)
        if self.conditions is not None:
            best = self.conditions.best(self.workload)[:, None]
            times = np.maximum(up_to_grid(times / best), TICK_S)
        times.flags.writeable = False
        return times

    @cached_property
    def plain_processing_s(self) -> NDArray[np.float64]:
        """Run time [s] of every job on every GPU type at speed 1, whatever the conditions."""
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
        """True if each job takes equal time wherever it runs; never with graphs, conditions or what slows runs."""
        slowed = any(isinstance(each, SlowingTerm) for each in self.declared)
        always = self.graphs is None and self.conditions is None and not slowed
        return always and bool(np.all(self.processing_s == self.processing_s[:, :1]))

    def shared_processing_s(
        self, job: ArrayLike, partner: ArrayLike, gpu_type: ArrayLike
    ) -> NDArray[np.float64]:
        """Run time [s] of whole jobs that share their GPUs with a partner from start to end.

        Parameters
        ----------
        job, partner : array_like of int
            Rows in the workload.
        gpu_type : array_like of int
            Positions in the cluster's GPU types; the three are broadcast against each other.

        Returns
        -------
        ndarray
            Infinity where the two cannot share: unequal gangs, a job with itself, no measured
            rate or a rate of 0 for either, or a type on which one of them cannot run alone.
        """
        return self.shared_runs.run_s(job, partner, gpu_type)

    def shared_s(self, job: int, partner: int, gpu_type: int) -> float:
        """One entry of :meth:`shared_processing_s`, faster than an array of one."""
        return self.shared_runs.one_run_s(job, partner, gpu_type)

    @cached_property
    def shared_runs(self) -> SharedRuns:
        """Run times of jobs that share GPUs."""
        jobs, rates = self.workload, self.pair_rates
        # Parts of GPUs and cores are shared otherwise than by a pair.
        kind = np.where(on_whole_gpus(jobs), rates.rows(jobs.model, jobs.gpus), 0)
        work = jobs.work if self.graphs is None else self.shortest_s
        return SharedRuns(rates, kind, jobs.gpus, work, self.processing_s)

    @cached_property
    def pair_rates(self) -> SharingRates:
        """Rates of kinds that share GPUs, on the cluster's types."""
        return SharingRates.of(self.pair_throughputs, self.cluster.gpu_types)


_HAS: Mapping[Feature, Callable[[Instance], bool]] = MappingProxyType(
    {
        Feature.RATES: lambda i: i.workload.throughput is not None,
        Feature.TYPES: lambda i: i.workload.throughput is not None and len(i.cluster.gpu_types) > 1,
        Feature.CHARGES: lambda i: not i.overheads.free,
        Feature.SHARING: lambda i: i.pair_throughputs is not None,
        Feature.GRAPHS: lambda i: i.graphs is not None,
        Feature.PROFILES: lambda i: (
            i.conditions is not None and i.conditions.sensitivity is not None
        ),
        Feature.SPREAD: lambda i: i.conditions is not None and i.conditions.locality is not None,
        Feature.WIDTHS: lambda i: i.conditions is not None and i.conditions.elasticity is not None,
        Feature.COPIES: lambda i: i.copies is not None,
        Feature.FAILURES: lambda i: i.failures is not None,
        Feature.QUOTAS: lambda i: i.cluster.quotas is not None,
        Feature.PARTS: lambda i: bool(i.workload.fractional.any()),
        Feature.CORES: lambda i: bool(i.workload.on_cores.any()),
        Feature.AMOUNTS: lambda i: bool(i.workload.asking.any()),
        Feature.WINDOW: lambda i: i.until_complete is not None,
        Feature.STOPPED: lambda i: i.stopped_s is not None,
        Feature.RESTART: lambda i: i.restarts,
    }
)


def _capacities(cluster: Cluster, conditions: Conditions | None) -> tuple[CountedCapacity, ...]:
    """CPUs and memory of every node: where profiles say how fast runs are with them these are given some."""
    by_profiles = conditions is not None and conditions.sensitivity is not None
    return grant_capacities(cluster) if by_profiles else capacities(cluster)


def _smallest_nodes(cluster: Cluster, workload: Workload) -> NDArray[np.float64]:
    """GPUs of the smallest node on which a copy of each job can run, shape (n,)."""
    size = cluster.gpus_per_node.astype(np.float64)
    if workload.throughput is None:
        return np.full(len(workload), size.min())
    columns = [workload.gpu_types.index(node.gpu_type) for node in cluster.nodes]
    found: NDArray[np.float64] = np.where(workload.throughput[:, columns] > 0, size, np.inf).min(
        axis=1
    )
    return found


def _within_quotas(
    quotas: Quotas, workload: Workload, needs: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """True for jobs whose need fits some quota of their tenants on the day they arrive or later, or hold cores."""
    gpus = np.array(quotas.gpus, dtype=np.int64)
    later = np.maximum.accumulate(gpus[::-1], axis=0)[::-1]
    period = np.searchsorted(quotas.start_s, workload.arrival_s, side="right") - 1
    place = {name: k for k, name in enumerate(quotas.tenants)}
    tenant = np.array([place.get(name, -1) for name in workload.tenant.tolist()], dtype=np.int64)
    able: NDArray[np.bool_] = (tenant >= 0) & (needs <= later[period, tenant])
    return able | workload.on_cores


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


def sharing_pairs(instance: Instance, jobs: NDArray[np.int64]) -> Pairs:
    """All pairs of these jobs that may share GPUs of some pool, by position among them; O(jobs^2)."""
    pools = len(instance.pools.names)
    return (
        Pairs.none(pools)
        if instance.pair_throughputs is None
        else instance.shared_runs.pairs(jobs, pools)
    )
