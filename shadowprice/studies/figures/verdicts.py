"""Verdicts on published numbers: tests of equivalence, which less evidence makes harder to pass.

Our mean has an interval of 95 %. Two spans about the published number are said in advance. The narrow one is what
counts as the same number: of a factor, 20 % of its distance from 'no difference', up and down (3.5x: 3 to 4; 1.2x:
1.16 to 1.24; a factor below 1 is turned over first); of a change, 20 % of the change; of another quantity, 10 % of the
value. The wide one is what counts as the same shape: within a factor of 1.5 of the number, on its side of no
difference, and of a factor also from half to twice its distance from no difference.

The whole interval in the narrow span: *reproduced*. The whole interval in the wide span: *in shape*. No part of it in
the wide span, or a certified limit below a published factor, whatever the seeds: *not*. Else, and of fewer than five
seeds, *open*. That is two one-sided tests at 2.5 % each (Schuirmann 1987; recalled), so that a wider interval never
makes a number agree. An interval that holds 'no difference' lies in neither span of a published difference that is no
bound (of *at most* and *at least* both spans are what keeps it). Where the paper itself says 'no difference', the same
is what is printed alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from shadowprice.analysis.statistics.estimates import Estimate

OF_THE_EFFECT = 0.2
"""Share of a published effect by which ours may differ: of a factor's distance from 1, of a change."""

OF_THE_VALUE = 0.1
"""Share of another published quantity by which ours may differ."""

SHAPE_FACTOR = 1.5
"""Factor up to which a number has the published shape."""

SHAPE_EFFECT = 2.0
"""Times that a factor's distance from 1 may be larger or smaller in the published shape."""

LEAST_SEEDS = 5
"""Number of seeds below which nothing is said."""

FACTORS = ("x", "of the base")
"""Units of factors, of which 1 says 'no difference'."""

_NEUTRAL = {**dict.fromkeys(FACTORS, 1.0), "%": 0.0}
"""Value of a unit that says 'no difference'; other units have none."""


class ReproductionVerdict(StrEnum):
    """Relation of our number to the published one, from the strongest to the weakest."""

    REPRODUCED = "reproduced"
    """The whole interval is within the margin; or, where nothing is drawn, the printed digits are the same."""

    REPLAYED = "replayed"
    """As reproduced, but with the authors' own generator and simulator: of the port, not of the claim."""

    CALIBRATED = "calibrated"
    """An input was fitted to the published number, or derived from it."""

    ONE_OF_MANY = "one of many"
    """The setting was chosen among several that were run, which lie as far apart as the row says."""

    IN_SHAPE = "in shape"
    """The whole interval is on the published side of no difference and near enough for the wide span."""

    OPEN = "open"
    """Neither shown to agree nor to differ, or too few seeds."""

    NOT = "not"
    """The whole interval is outside the wide span, or a certified limit is below the number."""


REPRODUCED, IN_SHAPE = ReproductionVerdict.REPRODUCED, ReproductionVerdict.IN_SHAPE


class Independence(StrEnum):
    """Independence of our number from the published one, which says what it may at best be called."""

    TESTED = "tested"
    REPLAYED = "replayed"
    CALIBRATED = "calibrated"
    ONE_OF_MANY = "one of many"


class Sampling(StrEnum):
    """Source of the spread of our number."""

    SEEDS = "seeds"
    """Draws of ours; the interval over them is tested."""

    SAME_SEEDS = "the paper's seeds"
    """The draws of the paper: the means are compared, not what other draws would give."""

    NOTHING = "nothing drawn"
    """One value; its digits are compared."""


class Relation(StrEnum):
    """Statement of a paper on its number."""

    EQUAL = ""
    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True)
class Span:
    """Numbers from ``low`` to ``high``, both among them.

    Parameters
    ----------
    low, high : float
        No number is in it if ``low`` is above ``high``.
    """

    low: float
    high: float

    def holds(self, ours: Estimate) -> bool:
        """True if the whole interval is in the span."""
        return self.low <= ours.low and ours.high <= self.high

    def meets(self, ours: Estimate) -> bool:
        """True if part of the interval is in the span."""
        return max(self.low, ours.low) <= min(self.high, ours.high)


def same(value: float, unit: str, rounding: float) -> Span:
    """Numbers that count as the published one.

    Parameters
    ----------
    rounding : float
        Half a unit of the last published digit; what is left of the margin where the paper says 'no difference'.
    """
    neutral = _NEUTRAL.get(unit)
    if value == neutral:
        return Span(value - rounding, value + rounding)
    if neutral == 1.0:
        return _about_factor(value, OF_THE_EFFECT, OF_THE_EFFECT)
    half = abs(value) * (OF_THE_VALUE if neutral is None else OF_THE_EFFECT)
    return Span(value - half, value + half)


def shape(value: float, unit: str, rounding: float) -> Span:
    """Numbers with the shape of the published one; never 'no difference', unless that is what was published."""
    neutral = _NEUTRAL.get(unit)
    if value == neutral:
        return same(value, unit, rounding)
    ends = sorted((value / SHAPE_FACTOR, value * SHAPE_FACTOR))
    if neutral == 1.0:
        near = _about_factor(value, 1.0 - 1.0 / SHAPE_EFFECT, SHAPE_EFFECT - 1.0)
        return Span(max(ends[0], near.low), min(ends[1], near.high))
    return Span(*ends)


def _about_factor(value: float, down: float, up: float) -> Span:
    """From so much less to so much more of a factor's distance from 1, the factor turned over if below 1."""
    above = max(value, 1.0 / value)
    low, high = above - down * (above - 1.0), above + up * (above - 1.0)
    return Span(low, high) if value > 1.0 else Span(1.0 / high, 1.0 / low)


@dataclass(frozen=True)
class Claim:
    """A published number as it is tested.

    Parameters
    ----------
    value : float
    unit : str
        ``x`` and ``of the base`` are factors, ``%`` is a change, any other is a quantity.
    rounding : float
        Half a unit of the last published digit.
    relation : Relation
    """

    value: float
    unit: str
    rounding: float = 0.0
    relation: Relation = Relation.EQUAL

    def same(self) -> Span:
        """Numbers that agree with it."""
        if self.relation is Relation.AT_MOST:
            return Span(-math.inf, self.value)
        if self.relation is Relation.AT_LEAST:
            return Span(self.value, math.inf)
        return same(self.value, self.unit, self.rounding)

    def shape(self) -> Span:
        """Numbers that have its shape; of a bound those that keep it."""
        if self.relation is not Relation.EQUAL:
            return self.same()
        return shape(self.value, self.unit, self.rounding)

    def printed_alike(self) -> Span:
        """Numbers that are printed as it is, or keep it if it is a bound."""
        if self.relation is not Relation.EQUAL:
            return self.same()
        return Span(self.value - self.rounding, self.value + self.rounding)

    def is_beyond(self, limit: float | None) -> bool:
        """True if it is a factor that a certified limit of all schedulers excludes, however it was rounded."""
        if limit is None or self.relation is Relation.AT_MOST:
            return False
        return limit < self.value - self.rounding


def numbers_verdict(
    claim: Claim, ours: Estimate, sampling: Sampling, limit: float | None = None
) -> ReproductionVerdict:
    """Verdict of the numbers alone.

    Parameters
    ----------
    limit : float, optional
        Certified best factor that any scheduler could have, mean over the same seeds.
    """
    if claim.is_beyond(limit):
        return ReproductionVerdict.NOT
    agrees, found = claim.same(), ours
    if sampling is Sampling.NOTHING:
        agrees = claim.printed_alike()
    if sampling is not Sampling.SEEDS:
        found = Estimate(ours.mean, ours.mean, ours.mean, ours.count)
    elif ours.count < LEAST_SEEDS:
        return ReproductionVerdict.OPEN
    if agrees.holds(found):
        return ReproductionVerdict.REPRODUCED
    if claim.shape().holds(found):
        return ReproductionVerdict.IN_SHAPE
    return ReproductionVerdict.OPEN if claim.shape().meets(found) else ReproductionVerdict.NOT


def verdict_of(verdict: ReproductionVerdict, independence: Independence) -> ReproductionVerdict:
    """Verdict of the numbers, and of how they came about: nothing but a test makes *reproduced*.

    A number that is no test of its claim has its own word in place of *reproduced* and *in shape*; a replay that does
    not agree is no replay. What is open or not remains so.
    """
    if independence is Independence.TESTED or verdict not in (REPRODUCED, IN_SHAPE):
        return verdict
    if independence is Independence.REPLAYED and verdict is IN_SHAPE:
        return verdict
    return ReproductionVerdict(independence.value)


def weakest(verdicts: list[ReproductionVerdict]) -> ReproductionVerdict:
    """Verdict that says least, of several measurements of one claim."""
    order = list(ReproductionVerdict)
    return max(verdicts, key=order.index)
