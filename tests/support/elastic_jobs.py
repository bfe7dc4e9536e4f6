"""Instances of jobs with goodput, by small tables."""

from __future__ import annotations

import numpy as np

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.goodput.application import (
    Application,
    BatchRecord,
    PlacedStep,
    ScaledStep,
)
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload


def application(name: str, gpus: int, *, seed: int = 0) -> Application:
    """Steps on one node and across nodes, drawn; five epochs."""
    draw = np.random.default_rng(seed)
    start_s, example_s, on_s, across_s = draw.uniform(
        (0.01, 5e-4, 0.01, 0.03), (0.1, 5e-3, 0.05, 0.2)
    )
    placed, scaled = [], []
    for local in (16, 64, 256):
        gradient_s = float(start_s + example_s * local)
        for width in range(1, gpus + 1):
            sync_s = float(on_s) if width > 1 else 0.0
            placed.append(PlacedStep((width,), local, gradient_s + sync_s, sync_s))
            for nodes in range(2, width + 1):
                wait_s = float(across_s) + 0.001 * nodes
                scaled.append(ScaledStep(nodes, width, local, gradient_s + wait_s, wait_s))
    ends = tuple((1000.0 * np.arange(1, 6)).tolist())
    noise = tuple(draw.uniform(1.0, 40.0, 5).tolist())
    records = [BatchRecord(batch, ends, ends, (1.0,) * 5, noise) for batch in (64, 1024)]
    return Application(name, tuple(placed), tuple(scaled), tuple(records))


def elastic_instance(
    jobs: int, nodes: int, node_gpus: int, seed: int, *, fixed: bool = False
) -> Instance:
    """Jobs of two applications; with any batch, or each with one of its own."""
    draw = np.random.default_rng(seed)
    term = Goodput(
        tuple(
            application(name, nodes * node_gpus, seed=seed + k)
            for k, name in enumerate(("one", "two"))
        )
    )
    workload = Workload.from_columns(
        arrival_s=np.sort(draw.integers(0, 300, jobs)).astype(float).tolist(),
        gpus=[1] * jobs,
        work=[60.0] * jobs,
        model=draw.choice(["one", "two"], jobs).tolist(),
        batch_size=(draw.integers(64, 600, jobs) if fixed else np.zeros(jobs, int)).tolist(),
    )
    cluster = Cluster.parse(f"{nodes}x{node_gpus}")
    return Instance(cluster, workload, overheads=Overheads(start_s=10.0), declared=(term,))
