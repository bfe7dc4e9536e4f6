"""The factor of the b-scaling strategy on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import KnownBound, Silence
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import kill_restart
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.b_scaling import BScaling

THEOREM = "KR-scale"


@dataclass(frozen=True)
class TriedGuarantee:
    """The factor of KR-scale, and what jobs shorter than a b-th of the first try add to it.

    Parameters
    ----------
    factor : Fraction
        Total flow and total completion time are at most this times those of any schedule of the class.
    policy : BScaling
        With its tries.
    holds_for : ScheduleClass
        Against which schedules.
    """

    factor: Fraction
    policy: BScaling
    holds_for: ScheduleClass

    def sentence(self, policy: str) -> str:
        """The theorem in words."""
        return (
            f"{policy}: total flow time at most {at_most(self.factor)} the offline optimum of {self.holds_for} by "
            f"{THEOREM} (tries of {self.policy.first_s:g} s, each {self.policy.b} times as long as the one before; "
            "no run time is known)"
        )


@dataclass(frozen=True)
class KillRestartTheorem:
    """KR-scale, of total flow and completion time of jobs released together on one machine."""

    name: str = "b-scaling"

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> TriedGuarantee | Silence | None:
        """Guarantee of a run's total flow time; None for another policy."""
        policy, instance = run.policy, outcome.instance
        if not isinstance(policy, BScaling) or not len(instance.workload):
            return None
        failing = kill_restart.uncovered(run)
        if failing:
            return Silence(THEOREM, failing)
        factor = kill_restart.bound(instance, policy) / kill_restart.least(instance, policy)
        return TriedGuarantee(factor, policy, ScheduleClass(preemptive=False))

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor; released together, it holds of completion times as well."""
        stated = self.guarantee(outcome, run)
        return KnownBound(THEOREM, stated.factor) if isinstance(stated, TriedGuarantee) else None


GUARANTEES = KillRestartTheorem()
