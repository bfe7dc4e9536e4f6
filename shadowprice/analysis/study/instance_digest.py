"""Digest of an instance: equal where jobs, nodes, charges and conditions are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType

import numpy as np

from shadowprice.analysis.run_directory import conditions as conditions_file
from shadowprice.analysis.run_directory.graphs import to_json
from shadowprice.instances.features import DECLARED_KNOWS, Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.user_code import file_of

_DIGITS = 16

KNOWS = (
    frozenset(
        {
            Feature.RATES,
            Feature.TYPES,
            Feature.CHARGES,
            Feature.SHARING,
            Feature.GRAPHS,
            Feature.PROFILES,
            Feature.SPREAD,
            Feature.WIDTHS,
            Feature.COPIES,
            Feature.FAILURES,
            Feature.QUOTAS,
            Feature.PARTS,
            Feature.CORES,
            Feature.AMOUNTS,
            Feature.WINDOW,
            Feature.STOPPED,
            Feature.RESTART,
            Feature.OWN,
        }
    )
    | DECLARED_KNOWS
)
"""Features that digests tell apart."""


def digest_of(instance: Instance) -> str:
    """First digits of the SHA-256 of all that an instance consists of; names of jobs are part of it."""
    require(instance, KNOWS, "digests of instances")
    found = hashlib.sha256()
    for part in _parts(instance):
        found.update(part + b"\0")
    return found.hexdigest()[:_DIGITS]


def _parts(instance: Instance) -> Iterator[bytes]:
    nodes = [asdict(node) for node in instance.cluster.nodes]
    for node in nodes:
        if not node["whole_cpus"]:
            # Digests are those of before nodes could say so.
            del node["whole_cpus"]
    yield json.dumps(nodes, sort_keys=True, default=str).encode()
    for name, column in instance.workload.to_frame().items():
        yield str(name).encode()
        values = column.to_numpy()
        if values.dtype.kind in "if":
            yield np.ascontiguousarray(values).tobytes()
        else:
            yield json.dumps(values.tolist(), default=str).encode()
    yield json.dumps(asdict(instance.overheads), sort_keys=True, default=str).encode()
    yield np.ascontiguousarray(instance.processing_s).tobytes()
    for feature, said in _SAID.items():
        if feature in instance.features:
            yield said(instance)
    for term in instance.declared:
        source = file_of(term)
        code = b"" if term.feature is not Feature.OWN or source is None else source.read_bytes()
        yield repr(term).encode() + hashlib.sha256(code).digest()
    # Digests that are kept have it where there is neither, too.
    yield repr((instance.copies, instance.until_complete)).encode()


def _sharing(instance: Instance) -> bytes:
    table = instance.pair_throughputs
    assert table is not None
    pairs = sorted((repr(key), rates) for key, rates in table.pairs.items())
    return json.dumps([table.source, table.gpu_types, pairs]).encode()


def _graphs(instance: Instance) -> bytes:
    assert instance.graphs is not None
    return to_json(instance.graphs).encode()


def _conditions(instance: Instance) -> bytes:
    assert instance.conditions is not None
    return conditions_file.to_json(instance.conditions).encode()


def _failures(instance: Instance) -> bytes:
    # Faults are drawn as far as a run goes: their law or file says which they are.
    assert instance.failures is not None
    return repr((instance.failures.source, instance.failures.checkpoints)).encode()


def _quotas(instance: Instance) -> bytes:
    quotas = instance.cluster.quotas
    assert quotas is not None
    # What a person is shown of them is shortened.
    told = f"tenants={quotas.tenants!r}, start_s={quotas.start_s!r}, gpus={quotas.gpus!r}"
    return f"Quotas({told})".encode()


_SAID: Mapping[Feature, Callable[[Instance], bytes]] = MappingProxyType(
    {
        Feature.SHARING: _sharing,
        Feature.GRAPHS: _graphs,
        Feature.PROFILES: _conditions,
        Feature.SPREAD: _conditions,
        Feature.WIDTHS: _conditions,
        Feature.FAILURES: _failures,
        Feature.QUOTAS: _quotas,
        Feature.STOPPED: lambda instance: repr(instance.stopped_s).encode(),
        Feature.RESTART: lambda instance: str(instance.preemption).encode(),
    }
)
"""What features say beyond the nodes, the columns of the jobs and the charges."""
