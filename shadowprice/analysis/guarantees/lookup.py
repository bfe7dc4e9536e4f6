"""Guarantees of theorems for a policy on the instance at hand, beside what was measured.

A theorem is told where its hypotheses hold of the run, and else which of them fail. Which theorem is
about which policy, the files of this folder say, each in one constant ``GUARANTEES``: they know the
policies of a system, what is here knows none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import shadowprice.analysis.guarantees
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import PreparedRun
from shadowprice.analysis.wording import at_most
from shadowprice.instances.objective import Objective
from shadowprice.instances.offers import Offers
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.described_run import DescribedRun


class Statement(Protocol):
    """A guarantee for a run, or why there is none."""

    @property
    def factor(self) -> Fraction | None:
        """The run costs at most so many times the optimum; None where nothing is said."""

    def sentence(self, policy: str) -> str:
        """The statement in words."""


@dataclass(frozen=True)
class UnmetHypotheses:
    """A theorem on a policy that is not about the run at hand.

    Parameters
    ----------
    theorem : str
    missing : tuple of str
        The hypotheses that the run does not meet, in words; at least one.
    """

    theorem: str
    missing: tuple[str, ...]

    @property
    def factor(self) -> None:
        """None: nothing is said."""

    def sentence(self, policy: str) -> str:
        """The hypotheses that fail, in words."""
        return f"{policy}: {self.theorem} does not apply: {'; '.join(self.missing)}"


@dataclass(frozen=True)
class FactorGuarantee:
    """A theorem's factor on the instance at hand.

    Parameters
    ----------
    theorem : str
        Where it is stated and proven.
    quantity : str
        What costs so much, such as ``total flow time``.
    factor : Fraction
        It is at most this times that of any schedule of the class.
    holds_for : ScheduleClass
        Against which schedules.
    more : str
        Other things that the theorem says of the run, in words.
    besides : str
        What comes on top of so many times the optimum, in words.
    """

    theorem: str
    quantity: str
    factor: Fraction
    holds_for: ScheduleClass
    more: str
    besides: str = ""

    def sentence(self, policy: str) -> str:
        """The theorem in words."""
        return (
            f"{policy}: {self.quantity} at most {at_most(self.factor)} the offline optimum of {self.holds_for} by "
            f"{self.theorem} ({self.more}){self.besides}"
        )


@dataclass(frozen=True)
class KnownBound:
    """A theorem and its factor on one instance.

    Parameters
    ----------
    theorem : str
        Where it is stated and proven.
    factor : Fraction
        The policy costs at most so many times the optimum there.
    """

    theorem: str
    factor: Fraction

    def sentence(self) -> str:
        """The theorem in words."""
        return f"at most {at_most(self.factor)} by {self.theorem}"


@dataclass(frozen=True)
class FactorTheorem:
    """A theorem that states a factor of one policy's cost, where its hypotheses hold.

    Parameters
    ----------
    name, theorem : str
        Name of the policy's system, and where the theorem is stated and proven.
    policy : type
    objective : Objective or None
        Of the runs that it is asked about; None for all.
    quantity : str
        What costs so much.
    missing_hypotheses : callable
        Hypotheses that a run does not meet, in words.
    says : callable
        The factor of a run, the class of schedules, and other things that the theorem says.
    """

    name: str
    theorem: str
    policy: type
    objective: Objective | None
    quantity: str
    missing_hypotheses: Callable[[DescribedRun], tuple[str, ...]]
    says: Callable[[Outcome, DescribedRun], tuple[Fraction, ScheduleClass, str]]

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run; None for another policy or objective."""
        about = isinstance(run.policy, self.policy) and len(outcome.instance.workload)
        if not about or self.objective not in (None, run.objective):
            return None
        missing = self.missing_hypotheses(run)
        if missing:
            return UnmetHypotheses(self.theorem, missing)
        return FactorGuarantee(self.theorem, self.quantity, *self.says(outcome, run))

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor."""
        return factor_of(self.guarantee(outcome, run))


def factor_of(stated: FactorGuarantee | UnmetHypotheses | None) -> KnownBound | None:
    """The factor that a theorem states of a run, if it states one."""
    if not isinstance(stated, FactorGuarantee):
        return None
    return KnownBound(stated.theorem, stated.factor)


class PolicyTheorems(Protocol):
    """The theorems on the policies of one system."""

    @property
    def name(self) -> str:
        """Name of the system."""

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> Statement | None:
        """Guarantee for a run, or why there is none; None for a policy of another system."""

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """A proven factor on one instance; None where no theorem is known."""


def theorems() -> Mapping[str, PolicyTheorems]:
    """Theorems by system: the ``GUARANTEES`` of the files of this folder."""
    return Offers(shadowprice.analysis.guarantees, "GUARANTEES")


def describe(run: PreparedRun, objective: Objective) -> DescribedRun | None:
    """A run as theorems see it; None of one in a loop of its own, of which no theorem speaks."""
    if run.policy is None:
        return None
    return DescribedRun(run.instance, run.policy, objective, run.rounds.length_s, run.placement)


def guarantee(outcome: Outcome, run: DescribedRun) -> Statement | None:
    """Guarantee by theorems of a run's cost, or why there is none; None for a policy without theorems.

    Parameters
    ----------
    outcome : Outcome
        Of the run that is described.
    """
    stated = (each.guarantee(outcome, run) for each in theorems().values())
    return next((each for each in stated if each is not None), None)


def compare_with_certificate(
    stated: Statement, policy: str, certified: Fraction | None, any_order: Fraction | None
) -> str | None:
    """A statement in words, its factor beside the one that is certified for the run.

    Parameters
    ----------
    certified : Fraction or None
        Cost of the run over a certified bound; without it a factor is not told.
    any_order : Fraction or None
        The same of one job after another in any order, at most: a factor of no less is no better than any order.
    """
    words = stated.sentence(policy)
    if stated.factor is None:
        return words
    if certified is None:
        return None
    words += f"; certified for this run: {at_most(certified)}"
    if any_order is not None and stated.factor >= any_order:
        words += f"; no better than any order: one job after another, in any order, costs at most {at_most(any_order)}"
    return words


def known_bound(outcome: Outcome, run: DescribedRun) -> KnownBound | None:
    """The smallest proven factor for a policy's outcome, None where no theorem is known here.

    For an adversary's runs: decisions at events, any free GPUs for a gang, nothing charged.

    On the utility of ``hadar-committed`` there is one (``proofs/hadar/competitive.py``), but it is
    about a total that is maximised, which says nothing about completion times.
    """
    known = [each.known_bound(outcome, run) for each in theorems().values()]
    return min((each for each in known if each is not None), key=lambda b: b.factor, default=None)
