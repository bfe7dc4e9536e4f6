"""Jobs and applications of Pollux' simulator, and small ones of ours where there is no copy of it."""

from __future__ import annotations

import atexit
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.goodput.application import (
    Application,
    BatchRecord,
    PlacedStep,
    ScaledStep,
)
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload

NODE_GPUS = 4
WHERE = "what git archive --format=zip origin/osdi21-artifact:simulator writes in github.com/petuum/adaptdl"


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
    path = _unpacked(simulator) / folder / f"workload-{number}.csv"
    if not path.exists():
        raise InputError(f"--simulator: {simulator} has no {folder}/{path.name}, expected {WHERE}")
    return load_trace(path, format="pollux").workload


def term_of(simulator: Path | None, interference: float) -> Goodput:
    """Goodput by the simulator's tables, or by those of two applications of ours.

    Raises
    ------
    InputError
        If the folder has none.
    """
    return Goodput(_applications(simulator), interference)


@lru_cache(maxsize=4)
def _unpacked(simulator: Path) -> Path:
    """Folder, for the time of this process, of what is in a file.

    Raises
    ------
    InputError
        If it is no zip file with tables.
    """
    folder = TemporaryDirectory()
    atexit.register(folder.cleanup)
    try:
        with ZipFile(simulator) as packed:
            packed.extractall(folder.name)
    except (OSError, BadZipFile) as error:
        raise InputError(f"--simulator: {simulator}: {error}, expected {WHERE}") from None
    if not (Path(folder.name) / "traces").is_dir():
        raise InputError(f"--simulator: {simulator} has no folder traces, expected {WHERE}")
    return Path(folder.name)


@lru_cache(maxsize=4)
def _applications(simulator: Path | None) -> tuple[Application, ...]:
    if simulator is not None:
        return load_applications(_unpacked(simulator) / "traces")
    return tuple(_own_application(name, speed) for name, speed in (("small", 1.0), ("large", 0.3)))


def _own_application(name: str, speed: float) -> Application:
    """Steps that take longer across nodes, and gradients of more noise as training goes on."""
    placed, scaled = [], []
    for local in (32, 64, 128, 256):
        gradient_s = (0.01 + 0.001 * local) / speed
        for gpus in range(1, 17):
            wait_s = 0.002 * (gpus - 2)
            if gpus <= NODE_GPUS:
                sync_s = 0.02 + wait_s if gpus > 1 else 0.0
                placed.append(PlacedStep((gpus,), local, gradient_s + sync_s, sync_s))
            for nodes in range(2, min(gpus, 4) + 1):
                sync_s = 0.05 + wait_s
                scaled.append(ScaledStep(nodes, gpus, local, gradient_s + sync_s, sync_s))
    epochs = np.arange(1.0, 11.0)
    progress, noise = tuple((600 * epochs).tolist()), tuple((4 * epochs).tolist())
    records = [
        BatchRecord(batch, progress, progress, (1.0,) * 10, noise)
        for batch in (128, 512, 2048, 4096)
    ]
    return Application(name, tuple(placed), tuple(scaled), tuple(records))


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
