"""Elastic widths: a job may hold more GPUs than its gang, and is faster with them."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated
from shadowprice.library.recipes.trace_cut import TraceCut

_BOTH = (Objective.FLOW, Objective.MAKESPAN)


def _widths(widest: int, efficiency: float) -> dict[str, dict[str, object]]:
    return {"widths": {"widest": widest, "efficiency": efficiency}}


def _lognormal(
    jobs: int, seed: int, nodes: int, load: float, widest: int, efficiency: float, **more: object
) -> Generated:
    """Lognormal jobs on nodes of 4 GPUs, of which every doubling makes a job almost twice as fast."""
    parameters = {"load": load, "gpus_total": 4 * nodes, **more}
    cluster, terms = f"{nodes}x4", _widths(widest, efficiency)
    return Generated("lognormal", jobs, seed, cluster, parameters, terms)


_FEW = {"sigma": 1.0, "gang_shares": {1: 4, 2: 2}}

FAMILY = Family(
    "widths",
    "A job may hold more GPUs than its gang, and every doubling makes it less than twice as fast.",
    (
        Declaration(_lognormal(10, 4, 1, 2.0, 4, 0.9, **_FEW), _BOTH),
        Declaration(_lognormal(10, 5, 1, 2.5, 4, 0.8, **_FEW)),
        Declaration(_lognormal(10, 6, 2, 2.0, 8, 1.0, **_FEW), _BOTH),
        Declaration(_lognormal(100, 7, 4, 0.9, 8, 0.9), _BOTH),
        Declaration(
            TraceCut("philly-flat", 100, 62_500, "4x4", 16, 60.0, 100_000.0, terms=_widths(8, 0.85))
        ),
        Declaration(_lognormal(1000, 5, 16, 0.7, 16, 0.9)),
        Declaration(
            TraceCut(
                "philly-flat", 1000, 3_500, "16x8", 32, 60.0, 200_000.0, terms=_widths(16, 0.9)
            )
        ),
        Declaration(_lognormal(10_000, 3, 64, 0.7, 16, 0.9)),
    ),
)
"""The family."""
