"""The factor of the b-scaling strategy on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    UnmetHypotheses,
    factor_of,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import kill_restart
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.b_scaling import BScaling

THEOREM = "KR-scale"


@dataclass(frozen=True)
class KillRestartTheorem:
    """KR-scale, of total flow and completion time of jobs released together on one machine."""

    name: str = "b-scaling"

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run's total flow time; None for another policy.

        Jobs shorter than a b-th of the first try make the factor larger.
        """
        policy, instance = run.policy, outcome.instance
        if not isinstance(policy, BScaling) or not len(instance.workload):
            return None
        missing = kill_restart.missing_hypotheses(run)
        if missing:
            return UnmetHypotheses(THEOREM, missing)
        return FactorGuarantee(
            THEOREM,
            "total flow time",
            kill_restart.bound(instance, policy) / kill_restart.least(instance),
            ScheduleClass(preemptive=False),
            f"tries of {policy.first_s:g} s, each {policy.b} times as long as the one before; no run time is known",
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor; released together, it holds of completion times as well."""
        return factor_of(self.guarantee(outcome, run))


GUARANTEES = KillRestartTheorem()
