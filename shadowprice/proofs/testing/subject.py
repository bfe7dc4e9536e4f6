"""A policy under test, with what its author declares about it."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum

from shadowprice.errors import InputError
from shadowprice.solvers.policy import Knowledge, Policy
from shadowprice.solvers.policy_checks import expect_policy


class Scaling(Enum):
    """Effect on a schedule of scaling all times of its instance, and of its policy."""

    EXACT = "exact"
    """It is scaled: to the last tick by powers of two, up to the time grid by other factors."""

    ROUNDED = "rounded"
    """It is scaled up to the time grid, because the policy rounds times of its own."""

    NONE = "none"
    """Nothing is promised, because a tick may decide who goes first, or rounds begin at fixed times."""


@dataclass(frozen=True)
class PolicyUnderTest:
    """A policy and its declarations; see :func:`shadowprice.proofs.testing.laws`.

    Raises
    ------
    InputError
        If the policy is no policy, or has no such times.
    """

    policy: Policy
    waits: bool = False
    times: tuple[str, ...] = ()
    scaling: Scaling = Scaling.EXACT

    def __post_init__(self) -> None:
        expect_policy(self.policy, "laws")
        self._check_times()

    def _check_times(self) -> None:
        own: set[str] = set()
        if is_dataclass(self.policy):
            own = {each.name for each in fields(self.policy)}
        for name in self.times:
            if name not in own:
                raise InputError(
                    f"laws: {self.policy.name}: times has {name!r}, expected a field of its "
                    f"dataclass: one of {', '.join(sorted(own)) or 'none, it is no dataclass'}"
                )

    @property
    def knows_nothing(self) -> bool:
        """True if it is told nothing beyond the past."""
        return not self.policy.knows

    @property
    def knows_distribution(self) -> bool:
        """True if it is told of jobs that have not arrived."""
        return Knowledge.DISTRIBUTION in self.policy.knows

    def scaled(self, factor: float) -> Policy:
        """The same policy with its own times scaled."""
        if not self.times or not is_dataclass(self.policy):
            return self.policy
        values = {name: getattr(self.policy, name) for name in self.times}
        changed: Policy = replace(
            self.policy,
            **{
                name: tuple(each * factor for each in value)
                if isinstance(value, tuple)
                else value * factor
                for name, value in values.items()
            },
        )
        return changed
