"""Presets: policies of published simulators under their own names, with their own semantics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds
from shadowprice.execution.simulator import Simulator
from shadowprice.instances.entries import expected_name
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.features import Feature
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.terms.declared import DeclaredTerm
    from shadowprice.instances.workload import Workload
    from shadowprice.solvers.placement.protocol import Placement
    from shadowprice.solvers.policy import Policy
    from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution


@dataclass(frozen=True)
class RunSetup:
    """All options of one run.

    Parameters
    ----------
    policy, placement, rounds, overheads
        As the engine takes them.
    workload : Workload
        What the original makes of the given one before it runs it, e.g. whole rounds of work.
    sensitivity : Sensitivity, optional
        The same of profiles by CPUs and memory: what the original takes for the speed of a run.
    declared : tuple of DeclaredTerm, optional
        The same of declared terms; those given if left out.
    """

    workload: Workload
    policy: Policy
    placement: Placement
    rounds: Rounds = field(default_factory=Rounds)
    overheads: Overheads = field(default_factory=Overheads)
    sensitivity: Sensitivity | None = None
    declared: tuple[DeclaredTerm, ...] | None = None


@dataclass(frozen=True)
class RecipeInputs:
    """Inputs of a recipe.

    Parameters
    ----------
    where : str
        Preset and policy, for messages.
    samples, cluster, sensitivity : optional
        Sample of service times [GPU-s]; nodes with CPUs and memory, and profiles of the jobs by them.
    declared : tuple of DeclaredTerm
        Declared terms.
    """

    where: str
    workload: Workload
    placement: Placement
    samples: ServiceDistribution | None = None
    cluster: Cluster | None = None
    sensitivity: Sensitivity | None = None
    declared: tuple[DeclaredTerm, ...] = ()

    def service_times(self) -> ServiceDistribution:
        """The sample; raises InputError if none was given."""
        if self.samples is None:
            raise InputError(f"{self.where} needs a sample of service times, none was given")
        return self.samples

    def profiled(self) -> tuple[Cluster, Sensitivity]:
        """Cluster and profiles, checked; raises InputError if one is missing."""
        if self.cluster is None or self.sensitivity is None:
            raise InputError(
                f"{self.where} needs profiles of the jobs by CPUs and memory, and a cluster that has "
                "both; none were given"
            )
        self.sensitivity.check(self.cluster)
        return self.cluster, self.sensitivity


Recipe = Callable[[RecipeInputs], RunSetup]


def in_engine(policy: Policy, rounds: Rounds | None = None) -> Recipe:
    """The recipe of a policy that runs on the jobs as they are, without charges."""
    return lambda inputs: RunSetup(inputs.workload, policy, inputs.placement, rounds or Rounds())


@dataclass(frozen=True)
class PublishedLoop:
    """A loop of a published simulator.

    Parameters
    ----------
    schedule : callable
        From an instance and a seed to a schedule.
    reads : frozenset of Feature
        Features of instances that it knows.
    """

    schedule: Callable[[Instance, int], Schedule]
    reads: frozenset[Feature]


@dataclass(frozen=True)
class Preset:
    """A published simulator.

    Parameters
    ----------
    name, source
        Name on the command line; repository and commit whose numbers are reproduced.
    placements : mapping of str to Placement
        The original's own names of placements; the first is its default.
    recipes : mapping of str to callable
        For each of the original's policies, a recipe from its inputs.
    loops : mapping of str to callable
        Policies that run in a loop of the original's own, not in the engine.
    """

    name: str
    source: str
    placements: Mapping[str, Placement]
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    loops: Mapping[str, PublishedLoop] = field(default_factory=dict)

    @property
    def policies(self) -> list[str]:
        """Names of all policies."""
        return sorted({*self.recipes, *self.loops})

    def simulator(self, policy: str, seed: int) -> Simulator | None:
        """The original's own loop for a policy, by the original's name alone or in full, if it has one."""
        loop = self.loops.get(self._split(policy)[0])
        if loop is None:
            return None
        return Simulator(
            lambda instance: loop.schedule(instance, seed),
            frozenset({"preset", "seed", "sharing_rates", "until_complete"}),
            lambda option, value: (
                f"preset {self.name}: runs in its own loop, with its own rounds, placement and charges"
            ),
            {"preset": self.name, "seed": seed, "preemptive": True},
            reads=loop.reads,
        )

    def recipe(
        self,
        policy: str,
        workload: Workload,
        placement: str | None = None,
        samples: ServiceDistribution | None = None,
        cluster: Cluster | None = None,
        sensitivity: Sensitivity | None = None,
        declared: tuple[DeclaredTerm, ...] = (),
    ) -> RunSetup:
        """The options of a policy, by the original's name alone or in full.

        In full means ``preset/policy``, ``policy/placement``, ``policy@placement`` or both.

        Raises
        ------
        InputError
            If policy or placement is not one of the original's, or a needed sample or profiles are
            missing.
        """
        policy, placement = self._known(policy, placement)
        where = f"preset {self.name}: policy {policy!r}"
        place = self.placements[placement]
        inputs = RecipeInputs(where, workload, place, samples, cluster, sensitivity, declared)
        return self.recipes[policy](inputs)

    def require_known(self, policy: object, placement: str | None = None) -> None:
        """Refuse what is no policy of the original's, or a placement that it does not have.

        Raises
        ------
        InputError
            Naming the policy or the placement.
        """
        if not isinstance(policy, str):
            raise InputError(
                f"preset {self.name}: takes the name of one of its policies, got {policy!r}"
            )
        self._known(policy, placement)

    def _known(self, policy: str, placement: str | None) -> tuple[str, str]:
        """Policy and placement by the original's names; the first placement is the default."""
        policy, named = self._split(policy)
        if policy not in self.policies:
            expected = expected_name(policy, self.policies)
            raise InputError(f"preset {self.name}: policy {policy!r}, {expected}")
        placement = placement or named or next(iter(self.placements))
        if placement not in self.placements:
            raise InputError(
                f"preset {self.name}: placement {placement!r}, "
                f"{expected_name(placement, self.placements)}"
            )
        return policy, placement

    def _split(self, policy: str) -> tuple[str, str | None]:
        words = re.split(r"[/@]", policy)
        if words[0] == self.name and len(words) > 1:
            words = words[1:]
        if len(words) > 2:
            raise InputError(
                f"preset {self.name}: policy {policy!r}, expected [{self.name}/]POLICY[@PLACEMENT]"
            )
        return words[0], words[1] if len(words) == 2 else None
