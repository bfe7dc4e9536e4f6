"""Outcomes: a verified schedule and everything computed from it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import availability, metrics, run_metrics
from shadowprice.analysis.job_totals import JobTotals
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.certificate import verify

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from shadowprice.solvers.price_log import PriceLog


class VerifiedRun(ABC):
    """A run whose schedule was verified, and what is computed from the totals of its jobs.

    Attributes
    ----------
    instance : Instance
        What was given.
    policy : str
        Name of the policy.
    cpu_s : float
        CPU time of the simulation [s].
    complete : ndarray of bool, shape (n,)
        True for jobs that are complete, as verified: all, unless the run ended with a window of jobs or was
        stopped.
    """

    instance: Instance
    policy: str
    settings: Mapping[str, object]
    decisions: int
    cpu_s: float
    verify_cpu_s: float
    complete: NDArray[np.bool_]
    prices: PriceLog | None = None

    @property
    @abstractmethod
    def totals(self) -> JobTotals:
        """Totals of every job."""

    @cached_property
    def end_s(self) -> NDArray[np.float64]:
        """Completion time of every job [s], shape (n,); infinity if the run ended before."""
        return np.where(self.complete, self.totals.last_end_s, np.inf)

    @cached_property
    def jct_s(self) -> NDArray[np.float64]:
        """Completion minus arrival of every job [s], shape (n,); infinity if the run ended before."""
        duration: NDArray[np.float64] = self.end_s - self.instance.workload.arrival_s
        return duration

    @property
    def measured(self) -> slice:
        """Rows of the jobs that statistics are of: all, or the window whose completion ended the run."""
        window = self.instance.until_complete
        return slice(0, len(self.complete)) if window is None else window.rows

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job: what it was, and what became of it.

        ``id``, ``arrival_s``, ``first_start_s``, ``end_s``, ``jct_s``, ``preemptions``; ``gpus`` (its gang) and
        ``held_gpus`` (parts of one included), ``job_class``, ``tenant``, ``model``; ``gpu_type`` (those it ran on,
        in order of their names, with bars between them); ``first_wait_s`` (until its first start) and ``queueing_s``
        (all time without GPUs until its end), infinity if it has none; ``lost_work_s`` (work that was done and
        lost: nothing is lost where nothing fails). Of jobs that run as several copies also ``copies``, the
        largest number of them in a round. Where nodes fail also ``failures``, the runs that they cut short.
        """
        import pandas as pd

        workload, totals = self.instance.workload, self.totals
        queueing_s = totals.last_end_s - workload.arrival_s - totals.ran_s
        columns = {
            "id": workload.id,
            "arrival_s": workload.arrival_s,
            "first_start_s": totals.first_start_s,
            "end_s": self.end_s,
            "jct_s": self.jct_s,
            "preemptions": totals.preemptions,
            "gpus": workload.gpus,
            "held_gpus": workload.held_gpus,
            "job_class": workload.job_class,
            "tenant": workload.tenant,
            "model": workload.model,
            "gpu_type": metrics.names_of_types(self.instance, totals.types_used),
            "first_wait_s": totals.first_start_s - workload.arrival_s,
            "queueing_s": np.where(self.complete, queueing_s, np.inf),
            "lost_work_s": np.zeros(len(workload)),
        }
        if totals.copies is not None:
            columns["copies"] = totals.copies
        return pd.DataFrame({**columns, **self._columns_of_failures()})

    def _columns_of_failures(self) -> Mapping[str, NDArray[np.generic]]:
        """Columns of :attr:`jobs` where nodes fail."""
        return {}

    def _availability(self) -> Mapping[str, object]:
        """Metrics of :meth:`summary` where nodes fail."""
        return {}

    def summary(self) -> dict[str, object]:
        """The metrics the command line prints; statistics of no jobs are None.

        Of a run that ended with a window of jobs, statistics of jobs are of that window; makespan,
        utilisation and preemptions are of all that was done until then. Of a run that was stopped,
        statistics that need all jobs to be complete are None, and it says how many are missing.
        """
        if self.instance.stopped_s is not None:
            return self._partial_summary(self.instance.stopped_s)
        jct, window = self.jct_s[self.measured], self.instance.until_complete
        p50, p95, p99 = metrics.percentiles(jct, (50, 95, 99))
        totals, instance = self.totals, self.instance
        summary: dict[str, object] = {
            "policy": self.policy,
            "jobs": len(self.complete),
            "completed": int(np.count_nonzero(self.complete)),
            **({} if window is None else {"window": str(window)}),
            "avg_jct_s": metrics.mean(jct),
            "p50_jct_s": p50,
            "p95_jct_s": p95,
            "p99_jct_s": p99,
            "makespan_s": totals.makespan_s(instance),
            "utilization": totals.utilization(instance),
            **self._of_cores(),
            "preemptions": int(totals.preemptions.sum()),
            "verified": True,
            "cpu_s": self.cpu_s,
            **run_metrics.of_totals(instance, totals, complete=self.complete).summary(),
        }
        if totals.copies is not None:
            summary["mean_copies"] = metrics.mean(totals.copies.astype(np.float64))
        return {**summary, **self._availability()}

    def _of_cores(self) -> dict[str, float]:
        """Utilisation of the cores of nodes without GPUs, of clusters that have such nodes."""
        if not self.instance.cluster.cores:
            return {}
        return {"core_utilization": self.totals.core_utilization(self.instance)}

    def _partial_summary(self, stopped_s: float) -> dict[str, object]:
        """Metrics of a run that was stopped: what is known, and None where it takes the missing jobs."""
        totals, instance = self.totals, self.instance
        arrived = int(np.count_nonzero(instance.workload.arrival_s <= stopped_s))
        completed = int(np.count_nonzero(self.complete))
        busy_s, window = stopped_s - totals.begin_s, instance.until_complete
        measured = self.jct_s[self.measured]
        return {
            "policy": self.policy,
            "jobs": len(self.complete),
            "completed": completed,
            "stopped_s": stopped_s,
            "arrived_not_completed": arrived - completed,
            "not_arrived": len(self.complete) - arrived,
            **({} if window is None else {"window": str(window)}),
            "avg_jct_of_completed_s": metrics.mean(measured[np.isfinite(measured)]),
            "avg_jct_s": None,
            "p50_jct_s": None,
            "p95_jct_s": None,
            "p99_jct_s": None,
            "makespan_s": None,
            "utilization": totals.utilization(instance),
            **self._of_cores(),
            "preemptions": int(totals.preemptions.sum()),
            "verified": True,
            "cpu_s": self.cpu_s,
            **dict.fromkeys(run_metrics.SUMMARY),
            "cru": run_metrics.share_busy(instance, totals, busy_s if busy_s > 0 else 0.0),
        }

    def missing(self) -> str | None:
        """Sentence on what a run lacks that was stopped; None of others."""
        stopped_s = self.instance.stopped_s
        if stopped_s is None:
            return None
        jobs, completed = len(self.complete), int(self.complete.sum())
        arrived = int(np.count_nonzero(self.instance.workload.arrival_s <= stopped_s))
        return (
            f"partial run, stopped at {stopped_s:,.10g} s of its time: {completed:,} of {jobs:,} jobs are complete, "
            f"{arrived - completed:,} have arrived and are not, {jobs - arrived:,} have not arrived"
        )

    def plot_jct_cdf(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution of job completion times."""
        from shadowprice.analysis.plots import distributions as plots

        return plots.jct_cdf({self.policy: self.jct_s[self.measured]}, axes)

    def __repr__(self) -> str:
        jct = self.jct_s[self.measured]
        jobs, mean_s = len(jct), metrics.mean(jct)
        summary = "no jobs" if mean_s is None else f"{jobs} jobs, mean JCT {mean_s:,.1f} s"
        if self.instance.stopped_s is not None:
            summary = f"{int(self.complete.sum())} of {jobs} jobs complete when it was stopped"
        return f"{type(self).__name__}({self.policy}: {summary}, verified)"

    def _repr_html_(self) -> str:
        """Show the summary as a table in a notebook."""
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(_shown(value))}</td></tr>"
            for key, value in self.summary().items()
        )
        return f"<table>{rows}</table>"


@dataclass(frozen=True, eq=False, repr=False)
class Outcome(VerifiedRun):
    """A verified schedule, what made it, and everything computed from it.

    Making one, in whatever way, verifies the schedule first: no metric, figure or comparison
    exists of a schedule that breaks a rule of its instance.

    Parameters
    ----------
    instance, schedule
        What was given, and what was done.
    policy : str
        Name of the policy.
    settings : mapping
        The options of the run: preset, placement, round_s, seed ...
    decisions : int
        Decisions the policy took.
    cpu_s : float
        CPU time of the simulation [s].
    prices : PriceLog, optional
        Prices over time, of a policy that sets some and was asked to keep them. Nobody has
        verified them, and nothing has to: any prices bound the optimum.

    Attributes
    ----------
    verify_cpu_s : float
        CPU time of the verification [s].
    complete : ndarray of bool, shape (n,)
        True for jobs that are complete, as verified: all, unless the run ended with a window of jobs or was
        stopped.

    Raises
    ------
    VerificationError
        If the schedule breaks a rule; the message names the rule and the first violated row.
    """

    instance: Instance
    schedule: Schedule
    policy: str
    settings: Mapping[str, object] = field(default_factory=dict)
    decisions: int = 0
    cpu_s: float = 0.0
    prices: PriceLog | None = None
    verify_cpu_s: float = field(init=False)
    complete: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        began = time.process_time()
        complete = verify(self.instance, self.schedule)
        object.__setattr__(self, "verify_cpu_s", time.process_time() - began)
        object.__setattr__(self, "complete", complete)
        object.__setattr__(self, "settings", dict(self.settings))

    @classmethod
    def verified(
        cls,
        instance: Instance,
        schedule: Schedule,
        *,
        policy: str,
        settings: Mapping[str, object] | None = None,
        decisions: int = 0,
        cpu_s: float = 0.0,
        prices: PriceLog | None = None,
    ) -> Outcome:
        """Verify a schedule and wrap it.

        Raises
        ------
        VerificationError
            If the schedule breaks a rule of the instance.
        """
        return cls(instance, schedule, policy, settings or {}, decisions, cpu_s, prices)

    @cached_property
    def totals(self) -> JobTotals:
        """Totals of every job."""
        return JobTotals.of(self.instance, self.schedule)

    def _columns_of_failures(self) -> Mapping[str, NDArray[np.generic]]:
        if self.instance.failures is None:
            return {}
        return {
            "lost_work_s": availability.lost_work_s(self.instance, self.schedule),
            "failures": availability.failures_of_jobs(self.instance, self.schedule),
        }

    def _availability(self) -> Mapping[str, object]:
        failing = availability.of_schedule(self.instance, self.schedule)
        return {} if failing is None else failing.to_dict()

    def plot_gantt(self, axes: Axes | None = None, *, colour_by: str | None = None) -> Axes:
        """Draw which job held which GPUs when; see :func:`shadowprice.analysis.plots.gantt.gantt`."""
        from shadowprice.analysis.plots.gantt import gantt

        return gantt(self.instance, self.schedule, axes, title=self.policy, colour_by=colour_by)


def _shown(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
