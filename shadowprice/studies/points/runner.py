"""Points that have no rows are run, wherever there is room, and the rows of each are stored as it ends."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from shadowprice.errors import ShadowpriceError
from shadowprice.studies.points.point_rows import PointRows, PointStore


class PointTask(Protocol):
    """One independent run of a figure or a study, as it is sent to whatever process runs it."""

    @property
    def key(self) -> str:
        """All that its rows depend on but the code."""

    @property
    def code(self) -> str:
        """Digest of the code."""

    def rows(self) -> list[dict[str, Any]]:
        """Run it; the same rows each time."""


@dataclass(frozen=True)
class FailedPoint:
    """A point that gave no rows.

    Parameters
    ----------
    why : str
        In one line.
    details : str
        The traceback, of failures that the user cannot have caused; empty of others.
    """

    why: str
    details: str = field(default="", repr=False)


PointResult: TypeAlias = PointRows | FailedPoint
Ends: TypeAlias = Iterator[tuple[PointTask, PointResult]]
Carrier: TypeAlias = Callable[[Sequence[PointTask]], Ends]
"""Carries tasks out, each with its result as it ends: on cores of this machine, or on a cluster."""


@dataclass(frozen=True)
class PointProgress:
    """Progress of a command that runs points.

    Parameters
    ----------
    done, total : int
        Points that ended in this command, of those that it had to run.
    stored : int
        Points whose rows were there before.
    failed : int
    left_s : float or None
        Time left, at the pace so far [s].
    last : tuple of (PointTask, PointResult) or None
        The point that ended last.
    """

    done: int
    total: int
    stored: int
    failed: int = 0
    left_s: float | None = None
    last: tuple[PointTask, PointResult] | None = None


def run_missing(
    points: Iterable[tuple[PointTask, PointStore]],
    carrier: Carrier,
    *,
    older: bool = False,
    progress: Callable[[PointProgress], None] = lambda now: None,
) -> dict[PointTask, FailedPoint]:
    """Run the points that their stores have no rows of; those that failed.

    Parameters
    ----------
    points : iterable of (PointTask, PointStore)
        In the order in which they are to be run.
    older : bool
        Whether rows that other code gave are taken, too.
    progress : callable
        Called at the beginning, and as each point ends.

    Raises
    ------
    InputError
        If rows cannot be stored, or tasks cannot be carried out; what has ended before is stored.
    """
    stores = dict(points)
    missing = [
        task
        for task, store in stores.items()
        if store.find(task.key, task.code, older=older) is None
    ]
    failed: dict[PointTask, FailedPoint] = {}
    began, total, stored = time.monotonic(), len(missing), len(stores) - len(missing)
    progress(PointProgress(0, total, stored))
    for done, (task, result) in enumerate(carrier(missing), start=1):
        if isinstance(result, FailedPoint):
            failed[task] = result
        else:
            stores[task].add(task.key, result)
        left_s = (time.monotonic() - began) / done * (total - done)
        progress(PointProgress(done, total, stored, len(failed), left_s, (task, result)))
    return failed


def run_point(task: PointTask) -> PointResult:
    """Run a point; one that fails takes no other with it."""
    began_s = time.process_time()
    try:
        rows = task.rows()
    except ShadowpriceError as error:
        return FailedPoint(" ".join(str(error).split()))
    except Exception as error:
        return FailedPoint(f"{type(error).__name__}: {error}", traceback.format_exc())
    return PointRows(task.code, rows, time.process_time() - began_s)
