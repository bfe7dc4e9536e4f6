"""ProcessLimits of a sealed policy: how long a decision may take, and how much memory and time its process may have."""

from __future__ import annotations

from dataclasses import dataclass, fields

from shadowprice.errors import InputError


@dataclass(frozen=True)
class ProcessLimits:
    """ProcessLimits of one process.

    Parameters
    ----------
    decision_s : float
        Longest time from a question to its answer [s].
    start_s : float
        Longest time until the process has introduced its policy [s].
    cpu_s : int
        CPU time of the process, all its runs together [s].
    memory_mb : int
        Address space of the process [MB].

    Raises
    ------
    InputError
        If one is not above 0.
    """

    decision_s: float = 10.0
    start_s: float = 60.0
    cpu_s: int = 3600
    memory_mb: int = 8192

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not value > 0:
                raise InputError(f"sealed: {each.name} is {value!r}, expected a number above 0")
