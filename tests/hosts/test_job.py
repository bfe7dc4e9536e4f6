"""The job's side of a lease: commits, fences, faults, stops."""

from __future__ import annotations

import ast
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.hosts import job
from shadowprice.hosts import job as job_module
from shadowprice.hosts.job import (
    PREEMPTED,
    Fenced,
    Lease,
    LeaseError,
    commit,
    last_checkpoint,
)

SOURCE = Path(job_module.__file__)


class Numbers:
    """A training whose state depends on every batch and their order."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def save(self, folder: Path) -> None:
        (folder / "seen.json").write_text(json.dumps(self.seen))
        (folder / "deep").mkdir()
        (folder / "deep" / "length.txt").write_text(str(len(self.seen)))

    def load(self, folder: Path) -> None:
        self.seen = json.loads((folder / "seen.json").read_text())
        assert (folder / "deep" / "length.txt").read_text() == str(len(self.seen))


class State:
    """A job's folder in a state directory, and the leases of it."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.job, self.monkeypatch = root / "jobs" / "a", monkeypatch
        self.checkpoints = self.job / "checkpoints"

    def grant(self, epoch: int, iterations: int = 10, **more: object) -> Path:
        lease = self.job / "leases" / f"e{epoch}-r0"
        lease.mkdir(parents=True)
        (self.job / "fence").write_text(f"{epoch}\n")
        for name in list(os.environ):
            if name.startswith("SHADOWPRICE_"):
                self.monkeypatch.delenv(name)
        values = {
            "LEASE": lease,
            "JOB": "a",
            "EPOCH": epoch,
            "JOB_DIRECTORY": self.job,
            "ITERATIONS": iterations,
            "RANK": 0,
        } | more
        for name, value in values.items():
            self.monkeypatch.setenv(f"SHADOWPRICE_{name}", str(value))
        return lease

    def latest(self) -> str:
        return (self.checkpoints / "LATEST").read_text().strip()

    def everything(self) -> dict[str, bytes]:
        """All that is on disk below the job's folder, leases and lock left out."""
        return {
            str(path.relative_to(self.job)): path.read_bytes()
            for path in self.job.rglob("*")
            if path.is_file() and "leases" not in path.parts and path.name != "fence.lock"
        }


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    yield State(tmp_path, monkeypatch)
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before


def report_of(lease: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lease / "report.json").read_text())
    return found


def train(numbers: Numbers, stop_after: int | None = None, **options: Any) -> int:
    """Run a lease over the loader 0..3 to its end, or to a SIGTERM in a step; its exit code."""

    def body() -> None:
        with Lease() as lease:
            lease.restore(numbers.load)
            lease.checkpoints(numbers.save, **options)
            begun = lease.step
            for batch in lease.steps(range(4)):
                numbers.seen.append(batch)
                if stop_after is not None and lease.step - begun == stop_after:
                    os.kill(os.getpid(), signal.SIGTERM)

    return code_of(body)


def code_of(body: Callable[[], None]) -> int:
    """Exit code of a process that ends with this."""
    try:
        body()
    except SystemExit as error:
        return int(error.code or 0)
    return 0


def test_a_lease_reports_commits_and_finishes(state: State) -> None:
    lease = state.grant(7)
    assert train(Numbers()) == 0
    assert state.latest() == "step-000000000010.epoch-7"
    manifest = json.loads((state.checkpoints / state.latest() / "manifest.json").read_text())
    assert (manifest["step"], manifest["epoch"]) == (10, 7)
    assert set(manifest["files"]) == {"seen.json", "deep/length.txt"}
    report = report_of(lease)
    expected = {"step": 10, "begun_at": 0, "steps": 10, "timed_steps": 9, "checkpoint_step": 10}
    assert (
        report.items() >= (expected | {"state": "finished", "iterations": 10, "error": ""}).items()
    )
    assert report["seconds"] >= 0.0
    assert report["saving_s"] > 0.0


@settings(max_examples=15)
@given(
    stops=st.lists(st.integers(1, 12), max_size=4),
    iterations=st.integers(1, 30),
    every=st.integers(1, 5),
)
def test_an_interrupted_run_sees_what_an_uninterrupted_one_does(
    stops: list[int], iterations: int, every: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        state = State(Path(folder), patch)
        code = PREEMPTED
        for epoch, stop in enumerate([*stops, None], start=1):
            lease = state.grant(epoch, iterations)
            numbers = Numbers()  # as a new process has it
            code = train(numbers, stop, every_steps=every)
            assert report_of(lease)["state"] == ("finished" if code == 0 else "preempted")
            assert report_of(lease)["checkpoint_step"] == len(numbers.seen)
            if code == 0:
                break
        assert code == 0
        assert numbers.seen == [step % 4 for step in range(iterations)]


def test_checkpoints_where_they_are_wanted(state: State) -> None:
    """The form without registration: in the loop, and after it."""
    lease_folder = state.grant(1)
    numbers, made = Numbers(), []
    with Lease() as lease:
        for batch in lease.steps(range(4)):
            numbers.seen.append(batch)
            if lease.step in (3, 8):
                lease.checkpoint(numbers.save)
                made.append(state.latest())
        lease.checkpoint(numbers.save)
        lease.checkpoint(lambda folder: pytest.fail("committed already"))
    assert made == ["step-000000000003.epoch-1", "step-000000000008.epoch-1"]
    assert state.latest() == "step-000000000010.epoch-1"
    kept = {path.name for path in state.checkpoints.iterdir()}
    assert kept == {"LATEST", "step-000000000008.epoch-1", "step-000000000010.epoch-1"}
    assert report_of(lease_folder)["timed_steps"] == 9


def test_time_is_of_steps_alone(state: State) -> None:
    """Without the first step and without checkpoints."""
    folder = state.grant(1, 4)

    def slow_save(into: Path) -> None:
        time.sleep(0.4)

    with Lease() as lease:
        lease.checkpoints(slow_save, every_steps=2)
        for step in lease.steps():
            time.sleep(0.5 if step == 0 else 0.02)
            lease.checkpoint(slow_save)
    report = report_of(folder)
    assert report["timed_steps"] == 3
    assert 0.06 <= report["seconds"] < 0.36
    assert report["saving_s"] >= 0.4


def test_rounds_bound_the_time_between_checkpoints(state: State) -> None:
    state.grant(1, 100, CHECKPOINT_S=0.05)
    made = []
    with Lease(rank=0) as lease:
        lease.checkpoints(lambda folder: made.append(lease.step), every_s=3600)
        for _ in lease.steps():
            time.sleep(0.005)
    assert len(made) > 3
    assert made[-1] == 100


# ---------------------------------------------------------------- fences


def test_a_stale_lease_changes_nothing(state: State) -> None:
    numbers = Numbers()
    folder = state.grant(1)
    before = {}

    def body() -> None:
        with Lease() as lease:
            for batch in lease.steps(range(4)):
                numbers.seen.append(batch)
                if lease.step == 3:
                    lease.checkpoint(numbers.save)
                if lease.step == 5:
                    (state.job / "fence").write_text("2\n")
                    before.update(state.everything())
                    lease.checkpoint(numbers.save)

    assert code_of(body) == PREEMPTED
    assert state.everything() == before
    assert "checkpoints/step-000000000003.epoch-1/seen.json" in before
    assert report_of(folder)["state"] == "fenced"
    assert "shows '2', not our epoch 1" in report_of(folder)["error"]


@pytest.mark.parametrize("shown", ["", "6", "8", "07", "seven"])
def test_any_other_fence_refuses(state: State, shown: str) -> None:
    state.grant(7)
    (state.job / "fence").write_text(shown)
    about = {"step": 1, "epoch": 7, "seconds": 0.0}
    with pytest.raises(Fenced, match="not our epoch 7"):
        commit(state.checkpoints, Numbers().save, about, state.job / "fence")
    assert list(state.checkpoints.iterdir()) == []


def test_the_fence_is_compared_under_its_lock(state: State) -> None:
    """Who raises the fence while a commit waits for the lock wins."""
    import fcntl

    state.grant(1)
    refused = threading.Event()

    def stale() -> None:
        try:
            about = {"step": 1, "epoch": 1, "seconds": 0.0}
            commit(state.checkpoints, Numbers().save, about, state.job / "fence")
        except Fenced:
            refused.set()

    with open(state.job / "fence.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        worker = threading.Thread(target=stale)
        worker.start()
        time.sleep(0.2)
        assert worker.is_alive()
        (state.job / "fence").write_text("2\n")
    worker.join(timeout=10)
    assert refused.is_set()


# ---------------------------------------------------------------- faults


def checkpointed(state: State) -> None:
    """Checkpoints of steps 4 and 8."""
    state.grant(1)
    assert train(Numbers(), stop_after=4) == PREEMPTED
    state.grant(2)
    assert train(Numbers(), stop_after=4) == PREEMPTED


@settings(max_examples=25)
@given(data=st.data())
def test_a_torn_checkpoint_is_skipped(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        state = State(Path(folder), patch)
        checkpointed(state)
        last = state.checkpoints / state.latest()
        torn = data.draw(st.sampled_from(sorted(p for p in last.rglob("*") if p.is_file())))
        content = torn.read_bytes()
        place = data.draw(st.integers(0, 9999)) % len(
            content
        )  # times in the manifest vary in length
        if data.draw(st.booleans(), label="truncated"):
            torn.write_bytes(content[:place])
        elif data.draw(st.booleans(), label="missing"):
            torn.unlink()
        else:
            changed = bytearray(content)
            changed[place] ^= 1 << data.draw(st.integers(0, 7))
            torn.write_bytes(bytes(changed))
        numbers = Numbers()
        lease_folder = state.grant(3)
        with Lease() as lease:
            assert lease.restore(numbers.load)
            step, told = lease.step, report_of(lease_folder)["error"]
            numbers.seen += [b for b in lease.steps(range(4))]
            lease.checkpoint(numbers.save)
        if step == 4:
            assert "step-000000000008.epoch-2 is damaged" in told
        else:  # 1e-05 has become 1E-05
            assert torn.name == "manifest.json"
            assert json.loads(changed) == json.loads(content)
        assert numbers.seen == [i % 4 for i in range(10)]
        # What is damaged is not kept in place of what is not.
        kept = {path.name for path in state.checkpoints.iterdir()} - {"LATEST"}
        assert kept == {f"step-{step:012d}.epoch-{step // 4}", "step-000000000010.epoch-3"}


@pytest.mark.parametrize(
    ("written", "torn"),
    [('"seconds"', '"secondr"'), ('"sha256"', '"sha257"'), ('"seconds": ', '"seconds": 4')],
)
def test_a_torn_manifest_is_skipped(state: State, written: str, torn: str) -> None:
    checkpointed(state)
    manifest = state.checkpoints / state.latest() / "manifest.json"
    text = manifest.read_text()
    position = text.rindex(written)
    manifest.write_text(text[:position] + torn + text[position + len(written) :])
    folder, _, troubles = last_checkpoint(state.checkpoints)
    assert folder is not None
    assert folder.name == "step-000000000004.epoch-1"
    assert "its manifest is not as written" in troubles[0]


def test_a_manifest_of_an_earlier_version_is_read(state: State) -> None:
    """It has no digest of itself."""
    checkpointed(state)
    manifest = state.checkpoints / state.latest() / "manifest.json"
    told = json.loads(manifest.read_text())
    del told["sha256"]
    manifest.write_text(json.dumps(told))
    folder, found, troubles = last_checkpoint(state.checkpoints)
    assert (folder, found, troubles) == (manifest.parent, told, [])


@pytest.mark.parametrize("content", ["step-000000000099.epoch-9\n", "", "../../x\n", "\x00", None])
def test_latest_may_be_wrong(state: State, content: str | None) -> None:
    checkpointed(state)
    latest = state.checkpoints / "LATEST"
    if content is None:
        latest.unlink()
    else:
        latest.write_text(content)
    folder, manifest, _ = last_checkpoint(state.checkpoints)
    assert folder == state.checkpoints / "step-000000000008.epoch-2"
    assert manifest["step"] == 8


def lines_of_a_commit(act: Callable[[], object], stop_at: int | None) -> int:
    """Run in a child that dies like by SIGKILL at a line of the module; the lines it executed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def trace(frame: Any, event: str, arg: object) -> Any:
            nonlocal count
            if frame.f_code.co_filename != str(SOURCE):
                return None
            if event == "line":
                count += 1
                if count == stop_at:
                    os._exit(9)
            return trace

        sys.settrace(trace)
        act()
        sys.settrace(None)
        os.write(writer, str(count).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        text = told.read()
    assert os.waitstatus_to_exitcode(status) == (9 if stop_at else 0)
    return int(text or 0)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_kill_at_any_line_of_a_commit_leaves_a_whole_checkpoint(state: State) -> None:
    checkpointed(state)
    numbers = Numbers()
    numbers.seen = [i % 4 for i in range(10)]
    state.grant(3)
    original = state.job.with_name("original")
    shutil.copytree(state.job, original)

    def act() -> None:
        about = {"step": 10, "epoch": 3, "seconds": 0.0}
        commit(state.checkpoints, numbers.save, about, state.job / "fence")

    lines = lines_of_a_commit(act, None)
    assert lines > 30
    steps = set()
    for line in range(1, lines + 1):
        shutil.rmtree(state.job)
        shutil.copytree(original, state.job)
        lines_of_a_commit(act, line)
        restored = Numbers()
        folder, manifest, troubles = last_checkpoint(state.checkpoints)
        assert folder is not None
        restored.load(folder)
        assert len(restored.seen) == manifest["step"]
        assert troubles == []
        steps.add(manifest["step"])
        act()  # and the next commit succeeds, and cleans up
        assert state.latest() == "step-000000000010.epoch-3"
        assert not list(state.checkpoints.glob(".tmp-*"))
    assert steps == {8, 10}


def test_a_full_disk_stops_nothing_but_the_last_checkpoint(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers, folder = Numbers(), state.grant(1)
    full, told = [False], []

    def save(into: Path) -> None:
        (into / "half").write_text("x" * 100)
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        numbers.save(into)

    with Lease() as lease:
        lease.checkpoints(save, every_steps=2)
        for batch in lease.steps(range(4)):
            numbers.seen.append(batch)
            full[0] = lease.step in (4, 6)
            told.append(report_of(folder))
            assert not list(state.checkpoints.glob(".tmp-*"))
    assert state.latest() == "step-000000000010.epoch-1"
    assert [report["checkpoint_step"] for report in told[2::2]] == [2, 2, 2, 8]
    assert "No space left" in told[4]["error"]
    assert report_of(folder).items() >= {"state": "finished", "error": ""}.items()

    folder = state.grant(2, 12)

    def body() -> None:
        with Lease() as lease:
            lease.restore(numbers.load)
            lease.checkpoints(save)
            for _ in lease.steps():
                full[0] = True

    monkeypatch.setattr(job, "SAVE_AGAIN_S", 0.01)
    monkeypatch.setattr(job, "LAST_SAVE_S", 0.03)
    with pytest.raises(LeaseError, match=r"no checkpoint of step 12: .*No space left"):
        body()
    assert state.latest() == "step-000000000010.epoch-1"
    assert report_of(folder)["state"] == "failed"


def test_the_last_checkpoint_waits_for_space(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost where there is some soon; what is no want of space is not waited for."""
    monkeypatch.setattr(job, "SAVE_AGAIN_S", 0.01)
    tries: list[int] = []

    def train(number: int) -> None:
        def save(into: Path) -> None:
            tries.append(number)
            if len(tries) < 4:
                raise OSError(number, os.strerror(number))
            (into / "state").write_text("whole")

        with Lease() as lease:
            lease.checkpoints(save)
            for _ in lease.steps():
                pass

    folder = state.grant(1, 5)
    train(errno.EDQUOT)
    assert len(tries) == 4
    assert report_of(folder).items() >= {"state": "finished", "checkpoint_step": 5}.items()
    tries.clear()
    state.grant(2, 9)
    with pytest.raises(LeaseError, match="no checkpoint of step 9"):
        train(errno.EIO)
    assert len(tries) == 1


def test_errors_of_a_job_are_reported(state: State) -> None:
    folder = state.grant(1)

    def body() -> None:
        with Lease() as lease:
            for step in lease.steps():
                if step == 3:
                    raise ZeroDivisionError("in step 4")

    with pytest.raises(ZeroDivisionError):
        body()
    expected = {"state": "failed", "error": "ZeroDivisionError: in step 4", "step": 3}
    assert report_of(folder).items() >= expected.items()


def test_leaving_early_has_failed(state: State) -> None:
    folder = state.grant(1)
    with Lease() as lease:
        for step in lease.steps():
            if step == 3:
                break
    assert report_of(folder)["state"] == "failed"
    assert report_of(folder)["error"] == "left at step 3 of 10"


def test_a_report_that_cannot_be_written_stops_nothing(
    state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = state.grant(1)
    with Lease() as lease:
        shutil.rmtree(folder)
        assert list(lease.steps()) == list(range(10))
        lease.checkpoint(Numbers().save)
    assert "no report" in capsys.readouterr().err


# ---------------------------------------------------------------- ranks, threads, no scheduler


def test_other_ranks_neither_commit_nor_report(state: State) -> None:
    folder = state.grant(1, RANK=1)
    assert train(Numbers()) == 0
    assert not state.checkpoints.exists()
    assert not (folder / "report.json").exists()
    state.grant(2)
    with Lease(rank=3) as lease:
        assert lease.rank == 3
        list(lease.steps())
        lease.checkpoint(Numbers().save)
    assert not state.checkpoints.exists()


def test_ranks_stop_after_the_same_step(state: State) -> None:
    """Two ranks in threads; only the second is asked, in its third step."""
    state.grant(1, 1000)
    barrier, asked, ended = threading.Barrier(2, timeout=10), [False, False], [0, 0]

    def agree_for(rank: int) -> Callable[[bool], bool]:
        def agree(flag: bool) -> bool:
            asked[rank] = flag
            barrier.wait()
            answer = any(asked)
            barrier.wait()
            return answer

        return agree

    def work(rank: int) -> None:
        with Lease(rank=rank, agree=agree_for(rank)) as lease:
            for step in lease.steps():
                if rank == 1 and step == 2:
                    lease.stop()
            ended[rank] = lease.step

    workers = [threading.Thread(target=code_of, args=[partial(work, rank)]) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=20)
    assert ended == [3, 3]


def test_without_a_scheduler_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("SHADOWPRICE_")]:
        monkeypatch.delenv(name)
    numbers = Numbers()

    def body() -> None:
        with Lease(iterations=9, directory="own") as lease:
            lease.checkpoints(numbers.save)
            for batch in lease.steps(range(4)):
                numbers.seen.append(batch)
                if lease.step == 5:
                    os.kill(os.getpid(), signal.SIGTERM)

    assert code_of(body) == PREEMPTED
    again = Numbers()
    with Lease(iterations=9, directory="own") as lease:
        assert lease.restore(again.load)
        lease.checkpoints(again.save)
        again.seen += list(lease.steps(range(4)))
    assert again.seen[:5] == numbers.seen
    assert (tmp_path / "own" / "step-000000000009.epoch-0").is_dir()
    # A damaged checkpoint of the one epoch there is gives way to a whole one of the same step.
    (tmp_path / "own" / "step-000000000009.epoch-0" / "seen.json").write_text("[]")
    with Lease(iterations=9, directory="own") as lease:
        lease.restore(again.load)
        assert lease.step == 5
        again.seen += list(lease.steps(range(4)))
        lease.checkpoint(again.save)
    assert last_checkpoint(tmp_path / "own")[1]["step"] == 9
    # And without a number of iterations it is one pass.
    with Lease() as lease:
        assert list(lease.steps("abc")) == ["a", "b", "c"]


def test_shuffling_loaders_are_told_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHADOWPRICE_LEASE", raising=False)

    class Loader:
        def __init__(self) -> None:
            self.sampler, self.turn = self, -1

        def set_epoch(self, turn: int) -> None:
            self.turn = turn

        def __len__(self) -> int:
            return 3

        def __iter__(self) -> Iterator[tuple[int, int]]:
            return iter([(self.turn, place) for place in range(3)])

    everything = [divmod(step, 3) for step in range(8)]
    with Lease(iterations=8) as lease:
        assert list(lease.steps(Loader())) == everything
    with Lease(iterations=8) as lease:
        lease.step = 4
        assert list(lease.steps(Loader())) == everything[4:]


def test_a_stream_has_no_length_even_if_it_seems_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a DataLoader of an IterableDataset: there is a ``__len__``, which raises."""
    monkeypatch.delenv("SHADOWPRICE_LEASE", raising=False)

    class Stream:
        def __len__(self) -> int:
            raise TypeError("object of type 'Stream' has no len()")

        def __iter__(self) -> Iterator[int]:
            return iter(range(3))

    with Lease(iterations=7) as lease:
        lease.step = 4
        assert list(lease.steps(Stream())) == [0, 1, 2]


def test_an_empty_loader_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHADOWPRICE_LEASE", raising=False)
    with pytest.raises(LeaseError, match="gave no batch"), Lease(iterations=3) as lease:
        list(lease.steps(iter([1, 2])))
    with pytest.raises(LeaseError, match="a loader with a length"), Lease() as lease:
        list(lease.steps(each for each in [1, 2]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EPOCH", "one"),
        ("EPOCH", ""),
        ("EPOCH", "-1"),
        ("ITERATIONS", "0"),
        ("ITERATIONS", "1e3"),
        ("RANK", "-2"),
        ("CHECKPOINT_S", "nan"),
        ("LEASE", "/nowhere/at/all"),
        ("JOB_DIRECTORY", ""),
    ],
)
def test_a_wrong_environment_is_named(state: State, name: str, value: str) -> None:
    state.grant(1, **{name: value})
    with pytest.raises(LeaseError, match=f"SHADOWPRICE_{name}='{value}': expected"):
        Lease()


def test_wrong_arguments_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHADOWPRICE_LEASE", raising=False)
    with (
        pytest.raises(LeaseError, match=r"expected Lease\(iterations=1\) or more"),
        Lease(iterations=-1) as lease,
    ):
        list(lease.steps())
    with Lease(iterations=1) as lease:
        with pytest.raises(LeaseError, match=r"every_s=-1.*expected more than 0"):
            lease.checkpoints(print, every_s=-1)
        list(lease.steps())


def test_a_manifest_of_ones_own_is_counted(state: State) -> None:
    """The name is taken at the top only."""
    state.grant(1)

    def save(folder: Path) -> None:
        (folder / "deep").mkdir()
        (folder / "deep" / "manifest.json").write_text("mine")

    about = {"step": 1, "epoch": 1, "seconds": 0.0}
    made = commit(state.checkpoints, save, about, state.job / "fence")
    assert set(json.loads((made / "manifest.json").read_text())["files"]) == {"deep/manifest.json"}


# ---------------------------------------------------------------- one file

SCRIPT = """
import json, pathlib
from job import Lease
seen = []
def save(folder): (folder / "seen.json").write_text(json.dumps(seen))
def load(folder): seen.extend(json.loads((folder / "seen.json").read_text()))
with Lease(iterations=7) as lease:
    lease.restore(load)
    lease.checkpoints(save)
    for step in lease.steps():
        seen.append(step)
        if len(seen) == 3 and not pathlib.Path("stopped").exists():
            pathlib.Path("stopped").touch()
            lease.stop()
print(seen)
"""


def test_a_copy_alone_runs(tmp_path: Path) -> None:
    shutil.copy(SOURCE, tmp_path / "job.py")
    run = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT}"
    codes, out = [], ""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", run],
            cwd=tmp_path,
            env={},
            capture_output=True,
            text=True,
            timeout=60,
        )
        codes.append(done.returncode)
        out = done.stdout
    assert codes == [PREEMPTED, 0]
    assert out.strip() == str(list(range(7)))


def test_it_imports_the_standard_library_only() -> None:
    names = set()
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names <= set(sys.stdlib_module_names)
