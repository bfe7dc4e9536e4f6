"""Bandwidths inside nodes and between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.entries import MAX_WHOLE, shown
from shadowprice.instances.graphs.job_graph import LARGEST_AMOUNT, Exact

SHARINGS = ("per-gpu", "per-job")
"""How replicas on a node share its NIC."""


LEAST_BYTES_PER_S = 1e-30
"""Smallest bandwidth, so that no time overflows."""


@dataclass(frozen=True)
class Network:
    """Bandwidths that iterations depend on, the same on all nodes.

    Parameters
    ----------
    intra_bytes_per_s : float
        Between two GPUs of a node [bytes/s].
    nic_bytes_per_s : float
        Of a node's network interface, each direction [bytes/s].
    gpus_per_node : int
        GPUs of the largest node.
    sharing : {"per-gpu", "per-job"}
        Remote traffic of a replica gets the NIC over ``gpus_per_node``, or the NIC over the number
        of replicas of its job on the node that have remote traffic.

    Raises
    ------
    InputError
        If a number is not positive and finite, or the sharing unknown.
    """

    intra_bytes_per_s: Exact
    nic_bytes_per_s: Exact
    gpus_per_node: int
    sharing: str = "per-gpu"

    def __post_init__(self) -> None:
        for name in ("intra_bytes_per_s", "nic_bytes_per_s"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not LEAST_BYTES_PER_S <= value <= LARGEST_AMOUNT:
                raise InputError(
                    f"network: {name} is {value!r:.80}, "
                    f"expected a number from {LEAST_BYTES_PER_S} to {LARGEST_AMOUNT}"
                )
        gpus = self.gpus_per_node
        whole = isinstance(gpus, int | np.integer) and not isinstance(gpus, bool)
        if not whole or not 1 <= gpus <= MAX_WHOLE:
            raise InputError(
                f"network: gpus_per_node is {shown(gpus)}, expected an integer from 1 to {MAX_WHOLE}"
            )
        if self.sharing not in SHARINGS:
            raise InputError(
                f"network: sharing is {self.sharing!r}, expected one of {', '.join(SHARINGS)}"
            )
