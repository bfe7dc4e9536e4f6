r"""HADAR-2a: the commit-once primal-dual with exponential prices, for gangs of any size.

Statement. Rounds :math:`t < T`, nodes :math:`h` of :math:`c_h` GPUs, jobs in order of arrival with utilities as
in HADAR-cert. Prices are :math:`k_h = L_h (U_h / L_h)^{\min(\gamma_h / s_h, 1)}` of the load
:math:`\gamma_h(t)`. Each job is given the schedule of largest payoff among those that fit, if that is positive,
and is refused otherwise. Let :math:`g_h = \min(\max_j W_j, c_h)` and

.. math:: \alpha = \max\Bigl(1, \max_h \max_{\gamma + w \le c_h,\; 1 \le w \le g_h}
          \frac{c_h}{w} \Bigl(\frac{k_h(\gamma + w)}{k_h(\gamma)} - 1\Bigr)\Bigr),

let :math:`P` be the utility earned, :math:`D_0 = T \sum_h c_h L_h`, and let :math:`\delta_j \ge 0` be what the
best payoff of job :math:`j` at the prices it met would have been if the commitments took no GPUs, less the best
of those that fit (each at least 0). OPT is the largest total utility of an offline schedule of whole rounds,
without overheads, in which nobody shares GPUs. Then

(a) :math:`\mathrm{OPT} \le D_0 + \alpha P + \sum_j \delta_j`, always;
(b) with :math:`s_h = c_h - g_h + 1` and :math:`U_h \ge \max_j U_j` all :math:`\delta_j` are 0;
(c) if also :math:`D_0 \le \mathrm{OPT} / 2`, then :math:`\mathrm{OPT} \le 2 \alpha P`.

Status. Ours; corrects the published condition (the published proof is recalled, not read).

Remarks. For the published :math:`s_h = c_h` the factor is :math:`\alpha_\theta = ((U/L)^\theta - 1) / \theta` with
:math:`\theta = g_h / c_h`, which falls to :math:`\ln(U / L)` only as :math:`\theta \to 0`. The published
condition is of this kind: demands must vanish beside a node's capacity. A gang that fills a node has
:math:`\theta = 1` and :math:`\alpha_1 = U / L - 1`, a bound without use. And with :math:`s_h = c_h` the prices
may admit a job that does not fit; then dual feasibility breaks, :math:`\delta_j > 0`, and no ratio follows but
(a) and that of the run's own duals (HADAR-cert). (b) heals this, as prices reach the top before a gang might
not fit, at a factor that is a guarantee in name only: 60 GPUs in nodes of 4, 600 rounds and equal utilities,
with :math:`D_0` half of one job's, make :math:`2 \alpha = 123` for single GPUs, 6,919 for gangs of up to 2 and
576,000 for gangs of up to 4.

Proof.

1. Let mu_j be the best payoff of j over all schedules, fitting or not, at the prices it met, or 0.
   Prices never fall, so (k at the end, mu) is dual feasible and OPT <= D_end by HADAR-cert.
2. A job committed to s raises P by :math:`U_j = \mu_j - \delta_j + \sum k w` and the dual value by
   :math:`\mu_j + \sum c_h (k_h(\gamma + w) - k_h(\gamma)) \le \mu_j + \alpha \sum k w \le \delta_j + \alpha U_j`, since
   :math:`\alpha \ge 1` and :math:`\mu_j - \delta_j \ge 0`. A refused job raises it by mu_j = delta_j. Summing from D_0
   gives (a).
3. A schedule that does not fit has w GPUs on some node and round with :math:`\gamma + w > c_h`, hence
   :math:`\gamma \ge c_h - g_h + 1 = s_h`:
   one of its GPUs alone costs :math:`U_h \ge U_j`, its payoff is not positive. (b).
4. :math:`\mathrm{OPT} \le D_0 + \alpha P \le \mathrm{OPT} / 2 + \alpha P`. (c). Q.E.D.

:math:`L_h = \min_j U_j^{alone} / (2 T \sum c)` gives D_0 <= OPT / 2, since OPT is no less than what one job
earns alone. The search for the schedule has to be exact; payoffs in floats are, to a relative 1e-9.
The theorem is about schedules that are bought once. Re-deciding every round, as the published
scheduler does, it says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.hadar.commit_schedule import CommittableJob, best_schedule
from shadowprice.solvers.hadar.committed_load import Commitment, CommittedLoad
from shadowprice.solvers.hadar.prices import (
    ExponentialPrices,
    guaranteed_bounds,
    reserved_full_at,
)

STATUS = "ours"

_SLACK = Fraction(1_000_000_001, 1_000_000_000)
_EXACT = 1_000_000


@dataclass(frozen=True)
class Committed:
    """A run of the commit-once algorithm and what the theorem says about it.

    Parameters
    ----------
    commitments
        One a job, None where it was refused.
    prices : ndarray, shape (rounds, nodes)
        Prices at the end.
    earned, initial : Fraction
        P and D_0.
    alpha : float
        Factor of the dual increase.
    conflicts : tuple of float
        delta_j.
    """

    commitments: tuple[Commitment | None, ...]
    prices: NDArray[np.float64]
    earned: Fraction
    initial: Fraction
    alpha: float
    conflicts: tuple[float, ...]

    @property
    def bound(self) -> Fraction:
        """Upper bound of the optimum by (a), with the slack for payoffs in floats."""
        conflicts = sum(map(Fraction, self.conflicts), Fraction(0))
        return (self.initial + Fraction(self.alpha) * self.earned + conflicts) * _SLACK

    @property
    def ratio_bound(self) -> Fraction | None:
        """2 alpha, where (c) applies; None if capacity has refused what the prices would admit."""
        return None if any(self.conflicts) else 2 * Fraction(self.alpha) * _SLACK


def bound(run: Committed) -> Fraction:
    """Upper bound of the optimum by (a)."""
    return run.bound


def alpha_theta(spread: float, theta: float) -> float:
    r"""Factor of the published prices, :math:`\max(1, ((U/L)^\theta - 1) / \theta)`, spread = U / L.

    Raises
    ------
    InputError
        If spread is below 1 or theta outside (0, 1].
    """
    if not (spread >= 1 and 0 < theta <= 1):
        raise InputError(
            f"hadar: spread is {spread!r} and theta {theta!r}, expected U / L >= 1 and 0 < theta <= 1"
        )
    return float(max(1.0, np.expm1(theta * np.log(spread)) / theta))


def factor(prices: ExponentialPrices, capacity: NDArray[np.int64], largest_gang: int) -> float:
    """Alpha of the statement, over all loads and demands; O(nodes x GPUs of a node squared)."""
    most = 1.0
    for gpus in range(int(capacity.max())):
        for more in range(1, largest_gang + 1):
            fits = gpus + more <= capacity
            before, after = (
                prices.at(np.full(len(capacity), gpus)),
                prices.at(np.full(len(capacity), gpus + more)),
            )
            growth = np.where(fits, capacity / more * (after / before - 1.0), 0.0)
            most = max(most, float(growth.max()))
    return most


def commit_once(
    jobs: Sequence[CommittableJob],
    capacity: NDArray[np.int64],
    type_of_node: NDArray[np.int64],
    rounds: int,
    *,
    reserved: bool = True,
) -> Committed:
    """Run the algorithm with the theorem's bounds; with ``reserved`` prices, or the published.

    Raises
    ------
    InputError
        If no job has a positive utility when it is alone.
    """
    prices = _posted(jobs, CommittedLoad(capacity, type_of_node), rounds, reserved)
    committed = CommittedLoad(capacity, type_of_node)
    made: list[Commitment | None] = []
    conflicts: list[float] = []
    for job in jobs:
        admitted = best_schedule([job], committed, prices, labels=_EXACT, fits=False)
        commitment = best_schedule([job], committed, prices, labels=_EXACT)
        if commitment is not None:
            committed.add(commitment)
        made.append(commitment)
        conflicts.append(max(_payoff(admitted) - _payoff(commitment), 0.0))
    earned = sum((Fraction(each.utility) for each in made if each is not None), Fraction(0))
    initial = rounds * sum(
        (
            Fraction(price) * gpus
            for price, gpus in zip(prices.lowest.tolist(), capacity.tolist(), strict=True)
        ),
        Fraction(0),
    )
    return Committed(
        tuple(made),
        prices.at(committed.load(0, rounds)),
        earned,
        initial,
        factor(prices, capacity, max(job.gpus for job in jobs)),
        tuple(conflicts),
    )


def _posted(
    jobs: Sequence[CommittableJob], empty: CommittedLoad, rounds: int, reserved: bool
) -> ExponentialPrices:
    """Prices by the utilities that the jobs have when each is alone."""
    capacity = empty.capacity
    next_to_nothing = np.full(len(capacity), 1e-200)
    free = ExponentialPrices(next_to_nothing, next_to_nothing, capacity)
    alone = [best_schedule([job], empty, free, labels=_EXACT) for job in jobs]
    best = np.array([0.0 if each is None else each.utility for each in alone])
    types = int(empty.type_of_node.max()) + 1
    bounds = guaranteed_bounds(best, rounds, int(capacity.sum()), types)
    gang = max(job.gpus for job in jobs)
    full_at = reserved_full_at(capacity, gang) if reserved else capacity
    return ExponentialPrices.of(bounds, empty.type_of_node, full_at)


def check(run: Committed, optimum: Fraction) -> bool:
    """True if an optimum respects (a), and (c) where it applies."""
    ratio = run.ratio_bound
    return optimum <= run.bound and (ratio is None or optimum <= ratio * run.earned)


def _payoff(commitment: Commitment | None) -> float:
    return 0.0 if commitment is None else commitment.payoff
