"""The non-preemptive optimum by constraint programming: a search that shares nothing with the MILP's.

Source: intervals with a cumulative resource, Google OR-Tools' CP-SAT. It reasons in whole numbers,
but what it says is its word: the bound it returns is a double that nobody has evaluated again.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.programs.gate import ask_whole
from shadowprice.solvers.programs.whole import Cumulative, SearchEffort, SearchStatus, WholeProgram

_LARGEST = 2**60
"""Largest cost that CP-SAT is asked about, in its whole numbers."""


@dataclass(frozen=True)
class Proof:
    """Result of CP-SAT.

    Parameters
    ----------
    starts : ndarray of int or None
        Start slots of a feasible schedule.
    bound : float
        Its bound of the cost [slots], its word alone.
    proven : bool
        Whether it says that the starts are optimal.
    """

    starts: NDArray[np.int64] | None
    bound: float
    proven: bool


def solve(
    jobs: Slotted, *, span: bool, budget_s: float, hint: NDArray[np.int64], seed: int = 0
) -> Proof:
    """Minimise total weighted completion time, or the makespan, without preemption.

    Parameters
    ----------
    hint : ndarray of int
        Starts of a feasible schedule; its last end is the horizon for the makespan, and the
        search begins there.
    """
    program, constant, scale = _program(jobs, span=span)
    if program is None:
        return Proof(None, 0.0, False)
    program.hint = dict(enumerate(hint.tolist()))
    answer = ask_whole(program, SearchEffort(budget_s, seed=seed))
    starts = None
    if answer.values is not None:
        starts = np.array(answer.values[: jobs.jobs], dtype=np.int64)
    bound = (answer.bound + constant) / scale
    return Proof(starts, bound, answer.status is SearchStatus.OPTIMAL)


def none_better(
    jobs: Slotted, cost: Fraction, *, span: bool, budget_s: float, hint: NDArray[np.int64]
) -> bool:
    """True if CP-SAT says, in time, that no schedule costs less [slots].

    It is asked for the best schedule: whether there is one below a cost took it five times as long.
    """
    proof = solve(jobs, span=span, budget_s=budget_s, hint=hint)
    if proof.starts is None or not proof.proven:
        return False
    return list_schedule.exact_cost(jobs, proof.starts, span=span) >= cost


def _program(jobs: Slotted, *, span: bool) -> tuple[WholeProgram | None, int, int]:
    """The programme, what is to be added to its cost, and what the sum is to be divided by."""
    program = WholeProgram()
    horizon = list_schedule.safe_horizon(jobs)
    starts = [program.variable(r, horizon) for r in jobs.release.tolist()]
    lengths = jobs.duration.tolist()
    program.cumulatives.append(Cumulative(starts, lengths, jobs.gpus.tolist(), jobs.capacity))
    if span:
        last = program.variable(0, horizon)
        for start, length in zip(starts, lengths, strict=True):
            program.row({last: 1, start: -1}, low=length)
        program.cost = {last: 1}
        return program, 0, 1
    scale = max((w.denominator for w in jobs.exact_weight), default=1)
    weight = [int(w * scale) for w in jobs.exact_weight]
    if sum(weight) * horizon >= _LARGEST or horizon >= _LARGEST:
        return None, 0, 1
    program.cost = {start: w for start, w in zip(starts, weight, strict=True) if w}
    return program, sum(w * p for w, p in zip(weight, lengths, strict=True)), scale
