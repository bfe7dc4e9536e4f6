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
        lines = "\n".join(sentences(claim))
    except (IndexError, OSError, MemoryError, ValueError, Rejected) as error:
        print(f"rejected: {error} (usage: python checker FILE [DIGEST])", file=sys.stderr)
        return 1
    coding = sys.stdout.encoding or "ascii"
    print(lines.encode(coding, "backslashreplace").decode(coding))
    return 0
