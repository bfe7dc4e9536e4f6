"""Placements of job graphs by name: the ``GRAPH_PLACEMENTS`` of every module of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import shadowprice.solvers.graph_placement
from shadowprice.errors import InputError
from shadowprice.instances.offers import Offers

if TYPE_CHECKING:
    from shadowprice.solvers.graph_placement.protocol import GraphPlacement


def graph_placements() -> Mapping[str, GraphPlacement]:
    """All of them by name."""
    return Offers(shadowprice.solvers.graph_placement, "GRAPH_PLACEMENTS")


def graph_placement(name: str) -> GraphPlacement:
    """One of them; raises InputError listing what there is."""
    known = graph_placements()
    if name not in known:
        raise InputError(f"placement {name!r}: expected one of {', '.join(sorted(known))}")
    return known[name]
