"""Powers of widths in a bound: what is rounded makes it smaller, be it by 2^-96."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.proofs.checker.speed_up import ONE, bound_speed_up_power, coefficient
from support.small_certificates import least

UNIT = 2**20
TICKS = 2**60


class OneWidth:
    """Jobs that hold so many GPUs, of which only that is asked."""

    def __init__(self, width):
        self.width = width

    def by_any_width(self, job):
        return [(self.width, TICKS)]


@pytest.mark.parametrize("exponent", [1, UNIT // 3, UNIT // 2, UNIT - 1])
@pytest.mark.parametrize(("width", "gpus"), [(1, 3), (2, 3), (5, 7), (1, 10)])
def test_powers_of_widths_are_rounded_down(width, gpus, exponent):
    n = 200
    columns = [0] * n, [Fraction(1)] * n, [1] * n, [1] * n, [width] * n
    jobs = LeastWork(*columns, gpus, gpus, 1, True)
    bound = bound_speed_up_power(OneWidth(width), jobs, {**least("x"), "exponent": exponent})
    factors = sum(coefficient(k, exponent) for k in range(1, n + 1))
    with localcontext(prec=90):
        exact = (Decimal(width) / gpus) ** (Decimal(exponent) / UNIT)
        power = Fraction(exact)
    most = Fraction(factors * TICKS, ONE) * power
    assert most * (1 - Fraction(1, 2**80)) < bound < most


@pytest.mark.parametrize(("width", "gpus"), [(1, 4), (1, 16), (4, 4)])
def test_powers_that_are_whole_are_exact(width, gpus):
    n = 200
    columns = [0] * n, [Fraction(1)] * n, [1] * n, [1] * n, [width] * n
    jobs = LeastWork(*columns, gpus, gpus, 1, True)
    bound = bound_speed_up_power(OneWidth(width), jobs, {**least("x"), "exponent": UNIT // 2})
    factors = sum(coefficient(k, UNIT // 2) for k in range(1, n + 1))
    root = {4: 2, 16: 4}[gpus]
    share = Fraction(1, root) if width == 1 else 1
    assert bound == Fraction(factors * TICKS, ONE) * share
