r"""ASRPT-robust: A-SRPT that shares its time with a rule without predictions keeps its factor and has another one.

Statement. Notation of ASRPT-conv and ASRPT-pred; one pool, gangs anywhere, no graphs, no charges, decisions at
events, nobody shares. ``asrpt-robust`` has cycles of length :math:`\delta` from 0 on, the last part of each, of
length :math:`\beta = \varepsilon \delta`, blind. The virtual machine :math:`V` runs in predicted time:
:math:`j` is released at the predicted time until :math:`r_j`, with work :math:`g_j q_j / m`, and done at
:math:`C_j^V`, rounded up to a tick. Jobs are numbered in the order of :math:`V`,
:math:`\gamma_j = \max_{i \le j} g_i`. Then

(a)

.. math:: C_j \le \frac{1}{1 - \varepsilon}
   \Bigl(C_j^V + \frac{\sum_{i < j} g_i p_i}{m - \gamma_j + 1} + p_j\Bigr);

(b) whatever the predictions,

.. math:: C_j \le r_j + (1 - \varepsilon) \delta + \frac{1}{\varepsilon} \Bigl(p_j +
   \frac{\sum_{i \ne j} \min(g_i p_i, g_j p_j + g_i \beta)}{m - g_j + 1}\Bigr);

(c) against every offline schedule in which nobody shares GPUs, with :math:`K = m / (m - \max_j g_j + 1)`,
:math:`\Lambda = \max(1, \max_j q_j / p_j)` and :math:`\kappa = \max_j p_j / q_j`,

.. math:: \sum_j C_j \le \frac{\Lambda (1 + \kappa K) + 1}{1 - \varepsilon}\,\mathrm{OPT}, \qquad
   \sum_j C_j \le \frac{1 + 2 K}{\varepsilon}\,\mathrm{OPT}
   + n \delta \Bigl(1 - \varepsilon + \frac{\sum_i g_i}{m - \max_j g_j + 1}\Bigr).

The first is the factor of ASRPT-pred over the share of predicted time: :math:`2 + K` over it if predictions are
exact (consistency). The second does not know them (robustness).

Status. Ours: derived here; that shares add up in this way on one machine is the idea of preferential round
robin (Purohit, Svitkina, Kumar, NeurIPS 2018; recalled).

Remarks. No rule that stops nobody and trusts
predictions has such a factor: of :math:`n` jobs with equal predictions on one GPU it starts one, which may be
the long one, and the ratio tends to :math:`n` with its length.
The theorem is about completion times. Algorithms for total flow time whose factor grows with the error alone (Azar,
Leonardi, Touitou, SODA 2022; Gupta et al., SODA 2026; abstracts were read) are for one machine.

Proof.

1. Let j wait at a moment of predicted time at which V has released it. While somebody waits decisions fall at virtual
   completions and where a part of a cycle begins. Let i be the first in the order of V that is neither complete nor
   started; i <= j. It does not fit beside those that have started: they hold at least
   :math:`m - g_i + 1 \ge m - \gamma_j + 1` GPUs, and all come before i. In predicted time they use no more than
   :math:`\sum_{i < j} g_i p_i` in all: what is done in blind time, or on GPUs that were left over, only shortens it.
   Once started, j runs whenever predicted time passes. So it is complete when that has come to the sum in (a).
2. Predicted time comes first in a cycle: it has come to a when time is at most :math:`a / (1 - \varepsilon)`. That is
   (a).
3. Let j wait in blind time. Those chosen before it hold at least :math:`m - g_j + 1` GPUs. At the decision no more
   blind service was counted for them than for j, hence at most :math:`g_j p_j`, and the next decision is at most
   :math:`\beta` of blind time later. So i holds GPUs before j while j waits for at most
   :math:`\min(g_i p_i, g_j p_j + g_i \beta)` GPU-seconds of blind time, and all waiting of j in blind time takes the
   quotient in (b); the rest of blind time it runs, for p_j at most.
4. In any time of length L blind time is at least :math:`\varepsilon (L - (1 - \varepsilon) \delta)`. That is (b).
5. (c) Predicted time until r_j is at most r_j, so that steps 2 and 3 of ASRPT-pred hold of V, :math:`\sum C_j^V \le
   \Lambda\, OPT`; :math:`\sum_{i<j} g_i p_i \le \kappa m C_j^V` and :math:`\sum p_j \le OPT`. For the second,
   :math:`\sum_j \sum_{i \ne j} \min(g_i p_i, g_j p_j) \le 2 m\,OPT` as in TIR-las (c), where all are released at 0,
   which costs no more; and :math:`\sum (r_j + p_j) \le OPT`. Q.E.D.

On the time grid V's completions are rounded up to a tick, which (a) has; (c) has less than a tick more a job.

Search. 1,500 random instances with up to 8 jobs on up to 4 GPUs, predictions off by factors up to 64: no job above
either bound, 0.998 of (a) and 0.978 of (b) attained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from numpy.typing import ArrayLike

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.described_run import (
    DescribedRun,
    missing_in,
    not_of_completion,
    not_of_policy,
)
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight
from shadowprice.solvers.asrpt.cycles import Cycles
from shadowprice.solvers.asrpt.robust import RobustAsrpt
from shadowprice.solvers.asrpt.srpt_machine import virtual_completions

STATUS = "ours"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("ASRPT-robust", KNOWS, (not_one_weight,))


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words."""
    policy = not_of_policy(run, RobustAsrpt, "asrpt-robust")
    return missing_in(run, HYPOTHESES, policy, not_of_completion(run))


@dataclass(frozen=True)
class JobBounds:
    """Upper bounds of one completion time [ticks].

    Parameters
    ----------
    predicted, blind : Fraction
        (a), which depends on predictions, and (b), which does not.
    """

    predicted: Fraction
    blind: Fraction

    @property
    def least(self) -> Fraction:
        """The smaller one: both hold."""
        return min(self.predicted, self.blind)


def job_bounds(gangs: Gangs, cycles: Cycles) -> list[JobBounds]:
    """(a) and (b) of every job, shape (n,); O(n^2)."""
    share = Fraction(cycles.blind, cycles.length)
    predicted, m = _predicted(gangs, cycles), gangs.capacity
    service = [g * p for g, p in zip(gangs.gang, gangs.shortest, strict=True)]
    found = []
    for j, (g, p) in enumerate(zip(gangs.gang, gangs.shortest, strict=True)):
        ahead = sum(
            min(v, service[j] + gangs.gang[i] * cycles.blind)
            for i, v in enumerate(service)
            if i != j
        )
        alone = p + Fraction(ahead, m - g + 1)
        blind = gangs.release[j] + cycles.length - cycles.blind + alone / share
        found.append(JobBounds(predicted[j] / (1 - share), blind))
    return found


def _predicted(gangs: Gangs, cycles: Cycles) -> list[Fraction]:
    """Predicted time at which each job is complete at the latest [ticks], the bracket of (a); O(n log n)."""
    m = gangs.capacity
    release = [cycles.predicted(r) * m for r in gangs.release]
    work = [g * q for g, q in zip(gangs.gang, gangs.virtual, strict=True)]
    ahead, widest = 0, 1
    found = [Fraction(0)] * len(work)
    for job, done in virtual_completions(release, work):
        widest = max(widest, gangs.gang[job])
        found[job] = -(-done // m) + Fraction(ahead, m - widest + 1) + gangs.shortest[job]
        ahead += gangs.gang[job] * gangs.shortest[job]
    return found


@dataclass(frozen=True)
class Factors:
    """Factors of (c), and what the second adds.

    Parameters
    ----------
    consistency, robustness : Fraction
        Of the optimum.
    more_s : Fraction
        Added to the robust one [s].
    """

    consistency: Fraction
    robustness: Fraction
    more_s: Fraction

    @classmethod
    def of(cls, gangs: Gangs, cycles: Cycles) -> Factors:
        """Those of an instance's numbers."""
        share = Fraction(cycles.blind, cycles.length)
        over = max(gangs.virtual_over, Fraction(1))
        k, n = gangs.crowding, len(gangs.gang)
        more = n * cycles.length * (1 - share + sum(gangs.gang) * k / gangs.capacity)
        return cls(
            (over * (1 + gangs.kappa * k) + 1) / (1 - share),
            (1 + 2 * k) / share,
            more / TICKS_PER_S,
        )


def bound(instance: Instance, cycles: Cycles, virtual_s: ArrayLike | None = None) -> Fraction:
    """Upper bound of total completion time [s]: the smaller of (a) and (b) for each job.

    Parameters
    ----------
    virtual_s : array_like, optional
        q_j [s], shape (n,); the true run times if not given.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    limits = _expected(instance, cycles, virtual_s)
    return sum((each.least for each in limits), Fraction(0)) / TICKS_PER_S


def check(
    instance: Instance,
    completion_s: Sequence[float | Fraction],
    cycles: Cycles,
    virtual_s: ArrayLike | None = None,
) -> bool:
    """True if all completion times [s] of a run respect (a) and (b).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    limits = _expected(instance, cycles, virtual_s)
    return all(
        Fraction(end) * TICKS_PER_S <= each.least
        for end, each in zip(completion_s, limits, strict=True)
    )


def _expected(instance: Instance, cycles: Cycles, virtual_s: ArrayLike | None) -> list[JobBounds]:
    HYPOTHESES.expect(instance)
    return job_bounds(Gangs.of(instance, virtual_s), cycles)
