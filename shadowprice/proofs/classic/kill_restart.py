r"""KR-scale: jobs of unknown length, tried anew and for longer, cost at most a constant times the optimum.

Statement. Who is stopped starts from the beginning (``--with restart``).

(a) For any jobs, gangs and release dates: the least cost of schedules that stop jobs in this way is that of
schedules that stop nobody.

(b) :math:`m` GPUs in one pool of which no two jobs fit at once (:math:`2 \min_j g_j > m`; one GPU among them),
all jobs released at :math:`r`, equal weights, decisions at every event, no charges. ``b-scaling`` with tries of
:math:`\tau, \tau b, \tau b^2, \dots` knows no run time :math:`p_j`, and with :math:`q_j = \max(p_j, \tau / b)`

.. math:: \sum_j (C_j - r) \le \rho \sum_j \sum_{k \le j} q_{(k)}, \qquad \rho = 1 + \frac{2 b \sqrt b}{b - 1},

:math:`q_{(1)} \le q_{(2)} \le \dots`. If no job is shorter than :math:`\tau / b`, the double sum is the least
total flow time; :math:`\rho` is least for :math:`b = 3`, where it is :math:`1 + 3 \sqrt 3 < 6.197`.

(c) No smaller factor holds of ``b-scaling``: for tries of :math:`b, b^2, \dots` let there be :math:`K + 1`
lengths just over :math:`b^i`, about :math:`N b^{-i/2} \sin(\pi (i + 1) / (K + 2))` jobs of the i-th, the
longest first. The ratio tends to :math:`\rho` for large :math:`K` and :math:`N`.

Status. (b) and (c) are theorems of Jäger, Sagnol, Schmidt genannt Waldschmidt and Warode (IPCO 2023, for
weighted jobs; recalled from the abstract, which also says that no deterministic strategy of this kind has a
factor below 3); the proofs here are derived, and are ours where :math:`\tau > 0` and gangs are concerned. (a)
is immediate.

Proof.

1. (a) Leave out every run of a job but its last. What remains is feasible, ends when it did and stops nobody.
2. (b) Let r = 0, and first :math:`p = q`. Job j is in class i if :math:`\tau b^{i-1} < p_j \le \tau b^i` (in class 0
   from :math:`\tau / b` on): it ends in its try i, having lost :math:`S_i = \tau (b^i - 1) / (b - 1)`. One job runs at
   a time, always, so that :math:`C_j` is the time spent on all jobs until then. Of jobs j and k in classes i < l, j
   has spent :math:`S_i + p_j` when k ends, and k at most :math:`S_i + \tau b^i` when j ends. In one class both have
   lost :math:`S_i`, and who ends first has also run to its end. So the total is at most

   .. math:: U = \sum_j (S_i + p_j) + \sum_{i = l} (2 S_i + \max(p_j, p_k)) + \sum_{i < l} (2 S_i + p_j + \tau b^i),

   sums over pairs in the last two. The last job that is there is not stopped, which costs less. The optimum is
   :math:`O = \sum p_j + \sum \min(p_j, p_k)` over all pairs, shortest first.
3. The largest :math:`U - \rho O` is where every job has the least length of its class. Take the lowest class with
   others. With jobs in order of length both are linear, so that the largest is in a corner: some jobs have the least
   length of the class and the others :math:`\tau b^i`. Put these into class i + 1, of which that is the least length:
   O stays, and no term of U falls. Own terms and pairs among them grow by :math:`\tau b^i` or more; beside a job that
   stays, :math:`2 S_i + \tau b^i` becomes :math:`2 S_i + \tau b^{i-1} + \tau b^i`; beside one of class i + 1,
   :math:`2 S_i + 2 \tau b^i` becomes at least :math:`2 S_i + 3 \tau b^i`, and beside later ones it grows by more;
   beside those of earlier classes nothing changes. Go on with class i + 1.
4. Now let :math:`n_i` jobs have length :math:`l_i = \tau b^{i-1}`, :math:`D = \sum n_i (n_i + 1) l_i / 2` and
   :math:`X = \sum_{i < l} n_i n_l l_i`, so that :math:`O = D + X`. As :math:`S_i < l_i b / (b - 1)`,
   :math:`U \le (1 + 2 b / (b - 1)) O + b X`. With :math:`x_i = n_i \sqrt{l_i}`, X is
   :math:`\sum_{d \ge 1} b^{-d/2} \sum_i x_i x_{i+d}`, by Cauchy and Schwarz at most
   :math:`\sum_d b^{-d/2} \sum x_i^2 \le 2 D / (\sqrt b - 1)`. Hence :math:`X \le 2 O / (\sqrt b + 1)`, and
   :math:`2 b / (b - 1) + 2 b / (\sqrt b + 1) = 2 b \sqrt b / (b - 1)`.
5. A job shorter than :math:`\tau / b` ends in its first try. If it took :math:`\tau / b` all jobs would end as late or
   later, so that the bound holds with q.
6. (c) In step 2 all is equal in the limit of lengths just over :math:`l_i`, the longest first. For such n the
   inequality of step 4 becomes an equality in the limit: the sine is, but for the ends, the eigenvector to the
   largest eigenvalue of the Toeplitz matrix with entries :math:`b^{-|i - l| / 2}`. Q.E.D.

Search. Random lists of up to 8 jobs and Hypothesis found nothing above the bound; :func:`family` reaches 6.19 for
b = 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_of_policy
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight
from shadowprice.solvers.classic.b_scaling import BScaling

STATUS = "paper, recalled; proofs derived"

_BITS = 80


@dataclass(frozen=True)
class Tries:
    """Lengths of tries in whole ticks.

    Parameters
    ----------
    b : int
        Each is so many times as long as the one before.
    first : int
        tau, the length of the first [ticks].
    """

    b: int
    first: int

    @classmethod
    def of(cls, policy: BScaling) -> Tries:
        """Those of the policy."""
        return cls(policy.b, int(policy.first_s * TICKS_PER_S))

    @property
    def factor(self) -> Fraction:
        """Factor 1 + 2 b sqrt(b) / (b - 1), rounded up by less than 2^-79."""
        root = math.isqrt(4 * self.b**3 << 2 * _BITS) + 1
        return 1 + Fraction(root, (self.b - 1) << _BITS)

    def completions(self, work: Sequence[int]) -> list[int]:
        """Completion times [ticks] of jobs in the order of their tries on one machine; O(n) a try.

        The abstract algorithm of the statement, without engine: the last job that is there is not stopped.
        """
        ends, now, limit = [0] * len(work), 0, self.first
        live = list(range(len(work)))
        while live:
            later: list[int] = []
            for position, job in enumerate(live):
                alone = not later and position == len(live) - 1
                if alone or work[job] <= limit:
                    now += work[job]
                    ends[job] = now
                else:
                    now += limit
                    later.append(job)
            live, limit = later, limit * self.b
        return ends

    def respects(self, total: Fraction, work: Sequence[int]) -> bool:
        """True if a total flow time [ticks] is within (b), in exact arithmetic although rho is a root."""
        least = least_flow([max(Fraction(p), Fraction(self.first, self.b)) for p in work])
        over = (total - least) * (self.b - 1)
        return over <= 0 or over**2 <= 4 * self.b**3 * least**2


def least_flow(work: Sequence[Fraction]) -> Fraction:
    """Least total flow time of jobs released together on one machine: shortest first; O(n log n)."""
    n = len(work)
    return sum((p * (n - k) for k, p in enumerate(sorted(work))), Fraction(0))


KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # run times are work over throughput
        Feature.RESTART,  # who is stopped starts from the beginning
    }
)


def _not_restarted_one_by_one(instance: Instance) -> Iterator[str]:
    """Preempted jobs that keep their work, jobs that arrive one after another, and gangs of which two fit at once."""
    jobs, gpus = instance.workload, instance.cluster.total_gpus
    if not instance.restarts:
        yield "preempted jobs that keep their work (expected --with restart)"
    if (jobs.arrival_s != jobs.arrival_s[:1]).any():
        yield "jobs that arrive one after another"
    if 2 * int(jobs.gpus.min(initial=gpus)) <= gpus:
        yield "gangs of which two may run at once"


HYPOTHESES = Hypotheses("KR-scale", KNOWS, (_not_restarted_one_by_one, not_one_weight))
"""Of (b)."""


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses of (b) that a run does not meet, in words."""
    return missing_in(run, HYPOTHESES, not_of_policy(run, BScaling, "b-scaling"), _of_span(run))


def _of_span(run: DescribedRun) -> Iterator[str]:
    if run.objective is Objective.MAKESPAN:
        yield "the objective is makespan, the theorem is about total flow and completion time"


def bound(instance: Instance, policy: BScaling) -> Fraction:
    """Upper bound of total flow time [s], statement (b), rho rounded up; O(n log n).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    tries = Tries.of(policy)
    work = [max(Fraction(p), Fraction(tries.first, tries.b)) for p in _expected(instance)]
    return tries.factor * least_flow(work) / TICKS_PER_S


def least(instance: Instance) -> Fraction:
    """Least total flow time [s] of the jobs under the hypotheses of (b), by (a) and shortest first.

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    return least_flow([Fraction(p) for p in _expected(instance)]) / TICKS_PER_S


def check(instance: Instance, total_flow_s: float | Fraction, policy: BScaling) -> bool:
    """True if a run's total flow time [s] respects (b).

    Raises
    ------
    InputError
        If a hypothesis fails.
    """
    work = _expected(instance)
    return Tries.of(policy).respects(Fraction(total_flow_s) * TICKS_PER_S, work)


def _expected(instance: Instance) -> list[int]:
    """Run times of the jobs [ticks]."""
    HYPOTHESES.expect(instance)
    ticks: list[int] = to_ticks(instance.shortest_s).tolist()
    return ticks


def family(b: int, classes: int, jobs: int) -> list[int]:
    """Number of jobs of each length of (c), K + 1 of them, N the number given; two or more of each."""
    step = np.sin(np.pi * np.arange(1, classes + 1) / (classes + 1))
    found = jobs * step * float(b) ** (-np.arange(classes) / 2)
    return [max(round(count), 2) for count in found.tolist()]


def family_ratio(b: int, counts: Sequence[int]) -> Fraction:
    """Ratio of b-scaling to the optimum in (c), in the limit of lengths just over b^i; the longest come first.

    Parameters
    ----------
    counts : sequence of int
        Jobs of each length, two at least of the longest.
    """
    cost = best = 0
    for i, n in enumerate(counts):
        length, lost, longer = b**i, b * (b**i - 1) // (b - 1), sum(counts[i + 1 :])
        pairs = n * (n - 1) // 2
        cost += n * (lost + length) + pairs * (2 * lost + length)
        cost += n * longer * (2 * lost + length + b ** (i + 1))
        best += (n + pairs + n * longer) * length
    return Fraction(cost, best)
