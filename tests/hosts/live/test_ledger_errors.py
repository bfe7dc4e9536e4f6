"""Errors of the ledger's disk: each names what a person can do."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from shadowprice.errors import HostError
from shadowprice.hosts.live.ledger import mend
from shadowprice.hosts.live.state_directory import open_ledger


def test_a_full_ledger_says_to_free_space(tmp_path: Path) -> None:
    ledger, _ = open_ledger(tmp_path, {})
    pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
    ledger._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(HostError, match="free space on its disk, and the same command goes on"):
        ledger.set("a", "x" * 100_000)
    assert ledger.value("a") is None


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
