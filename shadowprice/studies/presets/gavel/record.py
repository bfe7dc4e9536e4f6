"""Record of a run of Gavel's simulator: rounds, completion times, a schedule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.studies.presets.gavel.rounds import Key, Workers


@dataclass(frozen=True)
class RoundTask:
    """One job, or two jobs that share GPUs, in one round.

    Parameters
    ----------
    key : (int, int)
        Rows of the jobs in the workload; equal for a job alone.
    gpu_type : int
        GPU type, in order of name.
    workers : tuple of int
        The original's worker ids.
    steps : tuple of float
        Steps of each job in this round.
    end_s : float
        When both have done them [s].
    """

    key: Key
    gpu_type: int
    workers: tuple[int, ...]
    steps: tuple[float, ...]
    end_s: float


@dataclass(frozen=True)
class GavelSimulationRound:
    """A round: when it began [s] and what ran in it; nothing, if nobody could."""

    start_s: float
    tasks: tuple[RoundTask, ...]


@dataclass(frozen=True, eq=False)
class GavelSimulation:
    """A run of the original's simulator.

    Parameters
    ----------
    end_s : mapping of str to float
        Completion time of every job [s], by id, as the original reports it, not rounded.
    rounds : tuple of GavelSimulationRound
        All rounds, empty ones included.
    allocations : int
        How often the policy was asked.
    lease_extensions, lease_opportunities : int
        How often a task went on with the workers it had, of how many that could have.
    busy_gpu_s : float
        GPU-seconds the original counts as busy; includes idle gaps before a first task [GPU-s].
    dropped : tuple of str
        Jobs that failed too often and never completed.
    schedule : Schedule
        A row for each task, job and node, in whole ticks: a job alone runs for as many as its steps so
        far take, exactly, and rounds begin with the first tick after that. Both jobs of a pair hold
        its GPUs until both have done their steps, so that one of them may idle for less than a
        step a round: of the verifier's rules, ``work`` does not hold for it. A task that takes no
        tick, or whose steps do not count, has no row.
    """

    end_s: Mapping[str, float]
    rounds: tuple[GavelSimulationRound, ...]
    allocations: int
    lease_extensions: int
    lease_opportunities: int
    busy_gpu_s: float
    dropped: tuple[str, ...]
    schedule: Schedule

    @property
    def clock_s(self) -> float:
        """Time at which the simulation ended [s]: the original's makespan."""
        return self.rounds[-1].start_s if self.rounds else 0.0


def schedule_of(
    rounds: Sequence[GavelSimulationRound],
    workers: Workers,
    instance: Instance,
    failed: Collection[tuple[int, Key]],
    completed: Mapping[int, int],
) -> Schedule:
    """The rounds as rows, in order of time.

    Parameters
    ----------
    failed : collection of (int, key)
        Rounds, by number, and tasks whose steps the original did not count.
    completed : mapping of int to int
        Round, by number, in which each job was complete to the original, which counts in floats: the
        exact sum of a job's steps may then be a little less than its work.
    """
    rows: list[tuple[int, int, int, int]] = []
    times: list[tuple[int, int]] = []
    progress = _Progress(instance, workers)
    node_of: list[int] = workers.node.tolist()
    begins = [math.ceil(each.start_s * TICKS_PER_S) for each in rounds]
    free = 0
    for number, each in enumerate(rounds):
        start = max(begins[number], free)
        until = begins[number + 1] if number + 1 < len(rounds) else None
        for task in each.tasks:
            if (number, task.key) in failed:
                continue
            last = completed.get(task.key[0]) == number
            end = progress.end(task, start, until, last=last)
            if end <= start:
                continue
            free = max(free, end)
            one, other = task.key
            jobs = [(one, -1)] if one == other else [(one, other), (other, one)]
            held_on = sorted(Counter(node_of[worker] for worker in task.workers).items())
            for who, beside in jobs:
                for node, held in held_on:
                    rows.append((who, node, held, beside))
                    times.append((start, end))
    job, at, gpus, partner = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    start_s, end_s = (np.array(times, dtype=np.float64).reshape(-1, 2) / TICKS_PER_S).T.copy()
    return Schedule(job, at, gpus, start_s, end_s, np.zeros(len(job)), partner=partner)


class _Progress:
    """Shares of the jobs that the original counted, and those that the rows make, exactly.

    All numbers are whole: a share is one over another, since there are millions of tasks.
    """

    def __init__(self, instance: Instance, workers: Workers) -> None:
        column = [instance.cluster.gpu_types.index(name) for name in workers.types]
        whole_s = instance.processing_s[:, column]
        ticks = np.where(np.isfinite(whole_s), whole_s, 0.0) * TICKS_PER_S
        self._whole: list[list[int]] = ticks.astype(np.int64).tolist()
        self._work = [steps.as_integer_ratio() for steps in instance.workload.work.tolist()]
        self._counted = [(0, 1)] * len(self._work)
        self._before = [(0, 1)] * len(self._work)
        self._ran: list[dict[int, int]] = [{} for _ in self._work]

    def end(self, task: RoundTask, start: int, until: int | None, *, last: bool) -> int:
        """The tick at which the jobs of a task have done its steps; not after the next round begins.

        But the last steps of a job alone are done in any case: the next round then begins a tick later.
        """
        jobs = sorted(set(task.key))
        for job, steps in zip(jobs, task.steps, strict=True):
            self._count(job, steps)
        if len(jobs) > 1:
            for job in jobs:
                self._before[job], self._ran[job] = self._share(job), {}
            end = math.ceil(task.end_s * TICKS_PER_S)
            return end if until is None else min(end, until)
        job = jobs[0]
        whole = self._whole[job][task.gpu_type]
        counted, of = self._share(job)
        last = last or counted >= of
        if last:
            counted = of = 1
        made, unit = self._made(job)
        end = start - (made * of - counted * unit) * whole // (of * unit)
        if until is not None and not last:
            end = min(end, until)
        ran = self._ran[job]
        ran[whole] = ran.get(whole, 0) + max(end - start, 0)
        return end

    def _count(self, job: int, steps: float) -> None:
        """Add steps, which are a whole number of some power of 1/2, to those that the original counted."""
        done, of = self._counted[job]
        more, unit = float(steps).as_integer_ratio()
        finer = max(of, unit)
        self._counted[job] = (done * (finer // of) + more * (finer // unit), finer)

    def _share(self, job: int) -> tuple[int, int]:
        """Share of the job's work that the original counted."""
        done, unit = self._counted[job]
        steps, of = self._work[job]
        return done * of, unit * steps

    def _made(self, job: int) -> tuple[int, int]:
        """Share of the job's work that the rows make."""
        made, unit = self._before[job]
        for whole, ran in self._ran[job].items():
            made, unit = made * whole + ran * unit, unit * whole
        return made, unit
