"""Gangs that run faster on more GPUs, at most by a power of them: HESRPT (d)."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise
from math import isqrt

from .costs import LeastWork, weighted
from .form import PRICE_UNIT, Record, need, whole
from .instance import CertificateInstance
from .limits import Effort

BITS = 96
ONE = 1 << BITS
"""Powers are whole numbers of 2^-96."""
FINE_BITS = 40


def power(base: int, exponent: int, bits: int, *, up: bool) -> int:
    """base^(exponent / 2^bits) in units of 2^-96, rounded up or down, by square roots of whole numbers."""

    def times(one: int, other: int) -> int:
        return -(-one * other >> BITS) if up else one * other >> BITS

    def root(of: int) -> int:
        square = of << BITS
        return isqrt(square - 1) + 1 if up and square else isqrt(square)

    product, square, often = ONE, base, exponent >> bits
    while often:
        product = times(product, square) if often & 1 else product
        square, often = times(square, square), often >> 1
    for place in reversed(range(bits)):
        base = root(base)
        if exponent >> place & 1:
            product = times(product, base)
    return product


def coefficient(k: int, exponent: int) -> int:
    """c_k = k (1 - (1 - 1 / k)^a)^(1 / a) with a = 1 / (1 - p), in units of 2^-96, rounded down."""
    rest = PRICE_UNIT - exponent
    smaller = power(
        -(-((k - 1) << BITS) // k), (PRICE_UNIT << FINE_BITS) // rest, FINE_BITS, up=True
    )
    return k * power(ONE - min(smaller, ONE), rest, 20, up=False)


def bound_speed_up_power(instance: CertificateInstance, jobs: LeastWork, bound: Record) -> Fraction:
    """Least total completion time of jobs that w GPUs make w^p times as fast, of jobs that arrive in between cuts."""
    need(jobs.gangs, "speed-up-power: jobs share GPUs, hold parts of them or run as copies")
    exponent, cuts = bound["exponent"], [whole(at, "cut of arrivals") for at in bound["grid"]]
    fine = whole(exponent, "exponent") < PRICE_UNIT
    need(fine, f"exponent is {exponent!r:.80}, not less than 2^20, which stands for 1")
    need(all(a < b for a, b in pairwise(cuts)), "the cuts of arrivals do not increase")
    powers: dict[int, int] = {}
    effort = Effort("speed-up-power", len(jobs.arrival))
    sizes: list[int] = []
    for j in range(len(jobs.arrival)):
        sizes_by_width = []
        for width, ticks in instance.by_any_width(j):
            if width not in powers:
                effort.spend(BITS)
                powers[width] = power((width << BITS) // jobs.gpus, exponent, 20, up=False)
            sizes_by_width.append(ticks * powers[width])
        sizes.append(min(sizes_by_width))
    batches: list[list[int]] = [[] for _ in range(len(cuts) + 1)]
    for j in sorted(range(len(sizes)), key=lambda j: -sizes[j]):
        batches[bisect_right(cuts, jobs.arrival[j])].append(j)
    for batch in batches:
        effort.spend(len(batch) * len({jobs.weight[j] for j in batch}))
    factors = [coefficient(k, exponent) for k in range(1, max(map(len, batches)) + 1)]
    return sum((of_batch(jobs, sizes, batch, factors) for batch in batches), Fraction(0))


def of_batch(jobs: LeastWork, sizes: list[int], batch: list[int], factors: list[int]) -> Fraction:
    """Bound of some jobs in order of their sizes, of which all weigh as the lightest, some as the next, and so on."""
    weight, least, before = [jobs.weight[j] for j in batch], Fraction(0), Fraction(0)
    for level in sorted(set(weight)):
        mine = [j for j in batch if jobs.weight[j] >= level]
        work = sum(c * sizes[j] for c, j in zip(factors, mine, strict=False))
        began = min(jobs.arrival[j] for j in mine) * len(mine)
        least += (level - before) * (began + Fraction(work, ONE * ONE))
        before = level
    return max(least, weighted(weight, (jobs.arrival[j] + jobs.shortest[j] for j in batch)))
