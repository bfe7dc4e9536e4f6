"""Comparison of policies with what was possible: costs against a certified bound or optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import TYPE_CHECKING

from shadowprice.analysis.bound_history import BoundHistory
from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.certificate_file import bounded_digest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import attains, exact_cost
from shadowprice.analysis.jobs_and_cluster import JobsAndCluster, Problem, Where
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import PreparedRun, policy_name, prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute, execute_until
from shadowprice.analysis.wording import (
    amount_at_least,
    at_most,
    cost_cells,
    cost_in_words,
    counted,
)
from shadowprice.brief import screen, table_lines
from shadowprice.errors import InputError
from shadowprice.execution.simulator import HasSimulator
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import BoundedCost, Objective, rounded_up
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.instances.terms.window import JobWindow
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import Bound
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.policy_checks import expect_policy
from shadowprice.solvers.registry import name_with_parameters, policies_named
from shadowprice.user_code import names_a_file

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from shadowprice.execution.watch import Watch


KNOWS = (
    RELAXED_KNOWS
    | {Feature.COPIES, Feature.QUOTAS, Feature.PARTS, Feature.WINDOW, Feature.OWN}
    | DECLARED_KNOWS
)
"""Runs whose costs are compared with bounds; what one cost that was stopped says little of the others."""


# What comparisons ask of the policies they compare, whatever the objective.


def by_name(policies: Sequence[str | Policy], *, sealed: bool = False) -> dict[str, str | Policy]:
    """Policies by the names under which they are compared.

    Of objects that have the same name the parameters tell which is which. A list that a file has under one
    name is all of its policies; if they are sealed no file is run here, and each name is one policy.

    Raises
    ------
    InputError
        If there are none, or two are the same.
    """
    listed = [each for policy in policies for each in _listed(policy, sealed)]
    named = [policy_name(each) for each in listed]
    names = [
        name if isinstance(each, str) or named.count(name) == 1 else name_with_parameters(each)
        for name, each in zip(named, listed, strict=True)
    ]
    if len(set(names)) < len(names) or not names:
        raise InputError(
            f"policies {', '.join(names) or '(none)'}: expected one or more different names"
        )
    return dict(zip(names, listed, strict=True))


def _listed(policy: str | Policy, sealed: bool) -> Sequence[str | Policy]:
    if not isinstance(policy, str):
        return (policy if isinstance(policy, HasSimulator) else expect_policy(policy),)
    policies = policies_named(policy) if names_a_file(policy) and not sealed else ()
    return policies if len(policies) > 1 else (policy,)


@dataclass(frozen=True, repr=False)
class ComparisonRow(BoundedCost):
    """One policy against the largest certified bound.

    Parameters
    ----------
    policy : str
    cost_ticks : Fraction
        The policy's cost in the objective [ticks], from the verified schedule; of a window of jobs theirs.
    proven_by : Bound
        No schedule of its class costs less; in exact arithmetic.
    attained : bool
        Whether a schedule of that class passed the verifier on the same instance and costs the bound,
        which is the optimum of the class then.
    sharper : Bound or None
        A larger bound, which is not certified.
    failing : bool
        Whether nodes failed in the policy's run. The bound is about nodes that never do, on which less is
        possible to no schedule: faults only restrict.
    window : JobWindow or None
        Jobs whose completion ended the run, where not all count.
    """

    policy: str
    cost_ticks: Fraction
    proven_by: Bound
    attained: bool
    sharper: Bound | None
    failing: bool = False
    window: JobWindow | None = None

    def _cost_and_bound(self) -> tuple[Fraction, Fraction]:
        return self.cost_ticks, self.proven_by.ticks

    @property
    def bound_kind(self) -> str:
        """Method by which the certified bound was found."""
        return self.proven_by.kind

    @property
    def holds_for(self) -> ScheduleClass:
        """Of which schedules the bound, the ratio and the optimum speak."""
        return self.proven_by.holds_for

    @property
    def certified(self) -> bool:
        """True if the bound holds in exact arithmetic; the schedule is verified in any case."""
        return self.proven_by.certified

    @property
    def optimum_s(self) -> float | None:
        """The bound again if a verified schedule of its class attains it, else None."""
        return self.bound if self.attained else None

    def __repr__(self) -> str:
        attained = ", attained" if self.attained else ""
        return f"ComparisonRow({self.policy}: {cost_in_words(self)} by {self.bound_kind}{attained})"

    def sentence(self) -> str:
        """The result in words."""
        where = self._where()
        optimum = f"the offline optimum of {self.holds_for}{where}"
        proof = f"{'' if self.certified else 'not '}certified by {self.bound_kind}"
        if self.factor is None:
            return f"{self.policy}: no bound above 0 of {optimum} was found"
        if self.attained and self.factor == 1:
            return f"{self.policy} is optimal among {self.holds_for}{where} ({proof})"
        if self.attained:
            proof += ", which a verified schedule attains"
        if self.sharper is not None:
            proof += f"; {self._sharper(self.sharper)}"
        return f"{self.policy} costs at most {at_most(self.factor)} {optimum} ({proof})"

    def optimum_in_words(self, least: str) -> str:
        """The class, and what is known of its offline optimum, which other rows may have in common.

        Parameters
        ----------
        least : str
            The bound, rounded down [s].
        """
        optimum = f"the offline optimum of {self.holds_for}{self._where()}"
        if self.factor is None:
            return f"no bound above 0 of {optimum} was found"
        sentence = f"{optimum} is at least {least} s ({'' if self.certified else 'not '}certified by {self.bound_kind})"
        if self.attained:
            sentence += ", which a verified schedule attains"
        if self.sharper is not None:
            what = (
                "" if self.sharper.holds_for == self.holds_for else f" for {self.sharper.holds_for}"
            )
            most = amount_at_least(self.sharper.value_s)
            sentence += f"; at least {most} s{what} by {self.sharper.kind}, not certified"
        return sentence

    def _where(self) -> str:
        """Words for what the costs are of, beside the class."""
        where = " on nodes that never fail" if self.failing else ""
        if self.window is not None:
            where += f", counting jobs {self.window.first} to {self.window.last - 1} alone"
        return where

    def _sharper(self, bound: Bound) -> str:
        factor = _factor(self.cost_ticks, bound)
        what = "" if bound.holds_for == self.holds_for else f" for {bound.holds_for}"
        assert factor is not None  # The bound found is larger than another, hence above 0.
        return f"{at_most(factor)}{what} by {bound.kind}, not certified"

    def to_dict(self) -> dict[str, object]:
        """The row as ``--json`` prints it; ratios beyond the range of floats are None."""
        return {
            "policy": self.policy,
            "cost": self.cost,
            "bound": self.bound,
            "bound_kind": self.bound_kind,
            "class": self.holds_for.to_dict(),
            "optimum": self.optimum_s,
            "ratio": _finite(self.ratio),
            "certified": self.certified,
            "sharper": None if self.sharper is None else self._bound_fields(self.sharper),
            **({"bound_on_nodes": "that never fail"} if self.failing else {}),
            **({} if self.window is None else {"window": str(self.window)}),
        }

    def _bound_fields(self, bound: Bound) -> dict[str, object]:
        return {
            "bound": bound.value_s,
            "bound_kind": bound.kind,
            "class": bound.holds_for.to_dict(),
            "ratio": _finite(rounded_up(_factor(self.cost_ticks, bound))),
            "certified": bound.certified,
        }


def _factor(cost: Fraction, bound: Bound) -> Fraction | None:
    if bound.ticks > 0:
        return cost / bound.ticks
    return Fraction(1) if cost == 0 else None


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None


@dataclass(frozen=True, repr=False)
class Comparison:
    """Rows, the verified outcomes behind them with the runs as they were prepared, and the bounds as they were found.

    ``missing`` are policies that were to be compared and did not get their turn, or did not finish, before
    the comparison was stopped.
    """

    objective: Objective
    rows: tuple[ComparisonRow, ...]
    outcomes: Mapping[str, Outcome]
    runs: Mapping[str, PreparedRun] = field(default_factory=dict)
    histories: tuple[BoundHistory, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def frame(self) -> pd.DataFrame:
        """One row a policy; the class in words."""
        import pandas as pd

        columns = ("policy", "cost", "bound", "bound_kind", "optimum", "ratio", "certified")
        rows = [{**row.to_dict(), "ratio": row.ratio} for row in self.rows]
        table = pd.DataFrame([{key: row[key] for key in columns} for row in rows])
        table.insert(4, "class", [str(row.holds_for) for row in self.rows])
        return table

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on bounds that know no queue, unless all policies attain them."""
        if all(row.factor == 1 for row in self.rows):
            return ()
        every = (history.warning() for history in self.histories)
        return tuple(each for each in every if each is not None)

    def to_dict(self) -> dict[str, object]:
        """Data that ``--json`` prints."""
        fields: dict[str, object] = {"objective": str(self.objective)}
        fields["policies"] = [row.to_dict() for row in self.rows]
        return {**fields, "missing": list(self.missing)} if self.missing else fields

    def plot(self) -> Figure:
        """CDFs of job completion times beside bars of certified ratios."""
        from shadowprice.analysis.plots.distributions import plot_comparison

        classes = dict.fromkeys(str(row.holds_for) for row in self.rows)
        return plot_comparison(
            {name: outcome.jct_s[outcome.measured] for name, outcome in self.outcomes.items()},
            {row.policy: row.factor for row in self.rows},
            objective=str(self.objective),
            certified={row.policy: row.attained for row in self.rows},
            ratio_name=f"cost / bound of\n{' or '.join(classes)}",
        )

    def __repr__(self) -> str:
        jobs = max((len(outcome.complete) for outcome in self.outcomes.values()), default=0)
        classes = dict.fromkeys(str(row.holds_for) for row in self.rows)
        head = f"Comparison({self.objective} of {counted(jobs, 'job')}, bounds of {' or '.join(classes)})"
        cells = cost_cells(
            [(r.cost_ticks / TICKS_PER_S, r.proven_by.ticks / TICKS_PER_S) for r in self.rows]
        )
        rows = [
            (row.policy, *numbers, row.bound_kind + ("" if row.certified else ", not certified"))
            for row, numbers in zip(self.rows, cells, strict=True)
        ]
        names = ("policy", "cost [s]", "bound [s]", "ratio at most", "bound kind")
        missing = [f"not compared: {', '.join(self.missing)}"] if self.missing else []
        return screen(head, table_lines(names, rows), missing)

    def _repr_html_(self) -> str:
        sentences = "".join(f"<li>{escape(row.sentence())}</li>" for row in self.rows)
        return f"{self.frame.to_html(index=False)}<ul>{sentences}</ul>"


def compare(
    jobs: Problem,
    cluster: Where | None = None,
    policies: Sequence[str | Policy] = ("fifo", "srtf", "las2d", "gittins2d"),
    objective: Objective | str = Objective.FLOW,
    options: RunOptions | None = None,
    *,
    budget_s: float = 20.0,
    drop_infeasible: bool = False,
    progress: Callable[[str], None] = lambda step: None,
    watch: Watch | None = None,
    keep_finished: bool = False,
) -> Comparison:
    """Run policies over the same jobs and bound what any of them could have reached.

    The bound holds for preemptive schedules if one of the policies preempts, else for non-preemptive ones, so that all
    rows are measured with one yardstick. It holds for all that the instance allows, jobs that share GPUs or grow among
    it, whether or not a policy makes use of it. Where all schedules have every gang on as few nodes as it fits on, a
    bound of such schedules alone counts too. The first start of each job counts where no two share GPUs; other charges
    only restrict schedules further, as quotas do. Where a window of jobs ends the runs, costs are of these jobs alone.

    Parameters
    ----------
    jobs, cluster
        Jobs and the cluster, or an instance alone, as in :func:`shadowprice.simulate`.
    policies : sequence of str or Policy
        Names, with parameters after a colon, or policies of your own.
    budget_s : float
        Time for the bound [s]; the strongest that fits is used and named.
    progress : callable
        Told of each step, for progress bars.
    watch : Watch, optional
        Told how far each simulation is.
    keep_finished : bool
        At an interrupt (Ctrl-C) once a policy is finished, compare those that are, and name the others as
        missing.

    Raises
    ------
    InputError
        If the objective or a policy is unknown, a policy is given twice, or a run has features that are not in
        ``KNOWS``.
    """
    goal = Objective.of(
        objective, "; for total utility there is compare_utility, or --objective utility"
    )
    sealed = options is not None and options.sealed
    named, inputs = by_name(policies, sealed=sealed), JobsAndCluster.of(jobs, cluster)
    window = inputs.window(options)
    runs: dict[str, PreparedRun] = {}
    outcomes: dict[str, Outcome] = {}
    for number, (name, policy) in enumerate(named.items(), 1):
        progress(f"simulating {name}, policy {number} of {len(named)}")
        try:
            if window is None:
                run = prepare_run(inputs, None, policy, options, drop_infeasible=drop_infeasible)
                run = replace(run, name=name)
                require_comparable(run)
                outcomes[name] = execute(run, watch)
            else:
                run, outcomes[name] = execute_until(
                    *(inputs, policy, options, window),
                    drop_infeasible=drop_infeasible,
                    name=name,
                )
                require_comparable(run)
        except KeyboardInterrupt:
            if not (keep_finished and outcomes):
                raise
            break
        runs[name] = run
    progress("bounding the optimum")
    rows, histories = _bounded(outcomes, goal, budget_s)
    left = tuple(name for name in named if name not in outcomes)
    return Comparison(goal, rows, outcomes, runs, histories, left)


def require_comparable(run: PreparedRun) -> None:
    """Raise InputError for a run whose features are not all in ``KNOWS``."""
    require(run.instance, KNOWS, f"bounds of what {run.name!r} costs; simulate has its metrics")


def compare_outcomes(
    outcomes: Mapping[str, Outcome],
    goal: Objective,
    *,
    budget_s: float,
    preemptive: bool | None = None,
) -> Comparison:
    """Outcomes that are there already, such as recorded ones, against bounds of what was possible.

    Parameters
    ----------
    preemptive : bool, optional
        Whether bounds must hold for schedules that preempt; if not given, whether one of these does.

    Raises
    ------
    InputError
        If one has features that are not in ``KNOWS``.
    """
    for name, each in outcomes.items():
        require(each.instance, KNOWS, f"bounds of what {name!r} costs")
    rows, histories = _bounded(outcomes, goal, budget_s, preemptive)
    return Comparison(goal, rows, outcomes, {}, histories)


def _bounded(
    outcomes: Mapping[str, Outcome],
    goal: Objective,
    budget_s: float,
    preemptive: bool | None = None,
) -> tuple[tuple[ComparisonRow, ...], tuple[BoundHistory, ...]]:
    """Rows of all outcomes, in their order, and bounds as they were found."""
    rows: dict[str, ComparisonRow] = {}
    groups, histories = _groups(outcomes), []
    if preemptive is None:
        preemptive = any(map(_preempts, outcomes.values()))
    consolidated = all(_consolidates(o) for o in outcomes.values() if o.instance.copies is None)
    for group in groups:
        first = next(iter(group.values()))
        costs = {name: exact_cost(o.instance, goal, o.end_s) for name, o in group.items()}
        search = bounds_of(
            first.instance,
            goal,
            BoundEffort(budget_s / len(groups)),
            preemptive=preemptive,
            consolidated=consolidated,
            enough=min(costs.values()),
        )
        history = BoundHistory(tuple(search))
        histories.append(history)
        rows |= _rows(group, costs, goal, history)
    return tuple(rows[name] for name in outcomes), tuple(histories)


def _preempts(outcome: Outcome) -> bool:
    used = ScheduleClass.used(outcome.instance, outcome.schedule)
    return bool(outcome.settings["preemptive"]) or used.preemptive


def _consolidates(outcome: Outcome) -> bool:
    return ScheduleClass.used(outcome.instance, outcome.schedule).consolidated


def _groups(outcomes: Mapping[str, Outcome]) -> list[dict[str, Outcome]]:
    """Outcomes that have their bounds in common; presets that change the workload split them."""
    groups: list[dict[str, Outcome]] = []
    for name, outcome in outcomes.items():
        for group in groups:
            if _alike(next(iter(group.values())).instance.undelayed, outcome.instance.undelayed):
                group[name] = outcome
                break
        else:
            groups.append({name: outcome})
    return groups


def _alike(one: Instance, other: Instance) -> bool:
    """True if a bound of one instance is one of the other."""
    return one is other or bounded_digest(one) == bounded_digest(other)


def _rows(
    group: Mapping[str, Outcome],
    costs: Mapping[str, Fraction],
    goal: Objective,
    history: BoundHistory,
) -> dict[str, ComparisonRow]:
    """Rows of outcomes that have their bounds in common."""
    bound, largest = certified_and_largest(history.bounds)
    best = [(o.instance, o.schedule) for name, o in group.items() if costs[name] == bound.ticks]
    if bound.witness is not None:
        best.append((next(iter(group.values())).instance, bound.witness))
    # Speeds that are alike at best may differ otherwise: each row has its own instance to verify on.
    return {
        name: ComparisonRow(
            name,
            costs[name],
            bound,
            any(
                attains(o.instance, goal, bound, schedule)
                for other, schedule in best
                if len(other.workload) == len(o.instance.workload)
            ),
            largest,
            o.instance.failures is not None,
            o.instance.until_complete,
        )
        for name, o in group.items()
    }
