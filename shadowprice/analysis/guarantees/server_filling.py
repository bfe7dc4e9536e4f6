"""The flow time of ServerFilling-SRPT on the instance at hand."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import FactorTheorem
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import relevant_work
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.server_filling import ServerFillingSrpt


def _says(outcome: Outcome, run: DescribedRun) -> tuple[Fraction, ScheduleClass, str]:
    instance = outcome.instance
    more = int(relevant_work.more_jobs(instance))
    return (
        relevant_work.bound(instance) / relevant_work.least_flow(instance),
        ScheduleClass(preemptive=True),
        f"never more than {more} jobs beyond SRPT on one machine as fast as all GPUs",
    )


GUARANTEES = FactorTheorem(
    "server-filling",
    "SF-work",
    ServerFillingSrpt,
    Objective.FLOW,
    "total flow time",
    relevant_work.missing_hypotheses,
    _says,
)
