"""Job graphs as JSON, without loss: what a run directory keeps of them."""

from __future__ import annotations

import json
from dataclasses import asdict

import msgspec
import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.files import parse_json
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs


class _Saved(msgspec.Struct, frozen=True):
    network: Network
    graphs: tuple[JobGraph, ...]
    of: NDArray[np.int64]


def to_json(graphs: JobGraphs) -> str:
    """The network, the different graphs, and which of them each job has."""
    described = {
        "network": asdict(graphs.network),
        "graphs": [asdict(graph) for graph in graphs.graph],
        "of": graphs.of.tolist(),
    }
    return json.dumps(described, allow_nan=False) + "\n"


def from_json(text: str, *, path: str) -> JobGraphs:
    """Inverse of :func:`to_json`.

    Raises
    ------
    InputError
        If it is not JSON of this form, or describes no graphs or network.
    """
    saved = decode(_Saved, parse_json(text, path), path)
    try:
        return JobGraphs(saved.graphs, saved.of, saved.network)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
