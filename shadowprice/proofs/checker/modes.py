"""Modes of running: LB-mode. Each builder says why shares of modes use no more than there is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Any, NamedTuple

from .costs import LeastWork
from .form import PRICE_UNIT, WHOLE_GPU, Record, listed, need, whole
from .instance import CertificateInstance
from .limits import Effort, fits
from .speeds import slower


class CheckedModes(NamedTuple):
    """Ways in which jobs can run, and what these use of resources.

    ``time`` has ticks of all of a job in each mode, 0 for none; ``use`` of jobs of a kind in each mode, pairs of a
    resource and how much of it, in units of 1 / PRICE_UNIT; ``capacity`` what there is of each resource.
    """

    kind: list[int]
    time: list[tuple[int, ...]]
    use: list[list[list[tuple[int, int]]]]
    capacity: list[Fraction]

    def shortest(self, j: int) -> int:
        """Ticks of the fastest mode."""
        return min(ticks for ticks in self.time[j] if ticks)

    def rent(self, prices: list[int]) -> Fraction:
        """Price of all resources for a tick."""
        need(
            len(prices) == len(self.capacity),
            f"there are no prices for {len(self.capacity)} resources",
        )
        pairs = zip(self.capacity, prices, strict=True)
        return sum((units * price for units, price in pairs), Fraction(0))

    def affordable(self, cells: int) -> None:
        """Reject prices of so many cells if they make too large a table, or too many steps for all jobs."""
        fits(cells * sum(map(len, self.use)), "prices over time")
        effort = Effort("prices over time", len(self.kind))
        effort.spend(cells * sum(map(len, self.time)))
        effort.spend(cells * sum(len(uses) for row in self.use for uses in row))

    def rents(self, prices: list[int]) -> list[list[int]]:
        """Price of a tick of each kind of job in each mode, times PRICE_UNIT."""
        return [[sum(amount * prices[q] for q, amount in uses) for uses in row] for row in self.use]

    def least(self, prices: list[int], own: list[int]) -> list[int]:
        """Least that each job costs in one of its modes, at a price of its own time besides; times PRICE_UNIT."""
        rents = self.rents(prices)
        rows = zip(self.kind, self.time, own, strict=True)
        return [
            min(
                t * (rent + mine * PRICE_UNIT) for t, rent in zip(times, rents[k], strict=True) if t
            )
            for k, times, mine in rows
        ]


def numbered(keys: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Different keys in order of appearance, and the place of each."""
    every = list(keys)
    place = {key: k for k, key in enumerate(dict.fromkeys(every))}
    return list(place), [place[key] for key in every]


def gpus_by_type(instance: CertificateInstance) -> list[Fraction]:
    """GPUs of each type."""
    gpus = [Fraction(0)] * len(instance.types)
    for size, kind in zip(instance.size, instance.type_of, strict=True):
        gpus[kind] += size
    return gpus


def type_modes(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> CheckedModes:
    """A mode for each GPU type, which uses the gang."""
    need(jobs.gangs, "prices by type: jobs share GPUs, hold parts of them or run as copies")
    time = [
        tuple(t and instance.fastest(j, t) for t in times) for j, times in enumerate(instance.times)
    ]
    need(all(map(any, time)), "prices by type: a job has a graph")
    gangs, kind = numbered(jobs.gang)
    use = [[[(q, g * PRICE_UNIT)] for q in range(len(instance.types))] for g in gangs]
    return CheckedModes(kind, time, use, gpus_by_type(instance))


def node_modes(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> CheckedModes:
    """Modes within a node of each type and size, and across nodes of each type: LB-node.

    A row has a type and a size of nodes, how much of one such node a gang of each size uses, and a GPU of a gang
    across nodes: gangs and GPUs that fit on the node use no more than all of it.
    """
    need(
        jobs.gangs and not instance.speeds,
        "nodes: jobs share GPUs, may grow, or hold parts of them",
    )
    nodes = list(instance.alike)
    place = {node: m for m, node in enumerate(nodes)}
    sizes: dict[int, int] = {}
    for t, _ in nodes:
        sizes[t] = sizes.get(t, 0) + 1
    gangs, kind = numbered(jobs.gang)
    narrow, effort = sorted(gangs), Effort("nodes", len(kind))
    types, capacity = len(instance.types), gpus_by_type(instance)
    on = [*(t for t, _ in nodes), *range(types)]
    fits(len(kind) * len(on) + 8 * len(gangs) * (len(on) + len(bound["rows"])), "nodes")
    for _, size, *_ in bound["rows"]:
        effort.spend(whole(size, "nodes of a row") * (bisect_right(narrow, size) + 1))
    use = [[[(t, g * PRICE_UNIT)] for t in on] for g in gangs]
    for q, (t, size, weights, of_one) in enumerate(bound["rows"], types):
        there = (whole(t, "type of a row"), whole(size, "nodes of a row")) in place
        need(there, "a row is of no nodes")
        fit = narrow[: bisect_right(narrow, size)]
        need(len(weights) == len(fit), f"a row is not of gangs of {fit!r:.80}")
        weight = {g: whole(each, "use of a node") for g, each in zip(fit, weights, strict=True)}
        one = whole(of_one, "use of a node")
        need(
            sizes[t] == 1 or not one,
            "nodes of a type are of several sizes, and a gang across them uses one",
        )
        need(
            fullest(size, {**weight, 1: max(one, weight.get(1, 0))}) <= PRICE_UNIT,
            "a node is used twice",
        )
        m = place[t, size]
        capacity.append(Fraction(instance.alike[t, size]))
        for k, g in enumerate(gangs):
            use[k][m].append((q, weight.get(g, 0)))
            use[k][len(nodes) + t].append((q, g * one))
    time = [(*within(instance, j, nodes), *across(instance, j)) for j in range(len(jobs.gang))]
    need(all(map(any, time)), "a job can run nowhere")
    return CheckedModes(kind, time, use, capacity)


def within(instance: CertificateInstance, j: int, nodes: list[tuple[int, int]]) -> Iterator[int]:
    """Ticks of a job on one node of each type and size; 0 where it does not fit."""
    more, gang = instance.more.get(j, {}), instance.gang[j]
    for kind, size in nodes:
        if gang > size:
            yield 0
        elif "graph" in more:
            graph = instance.graphs[more["graph"]]
            fits = gang <= graph.network["gpus"]
            ticks = graph.ticks(more["work"], (tuple(graph.replicas),)) if fits else 0
            yield ticks and instance.fastest(j, ticks)
        else:
            ticks = instance.times[j][kind]
            yield ticks and instance.fastest(j, ticks)


def across(instance: CertificateInstance, j: int) -> Iterator[int]:
    """Ticks of a job across nodes of each type, at least; 0 where it is on one."""
    more, gang = instance.more.get(j, {}), instance.gang[j]
    fits = instance.fewest(j, gang) == 1
    for ticks in instance.times[j]:
        if gang == 1 or (fits and "placement" in instance.header):
            yield 0
        elif "graph" in more:
            yield instance.fastest(j, instance.graphs[more["graph"]].spread_ticks(more["work"]))
        elif ticks and fits and "spread" in more:
            best = instance.best_of[more["profile"]] if "profile" in more else 1.0
            yield slower(ticks, best, more["spread"])
        else:
            yield ticks and instance.fastest(j, ticks)


def fullest(size: int, weight: dict[int, int]) -> int:
    """Most that gangs which fit on a node weigh together."""
    best = [0] * (size + 1)
    for room in range(1, size + 1):
        weights = (best[room - g] + w for g, w in weight.items() if g <= room)
        best[room] = max(best[room - 1], *weights)
    return best[size]


def pair_modes(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> CheckedModes:
    """A mode for each GPU type, of which sorts of jobs use parts of the gang: LB-pair.

    A row has a type and the part of every sort: no two that may share do more of these than a GPU.
    """
    alike = all("sort" in instance.more.get(j, ()) for j in range(len(jobs.gang)))
    need(alike, "pairs: no two jobs may share GPUs")
    other = any(more.keys() & {"part", "graph"} for more in instance.more.values())
    need(not other, "pairs: jobs hold parts of GPUs or have graphs")
    names, shares, time = list(instance.types), PairShares(), []
    for j, times in enumerate(instance.times):
        by_type_and_sort = instance.more[j]["beside"]
        rows = [by_type_and_sort.get(name, {}) for name in names]
        time.append(
            tuple(
                shares.add(instance, j, t, *each)
                for t, each in enumerate(zip(times, rows, strict=True))
            )
        )
    keys, kind = numbered((instance.more[j]["sort"], g) for j, g in enumerate(jobs.gang))
    fits(len(keys) * (len(names) + len(bound["rows"])), "pairs")
    Effort("pairs", len(time)).spend(len(bound["rows"]) * (len(shares.most) + len(keys)))
    use: list[list[list[tuple[int, int]]]] = [[[] for _ in names] for _ in keys]
    capacity, by_type = [], gpus_by_type(instance)
    for q, (t, parts) in enumerate(bound["rows"]):
        need(whole(t, "type of a row") < len(names), "a row is of no GPU type")
        shares_of_sorts = [whole(part, "part") for part in listed(parts, "parts of a row")]
        need(len(shares_of_sorts) > max(sort for sort, _ in keys), "a sort has no part")
        need(max(shares_of_sorts) <= PRICE_UNIT, "a part is more than all")
        shares.fit(t, shares_of_sorts)
        capacity.append(by_type[t])
        for k, (sort, g) in enumerate(keys):
            use[k][t].append((q, g * shares_of_sorts[sort]))
    return CheckedModes(kind, time, use, capacity)


class PairShares:
    """Most that sorts of jobs do beside others, of their fastest."""

    def __init__(self) -> None:
        self.most: dict[tuple[int, int, int], Fraction] = {}

    def add(
        self,
        instance: CertificateInstance,
        j: int,
        kind: int,
        alone: int,
        sharing_ticks: dict[str, int],
    ) -> int:
        """Ticks of a job's fastest on a GPU type, alone or beside another; 0 where it cannot run."""
        if not alone:
            return 0
        by_sort = {int(other): instance.fastest(j, ticks) for other, ticks in sharing_ticks.items()}
        fastest = min([instance.fastest(j, alone), *by_sort.values()])
        for other, ticks in by_sort.items():
            key = kind, instance.more[j]["sort"], other
            self.most[key] = max(self.most.get(key, Fraction(0)), Fraction(fastest, ticks))
        return fastest

    def fit(self, kind: int, parts: list[int]) -> None:
        """Two that share on a type do no more of their parts than one GPU has."""
        for (on, one, other), share in self.most.items():
            back = self.most.get((on, other, one))
            if on == kind and back is not None:
                fine = parts[one] * share + parts[other] * back <= PRICE_UNIT
                need(fine, f"sorts {one} and {other} do more together than a GPU has")


def amount_modes(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> CheckedModes:
    """A mode for each GPU type, width and row of the profile, which uses GPUs, CPUs and memory: LB-amount."""
    need(
        jobs.gangs and (instance.speeds or instance.cells),
        "amounts: no job may grow or has a profile",
    )
    rows = [instance.more.get(j, {}) for j in range(len(jobs.gang))]
    columns = zip(
        jobs.gang, (r.get("widths") for r in rows), (r.get("profile") for r in rows), strict=True
    )
    keys, kind = numbered(columns)
    effort = Effort("amounts", len(kind))
    points = [points_of(instance, key, effort) for key in keys]
    types, width = len(instance.types), max(map(len, points))
    fits((len(keys) + len(kind)) * types * width, "amounts")
    capacity, asked = gpus_by_type(instance), []
    for k, field in enumerate(("cpus", "memory"), 2):
        if any(point[k] for mine in points for point in mine):
            thousandths = sum(
                instance.cpu_memory[node, field] for node in range(len(instance.size))
            )
            capacity.append(Fraction(thousandths, WHOLE_GPU))
            asked.append(k)
    use: list[list[list[tuple[int, int]]]] = []
    for mine in points:
        uses: list[list[tuple[int, int]]] = []
        for t in range(types):
            for point in mine:
                more = (int(point[k]) * PRICE_UNIT // WHOLE_GPU for k in asked)
                uses.append([(t, point[1] * PRICE_UNIT), *enumerate(more, types)])
            uses += [[]] * (width - len(mine))
        use.append(uses)
    time = []
    for times, k in zip(instance.times, kind, strict=True):
        none = [0] * (width - len(points[k]))
        each = [[t and slower(t, s) for s, *_ in points[k]] + none for t in times]
        time.append(tuple(chain.from_iterable(each)))
    need(all(map(any, time)), "amounts: a job has a graph")
    return CheckedModes(kind, time, use, capacity)


def points_of(
    instance: CertificateInstance, key: tuple[int, int | None, int | None], effort: Effort
) -> list[tuple[float, int, int, int]]:
    """Speed, GPUs, and thousandths of CPUs and memory of a job, less those that others are as good as."""
    gang, widths, profile = key
    speeds = [1.0] if widths is None else instance.speeds[widths]
    cells = [(0, 0, 1.0)] if profile is None else instance.cells[profile]
    effort.spend(len(speeds) * len(cells))
    fits(len(speeds) * len(cells), "widths and profiles")
    every = [
        (speed * more, w, w * cpus, w * memory)
        for w, more in enumerate(speeds, gang)
        for cpus, memory, speed in cells
    ]
    points: list[tuple[float, int, int, int]] = []
    for point in sorted(set(every), key=lambda p: (-p[0], *p[1:])):
        effort.spend(len(points))
        if not any(all(a <= b for a, b in zip(k[1:], point[1:], strict=True)) for k in points):
            points.append(point)
    return points
