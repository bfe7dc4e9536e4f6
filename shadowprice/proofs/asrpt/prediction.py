r"""ASRPT-pred: total completion time of A-SRPT with wrong predictions.

Statement. Hypotheses and notation of ASRPT-conv; no job is held back on purpose. Let

.. math:: K = \frac{m}{m - \max_j g_j + 1}, \quad \rho = \max_j P_j / p_j, \quad
   \Lambda = \max(1, \max_j q_j / p_j), \quad \kappa = \max_j P_j / q_j.

Then, for the unweighted sum and against every offline schedule in which nobody shares GPUs, preemptive
or not,

.. math:: \sum_j C_j \le \bigl(\Lambda (1 + \kappa K) + \rho\bigr)\, \mathrm{OPT} .

With predicted iterations :math:`n_j / \mu \le \tilde n_j \le \lambda n_j`, :math:`\lambda, \mu \ge 1`:

* basis :math:`\alpha_{min}`, :math:`q_j = \tilde n_j \alpha_j^{min}`:
  :math:`\sum_j C_j \le (\lambda + \rho + \rho \lambda \mu K)\, \mathrm{OPT}`;
* basis :math:`\alpha_{max}`, :math:`q_j = \tilde n_j \alpha_j^{max}`:
  :math:`\sum_j C_j \le \rho (1 + \lambda + \lambda \mu K)\, \mathrm{OPT}`.

:math:`\lambda = \mu = 1` gives ASRPT-ratio for either basis.

Status. Ours. The published theorem, whose constants could not be read, is not claimed.

Proof. OPT is the least total completion time.

1. ASRPT-conv: :math:`C_j \le C_j^V (1 + \kappa K) + P_j`, C^V with works :math:`v_j = g_j q_j / m`.
2. Let W be the machine with works :math:`g_j p_j / m`. LB-fluid: :math:`\sum_j C_j^W \le OPT`.
3. Stretch the SRPT schedule of W in time by Lambda >= 1: what happened at t happens at Lambda t.
   Job j gets :math:`\Lambda g_j p_j / m \ge v_j`, not before :math:`\Lambda r_j \ge r_j`, and completes by
   :math:`\Lambda C_j^W`. Dropping what is too much gives a schedule of V's instance, for which SRPT is
   optimal (SRPT-1): :math:`\sum_j C_j^V \le \Lambda \sum_j C_j^W`. (Release dates are why Lambda is at
   least 1: jobs that are all under-estimated still do not arrive earlier.)
4. :math:`P_j \le \rho p_j` and LB-job, :math:`\sum_j p_j \le \sum_j (r_j + p_j) \le OPT`. Summing step 1
   proves the first claim.
5. Basis alpha_min: q_j / p_j = n~_j / n_j <= lambda and
   :math:`P_j / q_j = (n_j / \tilde n_j)(P_j / p_j) \le \mu \rho`. Basis alpha_max: q_j / p_j <= lambda rho
   and :math:`P_j / q_j = n_j / \tilde n_j \le \mu`. Insert. Q.E.D.

The proof bounds the cost by the two lower bounds of steps 2 and 4, not only by OPT; so does
:func:`check`, which therefore needs no optimum and is a stronger test. On the time grid releases
are rounded up, which adds less than a tick a job. Scaling all predictions by c > 1 is lambda = c,
mu = 1/c in steps 3 and 5: it costs only by releasing later. A factor lambda mu is needed where
predictions misorder jobs.

Search. Random instances, Hypothesis and hill climbing, maximising cost over bound times the lower
bounds of OPT, gangs up to the whole cluster, rho up to 100, errors up to 100: the worst found is
0.990, where all predictions are 100 times too long (it tends to 1 as lambda grows: the term Lambda
is tight against these lower bounds); with exact predictions 0.785, at rho = 100.
"""

from __future__ import annotations

from fractions import Fraction

from numpy.typing import ArrayLike

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.described_run import (
    DescribedRun,
    held_back,
    missing_in,
    not_of_completion,
    not_strictly_in_order,
)
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight

STATUS = "ours"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # as ASRPT-conv
        Feature.GRAPHS,  # rho is over mappings
        Feature.RESTART,  # others than A-SRPT lose by it, so that OPT is no smaller
    }
)
HYPOTHESES = Hypotheses("ASRPT-pred", KNOWS, (not_one_weight,))


def ratio(rho: Fraction, over: Fraction, kappa: Fraction, crowding: Fraction) -> Fraction:
    """The factor of the statement from rho, max q_j / p_j, kappa and K."""
    return max(Fraction(1), over) * (1 + kappa * crowding) + rho


def ratio_of_errors(
    rho: Fraction, over: Fraction, under: Fraction, crowding: Fraction, *, basis: str = "alpha_min"
) -> Fraction:
    """The same from rho, lambda, mu and K for either basis of virtual work."""
    if basis == "alpha_min":
        return ratio(rho, over, under * rho, crowding)
    return ratio(rho, over * rho, under, crowding)


def optimum_at_least(gangs: Gangs) -> Fraction:
    """The larger of LB-fluid and LB-job for total completion time [ticks]."""
    exact = Gangs(
        gangs.capacity, gangs.release, gangs.gang, gangs.shortest, gangs.longest, gangs.shortest
    )
    fluid = Fraction(sum(at for _, at in exact.virtual_order()), gangs.capacity)
    return max(fluid, Fraction(sum(gangs.release) + sum(gangs.shortest)))


def holds(gangs: Gangs, total: Fraction, factor: Fraction) -> bool:
    """True if a total completion time [ticks] is within a factor of the optimum's lower bounds."""
    return total <= factor * optimum_at_least(gangs) + len(gangs.gang)


def bound(instance: Instance, virtual_s: ArrayLike | None = None) -> Fraction:
    """The factor for an instance, with its own rho, Lambda, kappa and K.

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
    gangs = Gangs.of(instance, virtual_s)
    return ratio(gangs.rho, gangs.virtual_over, gangs.kappa, gangs.crowding)


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words: those of ASRPT-conv, and what OPT and cost are."""
    return (*missing_but_delays(run), *held_back(run))


def missing_but_delays(run: DescribedRun) -> tuple[str, ...]:
    """The same of runs in which jobs may be held back, where the longest delay is added for each job."""
    return missing_in(run, HYPOTHESES, not_strictly_in_order(run), not_of_completion(run))


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
    factor = bound(instance, virtual_s)
    total = Fraction(total_completion_s) * TICKS_PER_S
    return holds(Gangs.of(instance, virtual_s), total, factor)
