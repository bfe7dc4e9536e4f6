"""What comparisons ask of the policies they compare, whatever the objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from shadowprice.analysis.fork_settings import forking
from shadowprice.analysis.outcome import Outcome
from shadowprice.errors import InputError
from shadowprice.instances.sharing_gain import SharingGain
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


def refuse_sharing(outcomes: Mapping[str, Outcome]) -> None:
    """Raise InputError where two jobs may share GPUs, whether or not a policy lets them.

    Two of them may do more together than one alone, and the bounds of utilities do not know it.
    """
    for outcome in outcomes.values():
        if SharingGain.of(outcome.instance) is not None:
            raise InputError(
                f"{outcome.instance.workload.source}: jobs may share GPUs: bounds of utilities are for "
                "GPUs that one job uses at a time; leave out the rates of jobs that share"
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
