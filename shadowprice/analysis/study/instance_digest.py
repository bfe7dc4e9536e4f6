"""Digest of an instance: equal where jobs, nodes, charges and conditions are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from shadowprice.analysis.run_directory import conditions as conditions_file
from shadowprice.analysis.run_directory.graphs import to_json
from shadowprice.instances.instance import Instance

_DIGITS = 16


def digest_of(instance: Instance) -> str:
    """First digits of the SHA-256 of all that an instance consists of; names of jobs are part of it."""
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
    # What the best speeds are says enough of tables of pairs: bounds know no more of them.
    yield np.ascontiguousarray(instance.processing_s).tobytes()
    if instance.pair_throughputs is not None:
        yield instance.pair_throughputs.source.encode()
    if instance.graphs is not None:
        yield to_json(instance.graphs).encode()
    if instance.conditions is not None:
        yield conditions_file.to_json(instance.conditions).encode()
    if instance.failures is not None:
        # Faults are drawn as far as a run goes: their law or file says which they are.
        yield repr((instance.failures.source, instance.failures.checkpoints)).encode()
    yield repr((instance.copies, instance.until_complete)).encode()
    if instance.restarts:
        yield str(instance.preemption).encode()
