"""Processes of this machine, and how to end those that a dead supervisor left."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from shadowprice.hosts.supervision.control_groups import kill, left_in, remove
from shadowprice.hosts.supervision.files import ending, lock_within, read_json, write_json

TYPE_CHECKING = False  # importing typing would cost a third of the start-up
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Process = tuple[int, int, int, int]

TAG = "SHADOWPRICE_LEASE"
"""Variable that every process of a command inherits; its value is the lease's directory."""
STAT_BYTES = 1 << 12
LOCK_S, ORPHANS_S = 2.0, 10.0
"""Time that a new supervisor waits for the lock of its lease, and for what a dead one left [s]."""


def machine() -> str:
    """Identifier of one running system, and of one numbering of its processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
    except OSError:  # some sandboxes have none
        boot = os.uname().nodename
    return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"


def process(pid: int) -> Process | None:
    """Parent, group, session and start [ticks] of a process that lives; a zombie does not."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        # Unbuffered, in one call, since all processes of a machine are read in this way.
        fields = os.read(descriptor, STAT_BYTES).rpartition(b")")[2].split()
    except OSError:  # it has just ended
        return None
    finally:
        os.close(descriptor)
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19])


def processes() -> dict[int, Process]:
    """All processes that live, by number."""
    found = ((int(name), process(int(name))) for name in os.listdir("/proc") if name.isdigit())
    return {pid: about for pid, about in found if about is not None}


def descendants(roots: set[int], table: dict[int, Process]) -> set[int]:
    """Children of processes, theirs, and so on, without the roots."""
    children: dict[int, list[int]] = {}
    for pid, about in table.items():
        children.setdefault(about[0], []).append(pid)
    found: set[int] = set()
    stack = list(roots)
    while stack:
        new = set(children.get(stack.pop(), ())) - found - roots
        found |= new
        stack.extend(new)
    return found


def send(pid: int, number: int) -> None:
    """Signal a process or, negated, a group, if there is one and it is ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def lease_of(pid: int) -> str:
    """Directory of the lease whose command a process belongs to by its environment; empty if of none."""
    tag = os.fsencode(f"{TAG}=")
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return ""
    return next((os.fsdecode(each[len(tag) :]) for each in variables if each.startswith(tag)), "")


def remnants(directory: str, recorded: Mapping[str, Any]) -> set[int]:
    """Processes that a supervisor left when it died: its command's session, all that bear its tag."""
    leader, begun = recorded.get("command_pid"), recorded.get("command_start_ticks")
    table = processes()
    # The number of a session is not given to a new process while the session lasts; a leader that
    # began at another time is a stranger.
    if type(leader) is not int or (leader in table and table[leader][3] != begun):
        leader = None
    found = {pid for pid, about in table.items() if pid == leader or about[2] == leader}
    found |= {pid for pid in table.keys() - found if lease_of(pid) == directory}
    # In its group are also those that have detached themselves and cleared their environment.
    found |= left_in(recorded.get("group"), directory)
    return (found | descendants(found, table)) - {os.getpid()}


def settled(
    directory: str, lock: int, lock_s: float = LOCK_S, orphans_s: float = ORPHANS_S
) -> int | None:
    """Take the lock of a lease, and see whether there is a command to begin.

    What a supervisor left that died is killed.

    Returns
    -------
    int or None
        Exit code of a supervisor that has nothing to do: 1 if another has the lease, or if something
        cannot be killed. None if the lease has not begun.
    """
    if not lock_within(lock, lock_s):
        return 1
    if read_json(f"{directory}/exit.json") is not None:
        return 0
    if not os.path.lexists(f"{directory}/supervisor.json"):
        return None
    recorded = read_json(f"{directory}/supervisor.json") or {}
    return 0 if kill_orphans(directory, recorded, wait_s=orphans_s, here=True) else 1


def kill_orphans(
    directory: str, recorded: Mapping[str, Any], wait_s: float = 1.0, *, here: bool = False
) -> bool:
    """Kill what a dead supervisor left and write ``exit.json`` for it; the caller holds the lock.

    Parameters
    ----------
    recorded
        Its ``supervisor.json``, empty if a power cut, say, left nothing readable of it.
    here
        Whether it is known to have run on this machine, whatever its record says.

    Returns
    -------
    bool
        Whether nothing is left. Not if something cannot be killed within ``wait_s``, or if the
        supervisor ran on another machine.
    """
    if recorded.get("machine") != machine():
        elsewhere = recorded.get("node") != os.uname().nodename
        if elsewhere and not (here and "node" not in recorded):
            return False
        recorded = {}  # this machine has been started again: nothing of that time lives
    until = time.monotonic() + wait_s
    group = recorded.get("group")
    while left := remnants(directory, recorded):
        kill(group, directory)
        for pid in left:
            send(pid, signal.SIGKILL)
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    remove(group, directory)
    with contextlib.suppress(OSError):  # a full disk: whoever asks next finds the same
        killed = ending(-9, "exited", detail="the supervisor was killed", host_failed=True)
        if read_json(f"{directory}/exit.json") is None:
            write_json(f"{directory}/exit.json", killed)
    return True
