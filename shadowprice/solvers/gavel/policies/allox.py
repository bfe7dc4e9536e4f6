r"""AlloX (EuroSys'20) as Gavel (OSDI'20) compares with it: minimum total completion time of single-GPU jobs.

A job that is k-th from last on a GPU delays k completions, so assigning jobs to (GPU, place from the
last) at cost k steps_m / T_mj minimises the sum of completion times; the first job of each GPU runs.
GPUs of a type are alike, so in a best assignment their queues differ by at most one job: places up
to ceil(n / W_j) are enough (derived).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation, nothing
from shadowprice.solvers.gavel.workspace import Workspace


@dataclass(frozen=True)
class Allox:
    """Jobs that are shortest, on the GPUs that suit them, first; one GPU each.

    Parameters
    ----------
    share : float
        Part of the jobs, oldest first, that are considered.
    """

    name: str = "allox"
    share: float = 1.0

    needs_steps: ClassVar[bool] = True
    aware: ClassVar[bool] = True
    packed: ClassVar[bool] = False

    def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
        """A minimum-cost assignment; O(n^3).

        Raises
        ------
        InputError
            If a job needs more than one GPU, or types share accelerators.
        """
        if not len(problem):
            return nothing(self.name, problem)
        if (problem.gpus > 1).any():
            job = int((problem.gpus > 1).argmax())
            raise InputError(
                f"{problem.source}: job {problem.id[job]!r} needs {problem.gpus[job]} GPUs; "
                "allox is for jobs of one GPU"
            )
        if problem.accelerators != tuple(range(len(problem.gpu_types))):
            raise InputError(f"{problem.source}: allox does not know placement-sensitive types")
        considered = np.arange(max(int(np.ceil(self.share * len(problem))), 1))
        alone = np.zeros_like(problem.throughput)
        shared = np.zeros((len(problem.pairs), len(problem.gpu_types)))
        for job, gpu_type in _first_jobs(problem, considered):
            alone[job, gpu_type] = 1.0
        return Allocation(self.name, problem, alone, shared)


def _first_jobs(problem: AllocationProblem, jobs: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The job that runs first on each GPU, and the GPU's type."""
    gpu_type, gpu, place = [], [], []
    for j, count in enumerate(problem.capacity.astype(int).tolist()):
        deep = -(-len(jobs) // count) if count else 0
        gpu_type += [j] * (count * deep)
        gpu += [g for g in range(count) for _ in range(deep)]
        place += [k for _ in range(count) for k in range(1, deep + 1)]
    types, places = np.array(gpu_type, dtype=np.int64), np.array(place)
    with np.errstate(divide="ignore"):
        alone_s = problem.steps[jobs, None] / problem.throughput[jobs]
    # An impossible assignment costs more than any possible one, but is a number.
    worst = np.where(np.isfinite(alone_s), alone_s, 0.0).sum() * (len(jobs) + 1) + 1.0
    cost = np.where(np.isfinite(alone_s), alone_s, worst)[:, types] * places[None, :]
    rows, columns = linear_sum_assignment(cost)
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        where = (gpu_type[column], gpu[column])
        first[where] = max(first.get(where, (0, 0)), (place[column], int(jobs[row])))
    return [
        (job, j) for (j, _), (_, job) in sorted(first.items()) if problem.throughput[job, j] > 0
    ]


ALLOCATIONS = (Allox(),)
