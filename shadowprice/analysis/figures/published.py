"""Published numbers beside ours: verdicts, and causes of differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from shadowprice.analysis.statistics.estimates import Estimate, shown
from shadowprice.analysis.wording import at_most

if TYPE_CHECKING:
    import pandas as pd

CLOSE = 0.05
"""Relative distance up to which a number is reproduced, whatever its interval."""

FACTOR = 1.5
"""Factor up to which a number has the published shape."""

_NEUTRAL = {"x": 1.0, "%": 0.0}
"""Value of a unit that says 'no difference'; other units have none."""


class Evidence(StrEnum):
    """Source of a published number; the words are defined in docs/semantics.md."""

    READ = "read"
    RECALLED = "recalled"
    DIGITISED = "digitised"
    """Measured in a drawing of the paper."""


class ReproductionVerdict(StrEnum):
    """Relation of our number to the published one."""

    REPRODUCED = "reproduced"
    """Inside our interval of 95 %, which excludes that there is no difference, or within 5 %."""

    IN_SHAPE = "in shape"
    """On the same side of no difference, and no more than a factor of 1.5 away."""

    NOT = "not"


class Cause(StrEnum):
    """Cause of a difference."""

    NOT_PUBLIC = "not public"
    """The trace, split or measurement that it was made with is not to be had."""

    RECALLED = "recalled"
    """The paper's formula or setting is recalled, not read."""

    TESTBED = "testbed"
    """An effect of the hardware that a simulation leaves out."""

    ON_PURPOSE = "ours on purpose"
    """We do something else, and say what."""

    IMPOSSIBLE = "cannot be right"
    """A certified limit shows that no scheduler reaches it in the setting that is known."""

    UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class Published:
    """A published number and ours.

    Parameters
    ----------
    system : str
        Scheduler whose paper it is of.
    place : str
        Paper and figure, table or section.
    what : str
        Quantity, with the setting that tells it from others.
    value : float
        As published.
    unit : str
        ``x`` for times better, ``%`` for a change, else of the quantity (``h``, ``min``, ``s`` ...).
    ours : callable
        From a figure's table to an estimate; None where the table has no rows for it.
    settings : str
        In a few words: jobs, cluster, seeds.
    evidence : Evidence
    cause, why : Cause and str, optional
        Printed where the verdict is not *reproduced*.
    limit : callable, optional
        From the table to the certified best factor that any scheduler could have.
    """

    system: str
    place: str
    what: str
    value: float
    unit: str
    ours: Callable[[pd.DataFrame], Estimate | None]
    settings: str
    evidence: Evidence = Evidence.READ
    cause: Cause | None = None
    why: str = ""
    limit: Callable[[pd.DataFrame], float | None] | None = None

    def compared(self, table: pd.DataFrame) -> Compared | None:
        """Our number from a table beside the published one; None where the table does not have it.

        Raises
        ------
        ValueError
            If the cause says that no scheduler can, and the limit does not show it.
        """
        ours = self.ours(table)
        if ours is None:
            return None
        limit = None if self.limit is None else self.limit(table)
        if self.cause is Cause.IMPOSSIBLE and (limit is None or limit >= self.value):
            raise ValueError(
                f"{self.what!r}: 'cannot be right' needs a limit below {self.value:g}; it is {limit}"
            )
        return Compared(self, ours, verdict(self.value, self.unit, ours), limit)


@dataclass(frozen=True)
class Compared:
    """A published number, ours, the verdict, and the limit of all schedulers if one is known."""

    published: Published
    ours: Estimate
    verdict: ReproductionVerdict
    limit: float | None

    def sentence(self) -> str:
        """One line for a caption."""
        p = self.published
        known = "" if p.evidence is Evidence.READ else f", {p.evidence}"
        said = f"{p.what} ({p.place}{known}): published {shown(p.value, 6)} {p.unit}, ours {self.ours.text()}"
        if self.limit is not None:
            said += f", no scheduler can exceed {at_most(self.limit)}"
        said += f": {self.verdict}"
        if self.verdict is not ReproductionVerdict.REPRODUCED and p.cause is not None:
            said += f" ({p.cause})"
        return said + "."


def verdict(value: float, unit: str, ours: Estimate) -> ReproductionVerdict:
    """Relation of our estimate to a published value.

    An interval so wide that it holds no difference at all proves nothing: it has to exclude that,
    and the mean to have the value's shape.
    """
    neutral = _NEUTRAL.get(unit)
    shape = _shape(value, neutral, ours.mean)
    close = abs(ours.mean - value) <= CLOSE * abs(value)
    differs = not ours.low <= (neutral or 0.0) <= ours.high
    if close or (shape and differs and ours.low <= value <= ours.high):
        return ReproductionVerdict.REPRODUCED
    return ReproductionVerdict.IN_SHAPE if shape else ReproductionVerdict.NOT


def _shape(value: float, neutral: float | None, mean: float) -> bool:
    """True if a mean is on the side of no difference where the value is, and within the factor."""
    if not math.isfinite(mean) or mean * value <= 0.0:
        return mean == value
    if neutral is not None and (mean - neutral) * (value - neutral) < 0.0:
        return False
    return max(mean / value, value / mean) <= FACTOR
