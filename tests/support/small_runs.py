"""Runs of policies on small worlds, by the switches that a user has for what a world says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import PreparedRun, prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute, simulate
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.simulator import HasSimulator
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.failures import Failures
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.speeds.model_skew import ModelSkew, ModelSkews
from shadowprice.instances.speeds.sensitivity import Sensitivity
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Policy
from support.horizons import ended
from support.small_instances import (
    cluster_of,
    failures_of,
    graphs_of,
    instance_of,
    overheads_of,
    pairs_of,
    racks_of,
    speeds_of,
    workload_of,
)
from support.small_worlds import World


def _kept(every: Workload, some: Workload) -> NDArray[np.bool_]:
    return np.isin(every.id, some.id)


@dataclass(frozen=True)
class _Profiles:
    """Profiles of a world's jobs, where the package has those of models."""

    every: Workload
    sensitivity: Sensitivity

    def of(self, workload: Workload, cluster: Cluster) -> Sensitivity:
        del cluster
        return self.sensitivity.select(_kept(self.every, workload))


@dataclass(frozen=True)
class _Widths:
    """Widths of a world's jobs, where the package has a rule for them."""

    every: Workload
    elasticity: Elasticity

    def of(self, workload: Workload, cluster: Cluster) -> Elasticity:
        del cluster
        return self.elasticity.select(_kept(self.every, workload))


@dataclass(frozen=True)
class _Graphs:
    """Graphs of a world's jobs, where the package has those of names."""

    every: Workload
    graphs: JobGraphs
    source: str = "graphs"

    def on(self, workload: Workload, network: Network) -> JobGraphs:
        del network
        return self.graphs.select(_kept(self.every, workload))


@dataclass(frozen=True)
class _Faults:
    """Downtimes of a world's nodes."""

    failures: NodeFailures
    name: str = "of the world"

    def of(
        self, cluster: Cluster, checkpoints: Checkpointing, known_until_s: float
    ) -> NodeFailures:
        del cluster, checkpoints, known_until_s
        return self.failures


def semantics_of(world: World) -> RunOptions:
    """The switches that say what a world says beside its nodes and jobs."""
    every, graphs, failures = workload_of(world), graphs_of(world), failures_of(world)
    speeds = speeds_of(world)
    sensitivity, elasticity = speeds.get("sensitivity"), speeds.get("elasticity")
    skews = None
    if "spread" in world.features:
        skews = ModelSkews({job.model: ModelSkew(0.5, float(job.spread)) for job in world.jobs})
    given: dict[str, object] = {
        "sharing_rates": pairs_of(world),
        "network": None if graphs is None else graphs.network,
        "graphs": None if graphs is None else _Graphs(every, graphs),
        "profiles": None if sensitivity is None else _Profiles(every, sensitivity),
        "skews": skews,
        "growth": None if elasticity is None else _Widths(every, elasticity),
        "until_complete": None if world.window is None else JobWindow(*world.window),
        "failures": None if failures is None else Failures(_Faults(failures)),
        "preemption": Preemption.RESTART if world.restarts else Preemption.RESUME,
        "declared": racks_of(world),
    }
    if any(world.charges):
        given["overheads"] = overheads_of(world)
    return RunOptions(**given)  # type: ignore[arg-type]


def prepared(world: World, policy: str | Policy | HasSimulator) -> PreparedRun:
    """A run of a policy, before it begins."""
    return prepare_run(workload_of(world), cluster_of(world), policy, semantics_of(world))


def outcome_on(world: World, policy: str | Policy | HasSimulator) -> Outcome:
    """The verified run of a policy, until the time at which it was stopped, if it was."""
    if world.copies is not None:
        rules = world.copies
        charges = float(rules.restart_s), float(rules.averaging_s)
        policy = HadarE("first-come", float(rules.round_s), *charges, rules.most)
    if world.window is not None:
        done = simulate(workload_of(world), cluster_of(world), policy, semantics_of(world))
    else:
        done = execute(prepared(world, policy))
    if world.stopped is None:
        return done
    instance = replace(instance_of(world), failures=done.instance.failures)
    return Outcome.verified(instance, ended(instance, done.schedule), policy=done.policy)
