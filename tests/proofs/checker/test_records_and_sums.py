"""The order of records, the largest numbers, and sums of fractions that are rounded down."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import FINE, MOST, summed, total
from support.certificate_text import records_of, signed
from support.small_certificates import certificate, job, node, run

TEXT = certificate(node(0, 1), job(0, 10), run(0, 0, 10))
LONG = st.builds(Fraction, st.integers(-(10**400), 10**400), st.integers(10**390, 10**400))
SHORT = st.builds(Fraction, st.integers(-99, 99), st.integers(1, 99))


@settings(max_examples=35, deadline=None)
@given(st.lists(LONG | SHORT, min_size=1, max_size=6), st.sampled_from([1, 2, 6, 2**1074]))
def test_sums_are_rounded_down_and_by_next_to_nothing(terms, common):
    exact = sum(terms, Fraction(0))
    assert total(terms, common) == Fraction(exact.numerator * FINE // exact.denominator, FINE)
    assert exact - Fraction(len(terms) + 1, FINE) < summed(terms) <= exact


@pytest.mark.parametrize(
    ("place", "record"), [(3, node(1, 1)), (4, job(1, 10)), (5, run(0, 10, 20)), (2, "header")]
)
def test_records_are_in_order(place, record):
    check(TEXT)
    found = records_of(TEXT)
    late = found[0] if record == "header" else record
    with pytest.raises(Rejected, match=r"comes too late|2 lines are of kind header"):
        check(signed([*found[:place], late, *found[place:]]))


def test_numbers_have_a_thousand_digits_at_most():
    for weight, fine in ((MOST - 1, True), (MOST, False)):
        text = certificate(node(0, 1), job(0, 10, weight=weight), run(0, 0, 10), cost=10)
        with pytest.raises(Rejected, match="the schedule costs" if fine else "weight of job 0 is"):
            check(text)
