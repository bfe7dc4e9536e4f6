"""A policy sees the past and the present: laws over all policies, and what a state can reach."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FunctionType, ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.execution.preset_registry import presets
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.graphs.job_graph import JobGraph, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.testing import checks
from shadowprice.proofs.testing.cases import plain
from shadowprice.proofs.testing.subject import Case, PolicyUnderTest, Scaling
from shadowprice.solvers.job_table import JobTable
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.registry import policies
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution
from support.conditioned_jobs import CLUSTER, PROFILE
from support.job_graph_runs import graph_instances
from support.states import state_of

EXAMPLES = max(settings().max_examples // 10, 1)


def subject(policy: Policy) -> PolicyUnderTest:
    return PolicyUnderTest(policy, False, (), Scaling.NONE)


@pytest.mark.parametrize("name", policies())
@settings(max_examples=EXAMPLES)
@given(instance=graph_instances())
def test_no_policy_foresees_jobs_with_graphs(name: str, instance: Instance) -> None:
    checks.blind_to_arrivals(subject(policies()[name]), Case(instance))


OWN_TABLE = "synergy/SRTF+fair"
"""Ranks by a table of its own: the iterations of its workload's jobs, before the peer's rounding.

``tests/execution/test_own_loop.py`` holds it to the same law, with all presets' changes of workloads.
"""


def preset_policies() -> dict[str, Policy]:
    """Policies of presets that run in the engine and read all that they know from its state."""
    jobs = Workload.from_columns(arrival_s=[0.0, 9.0], gpus=[1, 2], work=[5.0, 7.0])
    samples = ServiceDistribution(np.array([5.0, 14.0]))
    found = {}
    for preset in presets().values():
        for name in preset.recipes:
            with suppress(InputError):  # those that need profiles
                found[f"{preset.name}/{name}"] = preset.recipe(name, jobs, samples=samples).policy
    del found[OWN_TABLE]
    assert len(found) == 16
    return found


@pytest.mark.parametrize("name", preset_policies())
@settings(max_examples=EXAMPLES)
@given(case=plain())
def test_no_preset_foresees_arrivals(name: str, case: Case) -> None:
    checks.blind_to_arrivals(subject(preset_policies()[name]), case)


# --- what a state can reach ----------------------------------------------------------------------

WORK = 12_345.0
NAME = "the-future"
"""Of the job that has not arrived, and of nothing else."""


def columns(**more: Any) -> Workload:
    columns = {name: ["early", NAME] for name in ("id", "tenant", "model", "group", "name")}
    return Workload.from_columns(
        arrival_s=[0.0, 50.0], gpus=[1, 2], work=[8.0, WORK], **{**columns, **more}
    )


def plain_world() -> Instance:
    return Instance(Cluster.parse("2x2"), columns())


def typed_world() -> Instance:
    together = Throughputs(("a", "b"), {}, {("a", ("early", 1), ("early", 1)): (0.5, 0.5)})
    jobs = columns(throughput=[[2.0, 1.0], [WORK, WORK / 2]], gpu_types=("a", "b"))
    return Instance(Cluster.parse("1x2:a,1x2:b"), jobs, sharing_rates=together)


def graph_world() -> Instance:
    stage = Stage("early", 1, 0.25, 0.75)
    graphs = JobGraph("early", (stage,), ()), JobGraph(NAME, (Stage(NAME, 2, 0.5, 0.5),), ())
    network = Network(1e9, 1e9, 2)
    return Instance(
        Cluster.parse("2x2"), columns(), graphs=JobGraphs(graphs, np.array([0, 1]), network)
    )


def conditions_world() -> Instance:
    other = Profile(PROFILE.cpus_per_gpu, PROFILE.memory_gb_per_gpu, PROFILE.speed, NAME)
    conditions = dict(
        sensitivity=Sensitivity((PROFILE, other), np.array([0, 1])),
        elasticity=Elasticity(np.array([2, 4]), np.array([0.9, 0.9])),
    )
    return Instance(CLUSTER, columns(), **conditions)


WORLDS = (plain_world, typed_world, graph_world, conditions_world)


def reachable(root: object) -> Iterator[object]:
    """Everything that can be reached from an object, not through classes and modules."""
    seen, found = {id(root)}, [root]
    while found:
        each = found.pop()
        yield each
        more = gc.get_referents(each)
        if isinstance(each, np.ndarray):
            more = [each.base, *(each.ravel().tolist() if each.dtype == object else ())]
        elif isinstance(each, memoryview):
            more = [each.obj]
        for other in more:
            if not isinstance(other, type | ModuleType | FunctionType) and id(other) not in seen:
                seen.add(id(other))
                found.append(other)


def tells_the_future(root: object) -> list[object]:
    found: list[object] = []
    for each in reachable(root):
        if isinstance(each, np.ndarray) and each.dtype.kind in "fiV":
            fields = each.dtype.names or ()
            parts = [each[name] for name in fields] if fields else [each]
            found += [part for part in parts if (part == WORK).any()]
        elif each in (NAME, WORK) if isinstance(each, str | float) else False:
            found.append(each)
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_that_a_state_can_reach_tells_the_future(world: Callable[[], Instance]) -> None:
    instance = world()
    assert tells_the_future(instance)
    assert not tells_the_future(state_of(instance, arrived=1))
    assert tells_the_future(state_of(instance, arrived=2))


ASKED: dict[str, Callable[[State], object]] = {
    "columns": lambda state: state.columns([0, 1]),
    "columns before the first": lambda state: state.columns([-1]),
    "graph_of": lambda state: state.graph_of(1),
    "iteration_s": lambda state: state.iteration_s(1, ((0, (2,)),)),
    "profile_of": lambda state: state.profile_of(1),
    "widest": lambda state: state.widest(1),
    "speed_up": lambda state: state.speed_up(1, 1),
    "can_share": lambda state: state.can_share(0, 1, ((0, 1),)),
    "start": lambda state: Decision(state).start(1),
    "start_on": lambda state: Decision(state).start_on(1, 0),
    "start_mapped": lambda state: Decision(state).start_mapped(1, ((0, (2,)),)),
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("what", ASKED)
def test_asking_for_a_job_that_has_not_arrived_is_refused(
    what: str, world: Callable[[], Instance]
) -> None:
    state = state_of(world(), arrived=1)
    assert len(state.gang) == len(state.pools) == len(state.live()) == 1
    with pytest.raises(PolicyError, match=r"job -?1 at 0.0 s, but only jobs 0 to 0 have arrived"):
        ASKED[what](state)


def test_before_the_first_arrival_there_are_no_jobs() -> None:
    state = state_of(plain_world(), arrived=0)
    with pytest.raises(PolicyError, match=r"asks for job 0 at 0.0 s, but none has arrived"):
        state.columns([0])


@dataclass(frozen=True)
class Impatient:
    """Starts a job that is known to come."""

    name: str = "impatient"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        decision.start(1)
        return decision


def test_a_policy_cannot_start_a_job_before_it_arrives() -> None:
    with pytest.raises(PolicyError, match="asks for job 1"):
        run(plain_world(), Impatient(), placement=Count())


@pytest.mark.parametrize("again", [Decision.start, lambda decision, job: decision.start_on(job, 0)])
def test_a_policy_cannot_start_a_job_twice(again: Callable[[Decision, int], bool]) -> None:
    decision = Decision(state_of(plain_world(), arrived=1))
    assert decision.start(0)
    with pytest.raises(PolicyError, match=r"job 0 is started twice at 0.0 s"):
        again(decision, 0)


def test_jobs_that_arrive_one_by_one_are_the_jobs_of_the_workload() -> None:
    """Whatever the table of a state has room for at first."""
    n = 300
    draw = np.random.default_rng(0)
    instance = Instance(
        Cluster.parse("1x4:a,1x4:b"),
        Workload.from_columns(
            arrival_s=np.arange(n),
            gpus=draw.integers(1, 5, n),
            work=draw.integers(1, 100, n),
            weight=draw.random(n),
            throughput=draw.random((n, 2)) + 0.5,
            gpu_types=("a", "b"),
        ),
    )
    state = state_of(instance, [Knowledge.DURATION], arrived=0)
    table = JobTable.of(instance, state.environment)
    for end in (1, 2, 63, 64, 65, 66, 200, n):
        state.admit(table, end)
        live, jobs = state.live(), instance.workload
        assert live.jobs.tolist() == list(range(end))
        assert live.id.tolist() == jobs.id[:end].tolist()
        for name in ("gpus", "arrival_s", "weight", "work", "throughput"):
            assert getattr(live, name).tolist() == getattr(jobs, name)[:end].tolist()
        assert live.processing_s.tolist() == instance.shortest_s[:end].tolist()
        assert live.remaining_s.tolist() == instance.shortest_s[:end].tolist()


def test_jobs_may_share_where_there_are_rates() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[1, 1],
        work=[1, 1],
        model=["m", "m"],
        throughput=[[1.0], [1.0]],
        gpu_types=("a",),
    )
    plainly = Instance(Cluster.parse("1x1:a"), jobs)
    rates = Throughputs(("a",), {}, {("a", ("m", 1), ("m", 1)): (0.9, 0.9)})
    assert not state_of(plainly).sharing
    assert state_of(replace(plainly, sharing_rates=rates)).sharing
