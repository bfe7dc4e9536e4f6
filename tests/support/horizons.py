"""Schedules that end before all jobs are complete."""

from __future__ import annotations

from shadowprice.execution.job_window import cut_schedule, window_end_s
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule


def ended(instance: Instance, schedule: Schedule) -> Schedule:
    """A schedule until the run is stopped, or until its window of jobs is complete, where that is earlier."""
    ends_s = [] if instance.stopped_s is None else [instance.stopped_s]
    if instance.until_complete is not None:
        # With rounds a run goes on until the next is due.
        ends_s.append(window_end_s(schedule, instance.until_complete))
    return cut_schedule(schedule, min(ends_s)) if ends_s else schedule
