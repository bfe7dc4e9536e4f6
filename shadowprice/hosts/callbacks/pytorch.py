"""PyTorch: saving and loading what a resumed run needs, and stopping all ranks together.

::

    parts = Parts(model, optimizer=optimizer, scheduler=scheduler)
    with Lease(agree=agree_on_stop) as lease:
        lease.restore(parts.load)
        lease.checkpoints(parts.save, every_s=60)
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any


class Parts:
    """The state of a training run: a model, and whatever else has a ``state_dict``.

    ``parameters.pt`` is the model's state dict, ``state.pt`` the other parts and the random number
    generators of Python and torch, CUDA's too. NumPy's global one is not kept: pass generators of
    your own as parts. All must fit ``torch.load(weights_only=True)``, nothing else is ever loaded.
    """

    def __init__(self, model: Any, **others: Any) -> None:
        self._model, self._others = model, others

    def save(self, folder: Path) -> None:
        """Write both files; ``OSError`` if the disk is full, say."""
        import torch

        state = {name: part.state_dict() for name, part in self._others.items()}
        generators = {"python": random.getstate(), "torch": torch.get_rng_state()}
        if torch.cuda.is_available():
            generators["cuda"] = torch.cuda.get_rng_state_all()
        _write(self._model.state_dict(), folder / "parameters.pt")
        _write({"parts": state, "generators": generators}, folder / "state.pt")

    def load(self, folder: Path) -> None:
        """Read both files."""
        import torch

        self._model.load_state_dict(_read(folder / "parameters.pt"))
        state = _read(folder / "state.pt")
        for name, part in self._others.items():
            part.load_state_dict(state["parts"][name])
        generators = state["generators"]
        version, numbers, spare = generators["python"]
        random.setstate((version, tuple(numbers), spare))
        torch.set_rng_state(generators["torch"])
        # Another number of GPUs than before has other generators: as many as there are go on.
        for device, cuda in enumerate(generators.get("cuda", ())[: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(cuda, device)


def agree_on_stop(asked: bool) -> bool:
    """True if any rank was asked to stop; a collective call where torch.distributed is used."""
    import torch
    from torch import distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return asked
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    flag = torch.tensor(int(asked), device=device)
    distributed.all_reduce(flag, op=distributed.ReduceOp.MAX)
    return bool(flag.item())


def _write(content: Any, path: Path) -> None:
    import torch

    try:
        torch.save(content, path)
    except RuntimeError as error:  # what torch makes of a disk that is full
        raise OSError(f"{path.name}: {error}") from error


def _read(path: Path) -> Any:
    import torch

    return torch.load(path, weights_only=True, map_location="cpu")
