"""Audit of what was run: recorded schedules verified and measured, and what any scheduler could have gained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.analysis.audit.costs import Cost, costs
from shadowprice.analysis.audit.measures import KNOWS as MEASURED_KNOWS
from shadowprice.analysis.audit.measures import IdleHours, Measures, measure
from shadowprice.analysis.audit.reading import cluster_of, read_records
from shadowprice.analysis.audit.recorded_run import RecordedRun, recorded_run
from shadowprice.analysis.audit.variants import ASSUMED, Variant, rerun, variants
from shadowprice.analysis.bounds import bounds_of, certified_and_largest
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.compare import Comparison, ComparisonRow, compare_outcomes
from shadowprice.analysis.wording import cost_cells, counted
from shadowprice.brief import Brief, cut, screen, table_lines
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.node_lists import node_names
from shadowprice.instances.features import missing
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.recorded.record import table
from shadowprice.instances.workload import Workload

if TYPE_CHECKING:
    import pandas as pd

    from shadowprice.analysis.jobs_and_cluster import Where

COUNTERFACTUALS = ("easy", "srtf", "las2d")
"""Policies that run the jobs of a log again: as clusters do, with the log's own durations, and knowing none."""


@dataclass(frozen=True, eq=False, repr=False)
class AuditedRun(Brief):
    """Verdict on one recorded run.

    Parameters
    ----------
    run : RecordedRun
        The record, its contradictions, and the verified schedule.
    comparisons : mapping of Objective to Comparison
        Recorded and counterfactual costs against certified bounds of these jobs on this cluster; empty where nothing
        was verified.
    measures : Measures or None
    variants : tuple of Variant
        The same with other capacities.
    costs : tuple of Cost
        What cost most, the largest first.
    """

    run: RecordedRun
    comparisons: Mapping[Objective, Comparison]
    measures: Measures | None = None
    variants: tuple[Variant, ...] = ()
    costs: tuple[Cost, ...] = ()

    @property
    def name(self) -> str:
        """Scheduler or run, as the record calls it."""
        return self.run.record.name

    @property
    def contradictions(self) -> pd.DataFrame:
        """All contradictions: row, job, kind, remedy, detail."""
        return table(self.run.contradictions)

    def row(self, goal: Objective) -> ComparisonRow | None:
        """The recorded cost against its bound; None where there is none."""
        result = self.comparisons.get(goal)
        return None if result is None else result.rows[0]

    def lines(self) -> list[str]:
        """Verdict in words: what was verified, and each objective against its bound."""
        return [*self._verified(), *self._verdicts(), *self._stated()]

    def report(self) -> list[str]:
        """Ten lines for whoever runs the cluster: what was used, what cost most, and what is taken to be so."""
        outcome, measured = self.run.outcome, self.measures
        if outcome is None or measured is None:
            return self.lines()
        summary, idle = outcome.summary(), measured.idle
        jobs, wait_h = (
            len(outcome.complete),
            sum(w.total_h for w in measured.waits if w.kind == "GPUs"),
        )
        use = summary["utilization"]
        assert isinstance(use, float)
        first, *verdicts = self.lines()
        lines = [first, verdicts[0] if verdicts else ""]
        lines.append(
            f"use: {use:.1%} of {self.run.cluster.physical_gpus:,} GPUs until the last end, at most "
            f"{measured.most_gpus:,} at once; {counted(jobs, 'job')} waited {wait_h:,.1f} hours together"
            f"{_who_waited(measured)}"
        )
        lines += [each.sentence() for each in self.costs]
        lines.append(
            f"idle GPU-hours: {idle.nobody_waits:,.1f} while nobody waited, {idle.too_wide:,.1f} while all that waited "
            f"were wider than what was free, {', '.join(_fragmented(self.run, idle))}"
            f"{idle.held_back:,.1f} while a job waited that fits"
        )
        for each in self.variants:
            lines.append(self._varied(each))
        return [*lines, ASSUMED]

    def _varied(self, variant: Variant) -> str:
        first, *others = variant.comparison.rows
        per = Fraction(1, len(next(iter(variant.comparison.outcomes.values())).complete))
        (_, bound, ratio), *_ = cost_cells([_seconds(first, per)])
        return (
            f"capacity {variant.capacity}: of all {first.holds_for} none has a mean JCT of less than {bound} s "
            f"({variant.comparison.objective}, certified by {first.bound_kind}), at most {ratio}; "
            + ", ".join(_in_words(row, per) for row in others)
        )

    def _verified(self) -> list[str]:
        record, sound = self.run.record, int(self.run.sound.sum())
        faults = sum(len(each) for each in self.run.contradictions)
        words = f"{record.name}: {counted(len(record.id), 'job')}, {counted(faults, 'row')} noticed"
        if self.run.outcome is None:
            return [f"{words}; no schedule could be verified, so that nothing is said of it"]
        jobs = f"{sound:,} verified" + (
            f", {len(record.id) - sound:,} left out" if sound < len(record.id) else ""
        )
        return [f"{words}; {jobs}"]

    def _verdicts(self) -> list[str]:
        result = []
        for goal, comparison in self.comparisons.items():
            first, *others = comparison.rows
            jobs, per = len(next(iter(comparison.outcomes.values())).complete), Fraction(1)
            what = "the makespan"
            if goal is Objective.FLOW:
                what, per = "mean JCT", Fraction(1, jobs)
            (cost, bound, ratio), *_ = cost_cells([_seconds(first, per)])
            if not first.certified or first.proven_by.ticks <= 0:
                result.append(f"{what} was {cost} s; no bound above 0 was found")
                continue
            place = f"on these {counted(jobs, 'job')} and {self.run.cluster.physical_gpus:,} GPUs"
            proof = f"{goal}, certified by {first.bound_kind}"
            words = (
                f"{what} was {cost} s; {place}, of all {first.holds_for}, none has less than {bound} s "
                f"({proof}): at most {ratio} the optimum"
            )
            if others:
                words += f"; {', '.join(_in_words(row, per) for row in others)}"
            result.append(words)
        return result

    def _stated(self) -> list[str]:
        """Metrics that the record itself states, beside ours."""
        if self.run.outcome is None or not self.run.record.stated:
            return []
        ours = self.run.outcome.summary()
        parts = []
        for name, value in self.run.record.stated.items():
            mine = ours[name]
            assert isinstance(mine, float)
            same = abs(mine - value) <= 1e-6 * max(abs(value), 1.0)
            how = (
                ", time held over that of all GPUs until the last end"
                if name == "utilization"
                else ""
            )
            parts.append(f"{name} {value:,.10g}" + ("" if same else f" (here {mine:,.10g}{how})"))
        return [f"the record states {', '.join(parts)}"]

    def document(self) -> dict[str, object]:
        """The verdict as JSON has it."""
        record, outcome = self.run.record, self.run.outcome
        faults = self.contradictions
        return {
            "run": record.name,
            "jobs": len(record.id),
            "verified_jobs": int(self.run.sound.sum()) if outcome is not None else 0,
            "cluster": str(self.run.cluster),
            "verified": outcome is not None,
            "metrics": None if outcome is None else _metrics(outcome.summary()),
            "stated": dict(record.stated),
            "contradictions": faults.to_dict(orient="records"),
            "contradictions_by_kind": {
                str(each.kind): len(each) for each in self.run.contradictions
            },
            "objectives": {str(goal): each.to_dict() for goal, each in self.comparisons.items()},
            "measures": None if self.measures is None else _measured(self.measures),
            "capacities": [each.document() for each in self.variants],
            "costs": [asdict(each) for each in self.costs],
            "notes": list(self.run.notes),
            "cannot_answer": list(record.unanswered),
            "sentences": self.lines(),
        }


def _who_waited(measured: Measures) -> str:
    """User, tenant or partition whose jobs waited for longest together, of the first kind that is known."""
    for kind in ("user", "tenant", "partition"):
        result = [each for each in measured.waits if each.kind == kind]
        if len(result) > 1:
            most = result[0]
            return f", {kind} {most.name or '(none)'} {most.total_h:,.1f} in {counted(most.jobs, 'job')}"
    return ""


def _fragmented(run: RecordedRun, idle: IdleHours) -> list[str]:
    """Idle GPU-hours by node and rack, where these are known."""
    if not run.record.places:
        return [""]
    where = [f"{idle.by_node:,.1f} while no node had room for one that fits by count"]
    racks = {node.rack for node in run.cluster.nodes}
    if len(racks) > 1:
        where.append(f"{idle.by_rack:,.1f} while no rack had")
    return [*where, ""]


def _in_words(row: ComparisonRow, per: Fraction) -> str:
    cost, _ = _seconds(row, per)
    return f"{row.policy} would have had {float(cost):,.0f} s"


def _seconds(row: ComparisonRow, per: Fraction) -> tuple[Fraction, Fraction]:
    return row.cost_ticks / TICKS_PER_S * per, row.proven_by.ticks / TICKS_PER_S * per


_NOT_OF_THE_RECORD = ("cpu_s", "policy", "verified")


def _metrics(summary: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in summary.items() if name not in _NOT_OF_THE_RECORD}


def _measured(result: Measures) -> dict[str, object]:
    return {
        "waits": [asdict(each) for each in result.waits],
        "idle_gpu_h": asdict(result.idle),
        "most_gpus": result.most_gpus,
        "most_gpus_by_day": result.most_by_day.tolist(),
    }


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """Verdicts on all runs of a record.

    Parameters
    ----------
    source : str
    runs : tuple of AuditedRun
        In the order of the file.
    common : mapping of Objective to tuple of ComparisonRow
        Costs of several runs of the same jobs against one bound, that of jobs which need no more than the
        least time for which any of the runs held them; empty for one run.
    """

    source: str
    runs: tuple[AuditedRun, ...]
    common: Mapping[Objective, tuple[ComparisonRow, ...]]

    @property
    def contradictions(self) -> pd.DataFrame:
        """Contradictions of all runs: run, row, job, kind, remedy, detail."""
        import pandas as pd

        frames = [each.contradictions.assign(run=each.name) for each in self.runs]
        joined = pd.concat(frames, ignore_index=True)
        return joined[["run", *(name for name in joined.columns if name != "run")]]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a run and objective: cost, bound and ratio, and those against the common bound."""
        import pandas as pd

        rows = []
        for place, audited in enumerate(self.runs):
            for goal in audited.comparisons:
                row = audited.row(goal)
                assert row is not None
                shared = self.common.get(goal)
                rows.append(
                    {
                        "run": audited.name,
                        "objective": str(goal),
                        "cost_s": row.cost,
                        "bound_s": row.bound,
                        "ratio": row.ratio,
                        "bound_kind": row.bound_kind,
                        "class": str(row.holds_for),
                        "common_bound_s": np.nan if shared is None else shared[place].bound,
                        "common_ratio": np.nan if shared is None else shared[place].ratio,
                    }
                )
        return pd.DataFrame(rows)

    def lines(self) -> list[str]:
        """All sentences."""
        return [*(line for each in self.runs for line in each.lines()), *self.common_lines()]

    def common_lines(self) -> list[str]:
        """Sentences on the bound that several runs have in common."""
        result = []
        for goal, rows in self.common.items():
            if rows[0].proven_by.ticks > 0:
                (_, bound, _), *_ = cost_cells([_seconds(each, Fraction(1)) for each in rows])
                result.append(
                    f"{goal} of all {len(rows)} runs: of jobs that need no more than the least time for which one "
                    f"of them held its gang, of all {rows[0].holds_for}, none costs less than {bound} s "
                    f"(certified by {rows[0].bound_kind})"
                )
        return result

    def document(self) -> dict[str, object]:
        """The audit as JSON has it."""
        return {
            "source": self.source,
            "runs": [each.document() for each in self.runs],
            "common": {
                str(goal): [row.to_dict() for row in rows] for goal, rows in self.common.items()
            },
        }

    def __repr__(self) -> str:
        rows: list[tuple[str, ...]] = []
        classes: dict[str, None] = {}
        for audited in self.runs:
            for goal, comparison in audited.comparisons.items():
                row = comparison.rows[0]
                (cells,) = cost_cells([_seconds(row, Fraction(1))])
                rows.append((cut(audited.name, 30), str(goal), *cells, row.bound_kind))
                classes[str(row.holds_for)] = None
        jobs = sum(len(each.run.record.id) for each in self.runs)
        sound = sum(int(each.run.sound.sum()) for each in self.runs if each.run.outcome is not None)
        words = f"{sound:,} of {counted(jobs, 'job')} verified in {counted(len(self.runs), 'run')}"
        bounds = f", bounds of {' or '.join(classes)}" if rows else ""
        head = f"Audit({cut(self.source, 40)}: {words}{bounds})"
        names = ("run", "objective", "cost [s]", "bound [s]", "ratio at most", "certified by")
        return screen(head, table_lines(names, rows) if rows else ())


def audit(
    log: str | Path,
    cluster: Where | None = None,
    *,
    jobs: Workload | None = None,
    policies: Sequence[str] | None = None,
    budget_s: float = 20.0,
    zone: str | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Audit:
    """Verify what was run, measure it, and bound what any scheduler could have reached.

    Parameters
    ----------
    log : path
        A log with starts and ends, a table of pieces, or recorded rounds.
    cluster : Where, optional
        Cluster on which it ran; a file of rounds may say so itself.
    jobs : Workload, optional
        The jobs, where another file has them: arrivals, gangs, work and rates are theirs then.
    policies : sequence of str, optional
        Policies that run the jobs again; by default :data:`COUNTERFACTUALS` for one run, none for several.
    budget_s : float
        Time for all bounds [s], at most.
    zone : str, optional
        Zone of dates without one.
    progress : callable
        Told of each step.

    Raises
    ------
    InputError
        If the file cannot be read, or no cluster is known.
    """
    progress(f"reading {log}")
    records = read_records(log, zone=zone)
    names = node_names(cluster) if isinstance(cluster, str | Path) else ()
    raw = cluster if cluster is None or isinstance(cluster, Cluster) else Cluster.load(cluster)
    if policies is None:
        policies = COUNTERFACTUALS if len(records) == 1 else ()
    runs = [
        recorded_run(record, cluster_of(record, raw), names=names, jobs=jobs) for record in records
    ]
    several = len(runs) > 1
    share_s = budget_s / (len(runs) + several)
    audited = [_audited(run, policies, share_s, progress) for run in runs]
    common = _common(runs, share_s) if several else {}
    return Audit(str(log), tuple(audited), common)


def _audited(
    run: RecordedRun,
    policies: Sequence[str],
    budget_s: float,
    progress: Callable[[str], None],
) -> AuditedRun:
    if run.outcome is None:
        return AuditedRun(run, {})
    outcomes = {run.record.name: run.outcome}
    for name in policies:
        progress(f"running the jobs of {run.record.name} again under {name}")
        outcomes[name] = rerun(run.outcome.instance, name)
    goals = [Objective.FLOW] * run.answers_jct + [Objective.MAKESPAN]
    progress(f"bounding what was possible for {run.record.name}")
    # Whatever the record's scheduler did: the bound is of all schedulers, that preempt as well.
    share_s = budget_s / 3 if policies else budget_s
    comparisons = {
        goal: compare_outcomes(outcomes, goal, budget_s=share_s, preemptive=True) for goal in goals
    }
    if missing(run.outcome.instance, MEASURED_KNOWS):
        return AuditedRun(run, comparisons)
    measured = measure(run.outcome, origin_s=run.record.origin_s)
    again = bool(policies) and run.answers_jct
    varied = variants(run.outcome, measured, policies, share_s) if again else ()
    paid = costs(run.outcome, progress) if again else ()
    return AuditedRun(run, comparisons, measured, tuple(varied), tuple(paid))


def _common(
    runs: Sequence[RecordedRun], budget_s: float
) -> dict[Objective, tuple[ComparisonRow, ...]]:
    """Rows of runs of the same jobs on one cluster against one bound; none where they are not the same."""
    outcomes = [run.outcome for run in runs if run.outcome is not None]
    if len(outcomes) < len(runs):
        return {}
    first = outcomes[0].instance
    if not all(_same_jobs(first, each.instance) for each in outcomes):
        return {}
    work = np.minimum.reduce([each.instance.workload.work for each in outcomes])
    least = Instance(first.cluster, replace(first.workload, work=work))
    result: dict[Objective, tuple[ComparisonRow, ...]] = {}
    for goal in (Objective.FLOW, Objective.MAKESPAN):
        if goal is Objective.FLOW and not all(run.answers_jct for run in runs):
            continue
        bound, _ = certified_and_largest(bounds_of(least, goal, BoundEffort(budget_s)))
        result[goal] = tuple(
            ComparisonRow(
                run.record.name,
                exact_cost(outcome.instance, goal, outcome.end_s),
                bound,
                attained=False,
                sharper=None,
            )
            for run, outcome in zip(runs, outcomes, strict=True)
        )
    return result


def _same_jobs(one: Instance, other: Instance) -> bool:
    """True if instances have one cluster, and jobs that differ in their work alone."""
    if one.cluster != other.cluster or len(one.workload) != len(other.workload):
        return False
    if one.workload.throughput is not None or other.workload.throughput is not None:
        return False
    return all(
        bool((getattr(one.workload, name) == getattr(other.workload, name)).all())
        for name in ("id", "arrival_s", "gpus", "weight")
    )
