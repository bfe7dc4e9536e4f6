"""Small worlds: jobs and nodes as plain data, for exhaustive search.

Nothing here or in the other files of the search is of the package: what a job does on GPUs, how fast it is and what it
pays is written again from ``docs/semantics.md``, so that an error of the package is not repeated. The search places
jobs anew every second. What it finds are schedules that exist: each least cost is one that no lower bound may
exceed, and that no optimum of the class may exceed either. Nodes that fail are not searched: bounds speak of nodes that
never do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

TICKS = 1 << 20
"""Ticks of a second, which is a slot of the search."""
WHOLE = 1000
"""Thousandths of a GPU."""
CORES = "cores"
NOBODY = -1

Counts = tuple[int, ...]
"""Numbers by node, or by stage."""


@dataclass(frozen=True)
class SmallNode:
    """A node: GPUs of a kind, CPUs and memory [GB]."""

    gpus: int
    kind: str = "gpu"
    cpus: int = 0
    memory_gb: int = 0


@dataclass(frozen=True)
class SmallStage:
    """Replicas of a stage, their compute time [s], and bytes of parameters."""

    replicas: int
    compute_s: Fraction
    parameter_bytes: int = 0


@dataclass(frozen=True)
class SmallGraph:
    """Stages, links (source, target, bytes that a replica of the source sends), and bandwidths [bytes/s]."""

    stages: tuple[SmallStage, ...]
    links: tuple[tuple[int, int, int], ...]
    inside: int
    nic: int
    gpus_per_node: int


@dataclass(frozen=True)
class SmallProfile:
    """Speeds by CPUs and memory [GB] for each GPU: those of the point at or below what a job has."""

    cpus: tuple[int, ...]
    memory_gb: tuple[int, ...]
    speed: tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class SmallJob:
    """A job.

    ``rates`` are work a second by kind of GPU, none for 1 everywhere; ``widest`` is the most GPUs that it may
    hold, every doubling of which multiplies its speed by ``doubling``; ``spread`` is its speed on more nodes than it
    needs.
    """

    release: int
    gang: int
    work: Fraction
    weight: Fraction = Fraction(1)
    model: str = "a"
    rates: Mapping[str, Fraction] | None = None
    tenant: str = ""
    milli: int = WHOLE
    cpus: int = 0
    memory_gb: int = 0
    spread: Fraction = Fraction(1)
    widest: int = 0
    doubling: Fraction = Fraction(2)
    profile: SmallProfile | None = None
    graph: SmallGraph | None = None
    on_cores: bool = False


@dataclass(frozen=True)
class SmallCopies:
    """Rounds [s] in which jobs run as copies on whole nodes, charges [s], and most copies of a job."""

    round_s: int
    restart_s: Fraction
    averaging_s: Fraction
    most: int


@dataclass(frozen=True)
class SmallRacks:
    """Nodes of each rack, speeds of gangs across nodes of one and across several, and most of these on each uplink."""

    nodes: int
    across_nodes: Fraction
    across_racks: Fraction
    uplink: int

    def of(self, at: Sequence[int]) -> set[int]:
        """Racks on which somebody with so many GPUs of every node is."""
        return {node // self.nodes for node, n in enumerate(at) if n}


@dataclass(frozen=True)
class World:
    """All that is given.

    ``pairs`` are rates (kind, model, model, gang) of two jobs on the same GPUs, ``down`` nodes with the times from and
    to which they are down, ``checkpoints`` progress between two and the time of one [s].
    """

    features: tuple[str, ...]
    seed: int
    nodes: tuple[SmallNode, ...]
    jobs: tuple[SmallJob, ...]
    pairs: Mapping[tuple[str, str, str, int], tuple[Fraction, Fraction]] = field(
        default_factory=dict
    )
    charges: tuple[Fraction, Fraction, Fraction] = (Fraction(0), Fraction(0), Fraction(0))
    quotas: tuple[tuple[int, Mapping[str, int]], ...] = ()
    down: tuple[tuple[int, int, int], ...] = ()
    checkpoints: tuple[Fraction, Fraction] | None = None
    window: tuple[int, int] | None = None
    stopped: int | None = None
    restarts: bool = False
    copies: SmallCopies | None = None
    racks: SmallRacks | None = None

    @property
    def counted(self) -> tuple[int, ...]:
        """Jobs whose completions count."""
        every = range(len(self.jobs))[slice(*self.window or (None,))]
        late = self.stopped is not None
        return tuple(j for j in every if not late or self.jobs[j].release < (self.stopped or 0))


@dataclass(frozen=True)
class Klass:
    """A class of schedules: what its schedules may do at most."""

    preemptive: bool
    sharing: bool = False
    elastic: bool = False
    consolidated: bool = False


def of_one_weight(world: World) -> World:
    """The world with jobs of weight 1."""
    return replace(world, jobs=tuple(replace(job, weight=Fraction(1)) for job in world.jobs))


def all_at_once(world: World) -> World:
    """The world with jobs that are all there from 0 on."""
    return replace(world, jobs=tuple(replace(job, release=0) for job in world.jobs))
