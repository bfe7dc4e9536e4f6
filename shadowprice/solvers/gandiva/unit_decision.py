"""One decision of Gandiva, written in units; keeps the book and the free GPUs in step with it."""

from __future__ import annotations

from collections.abc import Sequence

from shadowprice.errors import PolicyError
from shadowprice.solvers.gandiva.units import ServerOccupancy, Trial, Unit, fits
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State


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
            occupancy.settle(unit, ((unit.home[0][0], unit.gang),))

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

    def suits(self, unit: Unit, pieces: Pieces) -> bool:
        """True if the jobs of a unit can run there; a pair only on as many servers as before."""
        if unit.alone:
            return True
        one, other = unit.jobs
        return len(pieces) == len(unit.home) and self.state.can_share(one, other, pieces)

    def fits(self, pieces: Pieces) -> bool:
        """True if these GPUs are free after the decision so far."""
        return fits(self.free, pieces)

    def _run(self, unit: Unit, home: Pieces) -> None:
        for node, gpus in home:
            self.free[node] -= gpus
        lead, *others = unit.jobs
        done = self.decision.start_at(lead, home)
        if not (done and all(self.decision.join(other, lead) for other in others)):
            raise PolicyError(f"gandiva: jobs {unit.jobs} cannot start on nodes and GPUs {home}")
        self.touched.update(unit.jobs)
        if home != unit.home:
            self.occupancy.settle(unit, home)

    def _give_back(self, home: Pieces) -> None:
        for node, gpus in home:
            self.free[node] += gpus
