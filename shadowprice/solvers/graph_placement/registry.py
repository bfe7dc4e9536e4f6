"""Placements of job graphs by name: the ``GRAPH_PLACEMENTS`` of every module of this package."""

from __future__ import annotations

import shadowprice.solvers.graph_placement
from shadowprice.errors import InputError
from shadowprice.solvers.graph_placement.protocol import GraphPlacement
from shadowprice.solvers.registry import modules


def graph_placements() -> dict[str, GraphPlacement]:
    """All of them by name.

    Raises
    ------
    InputError
        If two have the same name.
    """
    found: dict[str, GraphPlacement] = {}
    for module in modules(shadowprice.solvers.graph_placement):
        for item in getattr(module, "GRAPH_PLACEMENTS", ()):
            if item.name in found:
                raise InputError(f"two placements of job graphs are named {item.name!r}")
            found[item.name] = item
    return found


def graph_placement(name: str) -> GraphPlacement:
    """One of them; raises InputError listing what there is."""
    known = graph_placements()
    if name not in known:
        raise InputError(f"placement {name!r}: expected one of {', '.join(sorted(known))}")
    return known[name]
