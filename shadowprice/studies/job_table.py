"""Jobs of a verified run with all that studies compute statistics of, a row a job."""

from __future__ import annotations

import numpy as np
import pandas as pd

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_metrics import finish_time_fairness
from shadowprice.instances.cluster import CORES

METRICS = ("jct_s", "slowdown", "queueing_s", "ftf")
"""Job completion time [s]; over the run time that the job would have alone with its gang on the type on which it is
fastest; time without a GPU before completion [s]; finish-time fairness."""

GROUPS = ("gang", "job_class", "tenant", "model", "gpu_type")
"""Columns by whose entries jobs are grouped, where a run has several of them."""


COLUMNS = (
    *("id", "arrival_s", "first_start_s", "end_s", "jct_s", "preemptions", "gpus", "held_gpus"),
    *("job_class", "tenant", "model", "gpu_type", "first_wait_s", "queueing_s", "lost_work_s"),
    *("copies", "failures", "slowdown", "ftf", "gpu_s", "gang"),
)
"""All columns that a table of jobs may have, ``copies`` and ``failures`` where there are any."""


def job_table(outcome: Outcome) -> pd.DataFrame:
    """Columns of ``outcome.jobs``, and ``slowdown``, ``ftf``, ``gpu_s`` (GPU time alone) and ``gang``.

    ``gang`` is ``cores`` of jobs that hold no GPU. In order of arrival. Of a run that ended with a window of jobs,
    all jobs that had come by then; times of those that are not complete are infinite.
    """
    instance = outcome.instance
    found = outcome.jobs.copy()
    alone_s = instance.processing_s.min(axis=1)
    found["slowdown"] = outcome.jct_s / alone_s
    found["ftf"] = finish_time_fairness(instance, outcome.jct_s)
    found["gpu_s"] = instance.workload.held_gpus * alone_s
    found["gang"] = instance.workload.gpus
    on_cores = instance.workload.on_cores
    if on_cores.any():
        found["gang"] = np.where(on_cores, CORES, found["gang"].astype(object))
    return found
