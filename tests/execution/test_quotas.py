"""Quotas of tenants: kept by every policy in the engine, checked by the verifier, read as Helios publishes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowprice.analysis.certify import certify
from shadowprice.analysis.compare import compare
from shadowprice.analysis.optimum import optimum
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.cli.app import app
from shadowprice.errors import InfeasibleJobError, InputError, PolicyError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.clusters.quotas import Quotas, read_quotas
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.policy import Decision, Knowledge, State

NODES = Cluster.parse("2x3").nodes
JOB = st.tuples(
    st.integers(0, 25),
    st.integers(1, 12),
    st.integers(1, 3),
    st.sampled_from(["a", "b"]),
    st.booleans(),
)
LIMIT = st.tuples(st.integers(0, 6), st.integers(0, 6))
LIMITS = st.tuples(LIMIT, LIMIT, st.tuples(st.integers(3, 6), st.integers(3, 6)))
FED = Cluster.parse("2x3+9cpu+200gb").nodes
CHOOSE_NODES = (
    ("hadar:round_s=2", None),
    ("hadar:round_s=2,fill=true", None),
    *(
        (f"{name}:{order}round_s=2", Profiles.synthetic())
        for name, order in (
            ("synergy-proportional", "las,"),
            ("synergy-greedy", "fifo,"),
            ("synergy-tune", "srtf,"),
            ("synergy-opt", "srtf,"),
            ("tetris", ""),
        )
    ),
)
"""Policies that choose nodes, and what hands out CPUs and memory under Synergy's."""

POLICIES = (
    "fifo",
    "fifo-skip",
    "sjf",
    "easy",
    "srtf",
    "las",
    "las2d",
    "gavel",
    "asrpt",
)


class Unaware:
    """A policy that starts jobs on the first node, whatever their tenants' quotas."""

    name = "unaware"
    knows: frozenset[Knowledge] = frozenset()
    preemptive = False

    def decide(self, state: State) -> Decision:
        """Start all."""
        decision = Decision(state)
        for job in list(state.waiting):
            decision.start_at(job, ((0, state.gang[job]),))
        return decision


def jobs_of(rows: list[tuple[int, int, int, str, bool]]) -> Workload:
    arrival, work, gpus, tenant, part = zip(*rows, strict=True)
    milli = [400 if half and each == 1 else 1000 for each, half in zip(gpus, part, strict=True)]
    return Workload.from_columns(
        arrival_s=arrival, work=work, gpus=gpus, tenant=list(tenant), gpu_milli=milli
    )


def kept(instance: Instance, schedule: Schedule) -> bool:
    """Whether quotas are kept, second by second and run by run."""
    quotas, jobs = instance.cluster.quotas, instance.workload
    assert quotas is not None
    held = jobs.held_gpus
    runs = {
        *zip(schedule.job.tolist(), schedule.start_s.tolist(), schedule.end_s.tolist(), strict=True)
    }
    for job, start, _ in runs:
        tenant = jobs.tenant[job]
        now = sum(
            held[other]
            for other, begin, end in runs
            if jobs.tenant[other] == tenant and begin <= start < end
        )
        if now > quotas.at(start)[quotas.tenants.index(tenant)] + 1e-9:
            return False
    return True


@given(st.lists(JOB, min_size=1, max_size=9), LIMITS, st.sampled_from(POLICIES))
@settings(max_examples=25)
def test_every_policy_keeps_quotas(
    rows: list[tuple[int, int, int, str, bool]], limits: tuple[tuple[int, int], ...], policy: str
) -> None:
    quotas = Quotas(("a", "b"), (0.0, 10.0, 20.0), limits)
    cluster = Cluster(NODES, quotas)
    instance, left_out = Instance.feasible(cluster, jobs_of(rows))
    for name in left_out:
        arrival, _, gpus, tenant, part = rows[int(name)]
        need = 0.4 if part and gpus == 1 else gpus
        later = [limits[k] for k in range(3) if k == 2 or (10.0, 20.0)[k] > arrival]
        assert need > max(limit["ab".index(tenant)] for limit in later)
    if not len(instance.workload):
        return
    outcome = simulate(instance.workload, cluster, policy)
    assert kept(outcome.instance, outcome.schedule)


@given(st.lists(JOB, min_size=1, max_size=9), LIMITS, st.sampled_from(CHOOSE_NODES))
@settings(max_examples=25)
def test_policies_that_choose_nodes_keep_quotas(
    rows: list[tuple[int, int, int, str, bool]],
    limits: tuple[tuple[int, int], ...],
    policy: tuple[str, Profiles | None],
) -> None:
    """In rounds of two seconds, so that they begin before, at and after changes."""
    name, profiles = policy
    cluster = Cluster(FED, Quotas(("a", "b"), (0.0, 10.0, 20.0), limits))
    arrival, work, gpus, tenant, _ = zip(*rows, strict=True)
    jobs = Workload.from_columns(
        arrival_s=arrival, work=work, gpus=gpus, tenant=list(tenant), model="resnet-18"
    )
    runnable_jobs = Instance.feasible(cluster, jobs)[0].workload
    if not len(runnable_jobs):
        return
    outcome = simulate(runnable_jobs, cluster, name, RunOptions(profiles=profiles))
    assert kept(outcome.instance, outcome.schedule)


def test_hadar_gives_a_round_to_another_tenant_where_one_has_no_room() -> None:
    cluster = Cluster(NODES, Quotas(("a", "b"), (0.0,), ((2, 6),)))
    jobs = Workload.from_columns(
        arrival_s=[0, 0, 0], gpus=[2, 2, 2], work=[90, 90, 90], tenant=["a", "a", "b"]
    )
    begun = simulate(jobs, cluster, "hadar:round_s=100").jobs["first_start_s"].tolist()
    assert begun == [0, 100, 0]


@given(st.lists(JOB, min_size=1, max_size=7), LIMITS)
@settings(max_examples=30)
def test_the_verifier_knows_what_a_count_knows(
    rows: list[tuple[int, int, int, str, bool]], limits: tuple[tuple[int, int], ...]
) -> None:
    jobs = jobs_of(rows)
    free = run(
        Instance(Cluster(NODES), jobs), prepare_run(jobs, Cluster(NODES), "fifo-skip").policy
    )
    quotas = Quotas(("a", "b"), (0.0, 10.0, 20.0), limits)
    try:
        instance = Instance(Cluster(NODES, quotas), jobs)
    except InfeasibleJobError:
        return
    if kept(instance, free.schedule):
        verify(instance, free.schedule)
    else:
        with pytest.raises(VerificationError, match=r"quota: row .* its tenant then holds"):
            verify(instance, free.schedule)


def test_who_waits_for_a_quota_starts_when_it_grows(tmp_path: Path) -> None:
    cluster = Cluster(NODES, Quotas(("a",), (0.0, 100.0), ((1,), (4,))))
    jobs = Workload.from_columns(arrival_s=[0, 1, 2], gpus=[1, 1, 4], work=[50, 500, 7], tenant="a")
    outcome = simulate(jobs, cluster, "fifo-skip")
    assert outcome.jobs["first_start_s"].tolist() == [0, 50, 550]
    save(outcome, tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.instance.cluster == cluster
    later = Cluster(NODES, Quotas(("a",), (0.0, 100.0), ((0,), (6,))))
    gone = Cluster(NODES, Quotas(("a",), (0.0, 1.0), ((6,), (0,))))
    both = Workload.from_columns(arrival_s=[0, 0], gpus=[6, 1], work=[50, 5], tenant="a")
    with pytest.raises(PolicyError, match="leaves 1 jobs waiting for ever"):
        simulate(both, gone, "fifo")
    assert simulate(jobs, later, "fifo-skip").jobs["first_start_s"].tolist() == [100] * 3


def test_what_does_not_know_quotas_says_so() -> None:
    cluster = Cluster(NODES, Quotas(("a",), (0.0,), ((2,),)))
    jobs = Workload.from_columns(arrival_s=[0], gpus=[1], work=[5], tenant="a")
    for ask in (
        lambda: optimum(Instance(cluster, jobs)),
        lambda: simulate(jobs, cluster, "max_min_fairness", RunOptions(preset="gavel")),
    ):
        with pytest.raises(InputError, match="has quotas of tenants, not known to"):
            ask()
    assert compare(jobs, cluster, ["fifo"], "flow").rows[0].certified
    assert "within quotas of tenants" in certify(simulate(jobs, cluster, "fifo")).sentence()
    for policy in ("gandiva", "gandiva-reactive"):
        with pytest.raises(PolicyError, match=f"{policy}: tenants have quotas, of which turns on"):
            simulate(jobs, cluster, policy)
    two = Workload.from_columns(arrival_s=[0, 0, 0], gpus=1, work=[5000] * 3, tenant="a")
    with pytest.raises(PolicyError, match="is placed beyond its tenant's quota"):
        simulate(two, cluster, Unaware())
    stranger = Workload.from_columns(arrival_s=[0], gpus=[1], work=[5], tenant="b")
    with pytest.raises(
        InfeasibleJobError, match="of tenant 'b' needs 1 GPUs: no tenant with a quota"
    ):
        Instance(cluster, stranger)


def test_quotas_of_a_log_on_the_command_line(tmp_path: Path) -> None:
    head = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    days = "2020-04-01 23:59:00", "2020-04-01 23:59:00", "2020-04-01 23:59:50"
    rows = [
        f"{k},u,vcA,4,1,1,COMPLETED,2020-04-01 23:59:00,{a},{b},50,0"
        for k, (a, b) in enumerate([days[1:]] * 2)
    ]
    log, table = tmp_path / "log.csv", tmp_path / "quotas.csv"
    log.write_text("\n".join([head, *rows]))
    table.write_text("date,vcA,total\n2020-04-01,4,4\n2020-04-02,8,8\n")
    command = [
        "simulate",
        str(log),
        "--cluster",
        "1x8",
        "--policy",
        "fifo",
        "--force",
        "--jobs-out",
    ]
    out, runner = tmp_path / "jobs.csv", CliRunner()
    done = runner.invoke(app, [*command, str(out), "--with", f"quotas:file={table}"])
    assert done.exit_code == 0, done.output
    assert "time 0 is 2020-04-01 23:59:00" in " ".join(done.stderr.split())
    starts = [float(line.split(",")[2]) for line in out.read_text().splitlines()[1:]]
    assert starts == [0.0, 50.0]
    later = f"quotas:file={table},date=2020-04-01T23:59:30"
    assert runner.invoke(app, [*command, str(out), "--with", later]).exit_code == 0
    starts = [float(line.split(",")[2]) for line in out.read_text().splitlines()[1:]]
    assert starts == [0.0, 30.0]
    wrong = runner.invoke(app, [*command, str(out), "--with", f"quotas:file={table},date=today"])
    assert "date is 'today', expected one as 2020-04-01T00:00:00" in str(wrong.exception)
    plain = tmp_path / "plain.csv"
    plain.write_text("id,gpus,submit,duration,vc\n1,1,0,10,vcA\n")
    command[1] = str(plain)
    undated = runner.invoke(app, [*command, str(out), "--with", f"quotas:file={table}"])
    assert "does not say the date of its time 0, expected that of quotas" in str(undated.exception)


def test_the_table_of_helios(tmp_path: Path) -> None:
    path = tmp_path / "cluster_gpu_number.csv"
    path.write_text(
        "date,vcA,vcB,total\n2020-04-01,8,16,24\n2020-04-02,8,24,32\n2020-04-03,0,32,32\n"
    )
    noon = np.datetime64("2020-04-02T12:00:00").astype(int)
    quotas = read_quotas(path, float(noon))
    assert quotas == Quotas(("vcA", "vcB"), (0.0, 43200.0), ((8, 24), (0, 32)))
    assert quotas.at(43199.0) == (8, 24)
    assert quotas.next_change_s(0.0) == 43200.0
    for text, message in (
        ("date,vcA\n2020-04-05,1\n", "begins on 2020-04-05, after time 0 of the jobs"),
        ("date,vcA\n2020-04-01,x\n", "row 1: .*, expected a date and whole numbers"),
        ("day,vcA\n2020-04-01,1\n", "expected a column date"),
        ("date,vcA\n2020-04-01,1,2\n", "row 1 has 3 values, expected 2"),
        ("date,vcA\n2020-04-01,1\n2020-03-01,2\n", "expected periods in order"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_quotas(path, float(noon))


@pytest.mark.parametrize(
    "gpus", [((1, 2),), ((1, 2), (3,)), ((1, 2), (3, 4), (5, 6)), ((1,), (2,))]
)
def test_quotas_have_a_row_a_period_and_a_number_a_tenant(
    gpus: tuple[tuple[int, ...], ...],
) -> None:
    Quotas(("a", "b"), (0.0, 60.0), ((1, 2), (3, 4)))
    with pytest.raises(InputError, match="expected a row a period, in it the GPUs of every tenant"):
        Quotas(("a", "b"), (0.0, 60.0), gpus)
