"""POP (SOSP'21): split jobs and GPUs into k equal parts and solve the same programme for each.

Every part gets 1/k of the GPUs of each type and every k-th job of a random order. What is lost is
reported: the objective is the worst part's, and never better than the whole programme's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.policies.max_min_fairness import MaxMinFairness
from shadowprice.solvers.gavel.policies.min_total_duration import MinTotalDuration
from shadowprice.solvers.gavel.workspace import Workspace

_INNER: Mapping[
    str, tuple[type[MaxMinFairness | MinTotalDuration], Callable[[list[float]], float]]
] = {"max_min_fairness": (MaxMinFairness, min), "min_total_duration": (MinTotalDuration, max)}


@dataclass(frozen=True)
class Pop:
    """Max-min fairness, or the makespan, in k random parts.

    Parameters
    ----------
    parts : int
        k.
    inner : str
        Programme of each part: ``max_min_fairness`` or ``min_total_duration``.
    packed : bool
        Whether jobs of a part may share GPUs.
    seed : int
        Of the order in which jobs are dealt.
    """

    name: str = "pop"
    parts: int = 4
    inner: str = "max_min_fairness"
    packed: bool = False
    seed: int = 0

    aware: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise InputError(f"pop: parts is {self.parts}, expected at least 1")
        if self.inner not in _INNER:
            raise InputError(f"pop: inner is {self.inner!r}, expected one of {', '.join(_INNER)}")

    @property
    def needs_steps(self) -> bool:
        """As the programme of each part."""
        return _INNER[self.inner][0].needs_steps

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """One programme of n / k jobs for each part."""
        if not len(problem):
            return nothing(self.name, problem)
        kind, worst = _INNER[self.inner]
        policy = kind(self.inner, packed=self.packed)
        parts = min(self.parts, len(problem))
        dealt = np.random.default_rng(self.seed).permutation(len(problem)) % parts
        alone = np.zeros_like(problem.throughput)
        shared = np.zeros((len(problem.pairs), len(problem.gpu_types)))
        objectives, shown = [], True
        for part in range(parts):
            mine = dealt == part
            smaller = replace(problem.select(mine), capacity=problem.capacity / parts)
            found = policy.allocate(smaller, workspace)
            alone[mine] = found.alone
            shared[mine[problem.pairs.first] & mine[problem.pairs.second]] = found.shared
            objectives.append(found.objective or 0.0)
            shown = shown and found.proven
        return Allocation(
            self.name, problem, alone, shared, float(worst(objectives)), reached=shown
        )


ALLOCATIONS = (Pop(),)
