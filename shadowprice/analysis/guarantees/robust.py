"""Both factors of ASRPT-robust on the instance at hand."""

from __future__ import annotations

import math
from fractions import Fraction

from shadowprice.analysis.guarantees.asrpt import assumed_s
from shadowprice.analysis.guarantees.lookup import FactorTheorem
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.asrpt import prediction, robust
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.asrpt.robust import RobustAsrpt


def _says(outcome: Outcome, run: DescribedRun) -> tuple[Fraction, ScheduleClass, str]:
    """Predictions are made again, from the same completions."""
    policy = run.policy
    assert isinstance(policy, RobustAsrpt)
    _, virtual_s = assumed_s(outcome, Asrpt(predictor=policy.predictor))
    gangs = Gangs.of(outcome.instance, virtual_s)
    most = sum(each.least for each in robust.job_bounds(gangs, policy.cycles))
    factors = robust.Factors.of(gangs, policy.cycles)
    return (
        Fraction(most) / prediction.optimum_at_least(gangs),
        ScheduleClass(preemptive=True),
        f"with these predictions {at_most(factors.consistency)}, with any {at_most(factors.robustness)} and "
        f"{math.ceil(factors.more_s):,} s",
    )


GUARANTEES = FactorTheorem(
    "asrpt-robust",
    "ASRPT-robust",
    RobustAsrpt,
    None,
    "total completion time",
    robust.missing_hypotheses,
    _says,
)
