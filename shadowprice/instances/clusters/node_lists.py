"""Lists of nodes as traces publish them: a CSV, a row a node.

Alibaba's openb (``sn,cpu_milli,memory_mib,gpu,model``), spot 2026 (``gpu_model,gpu_capacity_num,cpu_num,node_name``)
and PAI 2020 (``pai_machine_spec``, without a header: machine, GPU type, CPU cores, memory [GB], GPUs), and
the project's own (``gpus`` and what else a node has: ``count``, ``gpu_type``, ``cpus``, ``memory_gb``,
``rack``, ... and ``name``, which logs may know them by). Nodes without GPUs are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shadowprice.errors import InputError
from shadowprice.instances.entries import shown
from shadowprice.instances.files import read_text

LISTS = (".csv", ".csv.gz", ".csv.xz", "pai_machine_spec.tar.gz")
"""Ends of names of files that are lists of nodes."""

Entry = dict[str, Any]
"""Fields of a node by their names, and ``count``."""

_PAI = ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu")
_TEXTS = ("gpu_type", "rack")
_FLAGS = ("whole_cpus",)


def read_nodes(path: str | Path, fields: Sequence[str]) -> list[Entry]:
    """Nodes of a list that have GPUs, in its order.

    Parameters
    ----------
    fields : sequence of str
        Names of what a node has, for lists of the project's own.

    Raises
    ------
    InputError
        If the header is of no list that is known, a value is no number, or no node has GPUs.
    """
    lines = [line for line in csv.reader(read_text(path).splitlines()) if line]
    head, rows = tuple(name.strip() for name in lines[0]), lines[1:]
    if len(head) == len(_PAI) and head[4].isdecimal():
        head, rows = _PAI, lines
    reader = _READERS.get(head)
    if reader is None:
        if "gpus" not in head or not set(head) <= {*fields, "name"}:
            raise InputError(
                f"{path}: columns {', '.join(head)} are of no list of nodes, expected gpus, and of "
                f"{', '.join(fields)}"
            )
        reader = _own
    found = []
    for number, row in enumerate(rows, 1):
        if len(row) != len(head):
            raise InputError(f"{path}: row {number} has {len(row)} values, expected {len(head)}")
        try:
            entry = reader(dict(zip(head, map(str.strip, row), strict=True)))
        except ValueError as error:
            raise InputError(
                f"{path}: row {number}: {shown(str(error))}, expected numbers"
            ) from None
        if entry["gpus"]:
            found.append(entry)
    if not found:
        raise InputError(f"{path}: has no node with GPUs")
    return found


def _openb(row: Mapping[str, str]) -> Entry:
    return {
        "gpus": int(row["gpu"]),
        "gpu_type": row["model"],
        "cpus": float(row["cpu_milli"]) / 1000.0,
        "memory_gb": float(row["memory_mib"]) * 2**20 / 1e9,
    }


def _spot(row: Mapping[str, str]) -> Entry:
    return {
        "gpus": int(row["gpu_capacity_num"]),
        "gpu_type": row["gpu_model"],
        "cpus": float(row["cpu_num"]),
    }


def _pai(row: Mapping[str, str]) -> Entry:
    return {
        "gpus": int(row["cap_gpu"]),
        "gpu_type": row["gpu_type"],
        "cpus": float(row["cap_cpu"]),
        "memory_gb": float(row["cap_mem"]),
    }


def _own(row: Mapping[str, str]) -> Entry:
    whole = ("gpus", "count")
    return {
        name: bool(("0", "1").index(value))
        if name in _FLAGS
        else value
        if name in _TEXTS
        else int(value)
        if name in whole
        else float(value)
        for name, value in row.items()
        if value and name != "name"
    } | {"gpus": int(row["gpus"])}


_NAMES = ("name", "node_name", "sn", "machine")
"""Columns that name nodes."""


def node_names(path: str | Path) -> tuple[str, ...]:
    """Names of the nodes of a list that have GPUs, in its order; none where it names none, or is no list.

    Of a list with counts a name would be that of several nodes: it has none.
    """
    if not str(path).endswith(LISTS):
        return ()
    lines = [line for line in csv.reader(read_text(path).splitlines()) if line]
    head, rows = tuple(name.strip() for name in lines[0]), lines[1:]
    if len(head) == len(_PAI) and head[4].isdecimal():
        head, rows = _PAI, lines
    named = next((head.index(name) for name in _NAMES if name in head), None)
    gpus = next((head.index(name) for name in _COUNTS if name in head), None)
    if named is None or gpus is None or "count" in head:
        return ()
    return tuple(row[named].strip() for row in rows if int(row[gpus]))


_COUNTS = ("gpus", "gpu", "gpu_capacity_num", "cap_gpu")
"""Columns of the GPUs of a node."""
_READERS: Mapping[tuple[str, ...], Callable[[Mapping[str, str]], Entry]] = {
    ("sn", "cpu_milli", "memory_mib", "gpu", "model"): _openb,
    ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name"): _spot,
    _PAI: _pai,
}
