"""The published Synergy simulator's rounds with CPUs and memory: github.com/msr-fiddle/synergy at 1bb2bed.

Rules, beyond those of ``presets/synergy.py``; with them all recorded runs come out to the second:

* Demands are those of the profile's largest speed, of a gang: CPUs, then memory, are cut to one server's
  if they exceed it, the speed then read off a straight line over CPUs between share and demand; for a
  gang wider than a server they are cut to the share, at speed 1.
* ``+tune``: jobs are placed in their order (LAS: most GPUs first), GPU by GPU on the first servers
  where one fits with its part of the demand; else with the share if the demand exceeds it anywhere;
  else after others were cut down. Jobs on the chosen servers are taken on fewest servers first, then by
  most CPUs, then most memory for each GPU, whether they hold more than their share or not, until what
  each holds in excess covers what is short.
* A job that was cut down runs at speed 1 in this round, one that was not at its best: two numbers, not
  the table.
* Orders are computed before speeds are set back to best: SRTF, FTF and Tetris see a job that was cut
  down in the last round at speed 1 and all others at their best.
* FTF serves the least delayed first. DRF and Tetris are by best-case demand, also with ``+fair``.
* Who has not run for 1000 h goes before the others for the rest of its life.

The original states demands apart from its tables: 20 GB for language models, whose table begins at 20.83.
Give such a profile 20 as its first column.

Where a job cannot be placed after that the published code stops; here PolicyError is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.solvers.synergy.published_packing import PublishedPacking
from shadowprice.solvers.synergy.servers import ResourceRequest, ServerGrant

ROUND_S = 300.0
BOOST_S = 1000 * 3600.0


@dataclass
class PublishedJob:
    """A job as the original keeps it.

    Parameters
    ----------
    row, gpus : int
        Row in the workload, gang.
    arrival_s, iteration_s : float
        Arrival [s]; time of an iteration with the proportional share [s].
    iterations : int
        Iterations to do.
    ask : ResourceRequest
        Best-case demand.
    best : float
        Speed with it.
    speed : float
        Speed last set.
    done : int
        Iterations done.
    attained_s, last_s : float
        Time it has run [s]; end of its last round [s], negative before the first.
    boosted : bool
        Whether it once waited for longer than :data:`BOOST_S`.
    """

    row: int
    gpus: int
    arrival_s: float
    iteration_s: float
    iterations: int
    ask: ResourceRequest
    best: float
    speed: float = 1.0
    done: int = 0
    attained_s: float = 0.0
    last_s: float = -1.0
    boosted: bool = False

    def __post_init__(self) -> None:
        self.speed = self.best

    def remaining_s(self, fair: bool) -> float:
        """Time left [s] at the speed last set."""
        left = self.iteration_s * (self.iterations - self.done)
        return left if fair else left / self.speed

    def advance(self, speed: float) -> None:
        """One round at a speed, in whole iterations."""
        self.done = min(
            self.done + math.floor(ROUND_S / (self.iteration_s / speed)), self.iterations
        )
        self.attained_s += ROUND_S


@dataclass(frozen=True)
class SynergySimulationRound:
    """A round: its beginning [s], and what every job that ran held, at which speed."""

    start_s: float
    grants: dict[int, ServerGrant]
    speed: dict[int, float]


@dataclass(frozen=True)
class SynergySimulation:
    """A run of the original.

    Parameters
    ----------
    end_s : ndarray, shape (n,)
        Completion time of every job [s].
    rounds : tuple of SynergySimulationRound
    """

    end_s: NDArray[np.float64]
    rounds: tuple[SynergySimulationRound, ...] = field(repr=False)


@dataclass(frozen=True)
class Setting:
    """Shares of the cluster, and whether jobs run with proportional shares."""

    total: tuple[float, float, float]
    fair: bool


Key = Callable[[PublishedJob, float, Setting], float]


def _shares(job: PublishedJob, setting: Setting) -> tuple[float, float, float]:
    gpus, cpus, memory_gb = setting.total
    return (
        job.gpus / gpus,
        job.ask.cpus * job.gpus / cpus,
        job.ask.memory_gb * job.gpus / memory_gb,
    )


def _rho(job: PublishedJob, now_s: float, setting: Setting) -> float:
    ideal_s = job.iteration_s * job.iterations
    return (now_s - job.arrival_s + job.remaining_s(setting.fair)) / ideal_s


KEYS: dict[str, Key] = {
    "FIFO": lambda job, now_s, setting: job.arrival_s,
    "SRTF": lambda job, now_s, setting: job.remaining_s(setting.fair),
    "LAS": lambda job, now_s, setting: job.attained_s * job.gpus,
    "FTF": _rho,
    "DRF": lambda job, now_s, setting: max(_shares(job, setting)),
    "TETRIS": lambda job, now_s, setting: (
        job.remaining_s(setting.fair) * sum(_shares(job, setting))
    ),
}
"""By the original's names."""


def simulate(
    jobs: Sequence[PublishedJob],
    packing: PublishedPacking,
    order: str,
    *,
    fair: bool,
    first_s: float,
) -> SynergySimulation:
    """Run the original's rounds until all jobs have finished; O(rounds x live jobs x servers).

    Raises
    ------
    PolicyError
        If a job cannot be placed.
    """
    size, share = packing.size, packing.share
    gpus_total = int(size.sum())
    setting = Setting((gpus_total, gpus_total * share[0], gpus_total * share[1]), fair)
    waiting = sorted(jobs, key=lambda job: job.arrival_s)
    end_s = np.zeros(len(jobs))
    live: list[PublishedJob] = []
    rounds: list[SynergySimulationRound] = []
    now_s = first_s + math.ceil(max(waiting[0].arrival_s - first_s, 0.0) / ROUND_S) * ROUND_S
    while waiting or live:
        while waiting and waiting[0].arrival_s <= now_s:
            live.append(waiting.pop(0))
        runnable = _order(live, KEYS[order], now_s, setting, gpus_total)
        if order == "LAS" and not fair:
            runnable.sort(key=lambda job: -job.gpus)
        grants = packing.plan(runnable, fair=fair)
        speed = {job.row: 1.0 if fair else grants[job.row][1] for job in runnable}
        rounds.append(
            SynergySimulationRound(now_s, {row: g for row, (g, _) in grants.items()}, speed)
        )
        now_s += ROUND_S
        for job in runnable:
            job.advance(speed[job.row])
            job.last_s = now_s
            if job.done >= job.iterations:
                end_s[job.row] = now_s
        live = [job for job in live if job.done < job.iterations]
    return SynergySimulation(end_s, tuple(rounds))


def _order(
    live: list[PublishedJob], key: Key, now_s: float, setting: Setting, free: int
) -> list[PublishedJob]:
    """Sort; set speeds back to best; take jobs in order while there are GPUs, skipping."""
    live.sort(key=lambda job: (not job.boosted, key(job, now_s, setting), job.arrival_s))
    runnable = []
    for job in live:
        job.speed = job.best
        if job.gpus <= free:
            runnable.append(job)
            free -= job.gpus
        since_s = job.arrival_s if job.last_s < 0 else job.last_s
        job.boosted |= now_s - since_s > BOOST_S
    return runnable
