"""The job's side of a lease: restore, train, save, stop when asked. Any framework.

One file that needs Python 3.11 only: a copy of it in a training repository does as well. ::

    with Lease(iterations=1000) as lease:
        lease.restore(load)  # load(folder) reads what save(folder) wrote; not called at first
        lease.checkpoints(save, every_s=60)  # and at the end, and when asked to stop
        for batch in lease.steps(loader):
            ...  # or, after the update or after the loop: lease.checkpoint(save)

SIGTERM and SIGINT let the step under way end; then ``with`` exits with code 75: to be continued.
Without a scheduler all this works unchanged. With one, a commit wants the job's fence to show the
epoch of the lease, so that who was superseded cannot overwrite what came after.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import json
import operator
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

PREEMPTED = 75  # EX_TEMPFAIL
_OURS = re.compile(r"step-(\d{12,})\.epoch-(\d+)|\.tmp-.+")
_NEVER = float("inf")
_FULL = (errno.ENOSPC, errno.EDQUOT)
LAST_SAVE_S, SAVE_AGAIN_S = 600.0, 1.0  # who stops it sooner kills it
_PREFIX = "SHADOWPRICE_"
_Save = Callable[[Path], object]


class LeaseError(RuntimeError):
    """The lease, its environment or its last checkpoint is wrong; the message says what."""


class Fenced(LeaseError):
    """Another lease has taken the job over; nothing was written."""


class Lease:
    """A run of a job, from one checkpoint to another; ``step`` are done or, in the loop, under way.

    ``iterations`` of the job (0: one pass over the loader) and the ``directory`` of checkpoints count
    without a scheduler only. Only rank 0 commits and reports: give ``rank`` if a launcher that does
    not set ``RANK`` starts several, or without a scheduler; and ``agree``, called after each step,
    to tell all that one was asked to stop (MAX). ``replicas`` of the job's graph, (stage, number),
    are one a device of the gang, in the order of torchrun's ranks; none without a graph.
    """

    def __init__(
        self,
        *,
        iterations: int = 0,
        directory: str | Path = "checkpoints",
        rank: int | None = None,
        agree: Callable[[bool], bool] = bool,
    ) -> None:
        self.iterations, self.rank, self.step, self._agree = iterations, rank or 0, 0, agree
        self._checkpoints, self._epoch, self._warm_up = Path(directory), 0, 1
        self._fence: Path | None = None
        self.replicas: list[tuple[str, int]] = []
        self._due_s = self._due_steps = _NEVER
        self._folder = os.environ.get("SHADOWPRICE_LEASE")
        if self._folder:
            job = os.environ.get("SHADOWPRICE_JOB_DIRECTORY", "")
            for name, folder in (("LEASE", self._folder), ("JOB_DIRECTORY", job)):
                if not os.path.isdir(folder):
                    raise LeaseError(f"SHADOWPRICE_{name}={folder!r}: expected a folder")
            self._checkpoints, self._fence = Path(job, "checkpoints"), Path(job, "fence")
            self._epoch, self.iterations = _number("EPOCH", int, 0), _number("ITERATIONS", int, 1)
            self._due_s = _number("CHECKPOINT_S", float, 0, _NEVER)
            told = os.environ.get("SHADOWPRICE_REPLICAS") or "[]"
            self.replicas = [(str(stage), int(number)) for stage, number in json.loads(told)]
            self._report_folder = Path(
                os.environ.get("SHADOWPRICE_REPORT_DIRECTORY") or self._folder
            )
            if rank is None:
                # torchrun, say, replaces RANK in each process that it starts.
                prefix = "" if "RANK" in os.environ else _PREFIX
                self.rank = _number("RANK", int, 0, 0, prefix=prefix)
        self._save: _Save | None = None
        self._last: Path | None = None
        self._failure: OSError | None = None
        self._handlers: dict[int, Any] = {}
        self._mark = self._saved_at = self._reported_at = time.monotonic()
        self._before_s, self._paused_s, self._asked, self._stopping = 0.0, 0.0, False, False
        numbers = ("step", "begun_at", "seconds", "timed_steps", "checkpoint_step", "saving_s")
        self._progress: dict[str, Any] = dict.fromkeys(numbers, 0) | {"error": ""}

    def __enter__(self) -> Lease:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._handlers[number] = signal.signal(number, self.stop)
        self._report("restoring")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if isinstance(error, Fenced):
            self._report("fenced", str(error))
            raise SystemExit(PREEMPTED) from error
        if error is not None and not (isinstance(error, SystemExit) and not error.code):
            self._report("failed", f"{type(error).__name__}: {error}")
        elif self._failure is not None:
            self._report("failed")
            raise LeaseError(self._progress["error"]) from self._failure
        elif self._progress["step"] >= self.iterations:
            self._report("finished")
        elif self._stopping or self._asked:
            self._report("preempted")
            raise SystemExit(PREEMPTED)
        else:
            self._report("failed", f"left at step {self._progress['step']} of {self.iterations}")

    def stop(self, number: int = 0, frame: object = None) -> None:
        """Ask to stop after this step, from any thread; handles signals if entered in the main one."""
        self._asked = True

    def restore(self, load: Callable[[Path], object]) -> bool:
        """Call ``load`` with the folder of the last undamaged checkpoint; False: there is none."""
        folder, manifest, troubles = last_checkpoint(self._checkpoints)
        self._report("restoring", "; ".join(troubles))
        if folder is not None:
            load(folder)
            self.step, self._before_s = manifest["step"], manifest["seconds"]
            self._last, self._warm_up = folder, self.step + 1
            self._progress |= dict.fromkeys(("step", "begun_at", "checkpoint_step"), self.step)
        return folder is not None

    def checkpoints(
        self, save: _Save, *, every_s: float = _NEVER, every_steps: float = _NEVER
    ) -> None:
        """Make checkpoints periodically if so wished, and always at the end and when stopping."""
        if not (every_s > 0 and every_steps > 0):
            raise LeaseError(f"{every_s=}, {every_steps=}: expected more than 0")
        self._save, self._due_steps, self._due_s = save, every_steps, min(every_s, self._due_s)

    def checkpoint(self, save: _Save) -> None:
        """Commit what ``save`` writes into an empty folder as the state after ``step`` steps.

        Not if that is committed, or before the first. If the disk is full, say, what was committed
        stays and training goes on; only after the last step it is waited for, and then the lease ends with an error.
        """
        self._progress["step"], begun = self.step, time.monotonic()
        if self.rank or self._progress["checkpoint_step"] == self.step:
            return
        self._report("saving")
        seconds = self._before_s + self._progress["seconds"]
        about = {"step": self.step, "epoch": self._epoch, "seconds": seconds}
        try:
            self._last = commit(self._checkpoints, save, about, self._fence, self._last)
            self._failure, self._progress["error"] = None, ""
            self._progress["checkpoint_step"] = self.step
        except OSError as error:
            self._failure = error
            self._report("saving", f"no checkpoint of step {self.step}: {error}")
        self._saved_at = time.monotonic()
        self._progress["saving_s"] = self._saved_at - begun
        self._paused_s += self._progress["saving_s"]
        self._report("training")

    def _save_last(self, save: _Save) -> None:
        """Make the last checkpoint of the lease; while the disk is full, again for ``LAST_SAVE_S``."""
        until = time.monotonic() + LAST_SAVE_S
        self.checkpoint(save)
        while getattr(self._failure, "errno", None) in _FULL and time.monotonic() < until:
            time.sleep(SAVE_AGAIN_S)
            self.checkpoint(save)

    def steps(self, loader: Iterable[Any] | None = None) -> Iterator[Any]:
        """Batches of ``loader``, again and again, to the end; without one, step numbers from 0.

        One with a length goes on where it was: batches seen are drawn and skipped, and ``set_epoch``
        of its ``sampler``, or of itself, is called. Others start again.
        """
        length = operator.length_hint(loader, 0)
        self.iterations = self.iterations or length
        if self.iterations < 1:
            raise LeaseError("expected Lease(iterations=1) or more, or a loader with a length")
        first, seen = divmod(self.step, length) if length else (0, 0)
        loader = itertools.count(self.step) if loader is None else loader
        self._warm_up = self.step + 1
        self._report("training")
        for turn in itertools.count(first) if self.advance(0) else ():
            getattr(getattr(loader, "sampler", loader), "set_epoch", lambda turn: None)(turn)
            before = self.step
            for batch in itertools.islice(loader, seen, None):
                self.step += 1
                yield batch
                if not self.advance(0):
                    return
            if self.step == before:
                raise LeaseError(f"the loader gave no batch after {seen}")
            seen = 0

    def advance(self, steps: int = 1) -> bool:
        """Count a step done, for loops that are somebody else's; False: stop now."""
        self.step += steps
        now, self._progress["step"] = time.monotonic(), self.step
        if self.step > self._warm_up:
            self._progress["seconds"] += now - self._mark - self._paused_s
            self._progress["timed_steps"] += 1
        self._stopping = self.step >= self.iterations or self._agree(self._asked)
        due = now - self._saved_at >= self._due_s or self.step % self._due_steps == 0
        if self._save and self._stopping:
            self._save_last(self._save)
        elif self._save and due:
            self.checkpoint(self._save)
        elif now - self._reported_at >= 0.25:
            self._report("training")
        self._mark, self._paused_s = time.monotonic(), 0.0
        return not self._stopping

    def _report(self, state: str, error: str = "") -> None:
        self._reported_at, told = time.monotonic(), self._progress
        told |= {"state": state, "iterations": self.iterations, "error": error or told["error"]}
        told["steps"] = told["step"] - told["begun_at"]
        try:
            if self._folder and not self.rank:
                replace_text(self._report_folder / "report.json", json.dumps(told))
        except OSError as problem:
            error = f"no report: {problem}"
        if error:
            print(f"lease: {error}", file=sys.stderr, flush=True)


def commit(
    checkpoints: Path,
    save: _Save,
    about: dict[str, Any],
    fence: Path | None = None,
    previous: Path | None = None,
) -> Path:
    """Make what ``save`` writes the last checkpoint, whole or not at all; return its folder.

    ``about``: ``step``, ``epoch``, ``seconds``. ``previous`` (default: the last) is kept. The file
    ``fence`` must show the epoch, else ``Fenced``. After any error the last one is what it was.
    """
    checkpoints.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".tmp-", dir=checkpoints) as name:
        temporary = Path(name)
        save(temporary)
        written = about | {"files": _files(temporary)}
        written["sha256"] = _digest(written)
        replace_text(temporary / "manifest.json", json.dumps(written))
        _sync(temporary, *temporary.rglob("*"))
        with open(fence.with_name("fence.lock") if fence else os.devnull, "a") as lock:
            if fence:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if _text(fence) != str(about["epoch"]):
                    raise Fenced(f"{fence} shows {_text(fence)!r}, not our epoch {about['epoch']}")
            kept = previous.name if previous else _text(checkpoints / "LATEST")
            target = checkpoints / f"step-{about['step']:012d}.epoch-{about['epoch']}"
            shutil.rmtree(target, ignore_errors=True)  # damaged, in a run without a scheduler
            os.replace(temporary, target)
            replace_text(checkpoints / "LATEST", f"{target.name}\n")
            _sync(checkpoints)
            for path in checkpoints.iterdir():
                if _OURS.fullmatch(path.name) and path.name not in {target.name, kept}:
                    shutil.rmtree(path, ignore_errors=True)
        return target


def last_checkpoint(checkpoints: Path) -> tuple[Path | None, dict[str, Any], list[str]]:
    """The last undamaged checkpoint, its manifest, and what is wrong with later ones."""
    found = [match for path in checkpoints.glob("step-*") if (match := _OURS.fullmatch(path.name))]
    found.sort(key=lambda match: (int(match[2]), int(match[1])), reverse=True)
    troubles: list[str] = []
    for name in dict.fromkeys([_text(checkpoints / "LATEST"), *(match[0] for match in found)]):
        try:
            manifest = json.loads((checkpoints / name / "manifest.json").read_text("utf-8"))
            called = f"step-{manifest['step']:012d}.epoch-{manifest['epoch']}"
            # One bit may turn a key into another, or a number into another number.
            if set(manifest) - {"sha256"} != {"step", "epoch", "seconds", "files"}:
                raise ValueError("its manifest is not as written")
            if manifest.pop("sha256", None) not in {None, _digest(manifest)}:
                raise ValueError("its manifest is not as written")
            if (called, manifest["files"]) != (name, _files(checkpoints / name)):
                raise ValueError("its files are not as written")
            return checkpoints / name, manifest, troubles
        except (OSError, ValueError, LookupError, TypeError) as error:
            troubles += [f"checkpoint {name} is damaged: {error!r}"] if name else []
    return None, {}, troubles


def replace_text(path: Path, text: str) -> None:
    """Replace a file atomically; readers cope with one that a power cut left empty."""
    temporary = path.with_name(f".tmp-{path.name}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _files(folder: Path) -> dict[str, Any]:
    """Sizes and digests of all files but the manifest, by path."""
    files = {}
    for path in filter(Path.is_file, {*folder.rglob("*")} - {folder / "manifest.json"}):
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        files[str(path.relative_to(folder))] = {"bytes": path.stat().st_size, "sha256": digest}
    return files


def _digest(manifest: dict[str, Any]) -> str:
    """Digest of what a manifest says; those of earlier versions have none."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _sync(*paths: Path) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _number(
    name: str, kind: type[int] | type[float], least: int, default: Any = None, prefix: str = _PREFIX
) -> Any:
    text = os.environ.get(prefix + name, "")
    try:
        value = kind(text) if text or default is None else default
    except ValueError:
        value = _NEVER * 0
    if not value >= least:
        raise LeaseError(f"{prefix}{name}={text!r}: expected {kind.__name__} >= {least}")
    return value
