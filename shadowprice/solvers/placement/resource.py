"""Resources that jobs hold beside GPUs, by place: how much there is, and who may begin to hold it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shadowprice.instances.terms.declared import Amount, Place
from shadowprice.instances.terms.effect import Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class Resource(ABC):
    """Amounts that jobs hold during one run, at places of which each has a limit; jobs in order of arrival.

    Those with :attr:`on_nodes` are asked node by node where there is room, and hold on two nodes what two runs on
    one each would; the others are asked for a gang before it has nodes, and those :attr:`of_gangs` again when it has.

    Attributes
    ----------
    on_nodes : bool
        Whether places are on nodes.
    of_gangs : bool
        Whether what a run holds depends on all its nodes together.
    of_starts : bool
        Whether limits are of beginnings: then a run that goes on may hold more than what has become the limit.
    says : bool
        Whether there is anything to ask: False while no limit can be in the way of a job that has arrived.
    """

    on_nodes: bool
    of_gangs: bool = False
    of_starts: bool = False
    says: bool = True

    def __init__(self) -> None:
        self._held: dict[Place, int] = {}

    @abstractmethod
    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of jobs that arrive."""

    @abstractmethod
    def amounts(self, job: int, pieces: Pieces, *, shared: bool) -> Iterable[Amount]:
        """Amounts that a job holds with these GPUs; a place may come several times.

        Parameters
        ----------
        shared : bool
            Whether another job holds the same GPUs.
        """

    @abstractmethod
    def limit(self, place: Place) -> int:
        """Most that may be held at a place now."""

    def at(self, now_s: float) -> None:
        """Take note of the time, which never goes back."""

    @property
    def next_change_s(self) -> float:
        """Time at which a limit changes next [s]; infinity for never."""
        return math.inf

    def left(self, place: Place) -> int:
        """Amount that may still be held at a place; negative where more is held."""
        return self.limit(place) - self._held.get(place, 0)

    def most(self, job: int, node: int, gpus: int) -> int:
        """Most GPUs of a node, up to a number, for which there is room; O(gpus) where a subclass says no better."""
        return next((g for g in range(gpus, 0, -1) if self.room(job, ((node, g),))), 0)

    def room(self, job: int, pieces: Pieces) -> bool:
        """True if there is what a job holds on these GPUs by itself, O(nodes of the gang)."""
        held = self._held
        after: dict[Place, int] = {}
        for place, amount in self.amounts(job, pieces, shared=False):
            after[place] = more = after.get(place, held.get(place, 0)) + amount
            if more > self.limit(place):
                return False
        return True

    def within(self, places: Iterable[Place]) -> bool:
        """True if at none of these places more is held than may be."""
        return all(self._held.get(place, 0) <= self.limit(place) for place in places)

    def places(self, job: int, pieces: Pieces) -> set[Place]:
        """Places at which a job holds something on these GPUs."""
        return {place for place, _ in self.amounts(job, pieces, shared=False)}

    def take(self, job: int, pieces: Pieces, *, shared: bool = False) -> None:
        """Count what a job holds on these GPUs."""
        held = self._held
        for place, amount in self.amounts(job, pieces, shared=shared):
            held[place] = held.get(place, 0) + amount

    def give_back(self, job: int, pieces: Pieces, *, shared: bool = False) -> None:
        """Count it no more."""
        held = self._held
        for place, amount in self.amounts(job, pieces, shared=shared):
            held[place] -= amount

    def share(self, job: int, partner: int, pieces: Pieces) -> None:
        """Count a job that runs on the GPUs of another, which has held them alone."""
        self.give_back(partner, pieces)
        self.take(partner, pieces, shared=True)
        self.take(job, pieces, shared=True)

    def part(self, job: int, partner: int, pieces: Pieces) -> None:
        """Count a job no more that has shared GPUs, which its partner has to itself from now on."""
        self.give_back(job, pieces, shared=True)
        self.give_back(partner, pieces, shared=True)
        self.take(partner, pieces)

    def begun_at(self, places: Collection[Place], begun: Mapping[int, Pieces]) -> bool:
        """True if one of the runs that begin holds something at one of these places."""
        return any(not self.places(job, pieces).isdisjoint(places) for job, pieces in begun.items())


class PlannedStarts:
    """Room at places that are on no node while a policy plans who runs, as if nobody held anything.

    Parameters
    ----------
    resources : sequence of Resource
        What is held there.
    """

    def __init__(self, resources: Sequence[Resource] = ()) -> None:
        # What is left at the places that somebody asked about.
        self._left: list[tuple[Resource, dict[Place, int]]] = [(each, {}) for each in resources]

    def take(self, job: int, gpus: int) -> bool:
        """Count a job on so many GPUs beside those that were counted; False, and no change, if there is no room."""
        after: list[tuple[dict[Place, int], Place, int]] = []
        for each, left in self._left:
            for place, amount in each.amounts(job, ((0, gpus),), shared=False):
                rest = (left[place] if place in left else each.limit(place)) - amount
                if rest < 0:
                    return False
                after.append((left, place, rest))
        for left, place, rest in after:
            left[place] = rest
        return True
