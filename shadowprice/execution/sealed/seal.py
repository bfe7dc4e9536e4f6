"""Seal of a policy's process: what this system enforces of it, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Protection(StrEnum):
    """One thing that a sealed process cannot do; tried when it starts."""

    FILES = "reads no files but code"
    WRITING = "writes no files"
    NETWORK = "has no network"
    MEMORY = "sees no memory of other processes"
    SIGNALS = "signals and slows no process"
    PROCESSES = "starts no process"
    SPACE = "has no more memory than its limit"


@dataclass(frozen=True)
class Seal:
    """Protections that are enforced, as tried in the process before any code of the policy ran.

    Of a command nothing is said of the processes that it starts: it may run programs of the system, which are confined
    as it is.

    Parameters
    ----------
    enforced, missing : tuple of Protection
    """

    enforced: tuple[Protection, ...] = ()
    missing: tuple[Protection, ...] = ()

    @classmethod
    def of(cls, tried: Mapping[Protection, bool]) -> Seal:
        """The seal of what was tried."""
        held = [each for each in Protection if tried.get(each, False)]
        return cls(tuple(held), tuple(each for each in tried if each not in held))

    def __str__(self) -> str:
        holds = ", ".join(self.enforced) or "nothing of what it may do is limited"
        lacks = f"; missing here: {', '.join(self.missing)}" if self.missing else ""
        return f"sealed: the policy's process {holds}{lacks}"
