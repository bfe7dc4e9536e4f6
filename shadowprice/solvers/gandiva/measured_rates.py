"""Measurements by introspection: rates of running jobs, and nothing else.

Gandiva (OSDI'18), sec. 3.1 "profiling": the time of a minibatch before and after a decision says
whether to keep it. GPU utilisation, by which the paper orders what to try, is not seen here. In its
place stands the share of its own rate that a job kept beside others, averaged over jobs of its kind:
jobs of low utilisation lose little and take little (derived).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shadowprice.solvers.gandiva.units import ServerOccupancy, Unit
from shadowprice.solvers.policy import State

Kind = tuple[str, int]
"""Model and gang; a name of its own for a job of unknown model."""

Place = tuple[int, int, int]
"""Pool, servers and GPUs of a run."""


def place_of(occupancy: ServerOccupancy, unit: Unit) -> Place:
    """On what kind of GPUs a unit is at home."""
    return occupancy.pool[unit.home[0][0]], len(unit.home), unit.width


@dataclass
class MeasuredRates:
    """Rates by job and place, and what pairs made of them.

    Attributes
    ----------
    rate : dict of int to float
        Rates of the running jobs [work/s], as they are now.
    alone : dict of int to dict of place to float
        Rates of jobs that had their GPUs to themselves [work/s].
    pairs : dict of (place, kind, kind) to float
        What two kinds made of shared GPUs when last tried: the sum of their shares.
    refused : set of (int, int)
        Jobs that were tried together in vain, the smaller row first.
    """

    rate: dict[int, float] = field(default_factory=dict)
    alone: dict[int, dict[Place, float]] = field(default_factory=dict)
    pairs: dict[tuple[Place, Kind, Kind], float] = field(default_factory=dict)
    refused: set[tuple[int, int]] = field(default_factory=set)
    _kinds: dict[int, Kind] = field(default_factory=dict)
    _shares: dict[Kind, tuple[float, int]] = field(default_factory=dict)

    def observe(self, state: State, occupancy: ServerOccupancy) -> None:
        """Read the rates of all running jobs; O(running)."""
        jobs = list(state.running)
        self.rate = dict(zip(jobs, state.columns(jobs).rate.tolist(), strict=True))
        for unit in occupancy.running:
            if unit.alone:
                job = unit.jobs[0]
                self.alone.setdefault(job, {})[place_of(occupancy, unit)] = self.rate[job]

    def admit(self, state: State, jobs: list[int]) -> None:
        """Note the kinds of jobs that arrived."""
        for job, model in zip(jobs, state.columns(jobs).model.tolist(), strict=True):
            self._kinds[job] = (model or f"job {job}", state.gang[job])

    def forget(self, job: int) -> None:
        """Forget a job that finished, not its kind."""
        self.alone.pop(job, None)
        self.rate.pop(job, None)
        self._kinds.pop(job, None)

    def kind(self, job: int) -> Kind:
        """Kind of a live job."""
        return self._kinds[job]

    def gain(self, occupancy: ServerOccupancy, pair: Unit) -> float:
        """Gain of a pair on its GPUs now, 1 being that of time slicing: the sum of its shares."""
        place = place_of(occupancy, pair)
        return sum(self.rate[job] / self.alone[job][place] for job in pair.jobs)

    def learn(self, occupancy: ServerOccupancy, pair: Unit) -> None:
        """Remember what a tried pair made of its GPUs."""
        place = place_of(occupancy, pair)
        for job in pair.jobs:
            kind = self.kind(job)
            total, count = self._shares.get(kind, (0.0, 0))
            share = self.rate[job] / self.alone[job][place]
            self._shares[kind] = (total + share, count + 1)
        first, second = sorted(self.kind(job) for job in pair.jobs)
        self.pairs[place, first, second] = self.gain(occupancy, pair)

    def promise(self, place: Place, one: Kind, other: Kind) -> float:
        """Gain to expect of two kinds: as measured, else from their shares, 1 for an unknown kind."""
        known = self.pairs.get((place, min(one, other), max(one, other)))
        if known is not None:
            return known
        return self._share(one) + self._share(other)

    def hurts(self, place: Place, one: Kind, other: Kind) -> bool:
        """True if these two kinds were tried there and gained nothing."""
        known = self.pairs.get((place, min(one, other), max(one, other)))
        return known is not None and not gains(known)

    def _share(self, kind: Kind) -> float:
        total, count = self._shares.get(kind, (1.0, 1))
        return total / count


def gains(total: float) -> bool:
    """True if shares with this sum beat time slicing on the same GPUs, beyond rounding."""
    return total > 1.0 + 1e-6
