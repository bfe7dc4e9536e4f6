"""Ends of leases: what a stop by us makes of a job follows from its steps and its checkpoints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.hosts.live.checkpoints import adopt, adopted, fall_back, prepare
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.lease import Kind, ending
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from shadowprice.hosts.protocol import Exit
from support.driver_process import write_jobs

TARGET = 240

exits = st.builds(
    Exit,
    st.integers(-64, 255),
    st.sampled_from(["exited", "stopped", "expired"]),
    st.booleans(),
)
reports = st.one_of(
    st.just({}), st.integers(0, TARGET).map(lambda step: {"step": step, "steps": step})
)


@given(exits, reports, st.sampled_from(["", "the policy stops it"]))
def test_a_command_that_was_told_to_end_never_fails_by_it(
    one: Exit, report: dict[str, int], stop_why: str
) -> None:
    found = ending([one], report, TARGET, stop_why)
    if one.reason != "exited":
        done = one.code == 0 and report.get("step") == TARGET
        assert found.kind is (Kind.FINISHED if done else Kind.PREEMPTED)
    elif found.kind is Kind.FINISHED:
        assert one.code == 0
        assert report.get("step") in (None, TARGET)


@given(exits, st.integers(0, 255), st.sampled_from(["", "the policy stops it"]))
def test_a_command_without_steps_says_which_exit_means_done(
    one: Exit, done: int, stop_why: str
) -> None:
    found = ending([one], {}, TARGET, stop_why, done)
    assert (found.kind is Kind.FINISHED) == (one.code == done)
    steps = {"step": TARGET - 1}
    assert ending([one], steps, TARGET, stop_why, done).kind is not Kind.FINISHED


def test_the_failure_of_one_rank_is_not_hidden_by_the_stop_of_the_others() -> None:
    ranks = [Exit(-15, "stopped"), Exit(1, "exited", detail="boom"), Exit(0, "stopped")]
    found = ending(ranks, {"step": 3}, TARGET, "another rank of the gang ended")
    assert (found.kind, found.why) == (Kind.FAILED, "exited 1: boom")


def test_a_folder_that_may_be_torn_gives_way_to_the_one_before(tmp_path: Path) -> None:
    def epoch(number: int) -> Path:
        prepare(tmp_path, number)
        return tmp_path / "plain" / f"e{number}"

    (epoch(1) / "state").write_text("1")
    adopt(tmp_path, 1, whole=True)
    (epoch(2) / "state").write_text("2")
    adopt(tmp_path, 2, whole=False)
    adopt(tmp_path, 2, whole=False)  # by a driver that takes over
    (epoch(3) / "state").write_text("torn")
    adopt(tmp_path, 3, whole=False)
    assert not (tmp_path / "plain" / "e1").exists()
    epoch(4)
    fall_back(tmp_path)
    fall_back(tmp_path)
    found = adopted(tmp_path)
    assert found is not None
    assert (found / "state").read_text() == "2"
    (epoch(5) / "state").write_text("5")
    adopt(tmp_path, 5, whole=True)
    fall_back(tmp_path)
    assert [path.name for path in (tmp_path / "plain").glob("e*")] == ["e5"]
    assert adopted(tmp_path) == tmp_path / "plain" / "e5"


def test_the_first_folder_that_may_be_torn_gives_way_to_none(tmp_path: Path) -> None:
    prepare(tmp_path, 1)
    adopt(tmp_path, 1, whole=False)
    assert adopted(tmp_path) is not None
    fall_back(tmp_path)
    assert adopted(tmp_path) is None


TRAINS = """
import json, os, signal, sys, time
from pathlib import Path
out, how, steps = Path(sys.argv[1]), sys.argv[2], 60
state = out / "state.json"
step = json.loads(state.read_text()) if state.exists() else 0
log = open(sys.argv[3], "a")
def save():
    (out / "new").write_text(json.dumps(step)); os.replace(out / "new", state)
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
while step < steps:
    step += 1
    print(step, file=log, flush=True)
    time.sleep(0.02)
    if asked:
        save()
        sys.exit(int(how))
save()
print("done", file=log, flush=True)
sys.exit(7 if how == "7" else 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
@pytest.mark.timeout(120)
def test_no_exit_code_at_our_sigterm_loses_or_repeats_steps(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    hows = {"zero": "0", "one": "1", "interrupted": "130", "seven": "7"}
    jobs = [
        {
            "name": name,
            "command": [
                "{python}",
                "-I",
                "-S",
                str(tmp_path / "train.py"),
                "{checkpoint_dir}",
                how,
                str(tmp_path / f"{name}.log"),
            ],
            "iterations": 60,
            "throughput": 50,
        }
        for name, how in hows.items()
    ]
    jobs[-1] |= {"done_exit_code": 7, "throughput": 10}
    settings = Settings(
        write_jobs(tmp_path / "jobs.yaml", jobs),
        "las:quantum_s=0.25",
        "local:2",
        tmp_path / "state",
        round_s=0.5,
        limits=Limits(poll_s=0.02, grace_s=20.0),
    )
    summary = execute(settings)
    ledger = RunLedger.open(tmp_path / "state" / "run.db", readonly=True)
    events = ledger.events()
    ledger.close()
    assert not [each for each in events if each["kind"] in ("failed", "gave-up")]
    stopped = {each["job"] for each in events if each["kind"] == "stop-asked"}
    assert stopped >= {"zero", "one", "interrupted"}, json.dumps(events)
    for name in hows:
        lines = (tmp_path / f"{name}.log").read_text().split()
        if name == "seven" and lines[-1] != "done":
            # Its code says that it is done, so it was taken at its word when it was stopped.
            assert lines == [str(step) for step in range(1, len(lines) + 1)]
        else:
            assert lines[:60] == [str(step) for step in range(1, 61)], name
            # Asked to end at its very end, it is started again to say so.
            assert set(lines[60:]) == {"done"}, name
    assert summary.all_finished
    verify_ledger(tmp_path / "state" / "run.db")
