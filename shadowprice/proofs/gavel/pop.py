r"""POP: what splitting into k parts can cost, and what is only measured.

Statement. Jobs are dealt into :math:`k` parts, every part has :math:`W_j / k` GPUs of each type, and max-min
fairness is solved in each; nobody shares GPUs. Let :math:`t` be the level of the whole programme (the largest
least normalised throughput) and t' the least level of a part.

1. :math:`t / k \le t' \le t`, however jobs are dealt.
2. The lower bound is attained, for every :math:`k`: on :func:`unlucky_family`.
3. No better guarantee is claimed for jobs dealt at random.

Status. 1 and 2 ours, elementary; 3 measured.

Remarks. POP's paper (Narayanan et al., SOSP'21; recalled) assumes many jobs, none of which takes much, with parts
that look alike; what is then lost is measured: every result of ``pop`` reports its own objective, and the benchmark
of allocations compares it with the whole programme's.

Proof.

1. The parts' allocations together are an allocation of the whole, and the normaliser of a job (its
   throughput on a random GPU) is the same in a part, since all types shrink alike: so t' <= t. Let X
   attain t. X / k, restricted to the jobs of a part, takes at most 1/k of every type and is an allocation
   of that part, with all levels at least t / k.
2. k types of k GPUs, k jobs that can run on each type only, dealt so that part i has all jobs of type i.
   In the whole every job has a GPU; in its part k jobs share one. Q.E.D.
"""

from __future__ import annotations

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation

STATUS = "ours, elementary; what is lost on average is measured"
_RELATIVE = 1e-6


def bound(problem: AllocationProblem, parts: int) -> tuple[float, float]:
    """Least and largest level that POP can have in so many parts; solves the whole programme."""
    whole = allocation("max_min_fairness:aware=true").allocate(problem, Workspace())
    level = float(whole.objective or 0.0)
    return level / max(min(parts, len(problem)), 1), level


def check(parts: int, allocation: Allocation) -> bool:
    """True if POP's own objective is within the bounds, and its allocation one of the whole.

    Parameters
    ----------
    parts : int
        k.
    allocation : Allocation
        What POP made, of the whole problem.

    Raises
    ------
    VerificationError
        If it is no allocation.
    """
    allocation.verify()
    least, most = bound(allocation.problem, parts)
    level = float(allocation.objective or 0.0)
    return least * (1 - _RELATIVE) <= level <= most * (1 + _RELATIVE)


def unlucky_family(parts: int, seed: int) -> AllocationProblem:
    """The problem of statement 2, for the deal that this seed makes."""
    dealt = np.random.default_rng(seed).permutation(parts * parts) % parts
    return AllocationProblem.from_columns(
        gpu_types=[f"type{j}" for j in range(parts)],
        capacity=[parts] * parts,
        throughput=np.eye(parts)[dealt],
    )
