"""What jobs of a small world may do at a time: where they run, how fast, and who beside whom.

Written again from ``docs/semantics.md``; nothing here is of the package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from support.small_worlds import (
    CORES,
    NOBODY,
    TICKS,
    WHOLE,
    Counts,
    Klass,
    SmallGraph,
    SmallJob,
    World,
)


@dataclass(frozen=True, eq=False)
class Way:
    """A way to run a job: GPUs by node, the GPU of which it holds a part, CPUs and memory, whole run [ticks]."""

    at: Counts
    ticks: int
    part: int = NOBODY
    cpus: tuple[Fraction, ...] = ()
    memory: tuple[Fraction, ...] = ()
    stages: tuple[Counts, ...] = ()
    fed: Fraction = Fraction(1)
    """Its speed by these CPUs and this memory."""

    @property
    def place(self) -> tuple[Counts, int]:
        """GPUs that it holds."""
        return self.at, self.part


@dataclass(frozen=True, eq=False)
class Held:
    """What a job does in a slot: its way, its partner, its whole run beside that [ticks], and the same without it."""

    way: Way
    partner: int
    ticks: int
    alone: Held | None = None


Choice = tuple[Held | None, ...]


# How fast a job is.


def whole_ticks(seconds: Fraction) -> int:
    """Ticks of a run, at least one, rounded up."""
    return max(math.ceil(seconds * TICKS), 1)


def slower(ticks: int, speed: Fraction) -> int:
    """Ticks of a run of so many at speed 1, at another speed."""
    return max(math.ceil(Fraction(ticks) / speed), 1)


def counts(sizes: Sequence[int], total: int) -> Iterator[Counts]:
    """All ways to take so many of nodes of these sizes."""
    if not sizes:
        if not total:
            yield ()
        return
    for here in range(min(sizes[0], total) + 1):
        for rest in counts(sizes[1:], total - here):
            yield (here, *rest)


def fewest(world: World, gpus: int, *, cores: bool = False) -> int:
    """Fewest nodes of the cluster, its largest, that hold so many GPUs, or cores."""
    held, nodes = 0, 0
    mine = [node.gpus for node in world.nodes if (node.kind == CORES) == cores]
    for size in sorted(mine, reverse=True):
        if held >= gpus:
            break
        held, nodes = held + size, nodes + 1
    return nodes


def rate_at(world: World, job: SmallJob, at: Counts) -> Fraction:
    """Work a second of a whole gang on these GPUs at speed 1: the least of the kinds; 0 where it cannot run."""
    kinds = {node.kind for node, n in zip(world.nodes, at, strict=True) if n}
    if job.on_cores != (kinds == {CORES}) or (CORES in kinds and not job.on_cores):
        return Fraction(0)
    # Jobs that tell kinds apart, as those of a cluster with cores do, go to kinds with room for the gang.
    told = job.rates is not None or any(node.kind == CORES for node in world.nodes)
    if told:
        for kind in kinds:
            if sum(node.gpus for node in world.nodes if node.kind == kind) < job.gang:
                return Fraction(0)
    if job.rates is None:
        return Fraction(1)
    return min(job.rates.get(kind, Fraction(0)) for kind in kinds)


def widths(job: SmallJob) -> Iterator[tuple[int, Fraction]]:
    """GPUs that a job may hold, doubled each time, and its speed; neither parts of a GPU nor cores grow."""
    width, speed, grows = job.gang, Fraction(1), job.milli == WHOLE and not job.on_cores
    while width <= (max(job.widest, job.gang) if grows else job.gang):
        yield width, speed
        width, speed = 2 * width, speed * job.doubling


def cpu_memory(job: SmallJob) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """CPUs and memory for each GPU, or core, that a job may be given, no less than it asks for, and its speed."""
    least = Fraction(job.cpus, job.gang), Fraction(job.memory_gb, job.gang)
    if job.profile is None or job.on_cores:
        yield *least, Fraction(1)
        return
    part, axes = Fraction(job.milli, WHOLE), (job.profile.cpus, job.profile.memory_gb)
    for point in product(*axes):
        given = [max(each * part, asked) for each, asked in zip(point, least, strict=True)]
        at = [
            sum(1 for step in axis if step * part <= each) - 1
            for axis, each in zip(axes, given, strict=True)
        ]
        if min(at) >= 0 and job.profile.speed[at[0]][at[1]]:
            yield given[0], given[1], job.profile.speed[at[0]][at[1]]


def ways_of(world: World, job: SmallJob) -> list[Way]:
    """All ways to run a job by itself."""
    found: list[Way] = []
    sizes = [node.gpus for node in world.nodes]
    for width, wider in widths(job):
        for at in counts(sizes, width):
            rate = rate_at(world, job, at)
            if not rate:
                continue
            speed = wider * across(world, job, at)
            for cpus, memory, fed in cpu_memory(job):
                if job.profile is not None:
                    given = [tuple(each * n for n in at) for each in (cpus, memory)]
                else:
                    given = asked(world, job, at)
                if job.graph is not None:
                    found += mapped(world, job, at, given, fed)
                    continue
                ticks = slower(whole_ticks(job.work / rate), speed * fed)
                found += [
                    Way(at, ticks, gpu, given[0], given[1], fed=fed)
                    for gpu in parts(world, job, at)
                ]
    return found


def across(world: World, job: SmallJob, at: Counts) -> Fraction:
    """Speed of a gang on these nodes, against one that has not to cross any."""
    nodes = sum(map(bool, at))
    if job.on_cores or nodes == 1:
        return Fraction(1)
    if world.racks is not None:
        several = len(world.racks.of(at)) > 1
        return world.racks.across_racks if several else world.racks.across_nodes
    return job.spread if nodes > fewest(world, sum(at)) else Fraction(1)


def parts(world: World, job: SmallJob, at: Counts) -> range | list[int]:
    """GPUs of its node of which a job may hold a part."""
    if job.milli == WHOLE:
        return [NOBODY]
    return range(world.nodes[at.index(1)].gpus)


def asked(world: World, job: SmallJob, at: Counts) -> list[tuple[Fraction, ...]]:
    """CPUs and memory that a job holds on every node, as soon as one of them asks for any."""
    if not any(each.cpus or each.memory_gb for each in world.jobs):
        return [(), ()]
    share = Fraction(0 if world.pairs else job.milli, WHOLE)
    rows = list(zip(world.nodes, at, strict=True))
    cpus = [
        Fraction(job.cpus * n, job.gang) if job.cpus else Fraction(share * node.cpus * n, node.gpus)
        for node, n in rows
    ]
    memory = [
        Fraction(job.memory_gb * n, job.gang)
        if job.memory_gb
        else Fraction(share * node.memory_gb * n, node.gpus)
        for node, n in rows
    ]
    return [tuple(cpus), tuple(memory)]


def mapped(
    world: World, job: SmallJob, at: Counts, given: Sequence[tuple[Fraction, ...]], fed: Fraction
) -> Iterator[Way]:
    """All mappings of a job's replicas to its GPUs, with the CPUs and memory that it holds there, and its speed."""
    graph = job.graph
    assert graph is not None

    def place(stage: int, left: Counts) -> Iterator[tuple[Counts, ...]]:
        if stage == len(graph.stages):
            yield ()
            return
        for each in counts(left, graph.stages[stage].replicas):
            rest = tuple(a - b for a, b in zip(left, each, strict=True))
            for others in place(stage + 1, rest):
                yield (each, *others)

    for stages in place(0, at):
        alpha = iteration_s(graph, stages)
        ticks = slower(whole_ticks(job.work * alpha), fed)
        for gpu in parts(world, job, at):
            yield Way(at, ticks, gpu, given[0], given[1], stages, fed)


def iteration_s(graph: SmallGraph, stages: tuple[Counts, ...]) -> Fraction:
    """Time of an iteration with these replicas of every stage on the nodes."""
    longest = Fraction(0)
    for s, stage in enumerate(graph.stages):
        reduced = Fraction(2 * (stage.replicas - 1) * stage.parameter_bytes, stage.replicas)
        several = sum(map(bool, stages[s])) > 1
        for node, here in enumerate(stages[s]):
            if not here:
                continue
            local = remote = Fraction(0)
            for one, other, sent in graph.links:
                if s not in (one, other):
                    continue
                peer = other if s == one else one
                each = Fraction(sent)
                if s == other:
                    each *= Fraction(graph.stages[one].replicas, stage.replicas)
                there = Fraction(stages[peer][node], graph.stages[peer].replicas)
                local, remote = local + each * there, remote + each * (1 - there)
            time = stage.compute_s + 2 * local / graph.inside
            time += 2 * remote * graph.gpus_per_node / graph.nic
            time += reduced / (graph.nic if several else graph.inside)
            longest = max(longest, time)
    return longest


def shared_ticks(world: World, job: SmallJob, partner: SmallJob, way: Way) -> int:
    """Whole run of a job beside another on these GPUs [ticks]; 0 where the two may not share them."""
    if not world.pairs or job.gang != partner.gang or sum(way.at) != job.gang:
        return 0
    if min(job.milli, partner.milli) < WHOLE or job.on_cores or partner.on_cores:
        return 0
    kinds = {node.kind for node, n in zip(world.nodes, way.at, strict=True) if n}
    rates = []
    for kind in kinds:
        both = world.pairs.get((kind, job.model, partner.model, job.gang))
        if both is None:
            back = world.pairs.get((kind, partner.model, job.model, job.gang))
            both = None if back is None else (back[1], back[0])
        if both is None or not min(both):
            return 0
        rates.append(both[0])
    if not rate_at(world, partner, way.at):
        return 0
    if job.graph is not None:
        alone = whole_ticks(job.work * iteration_s(job.graph, way.stages))
        return slower(alone, min(rates) * way.fed)
    times = max(whole_ticks(job.work / rate) for rate in rates)
    return slower(times, way.fed * across(world, job, way.at))


# What may be done in a slot.


class Room:
    """What is free on the nodes while jobs are placed one by one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken: list[tuple[int, Way, bool]] = []

    def fits(self, job: int, way: Way, *, again: bool) -> bool:
        """True if a job fits beside those that are there; ``again`` on GPUs that are held already."""
        self._taken.append((job, way, again))
        fine = all(self._node_fits(node) for node in range(len(self._world.nodes)))
        fine = fine and self._uplinks_fit()
        self._taken.pop()
        return fine

    def take(self, job: int, way: Way, *, again: bool) -> None:
        """Place a job."""
        self._taken.append((job, way, again))

    def give(self) -> None:
        """Take the last one away."""
        self._taken.pop()

    def _uplinks_fit(self) -> bool:
        racks, crossing = self._world.racks, dict[int, int]()
        for job, way, _ in self._taken if racks is not None else ():
            assert racks is not None
            mine = racks.of(way.at)
            if len(mine) > 1 and not self._world.jobs[job].on_cores:
                for rack in mine:
                    crossing[rack] = crossing.get(rack, 0) + 1
        return racks is None or all(each <= racks.uplink for each in crossing.values())

    def _node_fits(self, node: int) -> bool:
        whole, milli = 0, {}
        cpus = memory = Fraction(0)
        for job, way, again in self._taken:
            if not way.at[node]:
                continue
            if way.part != NOBODY:
                milli[way.part] = milli.get(way.part, 0) + self._world.jobs[job].milli
            elif not again:
                whole += way.at[node]
            if way.cpus:
                cpus, memory = cpus + way.cpus[node], memory + way.memory[node]
        room = self._world.nodes[node]
        return (
            whole + len(milli) <= room.gpus
            and all(each <= WHOLE for each in milli.values())
            and cpus <= room.cpus
            and memory <= (room.memory_gb or 10**9)
        )


def choices(world: World, klass: Klass, ways: Sequence[Sequence[Way]]) -> list[Choice]:
    """All that jobs can do together in a slot."""
    jobs, room = world.jobs, Room(world)
    found: list[Choice] = []
    now: list[Held | None] = [None] * len(jobs)
    known: dict[tuple[int, Way, int], Held] = {}

    def held(job: int, way: Way, partner: int, ticks: int) -> Held:
        alone = None if partner == NOBODY else held(job, way, NOBODY, way.ticks)
        return known.setdefault((job, way, partner), Held(way, partner, ticks, alone))

    def place(j: int) -> None:
        if j == len(jobs):
            found.append(tuple(now))
            return
        place(j + 1)
        for way in ways[j]:
            if room.fits(j, way, again=False):
                room.take(j, way, again=False)
                now[j] = held(j, way, NOBODY, way.ticks)
                place(j + 1)
                now[j] = None
                room.give()
        if not klass.sharing:
            return
        for i in range(j):
            other = now[i]
            if other is None or other.partner != NOBODY:
                continue
            for way in ways[j]:
                if way.place != other.way.place:
                    continue
                mine = shared_ticks(world, jobs[j], jobs[i], way)
                theirs = shared_ticks(world, jobs[i], jobs[j], other.way)
                if mine and theirs and room.fits(j, way, again=True):
                    room.take(j, way, again=True)
                    now[i] = held(i, other.way, j, theirs)
                    now[j] = held(j, way, i, mine)
                    place(j + 1)
                    now[i], now[j] = other, None
                    room.give()

    place(0)
    return found


def ways_in(world: World, klass: Klass) -> list[list[Way]]:
    """Ways to run each job in schedules of a class."""
    found = []
    for job in world.jobs:
        mine = ways_of(world, job)
        if not klass.elastic:
            mine = [way for way in mine if sum(way.at) == job.gang]
        if klass.consolidated:
            mine = [
                way
                for way in mine
                if sum(map(bool, way.at)) <= fewest(world, sum(way.at), cores=job.on_cores)
            ]
        found.append(mine)
    return found
