"""Whole runs with real processes on this machine: interruption, refusal, and jobs that misbehave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.job import last_checkpoint
from shadowprice.hosts.lease_files import read_supervisor
from shadowprice.hosts.live.checkpoints import adopted
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from support.driver_process import (
    INTERRUPTED,
    Driver,
    kill_left_over,
    left_over,
    wait_until,
    write_jobs,
)
from support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(120),
]

JOB_FILE = ROOT / "shadowprice" / "hosts" / "job.py"
UNAWARE = ROOT / "examples" / "jobs" / "unaware.py"
LIMITS = Limits(poll_s=0.02, grace_s=5.0, confirm_s=3.0, retries=1, back_off_s=0.05, ttl_s=30.0)
COUNTS = """
import json, pathlib, sys, time
sys.path.insert(0, {folder!r})
from job import Lease
total = 0
def save(folder): (folder / "total.json").write_text(json.dumps(total))
def load(folder):
    global total
    total = json.loads((folder / "total.json").read_text())
with Lease() as lease:
    lease.restore(load)
    lease.checkpoints(save, every_steps={every})
    for step in lease.steps():
        total += step
        {step}
"""


def counts(step: str = "time.sleep(0.01)", every: int = 10**9) -> list[str]:
    """A job that adds up its steps, and does something in each."""
    return [
        "{python}",
        "-I",
        "-S",
        "-c",
        COUNTS.format(folder=str(JOB_FILE.parent), step=step, every=every),
    ]


def plain(code: str) -> list[str]:
    """A job that knows nothing of leases."""
    return ["{python}", "-I", "-S", "-c", code]


def job(name: str, command: list[str], iterations: int = 10, **more: object) -> dict[str, object]:
    return {"name": name, "command": command, "iterations": iterations, "throughput": 80} | more


class Case:
    """A run in a folder of its own, in this process or another."""

    def __init__(self, folder: Path, *jobs: dict[str, object], policy: str = "fifo") -> None:
        self.folder, self.state = folder, folder / "state"
        self.jobs = write_jobs(folder / "jobs.yaml", jobs)
        self.settings = Settings(
            self.jobs, policy, "local:2", self.state, round_s=0.0, limits=LIMITS
        )

    def execute(self, on_tick: Callable[[RunLedger], None] | None = None) -> Any:
        return execute(self.settings, on_tick)

    def events(self, kind: str, name: str | None = None) -> list[dict[str, Any]]:
        ledger = RunLedger.open(self.state / "run.db", readonly=True)
        events = [each for each in ledger.events() if each["kind"] == kind]
        ledger.close()
        return [each for each in events if name in (None, each["job"])]

    def lease(self, name: str, epoch: int = 1) -> Path:
        return self.state / "jobs" / name / "leases" / f"e{epoch}-r0"

    def total(self, name: str) -> tuple[int, int]:
        """Step and sum of a job that counts."""
        folder, manifest, _ = last_checkpoint(self.state / "jobs" / name / "checkpoints")
        assert folder is not None
        return manifest["step"], json.loads((folder / "total.json").read_text())


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Case]]:
    made: list[Case] = []

    def case(*jobs: dict[str, object], **more: Any) -> Case:
        made.append(Case(tmp_path, *jobs, **more))
        return made[-1]

    yield case
    for each in made:
        kill_left_over(each.state)


def once(condition: Callable[[], bool], what: Callable[[], object]) -> Callable[[RunLedger], None]:
    """Do something at the first look at the leases after which a condition holds."""
    done: list[object] = []

    def tick(ledger: RunLedger) -> None:
        if not done and condition():
            done.append(what())

    return tick


def reported(lease: Path, step: int) -> bool:
    """Whether a job reported so many steps."""
    try:
        return bool(json.loads((lease / "report.json").read_text())["step"] >= step)
    except (OSError, ValueError):
        return False


def test_ctrl_c_a_second_driver_and_the_same_command_again(
    make: Callable[..., Case], tmp_path: Path
) -> None:
    case = make(job("one", counts(), 400), job("two", counts(), 300))
    driver = Driver(tmp_path, case.jobs, "fifo", hosts="local:2", round_s=0.5)
    try:
        driver.start()
        wait_until(lambda: all(reported(case.lease(name), 10) for name in ("one", "two")))
        with pytest.raises(HostError, match=rf"driver \(process {driver.process.pid}\) executes"):  # type: ignore[union-attr]
            case.execute()
        driver.send(signal.SIGINT)
        assert driver.wait() == INTERRUPTED
        assert left_over(case.state) == []
        for name in ("one", "two"):
            step, total = case.total(name)
            assert 10 <= step < 300
            assert total == sum(range(step))
        assert driver.start().wait() == 0
    finally:
        driver.clean_up()
    summary = json.loads(driver.last_output().splitlines()[-1])
    assert summary == {"jobs": {"one": "finished", "two": "finished"}, "resumed": True}
    assert case.total("one") == (400, sum(range(400)))
    counted = verify_ledger(case.state / "run.db", allowed_loss={"one": 0, "two": 0})
    assert (counted["leases"], counted["drivers"]) == (4, 2)


def test_interrupted_in_this_process_then_resumed_with_other_settings(
    make: Callable[..., Case],
) -> None:
    case = make(job("one", counts(), 200))
    interrupt = once(
        lambda: reported(case.lease("one"), 5), lambda: os.kill(os.getpid(), signal.SIGINT)
    )
    before = signal.getsignal(signal.SIGINT)
    summary = case.execute(interrupt)
    assert summary.interrupted
    assert not summary.resumed
    assert signal.getsignal(signal.SIGINT) is before
    assert left_over(case.state) == []
    for changed, message in (
        ({"policy": "srtf"}, "policy is 'srtf', but its run was begun with 'fifo'"),
        ({"hosts": "local:3"}, "hosts is 'local:3'"),
        ({"round_s": 2.0}, "round_s is 2.0"),
    ):
        with pytest.raises(InputError, match=message):
            execute(replace(case.settings, **changed))  # type: ignore[arg-type]
    kept = case.jobs.read_text()
    case.jobs.write_text(kept.replace("200", "201"))
    with pytest.raises(InputError, match="the job file has changed"):
        case.execute()
    case.jobs.write_text(kept)
    summary = case.execute()
    assert summary.resumed
    assert summary.all_finished
    assert case.total("one") == (200, sum(range(200)))
    again = case.execute()  # of a run that is over: nothing happens
    assert again.all_finished
    assert len(case.events("granted")) == 2


def test_a_damaged_checkpoint_is_told_and_the_one_before_taken(make: Callable[..., Case]) -> None:
    case = make(job("one", counts(every=10), 200))
    case.execute(
        once(lambda: reported(case.lease("one"), 35), lambda: os.kill(os.getpid(), signal.SIGINT))
    )
    step, _ = case.total("one")
    checkpoints = case.state / "jobs" / "one" / "checkpoints"
    (checkpoints / (checkpoints / "LATEST").read_text().strip() / "total.json").write_text("7")
    assert case.total("one")[0] < step
    assert case.execute().all_finished
    assert case.total("one") == (200, sum(range(200)))
    (damaged,) = case.events("damaged")
    before = damaged["data"]["step"]
    assert before == (step - 1) // 10 * 10
    counted = verify_ledger(case.state / "run.db", allowed_loss={"one": 10})
    assert counted["steps_lost"] == step - before


def test_the_mode_of_the_state_directory(make: Callable[..., Case]) -> None:
    case = make(job("one", counts("pass"), 5))
    case.state.mkdir()
    case.state.chmod(0o777)
    with pytest.raises(InputError, match=r"others may write to it, expected .* mode 0700"):
        case.execute()
    case.state.chmod(0o755)
    assert case.execute().all_finished
    assert case.state.stat().st_mode & 0o777 == 0o700
    assert (case.state / "run.db").stat().st_mode & 0o077 == 0
    assert (case.lease("one") / "order.json").stat().st_mode & 0o077 == 0


FORKS = """
import os, time
for child in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
print("forked", flush=True)
"""
LIES = """
import itertools, json, os, pathlib, time
place = pathlib.Path(os.environ["SHADOWPRICE_LEASE"])
values = ["many", -5, 1e300, 10**400, True, None, [1], {"a": 1}, float("nan"), 2**53, 3.5, "\\x1b[2J"]
names = ["step", "begun_at", "steps", "seconds", "timed_steps", "checkpoint_step", "state", "error",
         "iterations", "saving_s"]
for value in values:
    (place / "report.json").write_text(json.dumps(dict.fromkeys(names, value)))
    time.sleep(0.06)
(place / "report.json").write_bytes(b"[" * 100000)
time.sleep(0.06)
(place / "report.json").unlink()
(place / "report.json").symlink_to("/dev/zero")
time.sleep(0.06)
for name in ("lease.json", "supervisor.json"):
    (place / name).write_bytes(b"\\xff{")
time.sleep(0.06)
"""
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
FLOODS = "import os\nfor _ in range(3000): os.write(1, b'x' * 4096)"
GANG = "import os; print(os.environ['SHADOWPRICE_DEVICES'], os.environ['OMP_NUM_THREADS'])"
TELLS = (
    "import os, sys; print('token', os.environ['SECRET'], 7); sys.exit(int(os.environ['SHORT']))"
)
SECRET = "hunter2-correct-horse"


@pytest.fixture(scope="module")
def motley(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Case]:
    """One run of jobs of which most misbehave."""
    case = Case(
        tmp_path_factory.mktemp("motley"),
        job("early", counts("if step == 3: break"), 10),
        job("absent", ["/no/such/program"]),
        job("crash", plain("import sys; print('my last words'); sys.exit(3)")),
        job("lies", plain(LIES)),
        job("forks", plain(FORKS)),
        job("deaf", plain(DEAF)),
        job("floods", plain(FLOODS)),
        job("gang", plain(GANG), gpus=2, env={"SECRET": SECRET}),
        job("tells", plain(TELLS), env={"SECRET": SECRET, "SHORT": "7"}),
        job("good", counts("pass"), 50),
    )
    case.settings = replace(
        case.settings, policy="fifo-skip", limits=replace(LIMITS, grace_s=0.3, hang_s=30.0)
    )

    def cancel(ledger: RunLedger) -> None:
        said = case.lease("deaf") / "output.log"
        if not ledger.cancelled() and said.exists() and said.read_bytes() == b"up\n":
            ledger.update_job("deaf", cancel=1)

    case.summary = case.execute(cancel)  # type: ignore[attr-defined]
    yield case
    kill_left_over(case.state)


class TestJobsThatMisbehave:
    def test_the_others_go_on_and_no_rule_is_broken(self, motley: Case) -> None:
        states = motley.summary.jobs  # type: ignore[attr-defined]
        failed = {name for name, state in states.items() if state == "failed"}
        assert failed == {"tells", "early", "absent", "crash"}
        assert states["deaf"] == "cancelled"
        assert all(states[name] == "finished" for name in states.keys() - failed - {"deaf"})
        verify_ledger(motley.state / "run.db")
        assert left_over(motley.state) == []

    def test_one_that_exits_0_too_early(self, motley: Case) -> None:
        (failed,) = motley.events("failed", "early")
        assert failed["data"]["why"] == "exited 0 at step 3 of 10"
        assert motley.events("gave-up", "early")[0]["data"]["tries"] == 2

    def test_one_whose_program_does_not_exist(self, motley: Case) -> None:
        (failed,) = motley.events("failed", "absent")
        assert "cannot run '/no/such/program'" in failed["data"]["why"]
        assert len(motley.events("gave-up", "absent")) == 1

    def test_one_that_crashes_has_its_last_words_told(self, motley: Case) -> None:
        (failed,) = motley.events("failed", "crash")
        assert failed["data"]["why"] == "exited 3: my last words"

    def test_one_whose_reports_are_lies(self, motley: Case) -> None:
        (released,) = motley.events("released", "lies")
        assert released["data"]["lost_steps"] <= 2**53
        assert motley.events("finished", "lies")[0]["data"]["step"] == 10

    def test_one_that_ignores_sigterm_is_killed(self, motley: Case) -> None:
        (released,) = motley.events("released", "deaf")
        assert released["data"]["forced"] is True
        assert released["data"]["code"] == -9

    def test_one_that_floods_its_output(self, motley: Case) -> None:
        assert (motley.lease("floods") / "output.log").stat().st_size < 5 << 20

    def test_a_gang_has_its_slots_and_threads(self, motley: Case) -> None:
        (granted,) = motley.events("granted", "gang")
        said = (motley.lease("gang") / "output.log").read_text()
        assert said == "localhost/cpu:0,localhost/cpu:1 2\n"
        assert granted["data"]["devices"] == ["localhost/cpu:0", "localhost/cpu:1"]

    def test_environments_are_not_told(self, motley: Case) -> None:
        assert SECRET in (motley.lease("tells") / "output.log").read_text()  # its own affair
        (failed,) = motley.events("gave-up", "tells")
        assert "token [SECRET]" in failed["data"]["why"]
        told = [
            path.relative_to(motley.state)
            for path in motley.state.rglob("*")
            if path.is_file() and SECRET.encode() in path.read_bytes()
        ]
        assert {path.name for path in told} == {"output.log"}, told
        for path in motley.state.rglob("*"):
            assert path.is_symlink() or not path.stat().st_mode & 0o077, path


def test_a_job_without_a_lease_is_preempted_and_goes_on(make: Callable[..., Case]) -> None:
    arguments = ["--checkpoints", "{checkpoint_dir}", "--steps", "200"]
    command = ["{python}", str(UNAWARE), *arguments]
    case = make(job("one", command, 200), job("two", command, 200), policy="las:quantum_s=0.25")
    case.settings = replace(case.settings, hosts="local:1", round_s=0.5)
    summary = case.execute()
    assert summary.all_finished
    assert not case.events("failed")
    epochs = {name: len(case.events("granted", name)) for name in ("one", "two")}
    assert min(epochs.values()) >= 2
    alone = case.folder / "alone"
    subprocess.run(
        [
            sys.executable,
            str(UNAWARE),
            "--checkpoints",
            str(alone),
            "--steps",
            "200",
            "--step-ms=0",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name, epoch in epochs.items():
        assert "goes on at step" in (case.lease(name, epoch) / "output.log").read_text()
        folder = adopted(case.state / "jobs" / name)
        assert folder is not None
        assert (folder / "state.json").read_bytes() == (alone / "state.json").read_bytes()
    verify_ledger(case.state / "run.db")


def test_rounds_without_a_change_restart_nothing(make: Callable[..., Case]) -> None:
    # The third job waits, so that every round decides again.
    jobs = [job("one", counts(), 250), job("two", counts(), 250), job("three", counts("pass"), 5)]
    case = make(*jobs, policy="synergy-greedy:round_s=0.25")
    # A time to live that is over many times, were leases not renewed.
    limits = replace(LIMITS, ttl_s=1.0)
    case.settings = replace(case.settings, round_s=0.25, limits=limits)
    pids: dict[str, set[tuple[int, int]]] = {"one": set(), "two": set()}
    serials: dict[str, set[int]] = {"one": set(), "two": set()}

    def tick(ledger: RunLedger) -> None:
        for name in pids:
            found = read_supervisor(case.lease(name))
            if found is not None:
                pids[name].add((found["pid"], found["command_pid"]))
                lease = json.loads((case.lease(name) / "lease.json").read_text())
                serials[name].add(lease["serial"])

    assert case.execute(tick).all_finished
    ledger = RunLedger.open(case.state / "run.db", readonly=True)
    rounds = [call for call, _ in ledger.answers()].count("events")
    ledger.close()
    assert rounds >= 8  # 2.5 s of rounds of 0.25 s
    for name in pids:
        assert len(pids[name]) == 1
        assert len(serials[name]) >= 6
        assert len(case.events("granted", name)) == len(case.events("running", name)) == 1
        assert not case.events("stop-asked", name)
        assert case.total(name) == (250, sum(range(250)))
    assert len(case.events("decided")) == 2  # what it leads to, not each time


def test_an_outage_of_what_all_jobs_need_ends_none_of_them(
    make: Callable[..., Case], tmp_path: Path
) -> None:
    """Each is tried again more often than for failures of its own, and loses what followed its checkpoint."""
    away = tmp_path / "away"
    command = counts(f"time.sleep(0.01); pathlib.Path({str(away)!r}).exists() and sys.exit(1)", 20)
    case = make(job("one", command, 400), job("two", command, 400))
    began = once(lambda: all(reported(case.lease(name), 60) for name in ("one", "two")), away.touch)

    def tick(ledger: RunLedger) -> None:
        began(ledger)
        if away.exists() and min(len(case.events("failed", name)) for name in ("one", "two")) >= 3:
            away.unlink()

    assert case.execute(tick).all_finished
    for name in ("one", "two"):
        failed = [event["data"]["why"] for event in case.events("failed", name)]
        assert sum("its host failed, which is not counted" in why for why in failed) >= 2
        assert case.total(name) == (400, sum(range(400)))
    assert verify_ledger(case.state / "run.db")["most_lost"] <= 40
