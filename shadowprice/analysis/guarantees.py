"""What a theorem says of a policy on the instance at hand, beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.proofs import asrpt_prediction, asrpt_sharper
from shadowprice.proofs.asrpt_conversion import Gangs
from shadowprice.solvers.asrpt import Asrpt
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.predict import Features, predict_online, predictor


@dataclass(frozen=True)
class Guarantee:
    """The factor of ASRPT-sharper with an instance's own numbers; of ASRPT-pred if jobs are held back.

    Parameters
    ----------
    factor : float
        Total completion time is at most this times the optimum's.
    rho : float
        Largest ratio of a longest to a shortest iteration.
    widest, gpus : int
        Largest gang, and GPUs of the cluster.
    over, under : float
        Worst over- and underestimate of the predictions that were made, lambda and mu.
    delayed : bool
        Whether jobs may be held back for consolidation, which adds at most the longest such delay
        to the completion of each job (ASRPT-conv).
    """

    factor: float
    rho: float
    widest: int
    gpus: int
    over: float
    under: float
    delayed: bool

    def sentence(self, policy: str) -> str:
        """The theorem in words."""
        theorem = "ASRPT-pred" if self.delayed else "ASRPT-sharper"
        return (
            f"{policy}: total completion time at most {self.factor:.3g} times the optimum's by "
            f"{theorem} (rho {self.rho:.3g}, gangs up to {self.widest} of {self.gpus} GPUs, "
            f"predictions up to {self.over:.3g}x over and {self.under:.3g}x under)"
            + (", plus the longest delay for consolidation for each job" if self.delayed else "")
        )


def guarantee(outcome: Outcome, policy: Policy) -> Guarantee | None:
    """The guarantee of a policy on the instance of an outcome; None where there is none.

    A-SRPT has one if it neither starts jobs early nor lets them overtake. Its predictions are made
    again, from the same completions.
    """
    if not isinstance(policy, Asrpt) or policy.work_conserving or policy.overtake:
        return None
    instance = outcome.instance
    if not len(instance.workload) or not instance.overheads.free:
        return None
    jobs = instance.workload
    share, virtual_s = assumed_s(outcome, policy)
    gangs = Gangs.of(instance, virtual_s)
    delayed = policy.delta > 0 and instance.graphs is not None
    theorem = asrpt_prediction if delayed else asrpt_sharper
    return Guarantee(
        float(theorem.bound(instance, virtual_s)),
        float(gangs.rho),
        int(jobs.gpus.max()),
        instance.cluster.total_gpus,
        float(max(np.max(share), 1.0)),
        float(max(1.0 / np.min(share), 1.0)),
        delayed,
    )


def assumed_s(outcome: Outcome, policy: Asrpt) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predicted over true iterations, and the run times the virtual machine assumed [s]; shape (n,).

    The predictions are made again, from the completions of the outcome.
    """
    instance = outcome.instance
    jobs = instance.workload
    predicted = predict_online(
        predictor(policy.predictor), Features.of(jobs), jobs.work, jobs.arrival_s, outcome.end_s
    )
    share = predicted / jobs.work
    basis = instance.shortest_s
    if policy.basis == "alpha_max" and instance.graphs is not None:
        graphs = instance.graphs
        basis = jobs.work * graphs.longest_iteration_s[graphs.of]
    return share, basis * share * policy.stretch
