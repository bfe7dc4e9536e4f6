"""Costs of a schedule: functions of completion times, in exact ticks as well as seconds, and against bounds."""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.workload import Workload


class Objective(StrEnum):
    """Costs to be minimised; C_j completion, r_j arrival, w_j weight.

    ``COMPLETION`` is sum_j w_j C_j, ``FLOW`` is sum_j w_j (C_j - r_j) (the sum of weighted job
    completion *durations*, JCT), ``MAKESPAN`` is max_j C_j - min_j r_j. Approximation ratios
    differ between them: the same schedule can be optimal for completion up to a constant and
    arbitrarily far from optimal for flow.
    """

    COMPLETION = "completion"
    FLOW = "flow"
    MAKESPAN = "makespan"

    @classmethod
    def of(cls, text: Objective | str, more: str = "") -> Objective:
        """The objective of a name.

        Parameters
        ----------
        more : str
            Said behind the names where there is none.

        Raises
        ------
        InputError
            If there is none.
        """
        try:
            return cls(text)
        except ValueError:
            names = ", ".join(cls)
            raise InputError(f"objective {str(text)!r}: expected one of {names}{more}") from None

    def cost_s(self, workload: Workload, end_s: NDArray[np.float64]) -> float:
        """Cost [s] of completion times ``end_s``, shape (n,).

        Unit weights are summed in whole ticks, hence without rounding error.
        """
        if len(workload) == 0:
            return 0.0
        if self is Objective.MAKESPAN:
            return float(end_s.max() - workload.arrival_s.min())
        origin = workload.arrival_s if self is Objective.FLOW else np.zeros(len(workload))
        if np.all(workload.weight == 1.0):
            ticks = to_ticks(end_s) - to_ticks(origin)
            return int(sum(ticks.tolist())) / TICKS_PER_S
        return float(np.dot(workload.weight, end_s - origin))


class BoundedCost(ABC):
    """A cost and a lower bound of it: exactly in ticks, and in seconds as floats that promise no more."""

    @abstractmethod
    def _cost_and_bound(self) -> tuple[Fraction | None, Fraction | None]:
        """Cost and bound [ticks]; None where there is no schedule, or no bound."""

    def exact_s(self) -> tuple[Fraction | None, Fraction | None]:
        """Cost and bound [s], exactly; None where there is no schedule, or no bound."""
        cost, bound = self._cost_and_bound()
        cost_s = None if cost is None else cost / TICKS_PER_S
        return cost_s, None if bound is None else bound / TICKS_PER_S

    @property
    def cost(self) -> float:
        """Cost of the schedule [s]; infinite if there is none."""
        cost, _ = self.exact_s()
        return math.inf if cost is None else float(cost)

    @property
    def bound(self) -> float:
        """The bound [s], rounded down: no schedule of its class costs less."""
        _, bound = self.exact_s()
        return -rounded_up(None if bound is None else -bound)

    @property
    def factor(self) -> Fraction | None:
        """Cost over bound, exactly: at least cost over optimum.

        None without a schedule, and where the bound is not above 0 and the cost is.
        """
        cost, bound = self._cost_and_bound()
        if cost is None or bound is None or bound <= 0:
            return Fraction(1) if cost == 0 and bound is not None else None
        return cost / bound

    @property
    def ratio(self) -> float:
        """The factor as a float, rounded up; infinite where there is none."""
        return rounded_up(self.factor)


def exact_ticks(seconds: float) -> Fraction | None:
    """Ticks of a float in seconds, exactly; None of what is not finite."""
    return Fraction(seconds) * TICKS_PER_S if math.isfinite(seconds) else None


def rounded_up(ratio: Fraction | None) -> float:
    """A ratio as a float that is no less, infinite for None and beyond the range of floats."""
    if ratio is None:
        return math.inf
    try:
        value = float(ratio)
    except OverflowError:
        return math.inf if ratio > 0 else -sys.float_info.max
    return value if Fraction(value) >= ratio else math.nextafter(value, math.inf)
