"""The state directory of a run: made once, used by one driver at a time, resumed by the next.

It holds a copy of the supervisor, with what that imports, for nodes to run.
"""

from __future__ import annotations

import fcntl
import importlib.resources
import os
import stat
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from shadowprice.errors import HostError, InputError
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.supervision.files import write_text

# The copy of the supervisor.


LIBRARY = "library/shadowprice"


def copy_supervisor(state: Path) -> Path:
    """Put the supervisor into a state directory; the file to run.

    Raises
    ------
    HostError
        If it cannot be written.
    """
    package = importlib.resources.files("shadowprice.execution")
    folder = f"{LIBRARY}/execution/supervision"
    # Nothing else of this package goes with it, so the packages around it are empty.
    sources = {f"{LIBRARY}/__init__.py": "", f"{LIBRARY}/execution/__init__.py": ""}
    for part in package.joinpath("supervision").iterdir():
        if part.name.endswith(".py"):
            sources[f"{folder}/{part.name}"] = part.read_text(encoding="utf-8")
    sources["supervisor.py"] = package.joinpath("supervisor.py").read_text(encoding="utf-8")
    try:
        (state / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in sources.items():  # the file to run last
            if not (state / name).is_file() or (state / name).read_text("utf-8") != text:
                write_text(str(state / name), text)
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(f"state directory {state}: cannot write the supervisor: {error}") from None
    return state / "supervisor.py"


def supervisor_argv(state: Path, directory: Path, python: str = sys.executable) -> list[str]:
    """Command to execute on a node for the order in a lease's directory."""
    return [python, "-I", "-S", str(state / "supervisor.py"), str(directory)]


LEDGER = "run.db"


@contextmanager
def locked(state: Path) -> Iterator[None]:
    """Be the only driver of a state directory, which is made if it does not exist.

    Raises
    ------
    InputError
        If it belongs to somebody else or others may write to it.
    HostError
        If another driver has it.
    """
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = state.stat()
    except OSError as error:
        raise InputError(f"state directory {state}: {error.strerror}") from error
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InputError(
            f"state directory {state}: others may write to it, expected one of your own with mode 0700"
        )
    state.chmod(0o700)
    lock = os.open(state / "driver.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(lock, 20, 0).decode("ascii", "replace").strip() or "unknown"
            raise HostError(
                f"state directory {state}: another driver (process {pid}) executes it; wait for it, or "
                "choose another with --state"
            ) from None
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def open_ledger(state: Path, identity: Mapping[str, object]) -> tuple[RunLedger, bool]:
    """The ledger of a state directory, and whether a run is resumed.

    Raises
    ------
    InputError
        If the directory is of a run with other settings.
    """
    path = state / LEDGER
    if path.exists():
        ledger = RunLedger.open(path)
        if ledger.value("ready"):
            _check_identity(ledger, identity, state)
            return ledger, True
        # A driver died before it had written down what is run: nothing has happened yet.
        ledger.close()
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    ledger = RunLedger.create(path)
    with ledger.transaction():
        ledger.set("run_id", uuid.uuid4().hex)
        ledger.set("began_unix", time.time())
        ledger.set("ended", False)
        for key, value in identity.items():
            ledger.set(key, value)
    return ledger, False


def _check_identity(ledger: RunLedger, identity: Mapping[str, object], state: Path) -> None:
    files = {"jobs_sha256": "the job file", "throughputs_sha256": "the table of throughputs"}
    for key, value in identity.items():
        before = ledger.value(key)
        if before != value:
            what = f"{files[key]} has changed" if key in files else f"{key} is {value!r}"
            was = "" if key in files else f" with {before!r}"
            raise InputError(
                f"state directory {state}: {what}, but its run was begun{was or ' with another'}; "
                "resume it as it was begun, or choose another directory with --state"
            )
