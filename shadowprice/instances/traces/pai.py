"""Alibaba's PAI tables of 2020: ``pai_job_table``, with ``pai_task_table`` and ``pai_group_tag_table`` beside it.

Source: Weng et al., NSDI'22; github.com/alibaba/clusterdata, cluster-trace-gpu-v2020 (CC-BY-4.0); tables without
headers. A job was submitted when its row in the job table begins and launched when its first task does. The
gang is the sum of ``inst_num`` times ``plan_gpu`` per cent over its tasks. The group of the tag table, the same
program with the same inputs, becomes the group that recurs, its workload the model, the
GPU type that its rows ask for the one that is allowed, and the user the tenant.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.files import read_text
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, replayed
from shadowprice.instances.traces.log_reading import Fractions, LogReading

if TYPE_CHECKING:
    import pandas as pd

NAME = "pai2020"
JOBS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASKS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
TAGS = ("inst_id", "user", "gpu_type_spec", "group", "workload")
STATES = ("Terminated", "Failed", "Running", "Waiting")


def sniff(first_line: str, path: Path) -> bool:
    """True for a row of the job table: six fields, the fourth a status."""
    fields = first_line.strip().split(",")
    return len(fields) == len(JOBS) and fields[3] in STATES


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the tables; ``path`` is the job table's, the others are beside it under their own names.

    Raises
    ------
    InputError
        If a table is missing or has other fields, no job is left, or jobs ask for parts of a GPU and
        no choice is made.
    """
    import pandas as pd

    jobs = _read(path, JOBS)
    tasks = _read(_beside(path, "pai_task_table"), TASKS)
    tags = _read(_beside(path, "pai_group_tag_table"), TAGS)
    each = _number(tasks["plan_gpu"]).fillna(0.0) / 100.0
    asked = _number(tasks["inst_num"]) * each
    cores_each = _number(tasks["plan_cpu"]).fillna(0.0) / 100.0
    by_job = pd.DataFrame(
        {
            "job": tasks["job_name"],
            "gpus": asked,
            "cores": _number(tasks["inst_num"]) * cores_each,
            "instances": _number(tasks["inst_num"]).where(each > 0, 0.0),
            "start": _number(tasks["start_time"]),
        }
    ).groupby("job")
    gpus = jobs["job_name"].map(by_job["gpus"].sum()).fillna(0.0)
    cores = jobs["job_name"].map(by_job["cores"].sum()).fillna(0.0)
    start = jobs["job_name"].map(by_job["start"].min())
    tags = tags.drop_duplicates("inst_id").set_index("inst_id")
    texts = {
        name: jobs["inst_id"].map(tags[name]).fillna("").to_numpy(dtype=object)
        for name in ("group", "workload", "gpu_type_spec")
    }
    log = JobLog(path, {name: jobs[name].to_numpy(dtype=object) for name in JOBS})
    several = jobs["job_name"].map(by_job["instances"].sum()).fillna(0.0) > 1
    if choices.fractions is Fractions.KEEP:
        parts = (gpus > 0) & (gpus < 1) & several
        log.say(
            "derived", parts.to_numpy(), "parts of several instances are taken as one of one GPU"
        )
    whole = log.gangs(
        gpus.to_numpy(dtype=np.float64),
        choices,
        "plan_gpu",
        lambda: cores.to_numpy(dtype=np.float64)[log.rows],
    )
    whole = whole[log.keep_ended(log.text("status"), "Terminated", choices)]
    return replayed(
        log,
        gpus=whole,
        submit_s=log.numbers("start_time"),
        start_s=start.to_numpy(dtype=np.float64)[log.rows],
        end_s=log.numbers("end_time"),
        columns={
            "id": log.text("job_name"),
            "tenant": log.text("user"),
            "group": texts["group"][log.rows],
            "model": texts["workload"][log.rows],
            "allowed_types": texts["gpu_type_spec"][log.rows],
            "outcome": log.outcomes(
                log.text("status"), {"Terminated": "completed", "Failed": "failed"}
            ),
        },
    )


def _beside(path: Path, stem: str) -> Path:
    found = sorted(path.parent.glob(f"{stem}*"))
    if not found:
        raise InputError(f"{path}: {stem} is missing beside it, expected {path.parent / stem}.csv")
    return found[0]


def _read(path: Path, names: tuple[str, ...]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip():
            fields = line.split(",")
            if len(fields) != len(names):
                raise InputError(
                    f"{path}: line {number}: {len(fields)} fields, expected {', '.join(names)}"
                )
            rows.append(fields)
    if not rows:
        raise InputError(f"{path}: is empty")
    return pd.DataFrame(rows, columns=list(names), dtype=object)


def _number(values: pd.Series[str]) -> pd.Series[float]:
    import pandas as pd

    return pd.to_numeric(values, errors="coerce")
