"""The flow time of ServerFilling-SRPT on the instance at hand."""

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
from shadowprice.proofs.classic import relevant_work
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.server_filling import ServerFillingSrpt

THEOREM = "SF-work"


@dataclass(frozen=True)
class ServerFillingTheorem:
    """SF-work, of total flow time."""

    name: str = "server-filling"

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run's total flow time; None for another policy or objective."""
        if not isinstance(run.policy, ServerFillingSrpt) or run.objective is not Objective.FLOW:
            return None
        instance = outcome.instance
        if not len(instance.workload):
            return None
        missing = relevant_work.missing_hypotheses(run)
        if missing:
            return UnmetHypotheses(THEOREM, missing)
        more = int(relevant_work.more_jobs(instance))
        return FactorGuarantee(
            THEOREM,
            "total flow time",
            relevant_work.bound(instance) / relevant_work.least_flow(instance),
            ScheduleClass(preemptive=True),
            f"never more than {more} jobs beyond SRPT on one machine as fast as all GPUs",
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor, of total flow time."""
        return factor_of(self.guarantee(outcome, run))


GUARANTEES = ServerFillingTheorem()
