"""Cost of a policy on one small instance, over that of a schedule one could have made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.adversary.family import KNOWS, FamilyInstance, InstanceFamily
from shadowprice.analysis.metrics import end_s
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.features import require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.models.slotted import Slotted
from shadowprice.solvers import registry
from shadowprice.solvers.offline import list_search as list_schedule
from shadowprice.solvers.offline.list_optimum import optimal_starts_s
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.policy_checks import expect_policy

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

ENUMERATED = 7
"""Most jobs whose best non-preemptive schedule is found by enumeration while searching."""

_MOVES = 60


@dataclass(frozen=True)
class JudgeEffort:
    """Limits of a search, which stops at the first one that is reached.

    Parameters
    ----------
    evaluations : int
        Instances looked at. If they end the search, the same seed finds the same instance.
    budget_s : float
        Wall time [s].
    seed : int
        Of all that is random.
    proof_s : float
        Time for a solver to look for a better witness that preempts [s]; with 0 nobody looks at a clock once
        evaluations have ended the search, and the result is the same on every machine.
    """

    evaluations: int = 1_000_000
    budget_s: float = 60.0
    seed: int = 0
    proof_s: float = 30.0

    def __post_init__(self) -> None:
        fine = self.evaluations >= 1 and self.budget_s > 0 and self.proof_s >= 0
        if not fine or not 0 <= self.seed < 2**32:
            raise InputError(
                f"adversary: evaluations {self.evaluations!r}, budget_s {self.budget_s!r}, "
                f"seed {self.seed!r}, proof_s {self.proof_s!r}: expected at least 1, more than 0, 0 to 2^32 - 1, "
                "and at least 0"
            )


@dataclass(frozen=True)
class Judge:
    """The policy, the objective and the family of one search.

    Parameters
    ----------
    policy : str or Policy
        A name, as on the command line, or a policy of your own.
    """

    policy: str | Policy
    objective: Objective
    family: InstanceFamily
    acting: Policy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        policy = self.policy
        acting = registry.policy(policy) if isinstance(policy, str) else expect_policy(policy)
        if self.family.max_error and not hasattr(acting, "predictor"):
            raise InputError(
                f"policy {self.name!r}: predicts nothing, expected max_error 0, "
                f"got {self.family.max_error}"
            )
        object.__setattr__(self, "acting", acting)

    @property
    def name(self) -> str:
        """The policy's name with its parameters."""
        return registry.name_with_parameters(self.policy)

    @property
    def preemptive(self) -> bool:
        """True if the policy preempts; its optimum then may."""
        return self.acting.preemptive

    def acting_on(self, case: FamilyInstance) -> Policy:
        """The policy, with the predictions of a case."""
        predictor = self.family.predictor(case)
        if predictor is None:
            return self.acting
        return cast(Policy, replace(cast(Any, self.acting), predictor=predictor))

    def ratio(self, case: FamilyInstance) -> Fraction:
        """Cost of the policy over that of the best schedule found quickly: without preemption.

        That schedule is optimal, without preemption, for up to 7 jobs. Nothing is verified here.
        """
        instance = self.family.instance(case)
        schedule = run(instance, self.acting_on(case)).schedule
        cost_s = self.objective.cost_s(instance.workload, end_s(instance, schedule))
        return Fraction(cost_s) / self.possible(instance, ENUMERATED)[0]

    def possible(
        self, instance: Instance, enumerated: int
    ) -> tuple[Fraction, NDArray[np.float64], bool]:
        """Cost [s] and starts [s] of a schedule without preemption; whether it is optimal.

        Raises
        ------
        InputError
            If the instance says more than an adversary knows.
        """
        require(instance, KNOWS, "adversaries")
        span, jobs = self.objective is Objective.MAKESPAN, instance.workload
        proven = len(jobs) <= enumerated
        if proven:
            start_s = optimal_starts_s(instance, span=span)
        else:
            slots = Slotted.of(instance)
            starts = list_schedule.search(
                slots, span=span, seed=0, budget_s=float("inf"), moves=_MOVES
            )
            start_s = starts.astype(np.float64) * (slots.slot_ticks / TICKS_PER_S)
        cost_s = self.objective.cost_s(jobs, start_s + instance.shortest_s)
        return Fraction(cost_s), start_s, proven


@dataclass
class Trail:
    """The best case so far, and what is left of the effort.

    A search asks :meth:`look` about cases until :meth:`over`; its ``notes`` go into the provenance. The watch is
    told what part of the effort is spent, and may stop the search once there is a case.
    """

    judge: Judge
    effort: JudgeEffort
    progress: Callable[[str], None] = field(default=lambda line: None)
    watch: Watch | None = None
    best: FamilyInstance | None = None
    ratio: Fraction = Fraction(0)
    evaluations: int = 0
    notes: dict[str, Any] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def look(self, case: FamilyInstance) -> Fraction:
        """The ratio of a case, which is remembered if it is the best, or as bad and simpler."""
        self.evaluations += 1
        ratio = self.judge.ratio(case)
        if ratio > self.ratio or (ratio == self.ratio and simpler(case, self.best)):
            if ratio > self.ratio:
                self.progress(f"{self.evaluations} instances, worst ratio {float(ratio):.4f}")
            self.best, self.ratio = case, ratio
        return ratio

    def over(self) -> bool:
        """True if the effort is spent, or the watch wants the search stopped with what it has."""
        spent_s = time.monotonic() - self.began
        stopped = self.watch is not None and self._stopped(self.watch, spent_s)
        late = spent_s >= self.effort.budget_s
        return late or stopped or self.evaluations >= self.effort.evaluations

    def _stopped(self, watch: Watch, spent_s: float) -> bool:
        """Tell the watch what part of the effort is spent, in thousandths; True if it stops the search."""
        shares = spent_s / self.effort.budget_s, self.evaluations / self.effort.evaluations
        stops = watch.stops(min(int(1000 * max(shares)), 1000), 1000)
        return stops and self.best is not None


def simpler(case: FamilyInstance, other: FamilyInstance | None) -> bool:
    """Fewer jobs, then smaller numbers: the order in which witnesses are preferred."""
    return other is None or _size(case) < _size(other)


def _size(case: FamilyInstance) -> tuple[int, int, int, tuple[object, ...]]:
    numbers = [job.arrival + job.work + job.gpus + 4 * abs(job.error) for job in case.jobs]
    distinct = len({job.work for job in case.jobs})
    return len(case.jobs), sum(numbers), distinct, case.jobs
