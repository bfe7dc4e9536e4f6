"""The flow time of ServerFilling-SRPT on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import KnownBound, Silence
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import relevant_work
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.server_filling import ServerFillingSrpt


@dataclass(frozen=True)
class FlowGuarantee:
    """The bound of SF-work over the flow time of SRPT on one machine as fast as all GPUs.

    Parameters
    ----------
    factor : Fraction
        Total flow time is at most this times that of any schedule of the class.
    more_jobs : Fraction
        No more jobs than these are ever there beyond those on the machine.
    holds_for : ScheduleClass
        Against which schedules.
    """

    factor: Fraction
    more_jobs: Fraction
    holds_for: ScheduleClass

    def sentence(self, policy: str) -> str:
        """The theorem in words."""
        return (
            f"{policy}: total flow time at most {at_most(self.factor)} the offline optimum of "
            f"{self.holds_for} by SF-work (never more than {int(self.more_jobs)} jobs beyond SRPT on one "
            "machine as fast as all GPUs)"
        )


@dataclass(frozen=True)
class ServerFillingTheorem:
    """SF-work, of total flow time."""

    name: str = "server-filling"

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> FlowGuarantee | Silence | None:
        """Guarantee of a run's total flow time; None for another policy or objective."""
        if not isinstance(run.policy, ServerFillingSrpt) or run.objective is not Objective.FLOW:
            return None
        instance = outcome.instance
        if not len(instance.workload):
            return None
        failing = tuple(relevant_work.uncovered(run))
        if failing:
            return Silence("SF-work", failing)
        return FlowGuarantee(
            relevant_work.bound(instance) / relevant_work.least_flow(instance),
            relevant_work.more_jobs(instance),
            ScheduleClass(preemptive=True),
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The same factor, of total flow time."""
        stated = self.guarantee(outcome, run)
        return KnownBound("SF-work", stated.factor) if isinstance(stated, FlowGuarantee) else None


GUARANTEES = ServerFillingTheorem()
