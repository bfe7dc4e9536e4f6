"""How close theorems come to being tight: the instance found that comes closest to what each of them allows.

``python benchmarks/tight_instances.py FOLDER [--evaluations N] [--theorems NAME,...]`` writes a file for each theorem,
and prints a table. The files of the package in ``shadowprice/instances/tight`` say how many
evaluations each came from.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from shadowprice.analysis.adversary.tightest.catalogue import TIGHTNESS
from shadowprice.analysis.adversary.tightest.search import tightest
from shadowprice.errors import InputError


def main() -> None:
    """Look for an instance of each theorem, write and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--evaluations", type=int, default=4_000)
    parser.add_argument("--theorems", default=",".join(TIGHTNESS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        for theorem in given.theorems.split(","):
            began = time.process_time()
            found = tightest(theorem, evaluations=given.evaluations)
            (given.folder / f"{found.name}.json").write_text(found.to_json(), encoding="utf-8")
            spent = time.process_time() - began
            allowed = "-" if found.allowed is None else f"{float(found.allowed):.4f}"
            print(
                f"{theorem}: {float(found.attained):.4f} of {allowed} ({spent:.0f} CPU s)",
                flush=True,
            )
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
