"""``python -m shadowprice.library.search NAME ... --seconds 60``: better entries, by names or patterns."""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import sys
from pathlib import Path

from shadowprice.errors import ShadowpriceError
from shadowprice.library.collection import instances
from shadowprice.library.entries.entry import ENTRIES
from shadowprice.library.search.improve import EntrySearch


def main(arguments: list[str]) -> int:
    """Search instances one after the other; one that fails is named, and the next one goes on."""
    parser = argparse.ArgumentParser(prog="python -m shadowprice.library.search")
    parser.add_argument("names", nargs="+", help="names or patterns of instances: 'gangs-10-*'")
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of a search [s]")
    parser.add_argument("--bound-seconds", type=float, default=60.0, help="time of a bound [s]")
    parser.add_argument("--seed", type=int, default=0, help="seed of random moves")
    parser.add_argument("--root", type=Path, default=ENTRIES, help="folder of entries")
    chosen = parser.parse_args(arguments)
    date, failed = datetime.datetime.now(datetime.UTC).date().isoformat(), 0
    for pattern in chosen.names:
        if not fnmatch.filter([each.name for each in instances()], pattern):
            parser.error(f"{pattern}: no instance has such a name, see `shadowprice library list`")
    for which in instances():
        if not any(fnmatch.fnmatch(which.name, each) for each in chosen.names):
            continue
        if absent := which.absent():
            print(f"{which.name}: left out, data set {absent[0]} is not here", flush=True)
            continue
        try:
            EntrySearch(
                which, chosen.seconds, chosen.bound_seconds, chosen.seed, date, chosen.root, _say
            ).run()
        except ShadowpriceError as error:
            failed += 1
            print(f"{which.name}: {error}", file=sys.stderr, flush=True)
    return min(failed, 1)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
