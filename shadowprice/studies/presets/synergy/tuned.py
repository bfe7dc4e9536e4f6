"""The published Synergy simulator's runs with CPUs and memory as recipes that the engine can verify.

The original's rounds are simulated first (``rounds.py``). The recipe then is: work is what the original
counted, 300 s x speed for every round a job ran in; a profile has the two speeds of the original; a
policy repeats the rounds. So the engine runs them and the verifier checks them: nodes, CPUs, memory,
and that every job does exactly the work counted. Iterations are in whole numbers a round, and a job
ends with its round, as in the original; the end is 2^-12 s before the boundary, so that rounding to the
time grid never carries it past it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.execution.engine import Rounds
from shadowprice.execution.preset import RecipeInputs, RunSetup
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.cpu_memory import proportional_share
from shadowprice.instances.grid import to_grid
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.synergy.moves import apply_plan
from shadowprice.solvers.synergy.published_packing import PublishedPacking
from shadowprice.solvers.synergy.servers import ResourceRequest, share_speed
from shadowprice.studies.presets.synergy.rounds import (
    KEYS,
    ROUND_S,
    PublishedJob,
    SynergySimulation,
    SynergySimulationRound,
    simulate,
)

STATIC_START_S = 1.0
EARLY_S = 2.0**-12
"""How long before a boundary a job that ends with the round ends here [s]."""

PROFILED = tuple(
    f"{order}+{mechanism}"
    for order in KEYS
    for mechanism in ("fair", "tune")
    if mechanism == "tune" or order in ("FTF", "DRF", "TETRIS")
)
"""The original's runs that read profiles."""


def first_round_s(workload: Workload) -> float:
    """Start of the rounds [s]: 1 s for a static trace, whose jobs all come in the first second."""
    static = len(workload) > 1 and workload.arrival_s[-1] < STATIC_START_S
    return STATIC_START_S if static else 0.0


def profiled_recipe(name: str, inputs: RecipeInputs) -> RunSetup:
    """The recipe of a run such as ``SRTF+tune``.

    Work counts iterations if there are throughputs (at the proportional share), else seconds.

    Raises
    ------
    PolicyError
        Where the published simulator stops because a job cannot be placed.
    """
    workload, (cluster, sensitivity) = inputs.workload, inputs.profiled()
    jobs = published_jobs(workload, cluster, sensitivity)
    share, (order, mechanism) = proportional_share(cluster), name.split("+")
    first_s = first_round_s(workload)
    packing = PublishedPacking(cluster.gpus_per_node, share)
    done = simulate(jobs, packing, order, fair=mechanism == "fair", first_s=first_s)
    counted = np.zeros(len(workload))
    for each in done.rounds:
        for row, speed in each.speed.items():
            counted[row] += ROUND_S * speed
    last_speed = _last_speeds(done, len(workload))
    work = to_grid(counted - EARLY_S * last_speed)
    rounded = replace(workload, work=work, throughput=None, gpu_types=())
    profiles = tuple(_two_speeds(job, share) for job in jobs)
    sensitivity = Sensitivity(profiles, np.arange(len(jobs)))
    policy = Repeat(done.rounds, name=name)
    rounds = Rounds(ROUND_S, first_s)
    return RunSetup(rounded, policy, inputs.placement, rounds, sensitivity=sensitivity)


@dataclass
class _NextRound:
    """The round to repeat next."""

    number: int = 0


@dataclass(frozen=True)
class Repeat:
    """Runs jobs as they were run before, round by round."""

    rounds: tuple[SynergySimulationRound, ...] = field(repr=False)
    name: str = "repeat"
    chooses_cpu_memory: ClassVar[bool] = True
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Decision of the earlier run for this round; the same until it ends."""
        notes = state.notes(_NextRound)
        number = notes.number
        decision = Decision(state)
        if number < len(self.rounds) and state.now_s >= self.rounds[number].start_s:
            if state.now_s > self.rounds[number].start_s:
                raise PolicyError(f"{self.name}: round {number} is missed at {state.now_s} s")
            apply_plan(state, decision, self.rounds[number].grants)
            number += 1
        notes.number = number
        if number < len(self.rounds):
            decision.wake_at(self.rounds[number].start_s)
        return decision


def published_jobs(
    workload: Workload, cluster: Cluster, sensitivity: Sensitivity
) -> list[PublishedJob]:
    """The jobs as the original keeps them, with its demands and speeds."""
    share, size = proportional_share(cluster), int(cluster.gpus_per_node.max())
    seconds = np.ones(len(workload))
    if workload.throughput is not None:
        seconds = 1.0 / workload.throughput.max(axis=1)
    found = []
    for row, (gpus, work) in enumerate(
        zip(workload.gpus.tolist(), workload.work.tolist(), strict=True)
    ):
        ask, best = _demand(sensitivity.profile_of(row), row, gpus, share, size)
        arrival_s, iteration_s = float(workload.arrival_s[row]), float(seconds[row])
        found.append(PublishedJob(row, gpus, arrival_s, iteration_s, int(work), ask, best))
    return found


def _demand(
    profile: Profile, row: int, gpus: int, share: tuple[float, float], size: int
) -> tuple[ResourceRequest, float]:
    """Demand of a gang, cut to a server, and the original's speed with it."""
    best = profile.best / share_speed(profile, share)
    cpus, memory_gb = profile.demand()
    limit = [amount * size / gpus for amount in share]
    if cpus <= limit[0] and memory_gb <= limit[1]:
        return ResourceRequest(row, gpus, cpus, memory_gb), best
    if gpus > size:
        # The original cuts only what exceeds a server, and then counts the share's speed.
        cut = [
            share[k] if amount > limit[k] else amount for k, amount in enumerate((cpus, memory_gb))
        ]
        return ResourceRequest(row, gpus, *cut), 1.0
    held = min(cpus, limit[0])
    if cpus > share[0]:
        best = 1 + (best - 1) / (cpus - share[0]) * (held - share[0])
    return ResourceRequest(row, gpus, held, min(memory_gb, limit[1])), best


def _two_speeds(job: PublishedJob, share: tuple[float, float]) -> Profile:
    """Speed 1 with the share, the best with the demand."""
    ask = (job.ask.cpus, job.ask.memory_gb)
    axes = [np.unique([share[k], ask[k]]) for k in (0, 1)]
    held = np.stack(np.meshgrid(*axes, indexing="ij"))
    speed = np.ones(held.shape[1:])
    speed[(held[0] >= ask[0]) & (held[1] >= ask[1])] = job.best
    return Profile(axes[0], axes[1], speed, f"job {job.row}")


def _last_speeds(done: SynergySimulation, jobs: int) -> np.ndarray:
    """Speed of every job in its last round."""
    last = np.ones(jobs)
    for each in done.rounds:
        for row, speed in each.speed.items():
            last[row] = speed
    return last
