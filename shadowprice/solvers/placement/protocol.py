"""The protocol of a placement: which nodes a gang gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.terms.term import Pieces as Pieces


class Allocator(Protocol):
    """Free GPUs of a cluster during one run.

    A *pool* is a set of nodes whose GPUs are interchangeable for speed: the nodes of one GPU
    type, or all nodes where types make no difference.
    """

    @property
    def free_gpus(self) -> int:
        """Free GPUs of all pools."""

    @property
    def anywhere(self) -> bool:
        """True if a gang fits as soon as there are as many free GPUs, wherever they are."""

    def free_in(self, pool: int) -> int:
        """Free GPUs of one pool."""

    def pool_of(self, node: int) -> int:
        """Pool of a node."""

    def free_by_node(self) -> list[int]:
        """Free GPUs of every node, a copy."""

    def take(self, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """Take a gang from the first of the pools in which it fits; None if there is none."""

    def take_exact(self, pieces: Pieces) -> bool:
        """Take exactly these GPUs if they are all free."""

    def give_back(self, pieces: Pieces) -> None:
        """Free a gang's GPUs."""


class Placement(Protocol):
    """A rule for placing gangs; makes an allocator for each run."""

    @property
    def name(self) -> str:
        """Name on the command line."""

    def allocator(self, cluster: Cluster, pool_of_node: Sequence[int]) -> Allocator:
        """All GPUs of a cluster, free; ``pool_of_node`` numbers the pools from 0."""


@runtime_checkable
class JobAllocator(Allocator, Protocol):
    """An allocator that treats jobs of equal gang differently, by their models."""

    def arrive(self, model: str) -> None:
        """Take note of a job that arrives; jobs are numbered in order of arrival from 0."""

    def take_for(self, job: int, gpus: int, pools: Sequence[int]) -> Pieces | None:
        """As :meth:`take`, for a job that has arrived."""


@runtime_checkable
class HolderAllocator(JobAllocator, Protocol):
    """An allocator that knows who holds what, since jobs hold more, or less, than whole GPUs."""

    def take_exact_for(self, job: int, pieces: Pieces, *, again: bool = False) -> bool:
        """Take what a job holds on exactly these GPUs, if it is free.

        Parameters
        ----------
        again : bool
            The very same that the job held last.
        """

    def give_back_of(self, job: int, pieces: Pieces) -> None:
        """Free what a job holds."""
