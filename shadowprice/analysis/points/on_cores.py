"""Tasks on all cores of this machine, each result as it ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from joblib import Parallel, cpu_count, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from shadowprice.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Cores that this process may use, as its affinity and its container have them."""
    return int(cpu_count())


def ends_on_cores(
    tasks: Sequence[T], run: Callable[[T], R], processes: int
) -> Iterator[tuple[T, R]]:
    """Run tasks in several processes of one thread each; every task with its result, as it ends.

    Parameters
    ----------
    run : callable
        Importable by name; what may fail in it is part of its result.

    Raises
    ------
    InputError
        If a process was killed, as for lack of memory: what has ended before was given.
    """
    if processes == 1 or len(tasks) < 2:
        for task in tasks:
            yield task, run(task)
        return
    # One thread each: the processes share the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    several = Parallel(n_jobs=min(processes, len(tasks)), return_as="generator_unordered")
    found = several(delayed(_numbered)(run, place, task) for place, task in enumerate(tasks))
    try:
        for place, result in found:
            yield tasks[place], result
    except TerminatedWorkerError:
        raise InputError(
            "a process that computed runs was killed, perhaps for lack of memory; what has ended is kept: "
            "the same command goes on, with fewer processes if memory was short"
        ) from None
    finally:
        found.close()


def _numbered(run: Callable[[T], R], place: int, task: T) -> tuple[int, R]:
    return place, run(task)
