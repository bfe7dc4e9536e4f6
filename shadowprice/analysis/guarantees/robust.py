"""Both factors of ASRPT-robust on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees.asrpt import assumed_s
from shadowprice.analysis.guarantees.lookup import KnownBound, Silence
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.asrpt import prediction, robust
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.asrpt.robust import RobustAsrpt

THEOREM = "ASRPT-robust"


@dataclass(frozen=True)
class RobustGuarantee:
    """The sum of the bounds of single jobs over a lower bound of the optimum, and the two factors of (c).

    Parameters
    ----------
    factor : Fraction
        Total completion time is at most this times that of any schedule of the class.
    factors : Factors
        With these predictions, and whatever they were.
    holds_for : ScheduleClass
        Against which schedules.
    """

    factor: Fraction
    factors: robust.Factors
    holds_for: ScheduleClass

    def sentence(self, policy: str) -> str:
        """The theorem in words."""
        return (
            f"{policy}: total completion time at most {at_most(self.factor)} the offline optimum of "
            f"{self.holds_for} by {THEOREM} (with these predictions {at_most(self.factors.consistency)}, with any "
            f"{at_most(self.factors.robustness)} and {float(self.factors.more_s):,.0f} s)"
        )


@dataclass(frozen=True)
class RobustTheorem:
    """ASRPT-robust, of total completion time."""

    name: str = "asrpt-robust"

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> RobustGuarantee | Silence | None:
        """Guarantee of a run's total completion time; None for another policy.

        Predictions are made again, from the same completions.
        """
        policy, instance = run.policy, outcome.instance
        if not isinstance(policy, RobustAsrpt) or not len(instance.workload):
            return None
        failing = tuple(robust.uncovered(run))
        if failing:
            return Silence(THEOREM, failing)
        _, virtual_s = assumed_s(outcome, Asrpt(predictor=policy.predictor))
        gangs = Gangs.of(instance, virtual_s)
        least = prediction.optimum_at_least(gangs)
        most = sum(each.least for each in robust.job_bounds(gangs, policy.cycles))
        return RobustGuarantee(
            Fraction(most) / least,
            robust.Factors.of(gangs, policy.cycles),
            ScheduleClass(preemptive=True),
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor, of total completion time."""
        stated = self.guarantee(outcome, run)
        return KnownBound(THEOREM, stated.factor) if isinstance(stated, RobustGuarantee) else None


GUARANTEES = RobustTheorem()
