"""Acceptance of plans: a plan counts if the compiled rows of the model that was given hold.

Source: derived. Branch and price, its cuts and its heuristics know the published programme and the rows
that can be priced; what they propose is a point of the model, evaluated in all of its rows exactly
(:mod:`shadowprice.solvers.programs.exact`). The schedules fix y and z. Which GPUs w of the types that a speed
admits is a transportation; where that breaks a row of the model, or there are new variables, HiGHS is
asked for w and these with y and z fixed, and its answer is evaluated likewise.

Complexity: a maximum flow a round and O(entries); a small integer programme where that does not do.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.solvers.hadar.offline.feasibility import gpus_of
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.pricing import Speeds
from shadowprice.solvers.hadar.offline.programme import PricedModel
from shadowprice.solvers.programs.exact import MinimisationForm, violation
from shadowprice.solvers.programs.gate import Gate
from shadowprice.solvers.programs.solution import SolverOptions

_CLOSE = 1e-9
"""Rounding of a row that has nothing but y and z, relative to the sum of its terms."""

_WHOLE = 1e-6
"""GPUs this close to a whole number are whole."""

_SOLVE_S = 5.0
"""Most time for w of a plan [s]."""


class Acceptance:
    """Checks plans in the rows of a model.

    Parameters
    ----------
    given : PricedModel
        One that keeps the programme that the pricing knows.
    linking : LinkingRows
    """

    def __init__(self, priced: PricedModel, linking: LinkingRows) -> None:
        self.model = priced
        self.linking = linking
        known = linking.known
        self._least = MinimisationForm.of(priced.program)
        # Rows of y and z alone are evaluated first; they need no GPUs.
        w = np.zeros(known.columns, dtype=bool)
        w[known.w] = True
        rows = linking.rows.where(np.arange(linking.added))
        named = np.asarray((rows.matrix[:, w] != 0).sum(axis=1)).ravel()
        self._quick = rows.where(np.flatnonzero(named == 0))
        self._size = np.maximum(abs(self._quick.matrix).max(axis=1).toarray().ravel(), 1e-300)

    def shortfall(self, schedules: Mapping[int, Speeds]) -> float:
        """Violation of the added rows of y and z alone, in units of their coefficients."""
        if not len(self._quick):
            return 0.0
        total = self._quick.matrix @ self._y_and_z(schedules)
        beyond = np.maximum(self._quick.lower - total, total - self._quick.upper)
        return float((np.maximum(beyond - _CLOSE * (1.0 + np.abs(total)), 0.0) / self._size).sum())

    def value(self, point: NDArray[np.float64]) -> float:
        """Objective of a point of the model."""
        return self._least.shown(self._least.value(point))

    def accepts(self, schedules: Mapping[int, Speeds]) -> bool:
        """True if the model has a point with these schedules."""
        return self.point(schedules) is not None

    def point(self, schedules: Mapping[int, Speeds]) -> NDArray[np.float64] | None:
        """Point of the model with these schedules, shape (columns of the model,); None if there is none."""
        if self.shortfall(schedules) > 0:
            return None
        known, program = self.linking.known, self.model.program
        x = self._y_and_z(schedules)
        try:
            x[known.w] = gpus_of(known.jobs, schedules)
        except SolverError:  # More GPUs than there are.
            return None
        point = np.clip(np.zeros(program.columns), program.lower, program.upper)
        point[self.model.column] = x
        if violation(self._least, point) <= 1.0:
            return point
        return self._solved(x) if self.model.edits else None

    def _y_and_z(self, schedules: Mapping[int, Speeds]) -> NDArray[np.float64]:
        x = np.zeros(self.linking.known.columns)
        for job, speeds in schedules.items():
            x[self.linking.columns_of(job, len(speeds) - 1, speeds)] = 1.0
        return x

    def _solved(self, x: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Point with y and z as they are, if HiGHS finds one."""
        known, column = self.linking.known, self.model.column
        fixed = self.model.program.copy()
        which = np.concatenate((known.y[known.y >= 0], known.z.ravel()))
        fixed.lower[column[which]] = fixed.upper[column[which]] = x[which]
        fixed.cost = np.zeros_like(fixed.cost)
        try:
            options = SolverOptions(time_limit_s=_SOLVE_S, confirm=False)
            point = Gate().solve(fixed, options).primal
        except SolverError:  # None with these y and z, or no answer.
            return None
        return point if len(point) and violation(self._least, point) <= 1.0 else None


def gpus_in(priced: PricedModel, point: NDArray[np.float64]) -> NDArray[np.int64]:
    """GPUs of each type by job and round, shape (jobs, types, rounds), that a point of the model holds.

    Raises
    ------
    SolverError
        If the model does not say so in whole numbers, or gives more than there are.
    """
    jobs, name = priced.jobs, priced.model.name
    w = priced.model.find_component("w")
    shape = (jobs.jobs, jobs.types, jobs.rounds)
    inside = list(product(jobs.id, jobs.gpu_types, range(jobs.rounds)))
    if w is None or list(w.index_set()) != inside:
        raise SolverError(
            f"model {name!r}: has no variable w over jobs, GPU types and rounds, expected one, "
            "which is the plan"
        )
    column = priced.compiled.column_of(w).reshape(shape)
    held = np.append(point, 0.0)[column]
    whole = np.rint(held)
    if np.abs(held - whole).max(initial=0.0) > _WHOLE or whole.min(initial=0.0) < 0:
        worst = int(np.argmax(np.abs(held - whole)))
        raise SolverError(
            f"model {name!r}: {w[inside[worst]].name} is {held.ravel()[worst]:g} in its optimum, expected "
            "whole GPUs"
        )
    over = np.argwhere(whole.sum(axis=0) > jobs.capacity[:, None])
    if len(over):
        h, t = over[0].tolist()
        raise SolverError(
            f"model {name!r}: holds {whole[:, h, t].sum():g} GPUs of type {jobs.gpu_types[h]} in round {t}, expected "
            f"at most {jobs.capacity[h]}, as many as there are"
        )
    return np.asarray(whole, dtype=np.int64)
