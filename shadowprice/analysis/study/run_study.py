"""Run a study: what has rows already is not run again, and what ends is kept at once."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shadowprice.analysis.points.kept import Kept
from shadowprice.analysis.points.on_cores import ends_on_cores
from shadowprice.analysis.study.plan import RunTask, StudyPlan, described_axes, plan_study
from shadowprice.analysis.study.results import (
    StudyResults,
    collect,
    locked,
    point_results,
    write_results,
)
from shadowprice.analysis.study.run_task import FailedRun, run_task
from shadowprice.analysis.study.study_file import StudyFile, read_study, study_of
from shadowprice.errors import InputError

Ends = Iterator[tuple[RunTask, Kept | FailedRun]]
Carrier = Callable[[Sequence[RunTask]], Ends]
"""Carries tasks out, each with its rows as it ends: on cores of this machine, or on a cluster."""

EVERY_S = 0.1
"""Shortest time between two words about progress [s]."""


@dataclass(frozen=True)
class StudyProgress:
    """Progress of a study.

    Parameters
    ----------
    done, total : int
        Tasks that ended in this command, of those that it had to do.
    kept : int
        Tasks whose rows were there before.
    failed : int
    left_s : float or None
        Time left, at the pace so far [s].
    """

    done: int
    total: int
    kept: int
    failed: int
    left_s: float | None


def on_cores(processes: int) -> Carrier:
    """Tasks in so many processes on this machine."""
    return lambda tasks: ends_on_cores(tasks, run_task, processes)


def study(
    given: StudyFile | Mapping[str, Any] | str | Path,
    folder: str | Path | None = None,
    *,
    processes: int = 1,
    on: str | None = None,
    older: bool = False,
    progress: Callable[[StudyProgress], None] = lambda now: None,
) -> StudyResults:
    """Run a study and return tidy frames of all its runs.

    Parameters
    ----------
    given : StudyFile or mapping or path
        A study file's path, or what it would say.
    folder : path, optional
        Folder of the results, where a study that was stopped goes on; without one nothing is kept on disk, but
        for a file, whose results lie beside it: ``NAME.results``.
    processes : int
        Processes on this machine.
    on : str, optional
        Ray cluster to run on instead: ``ray`` or ``ray://HOST:PORT``.
    older : bool
        Whether rows that other versions of the package gave are taken too.
    progress : callable
        Told now and then how far it is.

    Returns
    -------
    StudyResults

    Raises
    ------
    InputError
        If the study, a name or a file is not as expected; if the folder is in use, or cannot be written.

    Examples
    --------
    >>> import shadowprice as sp
    >>> found = sp.study({
    ...     "study": "two policies",
    ...     "workloads": {"drawn": {"generator": "lognormal", "parameters": {"jobs": 20}}},
    ...     "clusters": ["2x4"],
    ...     "policies": ["fifo", "srtf"],
    ...     "seeds": 2,
    ... })
    >>> found.runs.groupby("policy")["verified"].all().to_dict()
    {'fifo': True, 'srtf': True}
    """
    from_file = isinstance(given, str | Path)
    if isinstance(given, str | Path):
        base, chosen = Path(given).parent, read_study(given)
        folder = results_folder(Path(given)) if folder is None else folder
    else:
        base = Path.cwd()
        chosen = given if isinstance(given, StudyFile) else study_of(dict(given), "study")
    if processes < 1:
        raise InputError(f"processes is {processes!r}, expected at least 1")
    carrier = on_cores(processes) if on is None else _on_cluster(on)
    plan = plan_study(chosen, base)
    command = f"shadowprice study run {shlex.quote(Path(given).name)}" if from_file else ""  # type: ignore[arg-type]
    if folder is None:
        return _in_memory(plan, carrier, progress)
    return run_plan(plan, Path(folder), carrier, command=command, older=older, progress=progress)


def _on_cluster(text: str) -> Carrier:
    from shadowprice.analysis.study.on_ray import on_ray

    return on_ray(text)


def results_folder(file: Path) -> Path:
    """Folder of the results of a study file, if none is given."""
    return file.with_name(f"{file.stem}.results")


def run_plan(
    plan: StudyPlan,
    folder: Path,
    carrier: Carrier,
    *,
    command: str = "",
    older: bool = False,
    progress: Callable[[StudyProgress], None] = lambda now: None,
) -> StudyResults:
    """Run what a plan's folder has no rows of, and write the tables of all.

    Raises
    ------
    InputError
        If the folder is in use or cannot be written, or tasks cannot be carried out.
    """
    with locked(folder):
        store = point_results(folder)
        tasks = plan.tasks
        rows = {
            task.key: found
            for task in tasks
            if (found := store.find(task.key, plan.code, older=older)) is not None
        }
        missing = [task for task in tasks if task.key not in rows]
        failed: dict[str, FailedRun] = {}
        for task, ended in _watched(missing, len(rows), carrier, progress):
            if isinstance(ended, FailedRun):
                failed[task.key] = ended
            else:
                with _told_if_full(folder):
                    store.add(task.key, ended)
                rows[task.key] = ended
        results = collect(plan, rows, command=command, failed=_reasons(plan, failed))
        with _told_if_full(folder):
            write_results(results, folder)
    return results


@contextmanager
def _told_if_full(folder: Path) -> Iterator[None]:
    """Say what to do where a disk is full, or a folder gone."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be written: {error.strerror or error}; what had ended before is kept: the same command "
            "goes on"
        ) from error


def _in_memory(
    plan: StudyPlan, carrier: Carrier, progress: Callable[[StudyProgress], None]
) -> StudyResults:
    rows: dict[str, Kept] = {}
    failed: dict[str, FailedRun] = {}
    for task, ended in _watched(plan.tasks, 0, carrier, progress):
        if isinstance(ended, FailedRun):
            failed[task.key] = ended
        else:
            rows[task.key] = _as_read(ended)
    return collect(plan, rows, command="", failed=_reasons(plan, failed))


def _as_read(kept: Kept) -> Kept:
    """Rows as they are where they have been in a file."""
    import json

    return Kept(kept.code, json.loads(json.dumps(kept.rows)), kept.cpu_s)


def _watched(
    tasks: Sequence[RunTask],
    kept: int,
    carrier: Carrier,
    progress: Callable[[StudyProgress], None],
) -> Ends:
    """Tasks as they end, and words about how far it is."""
    began, told, failures = time.monotonic(), 0.0, 0
    progress(StudyProgress(0, len(tasks), kept, 0, None))
    for done, (task, ended) in enumerate(carrier(tasks), start=1):
        failures += isinstance(ended, FailedRun)
        now = time.monotonic()
        if now - told >= EVERY_S or done == len(tasks):
            left_s = (now - began) / done * (len(tasks) - done)
            progress(StudyProgress(done, len(tasks), kept, failures, left_s))
            told = now
        yield task, ended


def _reasons(plan: StudyPlan, failed: Mapping[str, FailedRun]) -> dict[str, str]:
    """Failures by the axes of their first run, with what is known of them."""
    found: dict[str, str] = {}
    if not failed:
        return found
    for run in plan.runs:
        for what, task in (("", run.task), ("bounds of ", run.bounds)):
            if task is not None and task.key in failed:
                failure = failed[task.key]
                details = os.linesep + failure.details if failure.details else ""
                found.setdefault(what + described_axes(run), failure.why + details)
    return found
