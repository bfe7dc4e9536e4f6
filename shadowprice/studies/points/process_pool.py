"""Points on all cores of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from shadowprice.errors import InputError
from shadowprice.studies.points.runner import Carrier, Ends, PointResult, PointTask, run_point


def cores() -> int:
    """Cores that this process may use, as its affinity and its container have them."""
    return int(cpu_count())


def process_pool(processes: int) -> Carrier:
    """Carry tasks out in so many processes of one thread each, or in this one.

    The carrier raises InputError if a process was killed, as for lack of memory.
    """
    return lambda tasks: _ends(tasks, min(processes, len(tasks)))


def _ends(tasks: Sequence[PointTask], processes: int) -> Ends:
    if processes < 2:
        for task in tasks:
            yield task, run_point(task)
        return
    # One thread each: the processes share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    several = Parallel(n_jobs=processes, return_as="generator_unordered")
    ended = several(delayed(_numbered)(place, task) for place, task in enumerate(tasks))
    try:
        for place, result in ended:
            yield tasks[place], result
    except TerminatedWorkerError:
        raise InputError(
            "a process that computed runs was killed, perhaps for lack of memory; what has ended is kept: "
            "the same command goes on, with fewer processes if memory was short"
        ) from None
    finally:
        ended.close()


def _numbered(place: int, task: PointTask) -> tuple[int, PointResult]:
    return place, run_point(task)
