"""Work of jobs that are faster on some GPU types than on others, in compiled code.

As :mod:`shadowprice.execution.simulated_hosts`: a run in which the whole job would take P ticks and which
makes progress for t of them does t / P of it, shares add exactly, and a run ends with the first tick at which they
are 1. In three pools at most, so that two words hold the denominators of the two others.
"""

from __future__ import annotations

import math

from numba import int64

from shadowprice.execution.kernel.arrays import Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.instances.grid import TICK_S, TICKS_PER_S

_WORD = 60
_FULL = (1 << _WORD) - 1
_EXACT = 53
"""Bits of a floating-point number; times in ticks have no more."""


@inlined
def lasts_s(a: Arrays, job: int, first: int) -> float:
    """Time that a run on these pieces takes until the job's work is done [s]."""
    pool = a.nodes[a.pieces[first].node].pool
    if not a.run[0].stops:
        return a.paces[job * len(a.pools) + pool].whole * TICK_S
    return _missing(a, job, pool) * TICK_S


@apart
def note_progress(a: Arrays, job: int, ran_s: float) -> None:
    """Note the progress of a run that stops, and what is left of its job on the fastest type."""
    pool = a.nodes[a.pieces[a.jobs[job].pieces].node].pool
    a.paces[job * len(a.pools) + pool].done += int64(ran_s * TICKS_PER_S)
    fastest = a.orders[a.sizes[a.jobs[job].size].order]
    a.jobs[job].left_s = _rounded(*_left(a, job, fastest)) * TICK_S


@apart
def _missing(a: Arrays, job: int, pool: int) -> int:
    """Ticks in this pool until the work is done."""
    ticks, high, low, _, _ = _left(a, job, pool)
    return max(ticks + ((high > 0) | (low > 0)), 1)


@apart
def _left(a: Arrays, job: int, pool: int) -> tuple[int, int, int, int, int]:
    """Work left in ticks of a pool, exactly: whole ticks, and a fraction below 1 with numerator and denominator."""
    row, one, other = job * len(a.pools), 0, 0
    part = part_of = 1
    whole = a.paces[row + pool].whole
    ticks = whole - a.paces[row + pool].done
    for place in range(len(a.pools)):
        done, pace = a.paces[row + place].done, a.paces[row + place].whole
        if place == pool or done == 0:
            continue
        times, rest = _share(done, whole, pace)
        ticks -= times
        if rest:
            ticks -= 1
            one, part = pace - rest, pace
            if other == 0:
                other, part_of = one, part
                one, part = 0, 1
    return _sum_of(ticks, one, part, other, part_of)


@apart
def _share(done: int, whole: int, pace: int) -> tuple[int, int]:
    """Quotient and remainder of ``done * whole / pace``, bit by bit: the product has more than a word."""
    each, each_rest = whole // pace, whole % pace
    times = rest = int64(0)
    for bit in range(_EXACT, -1, -1):
        times, rest = 2 * times, 2 * rest
        if done >> bit & 1:
            times += each
            rest += each_rest
        while rest >= pace:
            rest -= pace
            times += 1
    return times, rest


@apart
def _product(one: int, other: int) -> tuple[int, int]:
    """Product in two words, the high one first."""
    high = low = int64(0)
    for bit in range(_EXACT, -1, -1):
        high, low = _twice(high, low)
        if one >> bit & 1:
            low += other
            high += low >> _WORD
            low &= _FULL
    return high, low


@inlined
def _twice(high: int, low: int) -> tuple[int, int]:
    return 2 * high + (low >> (_WORD - 1)), (2 * low) & _FULL


@inlined
def _at_least(high: int, low: int, than_high: int, than_low: int) -> bool:
    return high > than_high or (high == than_high and low >= than_low)


@inlined
def _less_by(high: int, low: int, by_high: int, by_low: int) -> tuple[int, int]:
    low -= by_low
    return high - by_high + (low >> _WORD), low & _FULL


@apart
def _sum_of(
    ticks: int, one: int, part: int, other: int, part_of: int
) -> tuple[int, int, int, int, int]:
    """Sum of whole ticks and two fractions below 1."""
    high, low = _product(one, part_of)
    more_high, more_low = _product(other, part)
    low += more_low
    high += more_high + (low >> _WORD)
    low &= _FULL
    of_high, of_low = _product(part, part_of)
    if _at_least(high, low, of_high, of_low):
        high, low = _less_by(high, low, of_high, of_low)
        ticks += 1
    return ticks, high, low, of_high, of_low


@apart
def _rounded(ticks: int, high: int, low: int, of_high: int, of_low: int) -> float:
    """Nearest floating-point number, of two the even one; as a division of whole numbers in Python."""
    bits, mantissa = int64(0), ticks
    while ticks > 0:
        ticks >>= 1
        bits += 1
    exponent = 0
    # One bit more than it has, and whether there is anything behind it.
    while bits <= _EXACT and ((high > 0) | (low > 0)):
        high, low = _twice(high, low)
        mantissa *= 2
        if _at_least(high, low, of_high, of_low):
            high, low = _less_by(high, low, of_high, of_low)
            mantissa += 1
        bits += mantissa > 0
        exponent -= 1
    if bits > _EXACT:
        half, mantissa = mantissa & 1, mantissa >> 1
        exponent += 1
        beyond = (high > 0) | (low > 0)
        mantissa += half & (beyond | (mantissa & 1))
    return math.ldexp(float(mantissa), exponent)
