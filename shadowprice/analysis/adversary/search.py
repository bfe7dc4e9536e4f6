"""An adversary: the instance of a family on which a policy is worst, with a witness that proves it.

Given a policy, a family of small instances and an objective, look for the largest quotient of the
policy's cost and the cost of a schedule that one could have made. Any feasible schedule will do:
it costs at least as much as the optimum, so cost(policy) >= r cost(schedule) proves that the policy
is off by a factor of r or more. What is reported is therefore a certified lower bound of the
policy's ratio, and the schedule is kept as its witness. Where the witness is optimal among the
schedules of its kind the ratio on that instance is exact as well, and the report says so.

Methods: ``hypothesis`` (property testing with a target, then shrinking), ``evolution``
(differential evolution), ``bilevel`` (exact, for a few list policies; see
``models/bilevel.py``). The first two stop by evaluations or by time, and find the same again for
the same seed and number of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from shadowprice.analysis.adversary.family import KNOWS, InstanceFamily
from shadowprice.analysis.adversary.judge import Judge, JudgeEffort, Trail
from shadowprice.analysis.adversary.methods import by_enumeration, by_evolution, by_hypothesis
from shadowprice.analysis.guarantees.lookup import KnownBound, describe, known_bound
from shadowprice.analysis.metrics import end_s
from shadowprice.analysis.optimum import slotted_preemptive_optimum
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots.pair import plot_pair
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import execute_bounded
from shadowprice.analysis.wording import at_least
from shadowprice.brief import BriefTable
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.features import require
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule
from shadowprice.solvers.classic.srtf import Srsf, Srtf
from shadowprice.solvers.offline.list_optimum import optimal_starts_s
from shadowprice.solvers.offline.node_assignment import assign_nodes
from shadowprice.solvers.policy import Policy
from shadowprice.user_code import runs_a_file

if TYPE_CHECKING:
    from shadowprice.execution.watch import Watch

METHODS: dict[str, Callable[[Trail], None]] = {
    "hypothesis": by_hypothesis,
    "evolution": by_evolution,
    "bilevel": by_enumeration,
}

FEASIBLE = "feasible"
ENUMERATED = "optimal among schedules without preemption (enumeration)"
SLOTTED = "optimal among schedules that change at whole units (CP-SAT)"
SHORTEST = "optimal (shortest remaining time first on one GPU)"
WITNESS_IS = (FEASIBLE, ENUMERATED, SLOTTED, SHORTEST)
"""What may be known of a witness."""

MOST_LISTED = 9
"""Jobs up to which a witness is the best schedule without preemption."""

_PROOF_S = 30.0
"""Time for CP-SAT [s], when a witness is checked again."""

_CELLS = 3_000
"""Most jobs x slots for which the preemptive witness is optimised."""


@dataclass(frozen=True, repr=False)
class WorstInstance(BriefTable):
    """A hard instance whose claim has been checked, with both schedules.

    Parameters
    ----------
    hard : HardInstance
        What is stored.
    policy, witness : Outcome
        What the policy does, and what one could have done; both verified.
    bound : KnownBound or None
        The theorem that bounds the policy's ratio on this instance, if there is one.
    """

    hard: HardInstance
    policy: Outcome
    witness: Outcome
    bound: KnownBound | None

    @property
    def ratio(self) -> Fraction:
        """Cost of the policy over that of the witness."""
        return self.hard.ratio

    def sentence(self) -> str:
        """The result in words."""
        hard, ratio = self.hard, self.ratio
        proven = "at least" if hard.witness_is == FEASIBLE else "exactly"
        kind = "" if hard.witness_is == FEASIBLE else f"; the witness is {hard.witness_is}"
        if hard.witness_is == SLOTTED:
            kind += f", units of {_unit_s(hard, hard.name):g} s"
        number = str(ratio) if ratio.denominator == 1 else f"{ratio} ({at_least(ratio)})"
        limit = "no theorem bounds it" if self.bound is None else self.bound.sentence()
        return (
            f"{hard.policy} costs {proven} {number} times what was possible on "
            f"{len(hard.instance.workload)} jobs ({hard.objective}: {hard.policy_cost_s:g} s "
            f"against {hard.witness_cost_s:g} s){kind}; {limit}"
        )

    def plot(self) -> Figure:
        """Both schedules, one above the other."""
        hard = self.hard
        bound = None if self.bound is None else self.bound.factor
        return plot_pair(self.policy, self.witness, hard.objective, bound=bound)


def adversary(
    policy: str | Policy,
    family: InstanceFamily | None = None,
    objective: Objective | str = Objective.COMPLETION,
    *,
    method: str = "evolution",
    effort: JudgeEffort | None = None,
    progress: Callable[[str], None] | None = None,
    watch: Watch | None = None,
) -> WorstInstance:
    """The worst instance of a family for a policy that an effort finds.

    Parameters
    ----------
    policy : str or Policy
        Name, with parameters after a colon, or a policy of your own.
    family : InstanceFamily, optional
        Instances to choose from; five jobs on four GPUs by default.
    method : {"evolution", "hypothesis", "bilevel"}
        How to look.
    effort : JudgeEffort, optional
        When to stop, and the seed; a minute by default.
    progress : callable, optional
        Told about every worse instance.
    watch : Watch, optional
        Told what part of the effort is spent. Where it stops the search, the worst instance so far is the
        result; ``bilevel`` goes on.

    Raises
    ------
    InputError
        If a name is unknown or the method does not cover the policy.

    Examples
    --------
    >>> import shadowprice.analysis.adversary.search as adv
    >>> small = adv.InstanceFamily(jobs=2, gpus=1, max_arrival=0, max_work=4)
    >>> adv.adversary("fifo", small, effort=adv.JudgeEffort(evaluations=300)).ratio
    Fraction(3, 2)
    """
    if method not in METHODS:
        raise InputError(f"method {method!r}: expected one of {', '.join(METHODS)}")
    goal = Objective.of(objective)
    chosen, spend = family or InstanceFamily(), effort or JudgeEffort()
    trail = Trail(Judge(policy, goal, chosen), spend, progress or (lambda line: None), watch)
    METHODS[method](trail)
    return _checked_result(trail, method)


def recheck(
    hard: HardInstance, name: str | None = None, policy: str | Policy | None = None
) -> WorstInstance:
    """Run the policy, verify both schedules and compute all that is claimed again, exactly.

    A witness that is called optimal is compared with the optimum of these schedules, found anew. Where
    that search runs out of time the witness is called feasible. The rest is :func:`rerun`.

    Raises
    ------
    InputError
        If the policy that is stored would run a file, and none is given.
    VerificationError
        If the witness breaks a rule, a cost or the ratio is not as stored, or the witness is not
        optimal as it is said to be.
    """
    again = rerun(hard, name, policy)
    cost_s = Fraction(hard.witness_cost_s)
    return replace(
        again, hard=replace(hard, witness_is=_confirmed(hard, cost_s, name or hard.name))
    )


def rerun(
    hard: HardInstance, name: str | None = None, policy: str | Policy | None = None
) -> WorstInstance:
    """Run the policy, verify both schedules and compute costs and ratio again, exactly.

    Whether the witness is optimal is not asked: the ratio is at least the policy's to it in any case.

    Parameters
    ----------
    name : str, optional
        What to call the instance in messages; as stored if not given.
    policy : str or Policy, optional
        The policy that is meant, where its name alone does not tell. One whose name runs a file has to be
        given: no code is run because a document names it.

    Raises
    ------
    InputError
        If the policy that is stored would run a file, and none is given, or the instance says more than an
        adversary knows.
    VerificationError
        If the witness breaks a rule, or a cost or the ratio is not as stored.
    """
    require(hard.instance, KNOWS, "adversaries")
    workload, where = hard.instance.workload, hard.instance.cluster
    if policy is None and any(map(runs_a_file, (hard.policy, hard.predictor or ""))):
        raise InputError(
            f"{name or hard.name}: policy is {hard.policy!r}, which runs a file; expected it to be given "
            "beside the instance, such as with --policy"
        )
    prepared = prepare_run(
        workload, where, policy or hard.policy, RunOptions(predictor=hard.predictor)
    )
    outcome = execute_bounded(prepared)
    witness = Outcome.verified(hard.instance, hard.witness, policy="witness")
    cost_s, least_s = (hard.objective.cost_s(workload, o.end_s) for o in (outcome, witness))
    ratio = Fraction(cost_s) / Fraction(least_s)
    for what, is_, stored in (
        ("policy_cost_s", cost_s, hard.policy_cost_s),
        ("witness_cost_s", least_s, hard.witness_cost_s),
        ("ratio", ratio, hard.ratio),
    ):
        if is_ != stored:
            raise VerificationError(f"{name or hard.name}: {what} is {stored}, computed {is_}")
    seen = describe(prepared, hard.objective)
    bound = None if seen is None else known_bound(outcome, seen)
    return WorstInstance(hard, outcome, witness, bound)


def _confirmed(hard: HardInstance, cost_s: Fraction, name: str) -> str:
    """Kind of the witness: as stored if that is so, feasible if it cannot be settled."""
    if hard.witness_is not in WITNESS_IS:
        raise VerificationError(
            f"{name}: witness_is is {hard.witness_is!r}, expected one of {', '.join(WITNESS_IS)}"
        )
    least_s = None if hard.witness_is == FEASIBLE else _least_s(hard, name)
    if least_s is None:
        return FEASIBLE
    if least_s != cost_s:
        raise VerificationError(
            f"{name}: witness_is is {hard.witness_is!r}, but the witness costs {float(cost_s):g} s "
            f"and the optimum is {float(least_s):g} s"
        )
    return hard.witness_is


def _least_s(hard: HardInstance, name: str) -> Fraction | None:
    """Least cost [s] of the schedules among which a witness is called optimal; None if not settled."""
    instance, goal = hard.instance, hard.objective
    if hard.witness_is == ENUMERATED:
        if len(instance.workload) > MOST_LISTED:
            return None
        start_s = optimal_starts_s(instance, span=goal is Objective.MAKESPAN)
        return Fraction(goal.cost_s(instance.workload, start_s + instance.shortest_s))
    if hard.witness_is == SHORTEST:
        if instance.cluster.total_gpus > 1 or goal is Objective.MAKESPAN:
            raise VerificationError(
                f"{name}: witness_is is {hard.witness_is!r}, on {instance.cluster.total_gpus} GPUs and "
                f"for {goal}; expected one GPU, and completion or flow"
            )
        ends_s = end_s(instance, run(instance, Srtf()).schedule)
        return Fraction(goal.cost_s(instance.workload, ends_s))
    optimum = slotted_preemptive_optimum(
        instance, objective=goal, method="cp-sat", budget_s=_PROOF_S, slot_s=_unit_s(hard, name)
    )
    return Fraction(optimum.upper_s) if optimum.proven else None


def _unit_s(hard: HardInstance, name: str) -> float:
    """The unit of the family that an instance is of [s]."""
    try:
        return float(hard.provenance["family"]["unit_s"])
    except (KeyError, TypeError, ValueError):
        raise VerificationError(
            f"{name}: witness_is is {hard.witness_is!r}, and provenance has no family with a unit_s"
        ) from None


def _checked_result(trail: Trail, method: str) -> WorstInstance:
    """The best case of a trail with its best witness, checked."""
    assert trail.best is not None
    judge = trail.judge
    instance = judge.family.instance(trail.best)
    predictor = judge.family.predictor(trail.best)
    options = RunOptions(predictor=predictor)
    outcome = execute_bounded(
        prepare_run(instance.workload, instance.cluster, judge.policy, options)
    )
    witness, least_s, witness_is = _witness(judge, instance, trail.effort.proof_s)
    cost_s = judge.objective.cost_s(instance.workload, outcome.end_s)
    name = (
        f"{judge.acting.name}-{judge.objective}-{judge.family.gpus}gpu-{len(trail.best.jobs)}jobs"
    )
    hard = HardInstance(
        name,
        judge.name,
        predictor,
        judge.objective,
        instance,
        witness,
        cost_s,
        least_s,
        Fraction(cost_s) / Fraction(least_s),
        witness_is,
        _provenance(trail, method),
    )
    return recheck(hard, policy=judge.policy)


def _witness(judge: Judge, instance: Instance, proof_s: float) -> tuple[Schedule, float, str]:
    """The cheapest schedule known, its cost [s] and what is known of it."""
    cost, start_s, proven = judge.possible(instance, MOST_LISTED)
    schedule, kind = assign_nodes(instance, start_s), ENUMERATED if proven else FEASIBLE
    least_s = float(cost)
    if not judge.preemptive:
        return schedule, least_s, kind
    kind = FEASIBLE
    for policy in (Srtf(), Srsf()):
        other = run(instance, policy).schedule
        value_s = judge.objective.cost_s(instance.workload, end_s(instance, other))
        if value_s < least_s:
            schedule, least_s = other, value_s
    if judge.family.gpus == 1 and judge.objective is not Objective.MAKESPAN:
        return schedule, least_s, SHORTEST
    slots = int(sum(instance.shortest_s.tolist()) / judge.family.unit_s) + judge.family.max_arrival
    if proof_s > 0 and len(instance.workload) * slots <= _CELLS:
        optimum = slotted_preemptive_optimum(
            instance,
            objective=judge.objective,
            method="cp-sat",
            budget_s=proof_s,
            slot_s=judge.family.unit_s,
        )
        if optimum.schedule is not None and optimum.upper_s <= least_s:
            schedule, least_s = optimum.schedule, optimum.upper_s
            kind = SLOTTED if optimum.proven else FEASIBLE
    return schedule, least_s, kind


def _provenance(trail: Trail, method: str) -> Mapping[str, Any]:
    family = trail.judge.family
    try:
        made_by = version("shadowprice")
    except PackageNotFoundError:
        made_by = "source tree"
    return {
        "method": method,
        "seed": trail.effort.seed,
        "evaluations": trail.evaluations,
        "family": {
            "jobs": family.jobs,
            "gpus": family.gpus,
            "max_arrival": family.max_arrival,
            "max_work": family.max_work,
            "largest_gang": family.widest,
            "max_error": family.max_error,
            "unit_s": family.unit_s,
        },
        "version": made_by,
        **trail.notes,
    }


def renamed(worst: WorstInstance, name: str) -> WorstInstance:
    """The same under another name, as for a file of one's own choice."""
    return replace(worst, hard=replace(worst.hard, name=name))
