"""Instances of the models for ``benchmarks/models.py``, each with its arrays written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shadowprice.instances.graphs.iteration_time import Network, flush_factor
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.names import Names
from shadowprice.models import (
    asrpt,
    bilevel,
    gandiva,
    interval_lp,
    preemptive,
    synergy,
    time_indexed,
    tiresias,
    typed_interval_lp,
)
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.programs.linear_program import LinearProgram

Numbers = NDArray[np.float64]
Whole = NDArray[np.int64]
INFINITY = float("inf")


class Rows:
    """Collects entries and bounds of rows, as somebody would who writes arrays by hand."""

    def __init__(self) -> None:
        self.rows = 0
        self._row: list[Whole] = []
        self._column: list[Whole] = []
        self._value: list[Numbers] = []
        self._lower: list[Numbers] = []
        self._upper: list[Numbers] = []

    def add(self, row: Any, column: Any, value: Any) -> None:
        """Entries of rows counted from the next one on."""
        row, column, value = np.broadcast_arrays(row, column, value)
        self._row.append(row.ravel() + self.rows)
        self._column.append(column.ravel())
        self._value.append(value.ravel())

    def close(self, count: int, lower: Any, upper: Any) -> None:
        """So many rows, with their bounds."""
        self._lower.append(np.broadcast_to(np.asarray(lower, dtype=np.float64), count))
        self._upper.append(np.broadcast_to(np.asarray(upper, dtype=np.float64), count))
        self.rows += count

    def program(
        self, cost: Numbers, lower: Any, upper: Any, integer: Any, *, maximise: bool = False
    ) -> LinearProgram:
        """The programme."""
        n = len(cost)
        places = (np.concatenate(self._row), np.concatenate(self._column))
        matrix = csr_array(
            (np.concatenate(self._value).astype(np.float64), places), shape=(self.rows, n)
        )
        return LinearProgram(
            cost,
            0.0,
            maximise,
            np.broadcast_to(np.asarray(lower, dtype=np.float64), n).copy(),
            np.broadcast_to(np.asarray(upper, dtype=np.float64), n).copy(),
            np.concatenate(self._lower),
            np.concatenate(self._upper),
            matrix.indptr.astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
            np.broadcast_to(np.asarray(integer), n).copy(),
        )


@dataclass(frozen=True)
class Problem:
    """One instance of a model.

    Parameters
    ----------
    size : str
        In words.
    build : callable
        Makes the model.
    by_hand : callable
        Makes the same programme as arrays, columns and rows in the model's order.
    data : dict
        Values of Params that the model is built without.
    crossover : bool
        Whether HiGHS's interior point is to end with a basis.
    """

    size: str
    build: Callable[[], Any]
    by_hand: Callable[[], LinearProgram]
    data: dict[str, Any] = field(default_factory=dict)
    crossover: bool = True


def runs(counts: Whole) -> tuple[Whole, Whole]:
    """Entry of each of ``counts`` numbers an entry, and the numbers from 0 on."""
    entry = np.repeat(np.arange(len(counts)), counts)
    return entry, np.arange(len(entry)) - (np.cumsum(counts) - counts)[entry]


# Models, in the order of their files.


def slotted(jobs: int, seed: int) -> Slotted:
    """Gangs of 1 to 8 GPUs that arrive within the time that they keep the pool busy."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1, 2, 4, 8], jobs, p=[0.5, 0.2, 0.2, 0.1])
    duration = rng.integers(1, 9, jobs)
    capacity = max(int(jobs // 4), 8)
    latest = max(int((gpus * duration).sum() / capacity), 1)
    return Slotted(
        np.sort(rng.integers(0, latest, jobs)),
        duration,
        gpus,
        rng.integers(1, 6, jobs).astype(np.float64),
        capacity,
        1 << 20,
        True,
    )


def horizon_of(jobs: Slotted) -> int:
    """Slots by which a schedule that wastes little has ended."""
    area = int((jobs.gpus * jobs.duration).sum() / jobs.capacity)
    return int(jobs.release.max()) + area // 4 + 16


def of_time_indexed(jobs: int, seed: int) -> Problem:
    given = slotted(jobs, seed)
    horizon = horizon_of(given)
    starts = [
        np.arange(r, horizon - p + 1)
        for r, p in zip(given.release.tolist(), given.duration.tolist(), strict=True)
    ]

    def by_hand() -> LinearProgram:
        counts = horizon - given.duration - given.release + 1
        job, start = runs(counts)
        start += given.release[job]
        run, later = runs(given.duration[job])
        slot = start[run] + later
        used = np.unique(slot)
        rows, column = Rows(), np.arange(len(job))
        rows.add(job, column, 1.0)
        rows.close(jobs, 1.0, 1.0)
        rows.add(np.searchsorted(used, slot), run, given.gpus[job[run]])
        rows.close(len(used), -INFINITY, given.capacity)
        cost = given.weight[job] * (start + given.duration[job])
        return rows.program(cost, 0.0, 1.0, False)

    size = f"{jobs} jobs, {horizon} slots"
    return Problem(
        size, lambda: time_indexed.build(given, starts, relaxed=True), by_hand, crossover=False
    )


def intervals(jobs: int, seed: int, count: int) -> interval_lp.Intervals:
    rng = np.random.default_rng(seed)
    work, gpus = rng.lognormal(1.0, 1.0, jobs), rng.choice([1, 2, 4, 8], jobs)
    capacity = max(jobs // 4, 8)
    release = np.sort(rng.uniform(0, (work * gpus).sum() / capacity, jobs))
    release -= release[0]
    end = release[-1] + work.sum()
    bounds = np.append(np.linspace(0, release[-1] + 2 * work.max(), count), end)
    return interval_lp.Intervals(
        release, work, rng.uniform(1, 5, jobs), gpus, float(capacity), bounds
    )


def of_interval_lp(jobs: int, seed: int) -> Problem:
    data = intervals(jobs, seed, 40)

    def by_hand() -> LinearProgram:
        begin = np.maximum(data.bounds[None, :-1], data.release[:, None])
        room = data.bounds[None, 1:] - begin
        job, interval = np.nonzero(room > 0)
        most = np.minimum(room, data.work[:, None])[job, interval]
        rows = Rows()
        j, k = np.repeat(job, 2), np.repeat(interval, 2)
        column = np.arange(len(j))
        rows.add(j, column, 1.0)
        rows.close(jobs, data.work, data.work)
        used, row = np.unique(k, return_inverse=True)
        rows.add(row, column, data.gpus[j])
        rows.close(len(used), -INFINITY, data.capacity * np.diff(data.bounds)[used])
        price = (data.weight / data.work)[job]
        when = begin[job, interval]
        cost = np.column_stack([price * when, price * (when + most)]).ravel()
        return rows.program(cost, 0.0, np.repeat(most / 2, 2), False)

    size = f"{jobs} jobs, {len(data.bounds) - 1} intervals"
    return Problem(size, lambda: interval_lp.build(data), by_hand, crossover=False)


def of_typed_interval_lp(jobs: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    plain = intervals(jobs, seed, 20)
    time_ = plain.work[:, None] * rng.uniform(1.0, 4.0, (jobs, 3))
    time_[rng.random((jobs, 3)) < 0.2] = np.inf
    time_[:, 2] = plain.work
    bounds = plain.bounds
    begin = np.maximum(bounds[None, :-1], plain.release[:, None])
    room = np.maximum(bounds[None, 1:] - begin, 0.0)
    u = np.minimum(room, time_.min(axis=1)[:, None])
    v = np.minimum(room, np.where(np.isfinite(time_), time_, 0).max(axis=1)[:, None])
    size = np.stack([u / 2, v / 2, (v - u) / 2], axis=2)
    charge = np.stack([np.zeros_like(u), u, v], axis=2)
    capacity = np.full(3, plain.capacity / 3)
    data = typed_interval_lp.TypedIntervals(
        plain.weight,
        typed_interval_lp.use_of_types(plain.gpus, 3),
        time_,
        capacity,
        bounds,
        begin,
        size,
        charge,
    )

    def by_hand() -> LinearProgram:
        able = np.isfinite(time_)
        j, k, part = np.nonzero(size > 0)
        types = able.sum(axis=1)
        kind = np.nonzero(able)[1]
        piece, nth = runs(types[j])
        r = kind[(np.cumsum(types) - types)[j[piece]] + nth]
        rows, column = Rows(), np.arange(len(piece))
        rate = 1.0 / time_[j[piece], r]
        rows.add(j[piece], column, rate)
        rows.close(jobs, 1.0, 1.0)
        used, row = np.unique(k[piece] * 3 + r, return_inverse=True)
        rows.add(row, column, plain.gpus[j[piece]])
        rows.close(len(used), -INFINITY, capacity[used % 3] * np.diff(bounds)[used // 3])
        several = np.flatnonzero(types[j] > 1)
        row_of = np.full(len(j), -1)
        row_of[several] = np.arange(len(several))
        there = row_of[piece] >= 0
        rows.add(row_of[piece][there], column[there], 1.0)
        rows.close(len(several), -INFINITY, size[j, k, part][several])
        cost = (plain.weight[j] * (begin[j, k] + charge[j, k, part]))[piece] * rate
        return rows.program(cost, 0.0, size[j, k, part][piece], False)

    words = f"{jobs} jobs, {len(bounds) - 1} intervals, 3 types"
    return Problem(words, lambda: typed_interval_lp.build(data), by_hand, crossover=False)


def of_preemptive(jobs: int, seed: int) -> Problem:
    given = slotted(jobs, seed)
    horizon = horizon_of(given)

    def by_hand() -> LinearProgram:
        job, slot = runs(horizon - given.release)
        slot += given.release[job]
        entries = len(job)
        rows, column = Rows(), np.arange(entries)
        rows.add(job, column, 1.0)
        rows.close(jobs, given.duration, given.duration)
        used, row = np.unique(slot, return_inverse=True)
        rows.add(row, column, given.gpus[job])
        rows.close(len(used), -INFINITY, given.capacity)
        # C_j >= (t + 1) y_jt, everything on the left as in the model.
        rows.add(column, column, (slot + 1.0))
        rows.add(column, entries + job, -1.0)
        rows.close(entries, -INFINITY, 0.0)
        rows.add(job[slot > 0], column[slot > 0], slot[slot > 0])
        rows.add(np.arange(jobs), entries + np.arange(jobs), -given.duration)
        rows.close(jobs, -INFINITY, -given.duration * (given.duration + 1) / 2)
        cost = np.concatenate([np.zeros(entries), given.weight])
        lower = np.concatenate([np.zeros(entries), given.release + given.duration])
        upper = np.concatenate([np.ones(entries), np.full(jobs, horizon)])
        return rows.program(cost, lower, upper, True)

    size = f"{jobs} jobs, {horizon} slots"
    return Problem(size, lambda: preemptive.build(given, horizon), by_hand)


def of_synergy_choices(jobs: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    points = 24
    kind = np.repeat(np.arange(jobs), points)
    cpus = np.tile(np.arange(1.0, points + 1), jobs)
    memory = rng.uniform(10, 500, jobs * points)
    speed = 1 + np.log(cpus) * rng.uniform(0, 0.3, jobs)[kind]
    gpus = rng.choice([1, 2, 4, 8], jobs)
    number = np.ones(jobs, dtype=np.int64)
    total = (3.0 * gpus.sum(), 400.0 * gpus.sum())
    floor = speed.reshape(jobs, points)[:, 2]
    data = synergy.Choices(number, gpus, floor, kind, cpus, memory, speed, total)

    def by_hand() -> LinearProgram:
        rows, column = Rows(), np.arange(len(kind))
        rows.add(0, column, cpus * gpus[kind])
        rows.close(1, -INFINITY, total[0])
        rows.add(0, column, memory * gpus[kind])
        rows.close(1, -INFINITY, total[1])
        rows.add(kind, column, 1.0)
        rows.close(jobs, number, number)
        rows.add(kind, column, speed)
        rows.close(jobs, number * floor, INFINITY)
        upper = np.where(speed >= floor[kind], number[kind], 0)
        return rows.program(speed, 0.0, upper, True, maximise=True)

    return Problem(f"{jobs} jobs, {points} points", lambda: synergy.super_server(data), by_hand)


def of_synergy_placement(jobs: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    servers = max(jobs // 8, 2)
    gpus = rng.choice([1.0, 2.0, 4.0, 8.0], jobs)
    number = rng.integers(1, 3, jobs).astype(np.float64)
    room = np.full(servers, np.ceil((gpus * number).sum() / servers * 1.2))
    data = {"g": gpus, "c": 3 * gpus, "w": 60 * gpus, "n": number}
    data |= {"G": room, "C": 3 * room, "M": 60 * room}
    names = Names.numbered("server", servers), Names.numbered("kind", jobs)

    def by_hand() -> LinearProgram:
        server, kind = (each.ravel() for each in np.indices((servers, jobs)))
        rows, column = Rows(), np.arange(servers * jobs)
        for per_job, per_server in (("g", "G"), ("c", "C"), ("w", "M")):
            rows.add(server, column, data[per_job][kind])
            rows.close(servers, -INFINITY, data[per_server])
        rows.add(kind, column, 1.0)
        rows.close(jobs, number, number)
        return rows.program(np.zeros(servers * jobs), 0.0, INFINITY, False)

    size = f"{jobs} kinds, {servers} servers"
    return Problem(size, lambda: synergy.placement(*names), by_hand, data)


def of_gandiva_packing(jobs: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    first = np.repeat(np.arange(jobs), 8)
    second = (first + rng.integers(1, jobs, 8 * jobs)) % jobs
    gain = rng.uniform(-0.2, 1.0, 8 * jobs)
    pairs = gandiva.Packings(
        jobs, tuple(zip(first.tolist(), second.tolist(), strict=True)), tuple(gain.tolist())
    )

    def by_hand() -> LinearProgram:
        members = np.array(pairs.members).ravel()
        used, row = np.unique(members, return_inverse=True)
        rows, column = Rows(), np.repeat(np.arange(8 * jobs), 2)
        rows.add(row, column, 1.0)
        rows.close(len(used), -INFINITY, 1.0)
        return rows.program(np.array(pairs.gain), 0.0, 1.0, True, maximise=True)

    return Problem(f"{jobs} jobs, {8 * jobs} pairs", lambda: gandiva.packing(pairs), by_hand)


def of_gandiva_homes(jobs: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    gang = rng.choice([1, 2, 4], jobs)
    servers = max(int(gang.sum() // 6), 2)
    node, load = np.full(jobs, -1), np.zeros(servers)
    for job in range(jobs):
        where = int(rng.integers(servers))
        if load[where] + gang[job] <= 8:
            node[job], load[where] = where, load[where] + gang[job]
    homes = gandiva.Homes((8,) * servers, tuple(gang.tolist()), tuple(node.tolist()))

    def by_hand() -> LinearProgram:
        job, server = (each.ravel() for each in np.indices((jobs, servers)))
        rows, column = Rows(), np.arange(jobs * servers)
        rows.add(job, column, 1.0)
        rows.close(jobs, 1.0, 1.0)
        rows.add(server, column, np.array(homes.gang)[job])
        rows.close(servers, -INFINITY, np.array(homes.size))
        settled = np.flatnonzero(node >= 0)
        cost = np.zeros(jobs * servers)
        cost[settled * servers + node[settled]] = -1.0
        return rows.program(cost, 0.0, 1.0, True)

    size = f"{jobs} jobs, {servers} servers"
    return Problem(size, lambda: gandiva.defragmentation(homes), by_hand)


def graph_of(stages: int, seed: int) -> JobGraph:
    rng = np.random.default_rng(seed)
    made = tuple(
        Stage(f"s{k}", int(rng.integers(1, 5)), 0.1, 0.2, float(rng.uniform(0, 4e9)))
        for k in range(stages)
    )
    links = tuple(Link(k, k + 1, float(rng.uniform(1e8, 4e9))) for k in range(stages - 1))
    return JobGraph("made", made, links)


def of_asrpt(gpus: int, seed: int) -> Problem:
    """One job of about so many GPUs, on nodes that have twice as many."""
    graph = graph_of(max(gpus // 3, 2), seed)
    network = Network(100e9, 10e9, 8, "per-gpu")
    given = asrpt.PlacementData(graph, (8,) * max(gpus // 4, 2), network)

    def by_hand() -> LinearProgram:
        return placement_by_hand(given)

    size = f"{graph.gpus} GPUs, {len(graph.stages)} stages, {len(given.free)} nodes"
    return Problem(size, lambda: asrpt.least_time(given), by_hand)


def placement_by_hand(given: asrpt.PlacementData) -> LinearProgram:
    """Columns x, y, u, alpha; rows in the model's order, for GPUs that share no NIC."""
    k, free = np.array(given.replicas), np.array(given.free)
    stages, nodes = len(k), len(free)
    s, i = (each.ravel() for each in np.indices((stages, nodes)))
    most = np.minimum.outer(k, free).ravel()
    n, x = stages * nodes, np.arange(stages * nodes)
    y, u = x + n, x + 2 * n
    rows, two = Rows(), 2 * x
    rows.add(s, x, 1.0)
    rows.close(stages, k, k)
    rows.add(i, x, 1.0)
    rows.close(nodes, -INFINITY, free)
    rows.add(two, y, 1.0)
    rows.add(two, x, -1.0)
    rows.add(two + 1, x, 1.0)
    rows.add(two + 1, y, -most)
    rows.close(2 * n, -INFINITY, 0.0)
    same = np.flatnonzero(np.diff(free) == 0) + 1
    rows.add(np.arange(len(same)), same, 1.0)
    rows.add(np.arange(len(same)), same - 1, -1.0)
    rows.close(len(same), -INFINITY, 0.0)
    rows.add(two, u, k[s])
    rows.add(two, x, -1.0)
    rows.add(two + 1, x, 1.0)
    rows.add(two + 1, u, -1.0)
    rows.close(2 * n, -INFINITY, np.column_stack([np.zeros(n), k[s] - 1]).ravel())
    slowest_by_hand(rows, given)
    cost = np.zeros(3 * n + 1)
    cost[-1] = 1.0
    upper = np.concatenate([most, np.ones(2 * n), [INFINITY]])
    return rows.program(cost, 0.0, upper, np.arange(3 * n + 1) < 3 * n)


def slowest_by_hand(rows: Rows, given: asrpt.PlacementData) -> None:
    """Rows (slowest): everything on the left of phi (...) <= alpha."""
    k, nodes = np.array(given.replicas), len(given.free)
    stages = len(k)
    n = stages * nodes
    x, s = np.arange(n), np.repeat(np.arange(stages), nodes)
    intra, nic = given.network.intra_bytes_per_s, given.network.nic_bytes_per_s
    rate = nic / given.network.gpus_per_node
    ring = np.array(given.graph.ring_bytes)
    compute = np.array([stage.forward_s + stage.backward_s for stage in given.graph.stages])
    sent = np.zeros((stages, stages))
    for a, row in enumerate(given.sent):
        for b, amount in row.items():
            sent[a, b] = amount
    phi = flush_factor(given.graph) / given.unit_s
    spread = 2 * sent.sum(axis=1) * (max(1 / rate, 1 / intra) - min(1 / rate, 1 / intra))
    rows.add(
        x[:, None],
        2 * n + s[:, None] * nodes + np.arange(nodes),
        (phi * (ring / intra - ring / nic))[s][:, None],
    )
    a, b = np.nonzero(sent)
    each, node = (part.ravel() for part in np.indices((len(a), nodes)))
    inside = phi * 2 * sent[a, b] / k[b] * (1 / intra - 1 / rate)
    rows.add(a[each] * nodes + node, b[each] * nodes + node, inside[each])
    rows.add(x, x + n, phi * spread[s])
    rows.add(x, 3 * n, -1.0)
    fixed = compute + ring / nic + 2 * sent.sum(axis=1) / rate - spread
    rows.close(n, -INFINITY, -phi * fixed[s])


def of_tiresias(nodes: int, seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    shards = tuple(rng.uniform(1, 100, 16).tolist())
    free = tuple(rng.integers(0, 9, nodes).tolist())
    traffic = tuple(rng.uniform(0, 50, nodes).tolist())
    job = tiresias.ServerJob(max(sum(free) // 2, 1), shards, free, traffic)

    def by_hand() -> LinearProgram:
        s, size, room = np.array(shards), sum(shards), np.array(free)
        j, i = (each.ravel() for each in np.indices((len(s), nodes)))
        w, p = np.arange(nodes), nodes + np.arange(len(s) * nodes)
        y, t = p + len(p), nodes + 2 * len(p)
        rows, pair = Rows(), np.arange(len(p))
        rows.add(w, w, size)
        rows.add(i, p, s[j] * job.workers)
        rows.add(i, y, -2 * s[j])
        rows.add(w, t, -1.0)
        rows.close(nodes, -INFINITY, -np.array(traffic))
        rows.add(w, w, 1.0)
        rows.close(nodes, -INFINITY, room)
        rows.add(0, w, 1.0)
        rows.close(1, job.workers, job.workers)
        rows.add(j, p, 1.0)
        rows.close(len(s), 1.0, 1.0)
        rows.add(pair, y, 1.0)
        rows.add(pair, w[i], -1.0)
        rows.close(len(p), -INFINITY, 0.0)
        rows.add(pair, y, 1.0)
        rows.add(pair[room[i] > 0], p[room[i] > 0], -room[i][room[i] > 0])
        rows.close(len(p), -INFINITY, 0.0)
        cost = np.zeros(t + 1)
        cost[-1] = 1.0
        upper = np.full(t + 1, INFINITY)
        upper[p] = 1.0
        return rows.program(cost, 0.0, upper, np.arange(t + 1) < nodes + len(p))

    return Problem(f"{nodes} nodes, 16 servers", lambda: tiresias.build(job), by_hand)


def of_bilevel(jobs: int, seed: int) -> Problem:
    limits = bilevel.InstanceLimits(jobs, 4, seed % 2 + 2, 4, 4)
    rule = bilevel.RULES["fifo-skip"]

    def by_hand() -> LinearProgram:
        return worst_list_by_hand(limits, 3, 2)

    size = f"{jobs} jobs, {limits.horizon} slots"
    return Problem(size, lambda: bilevel.build(rule, limits, (3, 2), flow=False), by_hand)


def arrivals_by_hand(rows: Rows, come: Whole) -> None:
    """Rows (arrives) and (in_order), for columns a of shape (jobs, arrivals)."""
    jobs, arrivals = come.shape
    rows.add(0, come[0, 0], 1.0)
    rows.add(np.arange(1, jobs)[:, None], come[1:], 1.0)
    rows.close(jobs, 1.0, 1.0)
    rows.add(np.arange(arrivals - 1), come[0, 1:], 1.0)
    one, until, r = np.nonzero(np.tril(np.ones((arrivals, arrivals)))[None].repeat(jobs - 1, 0))
    row = arrivals - 1 + one * arrivals + until
    rows.add(row, come[one + 1, r], 1.0)
    rows.add(row, come[one, r], -1.0)
    first = np.zeros(arrivals - 1)
    rows.close(
        jobs * arrivals - 1,
        np.concatenate([first, np.full((jobs - 1) * arrivals, -INFINITY)]),
        0.0,
    )


def worst_list_by_hand(limits: bilevel.InstanceLimits, a: int, b: int) -> LinearProgram:
    """Columns x, y, a, h; rows in the model's order, for a policy that nobody blocks."""
    jobs, slots, lengths, gangs = limits.jobs, limits.horizon, limits.max_work, limits.widest
    arrivals, gpus = limits.max_arrival + 1, limits.gpus
    shape = (jobs, slots, lengths, gangs)
    n = int(np.prod(shape))
    x = np.arange(n).reshape(shape)
    y, come = x + n, 2 * n + np.arange(jobs * arrivals).reshape(jobs, arrivals)
    h = 2 * n + jobs * arrivals + np.arange(jobs * slots).reshape(jobs, slots)
    columns = 2 * n + jobs * arrivals + jobs * slots
    j, t, p, g = (each.ravel() for each in np.indices(shape))
    rows = Rows()
    arrivals_by_hand(rows, come)
    rows.add(j, x.ravel(), 1.0)
    rows.close(jobs, 1.0, 1.0)
    same = (j * lengths + p) * gangs + g
    rows.add(same, x.ravel(), 1.0)
    rows.add(same, y.ravel(), -1.0)
    rows.close(jobs * lengths * gangs, 0.0, 0.0)

    def started(z: Whole, sign: float) -> None:
        entry, later = runs(slots - t)
        rows.add(j[entry] * slots + t[entry] + later, z.ravel()[entry], sign)

    def arrived(sign: float) -> None:
        one, late, r = (each.ravel() for each in np.indices((jobs, slots, arrivals)))
        there = r <= late
        rows.add((one * slots + late)[there], come[one, r][there], sign)

    # A job that starts in slot t with length p + 1 holds its GPUs in t, ..., t + p.
    held, later = runs(np.minimum(p + 1, slots - t))
    for z in (x, y):
        started(z, 1.0)
        arrived(-1.0)
        rows.close(jobs * slots, -INFINITY, 0.0)
        rows.add(t[held] + later, z.ravel()[held], g[held] + 1)
        rows.close(slots, -INFINITY, gpus)
    arrived(1.0)
    started(x, -1.0)
    rows.add(np.arange(jobs * slots), h.ravel(), -1.0)
    rows.close(jobs * slots, -INFINITY, 0.0)
    for other in range(jobs):
        rows.add(other * slots + t[held] + later, x.ravel()[held], -(g[held] + 1.0))
    behind, by = np.triu_indices(jobs, 1)[::-1]
    mine = np.arange(n).reshape(shape)[behind].reshape(len(behind), -1)
    rows.add(by[:, None] * slots + t[mine], x.ravel()[mine], g[mine] + 1.0)
    entry = np.repeat(np.arange(n), slots)
    rows.add(j[entry] * slots + np.tile(np.arange(slots), n), x.ravel()[entry], -(g[entry] + 1.0))
    rows.add(np.arange(jobs * slots), h.ravel(), gpus + 1.0)
    rows.close(jobs * slots, -INFINITY, 0.0)
    when = (t + p + 1).astype(np.float64)
    rest = np.zeros(columns - 2 * n)
    return rows.program(np.concatenate([b * when, -a * when, rest]), 0.0, 1.0, True, maximise=True)


PROBLEMS: dict[str, tuple[Callable[[int, int], Problem], int, int]] = {
    "time_indexed": (of_time_indexed, 128, 512),
    "interval_lp": (of_interval_lp, 128, 512),
    "typed_interval_lp": (of_typed_interval_lp, 128, 512),
    "preemptive": (of_preemptive, 128, 512),
    "synergy, stage 1": (of_synergy_choices, 128, 512),
    "synergy, stage 2": (of_synergy_placement, 128, 512),
    "gandiva, packing": (of_gandiva_packing, 128, 512),
    "gandiva, homes": (of_gandiva_homes, 128, 512),
    "asrpt": (of_asrpt, 32, 128),
    "bilevel": (of_bilevel, 4, 8),
    "tiresias": (of_tiresias, 128, 512),
}
"""Makes an instance from a size and a seed; the sizes of quick and of full runs."""
