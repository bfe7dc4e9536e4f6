r"""ASRPT-sharper: a smaller factor for A-SRPT, which it attains on a single GPU and approaches on more.

Statement. Hypotheses and notation of ASRPT-conv and ASRPT-pred, no job held back on purpose. Let :math:`B` be
the least sum of gangs of some of the jobs that is at least :math:`m - \max_j g_j + 1` and at most :math:`m`. If
there is none, nobody ever waits after :math:`C_j^V`. Otherwise

.. math:: C_j \le C_j^V \Bigl(1 + \frac{\kappa m}{B}\Bigr) + P_j \Bigl(1 - \frac{g_j}{B}\Bigr),
   \qquad
   \sum_j C_j \le \Bigl(\Lambda \Bigl(1 + \frac{\kappa m}{B}\Bigr)
   + \rho \max\Bigl(0, 1 - \frac{\min_j g_j}{B}\Bigr)\Bigr)\, \mathrm{OPT} .

With exact predictions and :math:`\rho = 1`:

* gangs that all take the whole cluster, one GPU among them: :math:`B = m` and the factor is 2 instead of
  :math:`2 + m`. A single job attains it;
* jobs of one GPU each, more than :math:`m`: :math:`B = m` and the factor is :math:`3 - 1/m` instead of 3;
* gangs that are multiples of :math:`d`, and so is :math:`m`: :math:`B` is at least :math:`m - \max_j g_j + d`.
  Powers of two from 2 to :math:`m`: the factor is at most :math:`1 + m / 2` instead of :math:`2 + m`.

It is never larger than that of ASRPT-pred, since :math:`B \ge m - \max_j g_j + 1`.

Status. Ours; improves ASRPT-ratio and ASRPT-pred. For jobs of one GPU and :math:`\rho = 1` the constant
:math:`3 - 1/m` for the conversion of a one-machine schedule is classic (Chekuri, Motwani, Natarajan, Stein,
SIAM J. Computing 31, 2001; recalled).

Remarks. A single job attains the factor 2. On one machine no *deterministic* online algorithm without preemption
has a smaller one, against the optimum without preemption either (Hoogeveen and Vestjens, IPCO 1996; recalled,
derived again in step 6). Randomised ones have: starting jobs at random :math:`\alpha`-points has
:math:`e / (e - 1) = 1.582` in expectation, against the preemptive optimum (Chekuri, Motwani, Natarajan, Stein, SIAM
J. Computing 31, 2001), which is best possible for them (Stougie and Vestjens, OR Letters 30, 2002; both recalled).

For no :math:`m` is it much too large. Let :math:`g_1` be the largest of the gangs whose sum is :math:`B`. With
exact predictions and :math:`\rho = 1` the ratio comes as close to :math:`(m + g_1) / B` as one likes, on
:func:`tight_family`, against optima with preemption and without. So what is known of the least factor for such
gangs is

.. math:: \frac{m + g_1}{B} \le \text{least factor} \le 1 + \frac{m}{B} + \max\Bigl(0, 1 - \frac{\min_j g_j}{B}\Bigr),

and if :math:`B` is a gang, and none is smaller, both are :math:`1 + m / B`: gangs of 1 and :math:`m` have
:math:`1 + m` for every :math:`m`, where five jobs show no more than 2.4 for :math:`m = 4`.

Proof.

1. Step 1 of ASRPT-conv: while j waits after C_j^V, the first job i that has not been started does not
   fit, so more than :math:`m - g_i \ge m - \max_j g_j` GPUs are busy. They are held by whole gangs: their
   number is a sum of gangs, at most m, hence at least B. If there is no such sum, nobody waits.
2. Step 2 there, with B busy GPUs: :math:`(S_j - C_j^V) B \le \sum_{i<j} g_i P_i`.
3. V has completed j as well as all i < j by C_j^V:
   :math:`\sum_{i<j} g_i P_i \le \kappa m \sum_{i<j} v_i \le \kappa m (C_j^V - v_j)
   = \kappa m C_j^V - \kappa g_j q_j \le \kappa m C_j^V - g_j P_j`, since :math:`\kappa q_j \ge P_j`.
   ASRPT-ratio drops the last term.
4. Dividing by B and adding :math:`C_j = S_j + a_j \le S_j + P_j` gives the first claim. If nobody waits it
   is :math:`C_j \le C_j^V + P_j`.
5. Sum as in ASRPT-pred: :math:`\sum_j C_j^V \le \Lambda\, OPT`, and
   :math:`\sum_j P_j (1 - g_j / B) \le \max(0, 1 - \min_j g_j / B) \rho \sum_j p_j`. Q.E.D.
6. Nothing below 2 for a deterministic algorithm A. One GPU, one job of length 1 at 0; A starts it at some
   time t, known beforehand. If t >= 1 the ratio is t + 1 >= 2. Otherwise n jobs of length d and release
   t + e follow. A ends none of them before t + 1, so it costs at least (n + 1)(t + 1), while serving
   them first costs at most n (t + e + n d) + t + e + n d + 1. As e and then d go to 0 and n to
   infinity, the quotient tends to (t + 1) / t > 2 (to infinity for t = 0). A random t escapes.

7. The family: m GPUs, gangs :math:`g_1 \ge g_2 \ge \dots` of sum B, each of length m, the first there at 0, the
   others at :math:`g_1`; and at B n gangs of :math:`\gamma = \max_j g_j` and length e. V completes the first at
   :math:`g_1`, the others by B, and then the n. On the cluster the first runs from :math:`g_1` to :math:`g_1 + m`,
   and the others from at most B to no earlier than that, so that B GPUs are busy from B on and, as
   :math:`\gamma > m - B`, none of the n starts before :math:`g_1 + m > B`: they alone cost
   :math:`n (g_1 + m)`. Stopping all else at B for the n costs :math:`n B + e n (n + 1) / 2` for these, and at most
   :math:`m + B + n e` for each of the others; so does starting the others only then. As e n and then 1 / n go to 0
   the quotient tends to :math:`(m + g_1) / B`. Q.E.D.

Search. 210,000 random instances with m up to 8, up to 9 jobs, gangs of all kinds above, rho up to 10 and
q_j off by factors up to 8: no job above its bound, no total above the factor times the lower bounds
of OPT; both are attained. The adversary of ``analysis/adversary/search.py`` attains 2 on one GPU and, with a
prediction twice too long, 3 = Lambda + rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from numpy.typing import ArrayLike

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.asrpt.prediction import KNOWS as PREDICTION_KNOWS
from shadowprice.proofs.asrpt.prediction import holds
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight

STATUS = "ours"

KNOWS = PREDICTION_KNOWS
HYPOTHESES = Hypotheses("ASRPT-sharper", KNOWS, (not_one_weight,))


def least_busy(gang: Sequence[int], capacity: int) -> int | None:
    """B: GPUs that are busy at least while somebody waits; None if nobody ever does. O(n m)."""
    floor = capacity - max(gang, default=1) + 1
    sums = 1  # bit s is set if some gangs add up to s
    limit = (1 << (capacity + 1)) - 1
    for gpus in gang:
        sums |= (sums << gpus) & limit
    # Whoever waits is not among those that run: the widest must be one of at least two jobs.
    reached = sums >> floor
    if len(gang) < 2 or not reached:
        return None
    return floor + (reached & -reached).bit_length() - 1


def ratio(gangs: Gangs) -> Fraction:
    """The factor of the statement."""
    over, busy = max(Fraction(1), gangs.virtual_over), least_busy(gangs.gang, gangs.capacity)
    if busy is None:
        return over + gangs.rho
    spare = max(Fraction(0), 1 - Fraction(min(gangs.gang), busy))
    return over * (1 + gangs.kappa * Fraction(gangs.capacity, busy)) + gangs.rho * spare


def bound(instance: Instance, virtual_s: ArrayLike | None = None) -> Fraction:
    """The factor for an instance, with its own rho, Lambda, kappa and B.

    Parameters
    ----------
    virtual_s : array_like, optional
        q_j [s], shape (n,): the predicted run times of the virtual machine; exact if not given.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    return ratio(Gangs.of(instance, virtual_s))


def tight_family(
    gpus: int, blocking: Sequence[int], widest: int, count: int, parts: int
) -> Instance:
    """The jobs of step 7, in seconds.

    Parameters
    ----------
    gpus : int
        m.
    blocking : sequence of int
        Gangs that sum to B, the largest first.
    widest, count : int
        Gang, and number n, of the short jobs.
    parts : int
        Their length is a second over this, a power of two up to 2^20.

    Raises
    ------
    InputError
        If these gangs do not sum to B.
    """
    together = sum(blocking)
    if (
        least_busy([*blocking, widest], gpus) != together
        or list(blocking) != sorted(blocking)[::-1]
    ):
        raise InputError(
            f"gangs {list(blocking)} and {widest} on {gpus} GPUs: expected the first to be those that keep "
            "the last waiting with the fewest GPUs, the largest first"
        )
    if not 1 <= parts <= TICKS_PER_S or TICKS_PER_S % parts:
        raise InputError(f"parts {parts}: expected a power of two up to {TICKS_PER_S}")
    others = len(blocking) - 1
    jobs = Workload.from_columns(
        arrival_s=[0.0] + [float(blocking[0])] * others + [float(together)] * count,
        gpus=[*blocking, *[widest] * count],
        work=[float(gpus)] * (others + 1) + [1 / parts] * count,
    )
    return Instance(Cluster.parse(f"1x{gpus}"), jobs)


def family_floor(gpus: int, blocking: Sequence[int], count: int, parts: int) -> Fraction:
    """Least ratio of A-SRPT on :func:`tight_family`, by step 7."""
    short, together = Fraction(1, parts), sum(blocking)
    others = len(blocking) * (gpus + together + count * short)
    possible = count * together + short * count * (count + 1) / 2 + others
    return count * (blocking[0] + gpus) / possible


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words: those of ASRPT-pred."""
    return asrpt_prediction.missing_hypotheses(run)


def check(
    instance: Instance,
    total_completion_s: float | Fraction,
    virtual_s: ArrayLike | None = None,
) -> bool:
    """True if a run's total completion time [s] is within the factor of OPT's lower bounds.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    gangs = Gangs.of(instance, virtual_s)
    return holds(gangs, Fraction(total_completion_s) * TICKS_PER_S, ratio(gangs))


def job_bounds(gangs: Gangs) -> list[Fraction]:
    """The first bound of every C_j [ticks], shape (n,), C_j^V rounded up to the grid."""
    m, busy = gangs.capacity, least_busy(gangs.gang, gangs.capacity)
    bounds = [Fraction(0)] * len(gangs.gang)
    for job, at in gangs.virtual_order():
        virtual = Fraction(at, m)
        waits = Fraction(0)
        if busy is not None:
            area = gangs.kappa * m * virtual - gangs.gang[job] * gangs.longest[job]
            waits = area / busy
        bounds[job] = -(-at // m) + waits + gangs.longest[job]
    return bounds
