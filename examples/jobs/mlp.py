"""A small network on synthetic data, with NumPy only; the same steps however often it is stopped.

    python mlp.py --iterations 500            # alone: checkpoints go to ./checkpoints
    shadowprice execute demo.yaml --policy srtf

A checkpoint has parameters.npz (the model), state.npz (momentum), state.json (random numbers) and
losses.csv.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

# A copy of job.py beside this file does as well: `from job import Lease`.
from shadowprice.hosts.job import Lease

FEATURES, CLASSES, SAMPLES, BATCH = 32, 10, 2048, 64
LEARNING_RATE, MOMENTUM = 0.05, 0.9


class Training:
    """Two layers, softmax, SGD with momentum on batches drawn at random."""

    def __init__(self, seed: int, hidden: int) -> None:
        self.random = np.random.default_rng(seed)
        self.inputs = self.random.normal(size=(SAMPLES, FEATURES))
        teacher = self.random.normal(size=(FEATURES, CLASSES))
        self.labels = np.argmax(self.inputs @ teacher, axis=1)
        self.parameters = {
            "first": self.random.normal(size=(FEATURES, hidden)) / FEATURES**0.5,
            "first_bias": np.zeros(hidden),
            "second": self.random.normal(size=(hidden, CLASSES)) / hidden**0.5,
            "second_bias": np.zeros(CLASSES),
        }
        self.momentum = {name: np.zeros_like(array) for name, array in self.parameters.items()}
        self.losses: list[float] = []

    def step(self) -> None:
        """One batch."""
        self.move(*self.gradients(self.batch()))

    def batch(self) -> np.ndarray:
        """Rows of the next batch."""
        return self.random.integers(SAMPLES, size=BATCH)

    def gradients(self, rows: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
        """Sum of the losses of some rows of a batch, and their part of the gradients of its mean loss."""
        inputs, labels, weights = self.inputs[rows], self.labels[rows], self.parameters
        hidden = np.tanh(inputs @ weights["first"] + weights["first_bias"])
        scores = hidden @ weights["second"] + weights["second_bias"]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        loss = float(-np.log(shares[np.arange(len(rows)), labels]).sum())
        shares[np.arange(len(rows)), labels] -= 1.0
        back = (shares / BATCH) @ weights["second"].T * (1.0 - hidden**2)
        return loss, {
            "first": inputs.T @ back,
            "first_bias": back.sum(axis=0),
            "second": hidden.T @ shares / BATCH,
            "second_bias": shares.sum(axis=0) / BATCH,
        }

    def move(self, loss: float, gradients: dict[str, np.ndarray]) -> None:
        """Step along the gradients of a batch with this sum of losses."""
        self.losses.append(loss / BATCH)
        for name, gradient in gradients.items():
            self.momentum[name] = MOMENTUM * self.momentum[name] - LEARNING_RATE * gradient
            self.parameters[name] = self.parameters[name] + self.momentum[name]

    def save(self, folder: Path) -> None:
        """Everything that the next step depends on."""
        np.savez(folder / "parameters.npz", **self.parameters)
        np.savez(folder / "state.npz", **self.momentum)
        (folder / "state.json").write_text(json.dumps(self.random.bit_generator.state))
        lines = [f"{step},{loss!r}" for step, loss in enumerate(self.losses, start=1)]
        (folder / "losses.csv").write_text("\n".join(["step,loss", *lines, ""]))

    def load(self, folder: Path) -> None:
        """The reverse of save."""
        for name, into in (("parameters", self.parameters), ("state", self.momentum)):
            with np.load(folder / f"{name}.npz", allow_pickle=False) as file:
                into.update({array: file[array] for array in file.files})
        self.random.bit_generator.state = json.loads((folder / "state.json").read_text())
        lines = (folder / "losses.csv").read_text().splitlines()[1:]
        self.losses = [float(line.split(",")[1]) for line in lines]


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--step-ms", type=float, default=0.0, help="a step takes at least so long")
    parser.add_argument("--iterations", type=int, default=500, help="without a scheduler")
    parser.add_argument("--checkpoint-s", type=float, default=10.0)
    given = parser.parse_args()
    training = Training(given.seed, given.hidden)
    with Lease(iterations=given.iterations) as lease:
        lease.restore(training.load)
        lease.checkpoints(training.save, every_s=given.checkpoint_s)
        for step in lease.steps():
            begun = time.monotonic()
            training.step()
            if step % 100 == 0:
                print(f"step {step} loss {training.losses[-1]:.4f}", flush=True)
            time.sleep(max(0.0, given.step_ms / 1e3 - (time.monotonic() - begun)))


if __name__ == "__main__":
    main()
