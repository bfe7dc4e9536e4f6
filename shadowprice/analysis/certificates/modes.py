"""Modes of jobs as a certificate has them, for the bounds of LB-mode: of nodes, pairs, CPUs and memory, GPU types.

What the solvers know of modes (:mod:`shadowprice.solvers.offline.modes`) proposes rows and prices. Their bound is
evaluated on the modes that the program which checks makes of the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.effort import Timer
from shadowprice.analysis.certificates.records import Record, text_of
from shadowprice.analysis.certificates.speeds import (
    may_grow,
    sorts,
)
from shadowprice.errors import SolverError
from shadowprice.instances.features import Feature, missing
from shadowprice.instances.objective import Objective
from shadowprice.proofs import run_speed
from shadowprice.solvers.offline.modes.amounts import MOST_POINTS
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable
from shadowprice.solvers.offline.modes.nodes import KNOWS as NODE_KNOWS
from shadowprice.solvers.offline.modes.nodes import node_kinds, node_modes
from shadowprice.solvers.offline.modes.pairs import KNOWS as PAIR_KNOWS
from shadowprice.solvers.offline.modes.pairs import equal_parts, pair_modes, raised
from shadowprice.solvers.offline.modes.types import gang_uses
from shadowprice.solvers.offline.type_prices import (
    SpanPrices,
    best_prices,
    best_span_prices,
    busy_price_ticks,
    fluid_price_ticks,
    span_ticks,
)
from shadowprice.solvers.offline.typed_bound import (
    TypedPrices,
    typed_bound,
    typed_prices,
    work_values,
)

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.checked_class import CheckedClass
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
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

TYPE_KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # where nobody does
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,  # the fastest counts
        Feature.FAILURES,  # what is lost is done again
        Feature.CORES,  # are GPUs of a type
        Feature.CPU_MEMORY,  # only restrict
        Feature.RESTART,  # only restricts
    }
)

PAIRS, AMOUNTS, NODES = "pairs", "amounts", "nodes"
"""Subjects of modes: sharing GPUs; width, CPUs and memory; being within a node or across several."""

Point = tuple[float, int, int, int]
"""Speed, GPUs, and thousandths of CPUs and memory."""


@dataclass(frozen=True, eq=False)
class CertificateModes:
    """Modes of a certificate.

    Parameters
    ----------
    subject : str
        What tells the modes apart, as names of bounds have it; empty for GPU types.
    jobs : ModeTable
        As the certificate has them.
    proposes : ModeTable
        Those of the solvers, at whose prices the bound is evaluated.
    source : tuple of int
        Of every resource of ``jobs`` the one of ``proposes`` that has its price.
    fields : dict
        Further fields of the record: rows of resources.
    consolidated : bool
        Whether they are of schedules alone that place every gang on as few nodes as it fits on.
    """

    subject: str
    jobs: ModeTable
    proposes: ModeTable
    source: tuple[int, ...]
    fields: Record
    consolidated: bool = False

    def name(self, kind: str) -> str:
        """Name of a bound of these modes."""
        return f"{kind}-of-{self.subject}" if self.subject else kind


def certificate_modes(
    instance: Instance, schedules: CheckedClass, *, pairs: bool, consolidated: bool
) -> Iterator[CertificateModes]:
    """All modes that say something of the schedules of a certificate; none of features that are not in ``KNOWS``.

    Parameters
    ----------
    instance : Instance
        The jobs that count.
    schedules : CheckedClass
        Theirs.
    pairs : bool
        Whether two jobs may share GPUs; else whatever rates the instance has for that are none of its.
    consolidated : bool
        Whether modes of consolidated schedules may be among them.
    """
    if missing(instance, KNOWS):
        return
    if pairs:
        proposed = None if missing(instance, PAIR_KNOWS) else pair_modes(instance)
        types = len(run_speed.gpu_types(instance.cluster)[0])
        if proposed is not None and (
            types > 1 or not equal_parts(proposed, instance.workload.gpus)
        ):
            yield _of_pairs(instance, schedules, proposed)
        return
    alone = replace(instance, sharing_rates=None)
    # Of graphs run times depend on more than a type.
    by_amounts = Feature.PROFILES in alone.features and Feature.GRAPHS not in alone.features
    if by_amounts or may_grow(alone).any():
        modes = schedules.modes(AMOUNTS, {})
        every = tuple(range(len(modes.capacity)))
        yield CertificateModes(AMOUNTS, modes, _fewer(modes, len(_types(alone)[0])), every, {})
    if missing(alone, NODE_KNOWS):
        return
    for few in (False, True)[: 1 + consolidated]:
        nodes = node_modes(alone, consolidated=few)
        if nodes is not None:
            yield _of_nodes(alone, schedules, nodes, consolidated=few)


def type_modes(instance: Instance, schedules: CheckedClass) -> CertificateModes | None:
    """A mode for each GPU type, of jobs that have run times by type; None where types do not matter."""
    if missing(instance, TYPE_KNOWS) or not schedules.work.gangs:
        return None
    modes = schedules.modes("", {})
    # Types on which every job takes the same time have one price.
    columns, pool = np.unique(modes.time, axis=1, return_inverse=True)
    if columns.shape[1] == 1:
        return None
    source, gpus = pool.ravel(), np.array(_gpus_by_type(instance), dtype=np.int64)
    capacity = np.bincount(source, gpus).astype(np.int64)
    uses = gang_uses(np.array(schedules.work.gang), len(capacity))
    jobs = ModeTable(modes.release, modes.weight, columns, capacity, *uses)
    return CertificateModes("", modes, jobs, tuple(source.tolist()), {})


# Bounds of modes.


def steady_bounds(modes: CertificateModes, goal: Objective) -> Iterator[BoundCandidate]:
    """Bounds of one price a resource."""
    if goal is Objective.MAKESPAN:
        _, both = best_span_prices(modes.proposes)
        prices = SpanPrices(tuple(both.types[q] for q in modes.source), both.own)
        value, _ = span_ticks(modes.jobs, prices)
        yield _candidate(modes, "priced-span", value, prices=[list(prices.types), list(both.own)])
        return
    whole = best_prices(modes.proposes)
    at = [whole[q] for q in modes.source]
    # What checks it rounds each job's mean down to 2^-64 ticks.
    less = Fraction(sum(modes.jobs.weight), 2**64)
    busy = Fraction(busy_price_ticks(modes.jobs, at)) - less
    yield _candidate(modes, "priced-mean-busy-time", busy, prices=at)
    weight = modes.jobs.weight
    if len(set(weight)) == 1:
        fluid = weight[0] * fluid_price_ticks(modes.jobs, at)
        yield _candidate(modes, "priced-fluid", fluid, prices=at)


def interval_bounds(modes: CertificateModes, timer: Timer) -> Iterator[BoundCandidate]:
    """The bound of the interval LP, if it is not too large."""
    if timer.left_s <= 0:
        return
    try:
        proposed = typed_prices(modes.proposes, timer.left_s, timer.columns)
    except SolverError:
        return  # The bounds that need no solver are there.
    if proposed is None:
        return
    prices = np.asarray(proposed.prices, dtype=object)[:, list(modes.source)]
    typed = TypedPrices(proposed.bounds, prices)
    end = int(typed.bounds[-1])
    values = work_values(modes.jobs, typed)
    halves = [
        min(Fraction(round(value * 2), 2), w * end)
        for value, w in zip(values.tolist(), modes.jobs.weight, strict=True)
    ]
    value = typed_bound(modes.jobs, typed, values)
    more = {"prices": prices.tolist(), "values": [text_of(each) for each in halves]}
    kind = "interval-lp" if modes.subject else "typed-interval-lp"
    yield _candidate(modes, kind, value, grid=typed.bounds.tolist(), **more)


def _candidate(
    modes: CertificateModes, kind: str, value: Fraction, **multipliers: Any
) -> BoundCandidate:
    record: Record = {"kind": "bound", "grid": [], **modes.fields, **multipliers}
    record["bound"] = modes.name(kind)
    return BoundCandidate(record, value, consolidated=modes.consolidated)


# What the modes are.


def _types(instance: Instance) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """GPU types of a certificate, and that of each node."""
    names, of_node = run_speed.gpu_types(instance.cluster)
    return tuple(names), of_node


def _gpus_by_type(instance: Instance) -> list[int]:
    names, of_node = _types(instance)
    sizes = instance.cluster.gpus_per_node
    return [int(sizes[of_node == t].sum()) for t in range(len(names))]


def _of_nodes(
    instance: Instance, schedules: CheckedClass, proposed: ModeTable, *, consolidated: bool
) -> CertificateModes:
    """A row for each resource that is a size of nodes, of each type of the certificate that is of its pool."""
    jobs, cluster = instance.workload, instance.cluster
    pools = 1 if jobs.throughput is None else len(cluster.gpu_types)
    names, of_node = _types(instance)
    pool_of = [0 if pools == 1 else cluster.gpu_types.index(name) for name in names]
    every = list(zip(of_node.tolist(), cluster.gpus_per_node.tolist(), strict=True))
    kinds, gangs = node_kinds(cluster, pools), np.unique(jobs.gpus).tolist()
    rows, source = [], list(pool_of)
    for q in range(pools, proposed.use.shape[2]):
        m = next(m for m in range(len(kinds)) if proposed.use[:, m, q].any())
        across = proposed.use[:, len(kinds) + kinds[m].pool, q]
        one = max((int(u) // g for u, g in zip(across, gangs, strict=True)), default=0)
        size = kinds[m].gpus
        weights = [int(u) for u, g in zip(proposed.use[:, m, q], gangs, strict=True) if g <= size]
        for t, other in dict.fromkeys(every):
            if pool_of[t] == kinds[m].pool and other == size:
                rows.append([t, size, weights, one])
                source.append(q)
    fields = {"rows": rows}
    modes = schedules.modes(NODES, fields, consolidated=consolidated)
    return CertificateModes(NODES, modes, proposed, tuple(source), fields, consolidated)


def _of_pairs(instance: Instance, schedules: CheckedClass, proposed: ModeTable) -> CertificateModes:
    """A row for each resource: parts of a GPU of a type, as large as shares of pairs allow."""
    shares = schedules.sharing_shares()
    both: dict[int, dict[tuple[int, int], tuple[Fraction, Fraction]]] = {}
    for (t, one, other), share in shares.items():
        if (t, other, one) in shares:
            both.setdefault(t, {})[one, other] = share, shares[t, other, one]
    type_names, gangs = _types(instance)[0], [gang for _, gang, _ in sorts(instance)[0]]
    rows: list[list[Any]] = []
    for q in range(proposed.use.shape[2]):
        pool = next(r for r in range(proposed.use.shape[1]) if proposed.use[:, r, q].any())
        t = type_names.index(instance.cluster.gpu_types[pool])
        uses = zip(proposed.use[:, pool, q], gangs, strict=True)
        parts = [Fraction(int(use), gang * USE_UNIT) for use, gang in uses]
        order = np.argsort([-float(part) for part in parts], kind="stable").tolist()
        whole = [int(part * USE_UNIT) for part in raised(parts, both.get(t, {}), order)]
        rows.append([t, whole])
    fields = {"rows": rows}
    return CertificateModes(
        PAIRS, schedules.modes(PAIRS, fields), proposed, tuple(range(len(rows))), fields
    )


def _fewer(modes: ModeTable, types: int) -> ModeTable:
    """The best that points which are neighbours in speed could be together, where they are too many on a type."""
    each = modes.use.shape[1] // types
    if each <= MOST_POINTS:
        return modes
    width = types * MOST_POINTS
    time = np.zeros((len(modes.time), width), dtype=np.int64)
    use = np.zeros((len(modes.use), width, modes.use.shape[2]), dtype=object)
    # Every point holds GPUs, which are those of the first type in the first modes.
    for k, points in enumerate((modes.use[:, :each, 0] > 0).sum(axis=1).tolist()):
        here = np.flatnonzero(modes.kind == k)
        chunks = np.array_split(np.arange(points), min(points, MOST_POINTS))
        for t, (m, chunk) in product(range(types), enumerate(chunks)):
            some = t * each + chunk
            time[here, t * MOST_POINTS + m] = modes.time[np.ix_(here, some)].min(axis=1)
            use[k, t * MOST_POINTS + m] = modes.use[k, some].min(axis=0)
    return replace(modes, time=time, use=use)
