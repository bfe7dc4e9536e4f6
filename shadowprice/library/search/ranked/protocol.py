"""The order and the choices that a search varies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.instances.instance import Instance
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, State

Ints = NDArray[np.int64]
Make = Callable[[Ints, Ints], "Ranked"]
"""Makes a policy of ranks and choices."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranked(Brief, ABC):
    """A policy that follows an order of all jobs of an instance.

    Parameters
    ----------
    rank : ndarray of int, shape (n,)
        Place of each job in the order, 0 for the first.
    choice : ndarray of int, shape (n,)
        A choice for each job, of which each kind of policy says what it is.
    preemptive : bool
        Whether running jobs may stop.
    """

    rank: Ints
    choice: Ints
    preemptive: bool
    name: str = field(default="order", init=False)
    knows: ClassVar[frozenset[Knowledge]] = frozenset()

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """Number of choices of each job, shape (n,); the choice is 0 at first, which restricts nothing."""
        return np.ones(len(instance.workload), dtype=np.int64)

    @classmethod
    def made_for(cls, instance: Instance, *, preemptive: bool) -> Make:
        """Makes the policy of ranks and choices."""

        def made(rank: Ints, choice: Ints) -> Ranked:
            return cls(rank, choice, preemptive)

        return made

    @abstractmethod
    def decide(self, state: State) -> Decision:
        """Start and stop jobs by rank and choices."""

    def in_order(self, jobs: Iterable[int]) -> list[int]:
        """Jobs by rank."""
        return sorted(jobs, key=self._places.__getitem__)

    @cached_property
    def _places(self) -> list[int]:
        """Ranks as a list, whose entries are faster to read."""
        places: list[int] = self.rank.tolist()
        return places
