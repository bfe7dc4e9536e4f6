"""How close theorems come to being tight: the instance found that comes closest to what each of them allows.

``python benchmarks/tight_instances.py FOLDER [--evaluations N] [--only NAME,...]`` writes a file for each theorem,
and prints a table. The files of the package in ``shadowprice/instances/tight`` say how many
evaluations each came from.
"""

from __future__ import annotations

from searches import Found, search_each

from shadowprice.analysis.adversary.tightest.catalogue import TIGHTNESS
from shadowprice.analysis.adversary.tightest.search import tightest


def find(theorem: str, evaluations: int) -> Found:
    """The tightest instance of a theorem."""
    found = tightest(theorem, evaluations=evaluations)
    allowed = "-" if found.allowed is None else f"{float(found.allowed):.4f}"
    says = f"{float(found.attained):.4f} of {allowed}"
    return Found(f"{found.name}.json", found.to_json(), says)


if __name__ == "__main__":
    search_each(__doc__, TIGHTNESS, 4_000, find)
