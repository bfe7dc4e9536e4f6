"""Two clusters of five nodes and the mixes of HadarE's experiments, as far as they are known.

What is recalled and what assumed is said in ``hadare_clusters.py``.
"""

from __future__ import annotations

import numpy as np
from _hadar import ROUND_S, TYPES, row, run

import shadowprice as sp
from shadowprice.studies.figures import Row

FP32 = {"t4": 8.1, "titan-rtx": 16.3, "t400": 1.1, "rtx3090": 35.6, "a2000": 8.0, "v100": 15.7}
"""Peak single-precision TFLOP/s by the vendor's data sheets; V100 is the SXM2 one."""
CLUSTERS = {
    "AWS": ("v100", "t4", "t4", "k80", "k80"),
    "lab": ("titan-rtx", "t4", "t400", "rtx3090", "a2000"),
}
"""GPU type of each node."""

MIXES = (1, 3, 4, 5, 8, 10, 12)
FAMILIES = ("ResNet-18", "LM", "Transformer", "CycleGAN", "ResNet-50")
SHORTEST_H, LONGEST_H = 0.5, 4.0
AGGREGATION_S = 10.0


def nodes(where: str) -> sp.Cluster:
    """The cluster by name."""
    return sp.Cluster.parse(",".join(f"1x1:{name}" for name in CLUSTERS[where]))


def mix(jobs: int, seed: int, where: str, rates: sp.Throughputs) -> sp.Workload:
    """Jobs of one GPU that take turns at the models, batch sizes and lengths drawn."""
    rng = np.random.default_rng([seed, jobs])
    types = tuple(dict.fromkeys(name for name in CLUSTERS[where]))
    models, speeds = [], []
    for number in range(jobs):
        family = FAMILIES[number % len(FAMILIES)]
        kinds = sorted(
            kind for kind in rates.alone if kind[1] == 1 and kind[0].split(" (")[0] == family
        )
        model = kinds[rng.integers(len(kinds))]
        measured = dict(zip(TYPES, rates.alone[model], strict=True))
        models.append(model[0])
        speeds.append(
            [
                measured[name] if name in measured else measured["v100"] * FP32[name] / FP32["v100"]
                for name in types
            ]
        )
    on_v100 = np.array(
        [dict(zip(TYPES, rates.alone[name, 1], strict=True))["v100"] for name in models]
    )
    hours = SHORTEST_H * (LONGEST_H / SHORTEST_H) ** rng.random(jobs)
    return sp.Workload.from_columns(
        arrival_s=np.zeros(jobs),
        gpus=np.ones(jobs, dtype=np.int64),
        work=np.floor(hours * 3600 * on_v100),
        model=np.array(models, dtype=object),
        throughput=np.array(speeds),
        gpu_types=types,
        source=f"mix M-{jobs}, seed {seed}",
    )


def system_on(
    system: str,
    where: str,
    jobs: sp.Workload,
    *,
    aggregation_s: float,
    round_s: float = ROUND_S,
) -> Row:
    """A row of metrics for one system; ``useful`` is CRU without restarts and averaging."""
    found = run(system, jobs, nodes(where), round_s=round_s, aggregation_s=aggregation_s)
    useful = found.metrics.cru - found.lost
    return row(found.metrics, system=system, cluster=where, round_s=round_s, useful=useful)
