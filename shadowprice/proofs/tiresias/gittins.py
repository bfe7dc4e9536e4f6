r"""TIR-git: the Gittins index, computed and what it is good for.

Statement. For an empirical distribution of service :math:`S` with samples :math:`s_1`, ..., :math:`s_n` and
attained service a below the largest, let

.. math:: G(a, D) = \frac{P(S - a \le D \mid S > a)}{E[\min(S - a, D) \mid S > a]}, \qquad
   G(a) = \sup_{D > 0} G(a, D).

**(a)** The supremum is attained at :math:`D = s - a` for a sample :math:`s > a`, so one scan of sorted samples
with prefix sums finds it. **(b)** For exponential service of rate :math:`\mu`, :math:`G(a, D) = \mu` for all a
and :math:`D`; for geometric service on 1, 2, ... with continuation :math:`q`, and whole :math:`D`,
:math:`G(a, D) = 1 - q`. **(c)** One machine, independent jobs of known distributions, all released at 0,
preemption at whole times and integer service: serving the job of largest index, whole :math:`D`, minimises the
expected total completion time among all rules that do not see the future.

Status. (a) and (b) elementary. (c) classic: Gittins, J. R. Stat. Soc. B 41(2), 1979; Sevcik, J. ACM
21(1), 1974.
Remarks. It is for one machine; with gangs, several GPUs, or queues of fixed quanta nothing of the
kind is claimed.

Proof.

(a) Between two neighbouring values of s - a the numerator of G(a, D) is constant and the denominator
does not fall in D, so the left end is best; beyond the last nothing changes; before the first the
numerator is 0.

(b) S - a given S > a is distributed as S. With :math:`F = 1 - e^{-\mu D}`, P(S <= D) = F and
:math:`E[\min(S, D)] = \int_0^D e^{-\mu x} dx = F / \mu`. In the same way
:math:`E[\min(S, D)] = \sum_{x=0}^{D-1} q^x = (1 - q^D)/(1 - q)`.

(c) Cited, and checked here by enumeration: :func:`best_expected` is the least expected total completion
time by dynamic programming over all adaptive rules (a state is what each job has attained; a rule sees
no more than that), :func:`index_expected` that of the index rule, in rationals.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import accumulate

STATUS = "classic"

Distribution = tuple[int, ...]
"""Equally likely samples of integer service, sorted."""

State = tuple[int | None, ...]
"""What each job has attained, None if it has completed."""


def quantum_index(
    samples: Sequence[int], attained: Fraction | int, quantum: Fraction | int
) -> Fraction:
    """G(a, D) from its definition, exactly; 0 beyond the largest sample."""
    left = [s - attained for s in samples if s > attained]
    if not left:
        return Fraction(0)
    return Fraction(sum(s <= quantum for s in left)) / sum(
        (Fraction(min(s, quantum)) for s in left), Fraction(0)
    )


def scan(samples: Sequence[int], attained: Fraction | int) -> Fraction:
    """G(a) by one scan of the sorted samples with prefix sums; O(n)."""
    n, prefix = len(samples), [0, *accumulate(samples)]
    first = bisect_right(samples, attained)
    best = Fraction(0)
    for within in range(first + 1, n + 1):
        if within < n and samples[within] == samples[within - 1]:
            continue  # Equal samples end together.
        ending, quantum = within - first, samples[within - 1] - attained
        served = prefix[within] - prefix[first] - ending * attained + (n - within) * quantum
        best = max(best, Fraction(ending) / served)
    return best


def geometric_index(continuation: Fraction, quantum: int) -> Fraction:
    """G(a, D) of geometric service, the same for all whole a: from its sums, term by term."""
    q = continuation
    ends = sum((q ** (x - 1) * (1 - q) for x in range(1, quantum + 1)), Fraction(0))
    served = sum((q**x for x in range(quantum)), Fraction(0))
    return ends / served


def hazard(samples: Distribution, attained: int) -> Fraction:
    """Probability that a job completes with its next unit of service, having attained so much."""
    above = [s for s in samples if s > attained]
    return Fraction(sum(s == attained + 1 for s in above), len(above))


def best_expected(jobs: tuple[Distribution, ...]) -> Fraction:
    """Least expected total completion time of all rules that do not see the future; exponential."""

    @cache
    def value(state: State) -> Fraction:
        live = [k for k, a in enumerate(state) if a is not None]
        if not live:
            return Fraction(0)
        return len(live) + min(_after(jobs, state, k, value) for k in live)

    return value((0,) * len(jobs))


def index_expected(jobs: tuple[Distribution, ...]) -> Fraction:
    """Expected total completion time of serving the largest index, ties by row."""

    @cache
    def value(state: State) -> Fraction:
        live = [k for k, a in enumerate(state) if a is not None]
        if not live:
            return Fraction(0)
        chosen = max(live, key=lambda k: (scan(jobs[k], state[k] or 0), -k))
        return len(live) + _after(jobs, state, chosen, value)

    return value((0,) * len(jobs))


def _after(
    jobs: tuple[Distribution, ...], state: State, job: int, value: Callable[[State], Fraction]
) -> Fraction:
    """Expected cost to go once a job has had a unit of service."""
    attained = state[job]
    assert attained is not None
    ends = hazard(jobs[job], attained)
    cost = Fraction(0)
    for probability, then in ((ends, None), (1 - ends, attained + 1)):
        if probability:
            cost += probability * value((*state[:job], then, *state[job + 1 :]))
    return cost


def bound(jobs: tuple[Distribution, ...]) -> Fraction:
    """The least expected total completion time, by the index rule: O(states), not O(rules)."""
    return index_expected(jobs)


def check(jobs: tuple[Distribution, ...], expected: Fraction) -> bool:
    """True if an expected total completion time, such as the index rule's, is the least of all."""
    return expected == best_expected(jobs)
