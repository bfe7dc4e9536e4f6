"""The job of the fault campaign: the example's training, whose disk may be full.

Run as a command of a lease, beside copies of ``mlp.py`` and ``job.py``. It holds the lock of each of
its devices, and leaves a file ``double-...`` if somebody else holds one: GPUs would not tell. It
leaves a file ``late-...`` if it could commit although the fence showed a later epoch before.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from pathlib import Path
from typing import Any

import job
import mlp

HERE = Path(__file__).resolve().parent
commit = job.commit
FULL = "full"
"""While a file of this name lies in a job's directory, its checkpoints find no room."""


class Training(mlp.Training):  # type: ignore[misc]
    def save(self, folder: Path) -> None:
        super().save(folder)
        if Path(os.environ["SHADOWPRICE_JOB_DIRECTORY"], FULL).exists():
            with open(folder / "state.npz", "r+b") as file:
                file.truncate(100)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))


def watched_commit(
    checkpoints: Path, save: Any, about: dict[str, Any], fence: Path, last: Path | None
) -> Path:
    shown = int(fence.read_text())
    made: Path = commit(checkpoints, save, about, fence, last)
    if shown > about["epoch"]:
        (HERE / f"late-{os.environ['SHADOWPRICE_JOB']}-{about['epoch']}").touch()
    return made


def hold(uuids: str) -> list[int]:
    """Locks of devices, until this process is gone."""
    held = []
    for uuid in uuids.split(","):
        lock = os.open(HERE / f"{uuid.replace('/', '-')}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = f"double-{os.environ['SHADOWPRICE_JOB']}-{os.environ['SHADOWPRICE_EPOCH']}"
            (HERE / name).write_text(uuid)
            sys.exit(f"{uuid} is held by another process")
        held.append(lock)
    return held


if __name__ == "__main__":
    locks = hold(os.environ["SHADOWPRICE_DEVICES"])
    mlp.Training = Training
    job.commit = watched_commit
    mlp.main()
