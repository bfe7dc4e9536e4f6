"""Alibaba's trace of spot GPUs: job_name, organization, gpu_model, ..., submit_time, duration, job_type.

Source: Duan et al., ASPLOS'26; github.com/alibaba/clusterdata, cluster-trace-v2026-spot-gpu, file
``job_info_df.csv``. Times are seconds from the first submission. The gang is ``gpu_request`` times ``worker_num``,
which the examples bear out and the description does not say. The organisation becomes the tenant, the
GPU model the type that is allowed, and the priority (HP or Spot) the class.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table, split_header

NAME = "spot2026"
COLUMNS = (
    "job_name",
    "organization",
    "gpu_model",
    "cpu_request",
    "gpu_request",
    "worker_num",
    "submit_time",
    "duration",
    "job_type",
)


def sniff(first_line: str, path: Path) -> bool:
    """True if the header is that of the jobs."""
    return tuple(split_header(first_line)) == COLUMNS


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the jobs; the log has no states, so that all ran.

    Raises
    ------
    InputError
        If a column is missing, no job is left, or jobs ask for parts of a GPU and no choice is made.
    """
    log = JobLog.of(path, read_table(path), COLUMNS)
    log.without_states(choices)
    gpus = log.gangs(
        log.numbers("gpu_request") * log.numbers("worker_num"),
        choices,
        "gpu_request",
        lambda: log.numbers("cpu_request") * log.numbers("worker_num"),
    )
    return replayed(
        log,
        gpus=gpus,
        submit_s=log.numbers("submit_time"),
        start_s=np.zeros(len(gpus)),
        end_s=log.numbers("duration"),
        columns={
            "id": log.text("job_name"),
            "tenant": log.text("organization"),
            "job_class": log.text("job_type"),
            "allowed_types": log.text("gpu_model"),
        },
    )
