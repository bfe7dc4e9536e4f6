"""Links of a job graph seen from their ends, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class LinkEnds:
    """Both ends of every link, sorted by stage.

    Parameters
    ----------
    stage, peer : ndarray of int, shape (2 links,)
        A stage and the one it exchanges with.
    bytes : ndarray of float, shape (2 links,)
        What one replica of the stage sends (or receives) per iteration [bytes].
    stages, starts : ndarray of int, shape (stages with links,)
        Different values of ``stage`` and where each begins.
    """

    stage: NDArray[np.int64]
    peer: NDArray[np.int64]
    bytes: NDArray[np.float64]
    stages: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, links: Sequence[tuple[int, int, float]], replicas: NDArray[np.int64]) -> LinkEnds:
        """The ends of links (source, target, bytes a replica of the source sends); O(L log L)."""
        source = np.array([link[0] for link in links], dtype=np.int64)
        target = np.array([link[1] for link in links], dtype=np.int64)
        sent = np.array([link[2] for link in links], dtype=np.float64)
        # A replica of the target receives its part of what all replicas of the source send.
        received = sent * (replicas[source] / replicas[target])
        stage = np.concatenate([source, target])
        order = np.argsort(stage, kind="stable")
        stages, starts = np.unique(stage[order], return_index=True)
        return cls(
            stage[order],
            np.concatenate([target, source])[order],
            np.concatenate([sent, received])[order],
            stages,
            starts.astype(np.int64),
        )

    def rows(self) -> Iterator[tuple[int, int, float]]:
        """Triples (stage, peer, bytes)."""
        return zip(self.stage.tolist(), self.peer.tolist(), self.bytes.tolist(), strict=True)
