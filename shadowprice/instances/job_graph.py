"""Job graphs: one training job as stages with replicas, and the traffic between them.

The job model of A-SRPT (Luo, Liu, Lee, Shroff, arXiv 2501.05563), symbols of its section on the
system model as recalled: stage s has k_s replicas, each on one GPU. Data parallelism is one stage
with many replicas, pipeline parallelism many stages with one, mixed parallelism both; a
tensor-parallel layer is a group of stages that exchange activations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

from shadowprice.errors import InputError

StageMapping = tuple[tuple[int, tuple[int, ...]], ...]
"""Where replicas are: pairs (node, replicas of each stage there)."""


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
    forward_s: float
    backward_s: float
    parameter_bytes: float = 0.0

    def __post_init__(self) -> None:
        if (
            isinstance(self.replicas, bool)
            or not isinstance(self.replicas, int)
            or self.replicas < 1
        ):
            raise InputError(
                f"stage {self.name!r}: replicas is {self.replicas!r}, expected an integer >= 1"
            )
        for name in ("forward_s", "backward_s", "parameter_bytes"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 <= value < float("inf")
            ):
                raise InputError(
                    f"stage {self.name!r}: {name} is {value!r}, expected a number >= 0"
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
    """

    source: int
    target: int
    bytes_per_replica: float


@dataclass(frozen=True)
class JobGraph:
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
        If there are no stages, names repeat, a link is not between two of them, or links form a cycle.
    """

    name: str
    stages: tuple[Stage, ...]
    links: tuple[Link, ...] = ()
    microbatches: int = field(default=0)

    def __post_init__(self) -> None:
        if not self.stages:
            raise InputError(f"job graph {self.name!r}: has no stages")
        names = [stage.name for stage in self.stages]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"job graph {self.name!r}: two stages are called {twice!r}")
        if (
            isinstance(self.microbatches, bool)
            or not isinstance(self.microbatches, int)
            or self.microbatches < 0
        ):
            raise InputError(
                f"job graph {self.name!r}: microbatches is {self.microbatches!r}, expected an integer >= 0"
            )
        for link in self.links:
            inside = 0 <= link.source < len(names) and 0 <= link.target < len(names)
            if not inside or link.source == link.target:
                raise InputError(
                    f"job graph {self.name!r}: a link from {link.source} to {link.target}, expected two "
                    f"different stages of 0 to {len(names) - 1}"
                )
            if not 0 <= link.bytes_per_replica < float("inf"):
                raise InputError(
                    f"job graph {self.name!r}: a link of {link.bytes_per_replica!r} bytes, expected >= 0"
                )
        if not nx.is_directed_acyclic_graph(self.stage_graph):
            cycle = nx.find_cycle(self.stage_graph)
            path = " -> ".join(names[source] for source, _ in cycle)
            raise InputError(f"job graph {self.name!r}: links form a cycle: {path}")

    @cached_property
    def stage_graph(self) -> nx.DiGraph:
        """Stages as vertices, links as edges with ``bytes_per_replica``."""
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(self.stages)))
        for link in self.links:
            graph.add_edge(link.source, link.target, bytes_per_replica=link.bytes_per_replica)
        return graph

    @property
    def gpus(self) -> int:
        """Gang size, the sum of all replicas [GPUs]."""
        return sum(stage.replicas for stage in self.stages)
