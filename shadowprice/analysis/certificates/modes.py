"""Modes of jobs as a certificate has them, for the bounds of LB-mode: of nodes, pairs, CPUs and memory, GPU types.

What the solvers know of modes (:mod:`shadowprice.solvers.offline.modes`) proposes prices. Their bound is evaluated on
modes made here, from the ticks, thousandths and sorts that records have: a job's times in them are those that the
program which checks computes, to the tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.demands import (
    WHOLE_GPU,
    beside_sorts,
    may_grow,
    on_one_node_ticks,
    sorts,
    speeds_by_width,
    spread_ticks,
    types_alone,
    widths_and_ticks,
)
from shadowprice.analysis.certificates.found import Found
from shadowprice.analysis.certificates.records import profile_cells, text_of
from shadowprice.errors import SolverError
from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.conditions import fits_a_node
from shadowprice.proofs import run_speed
from shadowprice.solvers.offline.modes.amounts import MOST_POINTS
from shadowprice.solvers.offline.modes.families import AMOUNTS, NODES, PAIRS
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, JobModes, Modes
from shadowprice.solvers.offline.modes.nodes import KNOWS as NODE_KNOWS
from shadowprice.solvers.offline.modes.nodes import node_kinds, node_modes
from shadowprice.solvers.offline.modes.pairs import KNOWS as PAIR_KNOWS
from shadowprice.solvers.offline.modes.pairs import equal_parts, pair_modes, raised
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    best_prices,
    best_span_prices,
    busy_price_ticks,
    fluid_price_ticks,
    span_ticks,
)
from shadowprice.solvers.offline.typed_bound import (
    TypedJobs,
    TypedPrices,
    typed_bound,
    typed_prices,
    work_values,
)

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # only restrict
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # are GPUs of a type
        Feature.AMOUNTS,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

Record = dict[str, Any]
Point = tuple[float, int, int, int]
"""Speed, GPUs, and thousandths of CPUs and memory."""


@dataclass(frozen=True, eq=False)
class WrittenModes:
    """Modes of a certificate.

    Parameters
    ----------
    subject : str
        What tells the modes apart, as names of bounds have it; empty for GPU types.
    jobs : Modes
        As the certificate has them.
    proposes : Modes
        Those of the solvers, at whose prices the bound is evaluated.
    source : tuple of int
        Of every resource of ``jobs`` the one of ``proposes`` that has its price.
    fields : dict
        Further fields of the record: rows of resources.
    consolidated : bool
        Whether they are of schedules alone that place every gang on as few nodes as it fits on.
    """

    subject: str
    jobs: Modes
    proposes: Modes
    source: tuple[int, ...]
    fields: Record
    consolidated: bool = False

    def name(self, kind: str) -> str:
        """Name of a bound of these modes."""
        return f"{kind}-of-{self.subject}" if self.subject else kind


def written_modes(instance: Instance, *, pairs: bool, consolidated: bool) -> Iterator[WrittenModes]:
    """All modes that say something of the schedules of a certificate; none of features that are not in ``KNOWS``.

    Parameters
    ----------
    pairs : bool
        Whether two jobs may share GPUs; else whatever rates the instance has for that are none of its.
    consolidated : bool
        Whether modes of consolidated schedules may be among them.
    """
    if missing(instance, KNOWS):
        return
    if pairs and missing(instance, PAIR_KNOWS):
        return
    if pairs:
        found = pair_modes(instance)
        types = len(run_speed.gpu_types(instance.cluster)[0])
        if found is not None and (types > 1 or not equal_parts(found, instance.workload.gpus)):
            yield _of_pairs(instance, found)
        return
    alone = replace(instance, pair_throughputs=None)
    # Of graphs run times depend on more than a type.
    by_amounts = Feature.PROFILES in alone.features and Feature.GRAPHS not in alone.features
    if by_amounts or may_grow(alone).any():
        yield _of_amounts(alone)
    if missing(alone, NODE_KNOWS):
        return
    for few in (False, True)[: 1 + consolidated]:
        nodes = node_modes(alone, consolidated=few)
        if nodes is not None:
            yield _of_nodes(alone, nodes, consolidated=few)


def type_modes(instance: Instance) -> WrittenModes | None:
    """A mode for each GPU type, of jobs whose speed depends on nothing else; None where types do not matter."""
    ticks = run_speed.alone_ticks(instance)
    if not types_alone(instance) or bool((ticks == ticks[:, :1]).all()):
        return None
    gpus = np.array([int(each) for each in _gpus_by_type(instance)], dtype=np.int64)
    jobs = TypedJobs(*_columns(instance), instance.workload.gpus, ticks, gpus)
    return WrittenModes("", jobs, jobs, tuple(range(len(gpus))), {})


# Bounds of modes.


def steady_bounds(modes: WrittenModes, goal: Objective) -> Iterator[Found]:
    """Bounds of one price a resource."""
    if goal is Objective.MAKESPAN:
        _, both = best_span_prices(modes.proposes)
        prices = SpanPrices(tuple(both.types[q] for q in modes.source), both.own)
        value, _ = span_ticks(modes.jobs, prices)
        yield _found(modes, "priced-span", value, prices=[list(prices.types), list(both.own)])
        return
    whole = best_prices(modes.proposes)
    at = [whole[q] for q in modes.source]
    # What checks it rounds each job's mean down to 2^-64 ticks.
    less = Fraction(sum(modes.jobs.weight), 2**64)
    busy = Fraction(busy_price_ticks(modes.jobs, at)) - less
    yield _found(modes, "priced-mean-busy-time", busy, prices=at)
    weight = modes.jobs.weight
    if len(set(weight)) == 1:
        fluid = weight[0] * fluid_price_ticks(modes.jobs, at)
        yield _found(modes, "priced-fluid", fluid, prices=at)


def interval_bounds(modes: WrittenModes, budget_s: float) -> Iterator[Found]:
    """The bound of the interval LP, if it is not too large."""
    if budget_s <= 0:
        return
    try:
        proposed = typed_prices(modes.proposes, budget_s)
    except SolverError:
        return  # The bounds that need no solver are there.
    if proposed is None:
        return
    prices = np.asarray(proposed.prices, dtype=object)[:, list(modes.source)]
    given = TypedPrices(proposed.bounds, prices)
    end = int(given.bounds[-1])
    values = work_values(modes.jobs, given)
    halves = [
        min(Fraction(round(value * 2), 2), w * end)
        for value, w in zip(values.tolist(), modes.jobs.weight, strict=True)
    ]
    value = typed_bound(modes.jobs, given, values)
    more = {"prices": prices.tolist(), "values": [text_of(each) for each in halves]}
    kind = "interval-lp" if modes.subject else "typed-interval-lp"
    yield _found(modes, kind, value, grid=given.bounds.tolist(), **more)


def _found(modes: WrittenModes, kind: str, value: Fraction, **multipliers: Any) -> Found:
    record: Record = {"kind": "bound", "grid": [], **modes.fields, **multipliers}
    record["bound"] = modes.name(kind)
    return Found(record, value, consolidated=modes.consolidated)


# What the modes are.


def _columns(instance: Instance) -> tuple[NDArray[np.int64], tuple[Fraction, ...]]:
    jobs = instance.workload
    return to_ticks(jobs.arrival_s), tuple(Fraction(w) for w in jobs.weight.tolist())


def _gpus_by_type(instance: Instance) -> list[Fraction]:
    names, of_node = run_speed.gpu_types(instance.cluster)
    sizes = instance.cluster.gpus_per_node
    return [Fraction(int(sizes[of_node == t].sum())) for t in range(len(names))]


def _pool_of_type(instance: Instance, pools: int) -> list[int]:
    """Of every type of the certificate the pool of the solvers' modes."""
    names, _ = run_speed.gpu_types(instance.cluster)
    return [0 if pools == 1 else instance.cluster.gpu_types.index(name) for name in names]


def _best_speed(instance: Instance, job: int) -> float:
    parts = instance.conditions
    if parts is None or parts.sensitivity is None or instance.workload.on_cores[job]:
        return 1.0
    return parts.sensitivity.profile_of(job).best


def _of_nodes(instance: Instance, proposed: JobModes, *, consolidated: bool) -> WrittenModes:
    jobs, cluster = instance.workload, instance.cluster
    pools = 1 if jobs.throughput is None else len(cluster.gpu_types)
    kinds, pool_of = node_kinds(cluster, pools), _pool_of_type(instance, pools)
    _, of_node = run_speed.gpu_types(cluster)
    every = list(zip(of_node.tolist(), cluster.gpus_per_node.tolist(), strict=True))
    nodes = list(dict.fromkeys(every))
    gangs, kind = np.unique(jobs.gpus, return_inverse=True)
    types = len(pool_of)
    capacity = _gpus_by_type(instance)
    shape = len(gangs), len(nodes) + types, types
    use = np.zeros(shape, dtype=object)
    on = [*(t for t, _ in nodes), *range(types)]
    for (k, gang), (m, t) in product(enumerate(gangs.tolist()), enumerate(on)):
        use[k, m, t] = gang * USE_UNIT
    rows, source = [], list(pool_of)
    for q in range(pools, proposed.use.shape[2]):
        m = next(m for m in range(len(kinds)) if proposed.use[:, m, q].any())
        across = proposed.use[:, len(kinds) + kinds[m].pool, q]
        one = max((int(u) // g for u, g in zip(across, gangs.tolist(), strict=True)), default=0)
        size = kinds[m].gpus
        weights = [int(u) for u, g in zip(proposed.use[:, m, q], gangs, strict=True) if g <= size]
        for t, other in nodes:
            if pool_of[t] != kinds[m].pool or other != size:
                continue
            rows.append([t, size, weights, one])
            source.append(q)
            capacity.append(Fraction(every.count((t, size))))
            more = np.zeros((*use.shape[:2], 1), dtype=object)
            more[: len(weights), nodes.index((t, size)), 0] = weights
            more[:, len(nodes) + t, 0] = [g * one for g in gangs.tolist()]
            use = np.concatenate((use, more), axis=2)
    time_of = _times_on_nodes(instance, nodes, types, consolidated)
    modes = JobModes(*_columns(instance), time_of, np.array(capacity, dtype=object), kind, use)
    return WrittenModes(NODES, modes, proposed, tuple(source), {"rows": rows}, consolidated)


def _times_on_nodes(
    instance: Instance, nodes: Sequence[tuple[int, int]], types: int, consolidated: bool
) -> NDArray[np.int64]:
    """Ticks within a node of each type and size, then across nodes of each type; 0 where there are none."""
    jobs, parts, graphs = instance.workload, instance.conditions, instance.graphs
    fits = fits_a_node(instance.cluster, jobs)
    alone = run_speed.alone_ticks(instance)
    near = far = np.zeros((len(jobs), types), dtype=np.int64)
    best = np.array([_best_speed(instance, j) for j in range(len(jobs))])
    if graphs is not None:
        ones = np.ones((1, types), dtype=np.int64)
        near, far = (
            np.where(ticks > 0, run_speed.slower_ticks(ticks, best), 0)[:, None] * ones
            for ticks in map(
                np.array,
                (on_one_node_ticks(graphs, jobs.work), spread_ticks(graphs, jobs.work)),
            )
        )
    else:
        slow = (
            np.ones(len(jobs))
            if parts is None or parts.locality is None
            else np.where(jobs.on_cores, 1.0, parts.locality.spread_speed)
        )
        near, far = np.zeros_like(alone), np.zeros_like(alone)
        for t in range(types):
            here = alone[:, t] > 0
            near[here, t] = run_speed.slower_ticks(alone[here, t], best[here])
            far[here, t] = run_speed.slower_ticks(alone[here, t], best[here] * slow[here])
        far[~fits] = near[~fits]
    far = np.where((jobs.gpus == 1)[:, None] | (consolidated & fits)[:, None], 0, far)
    columns = [np.where(jobs.gpus <= size, near[:, t], 0) for t, size in nodes]
    return np.column_stack([*columns, far])


def _of_pairs(instance: Instance, proposed: JobModes) -> WrittenModes:
    names, of = sorts(instance)
    cluster, jobs = instance.cluster, instance.workload
    alone, beside = run_speed.alone_ticks(instance), beside_sorts(instance)
    types = alone.shape[1]
    fastest = np.zeros_like(alone)
    shares: list[dict[tuple[int, int], Fraction]] = [{} for _ in range(types)]
    for j, t in product(range(len(jobs)), range(types)):
        if not alone[j, t]:
            continue
        near = {
            sort: min(p for _, p in widths_and_ticks(instance, j, int(ticks)))
            for sort, ticks in beside[j].get(t, {}).items()
        }
        plain = min(p for _, p in widths_and_ticks(instance, j, int(alone[j, t])))
        fastest[j, t] = min([plain, *near.values()])
        for sort, ticks in near.items():
            key, share = (of[j], sort), Fraction(int(fastest[j, t]), ticks)
            shares[t][key] = max(shares[t].get(key, share), share)
    both = [
        {key: (share, mine[key[::-1]]) for key, share in mine.items() if key[::-1] in mine}
        for mine in shares
    ]
    type_names, _ = run_speed.gpu_types(cluster)
    per_type = _gpus_by_type(instance)
    gangs = np.array([gang for _, gang, _ in names])
    kind = np.array(of, dtype=np.int64)
    rows: list[list[Any]] = []
    source, capacity, uses = [], [], []
    for q in range(proposed.use.shape[2]):
        pool = next(r for r in range(proposed.use.shape[1]) if proposed.use[:, r, q].any())
        t = type_names.index(cluster.gpu_types[pool])
        parts = [
            Fraction(int(u), int(g) * USE_UNIT)
            for u, g in zip(proposed.use[:, pool, q], gangs, strict=True)
        ]
        order = np.argsort([-float(part) for part in parts], kind="stable").tolist()
        found = [int(part * USE_UNIT) for part in raised(parts, both[t], order)]
        rows.append([t, found])
        source.append(q)
        capacity.append(per_type[t])
        use = np.zeros((len(names), types), dtype=object)
        use[:, t] = [int(g) * part for g, part in zip(gangs, found, strict=True)]
        uses.append(use)
    modes = JobModes(
        *_columns(instance), fastest, np.array(capacity, dtype=object), kind, np.stack(uses, axis=2)
    )
    return WrittenModes(PAIRS, modes, proposed, tuple(source), {"rows": rows})


def _of_amounts(instance: Instance) -> WrittenModes:
    jobs, parts = instance.workload, instance.conditions
    profiles = None if parts is None else parts.sensitivity
    number: dict[tuple[Any, ...], int] = {}
    points: list[list[Point]] = []
    kind = np.zeros(len(jobs), dtype=np.int64)
    for j, gang in enumerate(jobs.gpus.tolist()):
        speeds = speeds_by_width(instance, j)
        profile = -1 if profiles is None or jobs.on_cores[j] else int(profiles.of[j])
        key = gang, profile, *speeds
        if key not in number:
            number[key] = len(points)
            cells = [(0, 0, 1.0)]
            if profiles is not None and profile >= 0:
                cells = profile_cells(profiles.profiles[profile])
            points.append(_best_points(gang, speeds, cells))
        kind[j] = number[key]
    modes = _modes_of_points(instance, points, kind)
    proposed = modes
    if max(map(len, points)) > MOST_POINTS:
        proposed = _modes_of_points(instance, [_merged(mine) for mine in points], kind)
    return WrittenModes(AMOUNTS, modes, proposed, tuple(range(len(modes.capacity))), {})


def _best_points(
    gang: int, speeds: Sequence[float], cells: Sequence[tuple[int, int, float]]
) -> list[Point]:
    """Points that some other is not as good as, the fastest first."""
    every = {
        (speed * more, w, w * cpus, w * memory)
        for w, more in enumerate(speeds, gang)
        for cpus, memory, speed in cells
    }
    kept: list[Point] = []
    for point in sorted(every, key=lambda each: (-each[0], *each[1:])):
        if not any(all(a <= b for a, b in zip(k[1:], point[1:], strict=True)) for k in kept):
            kept.append(point)
    return kept


def _merged(points: Sequence[Point]) -> list[Point]:
    """The best that neighbours in speed could be together, where points are too many."""
    if len(points) <= MOST_POINTS:
        return list(points)
    chunks = np.array_split(np.arange(len(points)), MOST_POINTS)
    columns = [tuple(zip(*(points[i] for i in chunk.tolist()), strict=True)) for chunk in chunks]
    return [(max(speed), *map(min, uses)) for speed, *uses in columns]


def _modes_of_points(
    instance: Instance, points: Sequence[Sequence[Point]], kind: NDArray[np.int64]
) -> JobModes:
    """A mode for each type and point."""
    alone, nodes = run_speed.alone_ticks(instance), instance.cluster.nodes
    types, most = alone.shape[1], max(map(len, points))
    time_of = np.zeros((len(kind), types * most), dtype=np.int64)
    use = np.zeros((len(points), types * most, types + 2), dtype=object)
    for (k, mine), t in product(enumerate(points), range(types)):
        here = np.flatnonzero((kind == k) & (alone[:, t] > 0))
        for m, (speed, gpus, *amounts) in enumerate(mine, t * most):
            ticks = run_speed.slower_ticks(alone[here, t], np.full(len(here), speed))
            time_of[here, m] = ticks
            use[k, m, t] = gpus * USE_UNIT
            use[k, m, types:] = [each * USE_UNIT // WHOLE_GPU for each in amounts]
    thousandths = [
        sum(round(getattr(node, name) * WHOLE_GPU) for node in nodes)
        for name in ("cpus", "memory_gb")
    ]
    capacity = [*_gpus_by_type(instance), *(Fraction(each, WHOLE_GPU) for each in thousandths)]
    asked = (use != 0).any(axis=(0, 1))
    kept = np.array(capacity, dtype=object)[asked]
    return JobModes(*_columns(instance), time_of, kept, kind, use[:, :, asked])
