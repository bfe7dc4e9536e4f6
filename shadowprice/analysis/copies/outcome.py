"""Outcomes of runs in which jobs run as several copies: a verified record and its metrics."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis import metrics, run_metrics
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from shadowprice.execution.copies.local_sgd import Losses
    from shadowprice.instances.forks import Forks


@dataclass(frozen=True, eq=False)
class ForkOutcome:
    """A verified fork record, what made it, and everything computed from it.

    Making one verifies the record first, as an :class:`~shadowprice.analysis.outcome.Outcome`
    does with a schedule; the two have the same methods.

    Parameters
    ----------
    instance, record
        What was given, and what was done.
    policy : str
        Name of the scheduler, with its parameters.
    settings : mapping
        The switches of the run.
    cpu_s : float
        CPU time of the simulation, training of small models included [s].
    losses : Losses, optional
        Quality of small models trained as the copies were, against training in one piece.

    Attributes
    ----------
    verify_cpu_s : float
        CPU time of the verification [s].

    Raises
    ------
    VerificationError
        If the record breaks a rule; the message names the rule and the first violated row.
    """

    instance: Instance
    record: Forks
    policy: str
    settings: Mapping[str, object] = field(default_factory=dict)
    cpu_s: float = 0.0
    losses: Losses | None = None
    verify_cpu_s: float = field(init=False)

    def __post_init__(self) -> None:
        from shadowprice.proofs.hadar.copies_work import verify_forks

        began = time.process_time()
        verify_forks(self.instance, self.record)
        object.__setattr__(self, "verify_cpu_s", time.process_time() - began)
        object.__setattr__(self, "settings", dict(self.settings))

    @cached_property
    def end_s(self) -> NDArray[np.float64]:
        """Completion time of every job [s], shape (n,): the end of its last copy."""
        return metrics.end_s(self.instance, self.record)

    @cached_property
    def jct_s(self) -> NDArray[np.float64]:
        """Completion minus arrival of every job [s], shape (n,)."""
        return metrics.jct_s(self.instance, self.record)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job: id, arrival_s, first_start_s, end_s, jct_s, preemptions, copies.

        A preemption is a gap of at least one round between two rounds in which the job runs;
        ``copies`` is the largest number of them at a time.
        """
        import pandas as pd

        preemptions, copies = self._interruptions
        return pd.DataFrame(
            {
                "id": self.instance.workload.id,
                "arrival_s": self.instance.workload.arrival_s,
                "first_start_s": metrics.first_start_s(self.instance, self.record),
                "end_s": self.end_s,
                "jct_s": self.jct_s,
                "preemptions": preemptions,
                "copies": copies,
            }
        )

    @cached_property
    def _interruptions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gaps between served rounds, and the most copies in one round; both of shape (n,)."""
        record, count = self.record, len(self.instance.workload)
        places, sizes = np.unique(np.stack([record.job, record.round]), axis=1, return_counts=True)
        job = places[0]
        begins = np.zeros(record.rounds)
        begins[record.round] = record.start_s
        gap = np.diff(begins[places[1]]) > record.round_s
        gap &= job[1:] == job[:-1]
        gaps = np.bincount(job[1:], weights=gap, minlength=count).astype(np.int64)
        most = np.zeros(count, dtype=np.int64)
        np.maximum.at(most, job, sizes)
        return gaps, most

    @cached_property
    def utilization(self) -> float:
        """Share of the cluster's GPU time held over the makespan; copies hold whole nodes."""
        span_s = metrics.makespan_s(self.instance, self.record)
        if span_s == 0:
            return 0.0
        sizes = self.instance.cluster.gpus_per_node[self.record.node]
        held = (sizes * (self.record.end_s - self.record.start_s)).tolist()
        return math.fsum(held) / (self.instance.cluster.total_gpus * span_s)

    def summary(self) -> dict[str, object]:
        """The metrics the command line prints, with the keys of every other policy, and copies."""
        jct, (preemptions, copies) = self.jct_s, self._interruptions
        p50, p95, p99 = metrics.percentiles(jct, (50, 95, 99))
        return {
            "policy": self.policy,
            "jobs": len(jct),
            "completed": int(np.count_nonzero(np.isfinite(self.end_s))),
            "avg_jct_s": metrics.mean(jct),
            "p50_jct_s": p50,
            "p95_jct_s": p95,
            "p99_jct_s": p99,
            "makespan_s": metrics.makespan_s(self.instance, self.record),
            "utilization": self.utilization,
            "preemptions": int(preemptions.sum()),
            "verified": True,
            "cpu_s": self.cpu_s,
            **run_metrics.of_verified_forks(self.instance, self.record).summary(),
            "mean_copies": metrics.mean(copies.astype(np.float64)),
        }

    def quality(self) -> pd.DataFrame | None:
        """One row a job: losses before training, of copies and of one piece; None if not trained."""
        if self.losses is None:
            return None
        frame = self.losses.to_frame()
        frame.insert(0, "id", self.instance.workload.id)
        frame["difference"] = frame["forked"] - frame["one_copy"]
        return frame

    def quality_sentence(self) -> str | None:
        """Summary of the table of losses, in words; None if nothing was trained."""
        losses = self.losses
        if losses is None:
            return None
        if not len(losses.forked):
            return "no jobs, so no models were trained"
        forked, alone = float(losses.forked.mean()), float(losses.one_copy.mean())
        worse = int(np.count_nonzero(losses.forked > losses.one_copy))
        return (
            f"mean held-out loss {forked:.4f} in copies, {alone:.4f} in one piece with as many steps "
            f"({forked - alone:+.4f}); before training {float(losses.initial.mean()):.4f}; copies "
            f"are worse for {worse} of {len(losses.forked)} jobs. Logistic regressions on synthetic "
            "data, not the jobs' own models"
        )

    def plot_gantt(self, axes: Axes | None = None) -> Axes:
        """Draw which job held which nodes when, all copies of a job in one colour.

        A copy is drawn on all GPUs of its node, which it holds.
        """
        from shadowprice.analysis.plots import distributions as plots

        return plots.gantt(self.instance, self._as_rows(), axes, title=self.policy)

    def _as_rows(self) -> Schedule:
        """The record as rows of a schedule, for drawing only: jobs overlap with themselves."""
        record = self.record
        sizes = self.instance.cluster.gpus_per_node[record.node]
        return Schedule(
            record.job.copy(),
            record.node.copy(),
            sizes,
            record.start_s.copy(),
            record.end_s.copy(),
            record.overhead_s.copy(),
        )

    def plot_jct_cdf(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution of job completion times."""
        from shadowprice.analysis.plots import distributions as plots

        return plots.jct_cdf({self.policy: self.jct_s}, axes)

    def __repr__(self) -> str:
        mean_s = metrics.mean(self.jct_s)
        told = "no jobs" if mean_s is None else f"{len(self.jct_s)} jobs, mean JCT {mean_s:,.1f} s"
        return f"ForkOutcome({self.policy}: {told}, verified)"

    def _repr_html_(self) -> str:
        """Show the summary as a table in a notebook."""
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
            for key, value in self.summary().items()
        )
        return f"<table>{rows}</table>"
