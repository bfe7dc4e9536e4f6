"""Data-parallel training over all processes of a gang, on one node or several (gloo or NCCL).

    torchrun --standalone --nproc-per-node 2 ddp.py --iterations 200       # without a scheduler
    shadowprice execute ddp.yaml --policy srtf --hosts local:2x1

Whatever starts it says which process it is by ``RANK`` and ``WORLD_SIZE``: torchrun, which starts one
process a device and starts all again when one dies (``--max-restarts``), or the lease itself, which
starts one a node. With two processes the parameters are the same, bit for bit, however often it is
stopped or killed; with more up to the rounding of sums in another order.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch_training import chosen_device, options

from shadowprice.hosts.callbacks.pytorch import Parts, agree_on_stop

# A copy of job.py beside this file does as well: `from job import Lease`.
from shadowprice.hosts.job import Lease

FEATURES, CLASSES = 32, 10


def main() -> None:
    """Train."""
    parser = options(__doc__ or "")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--step-ms", type=float, default=0.0, help="a step takes at least so long")
    given = parser.parse_args()
    device = chosen_device(given.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    rank, processes = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(given.seed)
    model = nn.Sequential(
        nn.Linear(FEATURES, given.width), nn.Tanh(), nn.Linear(given.width, CLASSES)
    ).to(device)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=given.learning_rate, momentum=0.9)
    parts = Parts(model, optimizer=optimizer)
    teacher = torch.randn(FEATURES, CLASSES, generator=torch.Generator().manual_seed(given.seed))
    losses: list[float] = []

    def save(folder: Path) -> None:
        parts.save(folder)
        lines = [f"{step},{loss!r}" for step, loss in enumerate(losses, start=1)]
        (folder / "losses.csv").write_text("\n".join(["step,loss", *lines, ""]))

    def load(folder: Path) -> None:
        parts.load(folder)
        lines = (folder / "losses.csv").read_text().splitlines()[1:]
        losses[:] = [float(line.split(",")[1]) for line in lines]

    with Lease(iterations=given.iterations, rank=rank, agree=agree_on_stop) as lease:
        lease.restore(load)
        lease.checkpoints(save, every_s=given.checkpoint_s)
        for step in lease.steps():
            begun = time.monotonic()
            # A process's part of a batch depends on seed, step and rank alone: nothing is skipped.
            draw = torch.Generator().manual_seed((given.seed * 1_000_003 + step) * processes + rank)
            inputs = torch.randn(given.batch, FEATURES, generator=draw)
            labels = (inputs @ teacher).argmax(dim=1).to(device)
            loss = nn.functional.cross_entropy(parallel(inputs.to(device)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach() / processes
            distributed.all_reduce(mean)
            losses.append(mean.item())
            if step % 50 == 0 and rank == 0:
                print(f"step {step} loss {losses[-1]:.4f}, {processes} processes", flush=True)
            time.sleep(max(0.0, given.step_ms / 1e3 - (time.monotonic() - begun)))
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
