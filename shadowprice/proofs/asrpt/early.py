r"""ASRPT-early: starting jobs before their virtual completion, without and with a guard.

Statement. Hypotheses and notation of ASRPT-conv and ASRPT-pred, no job held back on purpose, but
when every job that :math:`V` has completed has been started, other jobs that have arrived and fit may be
started as well, any of them.

1. Without more, no constant bounds :math:`\sum_j C_j / \mathrm{OPT}`, even with :math:`m = 1`, :math:`\rho = 1`, exact
   predictions: on :func:`unguarded_family` the ratio exceeds :math:`n / 2` for :math:`n > 2`.
2. *Guard*: job :math:`i` may start early at :math:`t` only if :math:`h_i \le \beta t` for given :math:`h_i > 0`
   and :math:`\beta \ge 0`. With :math:`\eta = \max_i P_i / h_i`,

   .. math:: C_j \le C_j^V (1 + \eta \beta + \kappa K) + P_j, \qquad
      \sum_j C_j \le \bigl(\Lambda (1 + \eta \beta + \kappa K) + \rho\bigr)\, \mathrm{OPT} .

   For :math:`h_i = \tilde n_i \alpha_i^{max}` that is :math:`\eta \le \mu`: with exact predictions from
   :math:`\alpha_{min}` the guard costs :math:`\beta` more than ASRPT-ratio. :math:`\beta = 0` is ASRPT-pred
   again.

The policy measures :math:`t` from the first arrival, which is stricter.

Status. Ours, both.
Remarks. That some waiting is needed is classic: without preemption no deterministic online
algorithm is better than 2-competitive for total completion time on one machine (randomised ones are:
see ASRPT-sharper), and 2 is reached by not starting a job before its own length has passed
(Hoogeveen and Vestjens, IPCO 1996; recalled). The guard is this rule.

Proof.

1. One GPU, a job of n^2 seconds at 0 and n unit jobs at 1. The long job starts at 0 and nobody ends
   before n^2: cost at least n^2 (n + 1). Running it last costs
   :math:`\sum_{k=1}^n (1 + k) + (1 + n + n^2) = (3 n^2 + 5 n + 2) / 2`. Since
   3 n^2 + 5 n + 2 = (3 n + 2)(n + 1), the quotient is at least 2 n^2 / (3 n + 2), and that exceeds n / 2
   as soon as n > 2.
2. Let j be unstarted at C_j^V (otherwise C_j < C_j^V + P_j, and we are done). On
   [C_j^V, S_j) job j is in the queue, so nobody starts early, and nobody behind j starts.
   Whoever runs then either comes before j in the order of V, or started early at some t_i < C_j^V and
   ends by :math:`t_i + P_i \le t_i + \eta h_i \le (1 + \eta \beta) C_j^V`.
3. After :math:`D_j = (1 + \eta \beta) C_j^V` only jobs before j run, and steps 1 to 3 of ASRPT-conv bound
   :math:`S_j - D_j` by :math:`\sum_{i<j} g_i P_i / (m - \gamma_j + 1) \le \kappa K C_j^V`.
4. Sum as in ASRPT-pred: :math:`\sum_j C_j^V \le \Lambda\, OPT`, :math:`\sum_j P_j \le \rho\, OPT`. Q.E.D.

Passing over jobs of the queue that do not fit (``overtake``) breaks step 2 and keeps no bound: one
wide job can be passed for ever.

Search. More than 10,000 random instances with beta = 1, rho up to 100 and errors up to 100: the worst
cost is 0.489 times the bound times the lower bounds of OPT.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from numpy.typing import ArrayLike

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt.conversion import Gangs, largest_ratio
from shadowprice.proofs.asrpt.prediction import KNOWS as PREDICTION_KNOWS
from shadowprice.proofs.asrpt.prediction import holds
from shadowprice.proofs.described_run import (
    DescribedRun,
    held_back,
    missing_in,
    not_of_completion,
)
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight
from shadowprice.solvers.asrpt.asrpt import Asrpt

STATUS = "ours"

KNOWS = PREDICTION_KNOWS
HYPOTHESES = Hypotheses("ASRPT-early", KNOWS, (not_one_weight,))


def ratio(gangs: Gangs, guard: Fraction, judged: Sequence[int]) -> Fraction:
    """The factor of the statement; ``judged`` are the h_i [ticks]."""
    eta = largest_ratio(gangs.longest, judged)
    over = max(Fraction(1), gangs.virtual_over)
    return over * (1 + eta * guard + gangs.kappa * gangs.crowding) + gangs.rho


def bound(
    instance: Instance,
    guard: float | Fraction = 1,
    virtual_s: ArrayLike | None = None,
    judged_s: ArrayLike | None = None,
) -> Fraction:
    """The factor for an instance, with its own rho, Lambda, kappa, eta and K.

    Parameters
    ----------
    guard : float or Fraction
        beta.
    virtual_s : array_like, optional
        q_j [s], shape (n,); the shortest runs if not given.
    judged_s : array_like, optional
        h_j [s], shape (n,); the true longest runs if not given.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    gangs = Gangs.of(instance, virtual_s)
    judged = gangs.longest if judged_s is None else to_ticks(judged_s).tolist()
    return ratio(gangs, Fraction(guard), judged)


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words: those of ASRPT-pred, but with early starts guarded."""
    return missing_in(run, HYPOTHESES, _not_guarded(run), held_back(run), not_of_completion(run))


def _not_guarded(run: DescribedRun) -> Iterator[str]:
    policy = run.policy
    if not isinstance(policy, Asrpt):
        yield f"the policy is {policy.name}, the theorem is about A-SRPT"
        return
    if policy.overtake:
        yield "jobs may overtake others"
    if policy.work_conserving and policy.guard == math.inf:
        yield "early starts have no guard, and no constant bounds them"


def check(
    instance: Instance,
    total_completion_s: float | Fraction,
    guard: float | Fraction = 1,
    virtual_s: ArrayLike | None = None,
    judged_s: ArrayLike | None = None,
) -> bool:
    """True if a run's total completion time [s] is within the factor of OPT's lower bounds.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    factor = bound(instance, guard, virtual_s, judged_s)
    total = Fraction(total_completion_s) * TICKS_PER_S
    return holds(Gangs.of(instance, virtual_s), total, factor)


def unguarded_family(n: int) -> Instance:
    """One GPU, a job of n^2 seconds at 0 and n unit jobs at 1."""
    arrivals = [0.0] + [1.0] * n
    jobs = Workload.from_columns(arrival_s=arrivals, gpus=1, work=[float(n * n)] + [1.0] * n)
    return Instance(Cluster.parse("1x1"), jobs)


def completions(
    gangs: Gangs, run: Sequence[int], guard: Fraction | None, judged: Sequence[int]
) -> list[Fraction]:
    """Completion times [ticks] of the guarded early start, of the unguarded one for None.

    The abstract algorithm of the statement; early jobs in order of virtual work. O(n^2 log n).
    """
    m, n = gangs.capacity, len(run)
    release_of = {job: Fraction(at, m) for job, at in gangs.virtual_order()}
    order = list(release_of)
    early = sorted(range(n), key=lambda j: (gangs.gang[j] * gangs.virtual[j], j))
    times = [*map(Fraction, gangs.release), *release_of.values()]
    times += [h / guard for h in judged] if guard else []
    heapq.heapify(times)
    free, ends = m, [Fraction(0)] * n
    running: list[tuple[Fraction, int]] = []
    waiting = set(range(n))
    while waiting:
        now = heapq.heappop(times)
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        queue = [j for j in order if j in waiting and release_of[j] <= now]
        fitting = _prefix_that_fits([gangs.gang[j] for j in queue], free)
        starting = queue[:fitting]
        free -= sum(gangs.gang[j] for j in starting)
        for j in early if fitting == len(queue) else ():
            allowed = guard is None or judged[j] <= guard * now
            arrived = j in waiting and gangs.release[j] <= now and j not in starting
            if allowed and arrived and gangs.gang[j] <= free:
                starting.append(j)
                free -= gangs.gang[j]
        for j in starting:
            waiting.remove(j)
            ends[j] = now + run[j]
            heapq.heappush(running, (ends[j], gangs.gang[j]))
            heapq.heappush(times, ends[j])
    return ends


def _prefix_that_fits(gangs: Sequence[int], free: int) -> int:
    for position, gang in enumerate(gangs):
        if gang > free:
            return position
        free -= gang
    return len(gangs)
