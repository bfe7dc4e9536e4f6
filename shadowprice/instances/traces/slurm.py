"""A cluster's own accounts: ``sacct --parsable2``, fields between bars, with a header.

Written by ``sacct --allusers --allocations --parsable2 --format=JobID,User,Account,Partition,State,Submit,Start,End,
AllocTRES`` (more fields do no harm) for ``--starttime`` and ``--endtime``. GPUs are ``gres/gpu=N`` in AllocTRES, or the
sum of ``gres/gpu:TYPE=N`` where a site keeps no total. Steps (``123.batch``) repeat their jobs and are left out.
Times are the site's, without a zone; ``SLURM_TIME_FORMAT=%s`` gives seconds, which are read as well. The account
becomes the tenant, the user the name, the partition the model.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import JobLog, Seconds, dates_s, replayed
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table

NAME = "slurm"
NEEDED = ("JobID", "User", "Account", "Partition", "State", "Submit", "Start", "End", "AllocTRES")

_TOTAL = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")
_OF_TYPE = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)(?=,|$)")


def sniff(first_line: str, path: Path) -> bool:
    """True if the header has a job, its submission and what it held, between bars."""
    return {"JobID", "Submit", "AllocTRES"} <= set(first_line.strip().split("|"))


def load_log(path: Path, choices: LogReading) -> Imported:
    """Read the accounts.

    Raises
    ------
    InputError
        If a field is missing or no job is left.
    """
    log = JobLog.of(path, read_table(path), NEEDED)
    steps = np.array(["." in each for each in log.text("JobID").tolist()], dtype=np.bool_)
    log.drop(steps, "is a step of a job")
    gpus = np.array([_gpus(each) for each in log.text("AllocTRES").tolist()], dtype=np.float64)
    gpus = log.whole_gangs(gpus, choices, "AllocTRES")
    # 'CANCELLED by 1001' is one state.
    state = np.array([each.split(" ")[0] for each in log.text("State").tolist()], dtype=object)
    gpus = gpus[log.keep_ended(state, "COMPLETED", choices)]
    log.notes.append("dates are the site's, without a zone: a change of its clocks is not seen")
    return replayed(
        log,
        gpus=gpus,
        submit_s=_times_s(log.text("Submit")),
        start_s=_times_s(log.text("Start")),
        end_s=_times_s(log.text("End")),
        texts={
            "id": log.text("JobID"),
            "tenant": log.text("Account"),
            "name": log.text("User"),
            "model": log.text("Partition"),
        },
    )


def _gpus(resources: str) -> int:
    total = _TOTAL.search(resources)
    if total:
        return int(total.group(1))
    return sum(int(each) for each in _OF_TYPE.findall(resources))


def _times_s(values: NDArray[np.object_]) -> Seconds:
    """Seconds, or dates; NaN for Unknown and None."""
    numbers = ColumnChecks.floats(values)
    return dates_s(values) if np.isnan(numbers).all() else numbers
