"""A cluster's own accounts: ``sacct --parsable2``, fields between bars, with a header.

Written by ``sacct --allusers --allocations --parsable2 --format=JobID,User,Account,Partition,State,Submit,Start,End,
AllocTRES`` (more fields do no harm) for ``--starttime`` and ``--endtime``. GPUs are ``gres/gpu=N`` in AllocTRES, or the
sum of ``gres/gpu:TYPE=N`` where a site keeps no total, cores ``cpu=N``. Steps (``123.batch``) repeat their jobs and
are left out. Times are the site's, without a zone; ``SLURM_TIME_FORMAT=%s`` gives seconds, which are read as well. The
account becomes the tenant, the user the name, the partition the class; ``TimelimitRaw`` (minutes) or ``Timelimit``
(days-hours:minutes:seconds) the limit that was submitted, ``AllocNodes`` the nodes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.columns import ColumnChecks
from shadowprice.instances.traces import Imported
from shadowprice.instances.traces.cleaning import (
    SLURM_ENDS,
    JobLog,
    Seconds,
    dates_s,
    known_or,
    replayed,
)
from shadowprice.instances.traces.log_reading import LogReading
from shadowprice.instances.workload_files import read_table

NAME = "slurm"
ZONED = True
NEEDED = ("JobID", "User", "Account", "Partition", "State", "Submit", "Start", "End", "AllocTRES")
BESIDE = ("TimelimitRaw", "Timelimit", "AllocNodes")

_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):(\d+)")
_TOTAL = re.compile(r"(?:^|,)gres/gpu=(\d+)(?:,|$)")
_CORES = re.compile(r"(?:^|,)cpu=(\d+)(?:,|$)")
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
    log = JobLog.of(path, read_table(path), NEEDED, BESIDE)
    steps = np.array(["." in each for each in log.text("JobID").tolist()], dtype=np.bool_)
    log.drop(steps, "is a step of a job")
    gpus = np.array([_gpus(each) for each in log.text("AllocTRES").tolist()], dtype=np.float64)
    gpus = log.gangs(gpus, choices, "AllocTRES", lambda: _all_cores(log.text("AllocTRES")))
    # 'CANCELLED by 1001' is one state.
    state = np.array([each.split(" ")[0] for each in log.text("State").tolist()], dtype=object)
    kept = log.keep_ended(state, "COMPLETED", choices)
    gpus, state = gpus[kept], state[kept]
    told = "the site's, without a zone: a change of its clocks is not seen (choose zone=...)"
    log.notes.append(f"dates are {told if choices.zone is None else f'of {choices.zone}'}")
    return replayed(
        log,
        gpus=gpus,
        submit_s=_times_s(log.text("Submit"), choices.zone),
        start_s=_times_s(log.text("Start"), choices.zone),
        end_s=_times_s(log.text("End"), choices.zone),
        columns={
            "id": log.text("JobID"),
            "tenant": log.text("Account"),
            "name": log.text("User"),
            "job_class": log.text("Partition"),
            "outcome": log.outcomes(state, SLURM_ENDS),
            "limit_s": _limits_s(log),
            "nodes": _nodes(log),
        },
    )


@lru_cache(maxsize=4096)
def _gpus(resources: str) -> int:
    total = _TOTAL.search(resources)
    if total:
        return int(total.group(1))
    return sum(int(each) for each in _OF_TYPE.findall(resources))


def _all_cores(resources: NDArray[np.object_]) -> Seconds:
    return np.array([_cores(each) for each in resources.tolist()], dtype=np.float64)


@lru_cache(maxsize=4096)
def _cores(resources: str) -> int:
    found = _CORES.search(resources)
    return int(found.group(1)) if found else 0


def _limits_s(log: JobLog) -> Seconds:
    """Limits of run time that were submitted [s]; infinity where there is none, or none is told."""
    if "TimelimitRaw" in log.columns:
        return known_or(log.numbers("TimelimitRaw") * 60.0, np.inf)
    if "Timelimit" in log.columns:
        limits = [_limit_s(each) for each in log.text("Timelimit").tolist()]
        return known_or(np.array(limits, dtype=np.float64), np.inf)
    return np.full(len(log.rows), np.inf)


@lru_cache(maxsize=4096)
def _limit_s(text: str) -> float:
    """Seconds of a limit as Slurm writes it; NaN for UNLIMITED and what is none."""
    found = _LIMIT.fullmatch(text)
    if found is None:
        return np.nan
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _nodes(log: JobLog) -> Seconds:
    if "AllocNodes" in log.columns:
        return known_or(log.numbers("AllocNodes"), 0)
    return np.zeros(len(log.rows))


def _times_s(values: NDArray[np.object_], zone: str | None) -> Seconds:
    """Seconds, or dates; NaN for Unknown and None."""
    told = next((each for each in values.tolist() if each not in ("", "Unknown", "None")), "")
    if np.isnan(ColumnChecks.floats(np.array([told], dtype=object))[0]):
        return dates_s(values, zone=zone)
    return ColumnChecks.floats(values)
