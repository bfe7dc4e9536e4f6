"""Theorems that bound what an adversary can find."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shadowprice.analysis.guarantees import Guarantee, guarantee
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.wording import at_most
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.objective import Objective
from shadowprice.proofs.described_run import DescribedRun
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.classic.srtf import Srtf
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.tiresias.las2d import Las2d


@dataclass(frozen=True)
class KnownBound:
    """A theorem and its factor on one instance.

    Parameters
    ----------
    theorem : str
        Where it is stated and proven.
    factor : Fraction
        The policy costs at most so many times the optimum there.
    """

    theorem: str
    factor: Fraction

    def sentence(self) -> str:
        """The theorem in words."""
        return f"at most {at_most(self.factor)} by {self.theorem}"


def known_bound(policy: Policy, outcome: Outcome, objective: Objective) -> KnownBound | None:
    """The smallest proven factor for a policy's outcome, None where no theorem is known here.

    For an adversary's runs: decisions at events, any free GPUs for a gang, nothing charged.

    On the utility of ``hadar-committed`` there is one (``proofs/hadar/competitive.py``), but it is
    about a total that is maximised, which says nothing about completion times.
    """
    if isinstance(policy, Srtf) and outcome.instance.cluster.total_gpus == 1:
        if objective is not Objective.MAKESPAN:
            return KnownBound("SRPT-1 (one machine)", Fraction(1))
        return None
    if objective is not Objective.COMPLETION:
        return None
    if isinstance(policy, Las2d) and policy.promote_knob == math.inf:
        return _of_queues(policy, outcome)
    if not isinstance(policy, Asrpt):
        return None
    stated = guarantee(outcome, DescribedRun(outcome.instance, policy, objective))
    if not isinstance(stated, Guarantee) or stated.delayed:
        return None
    return KnownBound(stated.theorem, stated.factor)


def _of_queues(policy: Las2d, outcome: Outcome) -> KnownBound:
    """The bound of 2D-LAS' total completion time over the best simple bound of the optimum's."""
    instance = outcome.instance
    most = tiresias_las.bound(instance, policy.thresholds_gpu_s)
    least = max(bound.ticks for bound in simple_bounds(instance, Objective.COMPLETION))
    return KnownBound("TIR-las (b)", most * TICKS_PER_S / least)
