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

from collections.abc import Hashable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from shadowprice.errors import InputError
from shadowprice.instances.entries import ONE_LINE, known_keys, on_one_line, shown
from shadowprice.instances.files import parse_json, read_text
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.published_models import (
    ComputeDevice,
    Parallelism,
    model_job_graph,
)

_GRAPH = ("name", "microbatches", "stages", "links")
_STAGE = ("name", "replicas", "forward_s", "backward_s", "parameter_bytes")
_LINK = ("from", "to", "bytes_per_replica", "exchange")
_SPLIT = ("data", "pipeline", "tensor", "microbatches")
_DEVICE = ("flop_per_s", "efficiency")
_MODEL = ("name", "batch", "bytes_per_number", "tokens", *_SPLIT, *_DEVICE)

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What PyYAML raises where a value is not what its tag says, such as the 45th of a month."""


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
    try:
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{source}: is not YAML: {' '.join(str(error).split())}") from error
    except _Repeated as error:
        raise InputError(f"{source}: {error}") from error
    return job_graph_of(data, source)


def job_graph_of(data: object, source: str = "job graph") -> JobGraph:
    """The job graph of a parsed file.

    Raises
    ------
    InputError
        As for ``load_job_graph``.
    """
    if not isinstance(data, dict):
        raise InputError(f"{source}: is {shown(data)}, expected name, stages and links, or model")
    try:
        if "model" in data:
            return _of_model(known_keys(data, source, ("name", "model"), ("model",)), source)
        return _of_stages(known_keys(data, source, _GRAPH, ("name", "stages")), source)
    except InputError as error:
        # Errors of the graph itself know the job and its stages, but not the file.
        message = str(error)
        raise error if message.startswith(source) else InputError(f"{source}: {message}") from error


def _of_stages(data: Mapping[str, Any], source: str) -> JobGraph:
    stages = [
        _stage(entry, f"{source}: stages[{k}]")
        for k, entry in enumerate(_list(data["stages"], f"{source}: stages"))
    ]
    position: dict[str, int] = {}
    for s, stage in enumerate(stages):
        if stage.name in position:
            raise InputError(
                f"{source}: stages[{s}]: name is {shown(stage.name)}, as of "
                f"stages[{position[stage.name]}], expected different names"
            )
        position[stage.name] = s
    links = [
        _link(entry, f"{source}: links[{k}]", position)
        for k, entry in enumerate(_list(data.get("links") or [], f"{source}: links"))
    ]
    graph = JobGraph(
        _text(data["name"], f"{source}: name"),
        tuple(stages),
        tuple(links),
        _integer(data.get("microbatches", 0), f"{source}: microbatches"),
    )
    if not any(stage.forward_s + stage.backward_s > 0 for stage in stages):
        raise InputError(
            f"{source}: forward_s and backward_s of all stages are 0, expected one that computes"
        )
    return graph


def _stage(entry: object, where: str) -> Stage:
    given = known_keys(entry, where, _STAGE, ("name", "replicas", "forward_s", "backward_s"))
    name = _text(given["name"], f"{where}: name")
    where = f"{where} ({name!r})"
    replicas = _integer(given["replicas"], f"{where}: replicas")
    if replicas > 1 and "parameter_bytes" not in given:
        raise InputError(
            f"{where}: has no parameter_bytes, expected what its {replicas} replicas reduce together"
        )
    times = {key: _number(given[key], f"{where}: {key}") for key in ("forward_s", "backward_s")}
    held = _number(given.get("parameter_bytes", 0.0), f"{where}: parameter_bytes")
    return Stage(name, replicas, **times, parameter_bytes=held)


def _link(entry: object, where: str, position: Mapping[str, int]) -> Link:
    given = known_keys(entry, where, _LINK, ("from", "to", "bytes_per_replica"))
    ends = []
    for key in ("from", "to"):
        name = _text(given[key], f"{where}: {key}")
        if name not in position:
            raise InputError(
                f"{where}: {key} is {shown(name)}, expected a stage: {_some(position)}"
            )
        ends.append(position[name])
    exchange = given.get("exchange", False)
    if not isinstance(exchange, bool):
        raise InputError(f"{where}: exchange is {shown(exchange)}, expected true or false")
    sent = _number(given["bytes_per_replica"], f"{where}: bytes_per_replica")
    return Link(ends[0], ends[1], sent, exchange)


def _of_model(data: Mapping[str, Any], source: str) -> JobGraph:
    where = f"{source}: model"
    given = known_keys(data["model"], where, _MODEL, ("name", "batch", "flop_per_s"))
    model = _text(given["name"], f"{where}: name")
    whole = {
        key: _integer(given[key], f"{where}: {key}")
        for key in (*_SPLIT, "batch", "tokens")
        if key in given
    }
    device = ComputeDevice(
        **{key: _number(given[key], f"{where}: {key}") for key in _DEVICE if key in given}
    )
    graph = model_job_graph(
        model,
        Parallelism(**{key: whole[key] for key in _SPLIT if key in whole}),
        whole["batch"],
        device,
        bytes_per_number=_number(given.get("bytes_per_number", 4.0), f"{where}: bytes_per_number"),
        tokens=whole.get("tokens"),
    )
    name = _text(data.get("name", graph.name), f"{source}: name")
    return JobGraph(name, graph.stages, graph.links, graph.microbatches)


def _list(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{where}: is {shown(value)}, expected a list")
    return value


def _text(value: object, where: str) -> str:
    # A name written as a number, 1 or 2.5, is a name all the same; true and null are slips.
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        raise InputError(f"{where} is {shown(value)}, expected a name that is not empty")
    if not on_one_line(str(value)):
        raise InputError(f"{where} is {shown(value)}, expected {ONE_LINE}")
    return str(value)


def _integer(value: object, where: str) -> int:
    if type(value) is not int:
        raise InputError(f"{where} is {shown(value)}, expected an integer")
    return value


def _number(value: object, where: str) -> float:
    # YAML 1.1 reads 1e9, without a point and a sign, as text.
    if isinstance(value, str) and "_" not in value:
        with suppress(ValueError):
            value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise InputError(f"{where} is {shown(value)}, expected a number >= 0")
    return value


def _some(names: Mapping[str, int]) -> str:
    shown = ", ".join(list(names)[:8])
    return shown if len(names) <= 8 else f"{shown}, ..."


class _Repeated(Exception):
    """A key is there twice, of which readers of YAML and JSON silently keep the last."""

    def __init__(self, key: object, where: str = "") -> None:
        super().__init__(f"entry {shown(key)} is there twice{where}, expected it once")


class _Loader(yaml.SafeLoader):
    """Plain data only, as ``yaml.safe_load``, and no key twice."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _UNREADABLE as error:
            problem = f"{shown(node.value)} is no {node.tag.removeprefix('tag:yaml.org,2002:')}"
            raise ConstructorError(None, None, problem, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise _Repeated(key, f" on line {key_node.start_mark.line + 1}")
                seen.add(key)
        return super().construct_mapping(node, deep)
