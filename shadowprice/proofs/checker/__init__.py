"""Check a certificate: ``python FOLDER FILE [DIGEST]``. Standard library only; imports nothing else.

A certificate claims that a schedule costs at most r times what any schedule of its class costs, or that none has
more than r times its total utility; README.md has its format, what is checked, and which bound holds for
which class. The file is read once, line by line: of jobs a few numbers are kept, of runs only what is still held or
not yet done. Checked are form and digests; the schedule (every job runs, after its arrival, on its gang, one run at
a time, on types it can use, all of its work, overheads charged and paid first, no node over its GPUs); the cost; the
bound, from its multipliers by weak duality, which must be as large as claimed; and cost <= r x bound, r >= 1. Numbers
are whole or fractions, and nothing is rounded in favour of the claim. Speeds under conditions are doubles, and
a run time divided by them is rounded up as IEEE 754 says: that is their definition.

With DIGEST, which `shadowprice certify` prints, the instance must be the one of this digest.

The folder is a part of the package and a program of its own, wherever it is copied: its files import one another by
relative names, and nothing else but the standard library.
"""

from .claim import at_most, check, check_lines, sentences
from .form import Rejected, canonical, digest

__all__ = ["Rejected", "at_most", "canonical", "check", "check_lines", "digest", "sentences"]
