r"""Applications as they were measured: step times by placement and local batch, noise of gradients by batch and epoch.

Source: Qiao et al., "Pollux", OSDI'21, and its simulator (github.com/petuum/adaptdl, branch osdi21-artifact, read).
A job trains on *replicas*, a GPU each. A step of a replica is over its *local batch*, *accumulated* so many more times
before replicas exchange gradients; the *batch* of a job is replicas times local batch times one more than these.
Progress counts in steps at the smallest batch B_0 that was measured: a step at batch B makes as much as

.. math:: \mathrm{gain} = \frac{\sigma^2 + \mu^2}{\sigma^2 / (B / B_0) + \mu^2}

of these, with the variance and the square of the gradients of the present epoch, and takes the time of a step plus
that of its accumulations, which do not exchange gradients. *Goodput* is gain over time. An *epoch* ends when progress
reaches what the tables say; within one the goodput of a job that keeps placement and batch does not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from shadowprice.errors import InputError
from shadowprice.instances.documents.schema import Amount, Line

if TYPE_CHECKING:
    from numpy.typing import NDArray

Count = Annotated[int, Meta(ge=1, le=2**40, description="a whole number >= 1")]
Seconds = Annotated[float, Meta(ge=0, le=2**32, description="seconds >= 0")]
Gpus = tuple[int, ...]
"""Replicas on each node of a run, in the order in which they form a ring."""

_CEIL = 1e-8
"""What is taken off before a quotient is rounded up."""
_MOST_NODES = 16
"""Nodes of the largest measurement of step times across nodes; more count as so many."""


class Batching(NamedTuple):
    """Parts of a batch: the local batch of a replica, and how often that is accumulated beyond once."""

    local: int
    accumulated: int

    def whole_step_s(self, step_s: float, sync_s: float) -> float:
        """Time of a step of which all but the exchange of gradients is done again for each accumulation [s]."""
        return step_s + (step_s - sync_s) * self.accumulated

    def total(self, replicas: int) -> int:
        """Batch of the job."""
        return replicas * self.local * (self.accumulated + 1)


class PlacedStep(NamedTuple):
    """A measured step: replicas by node, local batch, its time [s] and the part of it that exchanges gradients [s]."""

    placement: tuple[Count, ...]
    local: Count
    step_s: Seconds
    sync_s: Seconds


class ScaledStep(NamedTuple):
    """A measured step across so many nodes, whatever the replicas of each."""

    nodes: Count
    replicas: Count
    local: Count
    step_s: Seconds
    sync_s: Seconds


Placed = Annotated[
    PlacedStep,
    Meta(description="replicas of each node, local batch, and seconds of step and exchange"),
]
Scaled = Annotated[
    ScaledStep,
    Meta(description="nodes, replicas, local batch, and seconds of step and exchange"),
]


@dataclass(frozen=True)
class BatchRecord:
    """A whole training at one batch, epoch by epoch.

    Parameters
    ----------
    batch : int
    iterations, progress : tuple of float
        Steps, and progress, at the end of each epoch.
    grad_sqr, grad_var : tuple of float
        Square and variance of the gradients during each epoch.
    """

    batch: Count
    iterations: tuple[Amount, ...]
    progress: tuple[Amount, ...]
    grad_sqr: tuple[float, ...]
    grad_var: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = {
            len(each) for each in (self.iterations, self.progress, self.grad_sqr, self.grad_var)
        }
        if len(lengths) != 1 or lengths == {0}:
            raise InputError(
                f"batch {self.batch}: columns of epochs have {sorted(lengths)} values, expected as many each"
            )


@dataclass(frozen=True)
class Application:
    """One application, as it was measured.

    Parameters
    ----------
    name : str
        That of the ``model`` of its jobs.
    placed : tuple of PlacedStep
        Steps on placements that were measured.
    scaled : tuple of ScaledStep
        Steps by nodes and replicas.
    records : tuple of BatchRecord
        Trainings, by increasing batch.
    most_local : int
        Largest local batch that fits a GPU; the largest of ``placed`` if 0.

    Raises
    ------
    InputError
        If nothing was measured, or batches do not increase.
    """

    name: Line
    placed: tuple[Placed, ...]
    scaled: tuple[Scaled, ...]
    records: tuple[BatchRecord, ...]
    most_local: Annotated[int, Meta(ge=0, le=2**40, description="a whole number >= 0")] = 0

    def __post_init__(self) -> None:
        if not self.placed or not self.records:
            raise InputError(
                f"application {self.name!r}: has {len(self.placed)} steps and {len(self.records)} batches that were "
                "measured, expected at least one of each"
            )
        batches = [each.batch for each in self.records]
        if any(a >= b for a, b in pairwise(batches)):
            raise InputError(f"application {self.name!r}: batches {batches} do not increase")
        if not self.init_batch <= self.most_batch or self.most_batch < self.least_local:
            raise InputError(
                f"application {self.name!r}: no batch that was measured holds one local batch of {self.least_local}"
            )

    # Limits.

    @property
    def init_batch(self) -> int:
        """B_0, the smallest batch."""
        return self.records[0].batch

    @property
    def most_batch(self) -> int:
        """Largest batch."""
        return self.records[-1].batch

    @cached_property
    def least_local(self) -> int:
        """Smallest local batch."""
        return min(each.local for each in self.placed)

    @cached_property
    def largest_local(self) -> int:
        """Largest local batch."""
        return self.most_local or max(each.local for each in self.placed)

    @cached_property
    def ends(self) -> tuple[float, ...]:
        """Progress at the end of each epoch: the least over all batches."""
        count = min(len(each.progress) for each in self.records)
        return tuple(min(each.progress[k] for each in self.records) for k in range(count))

    def widest(self, batch: int) -> int:
        """Most replicas of a job with a batch, the largest one if 0: each has at least the smallest local batch."""
        return max((batch or self.most_batch) // self.least_local, 1)

    # Batches.

    def batching(self, batch: int, replicas: int) -> Batching:
        """Local batch and accumulation of so many replicas for a batch; for 0 the smallest that they can make."""
        if batch == 0:
            batch = max(self.init_batch, self.least_local * replicas)
        local = math.ceil(batch / replicas - _CEIL)
        accumulated = math.ceil(local / self.largest_local - _CEIL) - 1
        if replicas == 1 and batch > self.init_batch:
            accumulated = max(accumulated, 1)
        atomic = math.ceil(local / (accumulated + 1) - _CEIL)
        most = self.most_batch // (replicas * (accumulated + 1))
        return Batching(min(atomic, most), accumulated)

    # Speeds.

    def step_s(self, placement: Iterable[int], local: int) -> tuple[float, float] | None:
        """Time of a step, and the part of it that exchanges gradients [s]; None where neither was measured.

        Linear in the local batch on a placement that was measured, in any rotation; else linear between the nearest
        points of nodes, replicas and local batch.
        """
        ring = lowest_rotation(tuple(placement))
        key = (ring, local)
        known = self._steps
        if key not in known:
            known[key] = self._on_placement(ring, local) if ring in self._by_placement else None
            if ring not in self._by_placement:
                known[key] = self._between(len(ring), sum(ring), local)
        return known[key]

    def noise(self, batch: int, epoch: int) -> tuple[float, float] | None:
        """Square and variance of the gradients at a batch in an epoch, linear in the batch; None beyond the tables."""
        above = next((k for k, each in enumerate(self.records) if each.batch >= batch), None)
        if above is None or batch < self.init_batch or epoch >= len(self.ends):
            return None
        high = self.records[above]
        low = high if high.batch == batch else self.records[above - 1]
        return _between(low, high, batch, low.grad_sqr[epoch], high.grad_sqr[epoch]), _between(
            low, high, batch, low.grad_var[epoch], high.grad_var[epoch]
        )

    def iterations(self, batch: int, epoch: int) -> float:
        """Steps at a batch until the end of an epoch, linear in the batch.

        Raises
        ------
        InputError
            If the batch is beyond those that were measured.
        """
        above = next((k for k, each in enumerate(self.records) if each.batch >= batch), None)
        if above is None or batch < self.init_batch:
            raise InputError(
                f"application {self.name!r}: batch {batch}, expected {self.init_batch} to {self.most_batch}"
            )
        high = self.records[above]
        low = high if high.batch == batch else self.records[above - 1]
        return _between(low, high, batch, low.iterations[epoch], high.iterations[epoch])

    def gain(self, batch: int, epoch: int) -> float:
        """Progress of a step at a batch in an epoch; 0 beyond the tables."""
        noise = self.noise(batch, epoch)
        if noise is None:
            return 0.0
        sqr, var = noise
        below = var / (batch / self.init_batch) + sqr
        return (var + sqr) / below if below > 0 else 0.0

    def rate(self, placement: Gpus, batching: Batching, epoch: int) -> float:
        """Goodput: progress a second of a job on a placement in an epoch; 0 where it cannot run."""
        step = self.step_s(placement, batching.local) if batching.local > 0 else None
        if step is None:
            return 0.0
        whole_s = batching.whole_step_s(*step)
        result = self.gain(batching.total(sum(placement)), epoch) / whole_s if whole_s > 0 else 0.0
        return result if 0.0 < result < math.inf else 0.0

    @cached_property
    def _steps(self) -> dict[tuple[Gpus, int], tuple[float, float] | None]:
        return {}

    @cached_property
    def _by_placement(self) -> dict[Gpus, NDArray[np.float64]]:
        """Local batch, step and exchange by placement, by increasing local batch."""
        rows: dict[Gpus, list[tuple[float, float, float]]] = {}
        for each in self.placed:
            rows.setdefault(each.placement, []).append((each.local, each.step_s, each.sync_s))
        return {ring: np.array(sorted(mine), dtype=np.float64) for ring, mine in rows.items()}

    def _on_placement(self, ring: Gpus, local: int) -> tuple[float, float] | None:
        table = self._by_placement[ring]
        x = table[:, 0]
        if not x[0] <= local <= x[-1] or len(x) < 2:
            exact = np.flatnonzero(x == local)
            return (float(table[exact[0], 1]), float(table[exact[0], 2])) if len(exact) else None
        high = min(max(int(np.searchsorted(x, local)), 1), len(x) - 1)
        low = high - 1
        slope = (table[high, 1:] - table[low, 1:]) / (x[high] - x[low])
        step_s, sync_s = slope * (local - x[low]) + table[low, 1:]
        return float(step_s), float(sync_s)

    @cached_property
    def _interpolator(self) -> Any:
        """Interpolator between all points; None where these do not span a volume."""
        from scipy.interpolate import LinearNDInterpolator
        from scipy.spatial import QhullError

        points, values = scattered(self.placed, self.scaled)
        try:
            return LinearNDInterpolator(points, values)
        except (QhullError, ValueError):
            return None

    def steps_between(
        self, nodes: int, replicas: int, local: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Steps and exchanges between measured points at several local batches [s]; infinite, and 0, beyond them."""
        if self._interpolator is None:
            return np.full(len(local), np.inf), np.zeros(len(local))
        points = np.empty((len(local), 3))
        points[:, 0], points[:, 1], points[:, 2] = min(nodes, _MOST_NODES), replicas, local
        result = self._interpolator(points)
        able = ~np.isnan(result).any(axis=1)
        return np.where(able, result[:, 0], np.inf), np.where(able, result[:, 1], 0.0)

    def _between(self, nodes: int, replicas: int, local: int) -> tuple[float, float] | None:
        if self._interpolator is None:
            return None
        result = self._interpolator([min(nodes, _MOST_NODES), replicas, local])[0]
        return None if np.isnan(result).any() else (float(result[0]), float(result[1]))


def packed(gpus: int, node_gpus: int) -> Gpus:
    """Placement on as few nodes as hold so many GPUs: full nodes, then what is left."""
    full, rest = divmod(gpus, node_gpus)
    return (node_gpus,) * full + (rest,) * bool(rest)


def lowest_rotation(placement: Gpus) -> Gpus:
    """Smallest of a ring's rotations, by which placements are looked up."""
    return min(placement[k:] + placement[:k] for k in range(len(placement)))


def scattered(
    placed: Sequence[PlacedStep], scaled: Sequence[ScaledStep]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points (nodes, replicas, local batch) in order, with means of equal ones, then those that were scaled."""
    rows: dict[tuple[int, int, int], list[tuple[float, float]]] = {}
    for each in placed:
        key = (len(each.placement), sum(each.placement), each.local)
        rows.setdefault(key, []).append((each.step_s, each.sync_s))
    keys = sorted(rows)
    means = [np.mean(np.array(rows[key]), axis=0) for key in keys]
    points = [*keys, *((s.nodes, s.replicas, s.local) for s in scaled)]
    values = [*means, *(np.array((s.step_s, s.sync_s)) for s in scaled)]
    return np.array(points, dtype=np.float64), np.array(values, dtype=np.float64)


def _between(low: BatchRecord, high: BatchRecord, batch: int, below: float, above: float) -> float:
    if low.batch == high.batch:
        return below
    weighted = (batch - low.batch) * above + (high.batch - batch) * below
    return weighted / (high.batch - low.batch)
