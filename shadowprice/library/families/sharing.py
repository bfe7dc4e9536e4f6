"""Sharing: two jobs may hold the same GPUs, each at a rate of its own."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated

_BOTH = (Objective.FLOW, Objective.MAKESPAN)


def _gandiva(jobs: int, seed: int, cluster: str, hours: float) -> Generated:
    """Jobs of Gandiva's models, at the rates of its Table 1."""
    return Generated("gandiva", jobs, seed, cluster, {"hours": hours}, {"sharing": {}})


FAMILY = Family(
    "sharing",
    "Two jobs may hold the same GPUs, each at a rate of its own while the other is there.",
    (
        Declaration(_gandiva(10, 1, "1x4", 0.75), _BOTH),
        Declaration(_gandiva(10, 2, "2x4", 0.25)),
        Declaration(_gandiva(10, 3, "2x2", 1.5), _BOTH, preemptive=False),
        Declaration(_gandiva(100, 1, "2x4", 10.0), _BOTH),
        Declaration(_gandiva(100, 2, "4x4", 1.0)),
        Declaration(_gandiva(1000, 1, "8x4", 24.0), _BOTH),
        Declaration(_gandiva(1000, 2, "25x4", 5.5)),
        Declaration(_gandiva(10_000, 1, "64x4", 30.0)),
    ),
)
"""The family."""
