"""Agents of jobs with goodput: what each has seen of its job, and what it makes of it.

Source: Qiao et al., Pollux, OSDI 2021, sec. 4.1 (recalled); what counts as seen, and how far a job may grow, as in its
artifact (petuum/adaptdl, branch osdi21-artifact, ``simulator/simulator.py``; read). An agent knows of its application
which batches are possible, and of its speed what was measured where it ran: the tables are closed to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shadowprice.instances.goodput.application import Batching
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.policy import State
from shadowprice.solvers.pollux.speed_model import (
    BatchLimits,
    Observed,
    StepTime,
    best_batch,
    fitted,
)
from shadowprice.solvers.pollux.speed_ups import ElasticJob


@dataclass
class JobAgent:
    """Memory of what one job has seen.

    Attributes
    ----------
    observed : dict of (int, int, int) to Observed
        By nodes, replicas, local batch; the first measurement of each.
    noise : tuple of (float, float)
        Squared norm and variance of the gradient when it last ran.
    attained_gpu_s : float
        GPU time that it has held [GPU-s].
    starts : int
    """

    observed: dict[tuple[int, int, int], Observed] = field(default_factory=dict)
    noise: tuple[float, float] = (0.0, 0.0)
    attained_gpu_s: float = 0.0
    starts: int = 0
    _theta: StepTime | None = None

    def theta(self) -> StepTime | None:
        """Parameters of its step time, fitted anew if it has seen more; None before its first run."""
        if self._theta is None and self.observed:
            self._theta = fitted(list(self.observed.values()))
        return self._theta

    def see(self, seen: Observed, noise: tuple[float, float]) -> None:
        """Take in a measurement."""
        self.noise = noise
        key = seen.nodes, seen.replicas, seen.local_batch
        if key not in self.observed:
            self.observed[key] = seen
            self._theta = None


@dataclass
class Agents:
    """Agents of all jobs that are there; notes of a policy.

    Attributes
    ----------
    of : dict of int to JobAgent
    at_s : float
        Time of the last decision [s].
    """

    of: dict[int, JobAgent] = field(default_factory=dict)
    at_s: float = 0.0

    def update(self, state: State, goodput: GoodputJobs) -> None:
        """Take in what happened since the last decision; O(jobs that are there)."""
        for job in state.completed:
            self.of.pop(job, None)
        since_s, self.at_s = state.now_s - self.at_s, state.now_s
        for job, pieces in state.running.items():
            agent, report = self.of[job], goodput.report(job)
            agent.attained_gpu_s += since_s * sum(gpus for _, gpus in pieces)
            if report is not None:
                nodes, replicas = len(report.placement), sum(report.placement)
                local = report.batching.local
                seen = Observed(nodes, replicas, local, report.step_s, report.sync_s)
                agent.see(seen, (report.grad_sqr, report.grad_var))
        for job in state.waiting:
            self.of.setdefault(job, JobAgent())

    def in_order(self) -> list[int]:
        """Jobs, those with the least GPU time first, then by arrival."""
        return sorted(self.of, key=lambda job: (self.of[job].attained_gpu_s, job))

    def job(self, state: State, goodput: GoodputJobs, job: int, most: int) -> ElasticJob:
        """A job as programmes see it.

        It may have twice the GPUs that it has run on, one before its first run, and no more than ``most``.
        """
        agent = self.of[job]
        ran_on = max((replicas for _, replicas, _ in agent.observed), default=0)
        limit = min(max(2 * ran_on, 1), goodput.widest(job), most)
        age_s = state.now_s - float(state.columns([job]).arrival_s[0])
        restarts = max(agent.starts - 1, 0)
        limits = limits_of(goodput, job)
        return ElasticJob(agent.theta(), agent.noise, limits, limit, age_s, restarts)

    def batching(self, goodput: GoodputJobs, job: int, placement: tuple[int, ...]) -> Batching:
        """Batch that a job trains with on a placement: the one of the largest goodput that it expects."""
        width, theta = sum(placement), self.of[job].theta()
        if goodput.batch_size(job) or theta is None:
            return goodput.batching(job, width)
        limits = limits_of(goodput, job)
        across = np.array([len(placement) > 1])
        best = best_batch(theta, self.of[job].noise, limits, across, np.array([width]))
        accumulated = int(best.accumulated[0])
        local = min(int(best.local[0]), limits.largest // (width * (accumulated + 1)))
        return Batching(local, accumulated)


def limits_of(goodput: GoodputJobs, job: int) -> BatchLimits:
    """Batches that a job can have."""
    known, fixed = goodput.application(job), goodput.batch_size(job)
    return BatchLimits(
        known.init_batch, known.most_batch, known.least_local, known.largest_local, fixed
    )
