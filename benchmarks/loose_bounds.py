"""How much each lower bound can lose: the loosest instance found of each kind, with its optimum.

``python benchmarks/loose_bounds.py FOLDER [--evaluations N] [--only NAME,...]`` writes a file for each kind of bound,
and prints a table. The files of the package in ``shadowprice/instances/loose`` come from 150 evaluations of each.
"""

from __future__ import annotations

from searches import Found, search_each

from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.analysis.adversary.loosest import EVALUATIONS, loosest

FAMILY = InstanceFamily(jobs=6, gpus=4, max_arrival=6, max_work=6)


def find(kind: str, evaluations: int) -> Found:
    """The loosest instance of a kind of bound."""
    found = loosest(kind, FAMILY, evaluations=evaluations)
    says = f"{float(found.ratio):.4f} (optimum {found.optimum_s:g} s)"
    return Found(f"{kind}.json", found.to_json(), says)


if __name__ == "__main__":
    search_each(__doc__, EVALUATIONS, 150, find)
