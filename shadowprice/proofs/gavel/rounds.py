r"""GAVEL-round: how far rounds are from the fractions they are to hand out.

Notation. Jobs :math:`i` of one worker each, types :math:`j` of :math:`m_j` GPUs, fractions :math:`X_{ij} \ge 0`
with :math:`\sum_j X_{ij} \le 1` and :math:`\sum_i X_{ij} \le m_j`. In a round each job runs on at most one
type, and type :math:`j` takes at most :math:`m_j` jobs; :math:`N_{ij}(R)` counts the rounds of :math:`i` on
:math:`j` among the first :math:`R`.

Statement 1, the rule :math:`X / f`. One GPU, :math:`n` jobs with :math:`X_i > 0` and :math:`\sum_i X_i = 1`;
every round goes to a job with the largest :math:`X_i / f_i`, ties in any way, a job not yet served having
infinity. Then after every number of rounds :math:`R`

.. math:: N_i(R) - R X_i \le 1 - X_i, \qquad R X_i - N_i(R) \le n - 2 + X_i .

Neither constant can be smaller.

Statement 2, a rounding. For every :math:`R` there are :math:`R` rounds, on any number of types, with
:math:`|N_{ij}(R) - R X_{ij}| < 1` for every job and type (:func:`round_robin` finds them).

Status. 1 ours: the rule is the divisor method of Adams, whose upper quota is classic (Balinski and
Young, Fair Representation, 1982; recalled). 2 classic: integral transportation polytopes and
decomposition by Birkhoff and von Neumann.

Remarks. Neither constant can be smaller: the first is attained by the job served first, and the second is approached by
:func:`starved_family`, where :math:`n - 1` jobs of tiny fractions are each served once before anybody is
served twice. So the deviation of the rule grows with the number of jobs.

That deviations below 1 hold after *every* round is the chairman
assignment of Tijdeman (Discrete Mathematics 32, 1980; recalled) for one GPU. Open: constants of the
rule for several GPUs and types, and one rounding for all R with several types.

Proof.

1. f_i is N_i over what all received, so the rule picks the least N_i / X_i, and those with N_i = 0
   before all others. Let i be served in round t + 1. If N_i(t) = 0, then
   :math:`N_i(t + 1) = 1 \le (t + 1) X_i + 1 - X_i`. Else every k has been served, and
   :math:`N_k(t) \ge N_i(t) X_k / X_i`. Summed over k: :math:`t \ge N_i(t) / X_i`, so
   :math:`N_i(t + 1) \le t X_i + 1 = (t + 1) X_i + 1 - X_i`. While i is not served
   :math:`N_i - R X_i` only falls. That is the first claim. All deviations sum to 0, so what i lacks the
   others have too much: at most :math:`\sum_{k \ne i} (1 - X_k) = (n - 1) - (1 - X_i)`.
2. R X satisfies :math:`\lfloor R X_{ij} \rfloor \le N_{ij} \le \lceil R X_{ij} \rceil`,
   :math:`\sum_j N_{ij} \le R` and :math:`\sum_i N_{ij} \le m_j R`. The matrix of these constraints is
   totally unimodular (a transportation problem) and the right-hand sides are whole, so a vertex of
   this polytope is integral; it deviates from R X by less than 1, as a whole R X_ij is kept. Divide the
   N_ij of type j among m_j GPUs, one after the other, R for each. In the table of jobs and GPUs no row
   and no column exceeds R. Fill it up to a square table with all sums R: it is a sum of R permutation
   matrices (König). The permutations, restricted to jobs and GPUs, are the rounds; a job has one entry
   in each, so that it runs on one GPU. Q.E.D.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from shadowprice.errors import InputError, SolverError
from shadowprice.solvers.programs import gate
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.solution import Infeasible

STATUS = "ours for the rule, classic for the rounding"

IntArray = NDArray[np.int64]


def bound(fractions: list[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """Largest excess and largest lack of each job on one GPU under the rule [rounds].

    Parameters
    ----------
    fractions : list of Fraction
        X_i > 0 of all jobs, which sum to 1.
    """
    if sum(fractions) != 1 or min(fractions) <= 0:
        raise InputError(f"rounds: fractions sum to {sum(fractions)}, expected 1, and each above 0")
    return [(1 - x, len(fractions) - 2 + x) for x in fractions]


def check(fractions: list[Fraction], served: list[int]) -> bool:
    """True if a sequence of jobs, one a round, keeps statement 1's bounds after every round."""
    limits = bound(fractions)
    count = [0] * len(fractions)
    for rounds, job in enumerate(served, start=1):
        if not 0 <= job < len(count):
            raise InputError(
                f"rounds: round {rounds} served job {job}, expected 0 to {len(count) - 1}"
            )
        count[job] += 1
        over = (n - rounds * x for n, x in zip(count, fractions, strict=True))
        if not all(-lack <= d <= excess for d, (excess, lack) in zip(over, limits, strict=True)):
            return False
    return True


def starved_family(jobs: int, parts: int) -> list[Fraction]:
    """One job of almost the whole GPU, the others of one part in ``parts`` each."""
    tiny = Fraction(1, parts)
    return [1 - (jobs - 1) * tiny, *[tiny] * (jobs - 1)]


def round_robin(fractions: ArrayLike, gpus: ArrayLike, rounds: int) -> list[IntArray]:
    """Rounds that hand out fractions of time up to less than one round for each job and type.

    Parameters
    ----------
    fractions : array_like, shape (jobs, types)
        X, an allocation of jobs of one worker.
    gpus : array_like of int, shape (types,)
        m_j.
    rounds : int
        R.

    Returns
    -------
    list of ndarray of int, each of shape (jobs, types)
        Who runs where in each round, 0 or 1.

    Raises
    ------
    InputError
        If X is no allocation.

    Notes
    -----
    Statement 2. One integer programme whose relaxation is integral, and at most as many matchings as
    there are entries in the filled table.
    """
    x, capacity = np.asarray(fractions, dtype=np.float64), np.asarray(gpus, dtype=np.int64)
    total = _rounded(x, capacity, rounds)
    table, types = _by_gpu(total, capacity, rounds)
    found = []
    for permutation, times in _permutations(table, rounds):
        one = np.zeros_like(total)
        on = permutation[: len(x)]
        real = np.flatnonzero(on < len(types))
        one[real, types[on[real]]] = 1
        found.extend([one] * times)
    return found


def check_rounding(fractions: ArrayLike, gpus: ArrayLike, rounds: list[IntArray]) -> bool:
    """True if rounds are feasible, and deviate by less than one for each job and type, exactly."""
    x, capacity = np.asarray(fractions, dtype=np.float64), np.asarray(gpus, dtype=np.int64)
    each = all(
        (one.sum(axis=1) <= 1).all() and (one.sum(axis=0) <= capacity).all() and (one >= 0).all()
        for one in rounds
    )
    total = np.sum(rounds, axis=0)
    return each and all(
        abs(int(n) - len(rounds) * Fraction(float(share))) < 1
        for n, share in zip(total.ravel(), x.ravel(), strict=True)
    )


def _rounded(x: NDArray[np.float64], capacity: IntArray, rounds: int) -> IntArray:
    """A vertex of the transportation polytope around R X."""
    jobs, types = x.shape
    exact = [rounds * Fraction(float(share)) for share in x.ravel()]
    low = np.array([share.__floor__() for share in exact], dtype=np.float64)
    high = np.array([share.__ceil__() for share in exact], dtype=np.float64)
    sums = np.vstack((np.kron(np.eye(jobs), np.ones(types)), np.kron(np.ones(jobs), np.eye(types))))
    most = np.concatenate((np.full(jobs, rounds), capacity * rounds))
    none = np.full(len(most), -np.inf)
    program = LinearProgram.of(
        np.ones(jobs * types), low, high, sums, none, most, maximise=True, whole=True
    )
    try:
        solution = gate.solve(program)
    except Infeasible:
        raise InputError(
            f"rounds: fractions {x.tolist()} are no allocation of {capacity.tolist()}"
        ) from None
    if not len(solution.primal):
        raise SolverError("rounds: no rounding of the fractions was found")
    found: IntArray = np.rint(solution.primal).astype(np.int64).reshape(jobs, types)
    return found


def _by_gpu(total: IntArray, capacity: IntArray, rounds: int) -> tuple[IntArray, IntArray]:
    """Rounds of each job on each GPU, one GPU after the other, and the type of each GPU."""
    types = np.repeat(np.arange(len(capacity)), capacity)
    first = np.concatenate(([0], np.cumsum(capacity)))
    table = np.zeros((len(total), len(types)), dtype=np.int64)
    for gpu_type in range(len(capacity)):
        filled = 0
        for job, count in enumerate(total[:, gpu_type].tolist()):
            while count:
                gpu = int(first[gpu_type]) + filled // rounds
                part = min(count, rounds - filled % rounds)
                table[job, gpu] += part
                filled, count = filled + part, count - part
    return table, types


def _permutations(table: IntArray, rounds: int) -> list[tuple[IntArray, int]]:
    """The table, filled up to sums R, as a sum of permutations with multiplicities."""
    rest = np.block(
        [
            [table, np.diag(rounds - table.sum(axis=1))],
            [np.diag(rounds - table.sum(axis=0)), table.T],
        ]
    )
    rows, left, found = np.arange(len(rest)), rounds, []
    while left:
        match = maximum_bipartite_matching(csr_array(rest > 0), perm_type="column")
        times = int(rest[rows, match].min())
        rest[rows, match] -= times
        left -= times
        found.append((match.astype(np.int64), times))
    return found
