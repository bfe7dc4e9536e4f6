"""The protocol of a placement: which nodes a gang gets, and who holds what."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.effect import Pieces as Pieces
from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource
from shadowprice.solvers.placement.resource import PlannedStarts

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class Allocator(ABC):
    """Free GPUs of a cluster during one run.

    A *pool* is a set of nodes whose GPUs are interchangeable for speed: the nodes of one GPU
    type, or all nodes where types make no difference.

    A placement says where free GPUs are. What begins with :meth:`arrive` below has a default that is right where
    jobs hold whole GPUs and nothing beside them; a :class:`~shadowprice.solvers.placement.ledger.ResourceLedger` over a
    placement counts what else they hold.

    Attributes
    ----------
    counts_by_job : bool
        Whether it has to be told of jobs that arrive.
    limits_starts : bool
        Whether a gang may have to wait for what is on no node, such as room in the quota of its tenant.
    changes : bool
        Whether any limit changes with time, of which it is then told by :meth:`at`.
    in_parts : bool
        Whether jobs may hold a part of a GPU.
    cpu_memory : CpuMemoryResource
        CPUs and memory that jobs hold beside their GPUs, because they ask for them.
    """

    __slots__ = ()

    counts_by_job: ClassVar[bool] = False
    limits_starts: bool = False
    changes: bool = False
    in_parts: bool = False
    cpu_memory: CpuMemoryResource = CpuMemoryResource()

    @property
    @abstractmethod
    def free_gpus(self) -> int:
        """Free GPUs of all pools."""

    @property
    @abstractmethod
    def anywhere(self) -> bool:
        """True if a gang fits as soon as there are as many free GPUs, wherever they are."""

    @abstractmethod
    def free_in(self, pool: int) -> int:
        """Free GPUs of one pool."""

    @abstractmethod
    def pool_of(self, node: int) -> int:
        """Pool of a node."""

    @abstractmethod
    def free_by_node(self) -> list[int]:
        """Free GPUs of every node, a copy."""

    @abstractmethod
    def take(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang from the first of the pools in which it fits; None if there is none.

        Parameters
        ----------
        job : int
            Whose gang, by order of arrival.
        """

    @abstractmethod
    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs, whole, if they are all free."""

    @abstractmethod
    def give_back(self, pieces: Pieces) -> None:
        """Free whole GPUs."""

    # What jobs hold else.

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of jobs that arrive, which are numbered in order of arrival from 0."""

    @property
    def by_count(self) -> bool:
        """True if the number of free GPUs of a pool says whether a gang fits, though perhaps badly spread."""
        return True

    def free_milli_in(self, pool: int) -> int:
        """Thousandths of GPUs that nobody holds in a pool."""
        return self.free_in(pool) * WHOLE_GPU

    def fields_of(self, job: int) -> dict[Feature, Any]:
        """Fields of a run that were chosen with its GPUs: which GPU it holds a part of."""
        return {}

    def take_where(
        self, job: int, gpus: int, pools: Sequence[int], most: Callable[[int, int], int]
    ) -> Pieces | None:
        """Take a gang on GPUs for which there is room; O(nodes) more than :meth:`take`.

        Parameters
        ----------
        most : callable
            The most GPUs of a node, up to a number, for which there is room; called with both.
        """
        free = enumerate(self.free_by_node())
        hidden = tuple(
            (node, count - room)
            for node, count in free
            if count and (room := most(node, count)) < count
        )
        if hidden:
            taken = self.take_exact(hidden)
            assert taken, "GPUs that are free are not"
        pieces = self.take(job, gpus, pools)
        if hidden:
            self.give_back(hidden)
        return pieces

    def at(self, now_s: float) -> None:
        """Take note of the time, which never goes back."""

    @property
    def next_change_s(self) -> float:
        """Time at which some limit changes next [s]; infinity for never."""
        return math.inf

    def admits(self, job: int, gpus: int) -> bool:
        """True if a job may begin on so many GPUs, as far as what is on no node goes."""
        return True

    def planned_starts(self) -> PlannedStarts:
        """Room for gangs as if nobody held anything, as far as what is on no node goes."""
        return PlannedStarts()

    def hold(self, job: int, pieces: Pieces) -> bool:
        """Take what a job holds on exactly these GPUs, if it is free; what is on no node is not asked."""
        return self.take_exact(pieces)

    def resume(
        self, job: int, pieces: Pieces, partner: int | None, begun: Mapping[int, Pieces]
    ) -> bool:
        """Take the very same again that a job held before it was stopped, if it is free.

        Parameters
        ----------
        partner : int, optional
            Who holds the same GPUs now, which are then not taken again.
        begun : mapping of int to pieces
            Runs that begin in the same decision. Limits of beginnings are in the way where one of them is counted
            in the same place; else going on is free.
        """
        return partner is not None or self.take_exact(pieces)

    def release(self, job: int, pieces: Pieces) -> None:
        """Free what a job holds."""
        self.give_back(pieces)

    def join(self, job: int, partner: int, pieces: Pieces) -> bool:
        """Take what a job holds beside GPUs that it shares from now on; False, and no change, if it is not free.

        Parameters
        ----------
        partner : int
            Who has held these GPUs alone.
        """
        return True

    def leave(self, job: int, partner: int, pieces: Pieces) -> None:
        """Free what a job holds beside GPUs that its partner has to itself from now on."""

    def crowded(self, job: int, pieces: Pieces, begun: Mapping[int, Pieces]) -> bool:
        """True if more is held than may be where a job is counted and one of these runs begins."""
        return False


class Placement(Protocol):
    """A rule for placing gangs; makes an allocator for each run."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> Allocator:
        """All GPUs of a cluster, free; ``pool_of_node`` numbers the pools from 0."""


def in_turn(nodes: Iterable[int], free: Sequence[int] | Mapping[int, int], gpus: int) -> Pieces:
    """GPUs of nodes in turn, all that are free on each before the next; fewer where there are not so many."""
    pieces = []
    for node in nodes:
        if not gpus:
            break
        part = min(free[node], gpus)
        if part:
            pieces.append((node, part))
            gpus -= part
    return tuple(pieces)
