"""Policies of one's own on the command line: wherever a policy is named, a file will do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase
from typer.testing import CliRunner, Result

from shadowprice.cli.app import app
from shadowprice.errors import InputError, PolicyError, ShadowpriceError
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.proofs.testing import battery
from support.own_code import POLICIES, TRACE
from support.printed import without_origin

MORE = """
from mine import Widest

from shadowprice.solvers.policy import Decision


class Nothing(Widest):
    def decide(self, state):
        return None


class Broken(Widest):
    def decide(self, state):
        return 1 / 0


class Lacking:
    def decide(self, state):
        return Decision(state).start_all()


class Reads(Widest):
    def decide(self, state):
        state.live().remaining_s
        return super().decide(state)


class Stops(Widest):
    def decide(self, state):
        decision = super().decide(state)
        for job in list(state.running):
            decision.stop(job)
        return decision


class Past(Widest):
    def decide(self, state):
        decision = super().decide(state)
        decision.wake_at(-1.0)
        return decision


class Far(Widest):
    def decide(self, state):
        decision = Decision(state)
        decision.start(999)
        return decision


class Idle(Widest):
    def decide(self, state):
        return Decision(state)


class Needs:
    def __init__(self, more):
        pass


class Placed:
    name = "placed"

    def allocator(self, cluster, pool_of_node):
        from shadowprice.solvers.placement.count import Count

        return Count().allocator(cluster, pool_of_node)


def guess(settings, seed):
    from shadowprice.solvers.predictors.predictor import predictor

    return predictor("median", seed=seed)


def guess_wrong(settings, seed):
    return 3


class Halves:
    name = "halves"
    needs_steps = packed = aware = False

    def allocate(self, problem, workspace):
        import numpy as np

        from shadowprice.solvers.gavel.allocation import Allocation

        n, types = problem.throughput.shape
        if not n:
            return Allocation(self.name, problem, np.zeros((0, types)), np.zeros((0, types)))
        share = problem.capacity / (problem.gpus.sum() * types)
        return Allocation(self.name, problem, np.tile(share, (n, 1)), np.zeros((0, types)))
"""
JOBS = """
jobs:
  - {name: first, command: [sleep, "0.2"], iterations: 2}
  - {name: second, command: [sleep, "0.1"], iterations: 2, gpus: 2}
"""
PROBLEM = {"cluster": {"k80": 1, "v100": 1}, "jobs": [{"tput": [10, 40]}, {"tput": [4, 12]}]}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(POLICIES)
    (tmp_path / "more.py").write_text(MORE)
    (tmp_path / "jobs.csv").write_text(TRACE)
    (tmp_path / "jobs.yaml").write_text(JOBS)
    (tmp_path / "problem.json").write_text(json.dumps(PROBLEM))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def answer(*words: object) -> Any:
    done = call(*words, "--json")
    assert done.exit_code == 0, done.exception
    return without_origin(done.stdout)


RUN = ("simulate", "jobs.csv", "--cluster", "1x2", "--policy")


def test_simulate_a_class_an_instance_and_one_with_parameters(here: Path) -> None:
    one, same, other = (
        answer(*RUN, f"mine.py:{name}") for name in ("Widest", "WIDEST", "Widest:window_s=9")
    )
    told = ("policy", "cpu_s", "verify_cpu_s", "decisions")
    plain = [{k: v for k, v in found.items() if k not in told} for found in (one, same, other)]
    assert plain[0] == plain[1] != plain[2]
    assert other["policy"] == "mine.py:Widest:window_s=9"
    assert answer(*RUN, here / "mine.py:Widest")["makespan_s"] == one["makespan_s"]


def test_a_copy_of_a_policy_of_ours_does_what_ours_does(here: Path) -> None:
    (here / "copy.py").write_text(
        "from shadowprice.solvers.classic.srtf import Srtf\nCOPY = Srtf('copy')\n"
    )
    ours, copy = (answer(*RUN, name) for name in ("srtf", "copy.py:COPY"))
    differ = {key for key in ours if ours[key] != copy[key]}
    assert differ <= {"policy", "cpu_s", "verify_cpu_s", "jobs_per_cpu_s"}


def test_compare_takes_files_and_lists(here: Path) -> None:
    names = "fifo,mine.py:SEVERAL,mine.py:Widest:window_s=3,las2d:thresholds_gpu_s=5/9"
    found = answer("compare", "jobs.csv", "--cluster", "1x2", "--policies", names)
    assert [row["policy"] for row in found["policies"]] == [
        "fifo",
        "at once",
        "later",
        "mine.py:Widest:window_s=3",
        "las2d:thresholds_gpu_s=5/9",
    ]
    assert all(row["certified"] for row in found["policies"])
    with pytest.raises(
        InputError, match=r"policies mine\.py:Widest, mine\.py:Widest: expected one or"
    ):
        raise (
            call(
                "compare",
                "jobs.csv",
                "--cluster",
                "1x2",
                "--policies",
                "mine.py:Widest,mine.py:Widest",
            ).exception
            or AssertionError
        )
    found = answer(
        "compare",
        "jobs.csv",
        "--cluster",
        "1x2",
        "--policies",
        "mine.py:SEVERAL",
        "--objective",
        "utility",
    )
    assert [row["policy"] for row in found["policies"]] == ["at once", "later"]


def test_certify_a_run_of_ones_own(here: Path) -> None:
    assert call(*RUN, "mine.py:Widest", "-o", "run").exit_code == 0
    (here / "mine.py").unlink()
    assert answer("verify", "run")["policy"] == "mine.py:Widest"
    assert call("certify", "run", "-o", "run.jsonl").exit_code == 0
    assert "mine.py:Widest" in call("verify", "run.jsonl").stdout


def test_the_worst_instance_is_checked_again_only_with_the_policy(here: Path) -> None:
    few = ("--evaluations", 60, "--family", "jobs=3,gpus=2")
    done = call("adversary", "--policy", "mine.py:Widest:window_s=2", *few, "-o", "hard.json")
    assert done.exit_code == 0, done.exception
    stored = HardInstance.read("hard.json")
    assert stored.policy == "mine.py:Widest:window_s=2"
    assert stored.ratio > 1
    refused = call("verify", "hard.json").exception
    assert isinstance(refused, InputError)
    assert "which runs a file; expected it to be given beside the instance" in str(refused)
    again = call("verify", "hard.json", "--policy", stored.policy, "--json")
    assert json.loads(again.stdout)["ratio"] == str(stored.ratio)


def test_no_code_is_run_because_a_document_names_it(here: Path) -> None:
    (here / "trap.py").write_text("open('sprung', 'w').close()\n")
    call("adversary", "--evaluations", 5, "--family", "jobs=2,gpus=1", "-o", "hard.json")
    stored = json.loads((here / "hard.json").read_text())
    for change in (
        {"policy": "trap.py:Own"},
        {"policy": "gavel:model=trap.py:build"},
        {"predictor": "trap.py:guess"},
    ):
        (here / "hard.json").write_text(json.dumps({**stored, **change}))
        assert isinstance(call("verify", "hard.json").exception, InputError)
    assert not (here / "sprung").exists()


def test_placements_predictors_and_allocations(here: Path) -> None:
    ours = answer(*RUN, "srtf")["avg_jct_s"]
    assert answer(*RUN, "srtf", "--placement", "more.py:Placed")["avg_jct_s"] == ours
    assert answer(*RUN, "asrpt", "--predictor", "more.py:guess")["completed"] == 5
    found = answer("allocate", "more.py:Halves", "problem.json")
    assert found["verified"]
    assert found["policy"] == "halves"
    gavel = answer(*RUN, "gavel:more.py:Halves,round_s=10")
    assert gavel["completed"] == 5
    for words, message in (
        (
            ("srtf", "--placement", "more.py:Nothing"),
            "Nothing has no allocator, expected an object",
        ),
        (("asrpt", "--predictor", "more.py:guess_wrong"), "built 3, expected an object with name"),
        (("gavel:more.py:Nothing",), "Nothing has no needs_steps, packed, allocate, expected"),
    ):
        with pytest.raises(InputError, match=message):
            raise call(*RUN, *words).exception or AssertionError


MISTAKES: list[tuple[str, type[ShadowpriceError], str]] = [
    (
        "more.py:Nothing",
        PolicyError,
        r"widest at 0\.0 s: decide returned None, expected a Decision",
    ),
    ("more.py:Broken", PolicyError, r"more\.py, line \d+: ZeroDivisionError: division by zero"),
    ("more.py:Lacking", InputError, "has no name, knows, preemptive, expected a policy"),
    ("more.py:Reads", PolicyError, "reads 'duration', but declares that it knows nothing"),
    ("more.py:Stops", PolicyError, "preempts job 'a', but declares preemptive = False"),
    ("more.py:Past", PolicyError, r"asks to be woken at -1\.0 s, expected a later time"),
    ("more.py:Far", PolicyError, r"asks for job 999 at 0\.0 s"),
    ("more.py:Idle", PolicyError, "leaves 5 jobs waiting for ever"),
    ("more.py:Needs", InputError, r"missing 1 required positional argument: 'more'"),
    ("more.py:Absent", InputError, r"more\.py has no 'Absent'; it defines Nothing"),
    ("more.py", InputError, r"policy 'more\.py': expected FILE\.py:NAME"),
    ("absent.py:Own", InputError, r"absent\.py: No such file or directory"),
    ("mine.py:SEVERAL", InputError, "is a list of 2, expected one"),
    ("fifo:", InputError, "policy 'fifo:': nothing behind the colon, expected NAME=VALUE"),
    ("mine.py:", InputError, "policy 'mine.py:': nothing behind the colon"),
    ("mine.py:Widest:width=3", InputError, "parameter 'width=3', expected NAME=VALUE with one of"),
    ("mine.py:Widest:window_s=x", InputError, "parameter window_s: got 'x', expected a value like"),
    (
        "widest",
        InputError,
        r"policy 'widest': .*that `shadowprice policies --all` lists, or FILE\.py:NAME",
    ),
]


@pytest.mark.parametrize(("name", "kind", "message"), MISTAKES)
def test_a_mistake_is_one_sentence(
    name: str, kind: type[ShadowpriceError], message: str, here: Path
) -> None:
    with pytest.raises(kind, match=message) as caught:
        raise call(*RUN, name).exception or AssertionError
    assert "\n" not in str(caught.value)


def test_the_traceback_is_shown_on_request_only(here: Path) -> None:
    command = [sys.executable, "-m", "shadowprice", *RUN, "more.py:Broken"]
    for debug, shown in (("", False), ("1", True)):
        environment = {**os.environ, "COLUMNS": "200", "SHADOWPRICE_DEBUG": debug}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, env=environment, check=False
        )
        assert done.returncode == 2
        assert ("Traceback" in done.stderr) is shown
        assert ("return 1 / 0" in done.stderr) is shown
        assert ("SHADOWPRICE_DEBUG=1 shows the traceback" in done.stderr) is not shown
        assert "more.py, line 14: ZeroDivisionError: division by zero" in done.stderr
        assert done.stdout == ""


def test_laws(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = call("laws", "mine.py:Widest", "--examples", 2, "--json")
    assert done.exit_code == 0, done.stdout
    assert len(json.loads(done.stdout)) == 22
    assert all(row["holds"] for row in json.loads(done.stdout))
    done = call("laws", "mine.py:Widest:window_s=2", "--examples", 12, "--json")
    broken = {row["law"] for row in json.loads(done.stdout) if not row["holds"]}
    assert done.exit_code == 1
    assert broken == {
        "scaling all times scales all completions",
        "no gpus idle while a job that fits waits",
    }
    declared = ("--waits", "--times", "window_s", "--examples", 2)
    assert call("laws", "mine.py:Widest:window_s=2", *declared).exit_code == 0
    # Which breaks every law: no simplest example of each is looked for.
    monkeypatch.setattr(battery, "PHASES", (Phase.generate,))
    done = call("laws", "more.py:Broken", "--examples", 2)
    assert done.exit_code == 1
    assert "line 14: ZeroDivisionError: division by zero" in done.stdout
    for words, message in (
        (("more.py:Lacking",), "has no name"),
        (("mine.py:Widest", "--scaling", "some"), "scaling 'some': expected one of exact, rounded"),
        (("mine.py:Widest", "--times", "width"), "times has 'width', expected a field"),
    ):
        with pytest.raises(InputError, match=message):
            raise call("laws", *words).exception or AssertionError


OPTIONS = {
    "simulate": ("--policy", "--placement", "--predictor"),
    "compare": ("--policies", "--placement", "--predictor", "--model"),
    "adversary": ("--policy",),
    "execute": ("--policy", "--placement"),
    "allocate": ("policy", "--model"),
    "laws": ("policy",),
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help_says_where_a_file_is_run(command: str) -> None:
    import typer

    group: Any = typer.main.get_command(app)
    known = {}
    for parameter in group.commands[command].params:
        known.update(dict.fromkeys((*parameter.opts, parameter.name), parameter.help or ""))
    for option in OPTIONS[command]:
        if not option.startswith("-") and not known[option]:
            continue  # The lowest Typer with the newest Click keeps no help of arguments.
        assert "FILE.py:NAME, which runs that file with all your rights" in known[option], option


def test_execute_and_go_on(here: Path) -> None:
    words = ("execute", "jobs.yaml", "--hosts", "local:2", "--round", 1, "--state", "state")
    named = (*words, "--policy", "mine.py:Widest:window_s=0.5")
    told = answer(*named, "--dry-run")
    assert told["policy"] == "mine.py:Widest:window_s=0.5"
    done = call(*named)
    assert done.exit_code == 0, done.exception
    assert "2 jobs: 2 finished" in done.stdout
    assert "mine.py:Widest:window_s=0.5: mean JCT of 2 jobs was" in done.stdout
    (here / "mine.py").write_text(POLICIES + "\n")
    changed = call(*named).exception
    assert isinstance(changed, InputError)
    assert "the file of the policy or placement has changed" in str(changed)
    bad = call(*words[:-1], "other", "--policy", "more.py:Broken").exception
    assert isinstance(bad, PolicyError)
    assert "ZeroDivisionError" in str(bad)
