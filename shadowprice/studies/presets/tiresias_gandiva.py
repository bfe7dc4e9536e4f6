"""The Gandiva of Tiresias' simulator: github.com/SymbioticLab/Tiresias at 959f9b0, ``--schedule=gandiva``.

A loop of its own in steps of 10 s, shorter before an arrival. Nodes are handed to sets, each for jobs of one gang
size; a set has ``capacity`` = GPUs of its nodes // gang places, and its first ``capacity`` jobs run. At every step

1. the GPUs are divided among the gang sizes in proportion to what their jobs ask for, rounded down and at most as
   many as they ask for; sizes with too few sets get free nodes, sizes with too many give up sets, the one with
   the lowest count first, whose jobs go to the sets that are left;
2. the running jobs of every set do the time since the last step; those that are done leave;
3. jobs that arrive join the first set of their size if that keeps one place free, else get a new set
   of free nodes, else join a set beyond its places; without any they wait until a set was given back.

Nothing is charged. What differs from Gandiva as published (OSDI'18), kept because the numbers of Tiresias' Table 5
come of such a simulator: no packing, no memory; sets are moved at no cost; and these quirks:

* Jobs of a set take turns only when the clock is a multiple of 60 s, which after an arrival at another multiple
  than of 10 s it is not until another arrival sets it right.
* Surpluses and needs are counted in gangs, not sets: a size whose sets are larger than its gangs gives up or
  asks for several too many, but keeps one.
* Jobs are spread over new sets only if the last set asked for could not be had, or has several nodes;
  otherwise the new sets stay empty and are given back in the same step.
* The count by which a set is chosen does not fall when its jobs end.
* After a waiting job has been placed, the next one in the queue is passed over.
* Gang sizes are served in the order of a table of Python 2.7: 16, 1, 2, 4, 24, 32, 8, 64, 12 (derived).
* A job's end is noted at the end of its step; rows here end when its work is done, up to 10 s before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule

NAME = "gandiva"
KNOWS = frozenset({Feature.RATES})
"""Features of instances that the original can express."""

WHERE = "preset tiresias: policy 'gandiva'"

GANGS = (16, 1, 2, 4, 24, 32, 8, 64, 12)
"""Gang sizes that the original knows, in the order in which it serves them."""

STEP_S = 10
TURN_S = 60


@dataclass(frozen=True)
class TiresiasGandivaRun:
    """A run of that simulator.

    Parameters
    ----------
    end_s : mapping of str to int
        The end that the original notes for every job, by id [s].
    schedule : Schedule
        A row for each stretch of a job on the nodes of one set; it ends when the job's work is done.
    """

    end_s: Mapping[str, int]
    schedule: Schedule


@dataclass(eq=False)
class NodeSet:
    """Nodes that jobs of one gang size share.

    Parameters
    ----------
    nodes : tuple of int
        Positions in the cluster.
    capacity : int
        Jobs that run at once.
    jobs : list of int
        Rows of its jobs; the first ``capacity`` run.
    count : int
        Jobs that joined since the sets of its size were last spread anew.
    """

    nodes: tuple[int, ...]
    capacity: int
    jobs: list[int] = field(default_factory=list)
    count: int = 0

    def join(self, job: int) -> None:
        """Add a job at the end."""
        self.jobs.append(job)
        self.count += 1


_by_count = attrgetter("count")


def simulate_tiresias_gandiva(instance: Instance) -> TiresiasGandivaRun:
    """Run the simulator over an instance; O(steps x jobs).

    Parameters
    ----------
    instance : Instance
        Jobs in whole seconds and a cluster of nodes with equally many GPUs of one type, without charges.

    Raises
    ------
    InputError
        If a gang size is not one of the original's, a time is no whole number of seconds, nodes differ,
        or runs are charged or share GPUs.
    """
    return TiresiasGandivaSimulator(instance).run()


def gandiva_schedule(instance: Instance, seed: int) -> Schedule:
    """The schedule alone; nothing in it is drawn, so that every seed has the same."""
    del seed
    return simulate_tiresias_gandiva(instance).schedule


class TiresiasGandivaSimulator:
    """State of one run; jobs are rows of the workload."""

    def __init__(self, instance: Instance) -> None:
        require(instance, KNOWS, WHERE)
        self.gpus_per_node = _gpus_per_node(instance.cluster)
        self.total_gpus = instance.cluster.total_gpus
        _check(instance)
        workload = instance.workload
        self.ids: list[str] = workload.id.tolist()
        self.gang: list[int] = workload.gpus.tolist()
        arrival = _whole_seconds("arrival", workload.arrival_s, self.ids)
        self.left = _whole_seconds("run time", instance.processing_s[:, 0], self.ids)
        self.arrivals = sorted(zip(arrival, range(len(arrival)), strict=True))
        self.free = list(range(len(instance.cluster.gpus_per_node)))
        self.sets: dict[int, list[NodeSet]] = {gang: [] for gang in GANGS}
        self.pending: list[int] = []
        self.end_s: dict[str, int] = {}
        self.stretches = _Stretches(self.gang, self.gpus_per_node)

    def run(self) -> TiresiasGandivaRun:
        """Step until every job is done."""
        upcoming, jobs = 0, len(self.arrivals)
        before = now = self.arrivals[0][0]
        while len(self.end_s) < jobs:
            done = len(self.end_s)
            changed = self.adjust()
            released = self.execute(before, now)
            while upcoming < jobs and self.arrivals[upcoming][0] == now:
                job = self.arrivals[upcoming][1]
                upcoming, changed = upcoming + 1, True
                if not self.place(job):
                    self.pending.append(job)
            if released:
                self.place_pending()
            changed = changed or released or len(self.end_s) > done
            before, now = now, now + (STEP_S if changed else self.steps_alike(now))
            if upcoming < jobs:
                now = min(now, self.arrivals[upcoming][0])
        return TiresiasGandivaRun(self.end_s, self.stretches.schedule())

    def steps_alike(self, now: int) -> int:
        """Length of the steps after one that changed nothing, up to one in which a job ends or turns change [s].

        What a step decides depends on the sets alone, so that all of these decide as the last one did.
        """
        every = [each for sets in self.sets.values() for each in sets]
        running = [self.left[job] for each in every for job in each.jobs[: each.capacity]]
        if not running:  # Nothing is to be done before the next arrival.
            return max(self.arrivals[-1][0] - now, STEP_S)
        length = -(-min(running) // STEP_S) * STEP_S
        if now % STEP_S == 0 and any(len(each.jobs) > each.capacity for each in every):
            length = min(length, TURN_S - now % TURN_S)
        return length

    def place(self, job: int) -> bool:
        """Join or make a set; False if there is none of this size and no room for one."""
        gang = self.gang[job]
        sets = self.sets[gang]
        if sets:
            first = sets.pop(0)
            sets.append(first)
            if first.count + 1 < first.capacity:
                first.join(job)
                sets.sort(key=_by_count)
                return True
        made = self.new_set(gang)
        if made is None and not sets:
            return False
        if made is None:
            made = sets.pop(0)
        sets.append(made)
        made.join(job)
        sets.sort(key=_by_count)
        return True

    def place_pending(self) -> None:
        """Place waiting jobs in their order; after each that is placed the next is passed over."""
        position = 0
        while position < len(self.pending):
            if self.place(self.pending[position]):
                del self.pending[position]
            position += 1

    def new_set(self, gang: int) -> NodeSet | None:
        """An empty set on the nodes that have been free longest, if there are enough."""
        nodes = -(-gang // self.gpus_per_node)
        if nodes > len(self.free):
            return None
        taken, self.free = tuple(self.free[:nodes]), self.free[nodes:]
        return NodeSet(taken, nodes * self.gpus_per_node // gang)

    def adjust(self) -> bool:
        """Divide the GPUs among the gang sizes in proportion to what their jobs ask for.

        Returns
        -------
        bool
            False if all sets and jobs stay as they were.
        """
        asked = {
            gang: gang * sum([len(each.jobs) for each in self.sets[gang]])
            for gang in GANGS
            if self.sets[gang]
        }
        held = {
            gang: self.gpus_per_node * sum([len(each.nodes) for each in self.sets[gang]])
            for gang in asked
        }
        total = sum(asked.values())
        changed = False
        for gang, wanted in asked.items():
            # The original's quotient is a float as well, so that it rounds down where ours does.
            difference = min(int(wanted / total * self.total_gpus), wanted) - held[gang]
            if difference > 0:
                self.expand(gang, -(-difference // gang))
                changed = True
            elif difference < 0 and len(self.sets[gang]) > 1:
                self.shrink(gang, -(difference // gang))
                changed = True
        return changed

    def expand(self, gang: int, wanted: int) -> None:
        """Add sets while there are free nodes; spread the jobs anew if the last could not be had."""
        sets = self.sets[gang]
        made: NodeSet | None = None
        for _ in range(wanted):
            made = self.new_set(gang)
            if made is not None:
                sets.append(made)
        if made is None or len(made.nodes) > 1:
            jobs = [job for each in sets for job in each.jobs]
            for each in sets:
                each.jobs, each.count = [], 0
            _spread(jobs, sets)

    def shrink(self, gang: int, surplus: int) -> None:
        """Give up the first sets, all but one at most; their jobs join those that are left."""
        sets = self.sets[gang]
        most = min(surplus, len(sets) - 1)
        given, sets[:] = sets[:most], sets[most:]
        for each in given:
            self.free.extend(each.nodes)
        _spread([job for each in given for job in each.jobs], sets)

    def execute(self, before: int, now: int) -> bool:
        """Let running jobs do the time since the last step; True if a set was given back."""
        released = False
        for gang in GANGS:
            sets = self.sets[gang]
            for each in sets:
                self.execute_set(each, before, now)
                if not each.jobs:
                    self.free.extend(each.nodes)
                    released = True
            sets[:] = [each for each in sets if each.jobs]
        return released

    def execute_set(self, each: NodeSet, before: int, now: int) -> None:
        """The same of one set, whose jobs may then take turns."""
        running = each.jobs[: each.capacity]
        done = []
        for job in running:
            worked = min(now - before, self.left[job])
            self.stretches.add(job, each.nodes, before, before + worked)
            self.left[job] -= worked
            if self.left[job] == 0:
                done.append(job)
        if now % TURN_S == 0 and len(each.jobs) > len(running):
            each.jobs = each.jobs[len(running) :] + running
        for job in done:
            each.jobs.remove(job)
            self.end_s[self.ids[job]] = now


def _spread(jobs: list[int], sets: list[NodeSet]) -> None:
    """Add jobs one by one to the set with the lowest count, ties to the first in the list."""
    for job in jobs:
        sets[0].join(job)
        sets.sort(key=_by_count)


class _Stretches:
    """Rows of the schedule: what follows on the same nodes without a gap is one row."""

    def __init__(self, gang: list[int], gpus_per_node: int) -> None:
        self._gang, self._gpus_per_node = gang, gpus_per_node
        self._open: dict[int, tuple[tuple[int, ...], int, int]] = {}
        self._rows: list[tuple[int, int, int, int, int]] = []

    def add(self, job: int, nodes: tuple[int, ...], start: int, end: int) -> None:
        """Note that a job ran on these nodes in [start, end) [s]."""
        if end == start:
            return
        on, since, until = self._open.get(job, (nodes, start, start))
        if on != nodes or until != start:
            self._close(job)
            since = start
        self._open[job] = (nodes, since, end)

    def _close(self, job: int) -> None:
        nodes, start, end = self._open.pop(job)
        left = self._gang[job]
        for node in nodes:
            held = min(left, self._gpus_per_node)
            self._rows.append((job, node, held, start, end))
            left -= held

    def schedule(self) -> Schedule:
        """All rows, by time and job."""
        for number in list(self._open):
            self._close(number)
        rows = sorted(self._rows, key=lambda row: (row[3], row[0], row[1]))
        job, node, gpus, start, end = np.array(rows, dtype=np.int64).reshape(-1, 5).T
        start_s, end_s = start.astype(np.float64), end.astype(np.float64)
        return Schedule(job.copy(), node.copy(), gpus.copy(), start_s, end_s, np.zeros(len(rows)))


def _gpus_per_node(cluster: Cluster) -> int:
    sizes = np.unique(cluster.gpus_per_node)
    if len(sizes) > 1 or len(cluster.gpu_types) > 1:
        raise InputError(
            f"{WHERE} expects nodes of one GPU type and equally many GPUs, got {cluster}"
        )
    return int(sizes[0])


def _check(instance: Instance) -> None:
    """Refuse what the original has no notion of."""
    if not set(instance.workload.gpus.tolist()) <= set(GANGS):
        wrong = next(gang for gang in instance.workload.gpus.tolist() if gang not in GANGS)
        known = ", ".join(map(str, sorted(GANGS)))
        raise InputError(f"{WHERE}: a job asks for {wrong} GPUs, expected one of {known}")


def _whole_seconds(what: str, times_s: NDArray[np.float64], ids: list[str]) -> list[int]:
    wrong = np.flatnonzero(times_s != np.floor(times_s))
    if len(wrong):
        raise InputError(
            f"{WHERE}: job {ids[wrong[0]]!r}: {what} is {times_s[wrong[0]]:g} s, expected whole seconds"
        )
    return [int(value) for value in times_s]
