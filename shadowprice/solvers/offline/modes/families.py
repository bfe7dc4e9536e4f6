"""Families of modes of an instance: nodes, shared GPUs, widths, CPUs and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.modes.amounts import amount_modes
from shadowprice.solvers.offline.modes.job_modes import JobModes
from shadowprice.solvers.offline.modes.nodes import node_modes
from shadowprice.solvers.offline.modes.pairs import equal_parts, pair_modes

PAIRS, AMOUNTS, NODES = "pairs", "amounts", "nodes"
"""Subjects of modes: sharing GPUs; width, CPUs and memory; being within a node or across several."""


@dataclass(frozen=True)
class ModeFamily:
    """Modes of the jobs of an instance, and of which schedules their bounds speak.

    Parameters
    ----------
    subject : str
        What tells the modes apart, as names of bounds have it.
    jobs : JobModes
    holds_for : ScheduleClass
    """

    subject: str
    jobs: JobModes
    holds_for: ScheduleClass

    def same(self, other: ModeFamily) -> bool:
        """True if a bound of one is a bound of the other."""
        mine, theirs = self.jobs, other.jobs
        return (
            (self.subject, self.holds_for) == (other.subject, other.holds_for)
            and mine.weight == theirs.weight
            and np.array_equal(mine.release, theirs.release)
            and np.array_equal(mine.time, theirs.time)
            and np.array_equal(mine.capacity, theirs.capacity)
            and np.array_equal(mine.kind, theirs.kind)
            and np.array_equal(mine.use, theirs.use)
        )


def mode_families(instance: Instance, *, consolidated: bool = False) -> Iterator[ModeFamily]:
    """All that say something of the instance, for every schedule that it allows.

    Parameters
    ----------
    consolidated : bool
        Whether bounds may be of consolidated schedules alone, beside those of all.

    Raises
    ------
    InputError
        If jobs run as several copies.
    """
    every = ScheduleClass.allowed(instance, preemptive=True)
    if not len(instance.workload):
        return
    few = replace(every, consolidated=True)
    pairs = pair_modes(instance)
    if pairs is not None and equal_parts(pairs, instance.workload.gpus):
        pairs = None  # Bounds over types have these as well.
    found = (
        (PAIRS, pairs, every),
        (AMOUNTS, amount_modes(instance), every),
        (NODES, node_modes(instance, consolidated=False), every),
        (NODES, node_modes(instance, consolidated=True) if consolidated else None, few),
    )
    for subject, jobs, holds_for in found:
        if jobs is not None:
            yield ModeFamily(subject, jobs, holds_for)
