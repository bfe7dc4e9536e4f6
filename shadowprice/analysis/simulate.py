"""One call from a workload to a verified outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, run
from shadowprice.execution.presets.preset import Recipe
from shadowprice.execution.presets.registry import preset as find_preset
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance, Overheads
from shadowprice.instances.network import Network
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.throughputs import Throughputs
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_graphs import TrainingSetting, workload_graphs
from shadowprice.solvers import registry
from shadowprice.solvers.gittins2d import ServiceDistribution
from shadowprice.solvers.graph_placement.registry import graph_placements
from shadowprice.solvers.policy import Policy


@dataclass(frozen=True)
class Semantics:
    """The switches of a run; every one has a name and a clean default.

    Parameters
    ----------
    preset : str, optional
        A published simulator whose policy names and semantics to use; None for the clean ones.
    placement : str, optional
        Which nodes a gang gets; by default ``count``, or what the preset does.
    round_s : float, optional
        Seconds between decisions; 0 for a decision at every event, None for the preset's.
    first_round_s : float, optional
        Time of the first round boundary [s]; None for the preset's, or 0.
    overheads : Overheads, optional
        Start, restart and migration charges; None for the preset's, or none.
    samples : ServiceDistribution, optional
        A sample of service times, for policies that need one.
    seed : int
        Seed of policies that draw random numbers.
    together : Throughputs, optional
        Rates of pairs of jobs that share GPUs, for policies that let them.
    predictor : str, optional
        Predictor of iterations, for policies that take one: ``forest``, ``noisy:2`` ...
    network : Network, optional
        Bandwidths; given, every job gets the graph of its model, its work counts iterations, and
        ``placement`` may name a placement of job graphs.
    training : TrainingSetting, optional
        How the models are trained, for their graphs.
    """

    preset: str | None = None
    placement: str | None = None
    round_s: float | None = None
    first_round_s: float | None = None
    overheads: Overheads | None = None
    samples: ServiceDistribution | None = None
    seed: int = 0
    together: Throughputs | None = None
    predictor: str | None = None
    network: Network | None = None
    training: TrainingSetting | None = None

    def recipe(self, workload: Workload, policy: str | Policy) -> Recipe:
        """All switches settled for one policy."""
        if self.preset is None:
            chosen = registry.policy(policy) if isinstance(policy, str) else policy
            of_graphs = self.placement in graph_placements()
            wanted = {
                "predictor": self.predictor,
                "placement": self.placement if of_graphs else None,
            }
            chosen = _with(chosen, {name: value for name, value in wanted.items() if value})
            of_gpus = "count" if of_graphs or self.placement is None else self.placement
            recipe = Recipe(workload, chosen, registry.placement(of_gpus))
        elif isinstance(policy, str):
            found = find_preset(self.preset)
            recipe = found.recipe(policy, workload, self.placement, self.samples)
        else:
            raise InputError(
                f"preset {self.preset}: takes the name of one of its policies, got {policy!r}"
            )
        length_s = recipe.rounds.length_s if self.round_s is None else self.round_s
        first_s = recipe.rounds.first_s if self.first_round_s is None else self.first_round_s
        overheads = recipe.overheads if self.overheads is None else self.overheads
        return replace(recipe, rounds=Rounds(length_s, first_s), overheads=overheads)


def _with(policy: Policy, wanted: Mapping[str, str]) -> Policy:
    """A policy with some of its parameters set; one that has no such parameter is refused."""
    takes: set[str] = {field.name for field in fields(policy)} if is_dataclass(policy) else set()
    for name, value in wanted.items():
        if name not in takes:
            what = f"{name} of job graphs" if name == "placement" else name
            raise InputError(f"policy {policy.name!r} takes no {what}, got {value!r}")
    changed: Any = replace(cast(Any, policy), **wanted) if wanted else policy
    return cast(Policy, changed)


def simulate(
    workload: Workload,
    cluster: Cluster | str | Path,
    policy: str | Policy = "srtf",
    semantics: Semantics | None = None,
    *,
    drop_infeasible: bool = False,
) -> Outcome:
    """Run a policy over a workload and verify the schedule.

    Parameters
    ----------
    cluster : Cluster or str or Path
        A cluster, its short notation (``16x4``), or a TOML file.
    policy : str or Policy
        A policy's name, with parameters after a colon, or a policy of your own.
    semantics : Semantics, optional
        Placement, rounds, overheads, preset.
    drop_infeasible : bool
        Leave out jobs that can never run, instead of refusing; they are listed in the outcome.

    Returns
    -------
    Outcome
        Verified; its costs, frames and plots are computed from the checked schedule.

    Raises
    ------
    InputError
        If a name is unknown or a job can never fit.
    PolicyError, VerificationError
        If the policy decides something impossible, or its schedule breaks a rule.

    Examples
    --------
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[10, 1])
    >>> sp.simulate(jobs, "1x1", "srtf").summary()["avg_jct_s"]
    6.0
    """
    chosen = semantics or Semantics()
    where = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
    dropped: list[str] = []
    if drop_infeasible:
        feasible, names = Instance.feasible(where, workload)
        workload, dropped = feasible.workload, names.tolist()
    own = _own_loop(chosen, policy)
    if own is not None:
        return _by_own_loop(
            own, Instance(where, workload, together=chosen.together), str(policy), chosen, dropped
        )
    recipe = chosen.recipe(workload, policy)
    graphs = None
    if chosen.network is not None:
        graphs = workload_graphs(recipe.workload, chosen.network, chosen.training)
    instance = Instance(where, recipe.workload, recipe.overheads, chosen.together, graphs)
    result = run(instance, recipe.policy, placement=recipe.placement, rounds=recipe.rounds)
    settings = {
        "preset": chosen.preset,
        "placement": recipe.placement.name,
        "round_s": recipe.rounds.length_s,
        "first_round_s": recipe.rounds.first_s,
        "seed": chosen.seed,
        "preemptive": recipe.policy.preemptive,
        "dropped": dropped,
    }
    name = policy if isinstance(policy, str) else policy.name
    return Outcome.verified(
        instance,
        result.schedule,
        policy=name,
        settings=settings,
        decisions=result.decisions,
        cpu_s=result.cpu_s,
    )


OwnLoop = Callable[[Instance, int], Schedule]


def _own_loop(chosen: Semantics, policy: str | Policy) -> OwnLoop | None:
    if chosen.preset is None or not isinstance(policy, str):
        return None
    return find_preset(chosen.preset).loop(policy)


def _by_own_loop(
    loop: OwnLoop, instance: Instance, policy: str, chosen: Semantics, dropped: list[str]
) -> Outcome:
    """Run a preset whose peer has a loop of its own; its switches cannot be changed."""
    fixed = Semantics(preset=chosen.preset, seed=chosen.seed, together=chosen.together)
    if chosen != fixed:
        raise InputError(
            f"preset {chosen.preset}: runs in its own loop, with its own rounds, placement and charges"
        )
    began = time.process_time()
    schedule = loop(instance, chosen.seed)
    cpu_s = time.process_time() - began
    settings = {
        "preset": chosen.preset,
        "seed": chosen.seed,
        "preemptive": True,
        "dropped": dropped,
    }
    return Outcome.verified(instance, schedule, policy=policy, settings=settings, cpu_s=cpu_s)
