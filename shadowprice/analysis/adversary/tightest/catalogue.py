"""Entries of all theorems whose tightest instance is a table, and why others have none."""

from __future__ import annotations

from collections.abc import Mapping

from shadowprice.analysis.adversary.tightest import (
    allocations,
    placements,
    pool_theorems,
    relaxations,
    utilities,
)
from shadowprice.analysis.adversary.tightest.comparisons import TightnessOf

TIGHTNESS: Mapping[str, TightnessOf] = {
    entry.theorem: entry
    for module in (pool_theorems, allocations, utilities, relaxations, placements)
    for entry in module.ENTRIES
}
"""By the theorem's file in :mod:`shadowprice.proofs`."""

NO_FACTOR: Mapping[str, str] = {
    "classic.nonclairvoyant": "a lower bound of all nonclairvoyant policies, which equal shares attain",
    "hadar.copies_work": "states no factor: a number of busy nodes, and which copies it takes",
    "lower_bounds.goodput": "states no factor: least times by width, of which jobs that may grow have their bounds",
    "lower_bounds.list_schedules": "attained by every instance of few jobs on one node, of which it is the optimum",
    "lower_bounds.modes": "that of LB-price, LB-pair, LB-node and LB-amount, of which it is the general case",
    "synergy.floor": "states no factor: a floor, at which every job is that asks for its share",
    "tiresias.gittins": "states no factor: an index, and an optimum in expectation",
}
"""Theorems without a tightest instance, and why."""
