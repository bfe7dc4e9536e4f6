"""Jobs that ask for CPUs and memory: every policy keeps what nodes have, and the verifier counts it by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.cpu_memory import AskedCpuMemory, NodeCapacity
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.traces.csv_table import load as load_table
from shadowprice.instances.workload import Workload
from shadowprice.instances.workload_files import read_workload, write_workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers import registry
from shadowprice.solvers.policy import ChoosesCpuMemory
from support.written_failures import failures_of

CLUSTERS = st.lists(
    st.builds(
        Node,
        st.integers(1, 3),
        gpu_type=st.just("a"),
        cpus=st.sampled_from([3.0, 4.0, 8.0]),
        memory_gb=st.sampled_from([0.0, 4.0, 16.0]),
        whole_cpus=st.booleans(),
    ),
    min_size=1,
    max_size=3,
).map(lambda nodes: Cluster(tuple(nodes)))
JOB = st.tuples(
    st.integers(0, 25),
    st.integers(1, 12),
    st.integers(1, 3),
    st.sampled_from([0, 0.5, 1, 2.5, 4]),
    st.sampled_from([0, 0, 1, 3, 4.1]),
)
MIB = Fraction(10**9, 2**20)
FIFO = registry.policy("fifo-skip")
BY_GPUS_ALONE = {"hadar-committed", "oasis"}


def jobs_of(rows: list[tuple[int, int, int, float, float]]) -> Workload:
    arrival, work, gpus, cpus, memory_gb = zip(*rows, strict=True)
    return Workload.from_columns(
        arrival_s=arrival, work=work, gpus=gpus, cpus=cpus, memory_gb=memory_gb, model="m"
    )


def holds(instance: Instance, job: int, node: Node, gpus: int) -> tuple[int, int]:
    """Thousandths of a CPU and MiB that a job holds with GPUs of a node, in fractions."""
    jobs, alone = instance.workload, instance.sharing_rates is None
    part, share = Fraction(gpus, int(jobs.gpus[job])), Fraction(gpus, node.gpus)
    step = 1000 if node.whole_cpus else 1
    cpus = memory = 0
    if jobs.cpus[job] > 0:
        cpus = math.ceil(Fraction(str(jobs.cpus[job])) * 1000 * part / step) * step
    elif alone:
        cpus = math.floor(Fraction(node.cpus) * 1000 * share / step) * step
    if jobs.memory_gb[job] > 0:
        memory = math.floor(Fraction(str(jobs.memory_gb[job])) * MIB * part)
    elif alone:
        memory = math.floor(math.floor(Fraction(node.memory_gb) * MIB) * share)
    return cpus, memory


def kept(instance: Instance, schedule: Schedule) -> bool:
    """Whether no node gives more than it has when any run begins."""
    columns = (schedule.job, schedule.node, schedule.gpus, schedule.start_s, schedule.end_s)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    for _, where, _, now_s, _ in rows:
        node = instance.cluster.nodes[where]
        held = [
            holds(instance, job, node, gpus)
            for job, place, gpus, start_s, end_s in rows
            if place == where and start_s <= now_s < end_s
        ]
        has = node.cpus * 1000, math.floor(Fraction(node.memory_gb) * MIB)
        if any(sum(each[k] for each in held) > has[k] for k in range(2)):
            return False
    return True


@given(
    CLUSTERS,
    st.lists(JOB, min_size=1, max_size=8),
    st.sampled_from(sorted(registry.policies().keys() - BY_GPUS_ALONE)),
    st.sampled_from([0.0, 10.0]),
)
@settings(max_examples=20)
def test_every_policy_keeps_what_nodes_have(
    cluster: Cluster,
    rows: list[tuple[int, int, int, float, float]],
    policy: str,
    round_s: float,
) -> None:
    jobs = jobs_of(rows)
    outcome = simulate(jobs, cluster, policy, RunOptions(round_s=round_s), drop_infeasible=True)
    assert kept(outcome.instance, outcome.schedule)
    for name in outcome.settings["dropped"]:  # type: ignore[attr-defined]
        with pytest.raises(InfeasibleJobError):
            Instance(cluster, jobs.select(jobs.id == name))


FED = Profile(np.array([0.0, 2.0, 4.0]), np.array([0.0]), np.array([[0.5], [1.0], [2.0]]))


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from([(1.0, 1.0), (8 / 3, 4.1), (4.0, 1 / 3)]),
    st.lists(JOB, min_size=1, max_size=8),
    st.sampled_from(sorted(registry.policies().keys() - BY_GPUS_ALONE)),
)
@settings(max_examples=35)
def test_every_policy_gives_with_profiles_what_jobs_ask_for(
    sizes: list[int],
    share: tuple[float, float],
    rows: list[tuple[int, int, int, float, float]],
    name: str,
) -> None:
    """Beside its share each has what it asks for, and no node gives more than it has; or the policy refuses."""
    nodes = [Node(gpus, cpus=share[0] * gpus, memory_gb=share[1] * gpus) for gpus in sizes]
    cluster, jobs, policy = Cluster(tuple(nodes)), jobs_of(rows), registry.policy(name)
    sensitivity = Sensitivity((FED,), np.zeros(len(jobs), dtype=np.int64))
    instance, _ = Instance.feasible(cluster, jobs, sensitivity=sensitivity)
    if isinstance(policy, ChoosesCpuMemory) and instance.workload.asking.any():
        with pytest.raises(InputError, match="not known to policies that choose CPUs and memory"):
            run(instance, policy)
        return
    s = run(instance, policy).schedule
    verify(instance, s)
    assert s.cpus is not None
    assert s.memory_gb is not None
    part = s.gpus / instance.workload.gpus[s.job]
    given = (s.cpus, instance.workload.cpus), (s.memory_gb, instance.workload.memory_gb)
    for k, (held, asked) in enumerate(given):
        if not isinstance(policy, ChoosesCpuMemory):
            assert held == pytest.approx(np.maximum(share[k] * s.gpus, asked[s.job] * part))
        for node, now_s in zip(s.node, s.start_s, strict=True):
            there = (s.node == node) & (s.start_s <= now_s) & (now_s < s.end_s)
            assert held[there].sum() <= share[k] * sizes[node] + 1e-5


@pytest.mark.parametrize(("asked", "together"), [(4.0, True), (4.0 + 2e-6, False)])
def test_the_last_millionth_counts_where_runs_are_given_cpus_and_memory(
    asked: float, together: bool
) -> None:
    """Three have a third of 8 CPUs each; of what one asks for beyond a half, nothing is left."""
    three = Cluster((Node(3, cpus=8.0, memory_gb=3.0),))
    sensitivity = Sensitivity((FED,), np.zeros(3, dtype=np.int64))
    thirds = Workload.from_columns(arrival_s=[0] * 3, work=[8.0] * 3, gpus=1, cpus=[1.0, 0, 0])
    assert set(run(Instance(three, thirds, sensitivity=sensitivity), FIFO).schedule.start_s) == {
        0.0
    }
    two = Cluster((Node(2, cpus=8.0, memory_gb=3.0),))
    halves = Workload.from_columns(arrival_s=[0, 0], work=[8.0, 8.0], gpus=1, cpus=[asked, 0.0])
    sensitivity = Sensitivity((FED,), np.zeros(2, dtype=np.int64))
    done = run(Instance(two, halves, sensitivity=sensitivity), FIFO).schedule
    assert (done.start_s == 0.0).all() == together
    more = Workload.from_columns(arrival_s=[0], work=8.0, gpus=1, memory_gb=[3.0 + 2e-6])
    one = Sensitivity((FED,), np.zeros(1, dtype=np.int64))
    with pytest.raises(InfeasibleJobError, match="asks for 0 CPUs and 3 GB for 1 GPUs"):
        Instance(two, more, sensitivity=one)


@given(CLUSTERS, st.lists(JOB, min_size=1, max_size=7))
@settings(max_examples=25)
def test_the_verifier_counts_what_a_count_in_fractions_does(
    cluster: Cluster, rows: list[tuple[int, int, int, float, float]]
) -> None:
    instance, _ = Instance.feasible(cluster, jobs_of(rows))
    jobs = instance.workload
    zero = np.zeros(len(jobs))
    free = Instance(cluster, replace(jobs, cpus=zero, memory_gb=zero.copy()))
    schedule = run(free, registry.policy("fifo-skip")).schedule
    if not jobs.asking.any() or kept(instance, schedule):
        verify(instance, schedule)
    else:
        with pytest.raises(
            VerificationError, match=r"cpu_memory: row .* held on the node at .* it has"
        ):
            verify(instance, schedule)


GB_OF_MIB = 2**20 / 1e9


@pytest.mark.parametrize(
    ("nodes", "gpus", "asked", "fits"),
    [
        # Two jobs, a node of 3 GPUs, 8 MiB: 3 and 5, 4 and 5, and 8 to who is alone.
        ([(3, 1.0, 8)], [1, 1], [(0.0, 3), (0.0, 5)], True),
        ([(3, 1.0, 8)], [1, 1], [(0.0, 4), (0.0, 5)], False),
        ([(3, 1.0, 8)], [1, 1], [(0.0, 8), (0.5, 1)], False),
        # Thousandths of a CPU: 0.5 and 0.5, 0.5 and 0.501.
        ([(3, 1.0, 8)], [1, 1], [(0.5, 1), (0.5, 1)], True),
        ([(3, 1.0, 8)], [1, 1], [(0.5, 1), (0.501, 1)], False),
        # A gang of two on two nodes holds half of 0.003 on each, rounded up: two fit on 0.004, not on 0.003.
        ([(2, 0.004, 8)] * 2, [2, 2], [(0.003, 1), (0.003, 1)], True),
        ([(2, 0.003, 8)] * 2, [2, 2], [(0.003, 1), (0.003, 1)], False),
        # Memory is rounded down: half of 3 MiB is 1.
        ([(2, 1.0, 2)] * 2, [2, 2], [(0.001, 3), (0.001, 3)], True),
        ([(2, 1.0, 2)] * 2, [2, 2], [(0.001, 4), (0.001, 3)], False),
        # Who does not say holds the share of his GPUs, rounded down: 2 of 8 MiB on one of 3 GPUs, 4 of the other.
        ([(3, 1.0, 8)], [1, 1], [(0.1, 0), (0.1, 6)], True),
        ([(3, 1.0, 8)], [1, 1], [(0.1, 0), (0.1, 7)], False),
        ([(3, 1.0, 8)], [1, 1], [(0.0, 1), (0.667, 1)], True),
        ([(3, 1.0, 8)], [1, 1], [(0.0, 1), (0.668, 1)], False),
    ],
)
def test_the_last_thousandth_and_the_last_mib_count(
    nodes: list[tuple[int, float, int]],
    gpus: list[int],
    asked: list[tuple[float, int]],
    fits: bool,
) -> None:
    """The verifier, and what the engine gives out, to the unit; both jobs run at once, spread over all nodes."""
    cluster = Cluster(
        tuple(Node(g, cpus=cpus, memory_gb=mib * GB_OF_MIB) for g, cpus, mib in nodes)
    )
    jobs = Workload.from_columns(
        arrival_s=[0, 0],
        work=[5, 5],
        gpus=gpus,
        cpus=[cpus for cpus, _ in asked],
        memory_gb=[mib * GB_OF_MIB for _, mib in asked],
    )
    instance = Instance(cluster, jobs)
    n = len(nodes)
    job, node = np.repeat([0, 1], n), np.tile(np.arange(n), 2)
    ones = np.ones(2 * n, dtype=np.int64)
    together = Schedule(job, node, ones, np.zeros(2 * n), np.full(2 * n, 5.0), np.zeros(2 * n))
    if fits:
        verify(instance, together)
    else:
        with pytest.raises(VerificationError, match=r"cpu_memory: row .* it has"):
            verify(instance, together)
    asked = AskedCpuMemory.of(cluster, jobs, shared=False)
    for place, capacity in enumerate(asked.nodes):
        held = [capacity.held(demand, 1) for demand in asked.demands]
        sums = tuple(sum(column) for column in zip(*held, strict=True))
        assert all(s <= most for s, most in zip(sums, capacity.most, strict=True)) == fits, place


def test_cpus_and_memory_that_a_policy_gives_are_rounded_down_but_for_noise() -> None:
    """1.001 CPUs are 1001 thousandths, though 1.001 times 1000 is a little less in floats."""
    node = NodeCapacity.of(4, 8.0, 8 * GB_OF_MIB)
    assert 1.001 * 1000 < 1001
    assert node.rounded_down(1.001, 3 * GB_OF_MIB) == (1001, 3)
    assert node.rounded_down(2, 3 * GB_OF_MIB) == (2000, 3)
    assert node.rounded_down(1.0019, 3.9 * GB_OF_MIB) == (1001, 3)
    whole = NodeCapacity.of(4, 8.0, 8 * GB_OF_MIB, whole_cpus=True)
    assert whole.rounded_down(2, 0) == (2000, 0)
    assert whole.rounded_down(2.9, 0) == (2000, 0)
    assert whole.rounded_down(0.5, 0) == (1000, 0)


def test_who_asks_for_more_than_is_left_waits_though_gpus_are_free() -> None:
    """The third asks for nothing, and has the share of its GPU: 4 CPUs, for which there is no room either."""
    cluster = Cluster.parse("1x4+16cpu+64gb")
    jobs = Workload.from_columns(
        arrival_s=[0, 1, 2, 3], gpus=1, work=[50, 50, 5, 5], cpus=[9, 7, 0, 0.001]
    )
    outcome = simulate(jobs, cluster, "fifo-skip")
    assert outcome.jobs["first_start_s"].tolist() == [0, 1, 50, 50]
    plain = simulate(replace(jobs, cpus=np.zeros(4)), cluster, "fifo-skip")
    assert plain.jobs["first_start_s"].tolist() == [0, 1, 2, 3]


def test_a_placement_on_few_nodes_may_have_no_place_for_a_job() -> None:
    """Three GPUs and their memory are on two nodes; by ``consolidate`` such a gang is on one."""
    cluster = Cluster((Node(2, cpus=3.0, memory_gb=16.0), Node(3, cpus=8.0, memory_gb=4.0)))
    jobs = jobs_of([(0, 7, 3, 4, 4.1)])
    assert len(simulate(jobs, cluster, "fifo").schedule) == 2
    with pytest.raises(PolicyError, match="leaves 1 jobs waiting for ever"):
        simulate(jobs, cluster, "fifo", RunOptions(placement="consolidate"))


def test_demands_that_never_bind_change_nothing() -> None:
    """Overheads, restarts and metrics included."""
    costs = Overheads(start_s=1.0, restart_s=2.0, migration_s=3.0)
    rows = [(k, 5 + 3 * (k % 4), 1 + k % 3, 0.001, 0.0) for k in range(12)]
    jobs, cluster = jobs_of(rows), Cluster.parse("2x3+99cpu+99gb")
    for policy in ("srtf", "hadar", "gandiva", "las2d"):
        switches = RunOptions(overheads=costs, round_s=5.0)
        asking = simulate(jobs, cluster, policy, switches)
        plain = simulate(replace(jobs, cpus=np.zeros(12)), cluster, policy, switches)
        assert asking.schedule.to_frame().equals(plain.schedule.to_frame())
        told, known = asking.summary(), plain.summary()
        assert {**told, "cpu_s": 0, "verify_cpu_s": 0} == {**known, "cpu_s": 0, "verify_cpu_s": 0}


@pytest.mark.parametrize("cpus", [4.0, 5.0])
def test_a_pair_holds_what_both_ask_for(cpus: float) -> None:
    pairs = {("a", ("m", 1), ("m", 1)): (0.9, 0.9)}
    together = Throughputs(("a",), {("m", 1): (1.0,)}, pairs, source="pairs")
    jobs = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=1,
        work=[500, 500],
        cpus=cpus,
        model="m",
        throughput=[[1.0], [1.0]],
        gpu_types=("a",),
    )
    shared = RunOptions(sharing_rates=together, round_s=10.0)
    packs = "gavel:max_sum_throughput:aware=true,packed=true"
    outcome = simulate(jobs, Cluster.parse("1x1:a+8cpu+8gb"), packs, shared)
    assert (outcome.schedule.partner >= 0).any() == (cpus == 4.0)


def test_nodes_that_fail_and_restarts_keep_cpus_and_memory() -> None:
    cluster = Cluster.parse("2x2+4cpu+8gb")
    jobs = jobs_of([(k, 4 + k % 5, 1 + k % 2, (k % 4) / 2, k % 3) for k in range(14)])
    for switches in (
        RunOptions(failures=failures_of("mtbf_s=20,repair_s=5,seed=1", 4.0, 0.5)),
        RunOptions(preemption=Preemption.RESTART),
    ):
        outcome = simulate(jobs, cluster, "srtf" if switches.failures else "sjf", switches)
        assert kept(outcome.instance, outcome.schedule)


def test_runs_and_tables_keep_them(tmp_path: Path) -> None:
    node = Node(2, cpus=8.0, memory_gb=16.0, whole_cpus=True)
    jobs = jobs_of([(0, 5, 1, 2.5, 0), (1, 5, 1, 0, 3)])
    outcome = simulate(jobs, Cluster((node, Node(2, cpus=8.0, memory_gb=16.0))), "srtf")
    save(outcome, tmp_path / "run")
    again = load(tmp_path / "run")
    assert isinstance(again, Outcome)
    assert again.instance.cluster == outcome.instance.cluster
    assert again.instance.workload == jobs
    write_workload(jobs, tmp_path / "jobs.csv")
    assert read_workload(tmp_path / "jobs.csv") == jobs
    (tmp_path / "log.csv").write_text(
        "submit_time,gpus,duration,cpus,memory_gb\n0,1,5,2.5,\n1,2,5,,3\n"
    )
    found = load_table(tmp_path / "log.csv").workload
    assert found.cpus.tolist() == [2.5, 0.0]
    assert found.memory_gb.tolist() == [0.0, 3.0]
    (tmp_path / "nodes.csv").write_text("gpus,cpus,whole_cpus\n2,8,1\n2,8,0\n")
    nodes = Cluster.load(tmp_path / "nodes.csv").nodes
    assert [each.whole_cpus for each in nodes] == [True, False]


@pytest.mark.parametrize(
    ("cluster", "more", "said"),
    [
        (
            "2x2+4cpu+8gb",
            {"cpus": 5},
            "job '0' asks for 5 CPUs and 0 GB for 1 GPUs, nodes .* 4 CPUs",
        ),
        ("2x2+4cpu", {"memory_gb": 1}, "at most 4 CPUs and an unknown memory each, room for 0"),
        ("2x2", {"cpus": 1}, "at most 0 CPUs .* give the nodes of the cluster more, such as 2x8"),
    ],
)
def test_what_no_node_has_is_refused_or_dropped(
    cluster: str, more: dict[str, float], said: str
) -> None:
    jobs = Workload.from_columns(arrival_s=[0], gpus=1, work=[5], **more)
    with pytest.raises(InfeasibleJobError, match=said):
        simulate(jobs, cluster, "fifo")
    assert Instance.feasible(Cluster.parse(cluster), jobs)[1].tolist() == ["0"]


def test_what_does_not_know_cpus_and_memory_says_so() -> None:
    jobs = jobs_of([(0, 5, 1, 1, 0), (1, 5, 1, 0, 0)])
    cluster = Cluster.parse("2x2:a+8cpu+8gb")
    alone = sorted(name for name in schedulers() if not name.startswith("hadare"))
    for policy in (*sorted(BY_GPUS_ALONE), *alone):
        with pytest.raises(
            InputError, match=r"has jobs that ask for CPUs or memory \(as '0'\), not known to"
        ):
            simulate(jobs, cluster, policy)
    few = Cluster((Node(4, cpus=2.0, whole_cpus=True),))
    with pytest.raises(InputError, match="node 0 gives out whole CPUs and has 2 for 4 GPUs"):
        simulate(jobs, few, "fifo")
    parts = replace(jobs, gpu_milli=np.array([500, 1000]))
    with pytest.raises(
        InputError, match=r"jobs that ask for CPUs or memory \(as '0'\), not known to"
    ):
        simulate(parts, cluster, "oasis")


def test_copies_hold_whole_nodes_with_all_that_these_have() -> None:
    jobs = jobs_of([(0, 5, 1, 7, 0), (1, 5, 1, 0, 0)])
    plain = replace(jobs, cpus=np.zeros(2))
    cluster = Cluster.parse("2x2:a+8cpu+8gb")
    asking, free = (simulate(each, cluster, "hadare") for each in (jobs, plain))
    assert asking.schedule.to_frame().equals(free.schedule.to_frame())
    with pytest.raises(InfeasibleJobError, match="asks for 7 CPUs and 0 GB, node 1 has 4"):
        simulate(jobs, Cluster.parse("1x2:a+8cpu+8gb,1x2:a+4cpu+8gb"), "hadare")
