"""Services as processes of their own, to be killed and started again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.service.client import SOCKET, ServiceClient
from support.driver_process import kill_left_over
from support.paths import ROOT

MAIN = "from shadowprice.cli import main; main()"


class Service:
    """``shadowprice serve`` on two CPU slots of this machine, with further options."""

    def __init__(self, folder: Path, *options: str, policy: str = "fifo") -> None:
        self.state, self.log = folder / "pool", folder / "service.log"
        self.arguments = ["serve", str(self.state), "--policy", policy, "--hosts", "local:2"]
        self.arguments += ["--round", "0", "--ttl", "30", "--grace", "3", *options]
        self.client = ServiceClient(self.state / SOCKET)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Service:
        """Start it, and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, *self.arguments],
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 60.0
        while time.monotonic() < until:
            assert self.process.poll() is None, self.said()
            with contextlib.suppress(HostError):
                self.client.state()
                return self
            time.sleep(0.05)
        raise AssertionError(self.said())

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60.0)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def states(self) -> dict[str, str]:
        return {job["name"]: job["state"] for job in self.client.state()["jobs"]}

    def clean_up(self) -> None:
        """Let nothing live: the service first, which would start more."""
        self.kill()
        kill_left_over(self.state)
