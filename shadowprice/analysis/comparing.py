"""What comparisons ask of the policies they compare, whatever the objective."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from shadowprice.analysis.copies.settings import forking
from shadowprice.errors import InputError
from shadowprice.solvers.policy import Policy


def distinct_names(policies: Sequence[str | Policy]) -> list[str]:
    """Names of the policies.

    Raises
    ------
    InputError
        If there are none, or two are the same.
    """
    names = [policy if isinstance(policy, str) else policy.name for policy in policies]
    if len(set(names)) < len(names) or not names:
        raise InputError(
            f"policies {', '.join(names) or '(none)'}: expected one or more different names"
        )
    return names


def refuse_forks(name: str) -> None:
    """Raise InputError for a scheduler that runs a job as several copies.

    Its jobs may be faster than any gang of theirs, so that no bound of the package holds.
    """
    if forking(name) is not None:
        raise InputError(
            f"policy {name!r} runs a job as several copies: bounds are for jobs that run as one gang; "
            "use simulate, whose metrics are the same for all policies"
        )


def rounded_up(ratio: Fraction | None) -> float:
    """A ratio as a float that is no less, infinite for None and beyond the range of floats."""
    if ratio is None:
        return math.inf
    try:
        value = float(ratio)
    except OverflowError:
        return math.inf
    return value if Fraction(value) >= ratio else math.nextafter(value, math.inf)
