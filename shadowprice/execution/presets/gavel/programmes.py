"""Gavel's policies that solve programmes, for its simulator: ours, told what the peer's are told.

An optimal allocation is rarely the only one, and which one a solver returns moves the mean
completion time by a few per cent. The peer's default solver ends in the interior of the optimal
face, so does ours here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from shadowprice.execution.presets.gavel.policies import (
    Allocate,
    Allocation,
    PeerPolicy,
    Told,
    all_alike,
    as_measured,
    as_on_reference,
)
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.solvers.registry import allocation

_OURS: Mapping[str, tuple[str, Told]] = {
    "max_min_fairness": ("max_min_fairness_perf", all_alike),
    "max_min_fairness_perf": ("max_min_fairness_perf", as_measured),
    "max_min_fairness_packed": ("max_min_fairness_packed", as_measured),
    "max_min_fairness_water_filling": ("max_min_fairness_water_filling_perf", all_alike),
    "max_min_fairness_water_filling_perf": ("max_min_fairness_water_filling_perf", as_measured),
    "finish_time_fairness": ("finish_time_fairness_perf", as_on_reference),
    "finish_time_fairness_perf": ("finish_time_fairness_perf", as_measured),
    "finish_time_fairness_packed": ("finish_time_fairness_packed", as_measured),
    "min_total_duration": ("min_total_duration_perf", as_on_reference),
    "min_total_duration_perf": ("min_total_duration_perf", as_measured),
    "min_total_duration_packed": ("min_total_duration_packed", as_measured),
    "max_sum_throughput_perf": ("max_sum_throughput_perf", as_measured),
}
"""The peer's name, our policy, and what it is told of the throughputs."""


def _allocate(ours: str) -> Allocate:
    policy = allocation(ours)
    workspace = Workspace(SolverOptions(time_limit_s=600.0, structured_jobs=1))

    def allocate(problem: AllocationProblem) -> Allocation:
        found = policy.allocate(problem, workspace)
        return np.concatenate((found.alone, found.shared))

    return allocate


def _peer(name: str) -> Callable[[int], PeerPolicy]:
    ours, told = _OURS[name]
    packed = allocation(ours).packed
    agnostic = told is not as_measured

    def make(seed: int) -> PeerPolicy:
        return PeerPolicy(name, _allocate(ours), pairs=packed, shuffles=agnostic, told=told)

    return make


PROGRAMMES: Mapping[str, Callable[[int], PeerPolicy]] = {name: _peer(name) for name in _OURS}
"""Policies by the peer's name; each takes the seed of the run."""
