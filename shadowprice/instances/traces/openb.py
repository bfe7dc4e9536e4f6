"""Alibaba's openb pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli, ..., scheduled_time.

Source: Weng et al., ATC'23; github.com/alibaba/clusterdata, cluster-trace-gpu-v2023, files ``csv/openb_pod_list_*``.
Times are seconds. ``pod_phase`` is the phase when the list was made, not how a pod ended. 44 % of the pods
with GPUs ask for a part of one (``gpu_milli`` below 1,000). The quality of service becomes the class,
``gpu_spec`` the GPU types that are allowed.
"""

from __future__ import annotations

from pathlib import Path

from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table, split_header

NAME = "openb2023"
COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)


def sniff(first_line: str, path: Path) -> bool:
    """True if the header is that of the pods."""
    return tuple(split_header(first_line)) == COLUMNS


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the pods.

    Raises
    ------
    InputError
        If a column is missing, no pod is left, or pods ask for parts of a GPU and no choice is made.
    """
    log = JobLog.of(path, read_table(path), COLUMNS)
    log.without_states(choices)
    gpus = log.numbers("num_gpu") * log.numbers("gpu_milli") / 1000.0
    gpus = log.gangs(gpus, choices, "num_gpu", lambda: log.numbers("cpu_milli") / 1000.0)
    return replayed(
        log,
        gpus=gpus,
        submit_s=log.numbers("creation_time"),
        start_s=log.numbers("scheduled_time"),
        end_s=log.numbers("deletion_time"),
        columns={
            "id": log.text("name"),
            "job_class": log.text("qos"),
            "allowed_types": log.text("gpu_spec"),
        },
    )
