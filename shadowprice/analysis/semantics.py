"""The switches of a run, and what they settle for a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds
from shadowprice.execution.presets.preset import RunSetup
from shadowprice.execution.presets.registry import preset as find_preset
from shadowprice.solvers import registry
from shadowprice.solvers.graph_placement.registry import graph_placements

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.graphs.generated_graphs import TrainingSetting
    from shadowprice.instances.graphs.network import Network
    from shadowprice.instances.instance import Overheads
    from shadowprice.instances.speeds.conditions import Conditions
    from shadowprice.instances.speeds.elasticity import Growth
    from shadowprice.instances.speeds.interference import Interference
    from shadowprice.instances.speeds.model_skew import ModelSkews
    from shadowprice.instances.speeds.profiles import Profiles
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.placement.protocol import Placement
    from shadowprice.solvers.policy import Policy
    from shadowprice.solvers.tiresias.gittins2d import ServiceDistribution


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
        A sample of service times, for presets that need one, and for ``gittins2d`` instead of the
        workload's own.
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
    profiles : Profiles, optional
        Speeds of models by CPUs and memory, which are then handed out beside GPUs; the cluster
        must say how many its nodes have.
    skews : ModelSkews, optional
        How much slower models are when their gangs are spread over nodes, and how skewed they
        are for placement ``skew``.
    growth : Growth, optional
        How many more GPUs jobs may hold than their gang, for policies that widen them.
    interference : Interference, optional
        Rates of jobs that share GPUs by how busy they keep them, instead of ``together``.
    prices : bool
        Whether to keep the prices over time, of policies that set some.
    local_sgd : bool
        Whether to train a small model for every job as its copies do, with ``hadare`` only.
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
    profiles: Profiles | None = None
    skews: ModelSkews | None = None
    growth: Growth | None = None
    interference: Interference | None = None
    prices: bool = False
    local_sgd: bool = False

    def recipe(
        self, workload: Workload, policy: str | Policy, cluster: Cluster | None = None
    ) -> RunSetup:
        """All switches settled for one policy; conditions only where the cluster is given."""
        if self.preset is None:
            chosen = registry.policy(policy) if isinstance(policy, str) else policy
            of_graphs = self.placement in graph_placements()
            wanted = {
                "predictor": self.predictor,
                "placement": self.placement if of_graphs else None,
            }
            chosen = _with(chosen, {name: value for name, value in wanted.items() if value})
            if self.samples is not None:
                chosen = _learned(chosen, self.samples)
            of_gpus = "count" if of_graphs or self.placement is None else self.placement
            place = registry.placement(of_gpus)
            if self.skews is not None:
                place = _skewed(place, self.skews)
            conditions = None if cluster is None else self.conditions(workload, cluster)
            recipe = RunSetup(workload, chosen, place, conditions=conditions)
        elif isinstance(policy, str):
            found = find_preset(self.preset)
            sensitivity = None
            if self.profiles is not None and cluster is not None:
                sensitivity = self.profiles.of(workload, cluster)
            recipe = found.recipe(
                policy, workload, self.placement, self.samples, cluster, sensitivity
            )
        else:
            raise InputError(
                f"preset {self.preset}: takes the name of one of its policies, got {policy!r}"
            )
        length_s = recipe.rounds.length_s if self.round_s is None else self.round_s
        first_s = recipe.rounds.first_s if self.first_round_s is None else self.first_round_s
        overheads = recipe.overheads if self.overheads is None else self.overheads
        return replace(recipe, rounds=Rounds(length_s, first_s), overheads=overheads)

    def conditions(self, workload: Workload, cluster: Cluster) -> Conditions | None:
        """Conditions that speeds of runs depend on, None if on nothing but their GPUs."""
        profiles, skews, growth = self.profiles, self.skews, self.growth
        if profiles is None and skews is None and growth is None:
            return None
        from shadowprice.instances.speeds.conditions import Conditions
        from shadowprice.instances.speeds.model_skew import locality_of

        return Conditions(
            None if profiles is None else profiles.of(workload, cluster),
            None if skews is None else locality_of(workload, skews),
            None if growth is None else growth.of(workload, cluster),
        )

    def sharing(self, workload: Workload, cluster: Cluster) -> Throughputs | None:
        """Rates of jobs that share GPUs, None if nobody may.

        Raises
        ------
        InputError
            If both a table and interference are given.
        """
        if self.interference is None:
            return self.together
        if self.together is not None:
            raise InputError(
                f"rates of jobs that share GPUs are given twice, by {self.together.source} and by "
                "interference; expected one of the two"
            )
        return self.interference.of(workload, cluster)


def _learned(policy: Policy, samples: ServiceDistribution) -> Policy:
    """A policy that uses a sample of service times where it is one that can."""
    from shadowprice.solvers.tiresias.gittins2d import Gittins2d

    if not isinstance(policy, Gittins2d):
        return policy
    learned = "online" if policy.learned == "online" else "sample"
    return replace(policy, learned=learned, sample=samples)


def _skewed(placement: Placement, skews: ModelSkews) -> Placement:
    """A placement that uses given skews of models where it is one that can."""
    from shadowprice.solvers.placement.skew import Skew

    return replace(placement, skews=skews) if isinstance(placement, Skew) else placement


def _with(policy: Policy, wanted: Mapping[str, str]) -> Policy:
    """A policy with some of its parameters set; one that has no such parameter is refused."""
    takes: set[str] = {field.name for field in fields(policy)} if is_dataclass(policy) else set()
    for name, value in wanted.items():
        if name not in takes:
            what = f"{name} of job graphs" if name == "placement" else name
            raise InputError(f"policy {policy.name!r} takes no {what}, got {value!r}")
    changed: Any = replace(cast(Any, policy), **wanted) if wanted else policy
    return cast("Policy", changed)
