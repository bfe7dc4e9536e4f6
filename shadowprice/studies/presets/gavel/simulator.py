"""Gavel's simulator, job by job: github.com/stanford-futuredata/gavel at c4fa400.

Its own loop, because its rounds have no fixed length: a round lasts until its last task ends,
each task taking ``min(int(rate x 360), steps left)`` whole steps. Arrivals are seen between rounds
only. The policy is asked again when a job has come or gone, and 1,920 s have passed since it was
last asked. Nothing is charged for preemption, and placement has no effect on speed.

Quirks kept, here only: a task that ends early holds its GPUs until the round ends; of two jobs
that share GPUs both end with the later one; jobs that came since the last allocation are counted
when GPUs are handed out, but get none; after an idle gap the first task counts as having run since
the round before; a reset at time 0 does not count as one; a task of fewer steps than GPUs fails,
and a job that fails five times is dropped; a job that can never be placed is a PolicyError here,
an endless loop there.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.job_window import WindowProgress, refuse_dropped
from shadowprice.execution.preset import Preset, PublishedLoop
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.gavel.rounds import select
from shadowprice.solvers.placement.count import Count
from shadowprice.studies.presets.gavel.inputs import Inputs, PairRates, rates_by_type
from shadowprice.studies.presets.gavel.policies import ALL_POLICIES, PublishedPolicy
from shadowprice.studies.presets.gavel.record import (
    GavelSimulation,
    GavelSimulationRound,
    RoundTask,
    schedule_of,
)
from shadowprice.studies.presets.gavel.rounds import Key, TimeReceived, Workers

KNOWS = frozenset({Feature.RATES, Feature.TYPES, Feature.SHARING, Feature.WINDOW})
"""Features of instances that the original's simulator can express."""

NAME = "gavel"
SOURCE = "github.com/stanford-futuredata/gavel at c4fa400"
ROUND_S = 360.0
RESET_S = 1920.0
"""Least time between two allocations [s]."""

TYPE_ORDER = ("v100", "p100", "k80")
"""The types the original knows, in the order in which it serves them."""

MAX_FAILURES = 5
_IDLE_ROUNDS = 1000
"""Rounds in a row in which no job does a step and none comes or goes: a hang."""


def simulate_gavel(
    instance: Instance, policy: str | PublishedPolicy, *, seed: int = 0, round_s: float = ROUND_S
) -> GavelSimulation:
    """Run the original's simulator over an instance.

    Parameters
    ----------
    instance : Instance
        Jobs with throughputs, in steps/s by GPU type, and a cluster of types v100, p100 and k80;
        the overheads must be free. Nodes are the original's servers. Policies that let jobs share GPUs
        need the rates of pairs, ``sharing_rates``.
    policy : str or PublishedPolicy
        One of :data:`.policies.ALL_POLICIES` by the original's name, or a policy of your own for this run alone.
    seed : int
        The original's ``--seed``.
    round_s : float
        Longest duration of a round [s].

    Raises
    ------
    InputError
        If the instance has no throughputs, overheads, or a GPU type that the original does not know;
        if the policy is unknown, or pairs without a table.
    EarlyEndError
        If the run ends with a window of jobs, and the last job arrives before they are complete.
    PolicyError
        If an allocation is no table of numbers, or jobs are left waiting for ever, or those of a window
        until the run is given up.
    """
    if isinstance(policy, str):
        if policy not in ALL_POLICIES:
            known = ", ".join(sorted(ALL_POLICIES))
            raise InputError(f"preset {NAME}: policy {policy!r}, expected one of {known}")
        policy = ALL_POLICIES[policy](seed)
    if policy.pairs and instance.sharing_rates is None:
        raise InputError(
            f"preset {NAME}: policy {policy.name!r} lets jobs share GPUs, expected a table of "
            "throughputs with the rates of pairs"
        )
    require(instance, KNOWS, f"preset {NAME}")
    return _Simulator(instance, policy, seed, round_s).run()


class _Simulator:
    """State of one run; jobs are rows of the workload, types are in order of name."""

    def __init__(
        self, instance: Instance, policy: PublishedPolicy, seed: int, round_s: float
    ) -> None:
        self.instance = instance
        workload = self.workload = instance.workload
        self.policy, self.round_s = policy, round_s
        self.workers = Workers.of(instance.cluster)
        self.capacity = self.workers.capacity
        types = self.workers.types
        self.rates = rates_by_type(instance, types, TYPE_ORDER)
        self.pair_rates = PairRates(
            workload, instance.sharing_rates if policy.pairs else None, types
        )
        self.inputs = Inputs(workload, policy, self.rates)
        self.ledger = TimeReceived.empty(len(types), round_s / 2.0)
        # The original seeds every use of random numbers apart, the order of types with seed + 5.
        self.random = random.Random(seed + 5)
        self.arrival_s: list[float] = workload.arrival_s.tolist()
        self.left: list[float] = workload.work.tolist()
        self.gpus: list[int] = workload.gpus.tolist()
        self.failures = [0] * len(workload)
        self.active: dict[int, None] = {}
        self.admitted = self.idle_rounds = 0
        self.busy_gpu_s = 0.0
        self.now_s = self.reset_s = self.round_start_s = self.round_end_s = 0.0
        self.stale = True
        self.running: tuple[RoundTask, ...] = ()
        self.held: dict[Key, tuple[int, ...]] = {}
        self.end_s: dict[str, float] = {}
        self.dropped: list[str] = []
        self.rounds: list[GavelSimulationRound] = []
        self.failed: set[tuple[int, Key]] = set()
        self.completed: dict[int, int] = {}
        self.allocations = self.extensions = self.opportunities = 0
        window = instance.until_complete
        self.window = None if window is None else WindowProgress(window, workload)

    def run(self) -> GavelSimulation:
        """Round after round until nobody is left, or the jobs of a window are complete."""
        while self.active or self.admitted < len(self.left):
            self._advance()
            self._complete()
            self._admit()
            window = self.window
            if window is not None and window.over(self.now_s, self.admitted, self.policy.name):
                break
            self._allocate()
            self._start(self._place())
        return GavelSimulation(
            self.end_s,
            tuple(self.rounds),
            self.allocations,
            self.extensions,
            self.opportunities,
            self.busy_gpu_s,
            tuple(self.dropped),
            schedule_of(self.rounds, self.workers, self.instance, self.failed, self.completed),
        )

    def _advance(self) -> None:
        """Go to the end of the round, or to the next arrival if nothing runs."""
        if self.running:
            # After an idle gap this is still the end of the round before it: the gap counts as run.
            self.round_start_s = self.round_end_s
            self.round_end_s = self.now_s = max(task.end_s for task in self.running)
        elif self.admitted < len(self.left):
            self.now_s = self.arrival_s[self.admitted]
        elif self.stale:
            self.reset_s = 0.0
        else:
            self._hang()
        self.idle_rounds += 1
        if self.idle_rounds > _IDLE_ROUNDS:
            self._hang()

    def _hang(self) -> None:
        """The original would go on for ever."""
        job = next(iter(self.active))
        raise PolicyError(
            f"{self.policy.name}: leaves {len(self.active)} jobs waiting for ever at "
            f"{self.now_s} s, the first is {self.workload.id[job]!r} ({self.gpus[job]} GPUs)"
        )

    def _complete(self) -> None:
        """Count the tasks of the round, the latest first, ties by job."""
        for task in sorted(self.running, key=lambda task: (-task.end_s, task.key)):
            seconds = task.end_s - self.round_start_s
            jobs = sorted(set(task.key))
            gang = len(task.workers)
            if seconds <= 0 or any(n <= 0 or (n < gang and gang > 1) for n in task.steps):
                self.failed.add((len(self.rounds) - 1, task.key))
                self._fail(jobs)
                continue
            self.ledger.credit(task.key, task.gpu_type, seconds)
            self.busy_gpu_s += seconds * gang
            self.idle_rounds = 0
            for job, steps in zip(jobs, task.steps, strict=True):
                self.failures[job] = 0
                self.left[job] -= steps
                if self.left[job] <= 0:
                    self.end_s[str(self.workload.id[job])] = task.end_s
                    self.completed[job] = len(self.rounds) - 1
                    self._leave(job)

    def _fail(self, jobs: list[int]) -> None:
        """A task that did nothing; pairs may fail as often as they like."""
        self.stale = True
        if len(jobs) > 1:
            return
        self.failures[jobs[0]] += 1
        if self.failures[jobs[0]] >= MAX_FAILURES:
            self.dropped.append(str(self.workload.id[jobs[0]]))
            self._leave(jobs[0])

    def _leave(self, job: int) -> None:
        self.ledger.remove(job)
        if self.window is not None:
            self.window.leave((job,))
        del self.active[job]
        self.stale = True
        self.idle_rounds = 0

    def _admit(self) -> None:
        while self.admitted < len(self.left) and self.arrival_s[self.admitted] <= self.now_s:
            job, gang = self.admitted, self.gpus[self.admitted]
            mates = [other for other in self.active if self.gpus[other] == gang]
            pairs = self.pair_rates.of(mates if self.policy.pairs else [], job)
            self.ledger.admit(job, gang, self.rates[job], pairs)
            self.active[job] = None
            self.admitted += 1
            self.stale = True
            self.idle_rounds = 0

    def _allocate(self) -> None:
        """Ask the policy, if anything has changed and it was not asked lately."""
        elapsed_s = self.now_s - self.reset_s
        if not self.stale or (elapsed_s < RESET_S and self.reset_s != 0.0):
            return
        self.ledger.reset(elapsed_s)
        self.reset_s = self.now_s
        self.stale = False
        self.allocations += 1
        if self.active:
            problem = self.inputs.problem(
                self.workers.types, self.capacity, self.ledger, self.left, self.now_s
            )
            fractions = self.policy.allocate(problem)
            shape = (len(problem) + len(problem.pairs), len(self.capacity))
            if fractions.shape != shape or not np.isfinite(fractions).all():
                raise PolicyError(
                    f"{self.policy.name}: at {self.now_s} s allocates a table of shape "
                    f"{fractions.shape}, expected finite fractions of shape {shape}"
                )
            self.ledger.allocate(fractions)

    def _place(self) -> dict[Key, tuple[int, ...]]:
        """Worker ids of everything that runs in the next round."""
        order = [name for name in TYPE_ORDER if name in self.workers.types]
        if self.policy.shuffles:
            self.random.shuffle(order)
        types = [self.workers.types.index(name) for name in order]
        ledger, rows = self.ledger, self.ledger.rows()
        keys = (ledger.priorities(rows), ledger.deficit_s, ledger.allocation)
        chosen = select(rows, keys, self.capacity, types, only_positive=self.policy.only_positive)
        row = chosen.row
        columns = (rows.first[row], rows.second[row], rows.gpus[row], ledger.allocated[row])
        entries = [
            ((first, second), gpus, allocated)
            for first, second, gpus, allocated in zip(*(c.tolist() for c in columns), strict=True)
        ]
        placed: dict[Key, tuple[int, ...]] = {}
        for gpu_type in types:
            here = [entries[k] for k in (chosen.gpu_type == gpu_type).nonzero()[0].tolist()]
            placed |= self.workers.place(gpu_type, here, self.held)
        return placed

    def _start(self, placed: dict[Key, tuple[int, ...]]) -> None:
        """Begin a round; a lease is extended where the workers are those of the round before."""
        self.opportunities += sum(
            first in self.active or second in self.active for first, second in self.held
        )
        self.extensions += sum(
            set(self.held.get(key, ())) == set(workers) for key, workers in placed.items()
        )
        self.held = placed
        self.running = tuple(self._task(key, workers) for key, workers in placed.items())
        self.rounds.append(GavelSimulationRound(self.now_s, self.running))

    def _task(self, key: Key, workers: tuple[int, ...]) -> RoundTask:
        row, gpu_type = self.ledger.row_of[key], self.workers.type_of(workers[0])
        rates = [
            float(self.ledger.rate_first[row, gpu_type]),
            float(self.ledger.rate_second[row, gpu_type]),
        ]
        jobs = sorted(set(key))
        steps = tuple(
            min(int(rate * self.round_s), self.left[job])
            for job, rate in zip(jobs, rates, strict=False)
        )
        ends = (self.now_s + n / rate for n, rate in zip(steps, rates, strict=False))
        return RoundTask(key, gpu_type, workers, steps, max(self.now_s, *ends))


def _loop(name: str) -> Callable[[Instance, int], Schedule]:
    def schedule(instance: Instance, seed: int) -> Schedule:
        policy = ALL_POLICIES[name](seed)
        if policy.pairs:
            raise InputError(
                f"preset {NAME}: under {name!r} a pair waits for its slower half, which no verified "
                "schedule can express; simulate_gavel gives its completion times"
            )
        found = simulate_gavel(instance, policy, seed=seed)
        if instance.until_complete is not None:
            refuse_dropped(instance.until_complete, instance.workload, found.dropped, policy.name)
        return found.schedule

    return schedule


PRESET = Preset(
    name="gavel",
    source=f"{SOURCE}, scheduler/scheduler.py",
    placements={"servers": Count()},
    loops={name: PublishedLoop(_loop(name), KNOWS) for name in ALL_POLICIES},
)
