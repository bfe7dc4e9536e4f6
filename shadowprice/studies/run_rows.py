"""Rows of one verified run: its summary, statistics of its groups of jobs, and its distributions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.studies.instance_digest import digest_of
from shadowprice.studies.job_table import GROUPS, METRICS, job_table
from shadowprice.studies.statistics.batch_means import batch_means
from shadowprice.studies.statistics.stability import queue_growth
from shadowprice.studies.statistics.warm_up import WarmUp, mser5
from shadowprice.studies.study_file import WarmUpRule

STATISTICS = ("mean", "p50", "p95", "p99", "max")
"""Of every metric and group."""

RANKS = (50.0, 95.0, 99.0)
LEVELS = (*(2.5 * k for k in range(40)), 99.0, 99.9, 100.0)
"""Percentiles that a distribution is kept by."""

ALL = "all"
"""Column and entry of the group of all jobs."""

OTHERS = "(others)"
"""Entry of the jobs whose own is not among those with the most GPU time."""

MOST_GROUPS = 20
_LEFT_OUT = ("policy", "cpu_s")
_DIGITS = 8
"""Significant digits of distributions, which are drawn only."""


def rows_of_run(
    outcome: Outcome, warm_up: str | int, groups: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Rows of the tables of a study, each with the table's name in ``table``.

    Parameters
    ----------
    warm_up : str or int
        ``none``, ``mser5`` (on job completion times in order of arrival), or a number of first jobs.
    groups : sequence of str or None
        Columns of :func:`job_table` by which jobs are grouped; those of :data:`GROUPS` that have several
        entries if None.

    Raises
    ------
    InputError
        If there is no such column, or the warm-up leaves no job.
    """
    jobs = job_table(outcome).iloc[outcome.measured].reset_index(drop=True)
    cut = _cut(jobs, warm_up)
    kept = jobs.iloc[cut.count :]
    if kept.empty:
        raise InputError(f"warm_up: leaves out {cut.count} of {len(jobs)} jobs, expected fewer")
    by = _columns(jobs, groups)
    return [
        _summary(outcome, kept, cut),
        *_group_rows(jobs, kept, by),
        *_distributions(kept),
    ]


def _cut(jobs: pd.DataFrame, warm_up: str | int) -> WarmUp:
    if isinstance(warm_up, int):
        return WarmUp(min(warm_up, len(jobs)), steady=True)
    if warm_up == WarmUpRule.MSER5:
        return mser5(jobs["jct_s"].to_numpy())
    return WarmUp(0, steady=True)


def _summary(outcome: Outcome, steady: pd.DataFrame, cut: WarmUp) -> dict[str, Any]:
    """The verified summary, and what is known of the run's mean JCT from within the run."""
    summary = {name: _plain(value) for name, value in outcome.summary().items()}
    for name in _LEFT_OUT:
        del summary[name]
    jct = steady["jct_s"].to_numpy()
    within = batch_means(jct)
    return {
        "table": "runs",
        **summary,
        "dropped": len(outcome.settings["dropped"]),  # type: ignore[arg-type]
        "warm_up_jobs": cut.count,
        "warm_up_found": cut.steady,
        "steady_jct_s": metrics.mean(jct),
        "steady_low_s": None if within is None else within.estimate.low,
        "steady_high_s": None if within is None else within.estimate.high,
        "batches_independent": None if within is None else within.independent,
        "instance": digest_of(outcome.instance),
        **dict(_costs(outcome)),
    }


def _costs(outcome: Outcome) -> Iterator[tuple[str, float | str | None]]:
    """Total costs, in seconds and exactly in ticks; None of a run that ended before all jobs were complete."""
    whole = bool(outcome.complete.all()) and len(outcome.complete) > 0
    for goal in Objective:
        exact = exact_cost(outcome.instance, goal, outcome.end_s) if whole else None
        yield f"total_{goal}_s", None if exact is None else float(exact / TICKS_PER_S)
        yield f"total_{goal}_ticks", None if exact is None else str(exact)


def _columns(jobs: pd.DataFrame, groups: Sequence[str] | None) -> list[str]:
    if groups is None:
        return [name for name in GROUPS if name in jobs and jobs[name].nunique() > 1]
    for name in groups:
        if name not in jobs:
            raise InputError(
                f"statistics: groups has {name!r}, expected columns of jobs: {', '.join(jobs.columns)}"
            )
    return list(groups)


def _group_rows(
    jobs: pd.DataFrame, steady: pd.DataFrame, by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Statistics of all jobs and of every group; growth is of all jobs, warm-up included."""
    first_s, last_s = float(jobs["arrival_s"].min()), float(jobs["arrival_s"].max())
    everything = pd.Series(ALL, index=jobs.index)
    for column in (ALL, *by):
        label = everything if column == ALL else _labels(jobs, column)
        for name, rows in jobs.groupby(label, sort=True):
            measured = rows.loc[rows.index.intersection(steady.index)]
            growth = queue_growth(
                rows["arrival_s"].to_numpy(), rows["end_s"].to_numpy(), first_s, last_s
            )
            yield {
                "table": "groups",
                "by": column,
                "group": str(name),
                "jobs": len(measured),
                "gpu_s": math.fsum(measured["gpu_s"].tolist()),
                "growth": growth,
                **_statistics(measured),
            }


def _labels(jobs: pd.DataFrame, column: str) -> pd.Series:
    """Entry of every job, the rarer ones together."""
    label = jobs[column].map(str)
    if label.nunique() <= MOST_GROUPS:
        return label
    asked = jobs["gpu_s"].groupby(label).sum().sort_values(ascending=False, kind="stable")
    return label.where(label.isin(asked.index[: MOST_GROUPS - 1]), OTHERS)


def _statistics(jobs: pd.DataFrame) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in METRICS:
        values = jobs[name].to_numpy(dtype=np.float64)
        numbers = [metrics.mean(values), *metrics.percentiles(values, RANKS)]
        numbers.append(float(values.max()) if len(values) else None)
        found |= {
            f"{name}_{statistic}": _plain(number)
            for statistic, number in zip(STATISTICS, numbers, strict=True)
        }
    return found


def _distributions(jobs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for name in METRICS:
        values: NDArray[np.float64] = jobs[name].to_numpy(dtype=np.float64)
        yield {
            "table": "distributions",
            "metric": name,
            "values": [float(f"{v:.{_DIGITS}g}") for v in np.percentile(values, LEVELS).tolist()],
        }


def _plain(value: Any) -> Any:
    """A value as JSON has it; numbers that are not finite as None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
