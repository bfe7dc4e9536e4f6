"""Training whose workers may change in number: a batch is as large at every width, and so is every step.

    python elastic.py --profile elastic.json --iterations 1200    # measure steps on 1 to 4 workers
    shadowprice execute elastic.yaml --policy pollux:round_s=5,restart_s=1 --hosts local:1x4 --round 5

A batch has sixteen parts. The devices of the lease say how many threads work on them; gradients are added in the order
of the parts, so that the parameters are the same, bit for bit, whatever widths a job had. A part takes at least
``--part-ms``, which stands for the work of a larger model.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from mlp import BATCH, Training

# A copy of job.py beside this file does as well: `from job import Lease`.
from shadowprice.hosts.job import Lease

PARTS = 16
WARM_UP, TIMED = 3, 20
"""Steps of a measurement that are not timed, and that are."""


class Workers:
    """Threads that compute the parts of batches.

    Parameters
    ----------
    training : Training
    width : int
    part_s : float
        Least time of a part [s].
    """

    def __init__(self, training: Training, width: int, part_s: float) -> None:
        self.training, self.part_s, self.sync_s = training, part_s, 0.0
        self.pool = ThreadPoolExecutor(width)

    def step(self) -> list[dict[str, np.ndarray]]:
        """One batch, of which it returns the gradients of each part; ``sync_s`` is the time of adding them up."""
        parts = list(self.pool.map(self.part, np.split(self.training.batch(), PARTS)))
        begun = time.monotonic()
        total = {name: sum(part[name] for _, part in parts) for name in parts[0][1]}
        self.training.move(sum(loss for loss, _ in parts), total)
        self.sync_s = time.monotonic() - begun
        return [gradients for _, gradients in parts]

    def part(self, rows: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """Loss and gradients of some rows, in no less than ``part_s``."""
        begun = time.monotonic()
        result = self.training.gradients(rows)
        time.sleep(max(0.0, self.part_s - (time.monotonic() - begun)))
        return result


def noise(parts: list[dict[str, np.ndarray]]) -> tuple[float, float]:
    """Square of the gradient of a batch, and its variance, by those of its parts."""
    each = PARTS * np.array([np.concatenate([g.ravel() for g in part.values()]) for part in parts])
    variance = float(each.var(axis=0, ddof=1).sum()) / PARTS
    return float((each.mean(axis=0) ** 2).sum()) - variance, variance


def profile(path: Path, iterations: int, part_s: float, seed: int, hidden: int) -> None:
    """Measure steps on one to four workers, and write the tables that a job file names (``goodput``)."""
    placed, norms = [], []
    for width in range(1, 5):
        workers = Workers(Training(seed, hidden), width, part_s)
        times = []
        for step in range(WARM_UP + TIMED):
            begun = time.monotonic()
            parts = workers.step()
            if step >= WARM_UP:
                times.append((time.monotonic() - begun, workers.sync_s))
                norms.append(noise(parts))
        step_s, sync_s = np.median(times, axis=0).tolist()
        placed.append([[width], BATCH // width, step_s, sync_s if width > 1 else 0.0])
        print(f"{width} workers: {1e3 * step_s:.1f} ms a step", flush=True)
    square, variance = np.maximum(np.mean(norms, axis=0), 0.0).tolist()
    record = {"batch": BATCH, "iterations": [iterations], "progress": [iterations]}
    record |= {"grad_sqr": [square], "grad_var": [variance]}
    tables = {"name": "mlp", "placed": placed, "scaled": [], "records": [record]}
    path.write_text(json.dumps({"applications": [tables]}) + "\n")


def main() -> None:
    """Train, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--part-ms", type=float, default=4.0, help="a part takes at least so long")
    parser.add_argument("--iterations", type=int, default=600, help="without a scheduler")
    parser.add_argument("--checkpoint-s", type=float, default=10.0)
    parser.add_argument("--profile", type=Path, help="measure steps, and write their table there")
    given = parser.parse_args()
    part_s = given.part_ms / 1e3
    if given.profile is not None:
        profile(given.profile, given.iterations, part_s, given.seed, given.hidden)
        return
    width = len(os.environ.get("SHADOWPRICE_DEVICES", "one").split(","))
    training = Training(given.seed, given.hidden)
    workers = Workers(training, width, part_s)
    print(f"{width} workers", flush=True)
    with Lease(iterations=given.iterations) as lease:
        lease.restore(training.load)
        lease.checkpoints(training.save, every_s=given.checkpoint_s)
        for step in lease.steps():
            workers.step()
            if step % 100 == 0:
                print(f"step {step} loss {training.losses[-1]:.4f}", flush=True)


if __name__ == "__main__":
    main()
