"""The fence of a job: the epoch that may publish checkpoints; workers of earlier ones are refused."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.execution.supervision.files import write_text

PATIENCE_S = 2.0
"""A commit holds the lock for as long as it takes to rename a folder [s]."""


def raise_fence(job_directory: Path, epoch: int) -> None:
    """Refuse, from now on, what workers of epochs before this one want to publish. Never lowers it.

    Raises
    ------
    OSError
        If it cannot be written.
    HostError
        If a worker, suspended in the middle of a checkpoint perhaps, does not let go of the lock.
    """
    job_directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    lock = os.open(job_directory / "fence.lock", flags, 0o600)
    try:
        _take(lock, job_directory)
        if read_fence(job_directory) < epoch:
            write_text(str(job_directory / "fence"), f"{epoch}\n", durable=True)
    finally:
        os.close(lock)


def _take(lock: int, job_directory: Path) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until_s:
                raise HostError(f"{job_directory}: a worker holds the fence's lock") from None
            time.sleep(0.01)


def read_fence(job_directory: Path) -> int:
    """Epoch of a job that may publish, 0 before the first."""
    try:
        return int((job_directory / "fence").read_text("ascii"))
    except (OSError, ValueError):
        return 0
