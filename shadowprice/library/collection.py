"""The collection: all instances of the library, with the digests under which they were published."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.instances.entries import expected_name
from shadowprice.instances.files import read_json
from shadowprice.library.families import (
    amounts,
    failures,
    gangs,
    graphs,
    sharing,
    types,
    widths,
)
from shadowprice.library.library_instance import LibraryInstance

NAME = "dlschedlib"
"""Name of the collection."""
VERSION = "v1"
"""Version: what is published in one never changes."""
FOLDER = Path(__file__).parent / VERSION
"""Folder of the digests and the entries of this version."""
DIGESTS = FOLDER / "digests.json"
"""SHA-256 of the written form and of the records in certificates of each instance, by name."""
FAMILIES = (
    gangs.FAMILY,
    types.FAMILY,
    amounts.FAMILY,
    sharing.FAMILY,
    graphs.FAMILY,
    failures.FAMILY,
    widths.FAMILY,
)
"""Families in the order of the table."""


@cache
def instances() -> tuple[LibraryInstance, ...]:
    """All instances, by family and size."""
    digests: dict[str, dict[str, str]] = read_json(DIGESTS)
    unpublished = {"written": "", "records": ""}
    return tuple(
        LibraryInstance(
            name,
            family.name,
            each.recipe,
            each.objectives,
            each.preemptive,
            digests.get(name, unpublished)["written"],
            digests.get(name, unpublished)["records"],
        )
        for family in FAMILIES
        for name, each in family.named()
    )


def library_instance(name: str) -> LibraryInstance:
    """An instance by its name.

    Raises
    ------
    InputError
        If there is none.
    """
    known = {each.name: each for each in instances()}
    if name not in known:
        raise InputError(
            f"instance {name!r}: {expected_name(name, known, 'shadowprice library list')}"
        )
    return known[name]
