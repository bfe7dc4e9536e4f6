r"""NC-flow: the least cost of not knowing run times, for completion times, flow times, and with random choices.

Statement. One machine, preemption without cost. A policy is *nonclairvoyant* if what it does until :math:`t`
depends on arrivals and completions until :math:`t` alone; OPT is the clairvoyant optimum, SRPT. :math:`n` jobs.

(a) Every deterministic nonclairvoyant policy has an instance with all jobs there at 0 on which

.. math:: \sum_j C_j \ge \frac{2 n T}{(n + 1)(T + n \delta)}\,\mathrm{OPT}

for any :math:`T` and :math:`\delta > 0`; as :math:`\delta / T \to 0` that is :math:`2 - 2 / (n + 1)`, which
equal shares attain (TIR-las (a): :math:`2\,\mathrm{OPT} - \sum_j p_j` and
:math:`\mathrm{OPT} \le (n + 1) \sum_j p_j / 2`).

(b) For flow time no constant will do: for every :math:`k > 2` and :math:`N` it has an instance of :math:`k`
jobs at 0 and :math:`N` later ones on which

.. math:: \sum_j (C_j - r_j) \ge \frac{(k - 1) N r}{k T + 2 N r + T + r}\,\mathrm{OPT}

where :math:`r`, at least :math:`T / (k (k - 1))` less rounding if it never idles, is what it leaves of each.
With :math:`N = k^2 (k - 1)` that is about :math:`k / 3` of :math:`n = k^3 - k^2 + k` jobs: of the order of
:math:`n^{1/3}`.

(c) Let run times be drawn independently from one distribution, of whole numbers if policies decide at whole
times, all jobs there at 0. Whatever a nonclairvoyant policy does, random choices included, some instance has an
expected total of at least

.. math:: \frac{E(n)}{n\,E[p] + \binom{n}{2} E[\min(p_1, p_2)]}

times OPT, with :math:`E(n)` the least expected total of all nonclairvoyant policies. Of the exponential
distribution it is :math:`2 - 4 / (n + 3)`.

Status. Classic: Motwani, Phillips and Torng, Theoretical Computer Science 130, 1994 (recalled); proofs and
constants here are derived.

Proof.

1. (a) Let the policy run on n jobs none of which ends, until T, and let :math:`a_j` be the work that it has done on
   each; :math:`\sum_j a_j \le T`. The instance has :math:`p_j = a_j + \delta`. Until T nothing differs for the policy,
   so all complete after T: :math:`\sum_j C_j > n T`. OPT serves the shortest first:
   :math:`\sum_j (n + 1 - j) p_{(j)} \le (n + 1) \sum_j p_j / 2`, as weights fall where lengths rise (Chebyshev), and
   :math:`\sum_j p_j \le T + n \delta`.
2. (b) The same with k jobs and :math:`p_j = a_j + r`, :math:`r = a_{max} / (k - 1)`. All but one of the largest
   :math:`a_j` take :math:`\sum_j a_j - a_{max} + (k - 1) r \le T` in all. From T on N jobs of length r come, one
   every r. The policy has k r of work left at T, and can do no more than what comes: just before each arrival it has
   (k - 1) r or more left, and more than that between. No job has more than r left, so k - 1 are there at least, for
   N r of time.
3. A clairvoyant policy completes all but the one by T, each of the k waits for T at most until then; it serves each
   later job when it comes, for r of flow time, while the one waits for N r, and then for its rest, at most
   :math:`T + r`. So :math:`OPT \le k T + 2 N r + T + r`.
4. (c) Yao's principle: a policy with random choices is a mixture of deterministic ones, each of which has an expected
   total of E(n) at least, over the drawn instances. If it had less than c OPT on all, in expectation, it would have
   less than :math:`c\,E[OPT]`, and :math:`E[OPT] = n\,E[p] + \binom{n}{2} E[\min(p_1, p_2)]`, since shortest first a
   pair delays by its shorter one. Exponential of mean 1: whoever is served, the next completion is 1 away on
   average, so that :math:`E(n) = n (n + 1) / 2`, and :math:`E[\min] = 1 / 2`. Q.E.D.

The adversary of ``analysis/adversary/hidden_times.py`` runs (a) and (b) against any nonclairvoyant policy.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.instance import Instance
from shadowprice.proofs.classic.elapsed_time import srpt_completions
from shadowprice.proofs.hypotheses import Hypotheses, not_one_gpu
from shadowprice.proofs.tiresias.gittins import Distribution, best_expected

STATUS = "classic; proofs derived"

KNOWS: frozenset[Feature] = frozenset({Feature.RATES})
"""Run times may be work over throughput."""

HYPOTHESES = Hypotheses("NC-flow", KNOWS, (not_one_gpu,))


def completion_times(attained: Sequence[int], more: int) -> list[int]:
    """Run times of (a): what each job has had until T, and more."""
    return [each + more for each in attained]


def flow_times(attained: Sequence[int]) -> tuple[list[int], int]:
    """Run times of (b), of the first jobs and of each later one, which is r, whole.

    Raises
    ------
    InputError
        If there are fewer than three jobs, or nobody has had enough for r to be above 0.
    """
    rest = max(attained, default=0) // max(len(attained) - 1, 1)
    if len(attained) < 3 or rest < 1:
        raise InputError(
            f"hidden run times: attained {list(attained)}, expected three jobs or more and one that has "
            "had as many ticks as there are others"
        )
    return [each + rest for each in attained], rest


def bound(jobs: int, horizon: Fraction, more: Fraction) -> Fraction:
    """Least ratio of total completion times that (a) forces, T and delta in any unit of time."""
    return 2 * jobs * horizon / ((jobs + 1) * (horizon + jobs * more))


def flow_bound(first: int, later: int, horizon: Fraction, rest: Fraction) -> Fraction:
    """Least ratio of total flow times that (b) forces, of k, N, T and r."""
    cost = (first - 1) * later * rest
    return cost / (first * horizon + 2 * later * rest + horizon + rest)


def check(instance: Instance, total_flow_s: float | Fraction, least: Fraction) -> bool:
    """True if a total flow time [s] on one machine is at least so many times the optimum.

    For jobs that are all there at 0 these are completion times.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    jobs = instance.workload
    release = [Fraction(each) for each in jobs.arrival_s.tolist()]
    ends = srpt_completions(release, [Fraction(each) for each in instance.shortest_s.tolist()])
    return Fraction(total_flow_s) >= least * (sum(ends, Fraction(0)) - sum(release))


def random_bound(jobs: int, run_time: Distribution) -> Fraction:
    """The ratio of (c) for run times drawn from equally likely whole numbers, exactly; exponential in the jobs."""
    return best_expected((run_time,) * jobs) / _expected_optimum(jobs, run_time)


def _expected_optimum(jobs: int, run_time: Distribution) -> Fraction:
    count = len(run_time)
    shorter = Fraction(sum(min(x, y) for x in run_time for y in run_time), count**2)
    return jobs * Fraction(sum(run_time), count) + comb(jobs, 2) * shorter


def exponential_bound(jobs: int) -> Fraction:
    """The ratio of (c) for the exponential distribution, 2 - 4 / (n + 3)."""
    return 2 - Fraction(4, jobs + 3)
