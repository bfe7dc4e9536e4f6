"""The protocol of a placement of job graphs, all of them by name, and the nodes that they fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

import shadowprice.solvers.graph_placement
from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.offers import Offers

FreeGpus = Sequence[int] | NDArray[np.int64]
"""Free GPUs of every node, shape (nodes,)."""


class GraphPlacement(Protocol):
    """A rule that says where the replicas of a job go."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas of each stage on each node it uses; None if the gang does not fit.

        Parameters
        ----------
        graph : JobGraph
        free : sequence of int, shape (nodes,)
            Free GPUs of every node, none negative; GPUs are of one speed.
        network : Network
            Bandwidths, for rules that weigh times rather than bytes.

        Raises
        ------
        InputError
            If ``free`` is not a row of whole numbers >= 0.
        """


def as_free(free: FreeGpus) -> NDArray[np.int64]:
    """Free GPUs as an array.

    Raises
    ------
    InputError
        If it is not a row of whole numbers >= 0.
    """
    given = np.asarray(free)
    if given.size == 0:
        given = given.astype(np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InputError(f"free GPUs are {free!r}, expected a row of whole numbers, one a node")
    if (given < 0).any():
        node = int(np.argmax(given < 0))
        raise InputError(f"free GPUs of node {node} are {given[node]}, expected >= 0")
    return given.astype(np.int64, copy=False)


def fewest_nodes(free: NDArray[np.int64], gpus: int) -> list[tuple[int, int]] | None:
    """As few nodes as hold a gang, and how many of its GPUs each takes; None if it does not fit.

    The shortest prefix of the nodes by free GPUs, descending (ties: lower position); the last of
    them is exchanged for the node that fits what is left best. Full nodes first, O(M log M).
    Source: A-SRPT's Heavy-Edge, details derived.

    Parameters
    ----------
    free : ndarray of int, shape (nodes,)
    gpus : int
        Gang size, at least 1.
    """
    order = np.argsort(-free, kind="stable")
    total = np.cumsum(free[order])
    if len(total) == 0 or total[-1] < gpus:
        return None
    used = int(np.searchsorted(total, gpus))
    full = order[:used]
    left = gpus - (int(total[used - 1]) if used else 0)
    # Of the nodes that hold the rest, the last in this order is the smallest; of equally small
    # ones the first in this order is the one with the lowest position.
    rest = free[order[used:]]
    smallest = rest[np.searchsorted(-rest, -left, side="right") - 1]
    last = int(order[used + np.searchsorted(-rest, -smallest)])
    nodes = list(zip(full.tolist(), free[full].tolist(), strict=True))
    return [*nodes, (last, left)]


# Placements of job graphs by name: the ``GRAPH_PLACEMENTS`` of every module of this package.


def graph_placements() -> Mapping[str, GraphPlacement]:
    """All of them by name."""
    return Offers(shadowprice.solvers.graph_placement, "GRAPH_PLACEMENTS")


def graph_placement(name: str) -> GraphPlacement:
    """One of them; raises InputError listing what there is."""
    known = graph_placements()
    if name not in known:
        raise InputError(f"placement {name!r}: {expected_name(name, known)}")
    return known[name]
