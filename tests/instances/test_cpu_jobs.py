"""Jobs of a log that ask for CPUs and no GPU: kept as jobs on cores, from the file to the certificate."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.trace.contents import ON_CORES, contents
from shadowprice.analysis.trace.fit import fit
from shadowprice.analysis.trace.page import trace_page
from shadowprice.errors import InfeasibleJobError, InputError, VerificationError
from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.fault_file import FaultTable
from shadowprice.instances.generators.rescaling import at_load, offered_load
from shadowprice.instances.instance import Instance
from shadowprice.instances.traces import load_trace, openb, spot
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.run_speed import allowed_types
from shadowprice.studies.job_table import job_table

SLURM = "JobID|User|Account|Partition|State|Submit|Start|End|AllocTRES"
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
)
ACME = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,"
    "queue,gpu_time"
)
DAY = "2023-05-17 11:00:"
TIMES = f"{DAY}00,{DAY}10,{DAY}18,8,10"
LOGS = {
    "helios": f"{HELIOS}\na,u,v,0,12,1,COMPLETED,{TIMES}\nb,u,v,2,16,1,COMPLETED,{TIMES}\n"
    f"c,u,v,0,0,1,COMPLETED,{TIMES}\n",
    "acme": f"{ACME}\na,u,1,0,12,Debug,COMPLETED,{TIMES},0\nb,u,1,2,16,Debug,COMPLETED,{TIMES},0\n"
    f"c,u,1,0,0,Debug,COMPLETED,{TIMES},0\n",
    "openb2023": f"{openb.HEADER}\na,11500,1,0,0,,LS,Running,0,18,10\n"
    "b,16000,1,2,1000,,LS,Running,0,18,10\nc,0,1,0,0,,LS,Running,0,18,10\n",
    "spot2026": f"{spot.HEADER}\na,o,A10,6,0,2,0,8,HP\nb,o,A10,8,1,2,0,8,HP\nc,o,A10,0,0,2,0,8,HP\n",
    "slurm": f"{SLURM}\na|u|l|p|COMPLETED|0|10|18|billing=9,cpu=12,mem=4G,node=1\n"
    "b|u|l|p|COMPLETED|0|10|18|cpu=16,gres/gpu=2\nc|u|l|p|COMPLETED|0|10|18|node=1\n",
    "pai2020": "a,i1,u,Terminated,0,18\nb,i2,u,Terminated,0,18\nc,i3,u,Terminated,0,18\n",
}


@pytest.mark.parametrize("name", LOGS)
def test_jobs_without_gpus_are_dropped_or_hold_cores(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(LOGS[name])
    if name == "pai2020":
        (tmp_path / "pai_task_table.csv").write_text(
            "a,ps,2,Terminated,10,18,550,29,,CPU\na,w,1,Terminated,10,18,60,29,,CPU\n"
            "b,w,2,Terminated,10,18,800,29,100.0,V100\nc,w,1,Terminated,10,18,,29,,CPU\n"
        )
        (tmp_path / "pai_group_tag_table.csv").write_text("i1,u,,g7,bert\ni2,u,,g8,\n")
    dropped = load_trace(path, format=f"{name}:cpu-jobs=drop")
    assert dropped.workload.id.tolist() == ["b"]
    assert not dropped.workload.on_cores.any()
    kept = load_trace(path, format=f"{name}:cpu-jobs=keep")
    jobs = kept.workload
    assert jobs.id.tolist() == ["a", "b"]
    assert jobs.gpus.tolist() == [12, 2]
    assert jobs.held_gpus.tolist() == [0, 2]
    assert jobs.on_cores.tolist() == [True, False]
    assert jobs.work.tolist() == [8.0, 8.0]
    said = [(each.action, each.count, each.why) for each in kept.report]
    assert ("dropped", 1, "asks for no GPU, and for no number of cores") in said
    whole = ("repaired", 1, "asks for part of a core, rounded up to whole ones")
    assert (whole in said) == (name in ("openb2023", "pai2020"))
    assert any("1 jobs hold cores and no GPU" in note for note in kept.notes)
    if name != "spot2026":  # Its jobs name their types.
        outcome = sp.simulate(jobs, "1x4,2x8:cores", "fifo")
        assert outcome.jobs["gpu_type"].tolist() == ["cores", "gpu"]


def test_a_log_that_does_not_tell_of_cores(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_text("1 0 5 60 4 -1 -1 -1 90 -1 1 3 2 7 1 1 -1 -1\n")
    with pytest.raises(InputError, match=r"does not tell how many cores .* cpu-jobs=keep cannot"):
        load_trace(path, format=":cpu-jobs=keep")


JOB = st.tuples(st.integers(0, 60), st.integers(1, 6), st.integers(1, 40), st.booleans())
MIXED = st.lists(JOB, min_size=1, max_size=12)
CLUSTER = "2x4,3x2:cores"


def jobs_of(rows: list[tuple[int, int, int, bool]]) -> Workload:
    arrival, gang, work, on_cores = zip(*rows, strict=True)
    types = [CORES if each else "" for each in on_cores]
    return Workload.from_columns(arrival_s=arrival, gpus=gang, work=work, allowed_types=types)


@settings(max_examples=15)
@given(MIXED, st.sampled_from(["fifo", "sjf", "srtf", "easy", "las2d", "asrpt", "hadar"]))
def test_cores_and_gpus_are_apart(rows: list[tuple[int, int, int, bool]], policy: str) -> None:
    jobs = jobs_of(rows)
    outcome = sp.simulate(jobs, CLUSTER, policy)
    schedule, held = outcome.schedule, {True: Fraction(0), False: Fraction(0)}
    for job, node, gpus, start, end in zip(
        schedule.job, schedule.node, schedule.gpus, schedule.start_s, schedule.end_s, strict=True
    ):
        assert bool(jobs.on_cores[job]) == (node >= 2)
        held[bool(node >= 2)] += int(gpus) * (Fraction(end) - Fraction(start))
    summary = outcome.summary()
    span_s = Fraction(summary["makespan_s"])  # type: ignore[arg-type]
    assert summary["utilization"] == pytest.approx(float(held[False] / (8 * span_s)))
    assert summary["core_utilization"] == pytest.approx(float(held[True] / (6 * span_s)))
    table = job_table(outcome)
    alone = table["gpu_s"].to_numpy()
    assert np.array_equal(alone, np.where(jobs.on_cores, 0, jobs.gpus * jobs.work))
    assert (table["gang"].map(str) == "cores").tolist() == jobs.on_cores.tolist()


@settings(max_examples=15)
@given(MIXED.filter(lambda rows: len({row[3] for row in rows}) == 2))
def test_the_verifier_refuses_a_job_on_the_other_kind_of_node(
    rows: list[tuple[int, int, int, bool]],
) -> None:
    outcome = sp.simulate(jobs_of(rows), "2x6,2x6:cores", "fifo")
    for row, node in enumerate(outcome.schedule.node.tolist()):
        nodes = outcome.schedule.node.copy()
        nodes[row] = (node + 2) % 4
        with pytest.raises(VerificationError, match=r"^type: "):
            verify(outcome.instance, replace(outcome.schedule, node=nodes))


def test_the_verifier_knows_by_itself_who_is_allowed_where() -> None:
    """Instances give rates of 0 elsewhere, which the verifier refuses as well: here it is its own rule alone."""
    jobs = Workload.from_columns(
        arrival_s=[0] * 4, gpus=[1] * 4, work=[1] * 4, allowed_types=["", "v100", "k80|v100", CORES]
    )
    instance = Instance(Cluster.parse("1x2:v100,1x2,1x2:cores"), jobs)
    on_gpus = [True, True, False]
    assert allowed_types(instance).tolist() == [*[on_gpus] * 3, [False, False, True]]


@settings(max_examples=15, deadline=None)
@given(MIXED)
def test_bounds_and_certificates_hold_of_them(rows: list[tuple[int, int, int, bool]]) -> None:
    """Against the two kinds on clusters of their own: no schedule of all is cheaper than these two apart."""
    jobs = jobs_of(rows)
    outcome = sp.simulate(jobs, CLUSTER, "srtf")
    cost = Fraction(0)
    for on_cores, cluster in ((False, "2x4"), (True, "3x2")):
        mine = jobs.select(jobs.on_cores == on_cores)
        if len(mine):
            plain = replace(mine, allowed_types=np.full(len(mine), "", dtype=object))
            best = min(
                (sp.simulate(plain, cluster, each) for each in ("srtf", "sjf", "fifo", "easy")),
                key=lambda each: each.jct_s.sum(),
            )
            cost += sum(map(Fraction, best.end_s.tolist()), Fraction(0))
    certified = certify(outcome, budget_s=0.1)
    claim = json.loads(certified.text.splitlines()[-1])
    assert Fraction(claim["bound"]) <= cost * 2**20
    assert certified.ratio >= 1


def test_a_table_of_ones_own_says_which_jobs_hold_cores(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "job,submit,num_gpus,duration,allowed_types,job_class\na,0,4,100,cores,io\nb,0,2,50,,\nc,5,16,30,cores,io\n"
    )
    imported = load_trace(path)
    assert imported.notes == ()
    jobs = imported.workload
    assert jobs.on_cores.tolist() == [True, False, True]
    assert jobs.job_class.tolist() == ["io", "", "io"]
    outcome = sp.simulate(jobs, "1x4,1x16:cores", "srtf")
    assert outcome.jobs["gpu_type"].tolist() == ["cores", "gpu", "cores"]


def test_what_cannot_go_with_jobs_on_cores() -> None:
    jobs = jobs_of([(0, 3, 5, True), (0, 1, 5, False)])
    expected = r"needs 3 cores of CPUs, cluster 1x4(,1x2:cores)? has [02]; add nodes of type cores"
    for cluster in ("1x4", "1x4,1x2:cores"):
        with pytest.raises(InfeasibleJobError, match=expected):
            sp.simulate(jobs, cluster, "fifo")
    left = sp.simulate(jobs, "1x4", "fifo", drop_infeasible=True)
    assert left.jobs["id"].tolist() == ["1"]
    with pytest.raises(InputError, match="or cores alone"):
        Workload.from_columns(arrival_s=[0], gpus=[1], work=[1], allowed_types=["v100|cores"])
    with pytest.raises(InputError, match="gpu_milli"):
        Workload.from_columns(
            arrival_s=[0], gpus=[1], work=[1], allowed_types=["cores"], gpu_milli=[500]
        )
    with pytest.raises(InputError, match="jobs hold cores and no GPU"):
        fit(jobs)
    with pytest.raises(InputError, match="no job holds GPUs"):
        at_load(jobs.select(jobs.on_cores), 0.5, 4)


@pytest.mark.parametrize("tenants", [("",), ("others",)])
def test_jobs_on_cores_hold_no_gpus_of_a_quota(tenants: tuple[str, ...]) -> None:
    jobs = jobs_of([(0, 3, 5, True), (0, 4, 5, True)])
    quotas = Quotas(tenants, (0.0,), ((1,),))
    cluster = replace(Cluster.parse("1x4,1x7:cores"), quotas=quotas)
    for policy in ("fifo", "srtf"):
        assert sp.simulate(jobs, cluster, policy).end_s.tolist() == [5.0, 5.0]


def test_jobs_with_rates_run_on_a_cluster_with_cores_too() -> None:
    jobs = Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 2], work=[10, 10], throughput=[[1], [2]], gpu_types=["v100"]
    )
    outcome = sp.simulate(jobs, "1x2:v100,1x8:cores", "fifo")
    assert outcome.end_s.tolist() == [10.0, 15.0]
    assert outcome.summary()["utilization"] == pytest.approx(20 / 30)


def test_a_cluster_of_cores_has_no_gpu_that_could_be_used() -> None:
    jobs = jobs_of([(0, 3, 5, True), (0, 1, 5, True)])
    outcome = sp.simulate(jobs, "1x4:cores", "fifo")
    summary = outcome.summary()
    assert (summary["utilization"], summary["cru"], summary["core_utilization"]) == (0, 0, 1)
    assert "0 GPUs, 4 cores" in repr(outcome.instance.cluster)


def test_cores_of_nodes_that_fail_are_no_gpus() -> None:
    jobs = jobs_of([(0, 2, 10, True), (0, 2, 10, False)])
    faults = FaultTable("one fault", np.array([1]), np.array([4.0]), np.array([6.0]))
    chosen = sp.RunOptions(failures=sp.Failures(faults))
    outcome = sp.simulate(jobs, "1x2,1x2:cores", "fifo", chosen)
    summary = outcome.summary()
    assert outcome.end_s.tolist() == [16.0, 10.0]
    assert (summary["failed_runs"], summary["lost_gpu_s"], summary["availability"]) == (1, 0, 1)
    assert summary["goodput"] == pytest.approx(20 / 32)


@given(MIXED.filter(lambda rows: len({row[0] for row in rows}) > 1))
def test_what_is_in_a_trace_tells_cores_apart(rows: list[tuple[int, int, int, bool]]) -> None:
    jobs, cluster = jobs_of(rows), Cluster.parse("2x6,2x6:cores")
    found = contents(jobs, cluster)
    gpu_s = sum(gang * work for _, gang, work, on_cores in rows if not on_cores)
    core_s = sum(gang * work for _, gang, work, on_cores in rows if on_cores)
    assert found.gpu_h == pytest.approx(gpu_s / 3600)
    assert found.core_h == pytest.approx(core_s / 3600)
    by_gang = {part.name: part.jobs for part in found.by_gang}
    assert by_gang.get(ON_CORES, 0) == sum(row[3] for row in rows)
    assert sum(by_gang.values()) == len(rows)
    assert found.load == pytest.approx(offered_load(jobs, 12))
    span_s = max(row[0] for row in rows) - min(row[0] for row in rows)
    gaps = (len(rows) - 1) / len(rows)
    assert found.load == pytest.approx(gpu_s * gaps / (12 * span_s))
    if gpu_s:
        assert offered_load(at_load(jobs, 0.5, 12), 12) == pytest.approx(0.5, abs=1e-4)


def test_the_page_of_a_trace_tells_cores_apart() -> None:
    jobs = jobs_of([(0, 3, 3600, True), (9, 1, 3600, False)])
    text = trace_page(jobs, Cluster.parse("1x4,1x4:cores"))
    assert "time of cores without GPUs [core-h]" in text
    assert ON_CORES in text
    assert "load offered to 4 GPUs" in text
