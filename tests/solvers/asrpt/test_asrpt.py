"""A-SRPT, its virtual machine and its baselines, on examples by hand and against slow twins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.metrics import end_s
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import merged
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.instances.strategies import instances
from shadowprice.instances.workload import Workload
from shadowprice.proofs.asrpt import conversion as asrpt_conversion
from shadowprice.proofs.asrpt import early as asrpt_early
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt.conversion import Gangs
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.asrpt.srpt_machine import VirtualMachine, virtual_completions
from shadowprice.solvers.list_scheduling import Backlog
from shadowprice.solvers.offline.bounds import fluid_ticks
from shadowprice.solvers.policy import Knowledge, Policy
from shadowprice.solvers.registry import policies, policy

NAMES = ("asrpt", "asrpt-guarded", "asrpt-early")
VARIANTS = (
    *(f"{name}:predictor=oracle" for name in NAMES),
    "asrpt-early:overtake=true",
    "asrpt:overtake=true,basis=alpha_max",
)
BASELINES = ("spjf", "spwf", "wcs-duration", "wcs-workload", "wcs-subtime")

jobs_lists = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 4)), min_size=1, max_size=12
)


def slow_srpt(release: list[int], work: list[int]) -> list[tuple[int, int]]:
    """Unit by unit: least remaining, then earliest release, then first row."""
    left, now, done = dict(enumerate(work)), 0, []
    while left:
        here = [j for j in left if release[j] <= now]
        now += 1
        if here:
            job = min(here, key=lambda j: (left[j], release[j], j))
            left[job] -= 1
            if not left[job]:
                del left[job]
                done.append((job, now))
    return done


@given(jobs_lists)
def test_the_virtual_machine_is_srpt(jobs: list[tuple[int, int, int]]) -> None:
    release, work, _ = map(list, zip(*jobs, strict=True))
    assert virtual_completions(release, work) == slow_srpt(release, work)


@given(jobs_lists, st.integers(1, 7))
def test_the_virtual_machine_costs_what_the_exact_bound_says(
    jobs: list[tuple[int, int, int]], capacity: int
) -> None:
    release, work, gpus = map(list, zip(*jobs, strict=True))
    areas = [p * g for p, g in zip(work, gpus, strict=True)]
    ends = virtual_completions([r * capacity for r in release], areas)
    assert sum(end for _, end in ends) // capacity == fluid_ticks(release, work, gpus, capacity)


@given(jobs_lists, st.lists(st.integers(0, 300), max_size=20))
def test_looking_at_the_virtual_machine_changes_nothing(
    jobs: list[tuple[int, int, int]], looks: list[int]
) -> None:
    release, work, _ = map(list, zip(*sorted(jobs), strict=True))
    machine, done = VirtualMachine(), []
    events = [(r, 1, j) for j, r in enumerate(release)] + [(t, 0, -1) for t in looks]
    for at, _, job in sorted(events):
        announced = machine.next_completion
        found = machine.advance(at)
        if found:
            assert found[0][1] == announced
        done += found
        if job >= 0:
            assert machine.add(job, at, work[job]) == []
    done += machine.advance(10_000)
    assert len(machine) == 0
    assert done == virtual_completions(release, work)


def test_the_virtual_machine_refuses_what_makes_no_sense() -> None:
    machine = VirtualMachine()
    with pytest.raises(InputError, match="work 0"):
        machine.add(0, 0, 0)
    machine.advance(5)
    with pytest.raises(InputError, match="arrives at 4, but it is 5"):
        machine.add(0, 4, 1)


operations = st.lists(st.tuples(st.sampled_from("+-?"), st.integers(1, 5), st.integers(0, 9)))


@given(operations)
def test_a_backlog_is_a_sorted_list(steps: list[tuple[str, int, int]]) -> None:
    backlog: Backlog[int] = Backlog()
    twin: list[tuple[int, int, int]] = []
    for number, (step, gang, key) in enumerate(steps):
        if step == "+":
            backlog.push(gang, key, number)
            twin.append((key, number, gang))
        elif step == "-" and twin:
            job = twin.pop(key % len(twin))[1]
            assert job in backlog
            backlog.discard(job)
        elif step == "?":
            limit = gang if key else None
            fitting = sorted(each for each in twin if limit is None or each[2] <= limit)
            found = backlog.pop(limit)
            if fitting:
                key, job, gang = fitting[0]
                assert found == (gang, key, job)
                twin.remove(fitting[0])
            else:
                assert found is None
        assert len(backlog) == len(twin)


def completions(cluster: str, jobs: list[tuple[float, int, float]], chosen: Policy) -> list[float]:
    """Completion times [s] of jobs (arrival, gpus, work)."""
    arrival, gpus, work = zip(*jobs, strict=True)
    workload = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)
    instance = Instance(Cluster.parse(cluster), workload)
    ends = ends_of(instance, chosen)
    return [float(ends[workload.row_of[str(k)]]) for k in range(len(jobs))]


def ends_of(instance: Instance, chosen: Policy) -> np.ndarray:
    schedule = run(instance, chosen).schedule
    verify(instance, schedule)
    return end_s(instance, schedule)


def test_a_job_waits_for_its_virtual_completion() -> None:
    """5 of 8 GPUs for 11 s are 6.875 s of the virtual machine."""
    assert completions("2x4", [(7.0, 5, 11.0)], Asrpt()) == [24.875]
    assert completions("2x4", [(7.0, 5, 11.0)], Asrpt(work_conserving=True)) == [18.0]
    # The guard opens when as much time has passed as the run is long, or V is done.
    guarded = Asrpt(work_conserving=True, guard=2.0)
    assert completions("2x4", [(7.0, 5, 11.0)], guarded) == [7.0 + 5.5 + 11.0]


SHORT_LATE = [(0.0, 2, 10.0), (1.0, 1, 4.0), (1.0, 2, 20.0), (2.0, 1, 1.0)]
"""On two GPUs V completes them at 12.5, 3.5 (after the last), 32.5 and 2.5."""


@pytest.mark.parametrize(
    ("chosen", "ends"),
    [
        (Asrpt(), [22.5, 7.5, 52.5, 3.5]),
        (Asrpt(work_conserving=True), [10.0, 14.0, 34.0, 11.0]),
        (Asrpt(work_conserving=True, guard=0.25), [22.5, 7.5, 52.5, 3.5]),
        (policy("spjf"), [10.0, 14.0, 34.0, 11.0]),
        (policy("wcs-subtime"), [10.0, 14.0, 34.0, 11.0]),
    ],
)
def test_an_example_by_hand(chosen: Policy, ends: list[float]) -> None:
    assert completions("1x2", SHORT_LATE, chosen) == ends


WIDE = [(0.0, 1, 10.0), (1.0, 2, 3.0), (2.0, 1, 5.0), (2.5, 1, 7.0)]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("spjf", [10.0, 13.0, 18.0, 20.0]),
        ("spwf", [10.0, 13.0, 7.0, 20.0]),
        ("wcs-duration", [10.0, 17.0, 7.0, 14.0]),
        ("wcs-workload", [10.0, 17.0, 7.0, 14.0]),
        ("wcs-subtime", [10.0, 17.0, 7.0, 14.0]),
    ],
)
def test_who_blocks_and_who_passes(name: str, ends: list[float]) -> None:
    assert completions("1x2", WIDE, policy(name)) == ends


def test_the_orders_of_the_baselines() -> None:
    """After a full-width job: durations 9, 5, 4, workloads 9, 10, 16."""
    jobs = [(0.0, 4, 10.0), (1.0, 1, 9.0), (2.0, 2, 5.0), (3.0, 4, 4.0)]
    assert completions("1x4", jobs, policy("spjf")) == [10.0, 23.0, 19.0, 14.0]
    assert completions("1x4", jobs, policy("spwf")) == [10.0, 19.0, 15.0, 23.0]
    assert completions("1x4", jobs, policy("wcs-subtime")) == [10.0, 19.0, 15.0, 23.0]


@given(instance=instances(max_jobs=10))
def test_strict_order_in_the_engine_is_the_theorem_s(instance: Instance) -> None:
    """The engine, event by event, is the abstract release up to a tick a start."""
    gangs = Gangs.of(instance)
    ends = to_ticks(ends_of(instance, Asrpt()))
    abstract = asrpt_conversion.completions(gangs, gangs.shortest)
    late = [float(end - at) for end, at in zip(ends.tolist(), abstract, strict=True)]
    assert all(0 <= each < len(late) + 1 for each in late)
    if gangs.capacity in (1, 2, 4, 8):
        assert not any(late)  # Whole seconds over a power of two are on the grid.


@given(instance=instances(max_jobs=10), name=st.sampled_from(VARIANTS + BASELINES))
def test_every_variant_schedules_every_job(instance: Instance, name: str) -> None:
    ends = ends_of(instance, policy(name))
    assert np.all(ends >= instance.workload.arrival_s + instance.shortest_s)


@given(instance=instances(max_jobs=10), guard=st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_early_starts_respect_the_guard(instance: Instance, guard: float) -> None:
    chosen = Asrpt(work_conserving=True, guard=guard)
    starts = ends_of(instance, chosen) - instance.shortest_s
    elapsed = starts - instance.workload.arrival_s.min()
    released = dict(Gangs.of(instance).virtual_order())
    for job, start_s in enumerate(starts.tolist()):
        early = start_s * TICKS_PER_S * instance.cluster.total_gpus < released[job]
        assert not early or instance.shortest_s[job] <= guard * elapsed[job]
    if guard == 0.0:
        assert np.array_equal(starts, ends_of(instance, Asrpt()) - instance.shortest_s)


@given(instance=instances(max_jobs=8), factor=st.integers(2, 9))
def test_predictions_never_see_the_future(instance: Instance, factor: int) -> None:
    """Other work for the last job: nothing may change before it has completed."""
    jobs = instance.workload
    work = jobs.work.copy()
    work[-1] *= factor
    other = Workload.from_columns(arrival_s=jobs.arrival_s, gpus=jobs.gpus, work=work, id=jobs.id)
    both = (instance, Instance(instance.cluster, other))
    for name in ("asrpt:median", "asrpt-early:last", "spjf:median", "wcs-workload:median"):
        ends = [ends_of(each, policy(name)) for each in both]
        starts = [end - each.shortest_s for end, each in zip(ends, both, strict=True)]
        before = np.minimum(*starts) < min(ends[0][-1], ends[1][-1])
        assert np.array_equal(starts[0][before], starts[1][before])


def test_only_clairvoyant_predictors_are_told_durations() -> None:
    assert policy("asrpt:oracle").knows == {Knowledge.DURATION}
    assert policy("asrpt:noisy:2/3").knows == {Knowledge.DURATION}
    assert policy("asrpt:median").knows == frozenset()
    assert policy("wcs-duration:median").knows == frozenset()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("asrpt:theta=0.5", "theta is 0.5, expected a number >= 1"),
        ("asrpt:delta=-1", "delta is -1.0"),
        ("asrpt:delta=inf", "delta is inf"),
        ("asrpt:guard=nan", "guard is nan"),
        ("asrpt:basis=mean", "basis is 'mean', expected one of alpha_min, alpha_max"),
        ("spjf:order=size", "order is 'size'"),
    ],
)
def test_wrong_parameters_are_explained(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        policy(name)


@pytest.mark.parametrize("name", ["asrpt:oracles", "asrpt:placement=nowhere"])
def test_unknown_predictors_and_placements_are_explained(name: str) -> None:
    with pytest.raises(InputError, match="expected one of"):
        completions("1x1", [(0.0, 1, 1.0)], policy(name))


def test_the_variants_are_registered() -> None:
    assert set(NAMES + BASELINES) <= set(policies())


def data_parallel(replicas: int, parameter_bytes: float = 0.0, forward_s: float = 1.0) -> JobGraph:
    """One stage."""
    name = f"dp{replicas}-{parameter_bytes}-{forward_s}"
    return JobGraph(name, (Stage("all", replicas, forward_s, 0.0, parameter_bytes),))


SLOW_NIC = Network(intra_bytes_per_s=4.0, nic_bytes_per_s=1.0, gpus_per_node=4)


def graph_ends(
    jobs: list[tuple[float, JobGraph, float]], chosen: Policy, cluster: str = "2x4"
) -> list[float]:
    """Completion times [s] of jobs (arrival, graph, iterations) in order of arrival."""
    arrival, graphs, work = zip(*jobs, strict=True)
    workload = Workload.from_columns(
        arrival_s=arrival, gpus=[graph.gpus for graph in graphs], work=work
    )
    of = JobGraphs(graphs, np.arange(len(graphs)), SLOW_NIC)
    return list(ends_of(Instance(Cluster.parse(cluster), workload, graphs=of), chosen).tolist())


def heavy_and_light(first_ends_s: float) -> list[tuple[float, JobGraph, float]]:
    """Three GPUs of each node are busy when a job of two GPUs comes: 20 s on one node, 50 s on two."""
    busy = data_parallel(3)
    return [(0.0, busy, first_ends_s), (0.0, busy, 160.0), (1.0, data_parallel(2, 4.0), 10.0)]


@pytest.mark.parametrize(
    ("first_ends_s", "parameters", "end"),
    [
        (16.0, {}, 16.0 + 20.0),
        (100.0, {}, 1.0 + 30.0 + 50.0),
        (100.0, {"delta": 0.1}, 1.0 + 3.0 + 50.0),
        (16.0, {"delta": 0.0}, 1.0 + 50.0),
        (16.0, {"theta": 3.0}, 1.0 + 50.0),
        # First-fit splits the second job, which happens to leave two GPUs of a node together.
        (16.0, {"placement": "first-fit"}, 1.0 + 20.0),
    ],
)
def test_a_heavy_job_waits_no_longer_than_it_saves(
    first_ends_s: float, parameters: dict[str, float], end: float
) -> None:
    chosen = Asrpt(work_conserving=True, **parameters)  # type: ignore[arg-type]
    assert graph_ends(heavy_and_light(first_ends_s), chosen)[2] == end


def test_others_pass_a_job_that_is_held_back_only_if_they_may() -> None:
    jobs = [*heavy_and_light(100.0), (7.0, data_parallel(1), 2.0)]
    assert graph_ends(jobs, Asrpt(work_conserving=True))[2:] == [81.0, 83.0]
    assert graph_ends(jobs, Asrpt(work_conserving=True, overtake=True))[2:] == [81.0, 9.0]


@given(instance=instances(max_jobs=8), name=st.sampled_from(VARIANTS + BASELINES))
def test_one_silent_stage_is_plain_gang_scheduling(instance: Instance, name: str) -> None:
    jobs = instance.workload
    sizes, of = np.unique(jobs.gpus, return_inverse=True)
    graphs = JobGraphs(tuple(data_parallel(int(g)) for g in sizes), of, SLOW_NIC)
    mapped = Instance(instance.cluster, jobs, graphs=graphs)
    assert np.array_equal(ends_of(mapped, policy(name)), ends_of(instance, policy(name)))


def graph_instance(data: st.DataObject, instance: Instance) -> Instance:
    """An instance's jobs with graphs of one or two stages and some traffic."""
    amounts = st.sampled_from([0.0, 0.5, 3.0, 40.0])
    graphs = []
    for gpus in instance.workload.gpus.tolist():
        k = data.draw(st.integers(0, gpus - 1))
        stages = [Stage("a", gpus - k, 0.5, 0.5, data.draw(amounts))]
        if k:
            stages.append(Stage("b", k, 0.25, 0.5, data.draw(amounts)))
        links = (Link(0, 1, data.draw(amounts)),) if k else ()
        graphs.append(JobGraph("drawn", tuple(stages), links))
    network = Network(
        data.draw(st.sampled_from([1.0, 20.0])),
        data.draw(st.sampled_from([1.0, 4.0])),
        4,
        data.draw(st.sampled_from(["per-gpu", "per-job"])),
    )
    of = np.arange(len(graphs))
    return Instance(
        instance.cluster, instance.workload, graphs=JobGraphs(tuple(graphs), of, network)
    )


@given(instance=instances(max_jobs=6), name=st.sampled_from(VARIANTS + BASELINES), data=st.data())
def test_every_variant_schedules_every_graph(
    instance: Instance, name: str, data: st.DataObject
) -> None:
    mapped = graph_instance(data, instance)
    where = data.draw(st.sampled_from(["heavy-edge", "first-fit"]))
    ends = ends_of(mapped, replace(policy(name), placement=where))  # type: ignore[type-var]
    assert np.all(ends >= mapped.workload.arrival_s + mapped.shortest_s)


@given(instance=instances(max_jobs=6), data=st.data())
def test_graphs_respect_the_theorems(instance: Instance, data: st.DataObject) -> None:
    """The factors hold with each instance's own rho; a delay adds the largest, for every job."""
    mapped = graph_instance(data, instance)
    total = float(ends_of(mapped, Asrpt(delta=0.0)).sum())
    assert asrpt_conversion.check(mapped, total)
    assert asrpt_ratio.check(mapped, total)
    total = float(ends_of(mapped, Asrpt(delta=0.0, basis="alpha_max")).sum())
    assert asrpt_ratio.check(mapped, total, basis="alpha_max")
    total = float(ends_of(mapped, Asrpt(delta=0.0, work_conserving=True, guard=1.0)).sum())
    assert asrpt_early.check(mapped, total)
    gangs = Gangs.of(mapped)
    slack = [p - q for p, q in zip(gangs.longest, gangs.shortest, strict=True)]
    delayed = to_ticks(ends_of(mapped, Asrpt(theta=1.0)))
    bounds = asrpt_conversion.job_bounds(gangs, [2 * each + 2 for each in slack])
    assert all(end <= at_most for end, at_most in zip(delayed.tolist(), bounds, strict=True))


@pytest.mark.parametrize(
    ("name", "ends"),
    [("asrpt", [5.0, 8.0]), ("asrpt-early", [5.0, 8.0]), ("wcs-duration", [5.0, 8.0])],
)
def test_a_node_may_be_down_at_the_first_decision(name: str, ends: list[float]) -> None:
    """Whose best place is on a node that is down is compared with that place all the same."""
    pair = JobGraph(
        "pair", (Stage("a", 1, 0.25, 0.25, 0), Stage("b", 1, 0.25, 0.25, 0)), (Link(0, 1, 2**27),)
    )
    graphs = JobGraphs((pair,), np.zeros(2, dtype=np.int64), Network(2**30, 2**28, 2))
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=2, work=[4, 4])
    down = merged(
        np.array([0]), np.array([0.0]), np.array([2.0]), "faults", Checkpointing(1.0, 0.0)
    )
    cluster = Cluster.parse("1x2,1x1")
    instance = Instance(cluster, jobs, graphs=graphs, failures=down)
    done = run(instance, policy(name))
    verify(done.instance, done.schedule)
    assert sorted(done.schedule.end_s) == ends
