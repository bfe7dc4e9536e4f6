"""The command: ``python checker FILE [DIGEST]``."""

from __future__ import annotations

import sys

from .claim import check_lines, sentences
from .form import Rejected, need


def main() -> int:
    """Check the file named on the command line; exit code 0 if it proves its claim, else 1."""
    try:
        with open(sys.argv[1], encoding="ascii", newline="\n") as file:
            claim = check_lines(file)
        asked = sys.argv[2:3] or [claim["instance"]]
        need([claim["instance"]] == asked, f"the instance is {claim['instance']}, not {asked[0]}")
    except (IndexError, OSError, UnicodeDecodeError, Rejected) as error:
        print(f"rejected: {error} (usage: python checker FILE [DIGEST])", file=sys.stderr)
        return 1
    print(*sentences(claim), sep="\n")
    return 0
