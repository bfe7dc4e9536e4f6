"""The dual subroutine of Hadar (IPDPS'24, recalled) as a dynamic programme with a beam.

Jobs are taken in order of payoff per GPU; for each one, every state kept so far is continued
without it and with its best allocation at the prices that the state's load implies. With a beam as
wide as there are subsets this is the recursion skip / take of the paper, exactly; else the
``width`` states of largest value survive. O(jobs x width x types x classes of nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.hadar.find import Request, Shape, Shelves, find_alloc, take

EXACT_JOBS = 12
"""Queues up to this length are searched exactly."""


@dataclass(frozen=True)
class Selection:
    """Jobs that run in the round.

    Parameters
    ----------
    payoff : float
        Sum of the payoffs.
    gangs : tuple of (int, Shape)
        Positions of the jobs and the parts of their gangs.
    state : ndarray of int, shape (classes,)
        Nodes left in each class.
    """

    payoff: float
    gangs: tuple[tuple[int, Shape], ...]
    state: NDArray[np.int64]


@dataclass(frozen=True)
class _Step:
    """How the states after a job came about."""

    position: int
    parent: NDArray[np.int64]
    taken: NDArray[np.int64]


def select(
    shelves: Shelves,
    state: NDArray[np.int64],
    requests: Sequence[Request],
    width: int = 64,
    communication: float = 0.0,
) -> Selection:
    """Jobs and gangs of (nearly) the largest total payoff, in the order of ``requests``."""
    width = 2 ** len(requests) if len(requests) <= EXACT_JOBS else width
    states, values = state[None, :].copy(), np.zeros(1)
    steps: list[_Step] = []
    ahead = _best_ahead(shelves, requests)
    for position, request in enumerate(requests):
        room = int((states @ shelves.free).max())
        if room == 0:
            break
        if request.gpus > room:
            continue
        found = find_alloc(shelves, states, request, communication)
        able = np.flatnonzero(found.payoff > 0)
        if not len(able):
            continue
        after = take(shelves, states[able], found.taken[able])
        # Those that take come first: ties are theirs.
        states = np.concatenate((after, states))
        values = np.concatenate((values[able] + found.payoff[able], values))
        parent = np.concatenate((able, np.arange(len(values) - len(able))))
        taken = np.concatenate((found.taken[able], np.zeros_like(states[len(able) :])))
        kept = _best(states, values, width)
        hope = values[kept] + (states[kept] @ shelves.free) * ahead[position + 1]
        # A state that cannot overtake the best one is dropped; that costs nothing.
        kept = kept[(hope > values[kept[0]]) | (np.arange(len(kept)) == 0)]
        states, values = states[kept], values[kept]
        steps.append(_Step(position, parent[kept], taken[kept]))
    return _trace(shelves, steps, states, values)


def _best_ahead(shelves: Shelves, requests: Sequence[Request]) -> NDArray[np.float64]:
    """Largest payoff for a GPU of any later job, on an empty cluster: no later one can have more."""
    price = shelves.price.min()  # the slowest type's value may come with GPUs of a cheaper one
    ahead = np.zeros(len(requests) + 1)
    for position in range(len(requests) - 1, -1, -1):
        request = requests[position]
        payoff = np.where(request.rate > 0, request.value / request.gpus - price, 0.0)
        ahead[position] = max(float(payoff.max()), ahead[position + 1])
    return ahead


def _best(states: NDArray[np.int64], values: NDArray[np.float64], width: int) -> NDArray[np.int64]:
    """The states of largest value, each once, best first."""
    order = np.argsort(-values, kind="stable")
    rows = np.ascontiguousarray(states[order])
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    first = np.sort(np.unique(keys, return_index=True)[1])
    return np.asarray(order[first[:width]])


def _trace(
    shelves: Shelves,
    steps: Sequence[_Step],
    states: NDArray[np.int64],
    values: NDArray[np.float64],
) -> Selection:
    best = row = int(values.argmax())
    gangs: list[tuple[int, Shape]] = []
    for step in reversed(steps):
        taken = step.taken[row]
        if taken.any():
            gangs.append((step.position, shelves.shape(taken)))
        row = int(step.parent[row])
    return Selection(float(values[best]), tuple(reversed(gangs)), states[best])
