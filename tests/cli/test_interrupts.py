"""Ctrl-C keeps what there is and says so; progress goes to stderr and leaves stdout alone."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path

import pytest

import shadowprice as sp
from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.judge import JudgeEffort
from shadowprice.analysis.adversary.search import adversary
from shadowprice.analysis.compare import compare
from shadowprice.cli import progress
from shadowprice.cli.app import main
from shadowprice.instances.workload_files import write_workload
from support.printed import without_origin
from support.watches import StopAt

# Ctrl-C as a policy's own act, so that it comes at the same decision every time.
PRESSES = """
import signal
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.solvers.policy import Decision, Knowledge, State

decided = 0


@dataclass(frozen=True)
class Presses:
    name: str = "presses"
    times: int = 1
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        global decided
        decided += 1
        for _ in range(self.times if decided == 30 else 0):
            signal.raise_signal(signal.SIGINT)
        decision = Decision(state)
        for job in state.waiting:
            if not decision.start(job):
                break
        return decision
"""


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """As in a terminal: programs that a shell starts in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    write_workload(sp.generate("lognormal", jobs=60, seed=3, load=1.2, gpus_total=16), path)
    (tmp_path / "own.py").write_text(PRESSES)
    return path


@pytest.fixture
def shadowprice(monkeypatch, capsys):
    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["shadowprice", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code or 0, printed.out, " ".join(printed.err.split())

    return run


def test_a_simulation_keeps_its_partial_run(trace, tmp_path, shadowprice):
    own = f"{trace.parent / 'own.py'}:Presses"
    run = tmp_path / "run"
    code, out, err = shadowprice(
        "simulate", trace, "--cluster", "4x4", "--policy", own, "-o", run, "--json"
    )
    assert code == progress.INTERRUPTED
    summary = without_origin(out)
    assert 0 < summary["completed"] < summary["jobs"] == 60
    assert summary["avg_jct_s"] is None
    assert "stopping, and keeping what is done; Ctrl-C again gives it up" in err
    said = f"partial run, stopped at .* {summary['completed']} of 60 jobs are complete"
    assert re.search(said, err)
    code, out, err = shadowprice("verify", run, "--json")
    assert (code, without_origin(out)) == (0, summary)
    assert re.search(said, err)


def test_the_second_ctrl_c_gives_it_up(trace, tmp_path, shadowprice):
    own = f"{trace.parent / 'own.py'}:Presses:times=2"
    run = tmp_path / "run"
    code, out, err = shadowprice("simulate", trace, "--cluster", "4x4", "--policy", own, "-o", run)
    assert (code, out) == (progress.INTERRUPTED, "")
    assert "nothing of it is kept" in err
    assert not run.exists()


def test_a_comparison_keeps_the_policies_that_are_finished(trace, shadowprice):
    own = f"{trace.parent / 'own.py'}:Presses"
    words = ("--cluster", "4x4", "--policies", f"fifo,{own},srtf", "--budget", "1", "--json")
    code, out, err = shadowprice("compare", trace, *words)
    assert code == progress.INTERRUPTED
    result = json.loads(out)
    assert [row["policy"] for row in result["policies"]] == ["fifo"]
    assert result["missing"] == [own, "srtf"]
    assert "stopped by Ctrl-C: not compared are" in err


def test_ctrl_c_is_an_exception_also_after_a_search_by_cp_sat():
    """The library leaves the signal to the system, which would end this process."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 0, 1], gpus=[1, 1, 1], work=[3, 2, 1])
    instance = sp.Instance(sp.Cluster.parse("1x2"), jobs)
    sp.slotted_preemptive_optimum(
        instance, objective=sp.Objective.COMPLETION, method="cp-sat", budget_s=5.0
    )
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_scripts_that_compare_are_interrupted_as_always(trace):
    jobs = sp.load(trace)
    own = f"{trace.parent / 'own.py'}:Presses"
    with pytest.raises(KeyboardInterrupt):
        compare(jobs, "4x4", ["fifo", own], budget_s=1.0)


def test_an_adversary_keeps_its_worst_instance():
    family = InstanceFamily(jobs=3, gpus=1, max_arrival=4, max_work=4)
    watch = StopAt(40)
    effort = JudgeEffort(evaluations=5000, budget_s=600.0)
    found = adversary("fifo", family, effort=effort, watch=watch)
    assert found.hard.provenance["evaluations"] <= 41
    assert found.ratio > 1
    shares = [done for done, _ in watch.told]
    assert shares == sorted(shares)


def test_progress_elsewhere_than_on_a_terminal_is_lines_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE_S", 0.01)
    monkeypatch.setattr(progress, "_LATER_LINES_S", (0.01,))
    with progress.progress_line() as say:
        say("counting")
        say.reaches(1, 4)
        while "25%" not in (err := capsys.readouterr().err):
            pass
    assert re.search(r"counting:  25%, 0 s so far", err)
    assert capsys.readouterr().out == ""


def test_the_time_left_is_that_of_what_is_not_done(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    state = progress.StepProgress(stoppable=False)
    state("simulating")
    assert state.summary() == "0 s so far"
    now[0] = 130.0
    state.reaches(3, 12)
    assert state.summary() == " 25%, 30 s so far, about 1 min 30 s left"
    state("verifying")
    assert state.summary() == "0 s so far"
