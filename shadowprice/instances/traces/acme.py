"""Shanghai AI Laboratory's Acme logs of two clusters for language models, Seren and Kalos.

Source: Hu et al., NSDI'24; github.com/InternLM/AcmeTrace at 6d6ac9c (CC-BY-4.0), files
``data/job_trace/trace_{seren,kalos}.csv``. Times bear a zone. Run time is end - start: in Kalos the column
``duration`` is end - submit and so contains the time in the queue, although its description says otherwise.
The user becomes the tenant, the type of the job (Pretrain, Eval, ...) its class.
"""

from __future__ import annotations

from pathlib import Path

from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import SLURM_ENDS, JobLog, dates_s, known_or, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table, split_header

NAME = "acme"
NEEDED = ("job_id", "user", "gpu_num", "type", "state", "submit_time", "start_time", "end_time")
BESIDE = ("node_num", "cpu_num", "duration", "queue", "gpu_time")


def sniff(first_line: str, path: Path) -> bool:
    """True if the header has the columns of both clusters' logs."""
    return set(NEEDED + BESIDE) <= set(split_header(first_line))


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read a log.

    Raises
    ------
    InputError
        If a column is missing or no job is left.
    """
    log = JobLog.of(path, read_table(path), NEEDED + BESIDE)
    gpus = log.gangs(log.numbers("gpu_num"), choices, "gpu_num", lambda: log.numbers("cpu_num"))
    gpus = gpus[log.keep_ended(log.text("state"), "COMPLETED", choices)]
    log.notes.append("times bear a zone and are told in UTC")
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
            "tenant": log.text("user"),
            "job_class": log.text("type"),
            "outcome": log.outcomes(log.text("state"), SLURM_ENDS),
            "nodes": known_or(log.numbers("node_num"), 0),
        },
    )
