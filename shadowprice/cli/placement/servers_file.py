"""File of ``shadowprice place servers``: a job with parameter servers, and the nodes that it is placed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shadowprice.instances.documents.plain_yaml import parse, read_small
from shadowprice.instances.documents.schema import Amount, Whole, decode


@dataclass(frozen=True)
class ServersFile:
    """A job with parameter servers, and the nodes that it is placed on, as a file says them.

    Parameters
    ----------
    workers : int
        One on each GPU.
    shards_mb : list of float
        Of the tensors on each parameter server [MB].
    free_gpus : list of int
        Free on each node.
    traffic_mb : list of float, optional
        Of other jobs through each node [MB]; none if left out.
    pack_limit : float
        Largest share of a tensor that is not skewed.
    """

    workers: Whole
    shards_mb: list[Amount]
    free_gpus: list[Whole]
    traffic_mb: list[Amount] | None = None
    pack_limit: Amount = 0.4


def read_servers_file(path: Path) -> ServersFile:
    """Read a file (YAML, JSON).

    Raises
    ------
    InputError
        Naming the place that is wrong, and what was expected.
    """
    where = str(path)
    return decode(ServersFile, parse(read_small(path), where), where, numbers_as_text=True)
