"""A cluster's own accounts: ``sacct --parsable2``, fields between bars, with a header.

Written by ``sacct --allusers --allocations --parsable2 --format=JobID,User,Account,Partition,State,Submit,Start,End,
AllocTRES`` (more fields do no harm) for ``--starttime`` and ``--endtime``. GPUs are ``gres/gpu=N`` in AllocTRES, or the
sum of ``gres/gpu:TYPE=N`` where a site keeps no total, cores ``cpu=N``. Steps (``123.batch``) repeat their jobs and
are left out. Times are the site's, without a zone; ``SLURM_TIME_FORMAT=%s`` gives seconds, which are read as well. The
account becomes the tenant, the user the name, the partition the class; ``TimelimitRaw`` (minutes) or ``Timelimit``
(days-hours:minutes:seconds) the limit that was submitted, ``AllocNodes`` the nodes.
``NodeList`` (``gpu[01-03,7]``) has where jobs ran.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from functools import lru_cache
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
from shadowprice.instances.traces.recorded_runs import tuples

_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_TOTAL = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")
_CORES = re.compile(r"(?:^|,)cpu=(\d+)(?:,|$)")
_OF_TYPE = re.compile(r"(?:^|,)gres/gpu:[^=,]+=(\d+)(?=,|$)")
_RANGES = r"\[[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*\]"
_NAME = rf"(?:[^][, ]|{_RANGES})+"
_LIST = re.compile(rf"{_NAME}(?:,{_NAME})*")
_PART = re.compile(_NAME)
_BRACKETS = re.compile(r"\[([^]]*)\]")

MOST_NODES = 100_000
"""Most nodes that a list of a log is read to name."""

T = TypeVar("T")


@lru_cache(maxsize=4096)
def _gpus(resources: str) -> float:
    total = _TOTAL.search(resources)
    if total:
        return float(total.group(1))
    return float(sum(int(each) for each in _OF_TYPE.findall(resources)))


@lru_cache(maxsize=4096)
def _cores(resources: str) -> float:
    cores = _CORES.search(resources)
    return float(cores.group(1)) if cores else 0.0


@lru_cache(maxsize=4096)
def _limit_s(text: str) -> float:
    """Seconds of a limit as Slurm writes it; NaN for UNLIMITED and what is none."""
    parts = _LIMIT.fullmatch(text)
    if parts is None:
        return np.nan
    days, hours, minutes, seconds = (int(each or 0) for each in parts.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


@lru_cache(maxsize=4096)
def node_names(text: str) -> tuple[str, ...]:
    """Nodes of a list as Slurm writes it: ``gpu[01-03,7],login1`` is gpu01, gpu02, gpu03, gpu7, login1.

    Nothing for what is no such list, as ``None assigned``.
    """
    if not _LIST.fullmatch(text):
        return ()
    names: list[str] = []
    for part in _PART.findall(text):
        # Texts between brackets are at odd places.
        choices = [
            _expanded(each) if k % 2 else [each] for k, each in enumerate(_BRACKETS.split(part))
        ]
        if math.prod(map(len, choices)) > MOST_NODES:
            return ()
        names += map("".join, itertools.product(*choices))
    return tuple(dict.fromkeys(names))


def _expanded(ranges: str) -> list[str]:
    """Numbers of ``01-03,7``, with their zeros; none for more than there are nodes."""
    numbers: list[str] = []
    for each in ranges.split(","):
        first, _, last = each.partition("-")
        last = last or first
        if int(last) - int(first) >= MOST_NODES:
            return []
        numbers += [str(k).zfill(len(first)) for k in range(int(first), int(last) + 1)]
    return numbers


def _each(column: str, read: Callable[[str], T], log: JobLog) -> list[T]:
    return [read(text) for text in log.text(column).tolist()]


def _is_step(log: JobLog) -> Mask:
    return np.array(_each("JobID", lambda text: "." in text, log), dtype=np.bool_)


def _resources(read: Callable[[str], float]) -> Computed:
    return Computed("AllocTRES", lambda log: np.array(_each("AllocTRES", read, log)))


def _states(log: JobLog) -> NDArray[np.object_]:
    """The first word: 'CANCELLED by 1001' is one state."""
    return np.array(_each("State", lambda text: text.split(" ")[0], log), dtype=object)


def _limits_s(log: JobLog) -> Seconds:
    """Limits of run time that were submitted [s]; infinity where there is none, or the log has none."""
    limits = zeros(log)
    if "TimelimitRaw" in log:
        limits = log.numbers("TimelimitRaw") * 60.0
    elif "Timelimit" in log:
        limits = np.array(_each("Timelimit", _limit_s, log))
    return known_or(limits, np.inf)


def _nodes(log: JobLog) -> Seconds:
    return known_or(log.numbers("AllocNodes"), 0) if "AllocNodes" in log else zeros(log)


def _node_names(log: JobLog) -> NDArray[np.object_]:
    return tuples(_each("NodeList", node_names, log))


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
    gpus=_resources(_gpus),
    cores=_resources(_cores),
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
    recorded=Recording(
        start="Start",
        end="End",
        nodes=Computed("NodeList", _node_names),
        optional=("NodeList",),
    ),
)
