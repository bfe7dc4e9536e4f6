"""Job graphs of a workload: one graph for each job, and how long a mapping makes it run.

Jobs of one kind share a graph, and alpha does not depend on which nodes a mapping names, only on
what each holds. The time of an iteration is therefore computed once for each graph and *shape*,
the rows of a mapping without the nodes, sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.iteration_time import (
    Network,
    iteration_s,
    longest_iteration_s,
    shortest_iteration_s,
    shortest_spread_iteration_s,
)
from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, ceil_time, up_to_grid
from shadowprice.instances.workload import Workload

Shape = tuple[tuple[int, ...], ...]
"""Replicas of each stage on every node that has some, sorted: a mapping without its nodes."""


@dataclass(frozen=True, eq=False, repr=False)
class JobGraphs(Brief):
    """The graph of every job, and the network that iterations depend on.

    Parameters
    ----------
    graph : tuple of JobGraph
        The different graphs.
    of : ndarray of int, shape (n,)
        Position in ``graph`` of each job's graph.
    network : Network
        Bandwidths, the same on all nodes.

    Raises
    ------
    InputError
        If a job's graph is none of those given.
    """

    graph: tuple[JobGraph, ...]
    of: NDArray[np.int64]
    network: Network

    def __post_init__(self) -> None:
        of = np.array(self.of)
        if of.ndim != 1 or (of.size and of.dtype.kind not in "iu"):
            raise InputError(
                f"job graphs: of has shape {of.shape} and kind {of.dtype}, expected one integer a job"
            )
        of = of.astype(np.int64)
        outside = (of < 0) | (of >= len(self.graph))
        if outside.any():
            job = int(outside.argmax())
            raise InputError(
                f"job graphs: job {job} has graph {of[job]}, expected 0 to {len(self.graph) - 1}"
            )
        of.flags.writeable = False
        object.__setattr__(self, "graph", tuple(self.graph))
        object.__setattr__(self, "of", of)

    @cached_property
    def shortest_iteration_s(self) -> NDArray[np.float64]:
        """alpha_min of every graph [s], shape (graphs,)."""
        return np.array([shortest_iteration_s(each, self.network) for each in self.graph])

    @cached_property
    def shortest_spread_iteration_s(self) -> NDArray[np.float64]:
        """Least alpha of every graph on several nodes [s], or less; shape (graphs,)."""
        return np.array([shortest_spread_iteration_s(each, self.network) for each in self.graph])

    @cached_property
    def longest_iteration_s(self) -> NDArray[np.float64]:
        """alpha_max of every graph [s], shape (graphs,)."""
        return np.array([longest_iteration_s(each, self.network) for each in self.graph])

    @cached_property
    def times(self) -> IterationTimes:
        """Alpha of the mappings asked for so far."""
        return IterationTimes(self.network)

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> JobGraphs:
        """The graphs of some of the jobs, as :meth:`Workload.select`."""
        return JobGraphs(self.graph, self.of[keep], self.network)

    def shortest_s(self, workload: Workload) -> NDArray[np.float64]:
        """Run time [s] of every job if each iteration took alpha_min, on the time grid; shape (n,).

        A lower bound of its run time under every mapping. O(n).
        """
        return run_s(workload.work, self.shortest_iteration_s[self.of])

    def shortest_spread_s(self, workload: Workload) -> NDArray[np.float64]:
        """A lower bound of the run time [s] of every job under the mappings on several nodes; shape (n,). O(n)."""
        return run_s(workload.work, self.shortest_spread_iteration_s[self.of])

    def check(self, cluster: Cluster, workload: Workload) -> None:
        """Refuse graphs that do not belong to these jobs, or not on these nodes.

        Raises
        ------
        InputError
            If there is not one graph a job of its gang size, the workload has throughputs, a node
            has more GPUs than the network's largest, or a job could run for longer than times go.
        """
        source = workload.source
        if workload.throughput is not None:
            raise InputError(
                f"{source}: has throughputs and job graphs, expected one of the two: with graphs all "
                "GPUs are alike"
            )
        if len(self.of) != len(workload):
            raise InputError(
                f"{source}: job graphs of {len(self.of)} jobs, expected {len(workload)}"
            )
        gangs = np.array([graph.gpus for graph in self.graph], dtype=np.int64)[self.of]
        self._refuse(
            workload, gangs != workload.gpus, "gang is {0}, its graph has {1} replicas", gangs
        )
        most, limit = int(cluster.gpus_per_node.max()), self.network.gpus_per_node
        if most > limit:
            raise InputError(
                f"cluster {cluster}: a node has {most} GPUs, the network of the job graphs has at "
                f"most {limit} a node"
            )
        with np.errstate(over="ignore"):
            longest = workload.work * self.longest_iteration_s[self.of]
        say = "runs on {0} GPUs for up to {1} s, times go to 2**32 s"
        self._refuse(workload, ~(longest < MAX_TIME_S), say, longest)

    def _refuse(
        self, workload: Workload, bad: NDArray[np.bool_], say: str, values: NDArray[np.generic]
    ) -> None:
        if bad.any():
            job = int(bad.argmax())
            text = say.format(workload.gpus[job], values[job])
            graph = self.graph[self.of[job]].name
            raise InputError(
                f"{workload.source}: job {workload.id[job]!r} with graph {graph!r}: {text}"
            )


class IterationTimes:
    """alpha of the mappings asked for so far; the verifier keeps one of its own.

    Parameters
    ----------
    network : Network
    """

    __slots__ = ("_known", "_network")

    def __init__(self, network: Network) -> None:
        self._network = network
        self._known: dict[tuple[int, Shape], float] = {}

    def iteration_s(self, number: int, graph: JobGraph, shape: Shape) -> float:
        """Alpha of a graph, numbered by the caller, on nodes that hold these replicas [s].

        O(nodes of the shape) where it was asked for before.

        Raises
        ------
        InputError
            If the shape is none of this graph on these nodes.
        """
        key = (number, shape)
        found = self._known.get(key)
        if found is None:
            found = iteration_s(graph, tuple(enumerate(shape)), self._network)
            self._known[key] = found
        return found


def shape_of(stages: Iterable[tuple[int, ...]]) -> Shape:
    """Shape of a mapping from its rows without the nodes."""
    return tuple(sorted(stages))


def in_order(graph: JobGraph, pieces: Sequence[tuple[int, int]]) -> StageMapping:
    """Replicas stage by stage on pieces (node, gpus) in the order given; O(stages + pieces).

    What a job gets of a policy that chooses GPUs only.
    """
    mapping = []
    stages = [stage.replicas for stage in graph.stages]
    s = 0
    for node, room in pieces:
        counts = [0] * len(stages)
        while room:
            counts[s] = min(room, stages[s])
            room -= counts[s]
            stages[s] -= counts[s]
            s += not stages[s]
        mapping.append((node, tuple(counts)))
    return tuple(mapping)


def run_s(iterations: NDArray[np.float64], iteration_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Run times [s] of iterations, rounded up to the time grid, at least a tick; any one shape."""
    with np.errstate(over="ignore"):
        times: NDArray[np.float64] = np.maximum(up_to_grid(iterations * iteration_s), TICK_S)
    return times


def one_run_s(iterations: float, iteration_s: float) -> float:
    """One entry of :func:`run_s`, faster than an array of one."""
    return ceil_time(iterations * iteration_s) or TICK_S
