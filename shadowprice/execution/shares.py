"""Runs in shares: every job makes the progress that its fractions of time say, without rounds, gangs or charges.

An allocation policy decides again whenever jobs come or go. No cluster runs so, since fractions of gangs
cannot be handed out at once; rounds (:mod:`shadowprice.solvers.gavel.rounds`) follow them. Theorems on
allocations are about such runs. Time and progress are exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance, pool_throughput
from shadowprice.solvers.gavel.allocation import Allocation, AllocationPolicy
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation as find_allocation

KNOWS = frozenset({Feature.RATES, Feature.TYPES})
"""Features of instances that can be run in shares."""


@dataclass(frozen=True, eq=False)
class ShareStep:
    """Time in which nobody comes or goes.

    Parameters
    ----------
    start_s, end_s : Fraction
        From when to when [s].
    jobs : ndarray of int, shape (jobs,)
        Rows of the jobs that are there.
    allocation : Allocation
        Theirs, in this order.
    rate : tuple of Fraction
        Work a second of each of them.
    """

    start_s: Fraction
    end_s: Fraction
    jobs: NDArray[np.int64]
    allocation: Allocation
    rate: tuple[Fraction, ...]


@dataclass(frozen=True, eq=False)
class SharesRun:
    """A run in shares.

    Parameters
    ----------
    instance : Instance
    steps : tuple of ShareStep
        In order; in between nobody is there.
    end_s : tuple of Fraction
        Completion of each job [s].
    """

    instance: Instance
    steps: tuple[ShareStep, ...]
    end_s: tuple[Fraction, ...]

    @property
    def total_completion_s(self) -> Fraction:
        """Weighted sum of completion times [s]."""
        weight = self.instance.workload.weight.tolist()
        return sum((Fraction(w) * c for w, c in zip(weight, self.end_s, strict=True)), Fraction(0))


def run_in_shares(instance: Instance, policy: str | AllocationPolicy) -> SharesRun:
    """Run an instance under an allocation policy, in shares; at most 2 n allocations.

    The arithmetic grows with the number of jobs: for some hundred jobs at most.

    Raises
    ------
    InputError
        If the instance has more than speeds by type, or the policy is told the work left or packs jobs.
    PolicyError
        If jobs are there and the policy gives nobody anything.
    """
    chosen = find_allocation(policy) if isinstance(policy, str) else policy
    _expect(instance, chosen)
    jobs = instance.workload
    left = [Fraction(work) for work in jobs.work.tolist()]
    arrivals = [Fraction(at) for at in jobs.arrival_s.tolist()]
    order = sorted(range(len(jobs)), key=lambda job: (arrivals[job], job))
    workspace, steps = Workspace(), []
    end = [Fraction(0)] * len(jobs)
    live: list[int] = []
    now, coming = Fraction(0), 0
    while live or coming < len(order):
        if not live:
            now = arrivals[order[coming]]
        while coming < len(order) and arrivals[order[coming]] <= now:
            live.append(order[coming])
            coming += 1
        rows = np.array(live, dtype=np.int64)
        allocation = chosen.allocate(_problem(instance, rows, float(now)), workspace)
        rate = exact_rates(allocation)
        until = min(
            (now + left[job] / speed for job, speed in zip(live, rate, strict=True) if speed),
            default=None,
        )
        if coming < len(order):
            arrival = arrivals[order[coming]]
            until = arrival if until is None else min(until, arrival)
        if until is None:
            raise PolicyError(f"{chosen.name}: gives nothing to any of {len(live)} jobs at {now} s")
        steps.append(ShareStep(now, until, rows, allocation, rate))
        for job, speed in zip(live, rate, strict=True):
            left[job] -= speed * (until - now)
            end[job] = until
        now, live = until, [job for job in live if left[job]]
    return SharesRun(instance, tuple(steps), tuple(end))


def exact_rates(allocation: Allocation) -> tuple[Fraction, ...]:
    """Work a second of each job under the fractions of an allocation without pairs, exactly."""
    table = zip(allocation.problem.throughput.tolist(), allocation.alone.tolist(), strict=True)
    return tuple(
        sum((Fraction(t) * Fraction(x) for t, x in zip(*row, strict=True)), Fraction(0))
        for row in table
    )


def _problem(instance: Instance, rows: NDArray[np.int64], now_s: float) -> AllocationProblem:
    jobs, pools = instance.workload, instance.pools
    return AllocationProblem.from_columns(
        gpu_types=pools.names,
        capacity=pools.gpus.astype(np.float64),
        throughput=pool_throughput(instance, rows),
        gpus=jobs.gpus[rows],
        weight=jobs.weight[rows],
        elapsed_s=np.maximum(now_s - jobs.arrival_s[rows], 0.0),
        price=pools.price_per_gpu_h,
        id=jobs.id[rows],
        entity=jobs.tenant[rows],
        source=jobs.source,
    )


def _expect(instance: Instance, policy: AllocationPolicy) -> None:
    require(instance, KNOWS, "runs in shares")
    if (instance.workload.weight <= 0).any():
        raise InputError(
            f"{instance.workload.source}: has a weight of 0, expected weights > 0 in runs in shares"
        )
    for there, what in (
        (policy.needs_steps, "is told the work left"),
        (policy.packed, "lets jobs share GPUs"),
    ):
        if there:
            raise InputError(f"allocation policy {policy.name!r} {what}, runs in shares know none")
