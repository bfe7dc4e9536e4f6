"""Faults for real runs on this machine: what can be killed, stopped, filled and torn.

Each says what it was done to; nothing if there is nothing now that it could be done to.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from shadowprice.hosts.lease_files import read_report
from shadowprice.hosts.live.checkpoints import read_fence
from shadowprice.hosts.supervision.files import read_json
from support.driver_process import left_over, with_number
from support.fault_scene import Scene

DRIVER, EVERYTHING = "driver", "driver, supervisors and commands"
NEAR_THE_END = 40
"""Steps that a job may make between two of its reports, and some more."""


def kill_command(scene: Scene) -> str:
    target = scene.target()
    if target is not None:
        target.signal(signal.SIGKILL, command=True)
    return "" if target is None else target.name


def kill_supervisor(scene: Scene) -> str:
    target = scene.target()
    if target is not None:
        target.signal(signal.SIGKILL, supervisor=True)
    return "" if target is None else target.name


def kill_job(scene: Scene) -> str:
    target = scene.target()
    if target is not None:
        target.signal(signal.SIGKILL, supervisor=True, command=True)
    return "" if target is None else target.name


def kill_driver(scene: Scene) -> str:
    """While it drives; that of the whole node strikes at any time."""
    return _lose_driver(scene, scene.draw.uniform(0.0, 1.5)) if scene.driving() else ""


def driver_away(scene: Scene) -> str:
    return _lose_driver(scene, scene.away_s) if scene.driving() else ""


def stop_driver(scene: Scene) -> str:
    """It sleeps, as when a machine is suspended."""
    if not scene.driver.runs():
        return ""
    sleeps = scene.driver.process
    assert sleeps is not None
    sleeps.send_signal(signal.SIGSTOP)

    def wake() -> bool:
        if sleeps.poll() is None:
            sleeps.send_signal(signal.SIGCONT)
        return True

    scene.after(scene.draw.uniform(0.5, 3.0), wake)
    return DRIVER


def kill_node(scene: Scene) -> str:
    """All there is, at once."""
    if not scene.driver.runs():
        return ""
    scene.killed |= scene.stopped
    pids = left_over(scene.state)
    _lose_driver(scene, scene.draw.uniform(0.0, 1.5))
    for pid in pids:
        with_number(pid, signal.SIGKILL)
    return EVERYTHING


def cut_power(scene: Scene) -> str:
    """All there is, at once, and of files that nobody flushed a part is left, or nothing."""
    targets = scene.targets()
    if not targets or not kill_node(scene):
        return ""
    names = ("supervisor", "lease", "order", "report", "exit")
    for target in targets:
        for path in (target.directory / f"{name}.json" for name in names):
            if path.exists():
                size = scene.draw.choice([0, 0, scene.draw.randrange(path.stat().st_size + 1)])
                os.truncate(path, size)
    return EVERYTHING


def hang(scene: Scene) -> str:
    """One that has reported: of others nobody knows that they ever will."""
    target = scene.target()
    if target is None or not read_report(target.directory):
        return ""
    target.signal(signal.SIGSTOP, command=True)
    return target.name


def stop_supervisor(scene: Scene) -> str:
    """For a while; its command goes on."""
    target = scene.target()
    if target is None or len(scene.stopped) > 1:
        return ""
    target.signal(signal.SIGSTOP, supervisor=True)
    scene.stopped.add(target.directory)

    def wake() -> bool:
        target.signal(signal.SIGCONT, supervisor=True)
        scene.stopped.discard(target.directory)
        return True

    scene.after(scene.draw.uniform(1.0, 8.0), wake)
    return target.name


def stale_worker(scene: Scene) -> str:
    """A worker and its supervisor sleep until another has their job, and then go on.

    However slow the worker is, it is waited for: its own next commit ends it, since the fence shows
    a later epoch, unless it had no more to commit. One that falls asleep in the middle of a commit holds the
    lock of the fence, which nobody can raise before it is through: it goes on at once, and another time will do.
    """
    target = scene.target()
    if target is None or len(scene.stopped) > 1 or not read_report(target.directory):
        return ""
    order = read_json(f"{target.directory}/order.json") or {}
    if "," in order.get("env", {}).get("SHADOWPRICE_DEVICES", ""):
        return ""  # beside the devices of a sleeping gang there may be none for another
    target.signal(signal.SIGSTOP, supervisor=True, command=True)
    while target.runs():
        time.sleep(1e-3)
    if target.holds(target.job / "fence.lock"):
        target.signal(signal.SIGCONT, supervisor=True, command=True)
        return ""
    scene.stopped.add(target.directory)

    def wake() -> bool:
        if read_fence(target.job) <= target.epoch and target.lives():
            return False
        stale = target.lives()
        target.signal(signal.SIGCONT, command=True)

        def finish() -> bool:
            # Its supervisor, which would end it, sleeps on until it has tried to commit.
            if stale and target.lives():
                return False
            if stale and target.directory not in scene.killed:
                scene.stale += 1
                scene.fenced += read_report(target.directory).get("state") == "fenced"
            target.signal(signal.SIGCONT, supervisor=True)
            scene.stopped.discard(target.directory)
            return True

        scene.after(0.0, finish)
        return True

    scene.after(0.5, wake)
    return target.name


def full_folder(scene: Scene) -> str:
    """The checkpoints of one job find no room."""
    target = scene.target()
    if target is None or (target.job / "full").exists():
        return ""
    (target.job / "full").touch()

    def free() -> bool:
        (target.job / "full").unlink(missing_ok=True)
        return True

    scene.after(scene.draw.uniform(0.3, 1.0), free)
    return target.job.name


def full_disk(scene: Scene) -> str:
    """Nothing of the run finds room: ledger, leases, reports, checkpoints."""
    due = scene.mounted and scene.driver.runs() and scene.full_until < time.monotonic()
    if not due or not scene.targets():
        return ""
    filler = scene.state / "filler"

    def refill() -> bool:
        try:
            with filler.open("ab", buffering=0) as file:
                while file.write(bytes(1 << 12)):
                    pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        return time.monotonic() > until and free()

    def free() -> bool:
        filler.unlink()
        return True

    until = time.monotonic() + scene.draw.uniform(0.5, 2.0)
    scene.full_until = until + 3.0
    if not refill():
        scene.after(0.05, refill)
    return "state directory"


def torn_checkpoint(scene: Scene) -> str:
    """A file of the last checkpoint is damaged, by a disk or a person, and the job crashes."""
    target = scene.target()
    try:
        assert target is not None
        last = (target.job / "checkpoints" / "LATEST").read_text().strip()
        found = sorted((target.job / "checkpoints" / last).iterdir())
        before = sorted((target.job / "checkpoints").glob("step-*"))
        if not found or len(before) < 2:
            return ""  # before the second checkpoint there is nothing to go back to
        report = read_report(target.directory)
        if report.get("iterations", 0) - report.get("step", 0) < NEAR_THE_END:
            return ""  # it may end first, and what is damaged after that nobody makes again
        target.signal(signal.SIGKILL, command=True)
        _tear(scene, scene.draw.choice(found))
    except (AssertionError, OSError):
        return ""
    return f"{target.name}, {last}"


def torn_files(scene: Scene) -> str:
    """What a crash in the middle of a write leaves: half a report, a temporary folder."""
    target = scene.target()
    if target is None:
        return ""
    checkpoints = target.job / "checkpoints"
    try:
        what = scene.draw.choice(["report", "lease", "folder", "order"])
        if what == "folder":
            half = checkpoints / f".tmp-half-{scene.draw.randrange(10**6)}"
            half.mkdir(parents=True)
            (half / "parameters.npz").write_bytes(b"PK\x03\x04")
            half = checkpoints / f".tmp-LATEST-{scene.draw.randrange(10**6)}"
            half.write_text("step-0000")
        else:
            path = target.directory / f"{what}.json"
            data = path.read_bytes()
            path.write_bytes(data[: scene.draw.randrange(len(data))])
    except (OSError, ValueError):
        return ""
    return f"{target.name}, {what}"


def _tear(scene: Scene, path: Path) -> None:
    """Truncate a file, flip a bit of it, or remove it."""
    how, size = scene.draw.choice(["cut", "flip", "remove"]), path.stat().st_size
    if how == "remove":
        path.unlink()
        return
    with path.open("r+b") as file:
        at = scene.draw.randrange(size)
        if how == "cut":
            file.truncate(at)
        else:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << scene.draw.randrange(8)]))


def _lose_driver(scene: Scene, wait_s: float) -> str:
    if not scene.driver.runs():
        return ""
    scene.driver.kill()

    def again() -> bool:
        if not scene.driver.runs():
            scene.driver.start()
        return True

    scene.after(wait_s, again)
    return DRIVER


KINDS: dict[str, tuple[Callable[[Scene], str], int]] = {
    "SIGKILL command": (kill_command, 5),
    "SIGKILL supervisor": (kill_supervisor, 5),
    "SIGKILL driver": (kill_driver, 5),
    "driver away longer than the TTL": (driver_away, 1),
    "SIGSTOP driver for a while": (stop_driver, 2),
    "SIGKILL command and supervisor": (kill_job, 4),
    "SIGKILL all and driver (node)": (kill_node, 3),
    "power cut": (cut_power, 2),
    "SIGSTOP command (hang)": (hang, 3),
    "SIGSTOP supervisor for a while": (stop_supervisor, 3),
    "stale worker goes on": (stale_worker, 2),
    "full folder of checkpoints": (full_folder, 3),
    "full disk": (full_disk, 2),
    "damaged checkpoint and crash": (torn_checkpoint, 4),
    "half-written file": (torn_files, 4),
}
"""Name, fault and how often in proportion."""
