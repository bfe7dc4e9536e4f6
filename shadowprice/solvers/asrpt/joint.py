r"""A-SRPT's whole problem at best: where the replicas of a few jobs go and when each job runs.

Source: Luo, Liu, Lee, Shroff, arXiv 2501.05563, as recalled; the programme is
:mod:`shadowprice.models.asrpt_joint`. Its answer is a proposal: iterations are timed again in whole numbers
(:func:`shadowprice.instances.graphs.iteration_time.iteration_s`), and GPUs are counted slot by slot.

Complexity: a mixed-integer programme with jobs x slots x nodes columns, exponential in the worst case; for a
handful of jobs, nodes and tens of slots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.environ as pyo

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.graphs.iteration_time import iteration_s, longest_iteration_s
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.models.asrpt_joint import Jobs, build
from shadowprice.solvers.graph_placement.exact import as_mapping
from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from shadowprice.solvers.programs.published import is_published

ModelBuilder = Callable[[Jobs], pyo.ConcreteModel]
"""What makes the programme of jobs."""

CLOSE = 1e-6
"""Relative: a run that is longer than some slots by no more takes these, HiGHS's tolerance."""

MAX_CELLS = 5_000
"""Jobs x slots x nodes up to which the programme is built."""


@dataclass(frozen=True)
class JointPlan:
    """Placements and starts of jobs.

    Parameters
    ----------
    mappings : tuple of StageMapping
    start, completion : tuple of int
        First slot, and the slot at whose beginning the job is complete.
    bound_slots : float
        No plan on these slots has a smaller total of completions.
    proven : bool
        Whether this one is shown to be the best on these slots.
    edited : bool
        Whether the programme is not the published one; the claims are then about it as it is.
    """

    mappings: tuple[StageMapping, ...]
    start: tuple[int, ...]
    completion: tuple[int, ...]
    bound_slots: float
    proven: bool
    edited: bool = False

    @property
    def total_slots(self) -> int:
        """Total of completions [slots]."""
        return sum(self.completion)


def slots_of(jobs: Jobs, job: int, mapping: StageMapping) -> int:
    """Slots that a job takes under a mapping."""
    run_s = jobs.iterations[job] * iteration_s(jobs.graphs[job], mapping, jobs.network)
    return max(1, math.ceil(run_s / jobs.slot_s * (1.0 - CLOSE)))


def enough_slots(jobs: Jobs) -> int:
    """Horizon that a best plan never exceeds: all jobs one after another, as slow as they can be."""
    longest = (
        math.ceil(count * longest_iteration_s(graph, jobs.network) / jobs.slot_s)
        for graph, count in zip(jobs.graphs, jobs.iterations, strict=True)
    )
    return max(jobs.release, default=0) + sum(longest)


def best_joint_plan(
    jobs: Jobs, *, model: ModelBuilder = build, time_limit_s: float = 60.0
) -> JointPlan:
    """Least total completion time without preemption, jobs starting with slots.

    Parameters
    ----------
    model : callable
        Builds the programme of jobs.
    time_limit_s : float
        Wall time [s].

    Raises
    ------
    InputError
        If the programme would be too large.
    SolverError
        If no plan exists within the horizon, none was found within the time, or what the programme
        calls a plan cannot be run or has another total.
    """
    cells = len(jobs.graphs) * jobs.horizon * len(jobs.nodes)
    if cells > MAX_CELLS:
        raise InputError(
            f"joint plan: {len(jobs.graphs)} jobs, {jobs.horizon} slots and {len(jobs.nodes)} nodes are "
            f"{cells} cells, expected at most {MAX_CELLS}; take longer slots or fewer jobs"
        )
    built: Any = model(jobs)
    compiled = compile_model(built)
    # Totals are whole: less than a slot of difference is none.
    solution = compiled.solve(SolverOptions(time_limit_s=time_limit_s, absolute_gap=0.99))
    if not len(solution.primal):
        raise SolverError(f"joint plan: none was found in {time_limit_s:g} s; allow more time")
    nodes = list(range(len(jobs.nodes)))
    values = [compiled.value(solution, built.job[j].x) for j in built.J]
    mappings = tuple(as_mapping(each, nodes) for each in values)
    runs: dict[str, list[int]] = {j: [] for j in built.J}
    for (j, t), value in zip(built.JT, compiled.value(solution, built.f).tolist(), strict=True):
        if value > 0.5:
            runs[j].append(t)
    start = tuple(min(own) for own in runs.values())
    completion = tuple(start[j] + slots_of(jobs, j, each) for j, each in enumerate(mappings))
    bound = float(math.ceil(solution.bound - CLOSE))
    bound, proven = min(bound, sum(completion)), solution.evidence.optimal
    plan = JointPlan(mappings, start, completion, bound, proven, not is_published(model))
    check(jobs, plan)
    if plan.proven and abs(plan.total_slots - solution.objective) > 0.5:
        raise SolverError(
            f"model {built.name!r}: its objective is {solution.objective:g} where completions add up to "
            f"{plan.total_slots} slots, expected the same"
        )
    return plan


def check(jobs: Jobs, plan: JointPlan) -> None:
    """Count GPUs and slots of a plan again.

    Raises
    ------
    SolverError
        If a job starts before its release, ends after the horizon or takes other than its slots, or
        a node has too few GPUs.
    """
    used = np.zeros((len(jobs.nodes), jobs.horizon), dtype=np.int64)
    for j, mapping in enumerate(plan.mappings):
        first, last = plan.start[j], plan.completion[j]
        if not jobs.release[j] <= first < last <= jobs.horizon or (
            last - first != slots_of(jobs, j, mapping)
        ):
            raise SolverError(
                f"joint plan: job {j} runs in slots {first} to {last}, which it cannot"
            )
        for node, counts in mapping:
            used[node, first:last] += sum(counts)
    over = np.argwhere(used > np.array(jobs.nodes)[:, None])
    if len(over):
        node, t = over[0].tolist()
        raise SolverError(
            f"joint plan: node {node} has {used[node, t]} GPUs in use in slot {t}, expected at most "
            f"{jobs.nodes[node]}"
        )
