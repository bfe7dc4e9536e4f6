"""Families of modes of an instance: nodes, shared GPUs, widths, CPUs and memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from shadowprice.instances.features import missing, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.modes.amounts import KNOWS as AMOUNT_KNOWS
from shadowprice.solvers.offline.modes.amounts import amount_modes
from shadowprice.solvers.offline.modes.job_modes import JobModes
from shadowprice.solvers.offline.modes.nodes import KNOWS as NODE_KNOWS
from shadowprice.solvers.offline.modes.nodes import node_modes
from shadowprice.solvers.offline.modes.pairs import KNOWS as PAIR_KNOWS
from shadowprice.solvers.offline.modes.pairs import equal_parts, pair_modes

KNOWS = RELAXED_KNOWS

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
    """All that know the instance and say something of it, for every schedule that it allows.

    Parameters
    ----------
    consolidated : bool
        Whether bounds may be of consolidated schedules alone, beside those of all.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "lower bounds")
    every = ScheduleClass.allowed(instance, preemptive=True)
    if not len(instance.workload):
        return
    if not missing(instance, PAIR_KNOWS):
        pairs = pair_modes(instance)
        # Bounds over types have equal parts as well.
        if pairs is not None and not equal_parts(pairs, instance.workload.gpus):
            yield ModeFamily(PAIRS, pairs, every)
    if not missing(instance, AMOUNT_KNOWS):
        amounts = amount_modes(instance)
        if amounts is not None:
            yield ModeFamily(AMOUNTS, amounts, every)
    if not missing(instance, NODE_KNOWS):
        for few in (False, True) if consolidated else (False,):
            nodes = node_modes(instance, consolidated=few)
            if nodes is not None:
                yield ModeFamily(NODES, nodes, replace(every, consolidated=few))
