"""Both factors of ASRPT-robust on the instance at hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees.asrpt import assumed_s
from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    UnmetHypotheses,
    factor_of,
)
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
class RobustTheorem:
    """ASRPT-robust, of total completion time."""

    name: str = "asrpt-robust"

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run's total completion time; None for another policy.

        Predictions are made again, from the same completions.
        """
        policy, instance = run.policy, outcome.instance
        if not isinstance(policy, RobustAsrpt) or not len(instance.workload):
            return None
        missing = robust.missing_hypotheses(run)
        if missing:
            return UnmetHypotheses(THEOREM, missing)
        _, virtual_s = assumed_s(outcome, Asrpt(predictor=policy.predictor))
        gangs = Gangs.of(instance, virtual_s)
        least = prediction.optimum_at_least(gangs)
        most = sum(each.least for each in robust.job_bounds(gangs, policy.cycles))
        factors = robust.Factors.of(gangs, policy.cycles)
        return FactorGuarantee(
            THEOREM,
            "total completion time",
            Fraction(most) / least,
            ScheduleClass(preemptive=True),
            f"with these predictions {at_most(factors.consistency)}, with any {at_most(factors.robustness)} and "
            f"{math.ceil(factors.more_s):,} s",
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor, of total completion time."""
        return factor_of(self.guarantee(outcome, run))


GUARANTEES = RobustTheorem()
