"""The Gittins index over an empirical distribution of service, given or learned.

Source: Gittins, J. R. Stat. Soc. B 41(2), 1979; Gu et al., Tiresias, NSDI'19, section 4.2. With
the expectation taken over the service still to come (derived; the published code takes it over
the whole service),

    G(a, D) = P(S - a <= D | S > a) / E[min(S - a, D) | S > a],    G(a) = sup_{D>0} G(a, D),

with S the total service gpus x time of a job and a what it has attained. Both are quotients of
sums over the samples above a, so prefix sums give G(a, D) in O(log n).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.brief import Brief

Sums = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""For pairs (a, D): samples above a, those of them up to a + D, and the sum of min(S - a, D)."""

_RECENT = 256
"""Completed jobs kept apart before they are merged into the sorted samples."""


@dataclass(frozen=True, repr=False)
class ServiceDistribution(Brief):
    """An empirical distribution of total service S [GPU-s], with prefix sums.

    Parameters
    ----------
    samples_gpu_s : ndarray, shape (n,)
        Sorted samples.
    """

    samples_gpu_s: NDArray[np.float64]

    @cached_property
    def prefix(self) -> NDArray[np.float64]:
        """Sums of the k smallest samples, shape (n + 1,)."""
        return np.concatenate(([0.0], np.cumsum(self.samples_gpu_s)))

    def sums(self, attained: ArrayLike, quantum: ArrayLike) -> Sums:
        """Numbers of samples and their service that G(a, D) is made of; O(log n) a pair."""
        a, d = np.broadcast_arrays(np.asarray(attained, float), np.asarray(quantum, float))
        samples, prefix = self.samples_gpu_s, self.prefix
        first = np.searchsorted(samples, a, side="right")
        within = np.searchsorted(samples, a + d, side="right")
        ending = within - first
        served = prefix[within] - prefix[first] - ending * a + (len(samples) - within) * d
        return np.asarray(len(samples) - first), np.asarray(ending), np.asarray(served)

    def quantum_index(self, attained: ArrayLike, quantum: ArrayLike) -> NDArray[np.float64]:
        """G(a, D); 0 beyond the largest sample.

        ``attained`` a and ``quantum`` D > 0 [GPU-s] broadcast; O(log n) for each pair.
        """
        return _quotient(self.sums(attained, quantum))

    def index_until(self, attained: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Gittins index G(a) [1/GPU-s], and the service up to which it is attained [GPU-s].

        G(a) is the steepest of some slopes. With A(v) the sum of min(S, v) over the samples S and F(v) the
        number of those up to v, G(a, D) is the slope from the point (A(a), F(a)) to (A(a + D), F(a + D)),
        and the supremum is where the tangent touches the upper hull of the points of the samples
        above a (derived). The service is a sample, the least that attains it; beyond the largest sample the
        index is 0 and the service infinite. O(log n) a job, after O(n log n) once.

        Parameters
        ----------
        attained : array-like, shape (jobs,)
            Attained service a [GPU-s].
        """
        a, count = np.asarray(attained, dtype=np.float64), len(self.samples_gpu_s)
        first = np.searchsorted(self.samples_gpu_s, a, side="right")
        known = first < count
        index, until = np.zeros(len(a)), np.full(len(a), np.inf)
        if known.any():
            first = first[known]
            x = self.prefix[first] + (count - first) * a[known]
            at = self._touching(first, x)
            across, up = self._curve
            index[known] = (up[at] - first) / (across[at] - x)
            until[known] = self.samples_gpu_s[at]
        return index, until

    def index(self, attained: float) -> float:
        """Gittins index G(a) [1/GPU-s] for one attained service [GPU-s]."""
        return float(self.index_until([attained])[0][0])

    def _touching(self, first: NDArray[np.int64], x: NDArray[np.float64]) -> NDArray[np.int64]:
        """Sample at which the tangent from (x, first) touches the hull of the samples from the first on."""
        across, up = self._curve
        leaps = self._leaps

        def rises_beyond(vertex: NDArray[np.int64]) -> NDArray[np.bool_]:
            """True where the next vertex of the hull is seen under a steeper slope, until one is not."""
            following = leaps[0][vertex]
            here = (up[vertex] - first) * (across[following] - x)
            return np.asarray((up[following] - first) * (across[vertex] - x) > here)

        vertex = first.copy()
        for leap in reversed(leaps):
            # No further than one vertex before the tangent's, from where a last step may follow.
            beyond = leap[vertex]
            vertex = np.where(rises_beyond(beyond), beyond, vertex)
        return np.where(rises_beyond(vertex), leaps[0][vertex], vertex)

    @cached_property
    def _curve(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Sum of min(S, v) and number of samples up to v, at each sample v."""
        samples, count = self.samples_gpu_s, len(self.samples_gpu_s)
        up = np.searchsorted(samples, samples, side="right")
        return self.prefix[up] + (count - up) * samples, up

    @cached_property
    def _leaps(self) -> list[NDArray[np.int64]]:
        """Vertices 1, 2, 4, ... further on the upper hull of the samples from each on; the last is its own next."""
        across, up = (each.tolist() for each in self._curve)
        count = len(across)
        following = list(range(count))
        hull: list[int] = []
        for k in range(count - 1, -1, -1):
            while hull and across[hull[-1]] <= across[k]:  # Equal samples are one point.
                hull.pop()
            while len(hull) > 1:
                one, two = hull[-1], hull[-2]
                turn = (up[one] - up[k]) * (across[two] - across[one])
                if turn >= (up[two] - up[one]) * (across[one] - across[k]):
                    break
                hull.pop()
            following[k] = hull[-1] if hull else k
            hull.append(k)
        leaps = [np.array(following, dtype=np.int64)]
        while 1 << len(leaps) < count:
            leaps.append(leaps[-1][leaps[-1]])
        return leaps


class LearnedDistribution:
    """A distribution that grows by the jobs that complete.

    The latest samples are kept apart, in order, and merged now and then: the sums of both parts
    add up. A sample costs O(n / 256 + 256) on average, a pair (a, D) O(log n).

    Parameters
    ----------
    before : ServiceDistribution, optional
        What was known before the first completion; nothing if not given.
    """

    def __init__(self, before: ServiceDistribution | None = None) -> None:
        nothing: NDArray[np.float64] = np.zeros(0)
        self._old = before or ServiceDistribution(nothing)
        self._recent = ServiceDistribution(nothing)

    def __len__(self) -> int:
        return len(self._old.samples_gpu_s) + len(self._recent.samples_gpu_s)

    def learn(self, services_gpu_s: Iterable[float]) -> None:
        """Add the total service of completed jobs [GPU-s]."""
        recent = np.sort(np.concatenate((self._recent.samples_gpu_s, list(services_gpu_s))))
        if len(recent) > _RECENT:
            merged = np.concatenate((self._old.samples_gpu_s, recent))
            merged.sort(kind="stable")  # Two sorted runs: merged in linear time.
            self._old, recent = ServiceDistribution(merged), recent[:0]
        self._recent = ServiceDistribution(recent)

    def quantum_index(self, attained: ArrayLike, quantum: ArrayLike) -> NDArray[np.float64]:
        """G(a, D) over all samples so far; 0 beyond the largest, and while there is none."""
        old, new = self._old.sums(attained, quantum), self._recent.sums(attained, quantum)
        return _quotient((old[0] + new[0], old[1] + new[1], old[2] + new[2]))


def _quotient(sums: Sums) -> NDArray[np.float64]:
    above, ending, served = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(above > 0, ending / served, 0.0)
