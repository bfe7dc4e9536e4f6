"""Merging equal jobs: one row for all of them, exactly.

Programmes here are convex and symmetric in equal jobs: averaging an optimal allocation over all
permutations of equal jobs gives an optimal one in which they get the same. So one row with a
count is enough; with space sharing also one pair for all pairs between two kinds, provided that
all of them are there and equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.allocation_problem import Pairs
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.threads import one_blas_thread


@dataclass(frozen=True, eq=False)
class Merged:
    """Kinds of jobs and the way back.

    Parameters
    ----------
    rates : Rates
        One row a kind.
    kind : ndarray of int, shape (jobs,)
        Kind of each job.
    sample : ndarray of int, shape (kinds,)
        One job of each kind.
    group : ndarray of int, shape (pairs,)
        Merged pair of each pair.
    size : ndarray, shape (merged pairs,)
        Pairs each stands for.
    """

    rates: Rates
    kind: NDArray[np.int64]
    sample: NDArray[np.int64]
    group: NDArray[np.int64]
    size: FloatArray

    def spread(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Allocation of the jobs and pairs from totals of kinds and merged pairs."""
        alone = (x / self.rates.count[:, None])[self.kind]
        shared = (y / self.size[:, None])[self.group] if len(self.group) else y[:0]
        return alone, shared


def merge(rates: Rates, *columns: FloatArray) -> Merged | None:
    """Merge rows with equal rates, gangs and further columns; None if that is not exact or not worth it."""
    keys = np.column_stack([rates.alone, rates.gang, rates.count, *columns])
    sample, kind = _distinct(keys)
    if len(sample) > 0.9 * rates.rows:
        return None
    count = np.asarray(np.bincount(kind, rates.count, len(sample)), dtype=np.float64)
    members = np.bincount(kind, minlength=len(sample))
    grouped = _pairs(rates.pairs, kind, members)
    if grouped is None:
        return None
    pairs, group, size = grouped
    merged = Rates(
        rates.alone[sample], rates.gang[sample], count, rates.workers, rates.accelerators, pairs
    )
    return Merged(merged, kind, sample, group, size)


@one_blas_thread
def _distinct(keys: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A row of each distinct kind, and the kind of each row; by a random projection, then checked."""
    direction = np.random.default_rng(0).uniform(0.5, 1.5, keys.shape[1])
    _, sample, kind = np.unique(keys @ direction, return_index=True, return_inverse=True)
    if not np.array_equal(keys[sample[kind]], keys):
        _, sample, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        kind = kind.reshape(-1)
    return sample, kind


def _pairs(
    pairs: Pairs, kind: NDArray[np.int64], members: NDArray[np.int64]
) -> tuple[Pairs, NDArray[np.int64], FloatArray] | None:
    if not len(pairs):
        return pairs, np.zeros(0, dtype=np.int64), np.zeros(0)
    first, second = kind[pairs.first], kind[pairs.second]
    swap = (first > second)[:, None]
    low, high = np.minimum(first, second), np.maximum(first, second)
    rate_low = np.where(swap, pairs.throughput_second, pairs.throughput_first)
    rate_high = np.where(swap, pairs.throughput_first, pairs.throughput_second)
    _, sample, group = np.unique(low * len(members) + high, return_index=True, return_inverse=True)
    size = np.bincount(group)
    low, high = low[sample], high[sample]
    same = low == high
    expected = np.where(same, members[low] * (members[low] - 1) // 2, members[low] * members[high])
    equal = np.array_equal(rate_low[sample[group]], rate_low) and np.array_equal(
        rate_high[sample[group]], rate_high
    )
    symmetric = np.array_equal(rate_low[sample][same], rate_high[sample][same])
    if not (equal and symmetric and np.array_equal(size, expected)):
        return None
    merged = Pairs(low, high, rate_low[sample], rate_high[sample])
    return merged, group, size.astype(np.float64)
