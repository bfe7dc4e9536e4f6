r"""TIR-las: least attained service, continuous and in queues.

Notation. :math:`m` GPUs of one speed, job :math:`j` has gang :math:`g_j`, run time :math:`p_j`, service
:math:`v_j = g_j p_j`. Continuous LAS shares the GPUs equally among the jobs of least attained service, each at
rate at most 1. Weights are equal, nothing is charged, decisions fall at every event; OPT is the least total
completion time of any offline schedule, preemptive ones included, in which nobody shares GPUs (at a moment).

**(a) Single GPUs, all released at 0.** Continuous LAS has

.. math:: \sum C_j \le 2\,\mathrm{OPT} - \tfrac1m \sum p_j,

Re-deciding every :math:`q` instead of continuously,

.. math:: C_j \le \frac1m \sum_i \min(p_i, p_j + q [i \ne j]) + \Bigl(1 - \frac1m\Bigr) p_j .

**(b) Queues, gangs, release dates.** 2D-LAS or 2D-Gittins with fixed thresholds, GPUs by count, no
charges, no promotion, any order inside a queue. Let :math:`\mathrm{hi}(v)` be the least threshold :math:`\ge v`,
infinity if there is none. Then

.. math:: C_j \le r_j + p_j + \frac{1}{m - g_j + 1} \sum_{i \ne j} \min(v_i, \mathrm{hi}(v_j)) .

**(c) Gangs, continuous 2D-LAS, all released at 0.** The limit of (b) for thresholds ever closer, with
:math:`\gamma = \max_j g_j`: :math:`\sum C_j \le (1 + 2m / (m - \gamma + 1))\,\mathrm{OPT}`, at most
5 OPT if :math:`\gamma \le m/2`.

**(d) No constant with fixed thresholds.** One GPU, thresholds up to :math:`Q`, first a job of length :math:`L`,
then :math:`n - 1` of length :math:`Q + e`. All reach :math:`Q`, at :math:`n Q`; then the long one,
which started first, goes first. For :math:`L` to infinity the ratio to OPT tends to :math:`n`.

**(e) No constant for gangs on clusters of any size.** Continuous 2D-LAS, :math:`m` GPUs, one single-GPU job
of length :math:`m` before :math:`n` gangs of :math:`m` GPUs and length 1: the ratio is at least
:math:`n m / (n (n + 1)/2 + n + m)`, which for :math:`n = \sqrt{2m}` is about :math:`\sqrt{m/2}`.
Between that and the :math:`1 + 2 m` of (c) for such gangs the truth is open.

Status. (a) is classic for one machine (Motwani, Phillips, Torng 1994, equal shares); for m the proof
is folklore. (b) to (e) ours.

Proof.

(a) Until C_j, every other job i attains at most min(p_i, p_j): it is served beside or before j only
while it has attained no more. In [0, C_j) either all GPUs are busy, for B in total, or fewer jobs than
GPUs are left and j runs at rate 1, for :math:`R \le p_j` in total. Work done is at least m B + R, so
:math:`C_j = B + R \le \frac1m \sum_i \min(p_i, p_j) + (1 - \frac1m) p_j`. With a quantum, i gains on j
only in an interval that begins with i having attained no more than j, and the interval has length at
most q while somebody waits: hence p_j + q. Sum over j, jobs in order of length, with
:math:`S = \sum_j \sum_{i \le j} p_i` the optimum of one machine:
:math:`\sum_j \sum_i \min(p_i, p_j) = 2 S - \sum p_j`, so
:math:`\sum C_j \le \frac2m S + (1 - \frac2m) \sum p_j`. Eastman, Even and Isaacs (1964):
:math:`\mathrm{OPT} \ge \frac1m S + \frac{m-1}{2m} \sum p_j`; preemption does not help (McNaughton
1959). Twice that, less the first, leaves :math:`\frac1m \sum p_j`.

(b) While j waits, the jobs that were chosen before it hold more than m - g_j GPUs: at least
m - g_j + 1. Each of them is in no later queue than j, so has attained less than the upper limit of
j's queue, which is at most hi(v_j); a demotion is a decision, so it never passes that limit before
j is asked again. Completions are decisions too. So all waiting of j together takes at most
:math:`\sum_{i \ne j} \min(v_i, \mathrm{hi}(v_j)) / (m - g_j + 1)`; the rest of its time it runs.

(c) With hi(v_j) to v_j, and S the optimum of one machine with works v_j / m:
:math:`\sum_j \sum_{i \ne j} \min(v_i, v_j) = 2 (m S - \sum v_j)`. OPT is at least S (LB-fluid) and at
least :math:`\sum p_j`.

(d) 2D-LAS: C_1 = n Q + L - Q, and the k-th other at C_1 + k e. Shortest first: k (Q + e) for the
others, L + (n - 1)(Q + e) for the long one.

(e) A gang is done when it has attained m GPU-s; while it was behind the single job's service it waited
for nobody, and whenever it ran ahead of it, the single job was due. So at its end the single job has
attained m as well, alone on the cluster since a gang takes all of it: C_j >= m for every gang. The
gangs first, then the single job, is a schedule: OPT <= n (n + 1)/2 + n + m. Q.E.D.

Search. For (c), hill climbing from random instances with n <= 5, m <= 5 and runs of up to 6 slots found
:data:`WORST_GANGS`, of ratio 31/15 to the best schedule of whole slots; it led to (e).

On the time grid a demotion may be up to a tick late: (b) is checked with g_i ticks more for every i.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from shadowprice.instances.features import Feature
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_of_policy
from shadowprice.proofs.hypotheses import Hypotheses, not_one_weight
from shadowprice.solvers.tiresias.las2d import Las2d

STATUS = "(a) classic, (b)-(e) ours"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("TIR-las", KNOWS, (not_one_weight,))


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses of (b) that a run of 2D-LAS does not meet, in words."""
    return missing_in(run, HYPOTHESES, not_of_policy(run, Las2d, "2D-LAS"), _promoting(run))


def _promoting(run: DescribedRun) -> Iterator[str]:
    if isinstance(run.policy, Las2d) and run.policy.promote_knob != math.inf:
        yield "jobs that wait are promoted"


def continuous_completions(work: Sequence[Fraction], capacity: int) -> list[Fraction]:
    """Completion times of continuous LAS, single GPUs, all released at 0, shortest first.

    All live jobs have attained the same, x; that grows at rate min(1, m / live). O(n log n).
    """
    now, level, ends = Fraction(0), Fraction(0), []
    for done, p in enumerate(sorted(work)):
        live = len(work) - done
        now += (p - level) * max(Fraction(1), Fraction(live, capacity))
        level = p
        ends.append(now)
    return ends


def optimum(work: Sequence[Fraction], capacity: int) -> Fraction:
    """Least total completion time of single-GPU jobs released at 0: shortest first on m GPUs.

    The k-th longest counts ceil(k / m) times. Exact (Conway, Maxwell, Miller 1967); O(n log n).
    """
    longest = sorted(work, reverse=True)
    return sum((p * (k // capacity + 1) for k, p in enumerate(longest)), Fraction(0))


def continuous_bound(work: Sequence[Fraction], capacity: int) -> Fraction:
    """(a): 2 OPT less the mean load, an upper bound of continuous LAS' total completion time."""
    return 2 * optimum(work, capacity) - Fraction(sum(work)) / capacity


def quantum_bounds(work: Sequence[int], capacity: int, quantum: int) -> list[Fraction]:
    """(a) with a quantum: bounds of all completion times, shape (n,), in the units given."""
    return [
        Fraction(
            sum(p if i == j else min(p, own + quantum) for i, p in enumerate(work))
            + (capacity - 1) * own,
            capacity,
        )
        for j, own in enumerate(work)
    ]


def bounds(instance: Instance, thresholds_gpu_s: Sequence[float]) -> list[Fraction]:
    """(b): upper bounds of all completion times [s], shape (n,); O(n^2).

    Parameters
    ----------
    thresholds_gpu_s : sequence of float
        Upper limits of all queues but the last, increasing [GPU-s].

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    m = instance.cluster.total_gpus
    gang = instance.workload.gpus.tolist()
    release = to_ticks(instance.workload.arrival_s).tolist()
    run = to_ticks(instance.shortest_s).tolist()
    service = [g * p for g, p in zip(gang, run, strict=True)]
    limits = [Fraction(limit) * TICKS_PER_S for limit in thresholds_gpu_s]
    found = []
    for j, own in enumerate(service):
        upper = next((limit for limit in limits if limit >= own), None)
        ahead = sum(
            (v if upper is None else min(Fraction(v), upper + gang[i]))
            for i, v in enumerate(service)
            if i != j
        )
        found.append((release[j] + run[j] + Fraction(ahead, m - gang[j] + 1)) / TICKS_PER_S)
    return found


def bound(instance: Instance, thresholds_gpu_s: Sequence[float]) -> Fraction:
    """(b): upper bound of total completion time [s].

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    return sum(bounds(instance, thresholds_gpu_s), Fraction(0))


def check(
    instance: Instance,
    thresholds_gpu_s: Sequence[float],
    completion_s: Sequence[float | Fraction],
) -> bool:
    """True if all completion times [s] of a run respect (b).

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    limits = bounds(instance, thresholds_gpu_s)
    return all(Fraction(end) <= limit for end, limit in zip(completion_s, limits, strict=True))


def gang_factor(capacity: int, widest: int) -> Fraction:
    """(c): 1 + 2 m / (m - gamma + 1)."""
    return 1 + Fraction(2 * capacity, capacity - widest + 1)


def family(jobs: int, limit: int, longest: int, excess: int = 1) -> list[int]:
    """(d): run times, the long job first."""
    return [longest] + [limit + excess] * (jobs - 1)


def family_ratio(jobs: int, limit: int, longest: int, excess: int = 1) -> Fraction:
    """(d): total completion time of 2D-LAS over the optimum, exactly; needs longest > limit + excess."""
    first = (jobs - 1) * limit + longest
    queues = first + sum(first + k * excess for k in range(1, jobs))
    best = (
        sum(k * (limit + excess) for k in range(1, jobs)) + longest + (jobs - 1) * (limit + excess)
    )
    return Fraction(queues, best)


@dataclass(frozen=True)
class GangInstance:
    """Gangs released at 0, run times in unit slots.

    Parameters
    ----------
    capacity : int
        m, GPUs.
    gang, run : tuple of int
        g_j [GPUs] and p_j [slots], shape (n,).
    """

    capacity: int
    gang: tuple[int, ...]
    run: tuple[int, ...]

    def las(self, parts: int) -> Fraction:
        """Total completion time [slots] of 2D-LAS that re-decides every 1 / parts of a slot."""
        left = [p * parts for p in self.run]
        order = range(len(left))
        now, total = 0, 0
        while any(left):
            live = [j for j in order if left[j]]
            live.sort(key=lambda j: (self.gang[j] * (self.run[j] * parts - left[j]), j))
            free = self.capacity
            now += 1
            for j in live:
                if self.gang[j] <= free:
                    free -= self.gang[j]
                    left[j] -= 1
                    total += 0 if left[j] else now
        return Fraction(total, parts)

    def slotted_optimum(self) -> int:
        """Least total completion time [slots] of preemptive schedules of whole slots; exponential."""

        @cache
        def best(left: tuple[int, ...]) -> int:
            live = [j for j, p in enumerate(left) if p]
            if not live:
                return 0
            return len(live) + min(best(after) for after in self._after(left, live))

        return best(self.run)

    def _after(self, left: tuple[int, ...], live: list[int]) -> list[tuple[int, ...]]:
        """Possible work left after a slot in which no more gangs fit."""
        found = []
        for mask in range(1, 1 << len(live)):
            chosen = {j for k, j in enumerate(live) if mask >> k & 1}
            free = self.capacity - sum(self.gang[j] for j in chosen)
            if free >= 0 and all(self.gang[j] > free for j in live if j not in chosen):
                found.append(tuple(p - (j in chosen) for j, p in enumerate(left)))
        return found


def gang_family(capacity: int, wide: int) -> GangInstance:
    """(e): a long single-GPU job and short gangs of all GPUs."""
    return GangInstance(capacity, (1, *[capacity] * wide), (capacity, *[1] * wide))


def gang_family_floor(capacity: int, wide: int) -> Fraction:
    """(e): what the ratio of continuous 2D-LAS is at least."""
    return Fraction(wide * capacity) / (Fraction(wide * (wide + 1), 2) + wide + capacity)


WORST_GANGS = GangInstance(5, (5, 1, 5, 5), (1, 6, 1, 1))
WORST_RATIO = Fraction(31, 15)
"""The largest ratio of 2D-LAS, re-deciding every eighth of a slot, to the slotted optimum found."""
