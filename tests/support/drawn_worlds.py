"""Small worlds with given features, drawn by a seed. Nothing here is of the package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random

from support.small_worlds import (
    CORES,
    SmallCopies,
    SmallGraph,
    SmallJob,
    SmallNode,
    SmallProfile,
    SmallRacks,
    SmallStage,
    World,
)

HALF, ONE = Fraction(1, 2), Fraction(1)
EIGHTH = Fraction(1, 8)
LATE = 60
"""Time [s] by which every run of a world's other jobs is over."""
FEATURES = (
    "rates",
    "types",
    "charges",
    "sharing",
    "graphs",
    "profiles",
    "spread",
    "widths",
    "copies",
    "failures",
    "quotas",
    "parts",
    "cores",
    "cpu-memory",
    "window",
    "stopped",
    "restart",
    "racks",
)
HUNGRY = SmallProfile((1, 2), (5,), ((HALF,), (ONE,)))
GREEDY = SmallProfile((2, 4), (5,), ((ONE,), (Fraction(2),)))
LIGHT = SmallProfile((1,), (5,), ((ONE,),))
GRAPHS = (
    SmallGraph((SmallStage(1, ONE),), (), 1 << 30, 1 << 28, 2),
    SmallGraph((SmallStage(2, HALF, 1 << 28),), (), 1 << 30, 1 << 28, 2),
    SmallGraph(
        (SmallStage(1, HALF), SmallStage(1, Fraction(3, 4))),
        ((0, 1, 1 << 27),),
        1 << 30,
        1 << 28,
        2,
    ),
)


@dataclass
class _Draw:
    """A draw: its random numbers, and what it is to have."""

    random: Random
    features: frozenset[str]

    def __contains__(self, feature: str) -> bool:
        return feature in self.features

    def one(self, *values: object) -> object:
        return self.random.choice(values)


def drawn(features: tuple[str, ...], seed: int) -> World:
    """A world that has these features; the same for the same seed."""
    draw = _Draw(Random(f"{' '.join(sorted(features))} {seed}"), frozenset(features))
    nodes = _nodes(draw)
    jobs = _jobs(draw, nodes)
    world = World(features, seed, nodes, jobs)
    random = draw.random
    if "sharing" in draw:
        world = replace(world, pairs=_pairs(draw, nodes, jobs))
    if "charges" in draw:
        some = [random.choice((Fraction(0), HALF, ONE)) for _ in range(3)]
        some[random.randrange(3)] = ONE
        world = replace(world, charges=(some[0], some[1], some[2]))
    if "quotas" in draw:
        world = replace(world, quotas=_quotas(draw, nodes, jobs))
    if "failures" in draw:
        begin = random.randrange(4)
        down = (random.randrange(len(nodes)), begin, begin + random.randint(1, 2))
        world = replace(world, **_failures(draw, len(nodes), down, seed))
    if "window" in draw:
        first = random.randrange(len(jobs))
        world = replace(world, window=(first, random.randint(first + 1, len(jobs))))
        # A run ends with a window only before the last job comes.
        world = replace(world, jobs=(*jobs, replace(jobs[0], release=LATE)))
    if "stopped" in draw:
        world = replace(world, stopped=jobs[0].release + random.randint(1, 4))
    if "racks" in draw:
        slower = random.choice(((ONE, HALF), (HALF, HALF), (Fraction(3, 4), HALF), (ONE, ONE)))
        world = replace(
            world, racks=SmallRacks(random.randint(1, 2), *slower, random.randint(1, 2))
        )
    if "copies" in draw:
        charges = (random.choice((Fraction(0), HALF)), random.choice((Fraction(0), HALF)))
        world = replace(world, copies=SmallCopies(2, *charges, random.randint(1, 3)))
    return replace(world, restarts="restart" in draw)


def _nodes(draw: _Draw) -> tuple[SmallNode, ...]:
    random = draw.random
    kinds = ["gpu"]
    if "types" in draw:
        kinds = random.choice((["v100", "k80"], ["k80", "v100"]))
    sizes = [random.choice(((1,), (2,), (1, 1), (2, 1), (2, 2), (3,))) for _ in kinds]
    if len(kinds) > 1:
        sizes = [random.choice(((1,), (2,), (1, 1), (2, 1))) for _ in kinds]
        if "sharing" in draw:
            sizes = random.choice((((1,), (2,)), ((2,), (1,)), ((1,), (1,)), ((1, 1), (1,))))
    if draw.features & {"spread", "graphs", "racks"} and len(kinds) == 1:
        sizes = [random.choice(((1, 1), (2, 1), (2, 2), (1, 1, 1)))]
    nodes = [SmallNode(n, kind) for kind, mine in zip(kinds, sizes, strict=True) for n in mine]
    if "profiles" in draw:
        each = random.choice((2, 2, 3))
        room = 10 if "sharing" in draw else 5
        nodes = [replace(node, cpus=each * node.gpus, memory_gb=room * node.gpus) for node in nodes]
    if "cpu-memory" in draw:
        each = random.choice((2, 3, 4))
        nodes = [replace(node, cpus=each * node.gpus, memory_gb=8 * node.gpus) for node in nodes]
    if "cores" in draw:
        room = 8 if "cpu-memory" in draw else 0
        nodes.append(SmallNode(random.randint(1, 3), CORES, memory_gb=room))
    return tuple(nodes)


def _jobs(draw: _Draw, nodes: tuple[SmallNode, ...]) -> tuple[SmallJob, ...]:
    random = draw.random
    heavy = draw.features & {"charges", "profiles", "cores", "parts", "restart", "copies"}
    count = random.randint(2, 3) if heavy or len(draw.features) > 1 else random.randint(2, 4)
    room = {kind: sum(n.gpus for n in nodes if n.kind == kind) for kind in {n.kind for n in nodes}}
    gpus = max(n for kind, n in room.items() if kind != CORES)
    rates = {model: _rates(draw, nodes) for model in "ab"}
    spread = {model: random.choice((HALF, Fraction(3, 4))) for model in "ab"}
    doubling = random.choice((Fraction(2), Fraction(3, 2)))
    profiles = {"a": HUNGRY, "b": random.choice((LIGHT, GREEDY, HUNGRY))}
    alike, together = random.random() < 0.6, random.random() < 0.4
    models, gangs = "ab", (1, 1, 2, 2, 3)
    if "sharing" in draw:
        # Jobs that have to share: few kinds of them, at once, on GPUs that are few.
        models, gangs = random.choice(("a", "a", "ab")), random.choice(((1,), (1,), (2,), (1, 2)))
        together = together or random.random() < 0.7
        count = 4 if together and gangs == (1,) and not heavy else max(count, 3)
    if {"charges", "profiles"} <= draw.features:
        count = 2  # With three the search is long.
    each_its_own = random.random() < 0.3
    jobs = []
    for _ in range(count):
        model = random.choice(models)
        if each_its_own:
            rates[model] = _rates(draw, nodes)
        gang = min(random.choice(gangs), gpus)
        job = SmallJob(
            0 if together else random.randint(0, 2),
            gang,
            Fraction(random.choice((1, 1, 2, 3))),
            ONE if alike else random.choice((HALF, ONE, Fraction(2))),
            model,
            rates[model],
        )
        if job.rates is not None:
            job = _fitted(draw, job, room)
        jobs.append(_more(draw, job, model, gpus, spread, doubling, profiles))
    jobs.sort(key=lambda job: job.release)
    if "cores" in draw:
        some = [k for k in range(1, len(jobs)) if jobs[k].on_cores] or [len(jobs) - 1]
        for k, job in enumerate(jobs):
            jobs[k] = _onto_cores(draw, job, nodes) if k in some else replace(job, on_cores=False)
    if "cpu-memory" in draw and not any(job.cpus or job.memory_gb for job in jobs):
        jobs[0] = replace(jobs[0], cpus=1)
    if "parts" in draw and all(job.milli == 1000 for job in jobs):
        asked = {"cpus": min(jobs[0].cpus, 1), "memory_gb": min(jobs[0].memory_gb, 4)}
        graph = {} if jobs[0].graph is None else {"graph": GRAPHS[0]}
        milli = random.choice((100, 250, 500))
        jobs[0] = replace(jobs[0], gang=1, milli=milli, **asked, **graph)
    if "copies" in draw:
        least = min(node.cpus for node in nodes), min(node.memory_gb for node in nodes)
        jobs = [
            replace(job, cpus=min(job.cpus, least[0]), memory_gb=min(job.memory_gb, least[1]))
            for job in jobs
        ]
    return tuple(jobs)


def _onto_cores(draw: _Draw, job: SmallJob, nodes: tuple[SmallNode, ...]) -> SmallJob:
    room = sum(node.gpus for node in nodes if node.kind == CORES)
    rates = None if job.rates is None else {**job.rates, CORES: ONE}
    gang = draw.random.randint(1, room)
    memory = min(job.memory_gb, min(node.memory_gb for node in nodes if node.kind == CORES))
    return replace(
        job,
        on_cores=True,
        gang=gang,
        milli=1000,
        rates=rates,
        widest=0,
        cpus=0,
        memory_gb=memory,
    )


def _rates(draw: _Draw, nodes: tuple[SmallNode, ...]) -> Mapping[str, Fraction] | None:
    """Rates of a model on the kinds of GPUs."""
    if not draw.features & {"rates", "types"}:
        return None
    kinds = sorted({node.kind for node in nodes if node.kind != CORES})
    found = {kind: draw.random.choice((HALF, ONE, ONE, Fraction(2), Fraction(4))) for kind in kinds}
    if len(kinds) > 1 and draw.random.random() < 0.2:
        found[draw.random.choice(kinds)] = Fraction(0)
    return found


def _fitted(draw: _Draw, job: SmallJob, room: Mapping[str, int]) -> SmallJob:
    """A job whose gang fits a kind on which it runs, and whose work is some seconds there."""
    assert job.rates is not None
    usable = {kind: rate for kind, rate in job.rates.items() if rate}
    gang = min(job.gang, max(room[kind] for kind in usable))
    fastest = max(rate for kind, rate in usable.items() if room[kind] >= gang)
    work = max(job.work * fastest, ONE)
    if "copies" in draw:
        work = Fraction(math.ceil(work))  # Copies share whole iterations.
    return replace(job, gang=gang, work=work)


def _more(
    draw: _Draw,
    job: SmallJob,
    model: str,
    gpus: int,
    spread: Mapping[str, Fraction],
    doubling: Fraction,
    profiles: Mapping[str, SmallProfile],
) -> SmallJob:
    """The job with what the other features say of it."""
    random = draw.random
    if "spread" in draw:
        job = replace(job, spread=spread[model])
    if "widths" in draw:
        widest = job.gang if random.random() < 0.3 else min(2 * job.gang, gpus + 1)
        job = replace(job, widest=widest, doubling=doubling)
    if "profiles" in draw:
        job = replace(job, profile=profiles[model])
    if "quotas" in draw:
        job = replace(job, tenant=random.choice("xxxy"))
    if "parts" in draw and random.random() < 0.7:
        job = replace(job, gang=1, milli=random.choice((100, 250, 500, 600)))
    if "cores" in draw and random.random() < 0.4:
        job = replace(job, on_cores=True)
    if "graphs" in draw:
        most = 2 if job.milli == 1000 else 1
        graph = random.choice([g for g in GRAPHS if sum(s.replicas for s in g.stages) <= most])
        gang = sum(stage.replicas for stage in graph.stages)
        job = replace(job, graph=graph, gang=gang, rates=None)
    if "cpu-memory" in draw and random.random() < 0.7:
        cpus, memory = random.choice((1, 2)) * job.gang, random.choice((0, 0, 8, 4)) * job.gang
        job = replace(job, cpus=random.choice((0, cpus)), memory_gb=memory)
    return job


def _pairs(
    draw: _Draw, nodes: tuple[SmallNode, ...], jobs: tuple[SmallJob, ...]
) -> Mapping[tuple[str, str, str, int], tuple[Fraction, Fraction]]:
    """Rates of jobs that share, by kinds in random order, each pair of models in one order."""
    random = draw.random
    kinds = list(dict.fromkeys(node.kind for node in nodes))
    random.shuffle(kinds)
    found = {}
    for kind in [each for each in kinds if each != CORES]:
        shares = random.choice(((ONE,), (EIGHTH,), (HALF, Fraction(3, 4), ONE, Fraction(5, 4))))
        for gang in sorted({job.gang for job in jobs}):
            by_model = {job.model: job for job in jobs if job.gang == gang}
            for one, other in combinations_with_replacement(sorted(by_model), 2):
                if random.random() < 0.15:
                    continue
                both = []
                for model in (one, other):
                    rates = by_model[model].rates
                    alone = ONE if rates is None else rates.get(kind, Fraction(0))
                    both.append(alone * random.choice(shares))
                found[kind, one, other, gang] = (both[0], both[1])
    return found


def _failures(
    draw: _Draw, nodes: int, first: tuple[int, int, int], seed: int
) -> dict[str, tuple[object, ...] | None]:
    """More downtimes, and checkpoints; by numbers of their own, so that all else stays what it was."""
    own = Random(f"failures {' '.join(sorted(draw.features))} {seed}")
    down, begin = [first], first[2]
    for _ in range(own.choice((0, 1, 2))):
        begin += own.randint(1, 2)
        down.append((own.randrange(nodes), begin, begin + 1))
        begin += 1
    rule = None
    if not draw.features & {"restart", "copies"} and own.random() < 0.7:
        cost = own.choice((Fraction(0), EIGHTH, HALF, ONE))
        rule = own.choice((EIGHTH, HALF, ONE, Fraction(2))), cost
    return {"down": tuple(down), "checkpoints": rule}


def _quotas(
    draw: _Draw, nodes: tuple[SmallNode, ...], jobs: tuple[SmallJob, ...]
) -> tuple[tuple[int, Mapping[str, int]], ...]:
    """Quotas of the tenants, which change once; the last holds each job, or its copy on any node."""
    random = draw.random
    least = {name: max([1, *(j.gang for j in jobs if j.tenant == name)]) for name in "xy"}
    if "copies" in draw:
        least = dict.fromkeys(least, max(node.gpus for node in nodes))
    last = {name: least[name] + random.choice((0, 0, 0, 1)) for name in "xy"}
    if random.random() < 0.5:
        return ((0, last),)
    first = {name: random.randint(0, 3) for name in "xy"}
    return ((0, first), (random.randint(1, 3), last))
