"""Checkpoints of jobs: their fence, what was committed, and folders for commands without leases.

The fence of a job is the epoch that may publish checkpoints; workers of earlier ones are refused.
A command that knows nothing of leases saves and resumes by itself in the folder that stands for
``{checkpoint_dir}`` in its arguments. Every epoch has its own, a copy of the last one that was
adopted, so that a command that should be dead writes where nobody reads. A folder is adopted when
its command finished or was preempted; if it may have been ended while it saved, and the command that
continues from it fails, the one before it is taken again.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shadowprice.errors import HostError
from shadowprice.hosts.live.lease import HeldLease
from shadowprice.hosts.live.measuring import number
from shadowprice.hosts.supervision.files import (
    lock_within,
    make_folder,
    sync_folder,
    write_text,
)

# The fence.


FENCES_AT_ONCE = 16
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
    make_folder(str(job_directory))
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    lock = os.open(job_directory / "fence.lock", flags, 0o600)
    try:
        if not lock_within(lock, PATIENCE_S):
            raise HostError(f"{job_directory}: a worker holds the fence's lock")
        if read_fence(job_directory) < epoch:
            write_text(str(job_directory / "fence"), f"{epoch}\n", durable=True)
    finally:
        os.close(lock)


def raise_fences(epochs: Mapping[Path, int]) -> Iterator[HostError | None]:
    """Raise the fences of several jobs at the same time, as :func:`raise_fence` does each.

    A disk that has to keep many small files takes hardly longer than for one, if it is told of all of
    them before it is waited for.

    Parameters
    ----------
    epochs : mapping
        From the directories of jobs.

    Yields
    ------
    HostError or None
        In order, as soon as the fence is raised: why it could not be, if a worker holds it.

    Raises
    ------
    OSError
        If one cannot be written.
    """
    if len(epochs) < 2:
        yield from map(_raised, epochs.items())
        return
    with ThreadPoolExecutor(min(len(epochs), FENCES_AT_ONCE)) as pool:
        yield from pool.map(_raised, epochs.items())


def _raised(fence: tuple[Path, int]) -> HostError | None:
    try:
        raise_fence(*fence)
    except HostError as error:
        return error
    return None


def read_fence(job_directory: Path) -> int:
    """Epoch of a job that may publish, 0 before the first."""
    try:
        return int((job_directory / "fence").read_text("ascii"))
    except (OSError, ValueError):
        return 0


# Commits, by checkpoints and by what leases reported.


_CHECKPOINT = re.compile(r"step-([0-9]{1,15})\.epoch-([0-9]{1,15})")


def last_commit(job_directory: Path) -> tuple[int, int]:
    """Step and epoch of a job's last committed checkpoint, 0 and 0 if there is none.

    The name of the last may be lost in a power cut, or damaged, which the checkpoints survive.
    """
    folder = job_directory / "checkpoints"
    try:
        with (folder / "LATEST").open("rb") as file:
            name = file.read(200).decode("ascii", "replace").strip()
    except OSError:
        name = ""
    last = _CHECKPOINT.fullmatch(name)
    named = last is not None and (folder / name / "manifest.json").is_file()
    if not named and folder.is_dir():
        whole = (path.parent.name for path in folder.glob("step-*/manifest.json"))
        matches = [match for name in whole if (match := _CHECKPOINT.fullmatch(name))]
        last = max(matches, key=lambda match: (int(match[2]), int(match[1])), default=last)
    return (int(last[1]), int(last[2])) if last else (0, 0)


def committed_by(lease: HeldLease, job_directory: Path) -> int:
    """Step from which a job goes on after a lease."""
    (step, epoch), begun = last_commit(job_directory), begun_at(lease)
    return step if epoch >= lease.grant.epoch or begun is None else min(step, begun)


def begun_at(lease: HeldLease) -> int | None:
    """Step a lease went on from, by its report; None if it tells of no step.

    It is earlier than what was committed before if that was found damaged, and later if a lease
    that was written off committed more.
    """
    if number(lease.report, "steps", 0) <= 0:
        return None
    return int(number(lease.report, "begun_at", lease.grant.from_step))


def damaged_before(lease: HeldLease) -> int | None:
    """Step it had to go back to since what was committed was damaged; None if it did not."""
    begun = begun_at(lease)
    return None if begun is None or begun >= lease.grant.from_step else begun


def reported_commit(lease: HeldLease) -> int:
    """Step that a lease itself says it committed; of one that was superseded nothing else tells."""
    back = damaged_before(lease)
    least = lease.grant.from_step if back is None else back
    step = int(number(lease.report, "checkpoint_step", 0))
    return min(max(step, least), max(lease.progress.step, least))


_FOLDER, _ADOPTED = "plain", "ADOPTED"
_ADOPTION = re.compile(r"e([0-9]{1,15})(?: e([0-9]{1,15}))?\n?")


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


QUICK_S = 0.02
"""For so long a preparation is waited for [s]; most take less, and copies of gigabytes minutes."""


class FolderCopy(threading.Thread):
    """Thread that makes the checkpoint folder of an epoch, a copy of the last one.

    Nobody waits for a copy at the end of the driver: what a dead driver had not copied is copied
    again, for another epoch.

    Parameters
    ----------
    job_directory : Path
        Directory of the job.
    epoch : int
        Of the lease that is to use the folder.

    Attributes
    ----------
    error : OSError or None
        Why it could not be made, once :attr:`over`.
    """

    def __init__(self, job_directory: Path, epoch: int) -> None:
        super().__init__(daemon=True)
        self.error: OSError | None = None
        self._of = job_directory, epoch
        self.start()
        self.join(QUICK_S)

    def run(self) -> None:
        """Make the folder."""
        try:
            prepare(*self._of)
        except OSError as error:
            self.error = error

    @property
    def over(self) -> bool:
        """True if the folder is there, or cannot be made."""
        return not self.is_alive()


def adopt(job_directory: Path, epoch: int, *, whole: bool = True) -> None:
    """Let later epochs continue from this one's folder, and remove the older ones.

    A folder that the command removed is not adopted.

    Parameters
    ----------
    whole : bool
        Whether the command said that it had saved. Else it may have been ended in the middle of
        that, and the folder it continued from is kept for :func:`fall_back`.
    """
    parent, last = job_directory / _FOLDER, _adopted(job_directory)[0]
    if last == epoch or not folder_of(job_directory, epoch).is_dir():
        return
    before = 0 if whole else last
    _flush(folder_of(job_directory, epoch))
    # Epoch 0 stands for no folder, from which the command began.
    text = f"e{epoch}\n" if whole else f"e{epoch} e{before}\n"
    write_text(str(parent / _ADOPTED), text, durable=True)
    for other in parent.glob("e*"):
        number = other.name[1:]
        old = number.isdigit() and int(number) < epoch and int(number) != before
        if old and not other.is_symlink():
            shutil.rmtree(other, ignore_errors=True)


def _flush(folder: Path) -> None:
    """Wait until what a command wrote there would survive a power cut: nothing older will be left."""
    for place, _, names in os.walk(folder, onerror=None):
        for name in names:
            path = os.path.join(place, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                continue  # a file that the command lets nobody read
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(place)


def fall_back(job_directory: Path) -> None:
    """Let later epochs continue from the folder before the adopted one, if that may not be whole."""
    before = _adopted(job_directory)[1]
    if before is not None:
        name = str(job_directory / _FOLDER / _ADOPTED)
        write_text(name, f"e{before}\n", durable=True)


def adopted(job_directory: Path) -> Path | None:
    """The folder that was adopted last, None if there is none."""
    epoch = _adopted(job_directory)[0]
    folder = folder_of(job_directory, epoch)
    return folder if epoch and folder.is_dir() else None


def _adopted(job_directory: Path) -> tuple[int, int | None]:
    """Epoch of the adopted folder, 0 for none; epoch of the one before if the first may not be whole.

    Where its name is damaged, the oldest folder was adopted: what is older was removed then.
    """
    try:
        text = (job_directory / _FOLDER / _ADOPTED).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0, None
    match = _ADOPTION.fullmatch(text)
    if match is not None and (match[1] == "0" or folder_of(job_directory, int(match[1])).is_dir()):
        return int(match[1]), None if match[2] is None else int(match[2])
    names = [path.name[1:] for path in (job_directory / _FOLDER).glob("e*") if path.is_dir()]
    return min((int(name) for name in names if name.isdecimal()), default=0), None
