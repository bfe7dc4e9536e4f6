"""Classes of schedules: what a bound, an optimum and a ratio speak of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.instances.clusters.node_sizes import fewest_nodes
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.sharing_gain import SharingGain

KNOWS = (
    frozenset(
        {
            Feature.RATES,
            Feature.TYPES,
            Feature.CHARGES,
            Feature.SHARING,  # a class says whether jobs may
            Feature.GRAPHS,
            Feature.PROFILES,
            Feature.SPREAD,
            Feature.WIDTHS,  # a class says whether jobs may grow
            Feature.COPIES,  # a class says how many a job may be
            Feature.FAILURES,  # of a class are schedules on nodes that fail as well
            Feature.QUOTAS,  # and those within quotas
            Feature.PARTS,  # and those in which jobs hold parts of a GPU together
            Feature.CORES,
            Feature.CPU_MEMORY,
            Feature.WINDOW,  # whichever jobs are complete
            Feature.STOPPED,
            Feature.RESTART,  # runs that are lost may be left out
            Feature.OWN,  # delays, as what is declared does
        }
    )
    | DECLARED_KNOWS
)

AMPLE_TYPES = "no gang uses a GPU type with fewer GPUs than it"
"""Words for schedules of an instance in which some job has a rate on such a type."""


@dataclass(frozen=True)
class ScheduleClass:
    """All feasible schedules of an instance that do no more than this.

    Where jobs are placed is not restricted, except in the class of consolidated schedules, and by GPU types that have
    fewer GPUs than a gang, which uses none of them: else a bound of a class holds for any placement.

    Parameters
    ----------
    preemptive : bool
        Whether jobs may stop and resume.
    sharing : bool
        Whether two jobs may hold the same GPUs, where the instance has rates for them.
    elastic : bool
        Whether jobs may hold more GPUs than their gang, where the instance lets them grow.
    consolidated : bool
        Whether every run is on as few nodes as any of the cluster's could hold it; else it may be anywhere.
    ample_types : bool
        Whether a gang has a rate on a GPU type that has fewer GPUs than it, which it does not use.
    copies : int
        Copies of a job, each on a whole node, at most; 0 where jobs are gangs.

    Examples
    --------
    >>> str(ScheduleClass(preemptive=False)), str(ScheduleClass(True, sharing=True))
    ('non-preemptive schedules', 'preemptive schedules that may share GPUs')
    >>> str(ScheduleClass(True, consolidated=True))
    'preemptive schedules on as few nodes as gangs fit on'
    >>> str(ScheduleClass(True, ample_types=True))
    'preemptive schedules in which no gang uses a GPU type with fewer GPUs than it'
    """

    preemptive: bool
    sharing: bool = False
    elastic: bool = False
    consolidated: bool = False
    ample_types: bool = False
    copies: int = 0

    @classmethod
    def allowed(cls, instance: Instance, *, preemptive: bool) -> ScheduleClass:
        """Class that an instance allows: sharing if two of its jobs may, widths if one may grow.

        Raises
        ------
        InputError
            If the instance has features that are not in ``KNOWS``.
        """
        require(instance, KNOWS, "classes of schedules")
        if instance.copies is not None:
            return cls(preemptive=True, copies=instance.copies.max_copies)
        elasticity = instance.elasticity
        grow = elasticity is not None and bool((elasticity.widest > instance.workload.gpus).any())
        sharing = SharingGain.of(instance) is not None
        return cls(preemptive, sharing, grow, ample_types=instance.has_small_types)

    @property
    def rigid(self) -> bool:
        """True if jobs hold their gangs, and have them to themselves."""
        return not (self.sharing or self.elastic)

    @classmethod
    def used(cls, instance: Instance, schedule: Schedule) -> ScheduleClass:
        """The smallest class that contains a schedule; a change of partners is no preemption.

        Raises
        ------
        InputError
            As :meth:`allowed`.
        """
        require(instance, KNOWS, "classes of schedules")
        if instance.copies is not None:
            return cls(preemptive=True, copies=instance.copies.max_copies)
        s, jobs = schedule, instance.workload
        begun = s.runs[~s.continues[s.runs]]
        sharing = bool((s.partner >= 0).any())
        # Runs that are lost may be left out, and one run a job remains, unless it was at its pace beside one of them.
        several = (np.bincount(s.job[begun], minlength=len(jobs)) > 1).any()
        again = bool(several) and (sharing or not instance.restarts)
        order = np.lexsort((s.start_s, s.job))
        job, start, first = s.job[order], s.start_s[order], np.ones(len(order), dtype=bool)
        first[1:] = (job[1:] != job[:-1]) | (start[1:] != start[:-1])
        held = np.bincount(np.cumsum(first) - 1, s.gpus[order]) if len(order) else np.zeros(0)
        wide = bool((held > jobs.gpus[job[first]]).any())
        nodes = np.bincount(np.cumsum(first) - 1) if len(order) else np.zeros(0)
        on_cores = jobs.on_cores[job[first]]
        few = all(
            (
                nodes[mine]
                <= fewest_nodes(instance.cluster, cores=cores)[held[mine].astype(np.int64)]
            ).all()
            for cores, mine in ((False, ~on_cores), (True, on_cores))
        )
        return cls(again, sharing, wide, few, ample_types=instance.has_small_types)

    def contains(self, other: ScheduleClass) -> bool:
        """True if every schedule of the other class is one of this."""
        return (
            (self.preemptive or not other.preemptive)
            and (self.sharing or not other.sharing)
            and (self.elastic or not other.elastic)
            and (other.consolidated or not self.consolidated)
            and (other.ample_types or not self.ample_types)
            and self.copies == other.copies
        )

    def __str__(self) -> str:
        if self.copies:
            return f"schedules in which a job is at most {self.copies} copies on whole nodes"
        what = "preemptive schedules" if self.preemptive else "non-preemptive schedules"
        more = [
            words
            for words, there in (("share GPUs", self.sharing), ("grow", self.elastic))
            if there
        ]
        where = " on as few nodes as gangs fit on" if self.consolidated else ""
        words = (f"{what} that may {' and '.join(more)}" if more else what) + where
        if not self.ample_types:
            return words
        return f"{words}{',' if more or where else ''} in which {AMPLE_TYPES}"

    def to_dict(self) -> dict[str, object]:
        """The class as JSON has it."""
        return {
            "preemptive": self.preemptive,
            "sharing": self.sharing,
            "widths": "elastic" if self.elastic else "rigid",
            "placement": "consolidated" if self.consolidated else "any",
            **({"types": "ample"} if self.ample_types else {}),
            **({"copies": self.copies} if self.copies else {}),
        }
