"""The allocation problem of a moment, from what a policy sees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.gavel.rates import FloatArray
from shadowprice.solvers.narrow_tables import across
from shadowprice.solvers.policy import State


class IsolatedTimes:
    """Time [s] that jobs would have needed so far in isolation, by row of the workload.

    It grows between two problems by the steps done since, over the throughput of an isolated share
    at the earlier one (Gavel's finish-time fairness, sec. 4.2 and its code).
    """

    def __init__(self) -> None:
        # By job; one that has not been seen yet is in none of them.
        self._isolated_s = np.zeros(0)
        self._steps_then = np.zeros(0)
        self._rate_then = np.zeros(0)

    def at(self, jobs: NDArray[np.int64], steps: FloatArray) -> FloatArray:
        """Times of these jobs, which have so many steps left now [s]."""
        self._make_room(int(jobs.max(initial=-1)) + 1)
        moved = jobs[self._rate_then[jobs] > 0]
        done = self._steps_then[moved] - steps[self._rate_then[jobs] > 0]
        self._isolated_s[moved] += done / self._rate_then[moved]
        return self._isolated_s[jobs]

    def note(self, jobs: NDArray[np.int64], problem: AllocationProblem) -> None:
        """Count from a problem of these jobs on."""
        self._steps_then[jobs] = problem.steps
        self._rate_then[jobs] = across(np.add, problem.throughput * isolated_shares(problem))

    def _make_room(self, jobs: int) -> None:
        """Have an entry for so many jobs; O(1) a job, amortised."""
        missing = jobs - len(self._isolated_s)
        if missing > 0:
            more = np.zeros(max(missing, len(self._isolated_s)))
            self._isolated_s = np.concatenate((self._isolated_s, more))
            self._steps_then = np.concatenate((self._steps_then, more))
            self._rate_then = np.concatenate((self._rate_then, more))


class Snapshots:
    """Makes the problem at each moment.

    Parameters
    ----------
    steps : bool
        Whether the policy is told the work left; needs ``duration``.
    pairs : bool
        Whether jobs may share GPUs.
    """

    def __init__(self, *, steps: bool, pairs: bool) -> None:
        self.steps, self.pairs = steps, pairs
        self._isolated = IsolatedTimes()

    def problem(self, state: State) -> tuple[NDArray[np.int64], AllocationProblem]:
        """Rows of the live jobs in the workload, and the problem they make."""
        live, pools = state.live(), state.pools_of_gpus
        jobs = live.jobs
        steps = np.maximum(live.remaining_work, 1e-9) if self.steps else np.ones(len(jobs))
        problem = AllocationProblem(
            gpu_types=pools.names,
            accelerators=tuple(range(len(pools.names))),
            capacity=pools.gpus.astype(np.float64),
            price=pools.price_per_gpu_h,
            id=live.id,
            throughput=live.throughput,
            gpus=live.gpus,
            weight=np.maximum(live.weight, 1e-9),
            steps=steps,
            elapsed_s=state.now_s - live.arrival_s,
            isolated_s=self._isolated.at(jobs, steps),
            slo_s=np.maximum(live.deadline_s - state.now_s, 0.0),
            entity=live.tenant,
            pairs=live.sharing_pairs if self.pairs else Pairs.none(len(pools.names)),
            source="the jobs that are there",
        )
        if self.steps:
            self._isolated.note(jobs, problem)
        return jobs, problem
