"""Whether the nodes of a cluster share the state directory with the driver, locks included."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.supervision.files import take_lock, write_json


def check_shared(state: Path, probe: Callable[[str], Mapping[str, tuple[str, bool]]]) -> None:
    """Write a file that nodes are to read, lock a file that they are not to lock, read answers.

    Parameters
    ----------
    probe : callable
        Given a folder of the state directory, what each node read there and whether it found the
        lock taken; each leaves a file (:meth:`.ray_agent.Agent.probe`).

    Raises
    ------
    HostError
        If a node does not share the directory, or not its locks, by which a node's leases and
        stale writers are told.
    """
    name, token = f".probe-{secrets.token_hex(4)}", secrets.token_hex(8)
    folder = state / name
    folder.mkdir(mode=0o700)
    try:
        write_json(f"{folder}/probe.json", {"token": token})
        lock = take_lock(str(folder))
        answers = probe(name)
        left = len(list(folder.glob(f"answer-*-{token}")))
        if lock is not None:
            os.close(lock)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    blind = sorted(node for node, (text, _) in answers.items() if text != token)
    if blind or left < len(answers):
        raise HostError(
            f"hosts ray: node {', '.join(blind or sorted(answers))} does not share the state "
            f"directory {state} with this one; put --state on storage that all nodes mount at the "
            "same place, and run Ray there as the same user"
        )
    unlocked = sorted(node for node, (_, locked) in answers.items() if not locked)
    if unlocked:
        raise HostError(
            f"hosts ray: on node {', '.join(unlocked)} locks in the state directory {state} do not "
            "hold; use storage with locks across machines, NFSv4 for instance"
        )
