"""Job graphs: an iteration takes as long as where the replicas of a job's stages are makes it."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated

_BOTH = (Objective.FLOW, Objective.MAKESPAN)
_NETWORK = {"graphs": {"intra_gb_per_s": 300.0, "nic_gb_per_s": 12.5}}


def _recurrent(jobs: int, seed: int, nodes: int, load: float, **more: object) -> Generated:
    """Recurrent jobs whose graphs are those of their models, on nodes of 4 GPUs."""
    parameters = {"load": load, "gpus_total": 4 * nodes, **more}
    return Generated("recurrent", jobs, seed, f"{nodes}x4", parameters, _NETWORK)


_SMALL = {"gang_shares": {1: 4, 2: 3, 4: 3}}

FAMILY = Family(
    "graphs",
    "An iteration takes as long as where the replicas of a job's stages are makes it.",
    (
        Declaration(_recurrent(10, 1, 1, 3.0, **_SMALL), _BOTH, preemptive=False),
        Declaration(_recurrent(10, 2, 2, 3.0, **_SMALL)),
        Declaration(_recurrent(10, 3, 2, 3.0, gang_shares={2: 3, 4: 3, 8: 2}), preemptive=False),
        Declaration(_recurrent(100, 1, 4, 0.35, **_SMALL), _BOTH),
        Declaration(_recurrent(100, 2, 4, 0.9, **_SMALL), preemptive=False),
        Declaration(_recurrent(1000, 1, 16, 0.3), _BOTH),
        Declaration(_recurrent(1000, 2, 16, 0.5)),
        Declaration(_recurrent(10_000, 1, 64, 0.28)),
    ),
)
"""The family."""
