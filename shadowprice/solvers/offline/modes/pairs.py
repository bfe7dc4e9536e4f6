r"""Modes of jobs of which two may share GPUs: each kind counts by what sharing with it gains, LB-pair.

On GPUs of type r two jobs of kinds c and d that share get services of at most :math:`a_{cd}` and :math:`a_{dc}` of what
the faster of alone and beside others gives. With *parts* :math:`0 \le x_c \le 1` such that

.. math:: x_c a_{cd} + x_d a_{dc} \le 1 \quad \text{for all pairs that may share}

no GPU gives more than 1 of parts times services, whoever holds it. So :math:`g_j x_{c(j)}` is what j uses of type r.
Equal parts :math:`1 / \kappa` are the capacity :math:`\kappa m` of :mod:`shadowprice.solvers.offline.bounds`; a job
that gains little by sharing can count nearly in full instead, beside one that counts for less. A linear programme
proposes parts, the dual of pairs of kinds as columns; they are rounded down, compared with every pair exactly, and
raised one after the other as far as all pairs allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.sharing_gain import SharingGain, kinds_of
from shadowprice.instances.speeds.throughputs import Kind
from shadowprice.solvers.offline.modes.job_modes import USE_UNIT, ModeTable
from shadowprice.solvers.programs.linear_program import LinearProgram

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,  # are the modes
        Feature.CHARGES,  # only restrict
        Feature.SHARING,  # by parts of each kind
        Feature.PROFILES,  # the fastest counts
        Feature.SPREAD,  # makes no run faster
        Feature.WIDTHS,  # who holds more GPUs is faster by no more than in proportion
        Feature.FAILURES,  # what is lost is done again
        Feature.CPU_MEMORY,  # only restrict
    }
)

MOST_KINDS = 150
"""Kinds of jobs up to which parts are searched; with more they are equal."""

Shares = Mapping[tuple[int, int], tuple[Fraction, Fraction]]
"""Most services of two kinds beside each other, by the numbers of the kinds."""


def pair_modes(instance: Instance) -> ModeTable | None:
    """A mode for each GPU type, and resources of parts; None if no two jobs may share GPUs.

    O(n types + pairs of kinds) besides a linear programme of a column a kind and a row a pair.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "modes of pairs")
    gains = SharingGain.by_type(instance)
    if gains is None:
        return None
    jobs = instance.workload
    named = kinds_of(instance)
    number = {kind: k for k, kind in enumerate(dict.fromkeys(named))}
    kind = np.array([number[each] for each in named], dtype=np.int64)
    time = np.array([gain.service for gain in gains], dtype=np.int64).T
    gangs = np.array([gpus for _, gpus in number], dtype=np.int64)
    shares = [_numbered(gain, number) for gain in gains]
    weight = tuple(Fraction(w) for w in jobs.weight.tolist())
    rows: list[tuple[int, tuple[Fraction, ...]]] = [
        (r, (1 / gain.kappa,) * len(number)) for r, gain in enumerate(gains)
    ]
    for demand in _demands(time, kind, weight, len(number)):
        for r, parts in _searched(demand, _paces(time, kind, len(number)), gangs, shares, instance):
            if allowed_parts(parts, shares[r]):
                _add(rows, r, parts)
    use = np.zeros((len(number), len(gains), len(rows)), dtype=object)
    per_type = instance.cluster.gpus_per_type.tolist()
    for q, (r, parts) in enumerate(rows):
        for c, part in enumerate(parts):
            use[c, r, q] = int(gangs[c] * part * USE_UNIT)
    capacity = np.array([per_type[r] for r, _ in rows], dtype=np.int64)
    return ModeTable.of_workload(jobs, time, capacity, kind, use)


def _add(
    rows: list[tuple[int, tuple[Fraction, ...]]], pool: int, parts: tuple[Fraction, ...]
) -> None:
    """Add parts to those of a type unless some of them are no smaller, in the place of such as are no larger."""
    mine = [others for r, others in rows if r == pool]
    if any(all(a <= b for a, b in zip(parts, others, strict=True)) for others in mine):
        return
    for others in mine:
        if all(a >= b for a, b in zip(parts, others, strict=True)):
            rows.remove((pool, others))
    rows.append((pool, parts))


def equal_parts(jobs: ModeTable, gpus: NDArray[np.int64]) -> bool:
    """True if all kinds have the same parts on each type, but for rounding.

    Parameters
    ----------
    gpus : ndarray of int, shape (n,)
        Gangs of the jobs.
    """
    gangs = gpus[np.unique(jobs.kind, return_index=True)[1]]
    each = np.asarray(jobs.use / gangs[:, None, None], dtype=np.float64)
    return bool((np.ptp(each, axis=0) <= 1.0).all())


def allowed_parts(parts: Sequence[Fraction], shares: Shares) -> bool:
    """True if parts are from 0 to 1 and no pair that may share counts for more than 1."""
    return all(0 <= part <= 1 for part in parts) and all(
        parts[one] * mine + parts[other] * theirs <= 1
        for (one, other), (mine, theirs) in shares.items()
    )


def raised(parts: Sequence[Fraction], shares: Shares, order: Sequence[int]) -> tuple[Fraction, ...]:
    """Parts that are no smaller and still allowed, raised in an order, each as far as the others let it.

    Where they are not allowed, they are scaled down first.
    """
    worst = max(
        (parts[c] * mine + parts[d] * theirs for (c, d), (mine, theirs) in shares.items()),
        default=Fraction(1),
    )
    larger = [min(part / max(worst, Fraction(1)), Fraction(1)) for part in parts]
    by_kind: dict[int, list[tuple[int, Fraction, Fraction]]] = {}
    for (one, other), (mine, theirs) in shares.items():
        by_kind.setdefault(one, []).append((other, mine, theirs))
        by_kind.setdefault(other, []).append((one, theirs, mine))
    for c in order:
        most = [Fraction(1)]
        for d, mine, theirs in by_kind.get(c, ()):
            most.append(1 / (mine + theirs) if d == c else (1 - larger[d] * theirs) / mine)
        # Rounded down, so that fractions of fractions stay short.
        larger[c] = max(larger[c], Fraction(int(min(most) * USE_UNIT), USE_UNIT))
    return tuple(larger)


def _numbered(gain: SharingGain, number: Mapping[Kind, int]) -> Shares:
    """Shares of one GPU type by the numbers of the kinds."""
    return {(number[one], number[other]): both for (one, other), both in gain.shares}


def _paces(time: NDArray[np.int64], kind: NDArray[np.int64], kinds: int) -> NDArray[np.float64]:
    """Service in the time of the fastest type for each unit of service, by kind and type; 0 where it cannot run."""
    fastest = np.where(time > 0, time, np.iinfo(np.int64).max).min(axis=1)
    pace = np.where(time > 0, fastest[:, None] / np.maximum(time, 1), 0.0)
    paces = np.zeros((kinds, time.shape[1]))
    np.maximum.at(paces, kind, pace)
    return paces


def _demands(
    time: NDArray[np.int64],
    kind: NDArray[np.int64],
    weight: Sequence[Fraction],
    kinds: int,
) -> list[NDArray[np.float64]]:
    """Demand of work of each kind, as the span and as the completions of jobs see it."""
    fastest = np.where(time > 0, time, np.iinfo(np.int64).max).min(axis=1).astype(np.float64)
    work = np.bincount(kind, fastest, kinds)
    count = np.bincount(kind, [float(w) for w in weight], kinds)
    roots = np.bincount(kind, np.sqrt(fastest), kinds)
    return [each / each.max() for each in (work, roots, count) if each.max() > 0]


def _searched(
    demand: NDArray[np.float64],
    pace: NDArray[np.float64],
    gangs: NDArray[np.int64],
    shares: Sequence[Shares],
    instance: Instance,
) -> list[tuple[int, tuple[Fraction, ...]]]:
    """Parts on each type at which work of these amounts is dearest; none if it is not known."""
    kinds, types = pace.shape
    if kinds > MOST_KINDS:
        return []
    from shadowprice.solvers.programs import gate

    program = _dearest(demand, pace, gangs, shares, instance.cluster.gpus_per_type)
    try:
        solution = gate.solve(program)
    except SolverError:
        return []
    if not len(solution.primal):
        return []
    rent, worth = solution.primal[:types], solution.primal[types:]
    order = np.argsort(-demand * gangs, kind="stable").tolist()
    rows = []
    for r in range(types):
        if rent[r] <= 1e-12 * rent.max():
            continue
        each = np.clip(worth * pace[:, r] / (gangs * rent[r]), 0.0, 1.0)
        parts = [Fraction(int(part * USE_UNIT), USE_UNIT) for part in each.tolist()]
        rows.append((r, raised(parts, shares[r], order)))
    return rows


def _dearest(
    demand: NDArray[np.float64],
    pace: NDArray[np.float64],
    gangs: NDArray[np.int64],
    shares: Sequence[Shares],
    gpus: NDArray[np.int64],
) -> LinearProgram:
    """Most that work is worth at prices of types and of service, of which no pair brings in more than its GPUs cost."""
    kinds, types = pace.shape
    rows: list[list[tuple[int, float]]] = [[(r, float(gpus[r])) for r in range(types)]]
    for r in range(types):
        for c in np.flatnonzero(pace[:, r]).tolist():
            rows.append([(r, -float(gangs[c])), (types + c, float(pace[c, r]))])
        for (one, other), (mine, theirs) in shares[r].items():
            if mine + theirs > 1:
                entries = {r: -float(gangs[one])}
                for c, share in ((one, mine), (other, theirs)):
                    entries[types + c] = entries.get(types + c, 0.0) + float(share) * pace[c, r]
                rows.append(list(entries.items()))
    size = [len(row) for row in rows]
    start = np.concatenate(([0], np.cumsum(size))).astype(np.int32)
    index = np.array([column for row in rows for column, _ in row], dtype=np.int32)
    value = np.array([entry for row in rows for _, entry in row])
    columns = types + kinds
    most = np.zeros(len(rows))
    most[0] = 1.0
    return LinearProgram(
        np.concatenate((np.zeros(types), demand)),
        0.0,
        True,
        np.zeros(columns),
        np.full(columns, np.inf),
        np.full(len(rows), -np.inf),
        most,
        start,
        index,
        value,
        np.zeros(columns, dtype=np.bool_),
    )
