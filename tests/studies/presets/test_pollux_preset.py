"""Pollux' simulator: every completion of Tiresias and Optimus as its authors recorded it, and rules by hand."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shadowprice as sp
from shadowprice.analysis.preparation import prepare_run
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.traces import load_trace
from shadowprice.proofs.certificate import verify
from support.goodput_tables import small, write_tables

RECORDED = Path(__file__).resolve().parents[4] / "shared/golden/recorded"
RUNS, TABLES = RECORDED / "pollux_osdi21.json.xz", RECORDED / "pollux_profile_tables.json.xz"
golden = pytest.mark.skipif(
    not (RUNS.exists() and TABLES.exists()), reason="the recorded runs of Pollux are absent"
)
WORKLOADS = [f"{load}/workload-{number}" for load in ("0.5", "1.0") for number in range(1, 9)]
HEADER = "name,time,application,num_replicas,batch_size"


@cache
def recorded(path: Path) -> Any:
    return json.loads(lzma.decompress(path.read_bytes()))


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The simulator's folder of profile tables."""
    folder = tmp_path_factory.mktemp("simulator") / "traces"
    for name, text in recorded(TABLES)["tables"].items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def jobs_of(name: str, folder: Path) -> sp.Workload:
    """One of the simulator's workloads, from its file beside the tables."""
    path = folder.parent / f"{name.replace('/', '-')}.csv"
    rows = recorded(RUNS)["workloads"][name]["rows"]
    path.write_text("\n".join([HEADER, *map(",".join, rows)]) + "\n")
    return load_trace(path).workload


def scheduled(jobs: sp.Workload, policy: str, term: Goodput, cluster: str = "16x4") -> Schedule:
    """The verified schedule of a policy of the simulator."""
    settled = prepare_run(jobs, cluster, policy, sp.RunOptions(preset="pollux", declared=(term,)))
    assert settled.policy is not None
    found = run(
        settled.instance, settled.policy, placement=settled.placement, rounds=settled.rounds
    )
    assert verify(settled.instance, found.schedule).all()
    return found.schedule


def jct_s(jobs: sp.Workload, schedule: Schedule) -> Mapping[str, float]:
    end_s = np.zeros(len(jobs))
    np.maximum.at(end_s, schedule.job, schedule.end_s)
    return dict(zip(jobs.id.tolist(), (end_s - jobs.arrival_s).tolist(), strict=True))


def expect_recorded(name: str, policy: str, tables: Path) -> None:
    jobs, (load, number) = jobs_of(name, tables), name.split("/")
    found = jct_s(jobs, scheduled(jobs, policy, Goodput(load_applications(tables))))
    assert found == recorded(RUNS)["runs"][f"results-jobload/{policy}-{load}"]["jcts"][number]


@golden
@pytest.mark.parametrize(
    "name", [*WORKLOADS[::2], *(pytest.param(e, marks=pytest.mark.slow) for e in WORKLOADS[1::2])]
)
def test_every_completion_of_tiresias_is_as_recorded(name: str, tables: Path) -> None:
    expect_recorded(name, "tiresias", tables)


@golden
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            each, marks=() if each in ("0.5/workload-5", "1.0/workload-3") else pytest.mark.slow
        )
        for each in WORKLOADS
    ],
)
def test_every_completion_of_optimus_is_as_recorded(name: str, tables: Path) -> None:
    expect_recorded(name, "optimus", tables)


@golden
@pytest.mark.parametrize("policy", ["tiresias", "optimus"])
def test_who_holds_which_nodes_in_every_minute_is_as_recorded(policy: str, tables: Path) -> None:
    record = RECORDED / f"pollux_rounds_{policy}_w6.json.xz"
    if not record.exists():
        pytest.skip("the recorded rounds of Pollux' simulator are absent")
    jobs = jobs_of("1.0/workload-6", tables)
    s = scheduled(jobs, policy, Goodput(load_applications(tables)))
    names, rounds, found = jobs.id.tolist(), recorded(record)["rounds"], jct_s(jobs, s)
    end_s = {name: at_s + found[name] for name, at_s in zip(names, jobs.arrival_s, strict=True)}
    order = np.argsort(s.start_s, kind="stable")
    for at_s, allocations in rounds:
        held: dict[str, list[int]] = {}
        for row in order[(s.start_s[order] <= at_s) & (at_s < s.end_s[order])].tolist():
            held.setdefault(names[s.job[row]], []).extend([int(s.node[row])] * int(s.gpus[row]))
        # Who is complete by rounding down, with a step, keeps its nodes for another there, and holds nothing here.
        assert held == {job: on for job, on in allocations.items() if end_s[job] > at_s}, at_s


# Rules, by hand.


def small_jobs(*times: float, gpus: int = 2) -> sp.Workload:
    return sp.Workload.from_columns(
        arrival_s=times, gpus=[gpus] * len(times), work=1.0, model="m", batch_size=8
    )


def test_jobs_are_seen_with_a_step_and_owe_thirty_seconds() -> None:
    """20 s of work, begun with the first step that ends at or after the arrival; the second waits for a step."""
    jobs = small_jobs(0.0, 60.0, 61.0)
    s = scheduled(jobs, "tiresias", Goodput((small("m"),)), "1x2")
    assert s.start_s.tolist() == [60.0, 120.0, 180.0]
    assert s.end_s.tolist() == [110.0, 170.0, 230.0]
    assert s.overhead_s.tolist() == [30.0] * 3


def test_an_epoch_ends_at_the_nearest_second() -> None:
    """On three GPUs at batch 15 a step of 2.25 s is worth 30/23, then 45/31: 13.8 s and 18.6 s."""
    jobs = sp.Workload.from_columns(arrival_s=[0.0], gpus=[3], work=1.0, model="m", batch_size=16)
    s = scheduled(jobs, "tiresias", Goodput((small("m"),)), "2x2")
    assert s.end_s.tolist() == [60.0 + 30.0 + 14.0 + 19.0] * 2


def test_another_step_is_another_round() -> None:
    semantics = sp.RunOptions(preset="pollux", round_s=30.0, declared=(Goodput((small("m"),)),))
    settled = prepare_run(small_jobs(0.0), "1x2", "tiresias", semantics)
    assert (settled.rounds.length_s, settled.rounds.first_s) == (30.0, 30.0)


def test_without_tables_the_preset_says_what_it_needs() -> None:
    with pytest.raises(InputError, match="expected --with goodput:tables=FOLDER"):
        prepare_run(small_jobs(0.0), "1x2", "tiresias", sp.RunOptions(preset="pollux"))


def test_run_times_of_a_workload_are_those_at_its_request(tmp_path: Path) -> None:
    write_tables(tmp_path / "traces", small("m"))
    path = tmp_path / "workload.csv"
    path.write_text(f"{HEADER}\na,60,m,2,8\nb,90,m,1,\n")
    jobs = load_trace(path).workload
    assert jobs.arrival_s.tolist() == [60.0, 90.0]
    assert jobs.batch_size.tolist() == [8, 0]
    assert jobs.work.tolist() == [20.0, 40.0]
    path.write_text(f"{HEADER}\na,60,m,2,8\nb,90,m,1,99\n")
    with pytest.raises(InputError, match=r"row 2: .*traces has no duration of 'm' on 1 replicas"):
        load_trace(path)
