"""Drivers as processes of their own, to be killed and started again, and a look at what they left.

As a program it executes the settings that a JSON file gives: ``python driver_process.py FILE``.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shadowprice.errors import ShadowpriceError
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from shadowprice.hosts.supervision.processes import TAG, process
from support.paths import ROOT

INTERRUPTED, REFUSED = 130, 2


def write_jobs(path: Path, jobs: Sequence[Mapping[str, object]]) -> Path:
    """A job file; JSON is YAML."""
    path.write_text(json.dumps({"jobs": list(jobs)}))
    return path


class Driver:
    """A driver that runs, ran, or will run with these settings; ``say`` keeps what it says."""

    def __init__(
        self,
        folder: Path,
        jobs: Path,
        policy: str,
        *,
        hosts: str = "local:4",
        round_s: float = 1.0,
        limits: Mapping[str, float] | None = None,
        state: Path | None = None,
        health_check: Sequence[str] = (),
    ) -> None:
        self.state = state or folder / "state"
        self.settings = folder / "settings.json"
        self.settings.write_text(
            json.dumps(
                {
                    **{"jobs": str(jobs), "policy": policy, "hosts": hosts, "round_s": round_s},
                    **{"state": str(self.state), "limits": dict(limits or {})},
                    "health_check": list(health_check),
                }
            )
        )
        self.output = folder / "driver.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self.started_s = 0.0

    def start(self) -> Driver:
        """Start it, again if it ran before."""
        assert not self.runs()
        others = os.environ.get("PYTHONPATH", "")
        paths = os.pathsep.join(filter(None, (str(ROOT), str(ROOT / "tests"), others)))
        environment = os.environ | {"PYTHONPATH": paths}
        with self.output.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(self.settings)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.starts += 1
        self.started_s = time.monotonic()
        return self

    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def finished(self) -> bool:
        """Whether it left because all jobs are finished."""
        return self.process is not None and self.process.poll() == 0

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def wait(self, within_s: float = 60.0) -> int:
        assert self.process is not None
        return self.process.wait(within_s)

    def last_output(self) -> str:
        """All that any start of it said."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def clean_up(self) -> None:
        """Let nothing live: the driver first, which would start more."""
        self.kill()
        kill_left_over(self.state)


def with_number(pid: int, number: int) -> None:
    """Signal a process if it lives."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def left_over(state: Path) -> list[int]:
    """Supervisors and commands of a state directory that live."""
    tag = os.fsencode(f"{TAG}={state.resolve()}/")
    program = os.fsencode(str(state.resolve() / "supervisor.py"))
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            arguments = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        tagged = any(variable.startswith(tag) for variable in environment)
        if (tagged or program in arguments) and process(int(name)) is not None:
            found.append(int(name))
    return found


def kill_left_over(state: Path) -> None:
    """Let nothing of a state directory live; its driver is gone."""
    until = time.monotonic() + 10.0
    while (left := left_over(state)) and time.monotonic() < until:
        for pid in left:
            with_number(pid, signal.SIGKILL)
        time.sleep(0.02)


def wait_until(condition: Callable[[], Any], within_s: float = 30.0, every_s: float = 0.02) -> Any:
    """What a condition gives once it is true."""
    until = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < until, f"not within {within_s} s"
        time.sleep(every_s)
    return found


def main() -> int:
    """Execute; the last line is the summary, or why it was refused."""
    given: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    given["limits"] = Limits(**given["limits"])
    given |= {key: Path(given[key]) for key in ("jobs", "state")}
    given["health_check"] = tuple(given["health_check"])
    try:
        summary = execute(Settings(**given))
    except ShadowpriceError as error:
        print(f"refused: {type(error).__name__}: {error}", flush=True)
        return REFUSED
    print(json.dumps({"jobs": summary.jobs, "resumed": summary.resumed}), flush=True)
    if summary.interrupted:
        return INTERRUPTED
    return 0 if summary.all_finished else 1


if __name__ == "__main__":
    sys.exit(main())
