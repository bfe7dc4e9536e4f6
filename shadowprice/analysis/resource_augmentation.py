"""Policies on faster GPUs against what was possible on the given ones: cost by speed, over a certified bound.

Source: Kalyanasundaram and Pruhs, "Speed is as powerful as clairvoyance", JACM 47(4), 2000, whose theorem
``proofs/classic/elapsed_time.py`` is about; measured here on any workload of gangs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.compare import by_name
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import execute_bounded
from shadowprice.analysis.wording import at_most, cost_in_words
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective
from shadowprice.instances.speeds.augmentation import at_speed
from shadowprice.instances.workload import Workload
from shadowprice.solvers.offline.bounds import Bound
from shadowprice.solvers.policy import Policy

if TYPE_CHECKING:
    import pandas as pd

SPEEDS = (Fraction(1), Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), Fraction(2))


@dataclass(frozen=True, repr=False)
class SpeedRow(BoundedCost):
    """A policy's cost at a speed, against a bound at speed 1.

    Parameters
    ----------
    policy : str
    speed : Fraction
        How many times as fast the policy's GPUs are.
    cost_ticks : Fraction
        Its cost [ticks], from the verified schedule.
    proven_by : Bound
        No preemptive schedule costs less on the given GPUs; in exact arithmetic.
    """

    policy: str
    speed: Fraction
    cost_ticks: Fraction
    proven_by: Bound

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.cost_ticks, self.proven_by.ticks

    def __repr__(self) -> str:
        where = f"{self.policy} at speed {self.speed}"
        return f"SpeedRow({where}: {cost_in_words(self)} by {self.proven_by.kind})"

    def sentence(self) -> str:
        """The result in words."""
        what = f"the offline optimum of {self.proven_by.holds_for} at speed 1"
        if self.factor is None:
            return f"{self.policy} at speed {self.speed}: no bound above 0 of {what} was found"
        return (
            f"{self.policy} at speed {self.speed} costs at most {at_most(self.factor)} {what} "
            f"(certified by {self.proven_by.kind})"
        )


@dataclass(frozen=True, repr=False)
class SpeedCurve(Brief):
    """Costs by policy and speed, over one bound.

    Parameters
    ----------
    objective : Objective
    rows : tuple of SpeedRow
        By policy, then speed.
    """

    objective: Objective
    rows: tuple[SpeedRow, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """A row a policy, a column a speed: cost over bound, rounded up."""
        import pandas as pd

        cells = [
            {
                "policy": row.policy,
                "speed": float(row.speed),
                "cost / bound": row.ratio,
            }
            for row in self.rows
        ]
        table = pd.DataFrame(cells).pivot(index="policy", columns="speed", values="cost / bound")
        return table.loc[list(dict.fromkeys(row.policy for row in self.rows))]

    def sentences(self) -> tuple[str, ...]:
        """All results in words."""
        return tuple(row.sentence() for row in self.rows)

    def to_dict(self) -> dict[str, object]:
        """Data as for JSON; times in seconds."""
        rows = [
            {
                "policy": row.policy,
                "speed": str(row.speed),
                "cost": row.cost,
                "bound": row.bound,
                "bound_kind": row.proven_by.kind,
                "class": row.proven_by.holds_for.to_dict(),
            }
            for row in self.rows
        ]
        return {"objective": str(self.objective), "rows": rows}


def speed_curve(
    workload: Workload,
    cluster: Cluster | str,
    policies: Sequence[str | Policy] = ("srtf", "las", "las2d", "asrpt"),
    speeds: Sequence[Fraction | float] = SPEEDS,
    objective: Objective | str = Objective.FLOW,
    *,
    budget_s: float = 20.0,
) -> SpeedCurve:
    """Run policies on GPUs of several speeds, and bound what was possible on the given ones.

    The bound is one, of preemptive schedules at speed 1; a factor below 1 says that the faster GPUs make up for more
    than the policy loses.

    Parameters
    ----------
    policies : sequence of str or Policy
    speeds : sequence of Fraction or float
        Each 1 or more.
    budget_s : float
        Time for the bound [s].

    Raises
    ------
    InputError
        If a name or a speed is unknown, or work is not in seconds on GPUs that are alike.

    Examples
    --------
    >>> import shadowprice as sp
    >>> jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[4, 8])
    >>> found = speed_curve(jobs, "1x1", ["fifo"], [1, 2], budget_s=1)
    >>> [row.factor for row in found.rows]
    [Fraction(1, 1), Fraction(1, 2)]
    """
    goal = Objective.of(objective)
    if not speeds:
        raise InputError("speeds: there are none, expected one or more")
    faster = {Fraction(speed): at_speed(workload, speed) for speed in speeds}
    named = by_name(policies)
    instance = Instance(Cluster.parse(cluster) if isinstance(cluster, str) else cluster, workload)
    bound, _ = certified_and_largest(bounds_of(instance, goal, BoundEffort(budget_s)))
    rows = []
    for name, policy in named.items():
        for speed, jobs in faster.items():
            outcome = execute_bounded(prepare_run(jobs, instance.cluster, policy))
            cost = exact_cost(outcome.instance, goal, outcome.end_s)
            rows.append(SpeedRow(name, speed, cost, bound))
    return SpeedCurve(goal, tuple(rows))
