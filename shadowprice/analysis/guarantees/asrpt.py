"""Guarantees of A-SRPT's theorems on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.guarantees.lookup import (
    FactorGuarantee,
    KnownBound,
    UnmetHypotheses,
    factor_of,
)
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule_class import ScheduleClass
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.described_run import DescribedRun, held_back
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.predictors.predictor import Features, predict_online, predictor


@dataclass(frozen=True)
class AsrptTheorems:
    """ASRPT-sharper with an instance's own numbers; ASRPT-pred if jobs are held back.

    What the time grid adds, less than a tick a job, is in the factor. Where jobs may be held back for consolidation,
    the longest such delay is added to the completion of each job (ASRPT-conv).
    """

    name: str = "asrpt"

    def guarantee(
        self, outcome: Outcome, run: DescribedRun
    ) -> FactorGuarantee | UnmetHypotheses | None:
        """Guarantee of a run's total completion time; None for another policy than A-SRPT.

        Predictions are made again, from the same completions.
        """
        policy = run.policy
        if not isinstance(policy, Asrpt) or not len(outcome.instance.workload):
            return None
        delayed = any(held_back(run))
        named = "ASRPT-pred" if delayed else "ASRPT-sharper"
        missing = (
            asrpt_prediction.missing_but_delays(run)
            if delayed
            else asrpt_sharper.missing_hypotheses(run)
        )
        if missing:
            return UnmetHypotheses(named, missing)
        instance = outcome.instance
        share, virtual_s = assumed_s(outcome, policy)
        gangs = Gangs.of(instance, virtual_s)
        theorem = asrpt_prediction if delayed else asrpt_sharper
        over, under = float(max(np.max(share), 1.0)), float(max(1.0 / np.min(share), 1.0))
        return FactorGuarantee(
            named,
            "total completion time",
            theorem.bound(instance, virtual_s) + _of_the_grid(gangs),
            ScheduleClass(preemptive=True),
            f"rho {at_most(gangs.rho)}, gangs up to {instance.workload.gpus.max()} of "
            f"{instance.cluster.total_gpus} GPUs, predictions up to {at_most(over)} over and {at_most(under)} under",
            ", plus the longest delay for consolidation for each job" if delayed else "",
        )

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """Its factor of total completion time, where no job is held back."""
        if run.objective is not Objective.COMPLETION:
            return None
        stated = self.guarantee(outcome, run)
        more = isinstance(stated, FactorGuarantee) and stated.besides
        return None if more else factor_of(stated)


GUARANTEES = AsrptTheorems()


def _of_the_grid(gangs: Gangs) -> Fraction:
    """Amount that starting at whole ticks adds to the factor.

    The proofs let j start from C_j^V on, the cluster from the next tick on, which is later by as much
    for j and by no more for the jobs before it: C_j grows by that at most.
    """
    late = sum((-at % gangs.capacity for _, at in gangs.virtual_order()), 0)
    return Fraction(late, gangs.capacity) / asrpt_prediction.optimum_at_least(gangs)


def assumed_s(outcome: Outcome, policy: Asrpt) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predicted over true iterations, and the run times the virtual machine assumed [s]; shape (n,).

    The predictions are made again, from the completions of the outcome, and rounded to the grid as the
    policy rounds them.
    """
    instance = outcome.instance
    jobs = instance.workload
    predicted = predict_online(
        predictor(policy.predictor), Features.of(jobs), jobs.work, jobs.arrival_s, outcome.end_s
    )
    share = predicted / jobs.work
    if instance.graphs is not None:
        graphs = instance.graphs
        longest = policy.basis == "alpha_max"
        iteration_s = graphs.longest_iteration_s if longest else graphs.shortest_iteration_s
        run_s = predicted * iteration_s[graphs.of]
    elif jobs.throughput is not None:
        columns = [jobs.gpu_types.index(name) for name in instance.cluster.gpu_types]
        run_s = predicted / jobs.throughput[:, columns].max(axis=1)
    else:
        run_s = predicted
    rounded_s = np.clip(np.ceil(run_s / TICK_S) * TICK_S, TICK_S, MAX_TIME_S)
    return share, np.ceil(rounded_s * policy.stretch * TICKS_PER_S) / TICKS_PER_S
