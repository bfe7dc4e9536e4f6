"""Outcomes: a verified schedule and everything computed from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import availability, metrics, run_metrics
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.certificate import verify

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from shadowprice.execution.copies.local_sgd import Losses
    from shadowprice.solvers.price_log import PriceLog


@dataclass(frozen=True, eq=False)
class Outcome:
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
        The switches of the run: preset, placement, round_s, seed ...
    decisions : int
        Decisions the policy took.
    cpu_s : float
        CPU time of the simulation [s].
    prices : PriceLog, optional
        Prices over time, of a policy that sets some and was asked to keep them. Nobody has
        verified them, and nothing has to: any prices bound the optimum.
    losses : Losses, optional
        Quality of small models trained as the copies of jobs were, against training in one piece.

    Attributes
    ----------
    verify_cpu_s : float
        CPU time of the verification [s].
    complete : ndarray of bool, shape (n,)
        True for jobs that are complete, as verified: all, unless the run ended with a window of jobs.

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
    losses: Losses | None = None
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
    def end_s(self) -> NDArray[np.float64]:
        """Completion time of every job [s], shape (n,); infinity if the run ended before."""
        return np.where(self.complete, metrics.end_s(self.instance, self.schedule), np.inf)

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
        (all time without GPUs until its end), infinity if it has none; ``lost_work_s`` (time of its gang in which
        work was done and lost: none where no node fails). Of jobs that run as several copies also ``copies``, the
        largest number of them in a round. Where nodes fail also ``failures``, the runs that they cut short.
        """
        import pandas as pd

        given = self.instance.workload
        first_start_s = metrics.first_start_s(self.instance, self.schedule)
        queueing_s = metrics.queueing_delay_s(self.instance, self.schedule)
        columns = {
            "id": given.id,
            "arrival_s": given.arrival_s,
            "first_start_s": first_start_s,
            "end_s": self.end_s,
            "jct_s": self.jct_s,
            "preemptions": metrics.preemptions(self.instance, self.schedule),
            "gpus": given.gpus,
            "held_gpus": given.held_gpus,
            "job_class": given.job_class,
            "tenant": given.tenant,
            "model": given.model,
            "gpu_type": metrics.gpu_types(self.instance, self.schedule),
            "first_wait_s": first_start_s - given.arrival_s,
            "queueing_s": np.where(self.complete, queueing_s, np.inf),
            "lost_work_s": availability.lost_work_s(self.instance, self.schedule),
        }
        if self.instance.copies is not None:
            columns["copies"] = metrics.most_copies(self.instance, self.schedule)
        if self.instance.failures is not None:
            columns["failures"] = availability.failures_of_jobs(self.instance, self.schedule)
        return pd.DataFrame(columns)

    def summary(self) -> dict[str, object]:
        """The metrics the command line prints; statistics of no jobs are None.

        Of a run that ended with a window of jobs, statistics of jobs are of that window; makespan,
        utilisation and preemptions are of all that was done until then.
        """
        jct, window = self.jct_s[self.measured], self.instance.until_complete
        p50, p95, p99 = metrics.percentiles(jct, (50, 95, 99))
        summary: dict[str, object] = {
            "policy": self.policy,
            "jobs": len(self.complete),
            "completed": int(np.count_nonzero(self.complete)),
            **({} if window is None else {"window": str(window)}),
            "avg_jct_s": metrics.mean(jct),
            "p50_jct_s": p50,
            "p95_jct_s": p95,
            "p99_jct_s": p99,
            "makespan_s": metrics.makespan_s(self.instance, self.schedule),
            "utilization": metrics.utilization(self.instance, self.schedule),
            "preemptions": int(metrics.preemptions(self.instance, self.schedule).sum()),
            "verified": True,
            "cpu_s": self.cpu_s,
            **run_metrics.of_schedule(
                self.instance, self.schedule, complete=self.complete
            ).summary(),
        }
        if self.instance.copies is not None:
            copies = metrics.most_copies(self.instance, self.schedule)
            summary["mean_copies"] = metrics.mean(copies.astype(np.float64))
        failing = availability.of_schedule(self.instance, self.schedule)
        return summary if failing is None else {**summary, **failing.to_dict()}

    def plot_gantt(self, axes: Axes | None = None) -> Axes:
        """Draw which job held which GPUs when; see :func:`shadowprice.analysis.plots.distributions.gantt`."""
        from shadowprice.analysis.plots import distributions as plots

        return plots.gantt(self.instance, self.schedule, axes, title=self.policy)

    def plot_jct_cdf(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution of job completion times."""
        from shadowprice.analysis.plots import distributions as plots

        return plots.jct_cdf({self.policy: self.jct_s[self.measured]}, axes)

    def __repr__(self) -> str:
        jct = self.jct_s[self.measured]
        jobs, mean_s = len(jct), metrics.mean(jct)
        told = "no jobs" if mean_s is None else f"{jobs} jobs, mean JCT {mean_s:,.1f} s"
        return f"Outcome({self.policy}: {told}, verified)"

    def _repr_html_(self) -> str:
        """Show the summary as a table in a notebook."""
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(_shown(value))}</td></tr>"
            for key, value in self.summary().items()
        )
        return f"<table>{rows}</table>"


def _shown(value: object) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)
