"""Exact placement, by the programmes of :mod:`shadowprice.models.asrpt`; for small jobs.

``exact`` minimises the time of an iteration, ``exact-cut`` the bytes between nodes. Measured in
``benchmarks/graph_placement.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.graphs.iteration_time import Network, iteration_s, shortest_iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.models.asrpt import PlacementData, cut_bytes, least_cut, least_time
from shadowprice.solvers.graph_placement.heavy_edge import HeavyEdge
from shadowprice.solvers.graph_placement.protocol import FreeGpus, as_free
from shadowprice.solvers.programs.compile import SolverOptions, Status, compile_model
from shadowprice.solvers.programs.published import falls_back
from shadowprice.solvers.programs.solution import Infeasible

OBJECTIVES = ("time", "cut")

_CLOSE = 1e-9
"""A placement this close to a lower bound, relatively, is as good as it."""


@dataclass(frozen=True)
class Exact:
    """The best placement on any of the free GPUs.

    Parameters
    ----------
    objective : {"time", "cut"}
        Time of an iteration, or bytes between nodes.
    time_limit_s : float
        Wall time for a proof [s].
    model : callable, optional
        The programme instead of :func:`~shadowprice.models.asrpt.least_time` or ``least_cut``, with
        their parameters. One that is not as published is solved as it is, over all nodes by
        their numbers: symmetries, Heavy-Edge's placement and its bound are left aside.

    Notes
    -----
    Values are proven to a relative 1e-6, HiGHS's tolerances. The result is never worse than
    Heavy-Edge's, which is returned at once where a lower bound shows that it is best.
    """

    name: str = "exact"
    objective: str = "time"
    time_limit_s: float = 60.0
    model: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"exact placement: objective {self.objective!r}, expected one of {', '.join(OBJECTIVES)}"
            )
        if not 0 < self.time_limit_s < float("inf"):
            raise InputError(
                f"exact placement: time_limit_s is {self.time_limit_s!r}, expected seconds > 0"
            )

    def place(self, graph: JobGraph, free: FreeGpus, network: Network) -> StageMapping | None:
        """Replicas on nodes by branch and bound, in exponential time.

        Raises
        ------
        SolverError
            If the best placement is not proven within the time limit.
        """
        room = as_free(free)
        build = self._build()
        if falls_back(
            build, "Heavy-Edge and its bound are not used, and the model itself is solved"
        ):
            every = list(range(len(room)))
            given = PlacementData(graph, tuple(int(gpus) for gpus in room), network, _names(every))
            try:
                return self._solved(build(given, interchangeable=False), given, every)
            except Infeasible:
                return None
        start = HeavyEdge().place(graph, room, network)
        if start is None:
            return None
        value = self._value(graph, start, network)
        bound = shortest_iteration_s(graph, network) if self.objective == "time" else 0.0
        if value <= bound * (1 + _CLOSE):
            return start
        nodes = _distinct(room, graph.gpus)
        few = tuple(int(room[node]) for node in nodes)
        given = PlacementData(graph, few, network, _names(nodes))
        found = self._solved(build(given), given, nodes)
        return min(found, start, key=lambda mapping: self._value(graph, mapping, network))

    def _value(self, graph: JobGraph, mapping: StageMapping, network: Network) -> float:
        if self.objective == "cut":
            return cut_bytes(graph, mapping)
        return iteration_s(graph, mapping, network)

    def _build(self) -> Callable[..., Any]:
        if self.model is not None:
            return self.model
        return least_time if self.objective == "time" else least_cut

    def _solved(self, model: Any, data: PlacementData, nodes: list[int]) -> StageMapping:
        # No starting point: with one, HiGHS 1.14 has called placements optimal that are not.
        compiled = compile_model(model)
        options = SolverOptions(time_limit_s=self.time_limit_s, relative_gap=1e-6)
        solution = compiled.solve(options)
        if solution.status is not Status.OPTIMAL:
            raise SolverError(
                f"job graph {data.graph.name!r}: the best placement of {data.graph.gpus} GPUs on "
                f"{len(nodes)} nodes is not proven after {self.time_limit_s:g} s; allow more time, "
                "or use heavy-edge"
            )
        return as_mapping(compiled.value(solution, model.x), nodes)


def _names(nodes: list[int]) -> tuple[str, ...]:
    return tuple(f"node-{node}" for node in nodes)


def as_mapping(values: NDArray[np.float64], nodes: list[int]) -> StageMapping:
    """Values of x, shape (stages, nodes), as a mapping of the nodes that are used."""
    counts = np.rint(values).astype(np.int64).T.tolist()
    return tuple((node, tuple(row)) for node, row in zip(nodes, counts, strict=True) if sum(row))


def _distinct(room: NDArray[np.int64], gpus: int) -> list[int]:
    """Nodes that could matter, largest first: of equally free ones no more than the gang's size."""
    free = [node for node in np.argsort(-room, kind="stable").tolist() if room[node] > 0]
    alike = groupby(free, key=lambda node: int(room[node]))
    return [node for _, nodes in alike for node in islice(nodes, gpus)]


GRAPH_PLACEMENTS = (Exact(), Exact("exact-cut", "cut"))
