"""The factor of the b-scaling strategy on the instance at hand."""

from __future__ import annotations

from fractions import Fraction

from shadowprice.analysis.guarantees.lookup import FactorTheorem
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.classic import kill_restart
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.solvers.classic.b_scaling import BScaling


def _says(outcome: Outcome, run: DescribedRun) -> tuple[Fraction, ScheduleClass, str]:
    """Jobs shorter than a b-th of the first try make the factor larger; released together, it holds of completions."""
    policy, instance = run.policy, outcome.instance
    assert isinstance(policy, BScaling)
    return (
        kill_restart.bound(instance, policy) / kill_restart.least(instance),
        ScheduleClass(preemptive=False),
        f"tries of {policy.first_s:g} s, each {policy.b} times as long as the one before; no run time is known",
    )


GUARANTEES = FactorTheorem(
    "b-scaling",
    "KR-scale",
    BScaling,
    None,
    "total flow time",
    kill_restart.missing_hypotheses,
    _says,
)
