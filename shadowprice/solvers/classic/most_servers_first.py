"""Most servers first (``msf``), and with quick swaps (``quickswap``): the widest gang that waits starts next.

Source: Chen et al., Performance Evaluation 171, 2026 (arXiv 2509.01893; recalled): first come first served
leaves GPUs idle while a wide gang waits, and may not carry loads far below 1; the widest first carries all, but
narrow jobs keep a wide one out until none is left, by chance. With quick swaps, once fewer than ``below`` narrower
jobs are there beside a wide one that waits, no more of them start before it has.

Guarantee: with gangs of 1 and of all GPUs all jobs that are there at 0 are done when the work is, but for one narrow
job's time, and for Poisson arrivals ``msf`` carries every load below 1 (MSJ-cap); none for other gangs.
Knows: nothing. Never preempts. Cost per decision: O(W log W) for W waiting jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shadowprice.errors import InputError
from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass
class _Swap:
    """Flag that narrower jobs wait until the widest that waits has started."""

    begun: bool = False


@dataclass(frozen=True)
class MostServersFirst:
    """Start waiting jobs, the widest first, ties by arrival.

    Parameters
    ----------
    below : int
        A swap begins when the widest job that waits does not fit and fewer jobs than this are there that run or are
        narrower: none of those starts before it. With 1 there are no swaps.
    """

    name: str
    below: int
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.below < 1:
            raise InputError(f"{self.name}: below is {self.below!r}, expected at least 1")

    def decide(self, state: State) -> Decision:
        """Start what fits, the widest first, unless narrower jobs have to wait for a swap."""
        decision = Decision(state)
        if not state.waiting:
            return decision
        swap = state.notes(_Swap)
        waiting = state.columns(state.waiting)
        gpus = waiting.gpus
        widest, *others = waiting.jobs[np.lexsort((waiting.jobs, -gpus))].tolist()
        if decision.start(widest):
            swap.begun = False
        else:
            there = len(state.running) + int((gpus < gpus.max()).sum())
            swap.begun |= there < self.below
        for job in others:
            if swap.begun or not decision.free_gpus:
                break
            decision.start(job)
        return decision


POLICIES = (MostServersFirst("msf", below=1), MostServersFirst("quickswap", below=8))
