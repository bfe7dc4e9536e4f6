"""Parts of GPUs: who holds which part of which GPU, and where whole GPUs begin and end to be held in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.schedule import Schedule

WHOLE_GPU = 1000
"""A GPU in thousandths."""

Fault = tuple[NDArray[np.bool_], str, NDArray[np.int64]]
"""Entries that break the rule, what to say of them, and their rows."""


class PartedRows:
    """Rows of a schedule with a column of GPUs that are held in parts; O(R log R).

    Parameters
    ----------
    schedule : Schedule
    number : ndarray of int, shape (R,)
        Its column ``shared_gpu``.
    milli : ndarray of int, shape (R,)
        Thousandths of a GPU that the job of each row holds.
    size : ndarray of int
        GPUs of each node.

    Attributes
    ----------
    begins, ends : ndarray of int
        Rows with which somebody first, and nobody any more, holds a part of a GPU: it counts as one meanwhile.
    """

    def __init__(
        self,
        schedule: Schedule,
        number: NDArray[np.int64],
        milli: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> None:
        s, in_parts = schedule, milli < WHOLE_GPU
        self._wrong = np.where(in_parts, (number < 0) | (number >= size[s.node]), number != -1)
        rows = np.flatnonzero(in_parts)
        both, change = np.concatenate((rows, rows)), milli[rows]
        change = np.concatenate((-change, change))
        time = np.concatenate((s.end_s[rows], s.start_s[rows]))
        order = np.lexsort((change > 0, time, number[both], s.node[both]))
        self._row, change = both[order], change[order]
        self._held = np.cumsum(change)
        self.begins = self._row[(change > 0) & (self._held == change)]
        self.ends = self._row[self._held == 0]

    def faults(self) -> Iterator[Fault]:
        """Rows on no GPU of their node, then those with which a GPU is held by more than all of it."""
        say = "expected the number of a GPU of the node for a part of one, -1 for whole ones"
        yield self._wrong, say, np.arange(len(self._wrong))
        say = f"more than {WHOLE_GPU} thousandths of its GPU are held"
        yield self._held > WHOLE_GPU, say, self._row
