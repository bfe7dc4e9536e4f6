"""Job graphs: one training job as stages with replicas, and the traffic between them.

The job model of A-SRPT (Luo, Liu, Lee, Shroff, arXiv 2501.05563), symbols of its section on the
system model as recalled: stage s has k_s replicas, each on one GPU. Data parallelism is one stage
with many replicas, pipeline parallelism many stages with one, mixed parallelism both; a
tensor-parallel layer is a group of stages that exchange activations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.entries import ONE_LINE, on_one_line, shown

if TYPE_CHECKING:
    import networkx as nx


StageMapping = tuple[tuple[int, tuple[int, ...]], ...]
"""Where replicas are: pairs (node, replicas of each stage there)."""


Exact: TypeAlias = int | float
"""A number that stays whole if it is, however large: files keep it as it was given."""

MOST_REPLICAS = 2**31 - 1
"""Most replicas of a stage, and most microbatches."""

LARGEST_AMOUNT = 1e30
"""Most bytes or seconds of anything: far from overflow, and far beyond any machine."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Replicas that hold the same parameters.

    Parameters
    ----------
    name : str
    replicas : int
        k_s, at least 1; each takes one GPU.
    forward_s, backward_s : float
        Compute time of one replica in one iteration [s].
    parameter_bytes : float
        h_s, bytes of parameters that its replicas reduce together in every iteration.
    """

    name: str
    replicas: int
    forward_s: Exact
    backward_s: Exact
    parameter_bytes: Exact = 0.0

    def __post_init__(self) -> None:
        if not _is_integer(self.replicas, 1):
            raise InputError(
                f"stage {self.name!r}: replicas is {self.replicas!r:.80}, "
                f"expected an integer from 1 to {MOST_REPLICAS}"
            )
        for name in ("forward_s", "backward_s", "parameter_bytes"):
            value = getattr(self, name)
            if not _is_amount(value):
                raise InputError(
                    f"stage {self.name!r}: {name} is {value!r:.80}, "
                    f"expected a number from 0 to {LARGEST_AMOUNT}"
                )


@dataclass(frozen=True, slots=True)
class Link:
    """Activations from one stage to another, and gradients of the same size back.

    Parameters
    ----------
    source, target : int
        Positions of the stages.
    bytes_per_replica : float
        d_s, bytes a replica of the source sends in one iteration, spread evenly over the replicas
        of the target.
    exchange : bool
        Whether both stages are parts of one step that compute at the same time and exchange
        activations (tensor parallelism), so that the link makes the pipeline no deeper.
    """

    source: int
    target: int
    bytes_per_replica: Exact
    exchange: bool = False


@dataclass(frozen=True, repr=False)
class JobGraph(Brief):
    """One training job.

    Parameters
    ----------
    name : str
    stages : tuple of Stage
    links : tuple of Link
        Without cycles; a chain for a pipeline.
    microbatches : int
        q > 0: a pipeline that is flushed every iteration, (q + S - 1) / q times slower; 0: steady.

    Raises
    ------
    InputError
        If there are no stages, names repeat, a link is not between two of them or is there twice, or
        links form a cycle.
    """

    name: str
    stages: tuple[Stage, ...]
    links: tuple[Link, ...] = ()
    microbatches: int = field(default=0)

    def __post_init__(self) -> None:
        import networkx as nx

        if not self.stages:
            raise InputError(f"job graph {self.name!r}: has no stages")
        names = [stage.name for stage in self.stages]
        for name in (self.name, *names):
            if not isinstance(name, str) or not on_one_line(name):
                raise InputError(f"job graph: name is {shown(name)}, expected {ONE_LINE}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"job graph {self.name!r}: two stages are called {twice!r}")
        if not _is_integer(self.microbatches, 0):
            raise InputError(
                f"job graph {self.name!r}: microbatches is {self.microbatches!r:.80}, "
                f"expected an integer from 0 to {MOST_REPLICAS}"
            )
        self._check_links(names)
        if not nx.is_directed_acyclic_graph(self.stage_graph):
            cycle = nx.find_cycle(self.stage_graph)
            path = " -> ".join(names[source] for source, _ in cycle)
            raise InputError(f"job graph {self.name!r}: links form a cycle: {path}")

    def _check_links(self, names: list[str]) -> None:
        pairs: set[tuple[int, int]] = set()
        for link in self.links:
            inside = 0 <= link.source < len(names) and 0 <= link.target < len(names)
            if not inside or link.source == link.target:
                raise InputError(
                    f"job graph {self.name!r}: a link from {link.source} to {link.target}, expected two "
                    f"different stages of 0 to {len(names) - 1}"
                )
            between = f"{names[link.source]!r} to {names[link.target]!r}"
            if not _is_amount(link.bytes_per_replica):
                raise InputError(
                    f"job graph {self.name!r}: link from {between} has {link.bytes_per_replica!r:.80} "
                    f"bytes_per_replica, expected a number from 0 to {LARGEST_AMOUNT}"
                )
            if (link.source, link.target) in pairs:
                raise InputError(
                    f"job graph {self.name!r}: two links from {between}, expected one with their sum"
                )
            pairs.add((link.source, link.target))

    @cached_property
    def stage_graph(self) -> nx.DiGraph:
        """Stages as vertices, links as edges with ``bytes_per_replica``."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.stages)))
        for link in self.links:
            graph.add_edge(link.source, link.target, bytes_per_replica=link.bytes_per_replica)
        return graph

    @property
    def gpus(self) -> int:
        """Gang size, the sum of all replicas [GPUs]."""
        return sum(stage.replicas for stage in self.stages)

    @cached_property
    def replicas(self) -> NDArray[np.int64]:
        """k_s, shape (stages,)."""
        return _frozen(np.array([stage.replicas for stage in self.stages], dtype=np.int64))

    @property
    def link_ends(self) -> list[tuple[int, int, float]]:
        """A stage, one it exchanges with, and the bytes that its replicas send or receive there each, by stage."""
        k = [stage.replicas for stage in self.stages]
        sent = [(x.source, x.target, float(x.bytes_per_replica)) for x in self.links]
        # A replica of the target receives its part of what all replicas of the source send.
        received = [(t, s, amount * (k[s] / k[t])) for s, t, amount in sent]
        return sorted(sent + received, key=lambda end: end[0])

    @cached_property
    def ring_bytes(self) -> NDArray[np.float64]:
        """2 (k_s - 1) / k_s h_s, bytes over each connection of a stage's ring, shape (stages,)."""
        parameters = np.array([stage.parameter_bytes for stage in self.stages], dtype=np.float64)
        return _frozen(2.0 * ((self.replicas - 1) / self.replicas) * parameters)

    @cached_property
    def depth(self) -> int:
        """Stages on the longest path of links that are no exchanges."""
        import networkx as nx

        steps = nx.DiGraph((x.source, x.target) for x in self.links if not x.exchange)
        return len(nx.dag_longest_path(steps, weight=None)) or 1

    @cached_property
    def pair_bytes(self) -> dict[tuple[int, int], float]:
        """Bytes of an iteration between two replicas, both directions together; O(S + L).

        For stages s < t with a link the activations and gradients between a replica of s and one
        of t, 2 d_s / k_t if s sends; for (s, s) with k_s > 1 its part of AllReduce,
        (2 (k_s - 1) / k_s) h_s / (k_s - 1). These are the weights of Heavy-Edge's graph as
        derived; the published ones were not at hand.
        """
        weights: dict[tuple[int, int], float] = {}
        for s, stage in enumerate(self.stages):
            if stage.replicas > 1:
                weights[s, s] = 2.0 * stage.parameter_bytes / stage.replicas
        for link in self.links:
            pair = (min(link.source, link.target), max(link.source, link.target))
            weights[pair] = 2.0 * link.bytes_per_replica / self.stages[link.target].replicas
        return weights

    def slower(self, factor: float) -> JobGraph:
        """The graph whose iterations take so many times as long under each mapping, but for rounding.

        All that takes time is multiplied: computing, and the bytes that are sent.
        """
        stages = tuple(
            replace(
                stage,
                forward_s=stage.forward_s * factor,
                backward_s=stage.backward_s * factor,
                parameter_bytes=stage.parameter_bytes * factor,
            )
            for stage in self.stages
        )
        links = tuple(
            replace(link, bytes_per_replica=link.bytes_per_replica * factor) for link in self.links
        )
        return JobGraph(self.name, stages, links, self.microbatches)

    def to_networkx(self) -> nx.Graph:
        """The graph of replicas that placements partition.

        Returns
        -------
        networkx.Graph
            Vertices (stage, replica), sorted; edges with ``weight`` as in ``pair_bytes``, those of
            weight 0 left out. O(g^2) edges for g GPUs: for large gangs use ``pair_bytes``.
        """
        import networkx as nx

        graph = nx.Graph(name=self.name)
        own = [[(s, u) for u in range(stage.replicas)] for s, stage in enumerate(self.stages)]
        graph.add_nodes_from(vertex for vertices in own for vertex in vertices)
        for (s, t), weight in self.pair_bytes.items():
            pairs = combinations(own[s], 2) if s == t else product(own[s], own[t])
            if weight > 0:
                graph.add_edges_from(pairs, weight=weight)
        return graph


def _is_integer(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MOST_REPLICAS


def _is_amount(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value <= LARGEST_AMOUNT  # type: ignore[operator]


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    values.flags.writeable = False
    return values
