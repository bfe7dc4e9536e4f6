"""What happened between two decisions of a real run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Turn:
    """Everything that the engine has to know before the policy decides; plain data for the journal.

    Parameters
    ----------
    progress : list
        Fields of :class:`Progress` of every lease, those that ended included.
    ended : list
        Fields of :class:`Conclusion` of leases that are over.
    unplaced : list of int
        Rows that the policy started, but that got no devices.
    confirmed : list of (int, int, int)
        Row and epoch of leases that were over before, and whose processes are gone now; the step
        that their job has committed.
    withdrawn : list of int
        Rows of waiting jobs that are over: cancelled, or finished while they were being stopped.
    cancelled : list of int
        Those of the unplaced and the withdrawn that a person cancelled.
    returned : list of int
        Rows that may run again.
    lost : list of str
        Nodes that do not answer.
    missing : list of str
        Uuids of devices that were not found again when the run was resumed.
    """

    progress: list[Any]
    ended: list[Any]
    unplaced: list[int]
    confirmed: list[Any]
    withdrawn: list[int]
    cancelled: list[int]
    returned: list[int]
    lost: list[str]
    missing: list[str]

    @classmethod
    def from_record(cls, data: Mapping[str, Any]) -> Turn:
        """Inverse of ``dataclasses.asdict``."""
        return cls(**{field.name: data[field.name] for field in fields(cls)})
