"""How a lease ended: finished, preempted, failed, or never begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from shadowprice.execution.hosts.protocol import Exit

PREEMPTED_CODES = frozenset({75, 143})
"""Exit codes of a command that saved its work and wants to run again: EX_TEMPFAIL, 128 + SIGTERM."""

_TERMINATED = -15


class Kind(StrEnum):
    """What became of the job."""

    FINISHED = "finished"
    PREEMPTED = "preempted"
    FAILED = "failed"
    UNSTARTED = "unstarted"


@dataclass(frozen=True)
class Ending:
    """The end of a lease.

    Parameters
    ----------
    code : int
        Of the rank that decided it.
    reason : str
        See :class:`Exit`.
    forced : bool
        Whether a rank had to be killed.
    why : str
        What to tell a person.
    """

    kind: Kind
    code: int
    reason: str
    forced: bool
    why: str


def ending(
    exits: Sequence[Exit], report: Mapping[str, Any], target: int, stop_why: str = ""
) -> Ending:
    """Judge a lease by the exits of its ranks; the worst rank decides.

    Parameters
    ----------
    report : mapping
        The last report of rank 0, empty if the command knows nothing of leases.
    target : int
        Step at which the lease has nothing left to do.
    stop_why : str
        Why the lease was asked to stop, empty if it was not; ``failed: ...`` if because it had failed.
    """
    judged = [(*_judge(one, report, target, stop_why), one) for one in exits]
    order = (Kind.FAILED, Kind.UNSTARTED, Kind.PREEMPTED, Kind.FINISHED)
    kind, why, one = min(judged, key=lambda found: order.index(found[0]))
    if stop_why.startswith("failed: "):
        kind, why = Kind.FAILED, stop_why.removeprefix("failed: ")
    return Ending(kind, one.code, one.reason, any(each.forced for each in exits), why)


def _judge(one: Exit, report: Mapping[str, Any], target: int, stop_why: str) -> tuple[Kind, str]:
    said = f": {one.detail}" if one.detail else ""
    if one.reason == "void":
        return Kind.UNSTARTED, "never began"
    if one.reason == "unstartable":
        return Kind.FAILED, f"cannot be started{said}"
    if one.code == 0:
        step = report.get("step")
        if isinstance(step, int) and step < target:
            return Kind.FAILED, f"exited 0 at step {step} of {target}"
        return Kind.FINISHED, ""
    asked = bool(stop_why) or one.reason in ("stopped", "expired")
    if one.code in PREEMPTED_CODES or (asked and (one.forced or one.code == _TERMINATED)):
        return Kind.PREEMPTED, stop_why or one.reason
    if one.code < 0:
        return Kind.FAILED, f"was killed by signal {-one.code}{said}"
    return Kind.FAILED, f"exited {one.code}{said}"
