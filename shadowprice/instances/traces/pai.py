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
from shadowprice.instances.traces.job_log import JobLog, Mask, Tables
from shadowprice.instances.traces.log_format import (
    Computed,
    EndStates,
    LogFormat,
    OtherText,
    Recording,
    Remark,
    lines_of_fields,
)
from shadowprice.instances.traces.log_reading import Fractions

if TYPE_CHECKING:
    import pandas as pd

JOBS = "job_name,inst_id,user,status,start_time,end_time"
TASKS = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type"
TAGS = "inst_id,user,gpu_type_spec,group,workload"
STATES = ("Terminated", "Failed", "Running", "Waiting")


def _recognises(first_line: str, path: Path) -> bool:
    """True for a row of the job table: six fields, the fourth a status."""
    fields = first_line.strip().split(",")
    return len(fields) == len(JOBS.split(",")) and fields[3] in STATES


def _read(path: Path) -> Tables:
    """The job table, and what the others have of its jobs.

    Raises
    ------
    InputError
        If a table is missing or has other fields.
    """
    import pandas as pd

    jobs = _table(path, JOBS)
    tasks = _table(_sibling(path, "pai_task_table"), TASKS)
    tags = _table(_sibling(path, "pai_group_tag_table"), TAGS)
    instances = _number(tasks["inst_num"])
    each = _number(tasks["plan_gpu"]).fillna(0.0) / 100.0
    by_job = pd.DataFrame(
        {
            "job": tasks["job_name"],
            "gpus": instances * each,
            "cores": instances * (_number(tasks["plan_cpu"]).fillna(0.0) / 100.0),
            "instances": instances.where(each > 0, 0.0),
            "start": _number(tasks["start_time"]),
        }
    ).groupby("job")
    computed = {
        name: jobs["job_name"].map(by_job[name].sum()).fillna(0.0).to_numpy(dtype=np.float64)
        for name in ("gpus", "cores", "instances")
    }
    computed["start"] = jobs["job_name"].map(by_job["start"].min()).to_numpy(dtype=np.float64)
    tags = tags.drop_duplicates("inst_id").set_index("inst_id")
    computed |= {
        name: jobs["inst_id"].map(tags[name]).fillna("").to_numpy(dtype=object)
        for name in ("group", "workload", "gpu_type_spec")
    }
    return Tables({name: jobs[name].to_numpy(dtype=object) for name in JOBS.split(",")}, computed)


def _sibling(path: Path, stem: str) -> Path:
    found = sorted(path.parent.glob(f"{stem}*"))
    if not found:
        raise InputError(f"{path}: {stem} is missing beside it, expected {path.parent / stem}.csv")
    return found[0]


def _table(path: Path, header: str) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(lines_of_fields(path, header.split(","), ","), dtype=object)


def _number(values: pd.Series[str]) -> pd.Series[float]:
    import pandas as pd

    return pd.to_numeric(values, errors="coerce")


def _of(name: str, column: str = "") -> Computed:
    """A column of the other tables, by the name it has there."""
    return Computed(column or name, lambda log: log.computed(name))


def _is_joined(log: JobLog) -> Mask:
    """Jobs whose parts of GPUs, of several instances, are kept as a part of one."""
    gpus, several = log.computed("gpus"), log.computed("instances") > 1
    kept = log.choices.fractions is Fractions.KEEP
    return np.asarray((gpus > 0) & (gpus < 1) & several & kept)


FORMAT = LogFormat(
    name="pai2020",
    about=__doc__,
    table=OtherText(_recognises, _read),
    remarks=(
        Remark("derived", "parts of several instances are taken as one of one GPU", _is_joined),
    ),
    gpus=_of("gpus", "plan_gpu"),
    cores=_of("cores", "plan_cpu"),
    states=EndStates(
        "status",
        completed=("Terminated",),
        ends={"Terminated": "completed", "Failed": "failed"},
    ),
    submit="start_time",
    start=_of("start", "start_time"),
    end="end_time",
    columns={
        "id": "job_name",
        "tenant": "user",
        "group": _of("group"),
        "model": _of("workload"),
        "allowed_types": _of("gpu_type_spec"),
    },
    recorded=Recording(start=_of("start", "start_time"), end="end_time"),
)
