"""Plans: which GPUs every job holds in every round."""

from __future__ import annotations

from dataclasses import dataclass

GpusByNode = tuple[tuple[int, int], ...]
"""Pairs (node, GPUs), by increasing node."""


@dataclass(frozen=True)
class Plan:
    """A round-based schedule.

    Parameters
    ----------
    runs : tuple of tuple of (int, GpusByNode)
        By job, in the order of the workload: pairs (round, GPUs held in it), by increasing round.
    """

    runs: tuple[tuple[tuple[int, GpusByNode], ...], ...]
