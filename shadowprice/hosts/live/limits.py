"""Times after which a real run stops waiting."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from shadowprice.errors import InputError

STEPS_S, SAMPLE_S = 2.0, 5.0
"""For people who look: between two notes of the steps of running jobs, and of their rates [s]."""


@dataclass(frozen=True)
class Limits:
    """Times and counts after which a run stops waiting.

    Parameters
    ----------
    poll_s : float
        Between two looks at the hosts [s].
    ttl_s : float
        A lease that is not renewed for so long ends by itself [s]: how long jobs go on after the
        driver died. Renewed four times as often.
    grace_s : float
        From SIGTERM to SIGKILL [s]: time for a last checkpoint.
    confirm_s : float
        After the grace, until devices whose processes are not confirmed gone are quarantined [s].
    stop_s : float
        Without rounds, for how long a decision waits for the leases that it stops [s]; they end in any
        case, and their GPUs are given out by a later one. With rounds it is their length.
    start_s : float
        Until a started command must run [s].
    hang_s : float
        Without a step, a job that reports steps has failed [s].
    retries, host_retries : int
        Failures in a row, without a checkpoint between them, after which a job is given up; those of
        hosts in a row from which on they count as its own.
    lived_s : float
        A lease that ran for so long has not crashed at once [s].
    back_off_s, back_off_max_s : float
        Wait before the first retry [s]; eight times as long each time, up to the largest.
    node_s : float
        While jobs wait and no lease runs because nodes are lost or devices quarantined, until the
        run ends [s]; it can be resumed.
    """

    poll_s: float = 0.1
    ttl_s: float = 60.0
    grace_s: float = 30.0
    confirm_s: float = 10.0
    stop_s: float = 1.0
    start_s: float = 120.0
    hang_s: float = 600.0
    retries: int = 3
    host_retries: int = 100
    lived_s: float = 60.0
    back_off_s: float = 1.0
    back_off_max_s: float = 300.0
    node_s: float = 600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = (
                0
                if field.name in ("retries", "host_retries", "back_off_s", "grace_s", "confirm_s")
                else 1e-3
            )
            if not least <= value < math.inf:
                raise InputError(f"limits: {field.name} is {value!r}, expected at least {least}")

    def back_off(self, tries: int) -> float:
        """Wait before a job runs again after so many failures in a row [s]."""
        return float(min(self.back_off_s * 8.0 ** min(tries - 1, 20), self.back_off_max_s))
