"""Hugging Face Transformers: a callback that counts steps, commits what is saved, and stops.

Written from the documentation, and not run against the library. ::

    with Lease(iterations=1000) as lease:
        callback = lease_callback(lease)
        trainer = Trainer(model, TrainingArguments(output, save_steps=100), callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=callback.restored())

The trainer saves into its own folder, every ``save_steps`` and when the lease ends; each is committed
as a checkpoint of the lease. Steps of the lease are optimizer steps. With several processes, give
the lease its rank and ``agree``, as with PyTorch.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from shadowprice.hosts.job import Lease

_FOLDER = "trainer"


def lease_callback(lease: Lease) -> Any:
    """A ``transformers.TrainerCallback`` that puts the lease around ``Trainer.train``."""
    from transformers import TrainerCallback

    class LeaseCallback(TrainerCallback):  # type: ignore[misc]
        def restored(self) -> str | None:
            """For ``resume_from_checkpoint``: where the last lease ended, None at first."""
            folders: list[Path] = []
            lease.restore(folders.append)
            return str(folders[0] / _FOLDER) if folders else None

        def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> Any:
            if not lease.advance():
                control.should_save = control.should_training_stop = True
            return control

        def on_save(self, args: Any, state: Any, control: Any, **named: Any) -> None:
            saved = Path(args.output_dir, f"checkpoint-{state.global_step}")
            lease.checkpoint(lambda folder: shutil.copytree(saved, folder / _FOLDER))

    return LeaseCallback()
