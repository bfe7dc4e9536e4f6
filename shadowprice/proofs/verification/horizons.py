"""Ends of runs before all jobs are complete, as the verifier sees them: nothing goes on later.

A run that was stopped ends then, one until a window of jobs when these are complete; one of both at the earlier of the
two. Of a run that was stopped no job has to be complete, so that its window says something only where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule

Mask = NDArray[np.bool_]


def required_jobs(instance: Instance, these: slice) -> Mask:
    """True for the jobs of some rows that have to be complete, shape (n,)."""
    required, window = np.zeros(len(instance.workload), dtype=bool), instance.until_complete
    if instance.stopped_s is None:
        required[these if window is None else slice(window.first, window.last)] = True
    return required


def after_the_stop(instance: Instance, schedule: Schedule) -> tuple[Mask, str]:
    """Rows that go on after the run was stopped, and what to say of them."""
    stopped_s = np.inf if instance.stopped_s is None else instance.stopped_s
    say = f"goes on after {stopped_s} s, when the run was stopped"
    return schedule.end_s > stopped_s, say


def after_the_window(instance: Instance, schedule: Schedule, complete: Mask) -> tuple[Mask, str]:
    """Rows that go on after the window of jobs was complete, if it was, and what to say of them."""
    last_s = _window_end_s(instance, schedule, complete)
    say = f"goes on after {last_s} s, when all jobs that had to be complete are"
    return schedule.end_s > last_s, say


def end_of_the_run_s(instance: Instance, schedule: Schedule, complete: Mask) -> float:
    """Time at which a run was stopped, or a window of jobs complete [s]; infinity of other runs."""
    stopped_s = np.inf if instance.stopped_s is None else instance.stopped_s
    return min(stopped_s, _window_end_s(instance, schedule, complete))


def _window_end_s(instance: Instance, schedule: Schedule, complete: Mask) -> float:
    """Time at which the last job of a window was complete [s]; infinity where some are not."""
    s, window = schedule, instance.until_complete
    if window is None or not complete[window.first : window.last].all():
        return np.inf
    mine = (s.job >= window.first) & (s.job < window.last)
    return float(s.end_s[mine].max(initial=0.0))
