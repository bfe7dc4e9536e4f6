r"""Proof that no point of a programme is better than one that is known, by branching.

A node is a box of bounds of the columns. It is closed by multipliers of its rows whose bound,
evaluated by :func:`exact.safe_bound` with rounding errors counted, says that every point in it costs
too much or that there is none; else it is split at an integer column into x <= k and x >= k + 1,
which between them hold every point. HiGHS's simplex method proposes multipliers and columns to
split at; whatever it says, a tree whose leaves are all closed is a proof. Nothing of its
presolve, its cuts or its own branch and bound takes part.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.solvers.programs.exact import (
    INTEGRAL,
    MinimisationForm,
    blocked,
    implied,
    lifted,
    safe_bound,
    violation,
    whole_point,
)
from shadowprice.solvers.programs.highs import HighsEnding, WarmProgram
from shadowprice.solvers.programs.linear_program import FloatArray

PER_NODE = 20
"""Simplex iterations that the rest of the work of a node counts for."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Result of branching.

    Parameters
    ----------
    bound : float or Fraction
        No point costs less; -inf if the tree is not closed and infinity if there is no point.
    better : ndarray or None
        A point that costs less than the one that was known.
    nodes : int
        Linear programmes solved.
    """

    bound: Fraction | float
    better: FloatArray | None
    nodes: int


def prove(
    least: MinimisationForm, known: Fraction | None, gap: float, *, work: float, until: float
) -> Tree:
    """Try to show that no point costs less than ``known`` by more than a gap.

    Parameters
    ----------
    known : Fraction or None
        Cost of the best point; None to show that there is none.
    gap : float
        What counts as no difference.
    work : float
        Most work: simplex iterations times the size of the programme. The same on every machine.
    until : float
        When to stop, by ``time.monotonic``.
    """
    enough = math.inf if known is None else known - Fraction(gap)
    if known is not None and least.step is not None:
        # The next cheaper points are a whole step away.
        enough = min(known, enough + least.step)
    cutoff = math.inf if known is None else float(known) + abs(float(known)) * 1e-12 + gap
    boxes = [implied(least, cutoff)]
    program = least.program
    series = WarmProgram.relaxing(program)
    sign = -1.0 if program.maximise else 1.0
    shown = math.inf if known is None else known
    count, done = 0, 0.0
    size = len(program.value) + program.rows + program.columns
    last_lower, last_upper = program.lower, program.upper
    while boxes:
        if done >= work or time.monotonic() > until:
            return Tree(-math.inf, None, count)
        lower, upper = boxes.pop()
        if np.any(lower > upper):
            continue
        changed = np.flatnonzero((lower != last_lower) | (upper != last_upper)).astype(np.int32)
        series.bounds(changed, lower[changed], upper[changed])
        last_lower, last_upper = lower, upper
        vertex = series.solve(time_limit_s=until - time.monotonic())
        count += 1
        done += (vertex.iterations + PER_NODE) * size
        if vertex.outcome is HighsEnding.INFEASIBLE and _empty(least, vertex.duals, lower, upper):
            continue
        if vertex.outcome is HighsEnding.OPTIMAL:
            bound = lifted(least, safe_bound(least, sign * vertex.duals, lower, upper))
            if bound >= enough:
                shown = min(shown, bound)
                continue
            better = _better(least, vertex.primal, known, gap)
            if better is not None:
                return Tree(-math.inf, better, count)
        split = _split(least, vertex.primal, lower, upper)
        if split is None:
            return Tree(-math.inf, None, count)
        boxes += split
    return Tree(shown, None, count)


def _empty(least: MinimisationForm, ray: FloatArray, lower: FloatArray, upper: FloatArray) -> bool:
    """True if multipliers show that a box holds no point."""
    if len(ray) != least.program.rows:
        return blocked(least, lower, upper)
    return any(safe_bound(least, y, lower, upper, farkas=True) > 0 for y in (ray, -ray))


def _better(
    least: MinimisationForm, primal: FloatArray, known: Fraction | None, gap: float
) -> FloatArray | None:
    point = whole_point(least.program, primal)
    if point is None or violation(least, point) > 1.0:
        return None
    return point if known is None or least.value(point) < known - Fraction(gap) else None


def _split(
    least: MinimisationForm, primal: FloatArray, lower: FloatArray, upper: FloatArray
) -> list[tuple[FloatArray, FloatArray]] | None:
    """Two boxes, the more promising one last; None if no integer column can be split."""
    open_ = np.flatnonzero(least.program.integer & (lower < upper))
    if not len(open_):
        return None
    if len(primal):
        part = np.abs(primal[open_] - np.round(primal[open_]))
        column = int(open_[np.argmax(part)])
        value = float(primal[column])
        below = math.floor(value) if part.max() > INTEGRAL else math.floor(value + 0.5)
    else:
        column = int(open_[0])
        middle = (lower[column] + upper[column]) / 2
        value = below = math.floor(middle) if math.isfinite(middle) else 0
    below = min(max(below, lower[column]), upper[column] - 1)
    if not math.isfinite(below):
        return None
    first, second = upper.copy(), lower.copy()
    first[column], second[column] = below, below + 1
    parts = [(lower, first), (second, upper)]
    return parts if value - below > 0.5 else parts[::-1]
