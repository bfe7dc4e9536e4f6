"""Meeting points: how the processes of a gang find each other, on one node or several."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

STORE_TIMEOUT_S = 180
"""Of the others' waits for the first rank, which may be started later [s]."""
_FIRST_PORT, _PORTS = 20_000, 12_000


@dataclass(frozen=True)
class Meeting:
    """Meeting point of the processes of a gang, by the variables that launchers read.

    Parameters
    ----------
    job, epoch
        Whose gang it is: of two attempts none meets the other.
    address : str
        Of the first rank's node.
    index : int
        Of its first device there: jobs that share a device differ by their names.
    fixed_ranks : bool
        Whether torchrun's ranks are in the order of the lease's: the replicas of a job graph are
        placed by rank. Else it gives nodes their ranks as they come.
    """

    job: str
    epoch: int
    address: str
    index: int
    fixed_ranks: bool = False

    @property
    def port(self) -> int:
        """Port of the first rank; others than those of other attempts and jobs."""
        name = zlib.crc32(self.job.encode())
        return _FIRST_PORT + (name + 131 * self.index + 17 * self.epoch) % _PORTS

    def variables(self, rank: int, ranks: int, devices: int, own_address: str) -> dict[str, str]:
        """Variables of one rank: those of ``torch.distributed``, and those of torchrun.

        A command that is no launcher is the one process of its node. ``torchrun`` takes each of its
        options from ``PET_...``, and replaces ``RANK``, ``WORLD_SIZE`` and ``MASTER_...`` in the
        processes that it starts. Unless they are fixed its ranks are its own: whichever node it gives
        rank 0 reports.

        Parameters
        ----------
        rank, ranks : int
            Of this node in the gang, and how many there are.
        devices : int
            Of the gang on this node: torchrun starts a process for each.
        own_address : str
            Of this node.
        """
        variables = {
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
            "RANK": str(rank),
            "WORLD_SIZE": str(ranks),
            "PET_NNODES": str(ranks),
            "PET_NPROC_PER_NODE": str(devices),
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": f"{self.address}:{self.port}",
            "PET_RDZV_ID": f"{self.job}-{self.epoch}",
            # Torchrun compares names and addresses to find out whose store it is, and where the
            # name of a machine is that of its loopback, nobody's.
            "PET_RDZV_CONF": f"is_host={int(rank == 0)},read_timeout={STORE_TIMEOUT_S}",
            "PET_LOCAL_ADDR": own_address,
            # With a store that torchrun shares between attempts, processes that it starts again
            # find the addresses of those that died, and wait for them (PyTorch 2.13).
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        if self.fixed_ranks:
            variables |= {
                "PET_RDZV_BACKEND": "static",
                "PET_NODE_RANK": str(rank),
                "PET_MASTER_ADDR": self.address,
                "PET_MASTER_PORT": str(self.port),
                "PET_RDZV_CONF": f"timeout={STORE_TIMEOUT_S}",
            }
        return variables


MEETING_VARIABLES = frozenset(Meeting("", 0, "", 0, fixed_ranks=True).variables(0, 1, 1, ""))
