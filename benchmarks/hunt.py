"""A hunt for the worst instance of every policy: so many CPU minutes each, going on where it was stopped.

``python benchmarks/hunt.py FOLDER [--minutes N] [--policies NAME,...]`` keeps a file for each policy in the folder. The
files of the package in ``shadowprice/instances/hunted`` are such, and ``benchmarks/records/hunt.md`` is their table
(``make hunt``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from shadowprice.analysis.adversary.hunt import Hunt, go_on
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective

HUNTS = (
    # Policies about which theorems state a factor, and those of the systems.
    Hunt("asrpt"),
    Hunt("asrpt", max_error=1),
    Hunt("las2d:thresholds_gpu_s=4"),
    Hunt("las:quantum_s=1"),
    Hunt("server-filling-srpt", Objective.FLOW),
    Hunt("hadar-committed:round_s=1"),
    Hunt("hadar:round_s=1"),
    Hunt("gandiva:quantum_s=1"),
    Hunt("gavel:round_s=1"),
    Hunt("synergy-tune:round_s=1"),
    Hunt("gittins2d:thresholds_gpu_s=4"),
    Hunt("asrpt-guarded"),
    Hunt("srtf"),
    # The others.
    Hunt("asrpt-early"),
    Hunt("fifo"),
    Hunt("sjf"),
    Hunt("easy"),
    Hunt("srsf"),
    Hunt("hesrpt"),
    Hunt("lpf"),
    Hunt("msf"),
    Hunt("oasis:round_s=1"),
    Hunt("server-filling-gittins", Objective.FLOW),
    Hunt("fifo-skip"),
    Hunt("quickswap"),
    Hunt("spjf"),
    Hunt("spwf"),
    Hunt("wcs-duration"),
    Hunt("wcs-subtime"),
    Hunt("wcs-workload"),
    Hunt("gandiva-reactive:quantum_s=1"),
    Hunt("drf:round_s=1"),
    Hunt("tetris:round_s=1"),
    Hunt("synergy-greedy:round_s=1"),
    Hunt("synergy-opt:round_s=1"),
    Hunt("synergy-proportional:round_s=1"),
    Hunt("b-scaling"),
    Hunt("asrpt-robust"),
)
"""In the order in which they have their minutes; rounds and quanta of one unit of the families.

HadarE is not among them: it runs copies of jobs by rules that these families do not have.
"""


def main() -> None:
    """Give every hunt its minutes, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0, help="CPU minutes a hunt")
    parser.add_argument("--policies", default="", help="names of hunts, by default all")
    given = parser.parse_args()
    known = {hunt.name: hunt for hunt in HUNTS}
    names = [name for name in given.policies.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            sys.exit(f"error: hunt {name!r}: expected some of {', '.join(known)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            found = go_on(known[name], given.folder, 60 * given.minutes)
            print(f"{name}: {found.ratio} = {float(found.ratio):.4f}", flush=True)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
