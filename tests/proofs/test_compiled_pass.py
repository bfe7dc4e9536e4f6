"""The compiled pass of the verifier says yes only where every rule holds, and does so to what the engine makes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Node
from shadowprice.proofs import run_speed
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.verification import compiled_pass
from shadowprice.solvers.registry import placement, policy
from support.paths import ROOT
from support.schedule_segments import Cut


@st.composite
def runs(draw: st.DrawFn) -> tuple[sp.Instance, sp.Schedule]:
    seed = draw(st.integers(0, 2**16))
    cluster = sp.Cluster.parse(draw(st.sampled_from(["1x4", "2x4", "3x2", "2x4,3x2", "6x1"])))
    jobs = sp.generate("gavel", jobs=draw(st.integers(1, 12)), seed=seed, load=1.2, gpus_total=8)
    instance, _ = sp.Instance.feasible(cluster, jobs)
    name = draw(st.sampled_from(["fifo", "srtf", "las2d"]))
    where = placement(draw(st.sampled_from(["count", "consolidate", "pack"])))
    return instance, run(instance, policy(name), placement=where).schedule


def scan(instance: sp.Instance, schedule: sp.Schedule) -> bool:
    """In one piece, and to the same verdict row by row."""
    whole = run_speed.alone_ticks(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_pass, "LEAST_ROWS", 0)
        found = compiled_pass.holds(instance, schedule, whole)
        rows = compiled_pass.CompiledPass.over(instance, whole, len(schedule))
    one_by_one = Cut(schedule, range(1, len(schedule)))
    segments = map(one_by_one.read, reversed(range(len(one_by_one.lengths))))
    assert found == (rows is not None and all(map(rows.goes_on, segments)) and rows.ends())
    return found


def obeys(instance: sp.Instance, schedule: sp.Schedule) -> bool:
    """By the rules one by one: these schedules are too short for the pass."""
    try:
        verify(instance, schedule)
    except VerificationError:
        return False
    return True


@settings(max_examples=13)
@given(runs())
def test_what_the_engine_makes_passes(made: tuple[sp.Instance, sp.Schedule]) -> None:
    assert scan(*made)


CHANGES = [-1, 1, 2, 2.0**-21, -(2.0**-20), 2.0**-20, 100.0, np.nan, np.inf, 2.0**33]


@settings(max_examples=45)
@given(runs(), st.data())
def test_what_passes_obeys_every_rule(
    made: tuple[sp.Instance, sp.Schedule], data: st.DataObject
) -> None:
    instance, schedule = made
    if not len(schedule):
        return
    columns: dict[str, Any] = {}
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(["job", "node", "gpus", "start_s", "end_s", "overhead_s"]))
        column = columns.get(name, getattr(schedule, name)).copy()
        row = data.draw(st.integers(0, len(column) - 1))
        change = data.draw(st.sampled_from(CHANGES[:3] if column.dtype.kind == "i" else CHANGES))
        column[row] += change
        columns[name] = column
    changed = replace(schedule, **columns)
    if scan(instance, changed):
        assert obeys(instance, changed)


@settings(max_examples=18)
@given(runs(), st.data())
def test_rows_left_out_and_doubled_do_not_pass(
    made: tuple[sp.Instance, sp.Schedule], data: st.DataObject
) -> None:
    instance, schedule = made
    if not len(schedule):
        return
    row = data.draw(st.integers(0, len(schedule) - 1))
    kept = np.delete(np.arange(len(schedule)), row)
    twice = np.insert(np.arange(len(schedule)), row, row)
    for rows in (kept, twice):
        parts = {f.name: getattr(schedule, f.name) for f in fields(schedule)}
        changed = sp.Schedule(**{k: v if v is None else v[rows] for k, v in parts.items()})
        assert not scan(instance, changed)
        assert not obeys(instance, changed)


def test_a_node_that_holds_too_much_for_a_moment_does_not_pass() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[1, 1, 1], work=[10, 4, 4])
    instance = sp.Instance(sp.Cluster.parse("1x2,1x1"), jobs)
    start, end = np.array([0.0, 3.0, 0.0]), np.array([4.0, 7.0, 10.0])

    def schedule(begin_s: float) -> sp.Schedule:
        at = np.array([0.0, begin_s, 0.0])
        one = np.ones(3, dtype=np.int64)
        return sp.Schedule(np.array([1, 2, 0]), 0 * one, one, at, end + at - start, 0 * at)

    assert not scan(instance, schedule(3.0))
    assert scan(instance, schedule(4.0))
    assert obeys(instance, schedule(4.0))


def rows_of(*rows: tuple[int, int, int, float, float]) -> sp.Schedule:
    """Rows of job, node, GPUs, start and end."""
    job, node, gpus, start_s, end_s = (np.array(column) for column in zip(*rows, strict=True))
    return sp.Schedule(job, node, gpus, start_s, end_s, 0 * end_s)


@pytest.mark.parametrize(
    ("cluster", "jobs", "schedule"),
    [
        # A job in two runs at a time.
        ("2x1", [(1, 8)], rows_of((0, 0, 1, 0.0, 4.0), (0, 1, 1, 1.0, 5.0))),
        # A run with two rows on one node.
        ("1x2", [(2, 4)], rows_of((0, 0, 1, 0.0, 4.0), (0, 0, 1, 0.0, 4.0))),
        # Rows out of order, the first of which overlaps the last one on its node.
        (
            "1x2",
            [(1, 3), (1, 4), (2, 1)],
            rows_of((0, 0, 1, 4.0, 7.0), (1, 0, 1, 0.0, 4.0), (2, 0, 2, 5.0, 6.0)),
        ),
    ],
)
def test_a_rule_that_few_schedules_break_is_checked(
    cluster: str, jobs: list[tuple[int, int]], schedule: sp.Schedule
) -> None:
    gpus, work = zip(*jobs, strict=True)
    workload = sp.Workload.from_columns(arrival_s=[0] * len(jobs), gpus=gpus, work=work)
    instance = sp.Instance(sp.Cluster.parse(cluster), workload)
    assert not scan(instance, schedule)
    assert not obeys(instance, schedule)


def test_what_is_not_plain_is_left_to_the_rules() -> None:
    instance = sp.Instance(
        sp.Cluster.parse("1x2"), sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[5])
    )
    schedule = run(instance, policy("fifo")).schedule
    assert scan(instance, schedule)
    charged = replace(instance, overheads=sp.Overheads(start_s=1.0))
    assert not scan(charged, run(charged, policy("fifo")).schedule)
    assert not scan(instance, replace(schedule, cpus=np.ones(1)))
    assert not scan(instance, replace(schedule, goes_on=np.zeros(1, dtype=bool)))
    assert not compiled_pass.holds(instance, schedule, run_speed.alone_ticks(instance))


KNOWN = {
    sp.Instance: "cluster workload overheads sharing_rates graphs sensitivity locality elasticity copies "
    "until_complete failures stopped_s preemption declared",
    sp.Schedule: "job node gpus start_s end_s overhead_s partner stages cpus memory_gb copy steps shared_gpu "
    "local_batch accumulated slowed goes_on",
    sp.Overheads: "start_s restart_s migration_s restart_by_gpus",
    sp.Cluster: "nodes quotas",
    Node: "gpus gpu_type cpus memory_gb intra_gb_per_s nic_gb_per_s price_per_hour rack whole_cpus",
    sp.Workload: "id arrival_s gpus work weight deadline_s tenant model group name job_class outcome limit_s nodes "
    "allowed_types gpu_milli cpus memory_gb batch_size throughput gpu_types source",
}


@pytest.mark.parametrize("kind", KNOWN)
def test_the_pass_knows_all_that_there_is_to_know(kind: Any) -> None:
    """Who adds a field says in the pass whether a schedule is plain with it."""
    assert [field.name for field in fields(kind)] == KNOWN[kind].split()


def test_jobs_that_ask_for_cpus_are_left_to_the_rules() -> None:
    cluster = sp.Cluster.parse("1x2+4cpu+8gb")
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[5, 5])
    schedule = run(sp.Instance(cluster, jobs), policy("fifo")).schedule
    asking = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[5, 5], cpus=[3, 3])
    assert scan(sp.Instance(cluster, jobs), schedule)
    assert not scan(sp.Instance(cluster, asking), schedule)
    assert not obeys(sp.Instance(cluster, asking), schedule)


def test_a_job_that_holds_a_part_of_a_gpu_is_left_to_the_rules() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[5])
    instance = sp.Instance(sp.Cluster.parse("1x2"), jobs)
    schedule = run(instance, policy("fifo")).schedule
    parts = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[5], gpu_milli=[500])
    held = sp.Instance(sp.Cluster.parse("1x2"), parts)
    assert scan(instance, schedule)
    assert not scan(held, schedule)
    assert not obeys(held, schedule)


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import shadowprice as sp
from shadowprice.proofs.verification import compiled_pass
compiled_pass.LEAST_ROWS = 0
jobs = sp.generate("gavel", jobs=50, seed=1, load=0.5, gpus_total=8)
print(len(sp.simulate(jobs, "2x4", "fifo").schedule))
"""


def test_without_numba_the_rules_are_checked_one_by_one() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) >= 40
