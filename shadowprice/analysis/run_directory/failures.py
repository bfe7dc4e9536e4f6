"""Faults of nodes in a run directory: a table, and what ``run.json`` says beside it."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from shadowprice.errors import InputError
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures

_COLUMNS = {"node": pa.int64(), "down_s": pa.float64(), "up_s": pa.float64()}


class SavedFailures(msgspec.Struct, frozen=True):
    """Entries of ``run.json`` about failures; null stands for infinity.

    Parameters
    ----------
    source : str
        File or law of the faults.
    known_until_s : float or None
        Time before which all faults are in the table [s].
    checkpoint_interval_s : float or None
        Progress between checkpoints [s].
    checkpoint_cost_s : float
        Time that one takes [s].
    """

    source: str
    known_until_s: float | None
    checkpoint_interval_s: float | None
    checkpoint_cost_s: float

    def failures(self, table: pa.Table, path: str) -> NodeFailures:
        """The failures, with the faults of a table.

        Raises
        ------
        InputError
            If the table has other columns, or faults that cannot be.
        """
        schema = {each.name: each.type for each in table.schema}
        if schema != _COLUMNS or any(column.null_count for column in table.columns):
            raise InputError(f"{path}: columns are {table.schema.names}, expected {[*_COLUMNS]}")
        node, down_s, up_s = (table.column(name).to_numpy().copy() for name in _COLUMNS)
        interval_s, known_s = self.checkpoint_interval_s, self.known_until_s
        checkpoints = Checkpointing(
            math.inf if interval_s is None else interval_s, self.checkpoint_cost_s
        )
        known_until_s = math.inf if known_s is None else known_s
        try:
            return NodeFailures(node, down_s, up_s, known_until_s, checkpoints, self.source)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def described(failures: NodeFailures) -> dict[str, Any]:
    """Entries of ``run.json`` about failures."""
    rule = failures.checkpoints
    return {
        "source": failures.source,
        "known_until_s": _or_null(failures.known_until_s),
        "checkpoint_interval_s": _or_null(rule.interval_s),
        "checkpoint_cost_s": rule.cost_s,
    }


def to_table(failures: NodeFailures) -> pa.Table:
    """The faults as a table."""
    columns = (failures.node, failures.down_s, failures.up_s)
    arrays = [
        pa.array(np.asarray(column), type=kind)
        for column, kind in zip(columns, _COLUMNS.values(), strict=True)
    ]
    return pa.table(dict(zip(_COLUMNS, arrays, strict=True)))


def _or_null(seconds: float) -> float | None:
    return None if seconds == math.inf else seconds
