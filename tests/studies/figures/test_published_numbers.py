"""Verdicts on published numbers, and estimates over seeds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Independence,
    Others,
    Published,
    Relation,
    ReproductionVerdict,
    Sampling,
    estimate,
    ratio_by_seed,
    signed_estimate,
)
from shadowprice.studies.figures.published import Compared
from shadowprice.studies.figures.verdicts import (
    LEAST_SEEDS,
    Claim,
    numbers_verdict,
    verdict_of,
    weakest,
)

REPRODUCED, IN_SHAPE = ReproductionVerdict.REPRODUCED, ReproductionVerdict.IN_SHAPE
OPEN, NOT = ReproductionVerdict.OPEN, ReproductionVerdict.NOT
POSITIVE = st.floats(0.01, 100.0)


def exact(value: float) -> Estimate:
    return Estimate(value, value, value, 1)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12))
def test_the_interval_is_that_of_students_t_test(values: list[float]) -> None:
    """Its ends are the means that the test of one sample would just not refuse."""
    found = signed_estimate(values)
    if np.std(values) < 1e-6:
        return
    for end in (found.low, found.high):
        assert stats.ttest_1samp(values, end).pvalue == pytest.approx(0.05, rel=1e-3)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_an_estimate_of_nothing_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one value, all finite"):
        estimate(values)


def seeds(low: float, high: float, count: int = 10) -> Estimate:
    """An estimate over seeds with this interval."""
    return Estimate((low + high) / 2, low, high, count)


@pytest.mark.parametrize(
    ("value", "unit", "ours", "expected"),
    [
        (3.5, "x", seeds(3.1, 3.9), REPRODUCED),  # 20 % of the distance from 1: 3 to 4.
        (3.5, "x", seeds(2.9, 3.9), IN_SHAPE),
        (3.5, "x", seeds(2.0, 3.9), OPEN),
        (3.5, "x", seeds(1.2, 2.2), NOT),  # More than a factor of 1.5 away.
        (1.2, "x", seeds(1.17, 1.23), REPRODUCED),
        (1.2, "x", seeds(1.11, 1.3), IN_SHAPE),
        (1.2, "x", seeds(1.01, 1.05), NOT),  # Within 1.5; a quarter of the effect at most.
        (1.015, "x", seeds(1.3, 1.5), NOT),  # Within 1.5; thirty times the effect.
        (1.2, "x", seeds(0.8, 0.9), NOT),  # On the other side.
        (1.2, "x", seeds(0.99, 1.25), OPEN),  # 'No difference' is in it.
        (2.8, "x", seeds(0.98, 1.54), NOT),  # So it is here, and every number of the shape is not.
        (0.74, "x", seeds(0.71, 0.77), REPRODUCED),
        (-50.0, "%", seeds(-59.0, -41.0), REPRODUCED),
        (-50.0, "%", seeds(-70.0, -45.0), IN_SHAPE),
        (-50.0, "%", seeds(-95.0, 5.0), OPEN),
        (-50.0, "%", seeds(-25.0, -20.0), NOT),
        (8.0, "h", seeds(7.3, 8.7), REPRODUCED),
        (8.0, "h", seeds(6.0, 9.0), IN_SHAPE),
        (8.0, "h", seeds(1.0, 19.0), OPEN),
        (8.0, "h", seeds(13.0, 19.0), NOT),
        # Where the paper prints 1.00, what is printed so.
        (1.0, "x", seeds(0.996, 1.004), REPRODUCED),
        (1.0, "x", seeds(0.99, 1.01), OPEN),
        (1.0, "x", seeds(0.93, 0.96), NOT),
        # Too few seeds, whatever they say.
        (3.5, "x", seeds(3.4, 3.6, 4), OPEN),
        (3.5, "x", seeds(1.2, 1.3, 4), OPEN),
        (3.5, "x", exact(3.5), OPEN),
    ],
)
def test_verdicts(value: float, unit: str, ours: Estimate, expected: ReproductionVerdict) -> None:
    claim = Claim(value, unit, rounding=0.005 if value == 1.0 else 0.0)
    assert numbers_verdict(claim, ours, Sampling.SEEDS) is expected


@pytest.mark.parametrize(
    ("claim", "ours", "expected"),
    [
        (Claim(9.3, "s", 0.05), 9.333, REPRODUCED),
        (Claim(9.3, "s", 0.05), 9.36, IN_SHAPE),
        (Claim(9.3, "s", 0.05), 15.0, NOT),
        (Claim(1.4, "x", 0.05), 1.386, REPRODUCED),
        (Claim(-17.0, "%", 0.5), -16.8, REPRODUCED),
        (Claim(98.0, "% of it", 0.5, Relation.AT_LEAST), 99.2, REPRODUCED),
        (Claim(98.0, "% of it", 0.5, Relation.AT_LEAST), 97.9, NOT),
    ],
)
def test_where_nothing_is_drawn_digits_are_compared(
    claim: Claim, ours: float, expected: ReproductionVerdict
) -> None:
    assert numbers_verdict(claim, exact(ours), Sampling.NOTHING) is expected


def test_the_papers_seeds_are_no_sample() -> None:
    """Means over the same draws are compared; what other draws would give is not asked."""
    wide = Estimate(3.5, 1.2, 8.0, 3)
    assert numbers_verdict(Claim(3.6, "x"), wide, Sampling.SAME_SEEDS) is REPRODUCED
    assert numbers_verdict(Claim(3.6, "x"), wide, Sampling.SEEDS) is OPEN
    assert numbers_verdict(Claim(6.0, "x"), wide, Sampling.SAME_SEEDS) is NOT


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (seeds(0.9, 1.09), REPRODUCED),
        (seeds(0.9, 1.11), OPEN),
        (seeds(1.11, 1.2), NOT),
        (seeds(0.5, 0.6, 3), OPEN),
    ],
)
def test_a_bound_is_kept_by_the_whole_interval(
    ours: Estimate, expected: ReproductionVerdict
) -> None:
    claim = Claim(1.1, "x", 0.05, Relation.AT_MOST)
    assert numbers_verdict(claim, ours, Sampling.SEEDS) is expected


CLAIMS = st.one_of(
    st.builds(Claim, st.floats(0.05, 40.0).filter(lambda x: abs(x - 1) > 1e-3), st.just("x")),
    st.builds(Claim, st.floats(-90.0, -1.0), st.just("%")),
    st.builds(Claim, st.floats(0.01, 1e5), st.just("h")),
)
GOOD = (REPRODUCED, IN_SHAPE)


@st.composite
def nested(draw: st.DrawFn) -> tuple[Claim, Estimate, Estimate]:
    """A claim, an interval near it, and one about the same mean that holds the first."""
    claim = draw(CLAIMS)
    mean = claim.value * draw(st.floats(0.4, 2.5))
    ends = [abs(mean) * draw(st.floats(0.0, 1.5)) for _ in range(4)]
    count = draw(st.integers(LEAST_SEEDS, 30))
    narrow = Estimate(mean, mean - ends[0], mean + ends[1], count)
    wide = Estimate(mean, narrow.low - ends[2], narrow.high + ends[3], count)
    return claim, narrow, wide


@given(nested())
def test_a_wider_interval_is_never_better(case: tuple[Claim, Estimate, Estimate]) -> None:
    claim, narrow, wide = case
    first, second = (numbers_verdict(claim, each, Sampling.SEEDS) for each in (narrow, wide))
    if second is REPRODUCED:
        assert first is REPRODUCED
    if second is IN_SHAPE:
        assert first in GOOD
    if second is NOT:
        assert first is NOT


@given(nested(), st.integers(1, 30))
def test_fewer_seeds_are_never_better(case: tuple[Claim, Estimate, Estimate], few: int) -> None:
    claim, ours, _ = case
    fewer = replace(ours, count=min(few, ours.count))
    found = numbers_verdict(claim, fewer, Sampling.SEEDS)
    assert found in (numbers_verdict(claim, ours, Sampling.SEEDS), OPEN)
    if fewer.count < LEAST_SEEDS:
        assert found is OPEN


@given(nested())
def test_an_interval_with_no_difference_in_it_shows_none(
    case: tuple[Claim, Estimate, Estimate],
) -> None:
    """It is open, or not where all numbers of the published shape are outside it, too."""
    claim, ours, _ = case
    neutral = {"x": 1.0, "%": 0.0}.get(claim.unit)
    if neutral is None:
        return
    holds = replace(ours, low=min(ours.low, neutral), high=max(ours.high, neutral))
    found = numbers_verdict(claim, holds, Sampling.SEEDS)
    assert found in (OPEN, NOT)
    if holds.low <= claim.value <= holds.high:
        assert found is OPEN


@given(nested())
def test_a_factor_and_its_inverse_have_the_same_verdict(
    case: tuple[Claim, Estimate, Estimate],
) -> None:
    claim, ours, _ = case
    low, high = max(ours.low, 1e-3 * abs(ours.mean)), ours.high
    if claim.unit != "x":
        return
    upright = Estimate(ours.mean, low, high, ours.count)
    over = Estimate(1 / ours.mean, 1 / high, 1 / low, ours.count)
    spans = [claim.same(), claim.shape()]
    ends = [end for span in spans for end in (span.low, span.high)]
    if any(math.isclose(a, b, rel_tol=1e-9) for a in ends for b in (low, high)):
        return
    inverse = Claim(1 / claim.value, "x")
    assert numbers_verdict(claim, upright, Sampling.SEEDS) is numbers_verdict(
        inverse, over, Sampling.SEEDS
    )


@given(POSITIVE, st.lists(POSITIVE, min_size=3, max_size=3))
def test_a_verdict_does_not_depend_on_the_unit_of_length(value: float, ours: list[float]) -> None:
    low, mean, high = sorted(ours)
    in_h, in_min = (Estimate(k * mean, k * low, k * high, 9) for k in (1, 64))
    assert numbers_verdict(Claim(value, "h"), in_h, Sampling.SEEDS) is numbers_verdict(
        Claim(value * 64, "min"), in_min, Sampling.SEEDS
    )


@given(nested(), st.sampled_from(Independence), st.sampled_from(Sampling))
def test_nothing_but_a_test_reproduces(
    case: tuple[Claim, Estimate, Estimate], independence: Independence, sampling: Sampling
) -> None:
    claim, ours, _ = case
    alone = numbers_verdict(claim, ours, sampling)
    found = verdict_of(alone, independence)
    if independence is Independence.TESTED:
        assert found is alone
        return
    assert found is not REPRODUCED
    assert found in (alone, ReproductionVerdict(independence.value))
    # No word makes a number better than it is alone.
    if alone not in GOOD:
        assert found is alone
    if independence is not Independence.REPLAYED:
        assert found is not IN_SHAPE


def test_a_claim_counts_by_its_weakest_row() -> None:
    assert weakest([REPRODUCED, IN_SHAPE, ReproductionVerdict.ONE_OF_MANY]) is IN_SHAPE
    assert weakest([REPRODUCED, OPEN]) is OPEN
    assert weakest([NOT, OPEN]) is NOT


def test_ratios_are_taken_seed_by_seed() -> None:
    table = pd.DataFrame(
        {
            "seed": [0, 0, 1, 1, 2],
            "policy": ["LAS", "Gavel", "LAS", "Gavel", "LAS"],
            "jct_h": [6.0, 2.0, 8.0, 4.0, 5.0],
        }
    )
    found = ratio_by_seed(table, better="Gavel", than="LAS", column="jct_h")
    assert found is not None
    assert (found.mean, found.count) == (2.5, 2)
    assert ratio_by_seed(table, better="FIFO", than="LAS", column="jct_h") is None


def entry(**fields: Any) -> Published:
    """A published factor of 2.5 beside 1.2 to 1.4 over ten seeds; further fields as given."""
    given = {
        "system": "A",
        "place": "Table 1",
        "what": "JCT",
        "value": 2.5,
        "unit": "x",
        "ours": lambda _: seeds(1.2, 1.4),
        "settings": "toy",
        "cause": Cause.RECALLED,
        "why": "The formula is recalled.",
    }
    return Published(**{**given, **fields})


def compared(**fields: Any) -> Compared:
    found = entry(**fields).compared(pd.DataFrame({"seed": range(10)}))
    assert found is not None
    return found


def test_what_a_limit_excludes_is_not_reproduced() -> None:
    """Cannot be right is said of the paper's own jobs alone."""
    wide = lambda _: seeds(2.4, 2.6)  # noqa: E731
    assert compared(ours=wide).verdict is REPRODUCED
    assert compared(ours=wide, limit=lambda _: 2.5).verdict is REPRODUCED
    beyond = compared(ours=wide, limit=lambda _: 2.25)
    assert (beyond.verdict, beyond.cause) == (NOT, Cause.NOT_REACHABLE)
    assert (
        "no scheduler can exceed 2.25x on average over these draws: not (not reachable on our substitute)."
        in (beyond.sentence())
    )
    own = compared(ours=wide, limit=lambda _: 2.25, own_jobs=True)
    assert (own.verdict, own.cause) == (NOT, Cause.IMPOSSIBLE)
    assert compared(limit=lambda _: 2.6, own_jobs=True).cause is Cause.RECALLED
    # 2.5 may have been 2.45, and at least 2.5 is no less than 2.5.
    assert compared(ours=wide, limit=lambda _: 2.46).verdict is REPRODUCED
    bound = compared(ours=wide, limit=lambda _: 2.25, relation=Relation.AT_LEAST, own_jobs=True)
    assert (bound.verdict, bound.cause) == (NOT, Cause.IMPOSSIBLE)
    # One seed is enough for that: the limit holds of every scheduler.
    assert compared(ours=lambda _: exact(1.1), limit=lambda _: 2.25).verdict is NOT


def test_a_row_says_how_many_seeds_it_has() -> None:
    assert compared().seeds == "10"
    own = compared(sampling=Sampling.SAME_SEEDS, paper_seeds=tuple(range(10)))
    assert own.seeds == "10, the paper's seeds"
    assert compared(sampling=Sampling.NOTHING).seeds == "nothing drawn"
    assert "ours 1.3 [1.2, 1.4] (n = 10): not (recalled)." in compared().sentence()


def test_other_seeds_are_not_called_the_papers() -> None:
    """Of the paper's seeds those are compared that there are, and nothing where there are none."""
    of_paper = entry(
        ours=lambda table: estimate(table["seed"]) if len(table) else None,
        sampling=Sampling.SAME_SEEDS,
        paper_seeds=(0, 1, 2),
    )
    for seeds, count in ((range(3), 3), (range(10), 3), (range(2), 2)):
        found = of_paper.compared(pd.DataFrame({"seed": seeds}))
        assert found is not None
        assert found.seeds == f"{count}, the paper's seeds"
    assert of_paper.compared(pd.DataFrame({"seed": range(100, 103)})) is None
    for wrong in ({"sampling": Sampling.SAME_SEEDS}, {"paper_seeds": (0,)}):
        with pytest.raises(ValueError, match="'JCT': the paper's seeds are given where they are"):
            entry(**wrong)


def test_no_difference_is_given_as_it_is_printed() -> None:
    """Of 1.00 half a hundredth is its rounding, of a word nothing."""
    with pytest.raises(ValueError, match="'JCT': 1 says 'no difference'; give it as it is printed"):
        entry(value=1.0)
    assert entry(value=1.0, printed="1.00").tested_claim.rounding == pytest.approx(0.005)
    assert entry(value=1.0, printed="flat").tested_claim.rounding == 0.0
    assert entry(value=33_270.0, unit="s").tested_claim.rounding == 0.5
    assert entry(value=21.8766, unit="h").tested_claim.rounding == pytest.approx(5e-5)


def test_the_range_is_over_all_settings_that_were_run() -> None:
    found = Others.over([1.5, exact(0.9), None, seeds(4.0, 6.0)], "mixes")
    assert found == Others(0.9, 5.0, 3, "mixes")
    assert found.text() == "0.9 to 5 over 3 mixes"
    assert Others.over([None], "mixes") is None
    assert Others.over([2.0], "loads").text() == "no other loads were run"


@pytest.mark.parametrize(
    ("value", "expected"), [(33_270.0, "33,300"), (0.809, "0.809"), (5.5, "5.5"), (1e-5, "1e-05")]
)
def test_numbers_are_shown_as_a_person_writes_them(value: float, expected: str) -> None:
    assert exact(value).text() == expected
