"""Failures: nodes are down at times that are known, and jobs lose what they have not saved by then."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated

_BOTH = (Objective.FLOW, Objective.MAKESPAN)


def _lognormal(
    jobs: int, seed: int, nodes: int, load: float, failures: dict[str, object], **more: object
) -> Generated:
    """Lognormal jobs on nodes of 4 GPUs that fail."""
    parameters = {"load": load, "gpus_total": 4 * nodes, **more}
    terms = {"failures": failures}
    return Generated("lognormal", jobs, seed, f"{nodes}x4", parameters, terms)


def _law(seed: int, mtbf_s: float, **more: object) -> dict[str, object]:
    """Faults of a law, exponential if it says no other, repaired within an hour on average."""
    return {"mtbf_s": mtbf_s, "repair_s": min(3600.0, mtbf_s / 10), "seed": seed, **more}


_LOG = {"file": "infinitehbd-faults", "nodes": 400, "interval_s": 3600.0, "cost_s": 60.0}
_NARROW = {"gang_shares": {1: 5, 2: 3, 4: 2}}
_FEW = {"sigma": 1.0, "gang_shares": {1: 4, 2: 3, 4: 2}}

FAMILY = Family(
    "failures",
    "Nodes are down at times that are known, and jobs lose what they have not saved by then.",
    (
        Declaration(_lognormal(10, 1, 1, 3.0, _law(1, 10_000.0, interval_s=600.0), **_FEW), _BOTH),
        Declaration(_lognormal(10, 2, 2, 3.0, _law(2, 30_000.0), **_FEW)),
        Declaration(
            _lognormal(10, 3, 2, 3.0, _law(3, 10_000.0, interval_s=600.0, cost_s=10.0), **_FEW)
        ),
        Declaration(
            _lognormal(
                100, 4, 4, 1.1, _law(1, 300_000.0, interval_s=1800.0, cost_s=20.0), **_NARROW
            ),
            _BOTH,
        ),
        Declaration(_lognormal(100, 5, 4, 1.1, _law(2, 100_000.0), **_NARROW)),
        Declaration(
            _lognormal(
                100, 6, 8, 1.1, _law(4, 300_000.0, law="weibull", shape=0.7, interval_s=3600.0)
            )
        ),
        Declaration(
            _lognormal(1000, 3, 16, 0.9, _law(1, 800_000.0, interval_s=1800.0, cost_s=20.0)), _BOTH
        ),
        Declaration(
            _lognormal(
                1000, 4, 32, 0.95, _law(5, 500_000.0, law="weibull", shape=0.7, interval_s=3600.0)
            )
        ),
        Declaration(_lognormal(10_000, 2, 64, 0.85, {**_LOG, "seed": 1})),
    ),
)
"""The family."""
