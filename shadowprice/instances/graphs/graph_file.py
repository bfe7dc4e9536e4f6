"""Job graphs from a user's file, YAML or JSON.

Either stages and links between them::

    name: translation
    microbatches: 8               # optional: a pipeline flushed every iteration
    stages:
      - {name: encoder, replicas: 2, forward_s: 0.03, backward_s: 0.06, parameter_bytes: 4e8}
      - {name: decoder, replicas: 1, forward_s: 0.04, backward_s: 0.08}
    links:                        # optional; bytes a replica of the first sends in an iteration
      - {from: encoder, to: decoder, bytes_per_replica: 2e6}

or a published model and how it is split::

    name: translation             # optional
    model: {name: t5-base, pipeline: 2, data: 4, batch: 16, flop_per_s: 125e12, efficiency: 0.4}

``parameter_bytes`` may be left out for one replica, which reduces nothing; ``exchange: true`` marks
a link between parts of one step. A model may have ``data``, ``pipeline``, ``tensor``,
``microbatches``, ``batch``, ``bytes_per_number`` and ``tokens``.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_yaml import parse
from shadowprice.instances.documents.schema import Name, decode
from shadowprice.instances.entries import LARGEST, ONE_LINE, shown
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.published_models import (
    ComputeDevice,
    Parallelism,
    model_job_graph,
)

# A name written as a number, 1 or 2.5, is a name all the same; true and null are slips.
_Name: TypeAlias = Annotated[Name | int | float, Meta(description=f"a name, {ONE_LINE}")]
# Whole amounts stay whole, for run directories keep graphs as they were given.
_Amount: TypeAlias = Annotated[
    Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0, le=LARGEST)],
    Meta(description="a number >= 0"),
]


class _Stage(msgspec.Struct, frozen=True):
    name: _Name
    replicas: int
    forward_s: _Amount
    backward_s: _Amount
    parameter_bytes: _Amount | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.replicas > 1 and self.parameter_bytes is UNSET:
            raise ValueError(
                f"has no parameter_bytes, expected what its {self.replicas} replicas reduce together"
            )

    def stage(self) -> Stage:
        return Stage(
            str(self.name),
            self.replicas,
            self.forward_s,
            self.backward_s,
            0.0 if self.parameter_bytes is UNSET else self.parameter_bytes,
        )


class _Link(msgspec.Struct, frozen=True):
    source: _Name = msgspec.field(name="from")
    target: _Name = msgspec.field(name="to")
    bytes_per_replica: _Amount
    exchange: bool = False


class _Graph(msgspec.Struct, frozen=True):
    """A graph of stages and links."""

    name: _Name
    stages: list[_Stage]
    links: list[_Link] | None = None
    microbatches: int = 0

    def graph(self) -> JobGraph:
        position: dict[str, int] = {}
        for s, stage in enumerate(self.stages):
            first = position.setdefault(str(stage.name), s)
            if first != s:
                raise InputError(
                    f"stages[{s}]: name is {shown(stage.name)}, as of stages[{first}], expected "
                    "different names"
                )
        links = []
        for k, link in enumerate(self.links or ()):
            for key, name in (("from", link.source), ("to", link.target)):
                if str(name) not in position:
                    raise InputError(
                        f"links[{k}]: {key} is {shown(name)}, expected a stage: {_some(position)}"
                    )
            ends = position[str(link.source)], position[str(link.target)]
            links.append(Link(*ends, link.bytes_per_replica, link.exchange))
        stages = tuple(stage.stage() for stage in self.stages)
        graph = JobGraph(str(self.name), stages, tuple(links), self.microbatches)
        if not any(stage.forward_s + stage.backward_s > 0 for stage in stages):
            raise InputError(
                "forward_s and backward_s of all stages are 0, expected one that computes"
            )
        return graph


class _Model(msgspec.Struct, frozen=True):
    name: _Name
    batch: int
    flop_per_s: _Amount
    bytes_per_number: _Amount = 4.0
    tokens: int | UnsetType = UNSET
    data: int = Parallelism.data
    pipeline: int = Parallelism.pipeline
    tensor: int = Parallelism.tensor
    microbatches: int = Parallelism.microbatches
    efficiency: _Amount = ComputeDevice.efficiency


class _Published(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of a published model."""

    name: _Name | UnsetType = UNSET
    model: _Model

    def graph(self) -> JobGraph:
        model = self.model
        graph = model_job_graph(
            str(model.name),
            Parallelism(model.data, model.pipeline, model.tensor, model.microbatches),
            model.batch,
            ComputeDevice(model.flop_per_s, model.efficiency),
            bytes_per_number=model.bytes_per_number,
            tokens=None if model.tokens is UNSET else model.tokens,
        )
        name = graph.name if self.name is UNSET else str(self.name)
        return JobGraph(name, graph.stages, graph.links, graph.microbatches)


def load_job_graph(path: str | Path) -> JobGraph:
    """Read a job graph; JSON if the name ends in ``.json``, else YAML.

    Raises
    ------
    InputError
        Naming the file, the entry, its value and what was expected.
    """
    source = str(path)
    text = read_text(path)
    if Path(path).suffix.lower() == ".json":
        return job_graph_of(parse_json(text, source), source)
    return job_graph_of(parse(text, source, truth_values=True), source)


def job_graph_of(data: object, source: str = "job graph") -> JobGraph:
    """The job graph of a parsed file.

    Raises
    ------
    InputError
        As for ``load_job_graph``.
    """
    if not isinstance(data, dict):
        raise InputError(f"{source}: is {shown(data)}, expected name, stages and links, or model")
    kind: type[_Published | _Graph] = _Published if "model" in data else _Graph
    entries = decode(kind, data, source, numbers_as_text=True)
    try:
        return entries.graph()
    except InputError as error:
        # What the graph itself finds wrong names the job and its stages, but not the file.
        raise InputError(f"{source}: {error}") from error


def graph_entry(graph: JobGraph) -> dict[str, Any]:
    """Entries of a file that make this graph, of plain values."""
    names = [stage.name for stage in graph.stages]
    return {
        "name": graph.name,
        "microbatches": graph.microbatches,
        "stages": [asdict(stage) for stage in graph.stages],
        "links": [
            {
                "from": names[link.source],
                "to": names[link.target],
                "bytes_per_replica": link.bytes_per_replica,
                "exchange": link.exchange,
            }
            for link in graph.links
        ],
    }


def _some(names: dict[str, int]) -> str:
    shown = ", ".join(list(names)[:8])
    return shown if len(names) <= 8 else f"{shown}, ..."
