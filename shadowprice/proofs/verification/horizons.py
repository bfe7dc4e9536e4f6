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
    s, window, last_s = schedule, instance.until_complete, np.inf
    if window is not None and complete[window.first : window.last].all():
        mine = (s.job >= window.first) & (s.job < window.last)
        last_s = float(s.end_s[mine].max(initial=0.0))
    return s.end_s > last_s, f"goes on after {last_s} s, when all jobs that had to be complete are"
