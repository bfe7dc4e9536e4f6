"""heSRPT (``hesrpt``): all jobs at once, those with less to do on more GPUs, where k GPUs are k^p times as fast as one.

Source: Berg, Vesilo and Harchol-Balter, heSRPT: Parallel scheduling to minimize mean slowdown, Performance
Evaluation 144, 2020 (arXiv 1903.09346; recalled). Of m jobs in order of what is left, the largest first, the i-th
gets the part (i / m)^a - ((i - 1) / m)^a of the GPUs, a = 1 / (1 - p). The widths of this policy are whole numbers
near it, between a job's gang and the most that it may hold; GPUs that are left over go to jobs that wait, then to
the largest remainders.

Guarantee: none, in whole widths. In exact shares and with all jobs there at 0 the parts minimise total completion
time (proofs/classic/hesrpt.py, which also bounds every schedule in whole widths from below); where jobs arrive later
the rule is applied to those that are there.
Knows: durations. Preempts: a width changes by a stop and a start. Cost per decision: O(L log L + nodes) for L live
jobs. Where jobs cannot grow, or GPUs differ by type, tenant, part or profile, it is least remaining service first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.list_scheduling import serve_in_order
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.resizing import available_gpus, can_grow, resized


@dataclass(frozen=True)
class HeSrpt:
    """The optimal parts of jobs with speed k^p on k GPUs, in whole widths.

    Parameters
    ----------
    exponent : float
        p, from 0 to below 1. The default is that of widths with an efficiency of 0.9: log2(1.8).
    """

    name: str = "hesrpt"
    exponent: float = 0.848
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.exponent <= 0.999:
            raise InputError(
                f"{self.name}: exponent is {self.exponent!r}, expected a number from 0 to 0.999"
            )

    def decide(self, state: State) -> Decision:
        """Give every live job its width, where that is not what it holds."""
        if not can_grow(state):
            return serve_in_order(state, _least_service_first)
        live = state.live()
        most = [state.widest(job) for job in live.jobs.tolist()]
        # Remaining times are told as if each job had its largest width.
        speed = np.array([power(width, self.exponent) for width in most])
        order = np.argsort(live.remaining_s * speed, kind="stable")
        jobs, gangs = live.jobs[order].tolist(), live.gpus[order].tolist()
        most = [most[k] for k in order.tolist()]
        parts = optimal_parts(self.exponent, len(jobs))[::-1]
        total = available_gpus(state)
        wanted = whole_widths([total * part for part in parts], gangs, most, total)
        return resized(state, dict(zip(jobs, wanted, strict=True)))


def _least_service_first(live: JobColumns) -> NDArray[np.int64]:
    return np.argsort(live.remaining_s * live.gpus, kind="stable")


@lru_cache(maxsize=1024)
def power(base: int, exponent: float) -> float:
    """A power rounded to the nearest double, the same on every machine."""
    with localcontext(prec=40):
        return float(Decimal(base) ** Decimal(exponent))


@lru_cache(maxsize=1024)
def optimal_parts(exponent: float, jobs: int) -> tuple[float, ...]:
    """Part of the GPUs of each of some jobs with speed k^p, the one with most left first; they add up to 1.

    Parameters
    ----------
    exponent : float
        p < 1.
    """
    with localcontext(prec=40):
        a = 1 / (1 - Decimal(exponent))
        grown = [(Decimal(k) / jobs) ** a if k else Decimal(0) for k in range(jobs + 1)]
        return tuple(float(grown[k + 1] - grown[k]) for k in range(jobs))


def whole_widths(ideal: list[float], gangs: list[int], most: list[int], total: int) -> list[int]:
    """Whole widths near ideal ones, 0 or from gang to most, that add up to no more than a total.

    Jobs come in order of importance: each gets its ideal width rounded down, but its gang at least, as long as
    there are GPUs; those without get their gang where it fits into what is left; then one GPU each goes
    to the largest remainders, until none is left or all are as wide as they may be. O(jobs log jobs + total).
    """
    widths, room = [], total
    for wish, gang, limit in zip(ideal, gangs, most, strict=True):
        width = min(max(gang, math.floor(wish)), limit, room)
        widths.append(width if width >= gang else 0)
        room -= widths[-1]
    growing = [k for k, width in enumerate(widths) if 0 < width < most[k]]
    while room and growing:
        growing.sort(key=lambda k: (widths[k] - ideal[k], k))
        for k in growing[:room]:
            widths[k] += 1
        room -= min(room, len(growing))
        growing = [k for k in growing if widths[k] < most[k]]
    return widths


POLICIES = (HeSrpt(),)
