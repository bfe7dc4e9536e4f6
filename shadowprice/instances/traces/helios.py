"""SenseTime's Helios logs, one CSV a cluster: job_id, user, vc, gpu_num, ..., duration, queue.

Source: Hu et al., SC'21; github.com/S-Lab-System-Group/HeliosData at 159f0ca (CC-BY-4.0), files
``data/CLUSTER/cluster_log.csv``. Times are local, without a zone, where clocks are not changed. The
virtual cluster becomes the tenant, the user the name. Run time is end - start.
"""

from __future__ import annotations

from pathlib import Path

from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import SLURM_ENDS, JobLog, dates_s, known_or, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table, split_header

NAME = "helios"
COLUMNS = (
    "job_id",
    "user",
    "vc",
    "gpu_num",
    "cpu_num",
    "node_num",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "queue",
)


def sniff(first_line: str, path: Path) -> bool:
    """True if the header is that of a cluster's log."""
    return tuple(split_header(first_line)) == COLUMNS


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read a log.

    Raises
    ------
    InputError
        If a column is missing or no job is left.
    """
    log = JobLog.of(path, read_table(path), COLUMNS)
    gpus = log.gangs(log.numbers("gpu_num"), choices, "gpu_num", lambda: log.numbers("cpu_num"))
    gpus = gpus[log.keep_ended(log.text("state"), "COMPLETED", choices)]
    log.notes.append("times are local, without a zone; of Helios' clusters clocks are not changed")
    return replayed(
        log,
        gpus=gpus,
        submit_s=dates_s(log.text("submit_time")),
        start_s=dates_s(log.text("start_time")),
        end_s=dates_s(log.text("end_time")),
        stated_s=log.numbers("duration"),
        dated=True,
        columns={
            "id": log.text("job_id"),
            "tenant": log.text("vc"),
            "name": log.text("user"),
            "outcome": log.outcomes(log.text("state"), SLURM_ENDS),
            "nodes": known_or(log.numbers("node_num"), 0),
        },
    )
