"""What the PyTorch examples share: options, device, lease, checkpoints, the curve of losses."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from shadowprice.hosts.callbacks.pytorch import Parts, agree_on_stop

# A copy of job.py beside this file does as well: `from job import Lease`.
from shadowprice.hosts.job import Lease

Batch = tuple[torch.Tensor, torch.Tensor]


def options(description: str) -> argparse.ArgumentParser:
    """The options of all scripts."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--iterations", type=int, default=200, help="without a scheduler")
    parser.add_argument("--checkpoint-s", type=float, default=30.0)
    parser.add_argument(
        "--deterministic", action="store_true", help="on a GPU too, where it is slower"
    )
    return parser


def chosen_device(name: str) -> torch.device:
    """CUDA where there is some, unless the lease is of a CPU slot."""
    if name != "auto":
        return torch.device(name)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all") != ""
    return torch.device("cuda" if visible and torch.cuda.is_available() else "cpu")


def train(
    given: argparse.Namespace,
    make_model: Callable[[], nn.Module],
    draw: Callable[[torch.Generator], Batch],
) -> None:
    """Train on batches drawn from a generator of the run's seed, up to the end of the lease.

    ``draw`` gives inputs and labels; the model gives scores with classes in dimension 1.
    """
    device = chosen_device(given.device)
    torch.manual_seed(given.seed)
    if device.type == "cpu" or given.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA is used
        torch.use_deterministic_algorithms(True)
    model = make_model().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=given.learning_rate, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.999)
    parts = Parts(model, optimizer=optimizer, schedule=schedule)
    losses: list[float] = []

    def save(folder: Path) -> None:
        parts.save(folder)
        lines = [f"{step},{loss!r}" for step, loss in enumerate(losses, start=1)]
        (folder / "losses.csv").write_text("\n".join(["step,loss", *lines, ""]))

    def load(folder: Path) -> None:
        parts.load(folder)
        lines = (folder / "losses.csv").read_text().splitlines()[1:]
        losses[:] = [float(line.split(",")[1]) for line in lines]

    with Lease(iterations=given.iterations, agree=agree_on_stop) as lease:
        lease.restore(load)
        lease.checkpoints(save, every_s=given.checkpoint_s)
        for step in lease.steps():
            # Data of a step depends on seed and step alone, so nothing has to be skipped.
            generator = torch.Generator().manual_seed(given.seed * 1_000_003 + step)
            inputs, labels = (part.to(device) for part in draw(generator))
            loss = nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if step % 10 == 0:
                print(f"step {step} loss {losses[-1]:.4f} on {device}", flush=True)
