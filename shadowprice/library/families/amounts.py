"""CPUs and memory: a job's speed depends on those of its run, or it asks for a fixed amount and a part of a GPU."""

from __future__ import annotations

from shadowprice.instances.objective import Objective
from shadowprice.library.families.family import Declaration, Family
from shadowprice.library.recipes.generated import Generated
from shadowprice.library.recipes.trace_cut import TraceCut

_BOTH = (Objective.FLOW, Objective.MAKESPAN)
_PROFILES: dict[str, dict[str, object]] = {"profiles": {}}


def _synergy(jobs: int, seed: int, nodes: int, load: float, **more: object) -> Generated:
    """Synergy's jobs on its servers of 8 GPUs, 24 CPUs and 500 GB."""
    parameters = {"load": load, "gpus_total": 8 * nodes, **more}
    return Generated("synergy", jobs, seed, f"{nodes}x8+24cpu+500gb", parameters, _PROFILES)


def _fixed(jobs: int, seed: int, nodes: int, load: float, **more: object) -> Generated:
    """Lognormal jobs that ask for fixed CPUs and memory, on servers that have not enough for all of their GPUs."""
    return Generated(
        "lognormal",
        jobs,
        seed,
        f"{nodes}x4+24cpu+192gb",
        {"load": load, "gpus_total": 4 * nodes, **more},
        cpus_per_gpu=(2, 4, 8, 12),
        memory_gb_per_gpu=(16, 32, 64, 96),
    )


def _openb(
    jobs: int, first: int, cluster: str, widest: int, shortest_s: float, longest_s: float
) -> TraceCut:
    """Pods that ask for fixed CPUs and memory, and many for a part of a GPU."""
    return TraceCut(
        "openb2023-pods",
        jobs,
        first,
        cluster,
        widest,
        shortest_s,
        longest_s,
        reading="openb2023:fractions=keep",
    )


FAMILY = Family(
    "amounts",
    "A job's speed depends on its CPUs and memory, or it asks for fixed amounts of these or for a part of a GPU.",
    (
        Declaration(_synergy(10, 1, 1, 3.0), _BOTH),
        Declaration(_synergy(10, 2, 1, 16.0, single_gpu=True)),
        Declaration(_fixed(10, 7, 1, 3.0, sigma=1.0, gang_shares={1: 5, 2: 3}), preemptive=False),
        Declaration(_openb(10, 160, "1x2", 2, 60.0, 20_000.0), _BOTH),
        Declaration(_synergy(100, 1, 2, 1.2), _BOTH),
        Declaration(_openb(100, 2_200, "2x4", 4, 30.0, 200_000.0), _BOTH),
        Declaration(_fixed(100, 8, 4, 1.0, gang_shares={1: 5, 2: 3, 4: 2}), _BOTH),
        Declaration(_synergy(1000, 1, 8, 0.95)),
        Declaration(_fixed(1000, 6, 16, 0.8, gang_shares={1: 5, 2: 3, 4: 2})),
        Declaration(_openb(1000, 2_000, "2x8", 8, 30.0, 500_000.0)),
        Declaration(_synergy(10_000, 1, 32, 0.9)),
    ),
)
"""The family."""
