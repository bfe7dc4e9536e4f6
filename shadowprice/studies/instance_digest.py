"""Digest of an instance: equal where jobs, nodes, charges and conditions are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from shadowprice.instances.documents.written_instance import KNOWS as WRITTEN_KNOWS
from shadowprice.instances.documents.written_instance import written
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.user_code import file_of

_DIGITS = 16

KNOWS = WRITTEN_KNOWS | {Feature.OWN}
"""Features that digests tell apart."""


def digest_of(instance: Instance) -> str:
    """First digits of the SHA-256 of all that an instance consists of; names of jobs are part of it."""
    require(instance, KNOWS, "digests of instances")
    found = hashlib.sha256()
    for part in _parts(instance):
        found.update(part + b"\0")
    return found.hexdigest()[:_DIGITS]


def _parts(instance: Instance) -> Iterator[bytes]:
    packaged = tuple(each for each in instance.declared if each.feature is not Feature.OWN)
    own = packaged != instance.declared
    document = written(replace(instance, declared=packaged) if own else instance)
    if instance.failures is not None:
        # Faults are drawn as far as a run goes: their law or file says which they are.
        del document["failures"]["faults"], document["failures"]["known_until_s"]
    yield json.dumps(document, sort_keys=True).encode()
    for name, column in instance.workload.to_frame().items():
        yield str(name).encode()
        values = column.to_numpy()
        if values.dtype.kind in "if":
            yield np.ascontiguousarray(values).tobytes()
        else:
            yield json.dumps(values.tolist()).encode()
    for term in instance.declared:
        if term.feature is Feature.OWN:
            source = file_of(term)
            code = b"" if source is None else source.read_bytes()
            yield repr(term).encode() + hashlib.sha256(code).digest()
