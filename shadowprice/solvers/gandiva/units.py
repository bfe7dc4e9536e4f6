"""Homes of units on servers: the state that Gandiva keeps from one decision to the next.

A *unit* is what takes turns: one job, or two that share GPUs. Its *home* are the GPUs on which it
runs when it is its turn; the homes of a server may add up to more GPUs than it has, and are then
time-sliced. Gandiva (OSDI'18), sec. 3.2: height, load and affinity of a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import State


@dataclass(eq=False, slots=True)
class Trial:
    """A decision that is being tried.

    Parameters
    ----------
    due_s : float
        When its effect is measured [s].
    before : float
        Rate of the unit before it [work/s]; not used for a packing.
    least : float
        A move is kept if the measured rate is at least ``least * before``.
    back : pieces
        The home to return to.
    reason : (int, int), optional
        Kind of move and where to; None for a packing, which is kept if the two make more of the
        GPUs than turns would.
    """

    due_s: float
    before: float
    least: float
    back: Pieces
    reason: tuple[int, int] | None = None


@dataclass(eq=False, slots=True)
class Unit:
    """One job or two that share, and where it is at home.

    Parameters
    ----------
    jobs : list of int
        One or two rows of the workload.
    gang : int
        GPUs that each of them asked for.
    weights : list of float
        Priorities of its jobs.
    since_s : float
        When it began to wait for the turn that it has or waits for [s].
    home : pieces
        Its GPUs.
    started_s : float
        When its turn began [s].
    trial : Trial, optional
        What is being tried with it.
    refused : set of tuple of int
        Moves that were tried in vain: kind of move, and where to.
    """

    jobs: list[int]
    gang: int
    weights: list[float]
    since_s: float
    home: Pieces = ()
    started_s: float = 0.0
    trial: Trial | None = None
    refused: set[tuple[int, int]] = field(default_factory=set)

    @property
    def weight(self) -> float:
        """Priority, the highest of its jobs."""
        return max(self.weights)

    @property
    def width(self) -> int:
        """GPUs of its home."""
        return sum(gpus for _, gpus in self.home)

    @property
    def alone(self) -> bool:
        """True if the unit is one job."""
        return len(self.jobs) == 1


class ServerOccupancy:
    """All units, and what is at home on every server.

    Attributes
    ----------
    running, waiting : dict of Unit to None
        Sets of units in a reproducible order.
    load : list of int
        GPUs that the homes on each server add up to.
    gangs : list of Counter
        Units at home on each server by gang.
    """

    def __init__(self, state: State) -> None:
        self.size: list[int] = state.free_gpus_by_node()
        for pieces in state.running.values():
            for node, gpus in pieces:
                self.size[node] += gpus
        nodes = range(len(self.size))
        self.pool = [state.allocator.pool_of(node) for node in nodes]
        self.nodes_of: dict[int, list[int]] = {}
        for node in nodes:
            self.nodes_of.setdefault(self.pool[node], []).append(node)
        self.load = [0] * len(self.size)
        self.gangs: list[Counter[int]] = [Counter() for _ in nodes]
        self.unit_of: dict[int, Unit] = {}
        self.running: dict[Unit, None] = {}
        self.waiting: dict[Unit, None] = {}
        self.next_turn_s = 0.0

    def affinity(self, node: int) -> int:
        """GPUs that most units on a server asked for, the larger if two are as many; 0 if it is idle."""
        gangs = self.gangs[node]
        return max(gangs, key=lambda gang: (gangs[gang], gang)) if gangs else 0

    def height(self, node: int) -> int:
        """Turns that the homes of a server need: ceil(load / GPUs)."""
        return -(-self.load[node] // self.size[node])

    def settle(self, unit: Unit, home: Pieces) -> None:
        """Give a unit another home."""
        self._count(unit, unit.home, -1)
        unit.home = home
        self._count(unit, home, 1)

    def admit(self, unit: Unit) -> None:
        """A unit without a home begins to wait."""
        for job in unit.jobs:
            self.unit_of[job] = unit
        self.waiting[unit] = None

    def leave(self, job: int) -> None:
        """Forget a job; its unit too if it was its last."""
        unit = self.unit_of.pop(job)
        at = unit.jobs.index(job)
        del unit.jobs[at], unit.weights[at]
        if not unit.jobs:
            self.settle(unit, ())
            self.running.pop(unit, None)
            self.waiting.pop(unit, None)
        elif unit.trial is not None and unit.trial.reason is None:
            unit.trial = None

    def merge(self, unit: Unit, host: Unit) -> None:
        """Put the job of a waiting unit into the unit whose GPUs it shares."""
        del self.waiting[unit]
        self.settle(unit, ())
        host.jobs += unit.jobs
        host.weights += unit.weights
        for job in unit.jobs:
            self.unit_of[job] = host

    def free(self) -> list[int]:
        """GPUs that no running unit holds, by node; O(nodes + running)."""
        free = list(self.size)
        for unit in self.running:
            for node, gpus in unit.home:
                free[node] -= gpus
        return free

    def _count(self, unit: Unit, home: Pieces, sign: int) -> None:
        for node, gpus in home:
            self.load[node] += sign * gpus
            gangs = self.gangs[node]
            gangs[unit.gang] += sign
            if not gangs[unit.gang]:
                del gangs[unit.gang]


def fits(free: Sequence[int], pieces: Iterable[tuple[int, int]]) -> bool:
    """True if these GPUs are free."""
    return all(free[node] >= gpus for node, gpus in pieces)
