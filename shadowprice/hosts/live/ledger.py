"""The run's memory: one SQLite file that outlives the driver.

Everything is written before it is acted upon, in transactions that a killed process leaves either
whole or undone. ``run`` says what is executed, ``jobs`` where every job stands, ``events`` what
happened (append-only; :mod:`shadowprice.hosts.log.execution_log` checks it), ``samples`` and
``observations`` what was measured, ``submissions`` the jobs that were added to a queue, ``journal`` what
hosts answered to the engine, from which a new driver brings the policy back to where it was
(:mod:`shadowprice.hosts.live.replay`).
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shadowprice.errors import HostError, InputError
from shadowprice.hosts.protocol import DiscoveredNode
from shadowprice.hosts.supervision.files import sync_folder

if TYPE_CHECKING:
    # The table of jobs is looked at without arrays.
    from shadowprice.hosts.throughput_files import Observation

SCHEMA_VERSION = 3
_READABLE = frozenset({2, SCHEMA_VERSION})
"""Versions with the same tables; answers in the journal of older ones have another form."""

_SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'expected',
    step INTEGER NOT NULL DEFAULT 0, iterations INTEGER NOT NULL, gpus INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0, arrival_s REAL NOT NULL,
    first_start_s REAL, finish_s REAL, predicted_rate REAL, measured_rate REAL,
    model TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', cancel INTEGER NOT NULL DEFAULT 0,
    retry INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, time_s REAL NOT NULL, kind TEXT NOT NULL,
    job TEXT NOT NULL, epoch INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX events_of_kind ON events (kind, seq);
CREATE TABLE samples (
    time_s REAL NOT NULL, job TEXT NOT NULL, epoch INTEGER NOT NULL, step INTEGER NOT NULL,
    rate REAL, co_runner TEXT NOT NULL, gpu_type TEXT NOT NULL, gpus INTEGER NOT NULL,
    nodes INTEGER NOT NULL
);
CREATE TABLE observations (
    job TEXT NOT NULL, model TEXT NOT NULL, gpus INTEGER NOT NULL, gpu_type TEXT NOT NULL,
    nodes INTEGER NOT NULL, co_runner TEXT NOT NULL, co_model TEXT NOT NULL,
    steps INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (job, gpus, gpu_type, nodes, co_runner)
) WITHOUT ROWID;
CREATE TABLE submissions (
    seq INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, arrival_s REAL NOT NULL, job TEXT NOT NULL,
    env TEXT NOT NULL
);
CREATE TRIGGER forget AFTER UPDATE OF state ON jobs WHEN NEW.state IN ('finished', 'cancelled') BEGIN
    UPDATE submissions SET env = '{}' WHERE name = NEW.name;
END;
CREATE TABLE journal (seq INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, data TEXT NOT NULL);
"""

Row = dict[str, Any]


_MENDS = (
    (("full", "No space", "quota"), "free space on its disk"),
    (("readonly", "read-only", "Read-only"), "mount its disk for writing"),
    (("locked", "busy"), "close the program that has the ledger open, `lsof` names it"),
    (("Permission", "permitted"), "make the directory your own, mode 0700"),
    (
        ("I/O", "malformed", "not a database"),
        "see to its disk, or bring a copy of the directory back",
    ),
)


def mend(error: BaseException) -> str:
    """Advice to a person on an error of a disk or of the ledger, in the imperative."""
    text = str(error)
    return next(
        (what for words, what in _MENDS if any(word in text for word in words)), "mend that"
    )


class DiskWait(Protocol):
    """Behaviour of a driver while the disk is full."""

    def full(self, why: str) -> None:
        """Let some time pass: nothing could be written."""

    def free(self) -> None:
        """Go on: something could be written."""


def is_full(error: sqlite3.Error, path: Path) -> bool:
    """True if an error says that there is no space, or is one of the disk and there is none."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return True
    if code not in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return False
    try:
        return os.statvfs(path.parent).f_bavail == 0
    except OSError:
        return False


class RunLedger:
    """An open ledger; :meth:`create` makes one, :meth:`open` opens one that exists.

    Parameters
    ----------
    connection : sqlite3.Connection
        In autocommit mode; transactions are explicit.
    path : Path
        For messages.

    Attributes
    ----------
    disk : DiskWait or None
        Who waits while the disk is full; without, that is an error.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._db = connection
        self._db.row_factory = sqlite3.Row
        self.path = path
        self._generation: int | None = None
        self.disk: DiskWait | None = None
        self._written: list[tuple[str, tuple[object, ...]]] = []
        self._with_next: list[tuple[str, object]] = []

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, object] | None = None) -> RunLedger:
        """A new ledger, readable and writable by its owner only, with facts about the run."""
        # Under another name until it is whole: a driver may be killed, or the disk be full. So that nothing
        # is waited for but that the whole file is on the disk, and its name.
        made = path.with_name(f"{path.name}.new")
        for suffix in ("", "-journal", "-wal", "-shm"):
            made.with_name(made.name + suffix).unlink(missing_ok=True)
        descriptor = os.open(made, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            connection = sqlite3.connect(made, isolation_level=None, timeout=10.0)
            try:
                connection.executescript(
                    "PRAGMA synchronous = OFF;PRAGMA journal_mode = WAL;"
                    f"BEGIN;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
                )
                ledger = cls(connection, path)
                with ledger.transaction():
                    for key, value in (facts or {}).items():
                        ledger.set(key, value)
            finally:
                connection.close()
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        made.rename(path)
        sync_folder(str(path.parent))
        return cls.open(path)

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> RunLedger:
        """An existing ledger.

        Raises
        ------
        InputError
            If there is none, or it is no ledger of this version.
        """
        try:
            exists = path.is_file()
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
        if not exists:
            raise InputError(
                f"{path.parent}: is no state directory of a run: it has no {path.name}, expected what "
                "`shadowprice execute --state` was given"
            )
        uri = f"{path.resolve().as_uri()}?mode={'ro' if readonly else 'rw'}"
        try:
            ledger = cls(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10.0), path)
            version = ledger._db.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.Error as error:
            raise InputError(f"{path}: is not a ledger: {error}") from error
        if version not in (_READABLE if readonly else {SCHEMA_VERSION}):
            raise InputError(f"{path}: has version {version}, expected {SCHEMA_VERSION}")
        if not readonly:
            ledger._settle()
        return ledger

    def _settle(self) -> None:
        # FULL: what was written before an action is on the disk before the action.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # What is forgotten, variables of jobs for instance, is overwritten.
        self._db.execute("PRAGMA secure_delete = ON")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def take_over(self, driver: Mapping[str, object]) -> None:
        """Be the one driver that writes; whoever was before is refused from now on.

        Parameters
        ----------
        driver : mapping
            What is known of the driver, for those who come later.
        """
        with self.transaction():
            before = self.value("driver", {})
            self._generation = int(before.get("generation", 0)) + 1
            self.set("driver", {**driver, "generation": self._generation})

    def _check_driver(self) -> None:
        """Refuse a driver that another has taken the run over from."""
        if self._generation is None:
            return
        driver = self.value("driver", {})
        if driver.get("generation") != self._generation:
            raise HostError(
                f"{self.path}: another driver (process {driver.get('pid')}) has taken the run over; this "
                "one wrote nothing since and ends, and the jobs go on"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside, or nothing.

        Raises
        ------
        HostError
            If it cannot be written: the disk is full, the file was removed, or another driver has
            taken the run over.
        """
        if self._db.in_transaction:
            yield
            return
        try:
            self._execute("BEGIN IMMEDIATE")
            self._check_driver()
            for call, data in self._with_next:
                self._answer(call, data)
            yield
            self._execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise HostError(
                f"{self.path}: cannot be written: {error}; {mend(error)}, and the same command goes on"
            ) from error
        except BaseException:
            self._roll_back()
            raise
        self._written, self._with_next = [], []
        if self.disk is not None:
            self.disk.free()

    def _roll_back(self) -> None:
        self._written = []
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> None:
        """Execute a statement of a transaction; while the disk is full, all of it again and again.

        SQLite takes a transaction back with some of these errors, and not with others.
        """
        while True:
            try:
                if self._written and not self._db.in_transaction:
                    self._again()
                self._db.execute(statement, values)
            except sqlite3.Error as error:
                if self.disk is None or not is_full(error, self.path):
                    raise
                why = str(error)
            else:
                self._written.append((statement, values))
                return
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            self.disk.full(why)

    def _again(self) -> None:
        """Begin again, and repeat what was written in the transaction."""
        for k, each in enumerate(self._written):
            self._db.execute(*each)
            if k == 0:
                self._check_driver()

    def set(self, key: str, value: object) -> None:
        """Remember a fact about the run."""
        self._write("INSERT OR REPLACE INTO run VALUES (?, ?)", (key, json.dumps(value)))

    def value(self, key: str, default: object = None) -> Any:
        """A fact about the run."""
        row = self._db.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return default if row is None else json.loads(row[0])

    def nodes(self) -> tuple[DiscoveredNode, ...]:
        """Nodes with which the run began, in the order of discovery."""
        return tuple(map(DiscoveredNode.from_record, self.value("nodes", ())))

    def add_job(self, name: str, **columns: object) -> None:
        """A job of the run."""
        self._insert("jobs", {"name": name, **columns})

    def update_job(self, name: str, **columns: object) -> None:
        """Change columns of a job."""
        settings = ", ".join(f"{column} = ?" for column in columns)
        self._write(f"UPDATE jobs SET {settings} WHERE name = ?", (*columns.values(), name))

    def jobs(self) -> list[Row]:
        """All jobs, in the order of the workload."""
        return self._rows("SELECT * FROM jobs ORDER BY position")

    def cancelled(self) -> frozenset[str]:
        """Names of the jobs that somebody wants to be cancelled."""
        return self._names("cancel = 1")

    def retried(self) -> frozenset[str]:
        """Names of the jobs that were given up and that somebody wants to be taken up again."""
        return self._names("retry = 1 AND state = 'failed'")

    def _names(self, condition: str) -> frozenset[str]:
        return frozenset(
            row["name"] for row in self._rows(f"SELECT name FROM jobs WHERE {condition}")
        )

    def submit(self, name: str, **columns: object) -> None:
        """A job that was added to the queue; see the table ``submissions``."""
        self._insert("submissions", {"name": name, **columns})

    def submissions(self, since: int = 0) -> list[Row]:
        """Jobs that were added to the queue after the one with a number, in order."""
        return self._rows("SELECT * FROM submissions WHERE seq > ? ORDER BY seq", (since,))

    def submission(self, number: int) -> Row:
        """The job with a number that was added.

        Raises
        ------
        InputError
            If there is none.
        """
        rows = self._rows("SELECT * FROM submissions WHERE seq = ?", (number,))
        if not rows:
            raise InputError(f"{self.path}: has no submission {number}, which its journal names")
        return rows[0]

    def last_submission(self) -> tuple[int, float]:
        """Number and arrival [s] of the job that was added last; 0 before the first."""
        last = self._rows("SELECT seq, arrival_s FROM submissions ORDER BY seq DESC LIMIT 1")
        return (int(last[0]["seq"]), float(last[0]["arrival_s"])) if last else (0, 0.0)

    def event(
        self, time_s: float, kind: str, job: str = "", epoch: int = 0, **data: object
    ) -> None:
        """Append to what happened."""
        columns = {"time_s": time_s, "kind": kind, "job": job, "epoch": epoch}
        self._insert("events", {**columns, "data": json.dumps(data)})

    def events(self, since: int = 0) -> list[Row]:
        """Events after a given one, with ``data`` as a dict."""
        rows = self._rows("SELECT * FROM events WHERE seq > ? ORDER BY seq", (since,))
        return [row | {"data": json.loads(row["data"])} for row in rows]

    def sample(self, **columns: object) -> None:
        """One measurement of a running job."""
        self._insert("samples", columns)

    def samples(self) -> list[Row]:
        """All measurements, in the order they were made."""
        return self._rows("SELECT * FROM samples ORDER BY rowid")

    def observe(self, seen: Observation) -> None:
        """Add timed steps to those of a job under the same conditions."""
        self._insert(
            "observations",
            asdict(seen),
            "ON CONFLICT DO UPDATE SET steps = steps + excluded.steps, "
            "seconds = seconds + excluded.seconds",
        )

    def observations(self) -> list[Row]:
        """Sums of timed steps and seconds, by job and conditions."""
        return self._rows("SELECT * FROM observations ORDER BY job, gpu_type, nodes, co_runner")

    def leases_with(self, kind: str) -> frozenset[tuple[str, int]]:
        """Job and epoch of every lease of which such an event is written down."""
        rows = self._rows("SELECT DISTINCT job, epoch FROM events WHERE kind = ?", (kind,))
        return frozenset((row["job"], row["epoch"]) for row in rows)

    def last_s(self) -> float:
        """The latest time that was written down [s], 0 before the first."""
        answers = (
            "SELECT data FROM journal WHERE call IN ('await', 'time') ORDER BY seq DESC LIMIT 2"
        )
        times_s = [json.loads(row["data"]) for row in self._rows(answers)]
        for table in ("events", "samples"):
            last = self._rows(f"SELECT time_s FROM {table} ORDER BY rowid DESC LIMIT 1")
            times_s += [row["time_s"] for row in last]
        return max((float(time_s) for time_s in times_s if time_s < math.inf), default=0.0)

    def answer(self, call: str, data: object) -> None:
        """Append to what hosts answered to the engine."""
        with self.transaction():
            self._answer(call, data)

    def answer_with_next(self, call: str, data: object) -> None:
        """Append to what hosts answered when something is written next; lost if nothing is."""
        if self._db.in_transaction:
            self._answer(call, data)
        else:
            self._with_next.append((call, data))

    def _answer(self, call: str, data: object) -> None:
        self._insert("journal", {"call": call, "data": json.dumps(data)})

    def answers(self) -> Iterator[tuple[str, Any]]:
        """Answers of hosts, in order; read as they are asked for, since of weeks they are many."""
        seq = 0
        some = "SELECT seq, call, data FROM journal WHERE seq > ? ORDER BY seq LIMIT 100"
        while rows := self._rows(some, (seq,)):
            for row in rows:
                yield row["call"], json.loads(row["data"])
            seq = rows[-1]["seq"]

    def _insert(self, table: str, row: Mapping[str, object], on_conflict: str = "") -> None:
        marks = ", ".join("?" * len(row))
        self._write(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) {on_conflict}",
            tuple(row.values()),
        )

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with self.transaction():
            self._execute(statement, values)

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Row]:
        try:
            return [dict(row) for row in self._db.execute(statement, values)]
        except sqlite3.Error as error:
            raise InputError(f"{self.path}: cannot be read: {error}") from error
