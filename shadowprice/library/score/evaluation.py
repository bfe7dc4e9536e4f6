"""Evaluation of a policy on a suite: every instance in turn, laws, and an adversary with a fixed number of trials."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.adversary.judge import JudgeEffort
from shadowprice.analysis.adversary.search import WorstInstance, adversary
from shadowprice.analysis.certificates.exact_cost import exact_cost
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.simulate import execute
from shadowprice.errors import ShadowpriceError
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.execution.sealed.seal import Seal
from shadowprice.instances.grid import to_ticks
from shadowprice.library.score.feedback import feedback
from shadowprice.library.score.measures import ScoreMeasures
from shadowprice.library.score.ratios import combined_score, geometric_mean
from shadowprice.library.score.suites import OBJECTIVE, ScoredInstance, Suite
from shadowprice.solvers.policy import Policy

_LONGEST_MESSAGE = 500
"""Characters of a message that are shown."""


@dataclass(frozen=True, eq=False)
class InstanceScore:
    """Result of one instance.

    Parameters
    ----------
    scored : ScoredInstance
    cost : Fraction or None
        Of the verified schedule [ticks]; None if the instance was lost.
    measures : ScoreMeasures or None
        None if it was lost.
    feedback : str
        What was lost where; why, if all of it.
    """

    scored: ScoredInstance
    cost: Fraction | None
    measures: ScoreMeasures | None
    feedback: str

    @property
    def ratio(self) -> Fraction | None:
        """Cost over the bound, at least cost over the optimum; None if it was lost."""
        return None if self.cost is None else self.cost / self.scored.bound

    @property
    def to_best(self) -> Fraction | None:
        """Cost over that of the best schedule that the library has."""
        best = self.scored.best
        return None if self.cost is None or best is None else self.cost / best


@dataclass(frozen=True, eq=False)
class AdversaryScore:
    """Result of the adversary.

    Parameters
    ----------
    worst : WorstInstance or None
        None where the policy was lost on an instance that it looked at.
    evaluations : int
        Instances that it was to look at.
    sentence : str
    """

    worst: WorstInstance | None
    evaluations: int
    sentence: str


@dataclass(frozen=True)
class LawScore:
    """Result of one law: the message of an example that breaks it; empty if none was."""

    title: str
    broken: str


@dataclass(frozen=True)
class SpentTime:
    """Time that a score took on this machine, which is no part of it.

    Parameters
    ----------
    decisions : int
        Decisions on the instances of the suite.
    runs_s : float
        Wall time of these runs, of which the policy's is a part [s].
    wall_s : float
        Of everything [s].
    """

    decisions: int
    runs_s: float
    wall_s: float

    @property
    def decisions_per_s(self) -> float:
        """Decisions a second, the engine's time included."""
        return self.decisions / self.runs_s if self.runs_s > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Score:
    """Score of a policy on a suite.

    Parameters
    ----------
    policy : str
    knows : tuple of str
        Knowledge beyond the past that it has declared.
    preemptive : bool
    suite : Suite
    seed : int
        Of the instances that were drawn.
    results : tuple of InstanceScore
    adversary : AdversaryScore or None
        None if an instance was lost, or the suite has none.
    laws : tuple of LawScore or None
        None if an instance was lost, the suite has none, or Hypothesis is not installed.
    spent : SpentTime
    seal : Seal or None
        What kept a sealed policy from all but its messages, on this system; None of one that was trusted.
    """

    policy: str
    knows: tuple[str, ...]
    preemptive: bool
    suite: Suite
    seed: int
    results: tuple[InstanceScore, ...]
    adversary: AdversaryScore | None
    laws: tuple[LawScore, ...] | None
    spent: SpentTime
    seal: Seal | None = None

    @property
    def geometric_mean(self) -> Fraction:
        """Of the ratios, lost ones included, rounded up to the printed decimals."""
        return geometric_mean(each.ratio for each in self.results)

    @property
    def combined(self) -> Fraction:
        """One over the geometric mean, rounded down: at most 1, the more the better."""
        return combined_score(each.ratio for each in self.results)

    @property
    def lost(self) -> tuple[InstanceScore, ...]:
        """Instances without a complete, verified schedule."""
        return tuple(each for each in self.results if each.cost is None)

    @property
    def worst(self) -> InstanceScore:
        """The first lost instance, or the one of the largest ratio."""
        return self.lost[0] if self.lost else max(self.results, key=_ratio)


def _ratio(result: InstanceScore) -> Fraction:
    assert result.ratio is not None
    return result.ratio


def evaluate(
    policy: Policy,
    suite: Suite,
    instances: tuple[ScoredInstance, ...],
    seed: int,
    progress: Callable[[str], None] = lambda step: None,
    *,
    searched: Policy | None = None,
) -> Score:
    """Score a policy on the instances of a suite; an instance on which it fails is lost, and the others go on.

    Parameters
    ----------
    policy : Policy
        Sealed, unless it is trusted.
    progress : callable
        Told of each step.
    searched : Policy, optional
        The same policy where adversary and laws run it thousands of times, if another object stands for it there.
    """
    began = time.monotonic()
    results, decisions, runs_s = [], 0, 0.0
    for number, scored in enumerate(instances, 1):
        progress(f"instance {number} of {len(instances)}, {scored.name}")
        run_began = time.monotonic()
        result, taken = run_instance(policy, scored)
        runs_s += time.monotonic() - run_began
        results.append(result)
        decisions += taken
    whole = all(each.cost is not None for each in results)
    laws = try_laws(searched or policy, suite, progress) if whole and suite.law_examples else None
    hunted = hunt(searched or policy, suite, seed, progress) if whole and suite.families else None
    spent = SpentTime(decisions, runs_s, time.monotonic() - began)
    return Score(
        policy.name,
        tuple(sorted(map(str, policy.knows))),
        policy.preemptive,
        suite,
        seed,
        tuple(results),
        hunted,
        laws,
        spent,
        policy.seal if isinstance(policy, SealedPolicy) else None,
    )


def run_instance(policy: Policy, scored: ScoredInstance) -> tuple[InstanceScore, int]:
    """Run a policy on an instance and verify what it did; also the decisions that it took."""
    try:
        outcome = execute(prepare_run(scored.instance, None, policy))
    except ShadowpriceError as error:
        return InstanceScore(scored, None, None, f"Lost: {short_message(error)}"), 0
    return _scored(scored, outcome), outcome.decisions


def _scored(scored: ScoredInstance, outcome: Outcome) -> InstanceScore:
    scored.certificate.check(outcome, OBJECTIVE, preemptive=True)
    cost = exact_cost(outcome.instance, OBJECTIVE, outcome.end_s)
    measures = ScoreMeasures.of(outcome)
    shortest = Fraction(int(to_ticks(outcome.instance.shortest_s).sum()))
    return InstanceScore(scored, cost, measures, feedback(measures, cost, scored.bound, shortest))


def hunt(
    policy: Policy,
    suite: Suite,
    seed: int,
    progress: Callable[[str], None] = lambda step: None,
) -> AdversaryScore:
    """Look for the worst small instance by a fixed number of trials, which no clock ends."""
    looked, worst = 0, None
    for number, family in enumerate(suite.families, 1):
        progress(f"adversary, family {number} of {len(suite.families)}")
        effort = JudgeEffort(suite.evaluations, math.inf, seed, proof_s=0.0)
        try:
            result = adversary(policy, family, OBJECTIVE, effort=effort)
        except ShadowpriceError as error:
            return AdversaryScore(
                None, looked, f"Lost on an instance of the adversary: {short_message(error)}"
            )
        looked += int(result.hard.provenance["evaluations"])
        worst = result if worst is None or result.ratio > worst.ratio else worst
    assert worst is not None  # Suites have families.
    return AdversaryScore(worst, looked, worst.sentence())


def try_laws(
    policy: Policy, suite: Suite, progress: Callable[[str], None] = lambda step: None
) -> tuple[LawScore, ...] | None:
    """Laws that hold for every online policy, and examples that break them; None where Hypothesis is not installed."""
    try:
        from shadowprice.proofs.testing.battery import verdicts
        from shadowprice.proofs.testing.subject import PolicyUnderTest, Scaling
    except ImportError:
        return None
    # Policies may wait, and have parameters that are times: neither breaks a law here.
    subject = PolicyUnderTest(policy, True, (), Scaling.NONE)
    results = []
    for law, error in verdicts(subject, suite.law_examples):
        results.append(LawScore(law.title, "" if error is None else short_message(error)))
        progress(f"laws, {len(results)} tried")
    return tuple(results)


def short_message(error: Exception) -> str:
    """Message of an error, some of which a policy wrote: on one line, and not long; its name if it has none."""
    return " ".join(str(error).split())[:_LONGEST_MESSAGE] or type(error).__name__
