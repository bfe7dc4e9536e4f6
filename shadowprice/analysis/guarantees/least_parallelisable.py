"""LPF-work (b): the makespan of least parallelisable first, of jobs whose speed-ups are linear."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import FactorTheorem
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import least_parallelisable
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.least_parallelisable import LeastParallelisableFirst


def _says(outcome: Outcome, run: DescribedRun) -> tuple[Fraction, ScheduleClass, str]:
    instance = outcome.instance
    most = least_parallelisable.makespan_bound(instance)
    return (
        most / least_parallelisable.least_makespan(instance),
        ScheduleClass.allowed(instance, preemptive=True),
        "on any jobs of one GPU with linear speed-ups at most 2; no run time is known",
    )


GUARANTEES = FactorTheorem(
    "lpf",
    "LPF-work",
    LeastParallelisableFirst,
    Objective.MAKESPAN,
    "makespan",
    least_parallelisable.missing_hypotheses,
    _says,
)
