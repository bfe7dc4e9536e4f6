"""A bound that does not know an instance is left out; where none is left, the instance is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.bounds import bounds_of, certified_bounds
from shadowprice.analysis.certificates import cascade, modes
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.utility.compare import compare_utility
from shadowprice.errors import InputError
from shadowprice.execution import engine
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.features import Feature, missing
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.lower_bounds import fluid, job, mbt
from shadowprice.solvers.offline import non_preemptive, one_pool
from shadowprice.solvers.offline.bounds import KNOWS as RELAXED_KNOWS
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.registry import policy
from support.feature_instances import instance_with, pairs_not_searched
from support.uneven_work import Fickle


def kinds(instance: Instance) -> set[str]:
    """Names of all bounds, of both searches."""
    found = {
        bound.kind
        for bound in bounds_of(
            instance, Objective.COMPLETION, BoundEffort(1.0), preemptive=False, consolidated=True
        )
    }
    best = certified_bounds(instance, (Objective.COMPLETION,), BoundEffort.of_size(2000))
    return found | {bound.kind for bound in best.values()}


@pytest.mark.parametrize(
    ("module", "constant", "features", "lost"),
    [
        (modes, "TYPE_KNOWS", (Feature.TYPES,), "typed-interval-lp"),
        (modes, "TYPE_KNOWS", (Feature.TYPES,), "priced-mean-busy-time"),
        (modes, "NODE_KNOWS", (Feature.SPREAD,), "priced-fluid-of-nodes"),
        (modes, "KNOWS", (Feature.WIDTHS,), "priced-fluid-of-amounts"),
        (modes, "PAIR_KNOWS", (Feature.SHARING, Feature.TYPES), "priced-fluid-of-pairs"),
        (one_pool, "KNOWS", (Feature.CHARGES,), "cp-sat milp"),
    ],
)
def test_a_bound_that_does_not_know_an_instance_is_left_out(
    module: ModuleType,
    constant: str,
    features: tuple[Feature, ...],
    lost: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Lists of few jobs say all that there is to say.
    monkeypatch.setattr(cascade, "non_preemptive_bounds", lambda *words: iter(()))
    instance = unequal(instance_with(*features))
    before = kinds(instance)
    assert before & set(lost.split())
    knows = getattr(module, constant) - {features[0]}
    monkeypatch.setattr(module, constant, knows)
    after = kinds(instance)
    assert not after & set(lost.split())
    assert {"job", "mean-busy-time"} <= after


def unequal(instance: Instance) -> Instance:
    """The instance; where some may share GPUs, one job of another model may not."""
    if Feature.SHARING not in instance.features:
        return instance
    names = instance.workload.model.copy()
    names[3] = "alone"
    return replace(instance, workload=replace(instance.workload, model=names))


@pytest.mark.parametrize(
    "feature",
    [Feature.COPIES, Feature.QUOTAS, Feature.PARTS, Feature.WINDOW, Feature.STOPPED],
)
def test_what_the_solvers_do_not_know_is_bounded_by_certificates(feature: Feature) -> None:
    instance, flow = instance_with(feature), Objective.FLOW
    with pytest.raises(InputError, match=f"has .*{feature.phrase}.* not known to lower bounds"):
        list(simple_bounds(instance, flow))
    bound = sp.strongest_bound(instance, objective="flow", preemptive=True, budget_s=0.0)
    assert bound.certified
    assert bound == certified_bounds(instance, (flow,), BoundEffort.of_size(0))[flow]
    assert bound.ticks > 0


@pytest.mark.parametrize("feature", [Feature.FAILURES, Feature.RESTART, Feature.CHARGES])
def test_the_preemptive_optimum_is_of_jobs_that_resume_at_no_loss(feature: Feature) -> None:
    with pytest.raises(InputError, match=f"{feature.phrase}.* the exact preemptive optimum"):
        sp.preemptive_optimum(instance_with(feature), objective="flow")


def test_the_optimum_without_preemption_is_of_nodes_that_never_fail() -> None:
    """The node of a job of 10 s fails at 5 s: what would be the optimum, 14 s, is a bound."""
    jobs = sp.Workload.from_columns(arrival_s=[0.0, 1.0], gpus=1, work=[10.0, 1.0])
    down = NodeFailures(np.array([0]), np.array([5.0]), np.array([6.0]))
    failing = Instance(sp.Cluster.parse("1x1"), jobs, failures=down)
    for ask in (non_preemptive.optimum, sp.optimum):
        with pytest.raises(InputError, match="nodes that fail, not known to the exact optimum"):
            ask(failing)
    goal = Objective.COMPLETION
    found = list(bounds_of(failing, goal, BoundEffort(1.0), preemptive=False))
    # Shortest first with preemption takes 13 s: the bound is of the programme without.
    assert max(bound.ticks for bound in found) == 14 * TICKS_PER_S
    assert max(bound.ticks for bound in found if bound.certified) == 13 * TICKS_PER_S


def test_jobs_that_are_faster_beside_others_end_sooner_than_alone() -> None:
    """Two jobs of 100 s, twice as fast beside each other: both are done after 50 s, and LB-job says so."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=100, model="a")
    kind, cluster = ("a", 1), sp.Cluster.parse("1x1")
    rates = Throughputs(("gpu",), {}, {("gpu", kind, kind): (2.0, 2.0)})
    instance = Instance(cluster, jobs, sharing_rates=rates)
    rows = (np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), np.zeros(2), np.full(2, 50.0))
    schedule = sp.Schedule(*rows, np.zeros(2), partner=np.array([1, 0]))
    assert verify(instance, schedule).all()
    assert job.bound(instance) == 100
    assert job.check(instance, 100)
    assert not job.check(instance, Fraction(100) - Fraction(1, 2**20))
    for theorem in (fluid, mbt):
        with pytest.raises(InputError, match="rates of jobs that share GPUs, not known to LB-"):
            theorem.check(instance, 100)


def test_utilities_of_jobs_that_ask_for_cpus_have_a_bound_and_no_plan() -> None:
    """The offline programme does not know what jobs ask for, which only restrict schedules."""
    instance = instance_with(Feature.CPU_MEMORY)
    found = compare_utility(instance.workload, instance.cluster, ["fifo"], budget_s=0.2)
    assert found.plan is None
    assert found.rows[0].bound >= found.rows[0].utility > 0
    with pytest.raises(InputError, match=r"ask for CPUs or memory.* not known to plans of rounds"):
        compare_utility(
            instance.workload,
            instance.cluster,
            ["fifo"],
            budget_s=0.2,
            model="shadowprice/models/hadar.py:time_indexed",
        )


BOUNDS = (
    (fluid.KNOWS, fluid.bound),
    (mbt.KNOWS, mbt.bound),
    (job.KNOWS, job.bound),
    (RELAXED_KNOWS, lambda instance: largest(instance) / TICKS_PER_S),
)


def largest(instance: Instance) -> Fraction:
    """The largest bound of total completion time that takes little time [ticks]."""
    goal = Objective.COMPLETION
    found = bounds_of(instance, goal, BoundEffort(0.0))
    return max(bound.ticks for bound in found)


@pytest.mark.parametrize("pair", pairs_not_searched(), ids="-".join)
def test_of_every_pair_of_features_that_is_known_no_run_is_below_a_bound(
    pair: tuple[Feature, Feature],
) -> None:
    """Of the other pairs exhaustive search shows more: tests/analysis/test_claims_against_search.py."""
    instance = instance_with(*pair)
    known = [bound for knows, bound in BOUNDS if not missing(instance, knows)]
    acting = [policy("fifo"), policy("las")]
    if Feature.FAILURES not in pair:
        acting.append(Fickle(0))  # It shares GPUs, for which there is no rule where nodes fail.
    for each in acting if known else ():
        done = engine.run(instance, each)
        ends_s = Outcome.verified(done.instance, done.schedule, policy="some").end_s
        cost_s = sum((Fraction(end) for end in ends_s.tolist()), Fraction(0))
        for bound in known:
            assert bound(done.instance) <= cost_s
