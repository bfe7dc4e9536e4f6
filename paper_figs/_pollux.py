"""Jobs and applications of Pollux' simulator, and small ones of ours where there is no copy of it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from shadowprice.errors import InputError
from shadowprice.instances.goodput.application import Application, BatchRecord, PlacedStep
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.workload import Workload

WHERE = "a folder simulator/ of github.com/petuum/adaptdl, branch osdi21-artifact"


def workload_of(simulator: Path | None, load: float, number: int) -> Workload:
    """A workload of the simulator, from 1 to 8, or 12 jobs of ours.

    Raises
    ------
    InputError
        If the folder does not have it.
    """
    if simulator is None:
        return _own_jobs(number)
    folder = "workloads" if load == 1.0 else f"workloads-{load:.1f}"
    path = simulator / folder / f"workload-{number}.csv"
    if not path.exists():
        raise InputError(f"--simulator: there is no {path}, expected {WHERE}")
    rows = pd.read_csv(path)
    return Workload.from_columns(
        id=rows["name"].tolist(),
        arrival_s=rows["time"].astype(float).tolist(),
        model=rows["application"].tolist(),
        gpus=rows["num_replicas"].tolist(),
        batch_size=rows["batch_size"].tolist(),
        work=[1.0] * len(rows),
        source=path.name,
    )


def term_of(simulator: Path | None, interference: float) -> Goodput:
    """Goodput by the simulator's tables, or by those of two applications of ours.

    Raises
    ------
    InputError
        If the folder has none.
    """
    return Goodput(_applications(simulator), interference)


@lru_cache(maxsize=4)
def _applications(simulator: Path | None) -> tuple[Application, ...]:
    if simulator is not None:
        return load_applications(simulator / "traces")
    return tuple(_own_application(name, speed) for name, speed in (("small", 1.0), ("large", 0.3)))


def _own_application(name: str, speed: float) -> Application:
    """Steps that take longer across nodes, and gradients of more noise as training goes on."""
    placements = [
        (1,),
        (2,),
        (3,),
        (4,),
        *((4,) * whole + (rest,) for whole in (1, 2, 3) for rest in (1, 2, 3)),
    ]
    placements += [(4,) * whole for whole in (2, 3, 4)]
    placements += [(1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    placed = []
    for placement in placements:
        gpus, nodes = sum(placement), len(placement)
        sync_s = 0.0 if gpus == 1 else (0.02 if nodes == 1 else 0.05) + 0.002 * (gpus - 2)
        for local in (32, 64, 128, 256):
            gradient_s = (0.01 + 0.001 * local) / speed
            placed.append(
                PlacedStep(
                    min(placement[k:] + placement[:k] for k in range(nodes)),
                    local,
                    gradient_s + sync_s,
                    sync_s,
                )
            )
    records = []
    for batch in (128, 512, 2048, 8192):
        epochs = np.arange(1, 11)
        progress = tuple((600.0 * epochs).tolist())
        noise = tuple((4.0 * epochs).tolist())
        records.append(BatchRecord(batch, progress, progress, (1.0,) * 10, noise))
    return Application(name, tuple(placed), (), tuple(records))


def _own_jobs(number: int) -> Workload:
    draw = np.random.default_rng(number)
    arrival_s = np.sort(draw.integers(0, 1800, 12)).astype(float)
    model = draw.choice(["small", "large"], 12)
    gpus = draw.choice([1, 2, 4], 12)
    return Workload.from_columns(
        id=[f"job-{k}" for k in range(12)],
        arrival_s=arrival_s.tolist(),
        model=model.tolist(),
        gpus=gpus.tolist(),
        batch_size=(128 * gpus).tolist(),
        work=[1.0] * 12,
        source="12 jobs of ours",
    )
