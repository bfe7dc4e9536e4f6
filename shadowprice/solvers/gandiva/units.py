"""Homes of units on servers: the state that Gandiva keeps from one decision to the next.

A *unit* is what takes turns: one job, or two that share GPUs. Its *home* are the GPUs on which it
runs when it is its turn; the homes of a server may add up to more GPUs than it has, and are then
time-sliced. Gandiva (OSDI'18), sec. 3.2: height, load and affinity of a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shadowprice.errors import PolicyError
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State


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
        for node in state.down_nodes:
            # It comes up again; until then nothing of it is free.
            self.size[node] = state.environment.cluster.nodes[node].gpus
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

    def assign_home(self, unit: Unit, home: Pieces) -> None:
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
            self.assign_home(unit, ())
            self.running.pop(unit, None)
            self.waiting.pop(unit, None)
        elif unit.trial is not None and unit.trial.reason is None:
            unit.trial = None

    def merge(self, unit: Unit, host: Unit) -> None:
        """Put the job of a waiting unit into the unit whose GPUs it shares."""
        del self.waiting[unit]
        self.assign_home(unit, ())
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


# One decision of Gandiva, written in units; keeps the units and the free GPUs in step with it.


class UnitDecision:
    """A decision under construction.

    Attributes
    ----------
    due_s : float
        When to measure what is tried now [s]: a quantum from now.
    free : list of int
        GPUs of every node that nobody holds after the decision so far.
    touched : set of int
        Jobs that were started, stopped or joined; a job is touched once a decision.
    """

    def __init__(self, state: State, occupancy: ServerOccupancy, quantum_s: float) -> None:
        self.state = state
        self.occupancy = occupancy
        self.due_s = state.now_s + quantum_s
        self.decision = Decision(state)
        self.free: list[int] = state.free_gpus_by_node()
        self.touched: set[int] = set()

    def untouched(self, unit: Unit) -> bool:
        """True if nothing was decided about a unit yet."""
        return not any(job in self.touched for job in unit.jobs)

    def start(self, unit: Unit, home: Pieces) -> None:
        """Begin the turn of a waiting unit on these GPUs, which become its home.

        Raises
        ------
        PolicyError
            If they are not free, or its jobs cannot share there.
        """
        before = unit.home
        self._run(unit, home)
        occupancy = self.occupancy
        del occupancy.waiting[unit]
        occupancy.running[unit] = None
        unit.started_s = self.state.now_s
        if not unit.alone and (home != before or unit.trial is not None):
            # Elsewhere, or before it was measured: it has to be measured there.
            unit.trial = Trial(self.due_s, 0.0, 0.0, ())

    def stop(self, unit: Unit) -> None:
        """End the turn of a running unit, which waits from now on, no wider than its gang.

        A move that was not measured yet stands; a packing will be measured in the next turn.
        """
        for job in reversed(unit.jobs):
            self.decision.stop(job)
            self.touched.add(job)
        self._give_back(unit.home)
        occupancy = self.occupancy
        del occupancy.running[unit]
        occupancy.waiting[unit] = None
        unit.since_s = self.state.now_s
        if unit.alone:
            unit.trial = None
        if unit.width > unit.gang:
            occupancy.assign_home(unit, ((unit.home[0][0], unit.gang),))

    def move(self, unit: Unit, home: Pieces) -> None:
        """Let a running unit go on elsewhere, or wider or narrower; its turn goes on."""
        for job in reversed(unit.jobs):
            self.decision.stop(job)
        self._give_back(unit.home)
        self._run(unit, home)

    def join(self, unit: Unit, host: Unit) -> bool:
        """Try a waiting job on the GPUs of a running one; False, and no change, if it cannot share."""
        job, partner = unit.jobs[0], host.jobs[0]
        if not self.decision.join(job, partner):
            return False
        self.touched.update((job, partner))
        host.trial = Trial(self.due_s, 0.0, 0.0, unit.home)
        self.occupancy.merge(unit, host)
        return True

    def part(self, host: Unit) -> Unit:
        """Take the second job off shared GPUs; it waits, as a unit without a home."""
        job = host.jobs.pop()
        host.weights.pop()
        self.decision.stop(job)
        self.touched.add(job)
        host.trial = None
        return self.new_unit(job)

    def new_unit(self, job: int) -> Unit:
        """A waiting unit of one job, without a home yet."""
        weight = float(self.state.columns((job,)).weight[0])
        unit = Unit([job], self.state.gang[job], [weight], self.state.now_s)
        self.occupancy.admit(unit)
        return unit

    def pools(self, unit: Unit) -> Sequence[int]:
        """Pools in which a unit may run: a pair where it does, a job wherever it can, fastest first."""
        if unit.alone:
            return self.state.pools[unit.jobs[0]]
        return (self.occupancy.pool[unit.home[0][0]],)

    def free_for(self, unit: Unit) -> Sequence[int]:
        """GPUs of every node that are free for a waiting unit, with its CPUs and memory."""
        return self.state.allocator.cpu_memory.usable(unit.jobs, self.free, empty=False)

    def sizes_for(self, unit: Unit) -> Sequence[int]:
        """GPUs of every node that a unit can have there with its CPUs and memory, alone."""
        return self.state.allocator.cpu_memory.usable(unit.jobs, self.occupancy.size, empty=True)

    def has_room(self, unit: Unit, home: Pieces) -> bool:
        """True if nodes have CPUs and memory for a unit on these GPUs, those that it holds given back."""
        held = unit.home if unit in self.occupancy.running else ()
        return self.state.allocator.cpu_memory.suffices(unit.jobs, home, held)

    def suits(self, unit: Unit, pieces: Pieces) -> bool:
        """True if the jobs of a unit can run there; a pair only on as many servers as before."""
        if unit.alone:
            return True
        one, other = unit.jobs
        return len(pieces) == len(unit.home) and self.state.can_share(one, other, pieces)

    def fits(self, unit: Unit, home: Pieces) -> bool:
        """True if GPUs are free for a waiting unit after the decision so far, with its CPUs and memory."""
        return fits(self.free, home) and self.has_room(unit, home)

    def _run(self, unit: Unit, home: Pieces) -> None:
        for node, gpus in home:
            self.free[node] -= gpus
        lead, *others = unit.jobs
        done = self.decision.start_at(lead, home)
        if not (done and all(self.decision.join(other, lead) for other in others)):
            raise PolicyError(f"gandiva: jobs {unit.jobs} cannot start on nodes and GPUs {home}")
        self.touched.update(unit.jobs)
        if home != unit.home:
            self.occupancy.assign_home(unit, home)

    def _give_back(self, home: Pieces) -> None:
        for node, gpus in home:
            self.free[node] += gpus
