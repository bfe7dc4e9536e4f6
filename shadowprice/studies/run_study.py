"""Run a study: what has rows already is not run again, and what ends is kept at once."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.studies.plan import StudyPlan, plan_study
from shadowprice.studies.points.point_rows import PointStore, not_written
from shadowprice.studies.points.process_pool import process_pool
from shadowprice.studies.points.runner import (
    Carrier,
    FailedPoint,
    PointProgress,
    PointTask,
    run_missing,
)
from shadowprice.studies.results import (
    POINTS,
    StudyResults,
    collect,
    locked,
    write_results,
)
from shadowprice.studies.study_file import StudyFile, read_study, study_of


def study(
    source: StudyFile | Mapping[str, Any] | str | Path,
    folder: str | Path | None = None,
    *,
    processes: int = 1,
    on: str | None = None,
    older: bool = False,
    progress: Callable[[PointProgress], None] = lambda now: None,
) -> StudyResults:
    """Run a study and return tidy frames of all its runs.

    Parameters
    ----------
    source : StudyFile or mapping or path
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
        Called at the beginning and as each run ends.

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
    from_file = isinstance(source, str | Path)
    if isinstance(source, str | Path):
        base, chosen = Path(source).parent, read_study(source)
        folder = results_folder(Path(source)) if folder is None else folder
    else:
        base = Path.cwd()
        chosen = source if isinstance(source, StudyFile) else study_of(dict(source), "study")
    if processes < 1:
        raise InputError(f"processes is {processes!r}, expected at least 1")
    carrier = process_pool(processes) if on is None else _on_cluster(on)
    plan = plan_study(chosen, base)
    if folder is None:
        return _run(plan, PointStore(), carrier, older=older, progress=progress)
    command = f"shadowprice study run {shlex.quote(Path(source).name)}" if from_file else ""  # type: ignore[arg-type]
    folder = Path(folder)
    with locked(folder):
        store = PointStore(folder / POINTS)
        results = _run(plan, store, carrier, command=command, older=older, progress=progress)
        try:
            write_results(results, folder)
        except OSError as error:
            raise not_written(folder, error) from error
    return results


def _on_cluster(text: str) -> Carrier:
    from shadowprice.studies.points.ray_pool import ray_pool

    return ray_pool(text)


def _run(
    plan: StudyPlan,
    store: PointStore,
    carrier: Carrier,
    *,
    command: str = "",
    older: bool,
    progress: Callable[[PointProgress], None],
) -> StudyResults:
    tasks = plan.tasks
    failed = run_missing(((task, store) for task in tasks), carrier, older=older, progress=progress)
    rows = {task.key: store.find(task.key, plan.code, older=older) for task in tasks}
    return collect(plan, rows, command=command, failed=_reasons(plan, failed))


def results_folder(file: Path) -> Path:
    """Folder of the results of a study file, if none is given."""
    return file.with_name(f"{file.stem}.results")


def _reasons(plan: StudyPlan, failed: Mapping[PointTask, FailedPoint]) -> dict[str, str]:
    """Failures by the axes of their first run, with what is known of them."""
    reasons: dict[str, str] = {}
    for run in plan.runs if failed else ():
        for what, task in (("", run.task), ("bounds of ", run.bounds)):
            failure = None if task is None else failed.get(task)
            if failure is not None:
                details = os.linesep + failure.details if failure.details else ""
                reasons.setdefault(f"{what}{run}", failure.why + details)
    return reasons
