"""What a run of Gavel's simulator leaves behind: rounds, completion times, a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shadowprice.execution.presets.gavel_rounds import Key, Workers
from shadowprice.instances.grid import to_grid
from shadowprice.instances.schedule import Schedule


@dataclass(frozen=True)
class Task:
    """One job, or two jobs that share GPUs, in one round.

    Parameters
    ----------
    key : (int, int)
        Rows of the jobs in the workload; equal for a job alone.
    kind : int
        GPU type, in order of name.
    workers : tuple of int
        The peer's worker ids.
    steps : tuple of float
        Steps of each job in this round.
    end_s : float
        When both have done them [s].
    """

    key: Key
    kind: int
    workers: tuple[int, ...]
    steps: tuple[float, ...]
    end_s: float


@dataclass(frozen=True)
class PeerRound:
    """A round: when it began [s] and what ran in it; nothing, if nobody could."""

    start_s: float
    tasks: tuple[Task, ...]


@dataclass(frozen=True, eq=False)
class PeerRun:
    """A run of the peer's simulator.

    Parameters
    ----------
    end_s : mapping of str to float
        Completion time of every job [s], by id, as the peer reports it, not rounded.
    rounds : tuple of PeerRound
        All rounds, empty ones included.
    allocations : int
        How often the policy was asked.
    lease_extensions, lease_opportunities : int
        How often a task went on with the workers it had, of how many that could have.
    busy_gpu_s : float
        GPU-seconds the peer counts as busy; includes idle gaps before a first task [GPU-s].
    dropped : tuple of str
        Jobs that failed too often and never completed.
    schedule : Schedule
        A row for each task, job and node, times rounded to the grid. Both jobs of a pair hold
        its GPUs until both have done their steps, so that one of them may idle for less than a
        step a round: of the verifier's rules, ``work`` does not hold for it. A task shorter than
        half a tick has no row.
    """

    end_s: Mapping[str, float]
    rounds: tuple[PeerRound, ...]
    allocations: int
    lease_extensions: int
    lease_opportunities: int
    busy_gpu_s: float
    dropped: tuple[str, ...]
    schedule: Schedule

    @property
    def clock_s(self) -> float:
        """When the simulation ended [s]: the peer's makespan."""
        return self.rounds[-1].start_s if self.rounds else 0.0


def schedule_of(rounds: Sequence[PeerRound], workers: Workers) -> Schedule:
    """The rounds as rows, in order of time."""
    rows: list[tuple[int, int, int, int]] = []
    times: list[tuple[float, float]] = []
    for each in rounds:
        for task in each.tasks:
            one, other = task.key
            jobs = [(one, -1)] if one == other else [(one, other), (other, one)]
            nodes, counts = np.unique(workers.node[list(task.workers)], return_counts=True)
            for who, beside in jobs:
                for node, held in zip(nodes.tolist(), counts.tolist(), strict=True):
                    rows.append((who, node, held, beside))
                    times.append((each.start_s, task.end_s))
    job, at, gpus, partner = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    start_s, end_s = to_grid(np.array(times).reshape(-1, 2)).T.copy()
    kept = start_s < end_s
    return Schedule(
        job[kept],
        at[kept],
        gpus[kept],
        start_s[kept],
        end_s[kept],
        np.zeros(int(kept.sum())),
        partner=partner[kept],
    )
