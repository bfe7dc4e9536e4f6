"""How far each policy is from what was possible: costs against a certified bound or optimum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.analysis.comparing import distinct_names, refuse_forks, refuse_sharing
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.semantics import Semantics
from shadowprice.analysis.simulate import simulate_policy
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.workload import Workload
from shadowprice.solvers.bounds import Bound
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.strongest import strongest_bound

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Row:
    """One policy against the bound.

    Parameters
    ----------
    cost_s : float
        The policy's cost in the objective [s].
    bound_s, bound_kind
        No schedule that the compared policies could have made costs less [s], and why.
    optimum_s : float or None
        The bound again if it is the proven optimum, else None.
    ratio : float
        cost / bound: the policy is within this factor of the offline optimum.
    certified : bool
        Whether the schedule was verified and the bound holds in exact arithmetic.
    """

    policy: str
    cost_s: float
    bound_s: float
    bound_kind: str
    optimum_s: float | None
    ratio: float
    certified: bool

    def sentence(self) -> str:
        """The result in words."""
        percent = f"{100 * (self.ratio - 1):.1f} %"
        proof = (
            f"certified by {self.bound_kind}"
            if self.certified
            else f"by {self.bound_kind}, not certified"
        )
        if self.optimum_s is not None:
            kind = "proven" if self.bound_kind == "optimum" else f"attains {self.bound_kind}"
            proof = f"{kind}, " + ("certified" if self.certified else "not certified")
        return f"{self.policy} is within {percent} of the offline optimum ({proof})"


@dataclass(frozen=True)
class Comparison:
    """Rows, and the verified outcomes behind them."""

    objective: Objective
    rows: tuple[Row, ...]
    outcomes: Mapping[str, Outcome]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a policy."""
        import pandas as pd

        return pd.DataFrame([_record(row) for row in self.rows])

    def to_dict(self) -> dict[str, object]:
        """What ``--json`` prints."""
        return {"objective": str(self.objective), "policies": [_record(row) for row in self.rows]}

    def plot(self) -> Figure:
        """CDFs of job completion times beside bars of certified ratios."""
        from shadowprice.analysis.plots import plot_comparison

        ratios = {row.policy: row.ratio for row in self.rows}
        certified = {row.policy: row.certified and row.optimum_s is not None for row in self.rows}
        return plot_comparison(
            self.outcomes, ratios, objective=str(self.objective), certified=certified
        )

    def _repr_html_(self) -> str:
        sentences = "".join(f"<li>{escape(row.sentence())}</li>" for row in self.rows)
        return f"{self.frame.to_html(index=False)}<ul>{sentences}</ul>"


def compare(
    workload: Workload,
    cluster: Cluster | str | Path,
    policies: Sequence[str | Policy] = ("fifo", "srtf", "las2d", "gittins2d"),
    objective: Objective | str = Objective.COMPLETION,
    semantics: Semantics | None = None,
    *,
    budget_s: float = 20.0,
    drop_infeasible: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Run policies over the same workload and bound what any of them could have reached.

    The bound holds for preemptive schedules if one of the policies preempts, else for
    non-preemptive ones, so that all rows are measured with one yardstick. Overheads and
    placements only restrict schedules further: the bound ignores them and still holds.

    Parameters
    ----------
    budget_s : float
        Time for the bound [s]; the strongest that fits is used and named.
    progress : callable
        Told of each step, for progress bars.

    Raises
    ------
    InputError
        If the objective or a policy is unknown, or a policy is given twice.
    """
    try:
        goal = Objective(objective)
    except ValueError:
        raise InputError(
            f"objective {str(objective)!r}: expected one of {', '.join(Objective)}; "
            "for total utility there is compare_utility, or --objective utility"
        ) from None
    names = distinct_names(policies)
    outcomes: dict[str, Outcome] = {}
    for name, policy in zip(names, policies, strict=True):
        refuse_forks(name)
        progress(f"simulating {name}")
        outcomes[name] = simulate_policy(
            workload, cluster, policy, semantics, drop_infeasible=drop_infeasible
        )
    refuse_sharing(outcomes)
    progress("bounding the optimum")
    bounds = _bounds(outcomes, goal, budget_s)
    costs = {name: goal.cost_s(o.instance.workload, o.end_s) for name, o in outcomes.items()}
    attained = {bounds[name] for name, cost_s in costs.items() if cost_s == bounds[name].value_s}
    rows = tuple(
        _row(name, costs[name], bounds[name], bounds[name] in attained) for name in outcomes
    )
    return Comparison(goal, rows, outcomes)


def _bounds(outcomes: Mapping[str, Outcome], goal: Objective, budget_s: float) -> dict[str, Bound]:
    """One bound for all; presets that change the workload get one for each workload they make."""
    preemptive = any(bool(outcome.settings["preemptive"]) for outcome in outcomes.values())
    found: list[tuple[Instance, Bound]] = []
    result: dict[str, Bound] = {}
    kinds: list[Instance] = []
    for outcome in outcomes.values():
        if not any(_alike(outcome.instance, other) for other in kinds):
            kinds.append(outcome.instance)
    for name, outcome in outcomes.items():
        bound = next((b for i, b in found if _alike(i, outcome.instance)), None)
        if bound is None:
            bound = strongest_bound(
                outcome.instance, goal, preemptive=preemptive, budget_s=budget_s / len(kinds)
            )
            found.append((outcome.instance, bound))
        result[name] = bound
    return result


def _alike(one: Instance, other: Instance) -> bool:
    """Whether a bound of one instance is one of the other: the same jobs, no faster at best."""
    return one.workload == other.workload and np.array_equal(one.shortest_s, other.shortest_s)


def _row(name: str, cost_s: float, bound: Bound, attained: bool) -> Row:
    """A bound that one of the schedules attains is the optimum, whatever its kind."""
    ratio = cost_s / bound.value_s if bound.value_s > 0 else (1.0 if cost_s == 0 else float("inf"))
    optimum_s = bound.value_s if attained or bound.kind == "optimum" else None
    return Row(name, cost_s, bound.value_s, bound.kind, optimum_s, ratio, bound.certified)


def _record(row: Row) -> dict[str, object]:
    return {
        "policy": row.policy,
        "cost": row.cost_s,
        "bound": row.bound_s,
        "bound_kind": row.bound_kind,
        "optimum": row.optimum_s,
        "ratio": row.ratio,
        "certified": row.certified,
    }
