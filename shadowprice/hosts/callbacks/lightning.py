"""Lightning: a callback that counts batches, saves and stops. One process for each lease.

Written from the documentation, and not run against the library. ::

    with Lease(iterations=1000) as lease:
        callback = lease_callback(lease, every_s=60)
        trainer = Trainer(callbacks=[callback], max_steps=-1, enable_checkpointing=False)
        trainer.fit(model, loader, ckpt_path=callback.restored())

Under Slurm, Lightning requeues a job by itself on a signal, and then two would act: give the trainer
``plugins=[SLURMEnvironment(auto_requeue=False)]``. Its ``save_checkpoint`` is a collective call,
which this callback makes in one process; strategies with several need another way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shadowprice.hosts.job import Lease

_FILE = "lightning.ckpt"


def lease_callback(lease: Lease, every_s: float = 60.0) -> Any:
    """A ``lightning.pytorch.callbacks.Callback``; steps of the lease are batches."""
    from lightning.pytorch.callbacks import Callback

    class LeaseCallback(Callback):  # type: ignore[misc]
        def restored(self) -> Path | None:
            """The file for ``ckpt_path``: where the last lease ended, None at first."""
            folders: list[Path] = []
            lease.restore(folders.append)
            return folders[0] / _FILE if folders else None

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            lease.checkpoints(
                lambda folder: trainer.save_checkpoint(folder / _FILE), every_s=every_s
            )

        def on_train_batch_end(self, trainer: Any, *arguments: Any, **named: Any) -> None:
            if not lease.advance():
                trainer.should_stop = True

    return LeaseCallback()
