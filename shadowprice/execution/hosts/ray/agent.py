"""The actor that stands on each node: it starts supervisors and reads and writes lease files there.

Ray carries its code to the nodes by value, so that they need Ray and the state directory, not this
package. It returns plain data. What it starts does not depend on it:
supervisors are no children of the actor, live on when it or Ray's node process dies, and are found
again by their files; without a renewal they end by their time to live.
"""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shadowprice.execution.hosts.lease_files import (
    LeaseReader,
    ask_stop,
    read_supervisor,
    read_text_tail,
    renew,
    supervisor_argv,
    supervisor_lives,
    void,
)
from shadowprice.execution.supervision.files import read_json, take_lock, write_text
from shadowprice.execution.supervision.processes import TAG, bury, processes

LAUNCHER = """
import os, sys
for directory in sys.argv[2:]:
    if os.fork() == 0:
        os.setsid()
        log = os.open(directory + "/supervisor.log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 2)
        os.execv(sys.executable, [sys.executable, "-I", "-S", sys.argv[1], directory])
"""
"""Starts supervisors and ends, so that they have no parent that Ray would kill them with."""

LAUNCH_S = 30.0
"""After which a supervisor that has not come will not come."""
BEGIN_S = 2.0
"""After which a supervisor that holds its lock has begun its command."""
IDLE_S = 900.0
"""Without a driver and without a lease for so long, the actor gives its node back."""
PLAIN = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS")

Answer = tuple[str, dict[str, Any], tuple[int, str, bool, str] | None]
"""Phase, report, and code, reason, forced and detail of the exit."""


def visible_device() -> str:
    """GPU as a process in a slot sees it: an index, or a UUID."""
    import ray

    return str(ray.get_runtime_context().get_accelerator_ids()["GPU"][0])


def list_gpus() -> dict[str, str]:
    """UUID of each GPU of this node by index; empty if the driver's tool is missing or fails."""
    query = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=10.0, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.split(",") for line in done.stdout.splitlines() if line.count(",") == 1)
    return {index.strip(): uuid.strip() for index, uuid in pairs}


def clean_environment() -> dict[str, str]:
    """The node's environment without what Ray sets for its own workers."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in PLAIN or not name.startswith("RAY_")
    }
    for name in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "PYTHONBREAKPOINT"):
        kept.pop(name, None)
    return kept


class Agent:
    """Hands of the driver on one node.

    Parameters
    ----------
    state : str
        State directory, as the driver names it.
    idle_s : float
        How long it waits for a driver that does not come back [s].
    """

    def __init__(self, state: str, idle_s: float) -> None:
        self._state = Path(state)
        self._claims: list[str] = []
        self._idle_s = idle_s
        self._called_s = time.monotonic()
        self._launched: dict[str, float] = {}
        self._readers: dict[str, LeaseReader] = {}
        self._launchers: list[subprocess.Popen[bytes]] = []
        self._minding = False

    def hold(self, claims: Sequence[str]) -> None:
        """Answer for these placement groups, and give them back if no driver calls any more."""
        self._called_s = time.monotonic()
        self._claims = list(claims)
        if not self._minding:
            self._minding = True
            threading.Thread(target=self._mind_driver, daemon=True).start()

    def about(self) -> dict[str, Any]:
        """Process, machine and GPUs."""
        self._called_s = time.monotonic()
        return {
            "pid": os.getpid(),
            "modules": sorted(name for name in sys.modules if name.startswith("shadowprice")),
            "gpus": list_gpus(),
        }

    def probe(self, name: str) -> tuple[str, bool]:
        """Text of a file of the state directory, empty if there is none; whether it is locked.

        An answer is left beside it.
        """
        folder = self._state / name
        text = (read_json(f"{folder}/probe.json") or {}).get("token", "")
        try:
            lock = take_lock(str(folder))
            if lock is not None:
                os.close(lock)
            write_text(f"{folder}/answer-{secrets.token_hex(8)}-{text}", "seen\n")
        except OSError:
            return "", False
        return str(text), lock is None

    def start(self, directories: Sequence[str]) -> None:
        """Start a supervisor for each order that has none."""
        self._called_s = now = time.monotonic()
        wanted = []
        for directory in directories:
            begun = any(
                os.path.lexists(f"{directory}/{name}.json") for name in ("supervisor", "exit")
            )
            if not begun and now - self._launched.get(directory, -LAUNCH_S) >= LAUNCH_S:
                self._launched[directory] = now
                wanted.append(directory)
        if not wanted:
            return
        try:
            self._launch(wanted)
        except OSError as error:
            for directory in wanted:
                void(Path(directory), f"no supervisor could be started: {error}")

    def _launch(self, directories: Sequence[str]) -> None:
        self._launchers = [one for one in self._launchers if one.poll() is None]
        supervisor = supervisor_argv(self._state, Path(), sys.executable)[-2]
        self._launchers.append(
            subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCHER, supervisor, *directories],
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def renew(self, directories: Sequence[str]) -> None:
        """Let leases go on."""
        self._called_s = time.monotonic()
        for directory in directories:
            renew(Path(directory))

    def stop(self, directories: Sequence[str], grace_s: float, reason: str) -> None:
        """Ask commands to end."""
        self._called_s = time.monotonic()
        for directory in directories:
            ask_stop(Path(directory), grace_s, reason)

    def poll(self, directories: Sequence[str]) -> list[Answer]:
        """Status of leases; a supervisor that was ordered and did not come is started."""
        self._called_s = time.monotonic()
        answers = []
        for directory in directories:
            reader = self._readers.setdefault(directory, LeaseReader(Path(directory)))
            seen = reader.see()
            phase = self._starting(directory) if seen.phase == "starting" else str(seen.phase)
            self._launched.setdefault(directory, self._called_s)
            ended = seen.exit
            told = (ended.code, ended.reason, ended.forced, ended.detail) if ended else None
            answers.append((phase, dict(seen.report), told))
        return answers

    def _starting(self, directory: str) -> str:
        """Phase of a lease whose supervisor has not said that its command began."""
        since_s = time.monotonic() - self._launched.get(directory, -math.inf)
        if since_s == math.inf:
            self.start([directory])  # the order went to an actor that died
        elif since_s >= BEGIN_S and supervisor_lives(Path(directory), None):
            return "running"  # its command has removed what it said
        elif since_s >= LAUNCH_S:
            words = read_text_tail(Path(directory) / "supervisor.log")
            detail = f"no supervisor began within {LAUNCH_S:g} s: {words or 'it said nothing'}"
            void(Path(directory), detail)
        return "starting"

    def sweep(self) -> list[str]:
        """Kill what dead supervisors of this state directory left on this node; their leases."""
        prefix = os.fsencode(f"{TAG}={self._state}/")
        found = set()
        for pid in processes():
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    variables = file.read().split(b"\0")
            except OSError:
                continue
            found |= {os.fsdecode(one) for one in variables if one.startswith(prefix)}
        swept = []
        for directory in sorted(tag.partition("=")[2] for tag in found):
            recorded = read_supervisor(Path(directory))
            if recorded is None or supervisor_lives(Path(directory), recorded):
                continue
            lock = take_lock(directory)
            if lock is not None:
                bury(directory, recorded)
                os.close(lock)
                swept.append(directory)
        return swept

    def _mind_driver(self) -> None:
        """Give the node back when nobody wants it any more."""
        import ray
        from ray.util.placement_group import PlacementGroup, remove_placement_group

        while True:
            time.sleep(min(30.0, self._idle_s / 4))
            if time.monotonic() - self._called_s < self._idle_s:
                continue
            if any(self._holds(directory) for directory in self._launched):
                continue
            for claim in self._claims:
                group = PlacementGroup(ray.PlacementGroupID.from_hex(claim))
                remove_placement_group(group)
            os._exit(0)

    def _holds(self, directory: str) -> bool:
        return supervisor_lives(Path(directory), read_supervisor(Path(directory)))
