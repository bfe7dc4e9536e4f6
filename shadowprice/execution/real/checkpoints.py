"""Checkpoint folders of commands that know nothing of leases.

Such a command saves and resumes by itself in the folder that stands for ``{checkpoint_dir}`` in its
arguments. Every epoch has its own, a copy of the last one that was adopted, so that a command that
should be dead writes where nobody reads. A folder is adopted when its lease ended cleanly.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_FOLDER, _ADOPTED = "plain", "ADOPTED"


def folder_of(job_directory: Path, epoch: int) -> Path:
    """The folder of an epoch."""
    return job_directory / _FOLDER / f"e{epoch}"


def prepare(job_directory: Path, epoch: int) -> None:
    """Make the folder of an epoch, a copy of the adopted one if there is any."""
    target = folder_of(job_directory, epoch)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(mode=0o700, exist_ok=True)
    before = adopted(job_directory)
    if before is None:
        target.mkdir(mode=0o700)
    else:
        # Links stay links: what a command linked to is not ours to copy.
        shutil.copytree(before, target, symlinks=True)


def adopt(job_directory: Path, epoch: int) -> None:
    """Let later epochs continue from this one's folder, and remove the older ones.

    A folder that the command removed is not adopted.
    """
    parent = job_directory / _FOLDER
    if not folder_of(job_directory, epoch).is_dir():
        return
    temporary = parent / f".{_ADOPTED}"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(f"e{epoch}\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(parent / _ADOPTED)
    for other in parent.glob("e*"):
        number = other.name[1:]
        if number.isdigit() and int(number) < epoch and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)


def adopted(job_directory: Path) -> Path | None:
    """The folder that was adopted last, None if there is none."""
    try:
        name = (job_directory / _FOLDER / _ADOPTED).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    found = job_directory / _FOLDER / name
    return found if name[:1] == "e" and name[1:].isdigit() and found.is_dir() else None
