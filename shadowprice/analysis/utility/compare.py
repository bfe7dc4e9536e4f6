"""Total utility of policies against a certified bound and, where it is proven, the offline optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from shadowprice.analysis.certificates.job_utilities import ROUND_S
from shadowprice.analysis.certificates.utility_bound import BoundedUtility, EarningRuns
from shadowprice.analysis.compare import by_name
from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute_bounded
from shadowprice.analysis.wording import counted, utility_cells
from shadowprice.brief import screen, table_lines
from shadowprice.errors import InputError
from shadowprice.instances.features import Feature, missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import rounded_up
from shadowprice.instances.utility import UtilityTable
from shadowprice.models.hadar import time_indexed
from shadowprice.solvers.hadar.offline.optimum import KNOWS as PLANS_KNOWS
from shadowprice.solvers.hadar.offline.optimum import OfflineOptimum, optimum
from shadowprice.solvers.hadar.offline.programme import ModelBuilder
from shadowprice.solvers.policy import Policy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # who pays them has less time
        Feature.SHARING,  # of schedules in which nobody does
        Feature.CORES,  # are GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

_OFFLINE_CELLS = 3_000
"""Jobs times rounds up to which the offline optimum is tried."""


@dataclass(frozen=True)
class UtilityRow:
    """One policy against the bound.

    Parameters
    ----------
    utility : float
        Total utility, of each job at the end of the round in which it completes.
    bound, bound_kind
        No schedule of the class earns more, and by which prices.
    holds_for : str
        The class, in words.
    optimum : float or None
        The bound again if a run attains it, else None.
    ratio : float
        bound / utility, rounded up, at least 1; infinite where nothing was earned.
    certified : bool
        Whether the schedule was verified and the bound holds in exact arithmetic.
    """

    policy: str
    utility: float
    bound: float
    bound_kind: str
    holds_for: str
    optimum: float | None
    ratio: float
    certified: bool

    def sentence(self) -> str:
        """The result in words."""
        # Rounded down: a share that is not reached must not be claimed.
        share = 0.0 if math.isinf(self.ratio) else math.floor(1000 / Fraction(self.ratio)) / 10
        proof = "certified" if self.certified else "not certified"
        return (
            f"{self.policy} reaches at least {share:.1f} % of the largest possible utility of {self.holds_for} "
            f"({proof} by {self.bound_kind})"
        )

    def to_dict(self) -> dict[str, object]:
        """The row as tables and JSON have it; the class is ``class``, as of bounds of costs."""
        return {"class" if key == "holds_for" else key: each for key, each in asdict(self).items()}


@dataclass(frozen=True)
class UtilityPlan:
    """The best schedule of whole rounds that was found with everything known from the start.

    Parameters
    ----------
    utility, bound : float
        What it earns, and the most that a schedule of whole rounds earns of jobs that complete
        before the compared runs are over (float arithmetic, not certified); the bound of the
        model's objective where the model was edited.
    proven : bool
        Whether no plan of the model is better.
    edits : str
        How ``models/hadar.py`` differs from the published programme; empty if it does not.
    """

    utility: float
    bound: float
    proven: bool
    edits: str = ""

    def sentence(self, certified: BoundedUtility) -> str:
        """Comparison of the plan with the bound, in words."""
        # Rounded down: 100.0 % is the bound itself.
        share = Fraction(self.utility) / certified.value if certified.value else Fraction(1)
        proof = "proven optimal, in floats" if self.proven else "not proven optimal"
        if self.edits:
            proof += f", of a model that is not the published one: {self.edits}"
        return (
            f"the best plan of whole rounds that knows all jobs from the start earns {self.utility:.6g}, "
            f"{math.floor(1000 * share) / 10:.1f} % of the bound ({proof})"
        )


@dataclass(frozen=True, repr=False)
class UtilityComparison:
    """Rows, and the verified outcomes behind them."""

    utility: str
    round_s: float
    rows: tuple[UtilityRow, ...]
    bound: BoundedUtility
    plan: UtilityPlan | None
    outcomes: Mapping[str, Outcome]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a policy."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self.rows])

    def to_dict(self) -> dict[str, object]:
        """Data that ``--json`` prints."""
        return {
            "objective": "utility",
            "utility": self.utility,
            "round_s": self.round_s,
            "policies": self.row_entries(),
            "plan": None if self.plan is None else asdict(self.plan),
        }

    def row_entries(self) -> list[dict[str, object]]:
        """Rows as JSON and CSV have them; ratios of nothing earned are None."""
        return [
            {**row.to_dict(), "ratio": row.ratio if math.isfinite(row.ratio) else None}
            for row in self.rows
        ]

    def sentences(self) -> list[str]:
        """The result in words."""
        lines = [row.sentence() for row in self.rows]
        return lines if self.plan is None else [*lines, self.plan.sentence(self.bound)]

    def plot(self) -> Figure:
        """CDFs of job completion times beside bars of certified ratios."""
        from shadowprice.analysis.plots.distributions import plot_comparison

        return plot_comparison(
            {name: outcome.jct_s for name, outcome in self.outcomes.items()},
            {row.policy: row.ratio for row in self.rows},
            objective=self.utility.replace("_", " "),
            certified={row.policy: row.optimum is not None for row in self.rows},
            ratio_name="bound / utility",
            hatched="hatched: against an upper bound, not the proven optimum",
        )

    def __repr__(self) -> str:
        jobs = max((len(outcome.complete) for outcome in self.outcomes.values()), default=0)
        cells = utility_cells([(row.utility, row.bound, row.ratio) for row in self.rows])
        rows = [
            (row.policy, *numbers, row.bound_kind)
            for row, numbers in zip(self.rows, cells, strict=True)
        ]
        return screen(
            f"UtilityComparison({self.utility} of {counted(jobs, 'job')} in rounds of {self.round_s:g} s)",
            table_lines(("policy", "utility", "bound", "ratio at most", "bound kind"), rows),
        )

    def _repr_html_(self) -> str:
        sentences = "".join(f"<li>{escape(each)}</li>" for each in self.sentences())
        return f"{self.frame.to_html(index=False)}<ul>{sentences}</ul>"


def compare_utility(
    jobs: Problem,
    cluster: Where | None = None,
    policies: Sequence[str | Policy] = ("hadar", "hadar-committed", "fifo", "las2d"),
    utility: str = "effective_throughput",
    options: RunOptions | None = None,
    *,
    model: ModelBuilder | str | None = None,
    budget_s: float = 20.0,
    drop_infeasible: bool = False,
    progress: Callable[[str], None] = lambda step: None,
) -> UtilityComparison:
    """Run policies over the same jobs and bound the total utility that any of them could have.

    Parameters
    ----------
    jobs, cluster
        Jobs and the cluster, or an instance alone, as in :func:`shadowprice.simulate`.
    utility : str
        One of ``effective_throughput``, ``completion_time``, ``fairness``, ``deadline``.
    options : RunOptions, optional
        Its ``round_s``, if positive, is the round of utilities as well, else that is 360 s.
    model : callable or str, optional
        Of the offline optimum, as in :func:`shadowprice.solvers.hadar.offline.optimum.optimum`; Hadar's by
        default.
    budget_s : float
        CPU time for better prices, and as much for the offline optimum of small instances [s].
    progress : callable
        Told of each step.

    Raises
    ------
    InputError
        If there is a model and the instance is too large for its optimum, a name is unknown or
        given twice, or a run is outside of what the bounds are about: job graphs, shared GPUs,
        several copies of a job, presets that change the workload.
    """
    chosen, inputs = options or RunOptions(), JobsAndCluster.of(jobs, cluster)
    outcomes: dict[str, Outcome] = {}
    for name, policy in by_name(policies, sealed=chosen.sealed).items():
        progress(f"simulating {name}")
        # Prices are kept of the policies that set some, and not asked of the others.
        unpriced = replace(chosen, prices=False)
        run = prepare_run(inputs, None, policy, unpriced, drop_infeasible=drop_infeasible)
        outcomes[name] = execute_bounded(replace(run, name=name).keeping_prices())
    round_s = chosen.round_s or ROUND_S
    for outcome in outcomes.values():
        expect_comparable(outcome, next(iter(outcomes.values())).instance)
    runs = EarningRuns.of(outcomes, utility, round_s)
    progress("looking for the offline optimum")
    optimal = _optimum(runs, round_s, budget_s, model)
    progress("bounding the utility")
    offered = {} if optimal is None else {"the offline optimum's prices": optimal.prices}
    bound = runs.bound(budget_s, offered)
    plan = (
        None
        if optimal is None
        else UtilityPlan(optimal.utility, optimal.bound, optimal.proven, optimal.edits)
    )
    return UtilityComparison(utility, round_s, _rows(runs.earned, bound), bound, plan, outcomes)


def expect_comparable(outcome: Outcome, first: Instance) -> None:
    """Raise InputError for a run that is not comparable with the first, or whose class is not that of all."""
    instance = outcome.instance
    require(instance, KNOWS, f"bounds of utilities, for policy {outcome.policy!r}")
    for wrong, what in [
        (instance.workload != first.workload, "changes the workload, expected the same for all"),
        (instance.cluster != first.cluster, "has another cluster, expected the same for all"),
        (instance.overheads != first.overheads, "pays other charges, expected the same for all"),
        (instance.preemption != first.preemption, "preempts otherwise, expected the same for all"),
        (bool((outcome.schedule.partner >= 0).any()), "lets jobs share GPUs, expected none"),
    ]:
        if wrong:
            raise InputError(f"policy {outcome.policy!r}: no bound of utilities: it {what}")


def _optimum(
    runs: EarningRuns, round_s: float, budget_s: float, model: ModelBuilder | str | None
) -> OfflineOptimum | None:
    """The best plan of a model, for instances small enough to try; none that it does not know, unless it was given."""
    instance = next(iter(runs.runs.values())).instance
    jobs = len(instance.workload)
    if model is None and missing(instance, PLANS_KNOWS):
        return None
    if not 0 < jobs * runs.rounds <= _OFFLINE_CELLS:
        if model is not None:
            raise InputError(
                f"model {model!r}: {jobs} jobs in {runs.rounds} rounds, expected 1 to {_OFFLINE_CELLS} "
                "jobs times rounds"
            )
        return None
    chosen = time_indexed if model is None else model
    # Who completes after the rounds earns nothing in the programme.
    values = runs.utilities.table(runs.rounds)
    values[:, -1] = 0.0
    return optimum(instance, UtilityTable(values, round_s), model=chosen, time_limit_s=budget_s)


def _rows(earned: Mapping[str, Fraction], bound: BoundedUtility) -> tuple[UtilityRow, ...]:
    most = rounded_up(bound.value)
    optimal = most if max(earned.values()) == bound.value else None
    return tuple(
        UtilityRow(
            name,
            float(utility),
            most,
            bound.source,
            bound.of_class,
            optimal,
            rounded_up(_ratio(bound, utility)),
            True,
        )
        for name, utility in earned.items()
    )


def _ratio(bound: BoundedUtility, utility: Fraction) -> Fraction | None:
    """Bound over what was earned; None if that is nothing and the bound is not."""
    if utility > 0:
        return bound.value / utility
    return Fraction(1) if bound.value == 0 else None
