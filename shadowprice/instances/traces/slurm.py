"""A cluster's own accounts: ``sacct --parsable2``, fields between bars, with a header.

Written by ``sacct --allusers --allocations --parsable2 --format=JobID,User,Account,Partition,State,Submit,Start,End,
AllocTRES`` (more fields do no harm) for ``--starttime`` and ``--endtime``. GPUs are ``gres/gpu=N`` in AllocTRES, or the
sum of ``gres/gpu:TYPE=N`` where a site keeps no total, cores ``cpu=N``. Steps (``123.batch``) repeat their jobs and
are left out. Times are the site's, without a zone; ``SLURM_TIME_FORMAT=%s`` gives seconds, which are read as well. The
account becomes the tenant, the user the name, the partition the class; ``TimelimitRaw`` (minutes) or ``Timelimit``
(days-hours:minutes:seconds) the limit that was submitted, ``AllocNodes`` the nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.traces.clocks import LogClock, Seconds
from shadowprice.instances.traces.job_log import JobLog, Mask
from shadowprice.instances.traces.log_format import (
    SLURM_ENDS,
    Computed,
    EndStates,
    HeaderTable,
    LogFormat,
    Recording,
    Remark,
    known_or,
    zeros,
)
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.traces.slurm_fields import cores, gpus_and_type, limit_s

T = TypeVar("T")


def _each(column: str, read: Callable[[str], T], log: JobLog) -> list[T]:
    return [read(text) for text in log.text(column).tolist()]


def _is_step(log: JobLog) -> Mask:
    return np.array(_each("JobID", lambda text: "." in text, log), dtype=np.bool_)


def _resources(read: Callable[[str], float]) -> Computed:
    return Computed(
        "AllocTRES", lambda log: np.array(_each("AllocTRES", read, log), dtype=np.float64)
    )


def _states(log: JobLog) -> NDArray[np.object_]:
    """The first word: 'CANCELLED by 1001' is one state."""
    return np.array(_each("State", lambda text: text.split(" ")[0], log), dtype=object)


def _limits_s(log: JobLog) -> Seconds:
    """Limits of run time that were submitted [s]; infinity where there is none, or the log has none."""
    limits = zeros(log)
    if "TimelimitRaw" in log:
        limits = log.numbers("TimelimitRaw") * 60.0
    elif "Timelimit" in log:
        limits = np.array(_each("Timelimit", limit_s, log))
    return known_or(limits, np.inf)


def _nodes(log: JobLog) -> Seconds:
    return known_or(log.numbers("AllocNodes"), 0) if "AllocNodes" in log else zeros(log)


def _zone_note(choices: LogReading) -> str:
    site = "the site's, without a zone: a change of its clocks is not seen (choose zone=...)"
    return f"dates are {site if choices.zone is None else f'of {choices.zone}'}"


FORMAT = LogFormat(
    name="slurm",
    about=__doc__,
    table=HeaderTable(
        "JobID,User,Account,Partition,State,Submit,Start,End,AllocTRES",
        optional="TimelimitRaw,Timelimit,AllocNodes",
        among="JobID,Submit,AllocTRES",
    ),
    remarks=(Remark("dropped", "is a step of a job", _is_step),),
    gpus=_resources(lambda text: gpus_and_type(text)[0]),
    cores=_resources(cores),
    states=EndStates(Computed("State", _states), completed=("COMPLETED",), ends=SLURM_ENDS),
    clock=LogClock(of_site=True),
    submit="Submit",
    start="Start",
    end="End",
    columns={
        "id": "JobID",
        "tenant": "Account",
        "name": "User",
        "job_class": "Partition",
        "limit_s": Computed("Timelimit", _limits_s),
        "nodes": Computed("AllocNodes", _nodes),
    },
    notes=(_zone_note,),
    recorded=Recording(start="Start", end="End"),
)
