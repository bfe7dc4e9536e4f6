"""Searches from order to order: what a policy makes of an order and choices, and moves that better them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Cost = Callable[[Ints, Ints], float]
"""Cost of an order of all jobs and their choices; infinite if nothing comes of them."""


@dataclass(frozen=True, eq=False)
class SearchedOrder:
    """The best that a search came to.

    Parameters
    ----------
    order, choice : ndarray of int, shape (n,)
    cost : float
    moves : int
        Orders and choices that were tried.
    """

    order: Ints
    choice: Ints
    cost: float
    moves: int


def climb(
    order: Ints,
    choices: Ints,
    cost: Cost,
    *,
    seconds: float,
    heat: float,
    seed: int,
    choice: Ints | None = None,
) -> SearchedOrder:
    """Move jobs in the order, swap two, or choose otherwise, as long as there is time.

    A move that costs more is taken with a probability that falls with how much more and with time.

    Parameters
    ----------
    choices : ndarray of int, shape (n,)
        Number of choices of each job.
    heat : float
        What a move may cost more at the beginning, about.
    """
    rng = np.random.default_rng([seed, 36])
    here = np.zeros(len(order), dtype=np.int64) if choice is None else choice.copy()
    now, at = order.copy(), cost(order, here)
    best = SearchedOrder(now.copy(), here.copy(), at, 1)
    began, free = time.process_time(), np.flatnonzero(choices > 1)
    reach, tried, n = min(40, len(order) - 1), 1, len(order)
    if n < 2:
        return best
    while (spent := (time.process_time() - began) / seconds) < 1.0:
        other, chosen = now, here
        if len(free) and rng.random() < 0.3:
            job, chosen = int(rng.choice(free)), here.copy()
            chosen[job] = (here[job] + rng.integers(1, choices[job])) % choices[job]
        if chosen is here or rng.random() < 0.2:
            a = int(rng.integers(n))
            far = 1 + int(rng.random() ** 2 * reach)
            b = min(max(a + far * int(rng.choice((-1, 1))), 0), n - 1)
            other = now.copy()
            if rng.random() < 0.3:
                other[a], other[b] = now[b], now[a]
            else:
                other = np.insert(np.delete(now, a), b, now[a])
        found, tried = cost(other, chosen), tried + 1
        warm = heat * (1.0 - spent) ** 2
        more = found - at
        if more <= 0 or (warm > 0 and rng.random() < math.exp(-more / warm)):
            now, here, at = other, chosen, found
            if found < best.cost:
                best = SearchedOrder(now.copy(), here.copy(), found, tried)
    return SearchedOrder(best.order, best.choice, best.cost, tried)
