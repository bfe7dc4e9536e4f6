"""``--sealed``: the same run, and no code of the policy's in this process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import shadowprice as sp
from shadowprice.cli.app import app
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.execution.sealed.seal import Protection
from shadowprice.instances.traces import load_trace
from shadowprice.user_code import MODULE_PREFIX

MINE = """
import os, sys
from dataclasses import dataclass
from shadowprice.solvers.policy import Decision

if os.getcwd() != "/":
    raise RuntimeError("is run where the workload is")

@dataclass(frozen=True)
class Mine:
    wide: bool = False
    name: str = "mine"
    knows: frozenset = frozenset()
    preemptive: bool = False

    def decide(self, state):
        decision = Decision(state)
        for job in sorted(state.waiting, key=lambda job: state.gang[job], reverse=self.wide):
            decision.start(job)
        return decision
"""
OF_A_RUN = ("cpu_s", "made_by", "policy")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE, encoding="utf-8")
    rows = "".join(f"j{k},{3 * k},{1 + k % 4},{7 + 5 * k % 23}\n" for k in range(30))
    Path("jobs.csv").write_text("id,submit,gpus,duration\n" + rows, encoding="utf-8")


def said(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def simulated(policy: str, *words: str) -> dict[str, object]:
    done = said("simulate", "jobs.csv", "--cluster", "2x4", "--policy", policy, "--json", *words)
    assert done.exit_code == 0, done.output
    metrics = dict(json.loads(done.stdout))
    return {name: value for name, value in metrics.items() if name not in OF_A_RUN}


def test_metrics_are_the_same_and_the_seal_is_said_once() -> None:
    words = ("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "las2d", "--sealed")
    done = said(*words)
    assert done.exit_code == 0
    assert done.stderr.count("sealed: the policy's process") == 1
    assert simulated("las2d", "--sealed") == simulated("las2d")


def test_a_file_is_run_in_its_process_alone() -> None:
    before = {name for name in sys.modules if name.startswith(MODULE_PREFIX)}
    assert simulated("mine.py:Mine:wide=true", "--sealed")["completed"] == 30
    assert {name for name in sys.modules if name.startswith(MODULE_PREFIX)} <= before
    result = sp.compare(
        load_trace("jobs.csv").workload,
        "2x4",
        ["fifo", "mine.py:Mine"],
        options=sp.RunOptions(sealed=True),
        budget_s=0.1,
    )
    assert list(result.outcomes) == ["fifo", "mine.py:Mine"]
    with pytest.raises(InputError, match="is run where the workload is"):
        sp.simulate(load_trace("jobs.csv").workload, "2x4", "mine.py:Mine")


def test_a_file_of_a_run_may_say_it() -> None:
    Path("run.yaml").write_text("sealed: true\n", encoding="utf-8")
    assert simulated("mine.py:Mine", "--run", "run.yaml")["completed"] == 30
    done = said(
        *("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo"),
        *("--run", "run.yaml", "--sealed"),
    )
    assert "run.yaml: says sealed, as options do" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "hadare"), "policy 'hadare' does not take the option 'sealed'"),
        (
            ("--policy", "las", "--preset", "gavel"),
            "preset gavel: its policies are of this process",
        ),
        (("--policy", "mine.py:Nobody"), "mine.py has no 'Nobody'; it defines Mine"),
        (
            ("--policy", "mine.py:Mine:tall=1"),
            "parameter 'tall=1', expected NAME=VALUE with one of preemptive, wide",
        ),
        (
            ("--policy", "fifo", "--predictor", "last"),
            "policy 'fifo' takes no predictor, got 'last'",
        ),
        (
            ("--policy", "hadar", "--prices", "p.csv"),
            "policy 'hadar': its prices stay in its process",
        ),
        (("--policy", "nosuch"), "policy 'nosuch'"),
    ],
)
def test_what_cannot_be_sealed_is_one_sentence(words: tuple[str, ...], message: str) -> None:
    done = said("simulate", "jobs.csv", "--cluster", "2x4", "--sealed", *words)
    assert isinstance(done.exception, ShadowpriceError)
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)


def test_an_object_of_this_process_is_not_sealed_and_a_sealed_one_is() -> None:
    jobs = load_trace("jobs.csv").workload

    class Own:
        name, knows, preemptive = "own", frozenset[object](), False

        def decide(self, state: object) -> None: ...

    with pytest.raises(InputError, match="policy 'own': is an object of this process"):
        sp.simulate(jobs, "2x4", Own(), sp.RunOptions(sealed=True))  # type: ignore[arg-type]
    one = SealedPolicy("mine.py:Mine")
    outcome = sp.simulate(jobs, "2x4", one)
    assert Protection.SPACE in outcome.settings["sealed"]  # type: ignore[operator]
    again = sp.simulate(jobs, "2x4", one)
    assert (again.schedule.job == outcome.schedule.job).all()


def test_a_window_of_jobs_is_the_same_too() -> None:
    window = ("--with", "window:first=2,last=5")
    assert simulated("fifo", "--sealed", *window) == simulated("fifo", *window)
