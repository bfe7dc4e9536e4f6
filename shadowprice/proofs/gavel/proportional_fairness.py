r"""GAVEL-pf: in shares, proportional fairness costs at most 27 times the weighted completion times of any schedule.

Statement. :math:`n` jobs with weights :math:`w_j > 0`, release dates :math:`r_j`, gangs :math:`s_j` and works
:math:`p_j`; GPU types :math:`k` with :math:`W_k` GPUs and rates :math:`T_{jk}`; nobody shares GPUs and nothing
is charged. At every moment :math:`t` the jobs that are there get fractions of time :math:`X` with rates
:math:`u_j = \sum_k T_{jk} X_{jk}`, without knowledge of what is left of them, and there are prices
:math:`\pi_k, q_j \ge 0` with

.. math:: \frac{w_j T_{jk}}{u_j} \le s_j \pi_k + q_j, \qquad \sum_k W_k \pi_k + \sum_j q_j \le (1 + \epsilon) W_t,

:math:`W_t` the sum of their weights. These are the prices of proportional fairness, which maximises
:math:`\sum_j w_j \log u_j`: at the optimum :math:`\epsilon` is 0. A job is complete when :math:`u_j` has added up to
:math:`p_j`. Then for every schedule of the gangs on the cluster, preemptive, migrating and knowing the future,
with completion times :math:`C^*_j`,

.. math:: \sum_j w_j C_j \le 27 (1 + \epsilon) \sum_j w_j C^*_j .

Moreover, whatever the run, its prices bound the optimum: with :math:`0 < \kappa < 1` let :math:`\zeta_t` be the
least number for which the jobs with :math:`u_j / p_j \le \zeta_t` have a part of :math:`\kappa` of :math:`W_t`
or more, and

.. math::

    A = \sum_j w_j r_j + \int \sum_{j : u_j / p_j \le \zeta_t} w_j \, dt, \qquad
    B = \int \zeta_t \Bigl( (t - r_{min}) \sum_k W_k \pi_k + \sum_j (t - r_j) \, q_j \Bigr) dt .

Then :math:`\sum_j w_j C^*_j \ge A / \lambda - B / \lambda^2` for every :math:`\lambda \ge 1`.

Status. The factor 27 is the paper's (Jaeger, Lindermayr and Megow, SODA 2025, arXiv 2408.14310; the abstract
was read) for polytopes in general, after 128 (Im, Kulkarni and Munagala, J. ACM 65, 2018); the proof below is
derived, as are the bound by the run's own prices and the part of epsilon.
Remarks. It is about fractions of time
(:mod:`shadowprice.execution.shares`); rounds, in which ``gavel:proportional_fairness:aware=true`` hands them
out on real gangs, are not covered.

Proof.

1. A schedule of the gangs gives at every moment fractions z in {0, 1} with :math:`\sum_k z_{jk} \le 1` and
   :math:`\sum_j s_j z_{jk} \le W_k`. Slowed down by lambda, :math:`z'(t) = z(t / \lambda) / \lambda`, it respects
   release dates, has :math:`\lambda \sum_k z'_{jk} \le 1` and :math:`\lambda \sum_j s_j z'_{jk} \le W_k`, does the
   work p_j of each job, and

   .. math:: \sum_j \frac{w_j}{p_j} \int t \sum_k T_{jk} z'_{jk} \, dt \le \lambda \sum_j w_j C^*_j .

2. Dual prices of these rows: for numbers :math:`\alpha_j` and :math:`\beta_k(t), \gamma_j(t) \ge 0` with

   .. math:: (\alpha_j - w_j t) \frac{T_{jk}}{p_j} \le \lambda (s_j \beta_k(t) + \gamma_j(t)) \quad (t \ge r_j),

   multiplication by z' and summation give :math:`\lambda \sum_j w_j C^*_j \ge \sum_j \alpha_j -
   \int_{r_{min}}^\infty \sum_k W_k \beta_k - \sum_j \int_{r_j}^\infty \gamma_j`.
3. Let :math:`\alpha_j = w_j r_j + \int w_j [u_j / p_j \le \zeta_t] \, dt` over the time j is there, and
   :math:`\beta_k(t) = \frac{1}{\lambda} \int_t^\infty \zeta \pi_k`, :math:`\gamma_j(t) = \frac{1}{\lambda}
   \int_t^\infty \zeta q_j`. For :math:`t \ge r_j`, :math:`\alpha_j - w_j t \le \int_t^\infty w_j [u_j / p_j \le
   \zeta]`, and where the bracket is 1, :math:`w_j T_{jk} / p_j \le (u_j / p_j)(s_j \pi_k + q_j) \le \zeta (s_j
   \pi_k + q_j)`: the prices of 2. The alphas add up to A, the integrals to :math:`B / \lambda`, by exchange of the
   order of integration.
4. By the choice of zeta :math:`A \ge \kappa \sum_j w_j C_j`, and the jobs with :math:`u_j / p_j \ge \zeta` have more
   than :math:`(1 - \kappa) W_t`, so that :math:`(1 - \kappa) \zeta W_t \le \sum_j w_j u_j / p_j` and
   :math:`B \le \frac{1 + \epsilon}{1 - \kappa} \int t \sum_j w_j u_j / p_j \, dt \le \frac{1 + \epsilon}{1 - \kappa}
   \sum_j w_j C_j`.
5. With :math:`\kappa = 2/3` and :math:`\lambda = 9 (1 + \epsilon)` the bound is at least
   :math:`\sum_j w_j C_j \left(\frac{2/3}{9 (1 + \epsilon)} - \frac{3 (1 + \epsilon)}{81 (1 + \epsilon)^2}\right) =
   \frac{1}{27 (1 + \epsilon)} \sum_j w_j C_j`. Q.E.D.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shadowprice.errors import InputError
from shadowprice.execution.shares import SharesRun, ShareStep, exact_rates
from shadowprice.instances.features import Feature, require

STATUS = "paper for 27; ours for its proof here, and for the bound by a run's own prices"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # T_jk
        Feature.TYPES,  # each with prices of its own
    }
)

FACTOR = 27
QUANTILE = Fraction(2, 3)
"""kappa of the proof of 27."""

QUANTILES = tuple(Fraction(k, 10) for k in range(3, 10))
"""kappas of which the best bound is taken."""

MOST_OFF = Fraction(1, 10**6)
"""epsilon beyond which an allocation is not taken for proportional fairness."""


@dataclass(frozen=True)
class StepPrices:
    """Prices of a step, exactly.

    Parameters
    ----------
    worker : Fraction
        All GPUs at their prices.
    time : tuple of Fraction
        Price q_j of each job's time: the least that fits the prices of GPUs.
    """

    worker: Fraction
    time: tuple[Fraction, ...]


def step_prices(step: ShareStep) -> StepPrices:
    """Prices of GPUs as they were told, and the least q_j that go with them.

    Raises
    ------
    InputError
        If the allocation has no price of each type's GPUs, or a job gets nothing.
    """
    problem, told = step.allocation.problem, step.allocation.prices
    if told is None or told.worker.shape != (1, len(problem.capacity)):
        raise InputError(f"{step.allocation.policy}: has no prices of GPUs by type")
    if not all(step.rate):
        raise InputError(
            f"{step.allocation.policy}: gives a job nothing, which has no finite logarithm"
        )
    price = [max(Fraction(each), Fraction(0)) for each in told.worker[0].tolist()]
    by_type = [price[k] for k in problem.accelerators]
    time = []
    rows = (problem.weight.tolist(), problem.gpus.tolist(), problem.throughput.tolist(), step.rate)
    for weight, gpus, throughput, rate in zip(*rows, strict=True):
        each = Fraction(weight) / rate
        usable = zip(throughput, by_type, problem.type_capacity.tolist(), strict=True)
        worth = (each * Fraction(t) - gpus * pi for t, pi, there in usable if there)
        time.append(max([Fraction(0), *worth]))
    capacity = problem.capacity.tolist()
    worker = sum((Fraction(w) * pi for w, pi in zip(capacity, price, strict=True)), Fraction(0))
    return StepPrices(worker, tuple(time))


def most_off(run: SharesRun) -> Fraction:
    """epsilon: by how much prices exceed the weights, at most, over all steps; 0 at least."""
    found = [Fraction(0)]
    for step in run.steps:
        prices = step_prices(step)
        weight = sum(map(Fraction, step.allocation.problem.weight.tolist()), Fraction(0))
        found.append((prices.worker + sum(prices.time)) / weight - 1)
    return max(found)


def least_cost(run: SharesRun, quantile: Fraction) -> Fraction:
    """Lower bound of the weighted completion times of any schedule [s], by the prices of a run.

    The best lambda is taken. Whatever the run, the bound holds.

    Raises
    ------
    InputError
        If the instance says more than the theorem knows, or a step has no prices.
    """
    require(run.instance, KNOWS, "GAVEL-pf")
    jobs = run.instance.workload
    arrival = [Fraction(at) for at in jobs.arrival_s.tolist()]
    weight = [Fraction(w) for w in jobs.weight.tolist()]
    work = [Fraction(p) for p in jobs.work.tolist()]
    gained = sum((w * r for w, r in zip(weight, arrival, strict=True)), Fraction(0))
    paid = Fraction(0)
    for step in run.steps:
        prices, rows = step_prices(step), step.jobs.tolist()
        speed = [rate / work[job] for job, rate in zip(rows, step.rate, strict=True)]
        zeta = _quantile(speed, [weight[job] for job in rows], quantile)
        slow = [weight[job] for job, each in zip(rows, speed, strict=True) if each <= zeta]
        lasts = step.end_s - step.start_s
        gained += lasts * sum(slow, Fraction(0))
        middle = (step.start_s + step.end_s) / 2
        due = (middle - min(arrival)) * prices.worker
        for job, each in zip(rows, prices.time, strict=True):
            due += (middle - arrival[job]) * each
        paid += zeta * lasts * due
    slower = max(Fraction(1), 2 * paid / gained) if gained else Fraction(1)
    return gained / slower - paid / slower**2


def best_least_cost(run: SharesRun) -> Fraction:
    """The largest of these bounds over some quantiles."""
    return max(least_cost(run, each) for each in QUANTILES)


def bound(total_completion_s: Fraction, off: Fraction = Fraction(0)) -> Fraction:
    """Least weighted completion times of any schedule [s] that the factor leaves possible.

    Parameters
    ----------
    off : Fraction
        epsilon of the run.
    """
    return total_completion_s / (FACTOR * (1 + off))


def check(run: SharesRun) -> bool:
    """True if a run in shares is proportionally fair, does the work, and keeps within 27 times what its prices prove.

    O(steps (jobs types + jobs log jobs)) exact operations.

    Raises
    ------
    InputError
        If the instance says more than the theorem knows, or a step has no prices.
    """
    require(run.instance, KNOWS, "GAVEL-pf")
    off = most_off(run)
    proven = off <= MOST_OFF and _does_the_work(run)
    return proven and least_cost(run, QUANTILE) >= bound(run.total_completion_s, off)


def _does_the_work(run: SharesRun) -> bool:
    """True if rates are those of the allocations, and add up to the work of each job when it ends."""
    jobs = run.instance.workload
    done = [Fraction(0)] * len(jobs)
    last = [Fraction(at) for at in jobs.arrival_s.tolist()]
    for step in run.steps:
        if step.rate != exact_rates(step.allocation):
            return False
        for job, rate in zip(step.jobs.tolist(), step.rate, strict=True):
            if step.start_s != last[job]:
                return False  # It was there, and got nothing.
            done[job] += rate * (step.end_s - step.start_s)
            last[job] = step.end_s
    work = [Fraction(p) for p in jobs.work.tolist()]
    return done == work and tuple(last) == run.end_s


def _quantile(speed: list[Fraction], weight: list[Fraction], quantile: Fraction) -> Fraction:
    """Least number such that the jobs of at most this speed have that part of the weight."""
    enough, so_far = quantile * sum(weight), Fraction(0)
    for each, own in sorted(zip(speed, weight, strict=True)):
        so_far += own
        if so_far >= enough:
            return each
    return max(speed)
