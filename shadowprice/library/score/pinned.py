"""Bounds of the suites' fixed instances, as they were when a suite was published.

Better ones that the library gets later change no score.
``python -m shadowprice.library.score.pinned`` adds those of instances that have none; it takes minutes.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.errors import InputError
from shadowprice.instances.files import read_bytes
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.score.suites import OBJECTIVE, SUITES

FOLDER = Path(__file__).parent / "bounds"
"""Folder of the bounds, and of the list of them."""
LIST = FOLDER / "bounds.json"
"""Of each instance its digest, the kind of its bound, its value [ticks], and the SHA-256 of its text."""

_SECONDS = 120.0
"""Time for a bound [s]."""


@dataclass(frozen=True)
class PinnedBound:
    """A bound of a fixed instance.

    Parameters
    ----------
    instance : str
    digest : str
        SHA-256 of the written form of the instance.
    kind : str
    ticks : Fraction
        No preemptive schedule costs less.
    sha256 : str
        Of the text of the bound.
    """

    instance: str
    digest: str
    kind: str
    ticks: Fraction
    sha256: str


@cache
def pinned_bounds() -> dict[str, PinnedBound]:
    """All of them by instance, as the list says."""
    rows = json.loads(LIST.read_text(encoding="ascii")) if LIST.is_file() else {}
    return {
        name: PinnedBound(name, row["digest"], row["kind"], Fraction(row["ticks"]), row["sha256"])
        for name, row in rows.items()
    }


def stored_bound(pinned: PinnedBound) -> StoredBound:
    """Multipliers of a bound, from its file.

    Raises
    ------
    InputError
        If the file is another one than the list says.
    """
    path = FOLDER / f"{pinned.instance}.jsonl.xz"
    text = read_bytes(path).decode("ascii", errors="replace")
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    if digest != pinned.sha256:
        raise InputError(f"{path}: has SHA-256 {digest}, expected {pinned.sha256}")
    return StoredBound.of_text(text, str(path))


def pin() -> list[str]:
    """Bounds of the instances of all suites that have none are searched and written; their names."""
    rows = json.loads(LIST.read_text(encoding="ascii")) if LIST.is_file() else {}
    names = {name for suite in SUITES.values() for name in suite.fixed}
    new = sorted(names - set(rows))
    FOLDER.mkdir(exist_ok=True)
    for name in new:
        which = library_instance(name)
        bound = certified_bounds(which.instance(), [OBJECTIVE], BoundEffort(_SECONDS))[OBJECTIVE]
        text = StoredBound.of_bound(bound).text()
        (FOLDER / f"{name}.jsonl.xz").write_bytes(lzma.compress(text.encode("ascii"), preset=9))
        rows[name] = {
            "digest": which.digest,
            "kind": bound.kind,
            "ticks": str(bound.ticks),
            "sha256": hashlib.sha256(text.encode("ascii")).hexdigest(),
        }
        lines = [f" {json.dumps(each)}: {json.dumps(rows[each])}" for each in sorted(rows)]
        LIST.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
    return new


if __name__ == "__main__":
    print("\n".join(pin()))
