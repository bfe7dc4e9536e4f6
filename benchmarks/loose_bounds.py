"""How much each lower bound can lose: the loosest instance found of each kind, with its optimum.

``python benchmarks/loose_bounds.py FOLDER [--evaluations N]`` writes a file for each kind of bound, and prints a table.
The files of the package in ``shadowprice/instances/loose`` come from 150 evaluations of each.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.loosest import EVALUATIONS, loosest

FAMILY = InstanceFamily(jobs=6, gpus=4, max_arrival=6, max_work=6)


def main() -> None:
    """Look for an instance of each kind, write and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--evaluations", type=int, default=150)
    parser.add_argument("--kinds", default=",".join(EVALUATIONS))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for kind in given.kinds.split(","):
        began = time.process_time()
        found = loosest(kind, FAMILY, evaluations=given.evaluations)
        (given.folder / f"{kind}.json").write_text(found.to_json(), encoding="utf-8")
        spent = time.process_time() - began
        print(
            f"{kind}: {float(found.ratio):.4f} (optimum {found.optimum_s:g} s, {spent:.0f} CPU s)"
        )


if __name__ == "__main__":
    main()
