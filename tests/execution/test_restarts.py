"""Jobs that restart from nothing when preempted: engine, verifier, comparisons, run directories, refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.run_directory import directory
from shadowprice.errors import InputError, PolicyError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures
from shadowprice.instances.strategies import instances
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.checker import Rejected, check
from shadowprice.solvers.registry import policy

RESTART = sp.RunOptions(preemption=sp.Preemption.RESTART)
POLICIES = ("srtf", "b-scaling", "b-scaling:b=2,first_s=0.5", "las2d", "easy")
CHARGES = (sp.Overheads(), sp.Overheads(start_s=1.0, restart_s=3.0, migration_s=2.0))


def preempted() -> sp.Instance:
    """Instance in which srtf stops the first job, for the second."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 2], gpus=[1, 1], work=[10, 3])
    return sp.Instance(sp.Cluster.parse("1x1"), jobs, preemption=sp.Preemption.RESTART)


@given(instances(), st.sampled_from(POLICIES), st.sampled_from(CHARGES))
def test_the_last_run_of_each_job_is_all_of_its_work(
    instance: sp.Instance, name: str, charges: sp.Overheads
) -> None:
    """Every schedule is verified, and what it did before the last runs may be left out of it."""
    instance = replace(instance, overheads=charges, preemption=sp.Preemption.RESTART)
    schedule = run(instance, policy(name)).schedule
    verify(instance, schedule)
    last_s = np.zeros(len(instance.workload))
    np.maximum.at(last_s, schedule.job, schedule.start_s)
    last = schedule.start_s == last_s[schedule.job]
    if charges.free:
        only = sp.Schedule(*(getattr(schedule, name)[last] for name in COLUMNS))
        verify(replace(instance, preemption=sp.Preemption.RESUME), only)
        verify(instance, only)


COLUMNS = ("job", "node", "gpus", "start_s", "end_s", "overhead_s")


def test_work_is_lost_and_the_verifier_sees_it() -> None:
    instance = preempted()
    schedule = run(instance, policy("srtf")).schedule
    assert schedule.end_s[schedule.runs].tolist() == [2, 15, 5]
    verify(instance, schedule)
    with pytest.raises(Violation, match="ticks too many"):
        verify(replace(instance, preemption=sp.Preemption.RESUME), schedule)
    resumed = replace(instance, preemption=sp.Preemption.RESUME)
    kept = run(resumed, policy("srtf")).schedule
    assert kept.end_s.max() == 13
    with pytest.raises(Violation, match="missing"):
        verify(instance, kept)
    whole = sp.Schedule(*(np.array(each) for each in ([0, 0, 1], [0] * 3, [1] * 3)), *TIMES)
    with pytest.raises(Violation, match="completes its job, which runs again"):
        verify(instance, whole)


TIMES = (np.array([0.0, 13, 10]), np.array([10.0, 23, 13]), np.zeros(3))


def test_who_stops_jobs_for_ever_is_told() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[100_000, 100_000])
    with pytest.raises(PolicyError, match="expected a policy that lets runs grow"):
        sp.simulate(jobs, "1x1", "gandiva:quantum_s=60", RESTART)


def test_comparisons_are_with_schedules_that_stop_nobody() -> None:
    """Without preemption 10 + 11 is the least flow time, with it 3 + 13."""
    jobs = preempted().workload
    compared = sp.compare(jobs, "1x1", ["srtf", "fifo"], options=RESTART, budget_s=2.0)
    rows = {row.policy: row for row in compared.rows}
    assert [float(row.proven_by.value_s) for row in rows.values()] == [18, 18]
    assert float(rows["srtf"].ratio) == pytest.approx(1.0)


def test_a_run_directory_says_that_jobs_restart(tmp_path) -> None:
    outcome = sp.simulate(preempted().workload, "1x1", "srtf", RESTART)
    directory.save(outcome, tmp_path / "run")
    found = directory.load(tmp_path / "run")
    assert found.instance.preemption is sp.Preemption.RESTART
    assert found.settings["preemption"] == "restart"
    text = (tmp_path / "run" / "instance.json").read_text()
    (tmp_path / "run" / "instance.json").write_text(text.replace(',\n "preemption": "restart"', ""))
    with pytest.raises((VerificationError, InputError)):
        directory.load(tmp_path / "run")


def test_a_certificate_says_that_jobs_restart() -> None:
    outcome = sp.simulate(preempted().workload, "1x1", "srtf", RESTART)
    found = certify(outcome, budget_s=0)
    assert "no two jobs share a GPU, jobs restart when preempted (flow" in found.sentence()
    header, *rest = found.text.splitlines(keepends=True)
    with pytest.raises(Rejected, match="holds GPUs after the end of its work"):
        check("".join([header.replace('"preemption":"restart",', ""), *rest]))


def test_what_does_not_go_with_restarts_is_refused() -> None:
    instance = preempted()
    down = NodeFailures(
        node=np.array([0]),
        down_s=np.array([1.0]),
        up_s=np.array([2.0]),
        checkpoints=Checkpointing(1.0, 0.0),
        source="test",
    )
    with pytest.raises(
        InputError, match="jobs restart from nothing when preempted and write checkpoints every 1 s"
    ):
        replace(instance, failures=down)
    with pytest.raises(InputError, match="'anew', expected resume or restart"):
        sp.Preemption.parse("anew")
