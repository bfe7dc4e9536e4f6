"""The bound of 2D-LAS' queues on the instance at hand."""

from __future__ import annotations

from dataclasses import dataclass

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.guarantees.lookup import KnownBound
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.tiresias.las2d import Las2d


@dataclass(frozen=True)
class LasTheorem:
    """TIR-las (b), of queues that promote nobody."""

    name: str = "las2d"

    def guarantee(self, outcome: Outcome, run: DescribedRun) -> None:
        """None: the bound is of single jobs, and loose beside the bounds of comparisons."""

    def known_bound(self, outcome: Outcome, run: DescribedRun) -> KnownBound | None:
        """The bound of total completion time over the certified bound, without a search, of the optimum's."""
        policy, instance = run.policy, outcome.instance
        if run.objective is not Objective.COMPLETION or not isinstance(policy, Las2d):
            return None
        if tiresias_las.missing_hypotheses(run):
            return None
        most = tiresias_las.bound(instance, policy.thresholds_gpu_s)
        goal = Objective.COMPLETION
        least = certified_bounds(instance, (goal,), BoundEffort(0.0))[goal]
        return KnownBound("TIR-las (b)", most * TICKS_PER_S / least.ticks)


GUARANTEES = LasTheorem()
