"""What jobs have committed: by their checkpoints, and by what their leases reported."""

from __future__ import annotations

import re
from pathlib import Path

from shadowprice.execution.real.lease import Lease
from shadowprice.execution.real.measuring import number

_CHECKPOINT = re.compile(r"step-([0-9]{1,15})\.epoch-([0-9]{1,15})")


def last_commit(job_directory: Path) -> tuple[int, int]:
    """Step and epoch of a job's last committed checkpoint, 0 and 0 if there is none."""
    try:
        with (job_directory / "checkpoints" / "LATEST").open("rb") as file:
            name = file.read(200).decode("ascii", "replace").strip()
    except OSError:
        return 0, 0
    found = _CHECKPOINT.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def committed_by(lease: Lease, job_directory: Path) -> int:
    """Step from which a job goes on after a lease."""
    (step, epoch), begun = last_commit(job_directory), begun_at(lease)
    return step if epoch >= lease.epoch or begun is None else min(step, begun)


def begun_at(lease: Lease) -> int | None:
    """Step a lease went on from, by its report; None if it tells of no step.

    It is earlier than what was committed before if that was found damaged, and later if a lease
    that was written off committed more.
    """
    if number(lease.report, "steps", 0) <= 0:
        return None
    return int(number(lease.report, "begun_at", lease.from_step))


def damaged_before(lease: Lease) -> int | None:
    """Step it had to go back to since what was committed was damaged; None if it did not."""
    begun = begun_at(lease)
    return None if begun is None or begun >= lease.from_step else begun


def reported_commit(lease: Lease) -> int:
    """Step that a lease itself says it committed; of one that was superseded nothing else tells."""
    back = damaged_before(lease)
    least = lease.from_step if back is None else back
    said = int(number(lease.report, "checkpoint_step", 0))
    return min(max(said, least), max(lease.step, least))
