r"""GAVEL-share: when max-min fairness gives everybody at least an equal share, and when only filling does.

Notation. :math:`n` jobs with gangs :math:`s_m` and equal weights, types :math:`j` of :math:`W_j` GPUs,
:math:`W = \sum_j W_j`, rates :math:`T_{mj}`, nobody shares GPUs, every type has GPUs of its own.
:math:`T_m(X) = \sum_j T_{mj} X_{mj}`. The *level* of a job is

.. math:: \ell_m(X) = s_m T_m(X) / T_m(X^{equal}), \qquad X^{equal}_{mj} = W_j / W,

and its *isolated* share is one n-th of every type, :math:`X^{iso}_{mj} = W_j / (n s_m)`, or
:math:`X^{equal}` if that is more than all its time. Let :math:`i_m = \min(W / n, s_m)`.

Statement.

1. The optimum of max-min fairness (the largest least level) is at least :math:`\min_m i_m`.
2. If all :math:`i_m` are equal, that is if all gangs are equal or :math:`s_m \ge W / n` for all, then every job
   has at least its isolated throughput under any optimum of max-min fairness (*sharing incentive*).
3. Otherwise it need not: on :func:`unequal_gangs` an optimum of the programme leaves a job with half of its
   isolated throughput. So the claim needs its hypothesis.
4. On one type, the lexicographic optimum (*water filling*) gives every job at least its isolated
   throughput, whatever the gangs.
5. Water filling is Pareto efficient: no allocation gives a job more and nobody less.

Status. 2 and 5 the paper's (Gavel, OSDI'20, sec. 4.4; recalled), 2 with the hypothesis that 3 shows it
needs; 1, 3 and 4 ours, immediate.

Proof.

1. X^iso is an allocation: :math:`\sum_m s_m X^{iso}_{mj} \le W_j`, and no row exceeds 1. Its row m is
   X^equal times :math:`\min(W / (n s_m), 1)`, so that its level is :math:`\min(W / n, s_m) = i_m`. The optimum is at
   least the least of these.
2. Every job then has a level of at least i = i_m, which is that of its isolated share.
3. One type of 4 GPUs, gangs of 1 and 4: the least level is at most that of the first job, s_1 = 1, and
   :math:`X = (1, 1/4)` attains it. Isolated the second job has :math:`4 / (2 \cdot 4) = 1/2`.
4. On one type :math:`\ell_m = s_m X_m \le s_m`. Suppose the lexicographic optimum X has a job with
   :math:`\ell_m < i_m`, and let L be this level. Go from X to :math:`(1 - \epsilon) X + \epsilon X^{iso}`.
   Levels above L stay above L for small epsilon. A job k with :math:`\ell_k \le L < W / n` has
   :math:`i_k = \min(W / n, s_k) \ge \ell_k`, so its level does not fall, and that of m rises: better
   lexicographically, a contradiction.
5. Such an allocation would be better lexicographically. Q.E.D.

Check. Per instance, with linear programmes made here from the problem alone, up to the tolerance of
the solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.policies.isolated import isolated_shares
from shadowprice.solvers.programs import gate
from shadowprice.solvers.programs.linear_program import LinearProgram

STATUS = "paper, with a hypothesis it needs; ours for gangs"

FloatArray = NDArray[np.float64]
_RELATIVE = 1e-6


def bound(problem: AllocationProblem) -> float:
    """Least level that the optimum of max-min fairness has: min over jobs of i_m."""
    _check_hypotheses(problem)
    return float(np.minimum(problem.capacity.sum() / len(problem), problem.gpus).min())


def levels(problem: AllocationProblem, alone: FloatArray) -> FloatArray:
    """Level of every job under fractions of time, shape (jobs,)."""
    equal = problem.throughput @ (problem.type_capacity / problem.capacity.sum())
    got = (problem.throughput * alone).sum(axis=1)
    return np.asarray(problem.gpus * got / equal)


def shares_alike(problem: AllocationProblem) -> bool:
    """The hypothesis of statement 2: all i_m are equal."""
    each = np.minimum(problem.capacity.sum() / len(problem), problem.gpus)
    return bool((each == each[0]).all())


def check(problem: AllocationProblem, alone: FloatArray) -> bool:
    """True if an optimum of max-min fairness is as statements 1 and 2 say.

    Parameters
    ----------
    alone : ndarray, shape (jobs, types)
        Fractions of time.
    """
    enough = bool(levels(problem, alone).min() >= bound(problem) * (1 - _RELATIVE))
    return (
        enough
        and _is_allocation(problem, alone)
        and (not shares_alike(problem) or has_incentive(problem, alone))
    )


def has_incentive(problem: AllocationProblem, alone: FloatArray) -> bool:
    """True if every job has at least the throughput of its isolated share."""
    own = levels(problem, isolated_shares(problem))
    return bool((levels(problem, alone) >= own * (1 - _RELATIVE)).all())


def pareto_gap(problem: AllocationProblem, alone: FloatArray) -> float:
    """Largest total rise of all levels while none falls; one linear programme."""
    _check_hypotheses(problem)
    jobs, types = problem.throughput.shape
    equal = problem.throughput @ (problem.type_capacity / problem.capacity.sum())
    rate = problem.throughput * (problem.gpus / equal)[:, None]
    rows = np.kron(np.eye(jobs), np.ones(types))
    gains = rows * rate.ravel()
    columns = np.hstack([gang * np.eye(types) for gang in problem.gpus.tolist()])
    now = levels(problem, alone)
    table = np.vstack((rows, columns, gains))
    high = np.concatenate((np.ones(jobs), problem.type_capacity, np.full(jobs, np.inf)))
    low = np.concatenate((np.full(jobs + types, -np.inf), now * (1 - 1e-9)))
    none, free = np.zeros(rate.size), np.full(rate.size, np.inf)
    found = gate.solve(LinearProgram.of(rate.ravel(), none, free, table, low, high, maximise=True))
    if not found.evidence.optimal:
        raise SolverError("sharing: how much levels can rise is not known")
    return float(found.objective - now.sum())


def check_filling(problem: AllocationProblem, alone: FloatArray) -> bool:
    """True if a result of water filling is as statements 4 and 5 say."""
    if not _is_allocation(problem, alone):
        return False
    efficient = pareto_gap(problem, alone) <= 1e-5 * max(float(levels(problem, alone).sum()), 1.0)
    return efficient and (len(problem.gpu_types) > 1 or has_incentive(problem, alone))


def unequal_gangs() -> tuple[AllocationProblem, FloatArray]:
    """The problem of statement 3, with an optimum of max-min fairness that is no fair share."""
    problem = AllocationProblem.from_columns(
        gpu_types=["gpu"], capacity=[4], throughput=[[1.0], [1.0]], gpus=[1, 4]
    )
    return problem, np.array([[1.0], [0.25]])


def _is_allocation(problem: AllocationProblem, alone: FloatArray) -> bool:
    """True if no job has more than all its time and no type gives more GPUs than it has."""
    most = 1 + _RELATIVE
    time, used = alone.sum(axis=1), problem.gpus @ alone
    return bool(
        (alone >= -_RELATIVE).all()
        and (time <= most).all()
        and (used <= problem.type_capacity * most).all()
    )


def _check_hypotheses(problem: AllocationProblem) -> None:
    if len(set(problem.weight.tolist())) > 1 or len(set(problem.accelerators)) < len(
        problem.gpu_types
    ):
        raise InputError(
            f"{problem.source}: has weights or types that share GPUs, expected equal weights and "
            "GPUs of its own for every type"
        )
