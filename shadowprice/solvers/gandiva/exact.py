"""Best packings and fewest migrations, exactly: what Gandiva's heuristics are compared with.

Pairs by networkx's maximum weight matching (Galil, ACM Computing Surveys 18, 1986; O(n^3)) and by
the programmes of :mod:`shadowprice.models.gandiva`; greedy best gain first is what the policy does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.models import gandiva
from shadowprice.models.gandiva import Homes, Packings
from shadowprice.solvers.programs.compile import Status, compile_model

Gains = Mapping[tuple[int, int], float]
"""Gain over time slicing of two jobs that share GPUs, by pair of jobs."""

Pair = tuple[int, int]


def greedy_pairs(gains: Gains) -> list[Pair]:
    """Best gain first among pairs of jobs that have none yet, ties by jobs; O(pairs log pairs).

    Pairs that gain nothing are not made.
    """
    taken: set[int] = set()
    pairs = []
    for pair in sorted(gains, key=lambda pair: (-gains[pair], pair)):
        if gains[pair] > 0 and taken.isdisjoint(pair):
            pairs.append(pair)
            taken.update(pair)
    return pairs


def best_pairs(gains: Gains) -> list[Pair]:
    """A matching of the largest total gain, by networkx; O(jobs^3)."""
    graph = nx.Graph()
    for (one, other), gain in sorted(gains.items()):
        if gain > 0:
            graph.add_edge(one, other, weight=gain)
    found = nx.max_weight_matching(graph)
    known = {frozenset(pair): pair for pair in gains}
    return sorted(known[frozenset(pair)] for pair in found)


def total(gains: Gains, pairs: list[Pair]) -> float:
    """Gain of some pairs, rounded once."""
    return float(sum(Fraction(gains[pair]) for pair in pairs))


def best_packing(
    packings: Packings,
    model: Callable[[Packings], Any] = gandiva.packing,
) -> list[tuple[int, ...]]:
    """Disjoint sets of jobs of the largest total gain, by MILP; for sets of any size.

    Parameters
    ----------
    model : callable
        The programme, with the variable x of :func:`shadowprice.models.gandiva.packing`.

    Raises
    ------
    SolverError
        If none is shown to be the largest in time.
    """
    if not packings.members:
        return []
    built = model(packings)
    chosen = _best(built, built.x, "packing") > 0.5
    return [members for members, one in zip(packings.members, chosen.tolist(), strict=True) if one]


def fewest_migrations(
    homes: Homes,
    *,
    fragmented: Fraction | None = None,
    model: Callable[..., Any] = gandiva.defragmentation,
) -> tuple[int, ...]:
    """Servers of all jobs after as few migrations as possible.

    Parameters
    ----------
    model : callable
        The programme, with the variable y of :func:`shadowprice.models.gandiva.defragmentation`.

    Raises
    ------
    SolverError
        If no placement fits all gangs and leaves no used server fragmented, or none is shown to
        take the fewest in time.
    """
    if not homes.gang:
        return ()
    built = model(homes, fragmented=fragmented)
    return tuple(_best(built, built.y, "placement").argmax(axis=1).tolist())


def _best(model: Any, variable: Any, what: str) -> NDArray[np.float64]:
    """Values of a variable where the programme has its optimum."""
    compiled = compile_model(model)
    solution = compiled.solve()
    if solution.status is not Status.OPTIMAL:
        raise SolverError(f"Gandiva's exact {what}: none is shown to be best; allow more time")
    return compiled.value(solution, variable)
