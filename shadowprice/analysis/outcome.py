"""Outcomes: a verified schedule and everything computed from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from shadowprice.analysis import metrics, plots
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.proofs.certificate import verify


@dataclass(frozen=True, eq=False)
class Outcome:
    """A schedule that passed the verifier; made by :meth:`verified` only.

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
    cpu_s, verify_cpu_s : float
        CPU time of the simulation and of the verification [s].
    """

    instance: Instance
    schedule: Schedule
    policy: str
    settings: Mapping[str, object] = field(default_factory=dict)
    decisions: int = 0
    cpu_s: float = 0.0
    verify_cpu_s: float = 0.0

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
    ) -> Outcome:
        """Verify a schedule and wrap it; raises Violation if it breaks a rule."""
        began = time.process_time()
        verify(instance, schedule)
        took = time.process_time() - began
        return cls(instance, schedule, policy, dict(settings or {}), decisions, cpu_s, took)

    @cached_property
    def end_s(self) -> NDArray[np.float64]:
        """Completion time of every job [s], shape (n,)."""
        return metrics.end_s(self.instance, self.schedule)

    @cached_property
    def jct_s(self) -> NDArray[np.float64]:
        """Completion minus arrival of every job [s], shape (n,)."""
        return metrics.jct_s(self.instance, self.schedule)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row a job: id, arrival_s, first_start_s, end_s, jct_s, preemptions."""
        return pd.DataFrame(
            {
                "id": self.instance.workload.id,
                "arrival_s": self.instance.workload.arrival_s,
                "first_start_s": metrics.first_start_s(self.instance, self.schedule),
                "end_s": self.end_s,
                "jct_s": self.jct_s,
                "preemptions": metrics.preemptions(self.instance, self.schedule),
            }
        )

    def summary(self) -> dict[str, object]:
        """The metrics the command line prints; statistics of no jobs are None."""
        jct = self.jct_s
        quantiles = np.percentile(jct, [50, 95, 99]).tolist() if len(jct) else [None] * 3
        return {
            "policy": self.policy,
            "jobs": len(jct),
            "completed": int(np.count_nonzero(self.end_s > 0)),
            "avg_jct_s": float(jct.mean()) if len(jct) else None,
            "p50_jct_s": quantiles[0],
            "p95_jct_s": quantiles[1],
            "p99_jct_s": quantiles[2],
            "makespan_s": metrics.makespan_s(self.instance, self.schedule),
            "utilization": metrics.utilization(self.instance, self.schedule),
            "preemptions": int(metrics.preemptions(self.instance, self.schedule).sum()),
            "verified": True,
            "cpu_s": self.cpu_s,
        }

    def plot_gantt(self, axes: Axes | None = None) -> Axes:
        """Draw which GPUs each job held when; see :func:`shadowprice.analysis.plots.gantt`."""
        return plots.gantt(self.instance, self.schedule, axes, title=self.policy)

    def plot_jct_cdf(self, axes: Axes | None = None) -> Axes:
        """Draw the distribution of job completion times."""
        return plots.jct_cdf({self.policy: self.jct_s}, axes)

    def __repr__(self) -> str:
        mean = f"{self.jct_s.mean():.1f} s" if len(self.jct_s) else "none"
        return f"Outcome({self.policy}: {len(self.jct_s)} jobs, mean JCT {mean}, verified)"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(f'{v:,.3f}' if isinstance(v, float) else str(v))}</td></tr>"
            for key, v in self.summary().items()
        )
        return f"<table>{cells}</table>"
