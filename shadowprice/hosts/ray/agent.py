"""The actor that stands on each node: it does what the files of leases cannot.

Files tell orders, renewals, stops and ends. An actor starts supervisors on its node, kills what dead
ones left there, and shows by its answers that the node is not lost. Ray carries its code to the
nodes by value, so that they need Ray and the state directory, not this package. What it starts
does not depend on it: supervisors are no children of the actor, live on when it or Ray's node
process dies, and are found again by their files; without a renewal they end by their time to live.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shadowprice.hosts.lease_files import (
    lease_lock,
    read_supervisor,
    supervisor_argv,
    supervisor_lives,
    void,
)
from shadowprice.hosts.supervision.files import read_json, write_text
from shadowprice.hosts.supervision.processes import kill_orphans, lease_of, processes

LAUNCHER = """
import os, sys
at = sys.argv.index("--")
for directory in sys.argv[1:at]:
    if os.fork() == 0:
        os.setsid()
        log = os.open(directory + "/supervisor.log", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(log, 2)
        os.execv(sys.executable, [*sys.argv[at + 1:], directory])
"""
"""Starts supervisors and ends, so that they have no parent that Ray would kill them with."""

IDLE_S = 900.0
"""Without a driver and without a lease for so long, the actor gives its node back."""
PLAIN = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS")


def visible_device() -> str:
    """GPU as a process in a slot sees it: an index, or a UUID."""
    import ray

    return str(ray.get_runtime_context().get_accelerator_ids()["GPU"][0])


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
    """The driver's actor on one node.

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
        self._leases: set[str] = set()
        self._launchers: list[subprocess.Popen[bytes]] = []
        self._watches_driver = False

    def hold(self, claims: Sequence[str]) -> dict[str, Any]:
        """Answer for these placement groups, and give them back if no driver calls any more.

        What an earlier actor's leases left is cleaned up. Returns its process and what it has loaded of this package.
        """
        self._called_s = time.monotonic()
        self._claims = list(claims)
        self.sweep()
        if not self._watches_driver:
            self._watches_driver = True
            threading.Thread(target=self._give_back_when_idle, daemon=True).start()
        return {
            "pid": os.getpid(),
            "modules": sorted(name for name in sys.modules if name.startswith("shadowprice")),
        }

    def probe(self, name: str) -> tuple[str, bool]:
        """Text of a file of the state directory, empty if there is none; whether it is locked.

        An answer is left beside it.
        """
        folder = self._state / name
        text = (read_json(f"{folder}/probe.json") or {}).get("token", "")
        try:
            with lease_lock(folder) as free:
                write_text(f"{folder}/answer-{secrets.token_hex(8)}-{text}", "seen\n")
        except OSError:
            return "", False
        return str(text), not free

    def start(self, directories: Sequence[str]) -> None:
        """Answer for leases, and start a supervisor for each that has none; a sign of life, too."""
        self._called_s = time.monotonic()
        fresh = [directory for directory in directories if directory not in self._leases]
        self._leases |= set(fresh)
        wanted = [
            directory
            for directory in fresh
            if not any(
                os.path.lexists(f"{directory}/{name}.json") for name in ("supervisor", "exit")
            )
        ]
        if not wanted:
            return
        try:
            self._launch(wanted)
        except OSError as error:
            for directory in wanted:
                void(Path(directory), f"no supervisor could be started: {error}")

    def _launch(self, directories: Sequence[str]) -> None:
        self._launchers = [one for one in self._launchers if one.poll() is None]
        program = supervisor_argv(self._state)
        self._launchers.append(
            subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCHER, *directories, "--", *program],
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

    def sweep(self, directories: Sequence[str] = ()) -> None:
        """Kill what dead supervisors left on this node, and write how they ended.

        Parameters
        ----------
        directories : sequence of str
            Leases whose supervisor ran on this node; of others, only those whose processes live.
        """
        found = {*directories, *map(lease_of, processes())}
        for directory in sorted(found):
            if not directory.startswith(f"{self._state}/"):
                continue
            recorded = read_supervisor(Path(directory))
            here = directory in directories
            if recorded is None and not (here and os.path.lexists(f"{directory}/supervisor.json")):
                continue
            if supervisor_lives(Path(directory), recorded):
                continue
            with lease_lock(Path(directory)) as free:
                if free:
                    kill_orphans(directory, recorded or {}, here=here)

    def _give_back_when_idle(self) -> None:
        """Give the node back when nobody wants it any more."""
        import ray
        from ray.util.placement_group import PlacementGroup, remove_placement_group

        while True:
            time.sleep(min(30.0, self._idle_s / 4))
            if time.monotonic() - self._called_s < self._idle_s:
                continue
            if any(self._holds(directory) for directory in self._leases):
                continue
            for claim in self._claims:
                group = PlacementGroup(ray.PlacementGroupID.from_hex(claim))
                remove_placement_group(group)
            os._exit(0)

    def _holds(self, directory: str) -> bool:
        return supervisor_lives(Path(directory), read_supervisor(Path(directory)))
