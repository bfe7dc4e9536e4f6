"""Runs that end when a window of jobs is complete: when they are over, and what is kept of them.

What an online policy decides until then depends on jobs that have come by then only, so that any
workload with the same jobs up to that time gives the same run. Both loops, the engine's and the one of
Gavel's simulator, ask a :class:`WindowProgress`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields, replace

import numpy as np

from shadowprice.errors import AbandonedRunError, EarlyEndError, PolicyError
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload


class WindowProgress:
    """Jobs of a window that are not complete yet.

    Parameters
    ----------
    workload : Workload
        The jobs by row.
    """

    def __init__(self, window: JobWindow, workload: Workload) -> None:
        self._window, self._workload = window, workload
        self._missing = set(range(window.first, window.last))

    def leave(self, jobs: Iterable[int]) -> None:
        """Take note of jobs, by row, that are complete."""
        self._missing.difference_update(jobs)

    def over(self, now_s: float, admitted: int, policy: str) -> bool:
        """True if all jobs of the window are complete.

        Parameters
        ----------
        now_s : float
            Time at which a decision is due [s].
        admitted : int
            Jobs that have arrived by then.
        policy : str
            Its name, for messages.

        Raises
        ------
        EarlyEndError
            If they are not and all jobs have arrived: whoever might come next could change what follows.
        AbandonedRunError
            If they are not when the run is to be given up.
        """
        missing = self._missing
        if not missing:
            return True
        window, jobs = self._window, self._workload
        count, which = len(missing), f"jobs {window.first} to {window.last - 1}"
        if admitted == len(jobs):
            raise EarlyEndError(
                f"{jobs.source}: its last of {len(jobs)} jobs arrives at {jobs.arrival_s[-1]:.10g} s, and at "
                f"{now_s:.10g} s {count} of {which} are not complete; expected a longer trace, or an endless "
                "one: arrivals have to go on until they are"
            )
        if now_s >= window.latest_s:
            raise AbandonedRunError(
                f"{policy}: given up at {now_s:.10g} s, as asked, with {count} of {which} not complete, the "
                f"first is {jobs.id[min(missing)]!r}"
            )
        return False


def refuse_dropped(
    window: JobWindow, workload: Workload, dropped: Collection[str], policy: str
) -> None:
    """Refuse a run in which a job of the window was dropped and never completes.

    Raises
    ------
    PolicyError
        Naming the first such job.
    """
    for job in workload.id[window.rows].tolist():
        if job in dropped:
            raise PolicyError(
                f"{policy}: drops job {job!r}, which is one of jobs {window.first} to {window.last - 1} that "
                "are to be complete; expected another window"
            )


def window_end_s(schedule: Schedule, window: JobWindow) -> float:
    """Time at which the last job of a window is complete [s], in a schedule in which all of them are."""
    mine = (schedule.job >= window.first) & (schedule.job < window.last)
    return float(schedule.end_s[mine].max(initial=0.0))


def cut_schedule(schedule: Schedule, at_s: float) -> Schedule:
    """The schedule up to a time [s]: later rows left out, those that go on then ended.

    A copy of a job that is cut has done no steps: it was not averaged with the others.
    """
    kept = schedule.start_s < at_s
    every = {column.name: getattr(schedule, column.name) for column in fields(Schedule)}
    found = Schedule(**{name: each[kept] for name, each in every.items() if each is not None})
    end_s = np.minimum(found.end_s, at_s)
    overhead_s = np.minimum(found.overhead_s, end_s - found.start_s)
    steps = None if found.steps is None else np.where(found.end_s > at_s, 0, found.steps)
    return replace(found, end_s=end_s, overhead_s=overhead_s, steps=steps)
