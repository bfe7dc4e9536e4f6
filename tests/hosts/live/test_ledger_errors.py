"""Errors of the ledger's disk: each names what a person can do."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import HostError
from shadowprice.hosts.live.ledger import RunLedger, mend
from shadowprice.hosts.live.state_directory import (
    locked,
    open_ledger,
    read_notice,
    write_notice,
)


def test_a_full_ledger_says_to_free_space(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(HostError, match="free space on its disk, and the same command goes on"):
        ledger.set("a", "x" * 100_000)
    assert ledger.value("a") is None


class Waiting:
    """Makes room after some tries."""

    def __init__(self, ledger: RunLedger, tries: int) -> None:
        self.ledger, self.tries, self.freed = ledger, tries, 0
        self.why: list[str] = []

    def full(self, why: str) -> None:
        assert not self.ledger._db.in_transaction
        self.why.append(why)
        if len(self.why) == self.tries:
            self.ledger._db.execute("PRAGMA max_page_count = 100000")

    def free(self) -> None:
        self.freed += 1


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=6), st.integers(1, 3))
def test_a_transaction_is_whole_after_the_disk_was_full(sizes: list[int], tries: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger, _ = open_ledger(Path(folder), {})
        pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
        ledger._db.execute(f"PRAGMA max_page_count = {pages}")
        ledger.disk = disk = Waiting(ledger, tries)
        with ledger.transaction():
            for k, size in enumerate(sizes):
                ledger.event(float(k), "note", text="x" * size)
                ledger.set(f"key {k}", size)
        told = [(row["seq"], len(row["data"]["text"])) for row in ledger.events()]
        assert told == [(k, size) for k, size in enumerate(sizes, 1)]
        assert [ledger.value(f"key {k}") for k in range(len(sizes))] == sizes
        assert len(disk.why) in (0, tries)
        assert disk.freed == 1
        ledger.close()


def test_a_driver_that_waits_and_is_superseded_writes_nothing(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    ledger.take_over({"pid": 1})
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")

    class Superseded(Waiting):
        def full(self, why: str) -> None:
            super().full(why)
            other = RunLedger.open(tmp_path / "run.db")
            other.take_over({"pid": 2})
            other.close()

    ledger.disk = Superseded(ledger, 1)
    with pytest.raises(HostError, match=r"another driver \(process 2\) has taken the run over"):
        ledger.set("a", "x" * 100_000)
    assert ledger.value("a") is None


def test_what_a_driver_waits_for_is_in_the_file_of_its_lock(tmp_path: Path) -> None:
    with locked(tmp_path):
        lock = tmp_path / "driver.lock"
        size = lock.stat().st_size
        assert read_notice(lock) == ""
        write_notice(lock, "the driver waits: " + "long " * 100)
        assert read_notice(lock).startswith("the driver waits: long")
        assert lock.stat().st_size == size  # no space is needed
        with (
            pytest.raises(HostError, match=rf"another driver \(process {os.getpid()}\)"),
            locked(tmp_path),
        ):
            pass
        write_notice(lock, "")
        assert read_notice(lock) == ""
    assert read_notice(tmp_path / "nothing") == ""


def test_a_ledger_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    ledger._db.execute("PRAGMA query_only = 1")
    with pytest.raises(HostError, match="mount its disk for writing, and the same command goes on"):
        ledger.set("a", 1)


def test_a_locked_ledger_says_who_to_close(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    ledger._db.execute("PRAGMA busy_timeout = 1")
    other = sqlite3.connect(tmp_path / "run.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HostError, match="close the program that has the ledger open"):
        ledger.set("a", 1)
    other.close()
    ledger.set("a", 1)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "free space"),
        (OSError(122, "Disk quota exceeded"), "free space"),
        (OSError(30, "Read-only file system"), "mount its disk for writing"),
        (PermissionError(13, "Permission denied"), "mode 0700"),
        (sqlite3.OperationalError("disk I/O error"), "see to its disk"),
        (sqlite3.DatabaseError("database disk image is malformed"), "see to its disk"),
        (ValueError("anything"), "mend that"),
    ],
)
def test_every_error_has_a_mend(error: Exception, words: str) -> None:
    assert words in mend(error)
