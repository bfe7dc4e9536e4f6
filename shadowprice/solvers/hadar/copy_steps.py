r"""How the copies of a job share its steps in a round, in exact arithmetic.

Source: HadarE's job tracker (arXiv 2503.10918, recalled; precise version derived). A copy whose job
goes on after the round does all whole steps that fit it, hence shares in proportion to throughput.
In the last round of a job copies end together: with rates :math:`x_c` and time :math:`o_c` owed
first, at the level T with :math:`\sum_c x_c (T - o_c)^+ = R`, up to whole steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction


def split_steps(
    remaining: int, rates: Sequence[Fraction], owed: Sequence[int], length: int
) -> list[int]:
    """Steps of each copy of a job in a round; exact, O(c log c) for c copies.

    Parameters
    ----------
    remaining : int
        Steps of the job not yet done.
    rates : sequence of Fraction
        Steps per tick of each copy.
    owed : sequence of int
        Ticks of the round each copy spends without progress.
    length : int
        Length of the round [ticks].

    Returns
    -------
    list of int
        As many whole steps as fit, if all together do not finish the job. Else all remaining
        steps, each where it ends earliest: no split has an earlier last end, and no copy ends
        more than one of its own steps before the last.
    """
    fit = [int(rate * max(length - lost, 0)) for rate, lost in zip(rates, owed, strict=True)]
    if sum(fit) <= remaining:
        return fit
    level = _level(remaining, rates, owed)
    steps = [
        int(rate * max(level - lost, Fraction(0))) for rate, lost in zip(rates, owed, strict=True)
    ]
    ends = [
        (lost + (done + 1) / rate, copy)
        for copy, (rate, lost, done) in enumerate(zip(rates, owed, steps, strict=True))
    ]
    heapq.heapify(ends)
    for _ in range(remaining - sum(steps)):
        end, copy = ends[0]
        steps[copy] += 1
        heapq.heapreplace(ends, (end + 1 / rates[copy], copy))
    return steps


def _level(remaining: int, rates: Sequence[Fraction], owed: Sequence[int]) -> Fraction:
    """When copies end together if steps could be cut [ticks]: sum of rate x (level - owed)+."""
    level, speed, idle = Fraction(0), Fraction(0), Fraction(0)
    order = [copy for _, copy in sorted((lost, copy) for copy, lost in enumerate(owed))]
    for place, copy in enumerate(order):
        speed += rates[copy]
        idle += rates[copy] * owed[copy]
        level = (remaining + idle) / speed
        if place + 1 < len(order) and level <= owed[order[place + 1]]:
            break
    return level
