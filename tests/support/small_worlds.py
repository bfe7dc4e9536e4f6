"""Small worlds: jobs and nodes as plain data, and the least costs of their schedules by exhaustive search.

Nothing here is of the package: what a job does on GPUs, how fast it is and what it pays is written again from
``docs/semantics.md``, so that an error of the package is not repeated. The search places jobs anew every second. What
it finds are schedules that exist: each least cost is one that no lower bound may exceed, and that no optimum of the
class may exceed either. Nodes that fail are not searched: bounds speak of nodes that never do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import product

TICKS = 1 << 20
"""Ticks of a second, which is a slot of the search."""
WHOLE = 1000
"""Thousandths of a GPU."""
MIB = Fraction(10**9, 1 << 20)
"""MiB of a GB."""
CORES = "cores"
NOBODY = -1
NEVER = Fraction(1 << 60)
SLOWEST = 4
"""Times as long as at its best that a job may take where it is searched for."""
MOST_CHOICES = 12
"""Choices that are tried in a slot where all may stop for nothing, those in which most is done."""

Counts = tuple[int, ...]
"""Numbers by node, or by stage."""


@dataclass(frozen=True)
class SmallNode:
    """A node: GPUs of a kind, CPUs and memory [GB]."""

    gpus: int
    kind: str = "gpu"
    cpus: int = 0
    memory_gb: int = 0


@dataclass(frozen=True)
class SmallStage:
    """Replicas of a stage, their compute time [s], and bytes of parameters."""

    replicas: int
    compute_s: Fraction
    parameter_bytes: int = 0


@dataclass(frozen=True)
class SmallGraph:
    """Stages, links (source, target, bytes that a replica of the source sends), and bandwidths [bytes/s]."""

    stages: tuple[SmallStage, ...]
    links: tuple[tuple[int, int, int], ...]
    inside: int
    nic: int
    gpus_per_node: int


@dataclass(frozen=True)
class SmallProfile:
    """Speeds by CPUs and memory [GB] for each GPU: those of the point at or below what a job has."""

    cpus: tuple[int, ...]
    memory_gb: tuple[int, ...]
    speed: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class SmallJob:
    """A job.

    ``rates`` are work a second by kind of GPU, none for 1 everywhere; ``widest`` is the most GPUs that it may
    hold, every doubling of which multiplies its speed by ``doubling``; ``spread`` is its speed on more nodes than
    needed.
    """

    release: int
    gang: int
    work: Fraction
    weight: Fraction = Fraction(1)
    model: str = "a"
    rates: Mapping[str, Fraction] | None = None
    tenant: str = ""
    milli: int = WHOLE
    cpus: int = 0
    memory_gb: int = 0
    spread: Fraction = Fraction(1)
    widest: int = 0
    doubling: Fraction = Fraction(2)
    profile: SmallProfile | None = None
    graph: SmallGraph | None = None
    on_cores: bool = False


@dataclass(frozen=True)
class SmallCopies:
    """Rounds [s] in which jobs run as copies on whole nodes, charges [s], and most copies of a job."""

    round_s: int
    restart_s: Fraction
    averaging_s: Fraction
    most: int


@dataclass(frozen=True)
class World:
    """All that is given. ``pairs`` are rates (kind, model, model, gang) of two jobs on the same GPUs."""

    features: tuple[str, ...]
    seed: int
    nodes: tuple[SmallNode, ...]
    jobs: tuple[SmallJob, ...]
    pairs: Mapping[tuple[str, str, str, int], tuple[Fraction, Fraction]] = field(
        default_factory=dict
    )
    charges: tuple[Fraction, Fraction, Fraction] = (Fraction(0), Fraction(0), Fraction(0))
    quotas: tuple[tuple[int, Mapping[str, int]], ...] = ()
    down: tuple[tuple[int, int, int], ...] = ()
    window: tuple[int, int] | None = None
    stopped: int | None = None
    restarts: bool = False
    copies: SmallCopies | None = None

    @property
    def counted(self) -> tuple[int, ...]:
        """Jobs whose completions count."""
        every = range(len(self.jobs))
        if self.window is not None:
            return tuple(every[slice(*self.window)])
        if self.stopped is not None:
            return tuple(j for j in every if self.jobs[j].release < self.stopped)
        return tuple(every)


@dataclass(frozen=True)
class Klass:
    """A class of schedules: what its schedules may do at most."""

    preemptive: bool
    sharing: bool = False
    elastic: bool = False
    consolidated: bool = False


@dataclass(frozen=True, eq=False)
class Way:
    """A way to run a job: GPUs by node, the GPU of which it holds a part, CPUs and memory, whole run [ticks]."""

    at: Counts
    ticks: int
    part: int = NOBODY
    cpus: tuple[Fraction, ...] = ()
    memory: tuple[Fraction, ...] = ()
    stages: tuple[Counts, ...] = ()

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
Grown = tuple[Fraction, Fraction, Choice | None, Choice | None]
"""Least total and least last end from a time on, and the choices that they begin with."""


@dataclass(frozen=True)
class Least:
    """Least weighted completion time and least last completion [ticks], each with the choices of its schedule."""

    total: Fraction
    last: Fraction
    by_total: tuple[Choice, ...] = ()
    by_last: tuple[Choice, ...] = ()


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


def fewest(world: World, gpus: int) -> int:
    """Fewest nodes of the cluster, its largest, that hold so many GPUs."""
    held, nodes = 0, 0
    for size in sorted((node.gpus for node in world.nodes), reverse=True):
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
    """GPUs that a job may hold, doubled each time, and its speed with them."""
    width, speed = job.gang, Fraction(1)
    while width <= max(job.widest, job.gang):
        yield width, speed
        width, speed = 2 * width, speed * job.doubling


def amounts(job: SmallJob) -> Iterator[tuple[int, int, Fraction]]:
    """CPUs and memory for each GPU that a job may be given, and its speed with them."""
    if job.profile is None:
        yield 0, 0, Fraction(1)
        return
    for i, cpus in enumerate(job.profile.cpus):
        for k, memory in enumerate(job.profile.memory_gb):
            if job.profile.speed[i][k]:
                yield cpus, memory, job.profile.speed[i][k]


def ways_of(world: World, job: SmallJob) -> list[Way]:
    """All ways to run a job by itself."""
    found: list[Way] = []
    sizes = [node.gpus for node in world.nodes]
    for width, wider in widths(job):
        for at in counts(sizes, width):
            rate = rate_at(world, job, at)
            if not rate:
                continue
            spread = sum(map(bool, at)) > fewest(world, width)
            speed = wider * (job.spread if spread else 1)
            if job.graph is not None:
                found += mapped(job, at)
                continue
            alone = whole_ticks(job.work / rate)
            for cpus, memory, fed in amounts(job):
                ticks = slower(alone, speed * fed)
                if job.profile is not None:
                    given = [tuple(Fraction(each * n) for n in at) for each in (cpus, memory)]
                else:
                    given = asked(world, job, at)
                found += [
                    Way(at, ticks, part, given[0], given[1]) for part in parts(world, job, at)
                ]
    return found


def parts(world: World, job: SmallJob, at: Counts) -> range | list[int]:
    """GPUs of its node of which a job may hold a part."""
    if job.milli == WHOLE:
        return [NOBODY]
    return range(world.nodes[at.index(1)].gpus)


def asked(world: World, job: SmallJob, at: Counts) -> list[tuple[Fraction, ...]]:
    """CPUs and memory that a job holds on every node, as soon as one of them asks for any."""
    if not any(each.cpus or each.memory_gb for each in world.jobs):
        return [(), ()]
    share = 0 if world.pairs else 1
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


def mapped(job: SmallJob, at: Counts) -> Iterator[Way]:
    """All mappings of a job's replicas to its GPUs."""
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
        yield Way(at, whole_ticks(job.work * alpha), stages=stages)


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
    kinds = {node.kind for node, n in zip(world.nodes, way.at, strict=True) if n}
    times = []
    for kind in kinds:
        both = world.pairs.get((kind, job.model, partner.model, job.gang))
        if both is None:
            back = world.pairs.get((kind, partner.model, job.model, job.gang))
            both = None if back is None else (back[1], back[0])
        if both is None or not min(both):
            return 0
        times.append(whole_ticks(job.work / both[0]))
    if not rate_at(world, partner, way.at):
        return 0
    spread = sum(map(bool, way.at)) > fewest(world, job.gang)
    return slower(max(times), job.spread if spread else Fraction(1))


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
        self._taken.pop()
        return fine

    def take(self, job: int, way: Way, *, again: bool) -> None:
        """Place a job."""
        self._taken.append((job, way, again))

    def give(self) -> None:
        """Take the last one away."""
        self._taken.pop()

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
            mine = [way for way in mine if sum(map(bool, way.at)) <= fewest(world, sum(way.at))]
        found.append(mine)
    return found


# Search.


@dataclass(frozen=True)
class Progress:
    """A job in the search: units of work left, charges owed [ticks], what it does, and where it was last."""

    left: int
    owed: int = 0
    on: Held | None = None
    last: Counts | None = None


def quota_at(world: World, now: int) -> Mapping[str, int] | None:
    """GPUs that tenants may hold by the runs that begin at a time."""
    found = None
    for begin, quotas in world.quotas:
        if begin <= now:
            found = quotas
    return found


def charge(world: World, job: Progress, at: Counts) -> int:
    """Charge of a run that begins [ticks]."""
    if not any(world.charges):
        return 0
    start, restart, migration = world.charges
    seconds = start
    if job.last is not None:
        seconds += restart + (migration if job.last != at else 0)
    return int(seconds * TICKS)


@dataclass(frozen=True)
class Piece:
    """A part of a slot in which a job has one partner or none, without progress at first [ticks from its beginning]."""

    held: Held
    start: int
    end: int
    overhead: int


def slot(
    world: World, units: Sequence[int], jobs: Sequence[Progress], choice: Choice, j: int
) -> tuple[list[Piece], int, int]:
    """What a job does in a slot, its work left [units] and charges owed [ticks] afterwards.

    Where its partner ends first it goes on alone.
    """
    held = choice[j]
    assert held is not None
    job, owed = jobs[j], owes(world, jobs[j], held)
    first = _until(job.left, owed, units[j] // held.ticks)
    alone = TICKS
    if held.partner != NOBODY:
        other, theirs = jobs[held.partner], choice[held.partner]
        assert theirs is not None
        speed = units[held.partner] // theirs.ticks
        alone = min(_until(other.left, owes(world, other, theirs), speed), TICKS)
    end = min(first, alone)
    paid = min(owed, end)
    left = job.left - (end - paid) * (units[j] // held.ticks)
    pieces = [Piece(held, 0, end, paid)]
    if left > 0 and end < TICKS:
        assert held.alone is not None
        speed = units[j] // held.alone.ticks
        last = min(end + _until(left, owed - paid, speed), TICKS)
        more = min(owed - paid, last - end)
        pieces.append(Piece(held.alone, end, last, more))
        left, paid = left - (last - end - more) * speed, paid + more
    return pieces, max(left, 0), owed - paid


def owes(world: World, job: Progress, held: Held) -> int:
    """Charges that a job owes when it does this in the next slot [ticks]."""
    if job.on is not None and job.on.way.place == held.way.place:
        return job.owed
    return job.owed + charge(world, job, held.way.at)


def _until(left: int, owed: int, speed: int) -> int:
    """Ticks until work is done, after what is owed."""
    return owed - (-left // speed)


class Search:
    """Schedules of a world that change at whole seconds, from the first on."""

    def __init__(self, world: World, klass: Klass) -> None:
        if world.restarts:
            # Runs that are lost gain nothing: the best schedule has none.
            klass = Klass(False, klass.sharing, klass.elastic, klass.consolidated)
        self._world, self._klass = world, klass
        counted = set(world.counted)
        # Who does not count is never run.
        every = ways_in(world, klass)
        ways = [each if j in counted else [] for j, each in enumerate(every)]
        self._choices = [each for each in choices(world, klass, ways) if _fast(each, ways)]
        # Where no run is charged and all may stop at any time, it makes no difference where jobs were.
        self._free = klass.preemptive and not any(world.charges)
        self._units = []
        for j in range(len(world.jobs)):
            mine = [held for choice in self._choices if (held := choice[j]) is not None]
            runs = {held.ticks for held in mine} | {held.way.ticks for held in mine}
            self._units.append(math.lcm(*runs) if runs else 0)
        changes = [begin for begin, _ in world.quotas]
        self._moments = {*changes, *(world.jobs[j].release for j in counted)}
        longest = sum(
            -(-max(way.ticks for way in mine) // TICKS) + 2 + 3 * sum(map(math.ceil, world.charges))
            for mine in ways
            if mine
        )
        self._horizon = max(self._moments) + longest
        self._active: dict[object, list[Choice]] = {}
        self._grow = cache(self._grow_anew)

    def least(self) -> Least:
        """The least costs, with their schedules."""
        jobs = tuple(
            Progress(self._units[j] if j in self._world.counted else 0)
            for j in range(len(self._world.jobs))
        )
        if self._free:
            # Who takes much longer than the fastest choices do is not among the best.
            self._horizon = self._greedy_end(jobs) + 1
        total, last = self._grow(0, jobs, False)[:2]
        return Least(total, last, self._path(jobs, 2), self._path(jobs, 3))

    def _greedy_end(self, jobs: tuple[Progress, ...]) -> int:
        """Slots until all is done where most is done in each."""
        now = 0
        while any(job.left for job in jobs) and now <= self._horizon:
            jobs = self._after(now, jobs, self._open(now, jobs, False)[0])[0]
            now += 1
        return now

    def _path(self, jobs: tuple[Progress, ...], which: int) -> tuple[Choice, ...]:
        found: list[Choice] = []
        now, ended = 0, False
        while any(job.left for job in jobs):
            choice = self._grow(now, jobs, ended)[which]
            if choice is None:
                return ()
            found.append(choice)
            before = sum(map(_done, jobs))
            jobs = self._after(now, jobs, choice)[0]
            now, ended = now + 1, not self._free and sum(map(_done, jobs)) > before
        return tuple(found)

    def _grow_anew(self, now: int, jobs: tuple[Progress, ...], ended: bool) -> Grown:
        """Least costs from a time on; ``ended`` where a job ended in the slot before."""
        world = self._world
        if not any(job.left for job in jobs):
            return Fraction(0), Fraction(0), None, None
        if world.stopped is not None and now >= world.stopped:
            late = [world.jobs[j].weight for j, job in enumerate(jobs) if job.left]
            return sum(late, Fraction(0)) * world.stopped * TICKS, Fraction(0), None, None
        if now > self._horizon:
            return NEVER, NEVER, None, None
        best, soonest, first, second = NEVER, NEVER, None, None
        before = sum(map(_done, jobs))
        for choice in self._open(now, jobs, ended):
            after, cost, last = self._after(now, jobs, choice)
            ends = not self._free and sum(map(_done, after)) > before
            later_cost, later_last = self._grow(now + 1, after, ends)[:2]
            if cost + later_cost < best:
                best, first = cost + later_cost, choice
            if max(last, later_last) < soonest:
                soonest, second = max(last, later_last), choice
        return best, soonest, first, second

    def _after(
        self, now: int, jobs: tuple[Progress, ...], choice: Choice
    ) -> tuple[tuple[Progress, ...], Fraction, Fraction]:
        """Jobs after a slot, the cost of those that end in it, and the last end."""
        world, after = self._world, list(jobs)
        cost = last = Fraction(0)
        for j, held in enumerate(choice):
            if held is None:
                if jobs[j].on is not None:
                    after[j] = Progress(jobs[j].left, jobs[j].owed, None, jobs[j].last)
                continue
            pieces, left, owed = slot(world, self._units, jobs, choice, j)
            if not left:
                end = now * TICKS + pieces[-1].end
                if world.stopped is not None:
                    end = min(end, world.stopped * TICKS)
                cost, last = cost + world.jobs[j].weight * end, max(last, Fraction(end))
                after[j] = Progress(0)
            elif self._free:
                after[j] = Progress(left)
            else:
                after[j] = Progress(left, owed, pieces[-1].held, held.way.at)
        return tuple(after), cost, last

    def _open(self, now: int, jobs: tuple[Progress, ...], ended: bool) -> Sequence[Choice]:
        """Choices that are open in a slot.

        Unless all may stop for nothing, what jobs do changes only where one ends, comes or may begin by a new quota:
        without preemption no cost is less for waiting longer.
        """
        world = self._world
        there = tuple(bool(job.left) and world.jobs[j].release <= now for j, job in enumerate(jobs))
        quota = quota_at(world, now)
        if self._free:
            key = (there, None if quota is None else tuple(sorted(quota.items())))
            if key not in self._active:
                mine = [choice for choice in self._choices if _among(choice, there)]
                mine = [choice for choice in mine if self._within(quota, choice, None)]
                self._active[key] = _largest(mine, self._units)
            return self._active[key]
        if not ended and now not in self._moments:
            return [tuple(job.on if job.left else None for job in jobs)]
        if there not in self._active:
            self._active[there] = [each for each in self._choices if _among(each, there)]
        found = self._active[there]
        if not self._klass.preemptive:
            running = [(j, job.on.way) for j, job in enumerate(jobs) if job.on is not None]
            for j, way in running:
                found = [c for c in found if (held := c[j]) is not None and held.way is way]
        if quota is not None:
            found = [choice for choice in found if self._within(quota, choice, jobs)]
        return found

    def _within(
        self, quota: Mapping[str, int] | None, choice: Choice, jobs: tuple[Progress, ...] | None
    ) -> bool:
        """True if no tenant holds more than its quota where one of its runs begins."""
        if quota is None:
            return True
        held: dict[str, Fraction] = {}
        begins: set[str] = set()
        for j, each in enumerate(choice):
            if each is not None:
                job = self._world.jobs[j]
                mine = Fraction(sum(each.way.at) * job.milli, WHOLE)
                held[job.tenant] = held.get(job.tenant, Fraction(0)) + mine
                on = None if jobs is None else jobs[j].on
                if on is None or on.way.place != each.way.place:
                    begins.add(job.tenant)
        return all(held[tenant] <= quota.get(tenant, 0) for tenant in begins)


def _done(job: Progress) -> bool:
    return not job.left


def _fast(choice: Choice, ways: Sequence[Sequence[Way]]) -> bool:
    """True if no job is very slow: such choices make the search long, and are in few of the best schedules."""
    return all(
        held is None or held.ticks <= SLOWEST * min(way.ticks for way in mine)
        for held, mine in zip(choice, ways, strict=True)
    )


def _among(choice: Choice, there: tuple[bool, ...]) -> bool:
    return all(held is None or mine for held, mine in zip(choice, there, strict=True))


def _largest(found: list[Choice], units: Sequence[int]) -> list[Choice]:
    """Choices than which none lets every job run as fast, and one faster."""
    speeds: dict[Counts, Choice] = {}
    for choice in found:
        key = tuple(0 if h is None else u // h.ticks for h, u in zip(choice, units, strict=True))
        speeds.setdefault(key, choice)
    kept: list[Counts] = []
    scale = max(units, default=1) or 1
    for key in sorted(
        speeds, key=lambda key: -sum(map(int.__truediv__, key, [u or scale for u in units]))
    ):
        if not any(all(map(int.__ge__, other, key)) for other in kept):
            kept.append(key)
    return [speeds[key] for key in kept[:MOST_CHOICES]]


# Schedules that were found.


@dataclass(frozen=True)
class Run:
    """A run of a job from one time to another [ticks], the first part of it without progress."""

    job: int
    held: Held
    start: int
    end: int
    overhead: int


def runs_of(world: World, found: Sequence[Choice]) -> list[Run]:
    """Runs of a schedule, given by what is done in each slot; slots that a run goes on for are one."""
    units = []
    for j in range(len(world.jobs)):
        mine = [held for choice in found if (held := choice[j]) is not None]
        units.append(math.lcm(*{held.ticks for held in mine}, *{held.way.ticks for held in mine}))
    jobs = [Progress(each) for each in units]
    runs: list[Run] = []
    last: dict[int, Run] = {}
    for now, choice in enumerate(found):
        after = list(jobs)
        for j, (job, held) in enumerate(zip(jobs, choice, strict=True)):
            if held is None:
                after[j] = Progress(job.left, job.owed, None, job.last)
                continue
            pieces, left, owed = slot(world, units, jobs, choice, j)
            for piece in pieces:
                start, end = now * TICKS + piece.start, now * TICKS + piece.end
                run = Run(j, piece.held, start, end, piece.overhead)
                before = last.get(j)
                if before is not None and before.held is piece.held and before.end == start:
                    runs.remove(before)
                    paid = before.overhead + piece.overhead
                    run = Run(j, piece.held, before.start, end, paid)
                last[j] = run
                runs.append(run)
            after[j] = Progress(left, owed, pieces[-1].held, held.way.at)
        jobs = after
    return runs


# Jobs that run as copies.


def steps_of(job: SmallJob) -> int:
    """Steps of a job: iterations, or ticks of its gang's run."""
    return int(job.work if job.rates is not None else job.work * TICKS)


def _copy_rate(world: World, job: SmallJob, node: int) -> Fraction:
    """Steps a tick of a copy that uses all of a node."""
    kind, gpus = world.nodes[node].kind, world.nodes[node].gpus
    rate = Fraction(1) if job.rates is None else job.rates.get(kind, Fraction(0)) / TICKS
    return rate * gpus / job.gang


def least_of_copies(world: World) -> Least:
    """Least costs of jobs that run as copies, in rounds that begin one after the other from 0 on."""
    rules, jobs = world.copies, world.jobs
    assert rules is not None
    length = rules.round_s * TICKS
    most = max(job.release for job in jobs) + 8 * len(jobs) * 8

    @cache
    def grow(number: int, left: tuple[int, ...], at: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        if not any(left):
            return Fraction(0), Fraction(0)
        if number > most:
            return NEVER, NEVER
        begin = number * length
        there = [j for j, job in enumerate(jobs) if left[j] and job.release * TICKS <= begin]
        best = soonest = NEVER
        for choice in product([NOBODY, *there], repeat=len(world.nodes)):
            after, cost, last, fine = list(left), Fraction(0), Fraction(0), True
            for j in set(choice) - {NOBODY}:
                nodes = [node for node, each in enumerate(choice) if each == j]
                end = _round_of(world, j, nodes, at, left[j])
                if len(nodes) > rules.most or end is None:
                    fine = False
                    break
                done, ends = end
                after[j] -= done
                if not after[j]:
                    cost += jobs[j].weight * (begin + ends)
                    last = max(last, Fraction(begin + ends))
            if not fine or (there and set(choice) == {NOBODY}):
                continue
            now_at = tuple(was if j == NOBODY else j for was, j in zip(at, choice, strict=True))
            later, later_last = grow(number + 1, tuple(after), now_at)
            best, soonest = min(best, cost + later), min(soonest, max(last, later_last))
        return best, soonest

    return Least(*grow(0, tuple(map(steps_of, jobs)), (NOBODY,) * len(world.nodes)))


def _round_of(
    world: World, job: int, nodes: Sequence[int], at: Sequence[int], left: int
) -> tuple[int, int] | None:
    """Steps that copies on these nodes do in a round, and when they end [ticks]; None if one does nothing."""
    rules = world.copies
    assert rules is not None
    several = rules.averaging_s if len(nodes) > 1 else Fraction(0)
    copies = []
    for node in nodes:
        rate = _copy_rate(world, world.jobs[job], node)
        owed = several + (rules.restart_s if at[node] not in (NOBODY, job) else 0)
        copies.append((rate, int(owed * TICKS)))

    def done(until: int) -> list[int]:
        return [math.floor(max(until - owed, 0) * rate) for rate, owed in copies]

    low, high = 0, rules.round_s * TICKS
    if min(done(high)) < 1:
        return None
    if sum(done(high)) <= left:
        return sum(done(high)), high
    while low < high:
        middle = (low + high) // 2
        if sum(done(middle)) >= left and min(done(middle)) >= 1:
            high = middle
        else:
            low = middle + 1
    # Where the slowest copy begins so late that it would not be needed, fewer copies are tried elsewhere.
    return (left, high) if left >= len(nodes) else None


def least(world: World, klass: Klass) -> Least:
    """The least costs of a world's schedules of a class [ticks]; exhaustive."""
    if world.copies is not None:
        return least_of_copies(world)
    return Search(world, klass).least()


def cost(world: World, found: Least, objective: str) -> Fraction:
    """Least flow or completion time, weighted, or makespan [ticks] of the jobs that count."""
    jobs = [world.jobs[j] for j in world.counted]
    if objective == "makespan":
        return found.last - min(job.release for job in jobs) * TICKS
    if objective == "completion":
        return found.total
    return found.total - sum((job.weight * job.release for job in jobs), Fraction(0)) * TICKS


def of_one_weight(world: World) -> World:
    """The world with jobs of weight 1."""
    return replace(world, jobs=tuple(replace(job, weight=Fraction(1)) for job in world.jobs))


def all_at_once(world: World) -> World:
    """The world with jobs that are all there from 0 on."""
    return replace(world, jobs=tuple(replace(job, release=0) for job in world.jobs))
