"""The offline optimum of a model that somebody has edited: the model itself, solved, and nothing beside it.

The searches of :mod:`.non_preemptive` and :mod:`.preemptive` know what the published models say: list
schedules, CP-SAT, enumerations, prices, windows of starts. An edited model knows something else, so
it is compiled over all its slots and solved, and the gate examines the answer in its rows. Slots go on
for twice as long as the published models need: what an edit puts off beyond that is not found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.names import Names
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.programs.compile import (
    CompiledModel,
    OptimalityEvidence,
    SolverOptions,
    compile_model,
)


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of an edited model.

    Parameters
    ----------
    objective_s, bound_s : float
        The model's objective and the bound of it, as times of its slots, less the total of release
        times where that is asked for [s].
    evidence : OptimalityEvidence
    chosen : dict
        Members, by name of the variable, that are 1.
    jobs : Names
    """

    objective_s: float
    bound_s: float
    evidence: OptimalityEvidence
    chosen: dict[str, list[Any]]
    jobs: Names

    def slots(self, variable: str) -> list[tuple[int, int]]:
        """Members (job, slot) of a variable that are 1, jobs by position."""
        position = {job: k for k, job in enumerate(self.jobs)}
        return [(position[job], slot) for job, slot in self.chosen.get(variable, [])]

    def starts(self, variable: str) -> NDArray[np.int64]:
        """First slot of each job among the members (job, slot) of a variable.

        Raises
        ------
        SolverError
            If a job has none: the edited model lets jobs go, and no schedule does.
        """
        first = np.full(len(self.jobs), np.iinfo(np.int64).max)
        for job, slot in self.slots(variable):
            first[job] = min(first[job], slot)
        if (first == np.iinfo(np.int64).max).any():
            missing = int((first == np.iinfo(np.int64).max).argmax())
            raise SolverError(
                f"the edited model leaves job {self.jobs[missing]} out; no schedule of it is one"
            )
        return first


def solve_edited_model(
    build: Callable[[], Any], jobs: Slotted, shift_ticks: Fraction, until: float
) -> ModelAnswer:
    """Solve an edited model.

    Raises
    ------
    InputError
        If the grid of slots is not exact.
    SolverError
        If the model is infeasible, or has no point in time.
    """
    if not jobs.exact:
        raise InputError(
            "an edited model is solved on a grid that divides all times, or not at all"
        )
    compiled: CompiledModel = compile_model(build())
    left = max(until - time.monotonic(), 0.1)
    solution = compiled.solve(SolverOptions(time_limit_s=left))
    if not len(solution.primal):
        raise SolverError(f"the edited model has no point after {left:.3g} s; allow more time")
    on = np.flatnonzero(solution.primal > 0.5)
    chosen: dict[str, list[Any]] = {}
    for k in on.tolist():
        variable = compiled.column(k)
        chosen.setdefault(variable.parent_component().local_name, []).append(variable.index())
    to_s = jobs.slot_ticks / TICKS_PER_S
    shift_s = float(shift_ticks / TICKS_PER_S)
    return ModelAnswer(
        solution.objective * to_s - shift_s,
        solution.bound * to_s - shift_s,
        solution.evidence,
        chosen,
        jobs.id,
    )
