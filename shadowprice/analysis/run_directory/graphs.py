"""Job graphs as JSON, without loss: what a run directory keeps of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.entries import known_keys
from shadowprice.instances.files import parse_json
from shadowprice.instances.graphs.iteration_time import Network
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.workload_graphs import JobGraphs

_KEYS = ("network", "graphs", "of")


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
    try:
        described = known_keys(parse_json(text, path), path, _KEYS, _KEYS)
        graphs = tuple(_graph(each) for each in described["graphs"])
        of = [_index(each) for each in described["of"]]
        network = Network(**described["network"])
        return JobGraphs(graphs, np.array(of, dtype=np.int64), network)
    except InputError as error:
        message = str(error)
        raise error if message.startswith(path) else InputError(f"{path}: {message}") from error
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path}: are not job graphs as saved: {error}") from error


def _graph(described: Mapping[str, Any]) -> JobGraph:
    stages = tuple(Stage(**stage) for stage in described["stages"])
    links = tuple(Link(**link) for link in described["links"])
    return JobGraph(**{**described, "stages": stages, "links": links})


def _index(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"graph {value!r} of a job, expected an integer")
    return value
