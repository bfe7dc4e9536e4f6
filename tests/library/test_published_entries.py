"""Entries of the package: each is verified anew; `make library` does all, and asks that there is one a row."""

from __future__ import annotations

import pytest

from shadowprice.library.collection import FOLDER
from shadowprice.library.entries.entry import read_entry
from shadowprice.library.table import Row, rows_of
from shadowprice.library.verification import verify_entry

MOST_TESTED = 100
"""Jobs up to which every run of the tests verifies an entry."""
MOST_BYTES = 6_000_000
"""Bytes of all that the wheel has of the library's data."""


def published(large: bool) -> list[Row]:
    rows = [row for row in rows_of() if row.entry is not None]
    return [row for row in rows if (row.which.jobs > MOST_TESTED) == large]


def name_of(row: Row) -> str:
    return f"{row.which.name}-{row.objective}"


@pytest.mark.parametrize("row", published(False), ids=name_of)
def test_a_published_entry_verifies(row: Row) -> None:
    if absent := row.which.absent():
        pytest.skip(f"data set {absent[0]} is not here")
    found = verify_entry(row.which, row.objective, read_entry(row.which.name, row.objective))
    assert found == row.values


@pytest.mark.slow
@pytest.mark.parametrize("row", published(True), ids=name_of)
def test_a_large_published_entry_verifies(row: Row) -> None:
    test_a_published_entry_verifies(row)


def test_the_folder_of_the_version_is_small_and_has_no_other_entries() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    known = {(row.which.name, str(row.objective)) for row in rows_of()}
    folders = {path.parent.relative_to(FOLDER).parts for path in files if path.name == "entry.json"}
    assert {parts[1:] for parts in folders} <= known
