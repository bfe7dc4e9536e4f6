"""Throughput tables as one Parquet table, without loss: what a run directory keeps of them."""

from __future__ import annotations

import pyarrow as pa

from shadowprice.errors import InputError
from shadowprice.instances.entries import LARGEST
from shadowprice.instances.speeds.throughputs import Kind, Throughputs

_COLUMNS = {
    "gpu_type": pa.string(),
    "model": pa.string(),
    "gpus": pa.int64(),
    "other_model": pa.string(),
    "other_gpus": pa.int64(),
    "rate": pa.float64(),
    "other_rate": pa.float64(),
}


def to_table(throughputs: Throughputs) -> pa.Table:
    """One row for each rate alone, with no other model, and for each pair that was measured."""
    alone = [
        (gpu_type, *kind, None, None, rate, None)
        for kind, rates in throughputs.alone.items()
        for gpu_type, rate in zip(throughputs.gpu_types, rates, strict=True)
    ]
    together = [
        (gpu_type, *first, *second, *rates)
        for (gpu_type, first, second), rates in throughputs.pairs.items()
    ]
    schema = pa.schema(list(_COLUMNS.items()))
    columns = [list(column) for column in zip(*alone, *together, strict=True)]
    return pa.table(columns or [[] for _ in _COLUMNS], schema=schema)


def from_table(
    table: pa.Table, gpu_types: tuple[str, ...], source: str, *, path: str
) -> Throughputs:
    """Inverse of :func:`to_table`, which keeps neither the order of the types nor the source.

    Raises
    ------
    InputError
        If a column is missing or of another kind, or a rate is not finite and at least 0.
    """
    if {field.name: field.type for field in table.schema} != _COLUMNS:
        raise InputError(f"{path}: columns are {table.schema.names}, expected {list(_COLUMNS)}")
    alone: dict[Kind, list[float]] = {}
    together: dict[tuple[str, Kind, Kind], tuple[float, float]] = {}
    for row in table.to_pylist():
        kind, rates = (row["model"], row["gpus"]), (row["rate"], row["other_rate"])
        shared = row["other_model"] is not None
        for rate in rates if shared else rates[:1]:
            if not isinstance(rate, float) or not 0 <= rate <= LARGEST:
                raise InputError(f"{path}: {row} has rate {rate!r}, expected a finite rate >= 0")
        if shared:
            together[row["gpu_type"], kind, (row["other_model"], row["other_gpus"])] = rates
        else:
            place = gpu_types.index(row["gpu_type"])
            alone.setdefault(kind, [0.0] * len(gpu_types))[place] = rates[0]
    return Throughputs(
        gpu_types, {kind: tuple(rates) for kind, rates in alone.items()}, together, source
    )
