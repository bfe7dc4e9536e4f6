"""Random small instances of every programme in ``shadowprice/models``, by file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.names import Names
from shadowprice.instances.utility import UtilityTable
from shadowprice.models import (
    afs,
    asrpt,
    asrpt_joint,
    bilevel,
    gandiva,
    gavel,
    hadar,
    hadare,
    interval_lp,
    pollux,
    preemptive,
    sia,
    synergy,
    time_indexed,
    tiresias,
    typed_interval_lp,
    typed_span,
)
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.models.slotted import Slotted
from support.elastic_rounds import drawn_round

Random = np.random.Generator


def slotted(jobs: int, draw: Random) -> Slotted:
    return Slotted(
        draw.integers(0, 3, jobs),
        draw.integers(1, 4, jobs),
        draw.integers(1, 3, jobs),
        draw.integers(1, 4, jobs).astype(np.float64),
        2,
        1 << 20,
        True,
    )


def of_time_indexed(jobs: int, draw: Random) -> Any:
    given = slotted(jobs, draw)
    last = int(given.release.max() + given.duration.sum())
    starts = []
    for release, duration in zip(given.release.tolist(), given.duration.tolist(), strict=True):
        slots = np.arange(release, last - duration + 1)
        kept = draw.random(len(slots)) < 0.8
        kept[-1] = True
        starts.append(slots[kept])
    span, relaxed = (bool(each) for each in draw.integers(0, 2, 2))
    return time_indexed.build(given, starts, makespan=span, relaxed=relaxed)


def of_preemptive(jobs: int, draw: Random) -> Any:
    given = slotted(jobs, draw)
    horizon = int(given.release.max() + given.duration.sum()) - int(draw.integers(0, 2))
    return preemptive.build(given, horizon, makespan=bool(draw.integers(0, 2)))


def bounds_of(draw: Random, end: float) -> Any:
    inner = np.sort(draw.uniform(0.1, end, int(draw.integers(1, 4))))
    return np.concatenate(([0.0], inner, [end + 20.0]))


def of_interval_lp(jobs: int, draw: Random) -> Any:
    release, work = draw.uniform(0, 4, jobs), draw.uniform(0.5, 3, jobs)
    weight, gpus = draw.uniform(0.5, 2, jobs), draw.integers(1, 4, jobs)
    bounds = bounds_of(draw, float(release.max() + work.sum()))
    return interval_lp.build(interval_lp.Intervals(release, work, weight, gpus, 3.0, bounds))


def of_typed_interval_lp(jobs: int, draw: Random) -> Any:
    types = int(draw.integers(1, 4))
    time = draw.uniform(0.5, 3, (jobs, types))
    time[:, 1:][draw.random((jobs, types - 1)) < 0.3] = np.inf
    release = draw.uniform(0, 4, jobs)
    finite = np.where(np.isfinite(time), time, 0.0)
    bounds = bounds_of(draw, float(release.max() + finite.max(axis=1).sum()))
    begin = np.maximum(bounds[None, :-1], release[:, None])
    room = np.maximum(bounds[None, 1:] - begin, 0.0)
    u = np.minimum(room, time.min(axis=1)[:, None])
    v = np.minimum(room, finite.max(axis=1)[:, None])
    data = typed_interval_lp.TypedIntervals(
        draw.uniform(0.5, 2, jobs),
        typed_interval_lp.use_of_types(draw.integers(1, 4, jobs), types),
        time,
        draw.uniform(3, 5, types),
        bounds,
        begin,
        np.stack([u / 2, v / 2, (v - u) / 2], axis=2),
        np.stack([np.zeros_like(u), u, v], axis=2),
    )
    return typed_interval_lp.build(data)


def of_typed_span(jobs: int, draw: Random) -> Any:
    types = int(draw.integers(1, 4))
    time = draw.uniform(0.5, 3, (jobs, types))
    time[:, 1:][draw.random((jobs, types - 1)) < 0.3] = np.inf
    use = typed_interval_lp.use_of_types(draw.integers(1, 4, jobs), types)
    return typed_span.build(use, time, draw.uniform(3, 5, types))


def of_synergy(jobs: int, draw: Random) -> Any:
    kinds = max(jobs, 1)
    if draw.integers(0, 2):
        model: Any = synergy.placement(Names(["left", "right"]), Names.numbered("kind", kinds))
        gpus = draw.integers(1, 4, kinds).astype(float)
        number = draw.integers(1, 3, kinds).astype(float)
        values = {"g": gpus, "c": 3 * gpus, "w": 10 * gpus, "n": number}
        room = np.full(2, np.ceil((gpus * number).sum() / 2 + 1))
        values |= {"G": room, "C": 3 * room, "M": 10 * room}
        for name, each in values.items():
            parameter = getattr(model, name)
            parameter.store_values(dict(zip(parameter.index_set(), each.tolist(), strict=True)))
        return model
    kind = np.sort(np.concatenate([np.arange(kinds), draw.integers(0, kinds, 2 * kinds)]))
    speed = draw.uniform(0.5, 2, len(kind))
    floor = np.array([speed[kind == k].min() for k in range(kinds)])
    data = synergy.Choices(
        draw.integers(1, 4, kinds),
        draw.integers(1, 3, kinds),
        floor,
        kind,
        draw.uniform(1, 6, len(kind)),
        draw.uniform(10, 60, len(kind)),
        speed,
        (draw.uniform(6, 12) * kinds, draw.uniform(60, 120) * kinds),
    )
    return synergy.super_server(data)


def of_gandiva(jobs: int, draw: Random) -> Any:
    relaxed = bool(draw.integers(0, 2))
    if draw.integers(0, 2):
        jobs = max(jobs, 3)
        members = [
            tuple(draw.choice(jobs, int(draw.integers(2, 4)), replace=False).tolist())
            for _ in range(int(draw.integers(1, 2 * jobs)))
        ]
        gain = tuple(draw.uniform(-1, 3, len(members)).tolist())
        return gandiva.packing(gandiva.Packings(jobs, tuple(members), gain), relaxed=relaxed)
    gang = draw.integers(1, 3, jobs)
    servers = jobs
    node = np.where(draw.random(jobs) < 0.7, np.arange(jobs), -1)
    homes = gandiva.Homes((4,) * servers, tuple(gang.tolist()), tuple(node.tolist()))
    share = gandiva.Fraction(3, 4) if draw.integers(0, 2) else None
    return gandiva.defragmentation(homes, fragmented=share, relaxed=relaxed)


def graph_of(draw: Random, stages: int) -> JobGraph:
    made = tuple(
        Stage(f"s{k}", int(draw.integers(1, 3)), 0.5, 0.25, float(draw.choice([0.0, 1e9, 4e9])))
        for k in range(stages)
    )
    links = tuple(Link(k, k + 1, float(draw.choice([0.0, 1e9, 4e9]))) for k in range(stages - 1))
    return JobGraph("made", made, links)


def network_of(draw: Random) -> Network:
    return Network(100e9, 10e9, 2, str(draw.choice(["per-gpu", "per-job"])))


def of_asrpt(jobs: int, draw: Random) -> Any:
    graph = graph_of(draw, int(draw.integers(1, 4)))
    nodes = 1 + graph.gpus // 2
    free = np.sort(draw.integers(2, 4, nodes))[::-1]
    given = asrpt.PlacementData(graph, tuple(free.tolist()), network_of(draw))
    one = asrpt.least_time if draw.integers(0, 2) else asrpt.least_cut
    return one(given, interchangeable=bool(draw.integers(0, 2)))


def of_asrpt_joint(jobs: int, draw: Random) -> Any:
    if draw.integers(0, 2):
        return asrpt_joint.one_machine(slotted(min(jobs, 3), draw))
    graphs = tuple(graph_of(draw, int(draw.integers(1, 3))) for _ in range(min(jobs, 2)))
    iterations = tuple(draw.integers(1, 3, len(graphs)).tolist())
    release = tuple(draw.integers(0, 2, len(graphs)).tolist())
    given = asrpt_joint.Jobs(graphs, iterations, release, (2, 2), network_of(draw), 1.0, 7)
    return asrpt_joint.build(given)


def of_bilevel(jobs: int, draw: Random) -> Any:
    rule = bilevel.RULES[str(draw.choice(sorted(bilevel.RULES)))]
    arrival = int(draw.integers(0, 2))
    limits = bilevel.InstanceLimits(2, 2, arrival, 2, 2)
    ratio = (int(draw.integers(1, 4)), int(draw.integers(1, 4)))
    return bilevel.build(rule, limits, ratio, flow=bool(draw.integers(0, 2)))


def of_tiresias(jobs: int, draw: Random) -> Any:
    free = draw.integers(0, 4, max(jobs, 1))
    free[0] += 1
    job = tiresias.ServerJob(
        int(draw.integers(1, free.sum() + 1)),
        tuple(draw.uniform(1, 9, int(draw.integers(1, 3))).round(1).tolist()),
        tuple(free.tolist()),
        tuple(draw.uniform(0, 9, len(free)).round(1).tolist()),
    )
    return tiresias.build(job)


def of_gavel(jobs: int, draw: Random) -> Any:
    draws = (("v100",), ("k80", "k80-spread")) if draw.integers(0, 2) else (("v100",), ("k80",))
    types = tuple(name for each in draws for name in each)
    pairs = [(a, b) for a in range(jobs) for b in range(a) if draw.random() < 0.4]
    first, second = (np.array([pair[end] for pair in pairs], dtype=np.int64) for end in (0, 1))
    shape = gavel.Shape(Names.numbered("job", jobs), types, draws, first, second)
    makers = [gavel.max_min, gavel.max_total, gavel.min_cost, gavel.most_slos]
    model: Any = makers[int(draw.integers(0, len(makers)))](shape)
    scale = {"s": (1, 3), "W": (2, 4), "f": (0.0, 0.05), "r": (0.5, 2)}
    for param in model.component_objects(gavel.pyo.Param):
        low, high = scale.get(param.local_name, (0.5, 2))
        for key in param.index_set():
            param[key] = float(draw.uniform(low, high))
    return model


def of_hadar(jobs: int, draw: Random) -> Any:
    rounds, types = int(draw.integers(1, 4)), 2
    seconds = draw.uniform(0.5, 2.5, (jobs, types))
    seconds[:, 1:][draw.random((jobs, 1)) < 0.3] = np.inf
    falling = np.sort(draw.uniform(0, 5, (jobs, rounds)))[:, ::-1]
    utility = UtilityTable(np.column_stack([falling, np.zeros(jobs)]))
    gang, first = draw.integers(1, 3, jobs), draw.integers(0, 2, jobs)
    capacity = np.array([2, 2])
    given = RoundJobs(gang, first, seconds, capacity, utility)
    which = int(draw.integers(0, 3))
    if which == 0:
        return hadar.time_indexed(given, relaxed=bool(draw.integers(0, 2)))
    names, pools = given.id.tolist(), dict(zip(given.gpu_types, capacity.tolist(), strict=True))
    schedules = [
        hadar.GpuSchedule(
            names[int(draw.integers(0, jobs))],
            float(draw.uniform(0, 3)),
            tuple((t, given.gpu_types[int(draw.integers(0, types))], 1) for t in range(rounds)),
        )
        for _ in range(2 * jobs)
    ]
    if which == 1:
        return hadar.schedule_form(schedules, pools, names, rounds)
    return hadar.dual(schedules, pools, names, rounds)


def of_pollux(jobs: int, draw: Random) -> Any:
    return pollux.build(drawn_round(jobs, 2, draw, avoid=bool(draw.integers(0, 2))))


def of_hadare(jobs: int, draw: Random) -> Any:
    jobs = min(jobs, 2)
    alone = draw.uniform(0.5, 2.0, (jobs, 2))
    alone[draw.random((jobs, 2)) < 0.2] = np.inf
    alone[:, 0] = np.minimum(alone[:, 0], 2.0)
    charges = draw.choice([0.0, 0.1], 2)
    given = hadare.CopiesInRounds(
        draw.integers(0, 2, jobs), alone, draw.uniform(0.5, 2.0, jobs), 2, *charges.tolist()
    )
    return hadare.build(given, 2 * jobs + 2, makespan=bool(draw.integers(0, 2)))


def of_sia(jobs: int, draw: Random) -> Any:
    job = np.repeat(np.arange(jobs), 3)
    both = np.concatenate([draw.choice(6, 3, replace=False) for _ in range(jobs)])
    pool, gpus = both // 3, both % 3 + 1
    return sia.build(
        sia.JobConfigurations(
            job, pool, gpus, draw.uniform(0.3, 1.2, 3 * jobs), np.array([3, 2]), jobs
        )
    )


def of_afs(jobs: int, draw: Random) -> Any:
    speed = np.cumsum(draw.uniform(0.1, 1.0, (jobs, 4)), axis=1)
    speed[:, 0] = 0.0
    return afs.build(speed, 3)


INSTANCES: dict[str, Callable[[int, Random], Any]] = {
    "afs": of_afs,
    "asrpt": of_asrpt,
    "asrpt_joint": of_asrpt_joint,
    "bilevel": of_bilevel,
    "gandiva": of_gandiva,
    "gavel": of_gavel,
    "hadar": of_hadar,
    "hadare": of_hadare,
    "interval_lp": of_interval_lp,
    "pollux": of_pollux,
    "preemptive": of_preemptive,
    "sia": of_sia,
    "synergy": of_synergy,
    "time_indexed": of_time_indexed,
    "tiresias": of_tiresias,
    "typed_interval_lp": of_typed_interval_lp,
    "typed_span": of_typed_span,
}
"""Makes a programme of about so many jobs, with all its data, by name of the file."""

NOT_TRACED = {"hadar": "the schedule form and its dual are over columns made one by one"}
"""Files some of whose rules are read row by row, and why."""
