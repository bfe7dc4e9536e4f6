"""Jobs of a verified run with all that studies compute statistics of, a row a job."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shadowprice.analysis import metrics
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_metrics import finish_time_fairness

METRICS = ("jct_s", "slowdown", "queueing_s", "ftf")
"""Job completion time [s]; over the run time that the job would have alone with its gang on the type on which it is
fastest; time without a GPU before completion [s]; finish-time fairness."""

GROUPS = ("gang", "job_class", "tenant", "model", "gpu_type")
"""Columns by whose entries jobs are grouped, where a run has several of them."""

SEVERAL_TYPES = "several"
"""GPU type of a job that ran on more than one."""


def job_table(outcome: Outcome) -> pd.DataFrame:
    """Columns of ``outcome.jobs``, those of :data:`METRICS` and :data:`GROUPS`, in order of arrival.

    Of a run that ended with a window of jobs, all jobs that had come by then; times of those that are not complete
    are infinite.
    """
    instance, schedule = outcome.instance, outcome.schedule
    jobs = instance.workload
    found = outcome.jobs.copy()
    alone_s = instance.processing_s.min(axis=1)
    columns: dict[str, NDArray[np.generic]] = {
        "slowdown": outcome.jct_s / alone_s,
        "queueing_s": np.where(
            outcome.complete, metrics.queueing_delay_s(instance, schedule), np.inf
        ),
        "ftf": finish_time_fairness(instance, outcome.jct_s),
        "gpu_s": jobs.gpus * alone_s,
        "gang": jobs.gpus,
        "tenant": jobs.tenant,
        "model": jobs.model,
        "gpu_type": _gpu_types(outcome),
    }
    for name, column in columns.items():
        if name not in found:
            found[name] = column
    return found


def _gpu_types(outcome: Outcome) -> NDArray[np.object_]:
    """Type on which each job ran, shape (n,)."""
    schedule, cluster = outcome.schedule, outcome.instance.cluster
    names = cluster.gpu_types
    type_of_row = cluster.type_of_node[schedule.node]
    used = np.zeros((len(outcome.complete), len(names)), dtype=bool)
    used[schedule.job, type_of_row] = True
    found = np.array([*names, SEVERAL_TYPES, ""], dtype=object)
    count = used.sum(axis=1)
    place = np.where(
        count == 1, used.argmax(axis=1), np.where(count > 1, len(names), len(names) + 1)
    )
    return found[place]
