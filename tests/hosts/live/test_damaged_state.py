"""Files of a state directory that are damaged while no driver runs: the same command goes on."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowprice.hosts.live.checkpoints import adopt, adopted, prepare
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.ledger import RunLedger
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.log.execution_log import verify_ledger
from support.driver_process import kill_left_over, write_jobs
from support.paths import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux"),
    pytest.mark.timeout(600),
]

UNAWARE = ROOT / "examples" / "jobs" / "unaware.py"
COUNTS = """
import json, sys, time
sys.path.insert(0, {folder!r})
from job import Lease
total = 0
def save(folder): (folder / "total.json").write_text(json.dumps(total))
def load(folder):
    global total
    total = json.loads((folder / "total.json").read_text())
with Lease() as lease:
    lease.restore(load)
    lease.checkpoints(save, every_steps=10)
    for step in lease.steps():
        total += step
        time.sleep(0.01)
"""
STEPS, ROUND_STEPS = 200, 20
LIMITS = Limits(poll_s=0.02, grace_s=5.0, confirm_s=3.0, retries=1, back_off_s=0.05)


def reached(state: Path, epoch: int, step: int) -> bool:
    """Whether the job that counts has committed a step in a lease."""
    try:
        report = (state / f"jobs/counts/leases/e{epoch}-r0/report.json").read_text()
        return bool(json.loads(report)["checkpoint_step"] >= step)
    except (OSError, ValueError, LookupError):
        return False


class Stopped:
    """A run of a job of each kind that was stopped in the middle, to be damaged and resumed again and again."""

    def __init__(self, folder: Path, kill: bool) -> None:
        self.state, self.whole = folder / "state", folder / "whole"
        job_py = str(ROOT / "shadowprice" / "hosts")
        plain = ("{python}", "-I", "-S", "-c", COUNTS.format(folder=job_py))
        unaware = ["{python}", str(UNAWARE), "--checkpoints", "{checkpoint_dir}"]
        unaware += ["--steps", str(STEPS), "--step-ms=10"]
        jobs = write_jobs(
            folder / "jobs.yaml",
            [
                {"name": "counts", "command": plain, "iterations": STEPS},
                {"name": "unaware", "command": unaware, "iterations": STEPS},
            ],
        )
        self.settings = Settings(jobs, "fifo", "local:2", self.state, round_s=0.5, limits=LIMITS)
        # Stopped in order, so that the command that keeps its own checkpoints is continued from them.
        self._execute_until(1, 30)
        self.saved = self._saved(1)
        self._execute_until(2, 80, kill=kill)
        shutil.copytree(self.state, self.whole, symlinks=True)

    def _execute_until(self, epoch: int, step: int, *, kill: bool = False) -> None:
        asked: list[int] = []

        def interrupt(ledger: RunLedger) -> None:
            if not asked and reached(self.state, epoch, step):
                asked.append(1)
                if kill:
                    raise KeyboardInterrupt  # as suddenly as a driver that is killed
                os.kill(os.getpid(), signal.SIGINT)

        try:
            assert execute(self.settings, interrupt).interrupted
        except KeyboardInterrupt:
            kill_left_over(self.state)

    def _saved(self, epoch: int) -> int:
        """Step that the command saved by itself in a lease."""
        text = (self.state / f"jobs/unaware/plain/e{epoch}/state.json").read_text()
        return int(json.loads(text)["step"])

    def files(self) -> list[Path]:
        """All files but the ledger, and those that the unaware command keeps for itself."""
        found = [path for path in self.whole.rglob("*") if path.is_file()]
        names = [path.relative_to(self.whole) for path in found]
        return sorted(
            name
            for name in names
            if name.parts[0] != "run.db" and not ("plain" in name.parts and name.name != "ADOPTED")
        )

    def resume(self, damaged: dict[Path, bytes]) -> int:
        """Go on with the same command after files were damaged; the most steps that a lease lost."""
        shutil.rmtree(self.state)
        shutil.copytree(self.whole, self.state, symlinks=True)
        for name, data in damaged.items():
            (self.state / name).write_bytes(data)
        try:
            assert execute(self.settings).all_finished
        finally:
            kill_left_over(self.state)
        total = max((self.state / "jobs/counts/checkpoints").glob("step-*/total.json")).read_text()
        assert json.loads(total) == sum(range(STEPS))
        (last,) = sorted((self.state / "jobs/unaware/leases").glob("e*-r0/output.log"))[-1:]
        assert int(re.findall(r"goes on at step ([0-9]+)", last.read_text())[0]) >= self.saved
        folder = adopted(self.state / "jobs" / "unaware")
        assert folder is not None
        assert json.loads((folder / "state.json").read_text())["step"] == STEPS
        return verify_ledger(self.state / "run.db")["most_lost"]


@pytest.fixture(scope="module", params=["interrupted", "killed"])
def stopped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stopped]:
    made = Stopped(tmp_path_factory.mktemp("damaged"), request.param == "killed")
    yield made
    kill_left_over(made.state)


def garbled(data: bytes, seed: int) -> bytes:
    """Other bytes in some places, the first among them, which is no UTF-8 then."""
    rng = random.Random(seed)
    changed = bytearray(data or b"?")
    for place in {0, *(rng.randrange(len(changed)) for _ in range(5))}:
        changed[place] = rng.choice((0xFF, 0x00, 0x80))
    return bytes(changed)


DAMAGES = {
    "garbled": lambda data: garbled(data, 1),
    "cut": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
}


def unspared(name: Path) -> bool:
    """True of all but the checkpoint before the last, and what it is made of."""
    return "checkpoints" not in name.parts or name.name == "LATEST"


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_small_files_at_once(stopped: Stopped, damage: str) -> None:
    names = [name for name in stopped.files() if unspared(name)]
    assert len(names) > 20
    whole = {name: (stopped.whole / name).read_bytes() for name in names}
    lost = stopped.resume({name: DAMAGES[damage](data) for name, data in whole.items()})
    assert lost <= 2 * ROUND_STEPS


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_last_checkpoint(stopped: Stopped, damage: str) -> None:
    """The one before it counts, which is at most a round older."""
    folders = sorted((stopped.whole / "jobs/counts/checkpoints").glob("step-*"))
    assert len(folders) == 2
    names = [path.relative_to(stopped.whole) for path in folders[1].iterdir()]
    whole = {name: (stopped.whole / name).read_bytes() for name in names}
    lost = stopped.resume({name: DAMAGES[damage](data) for name, data in whole.items()})
    assert lost <= 2 * ROUND_STEPS


@pytest.mark.slow
def test_each_file_alone(stopped: Stopped) -> None:
    for name in stopped.files():
        data = (stopped.whole / name).read_bytes()
        for damage in DAMAGES.values():
            assert stopped.resume({name: damage(data)}) <= 2 * ROUND_STEPS, name


@pytest.mark.parametrize("damage", [b"\xff\n", b"", b"e", b"e7\n"])
def test_the_adopted_folder_is_known_though_its_name_is_damaged(
    tmp_path: Path, damage: bytes
) -> None:
    for epoch in (1, 2):
        prepare(tmp_path, epoch)
        adopt(tmp_path, epoch)
    prepare(tmp_path, 3)
    assert adopted(tmp_path) == tmp_path / "plain" / "e2"
    (tmp_path / "plain" / "ADOPTED").write_bytes(damage)
    assert adopted(tmp_path) == tmp_path / "plain" / "e2"
    (tmp_path / "plain" / "ADOPTED").unlink()
    assert adopted(tmp_path) is None  # nothing was adopted yet
