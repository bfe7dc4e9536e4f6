"""The makespan of least parallelisable first on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    UnmetHypotheses,
    factor_of,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import least_parallelisable
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.least_parallelisable import LeastParallelisableFirst

THEOREM = "LPF-work"


@dataclass(frozen=True)
class LeastParallelisableTheorem:
    """LPF-work (b), of the last completion of jobs whose speed-ups are linear."""

    name: str = "lpf"

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run's makespan; None for another policy or objective."""
        policy, instance = run.policy, outcome.instance
        about = isinstance(policy, LeastParallelisableFirst) and len(instance.workload)
        if not about or run.objective is not Objective.MAKESPAN:
            return None
        missing = least_parallelisable.missing_hypotheses(run)
        if missing:
            return UnmetHypotheses(THEOREM, missing)
        return FactorGuarantee(
            THEOREM,
            "makespan",
            least_parallelisable.makespan_bound(instance)
            / least_parallelisable.least_makespan(instance),
            ScheduleClass.allowed(instance, preemptive=True),
            "on any jobs of one GPU with linear speed-ups at most 2; no run time is known",
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor, of the makespan."""
        return factor_of(self.guarantee(outcome, run))


GUARANTEES = LeastParallelisableTheorem()
