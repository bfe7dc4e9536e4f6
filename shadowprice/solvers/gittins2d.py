"""2D-Gittins: 2D-LAS whose queues are ordered by the Gittins index of attained GPU-time.

Source: Gu et al., Tiresias, NSDI'19, sections 4.2-4.3; the index: Gittins, J. R. Stat. Soc. B
41(2), 1979. With the expectation taken over the service still to come (derived; the published
code takes it over the whole service),

    G(a) = sup_{D>0} P(S - a <= D | S > a) / E[min(S - a, D) | S > a],

with S the total service gpus x time of a job. For queue i < K the supremum is replaced by the
queue's own quantum, D = threshold_i, as printed in the paper (its text is ambiguous: the other
reading is D = threshold_i - a); the last queue is first in first out.

Knows: the distribution of service over the workload, but not whose is which. Preempts.
Cost per decision: O(L log n) for L live jobs and n samples, after one sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.solvers.las2d import Las2d
from shadowprice.solvers.live import Live
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.state import State


@dataclass(frozen=True)
class ServiceDistribution:
    """An empirical distribution of total service S [GPU-s], with prefix sums.

    Parameters
    ----------
    samples_gpu_s : ndarray, shape (n,)
        Sorted samples.
    """

    samples_gpu_s: NDArray[np.float64]

    def quantum_index(self, attained: ArrayLike, quantum: ArrayLike) -> NDArray[np.float64]:
        """P(S - a <= D | S > a) / E[min(S - a, D) | S > a]; 0 beyond the largest sample.

        ``attained`` a and ``quantum`` D [GPU-s] broadcast; O(log n) for each pair.
        """
        a, d = np.broadcast_arrays(np.asarray(attained, float), np.asarray(quantum, float))
        samples = self.samples_gpu_s
        prefix = np.concatenate(([0.0], np.cumsum(samples)))
        above = np.searchsorted(samples, a, side="right")
        within = np.searchsorted(samples, a + d, side="right")
        ending = within - above
        served = prefix[within] - prefix[above] - ending * a + (len(samples) - within) * d
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(above < len(samples), ending / served, 0.0)

    def index(self, attained: float) -> float:
        """The Gittins index [1/GPU-s], the supremum over all quanta.

        For an empirical distribution it is attained where the quantum ends at a sample; O(n).
        """
        samples = self.samples_gpu_s
        quanta = samples[np.searchsorted(samples, attained, side="right") :] - attained
        return float(self.quantum_index(attained, quanta).max()) if len(quanta) else 0.0


@dataclass(frozen=True)
class Gittins2d(Las2d):
    """2D-LAS queues, each but the last ordered by the Gittins index over the queue's quantum."""

    name: str = "gittins2d"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DISTRIBUTION})

    def order(
        self, state: State, live: Live, queue: NDArray[np.int64], service_s: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Queue, then index (highest first), then first start and arrival; last queue without index."""
        distribution = state.memory.get("distribution")
        if distribution is None:
            distribution = ServiceDistribution(state.service_gpu_s())
            state.memory["distribution"] = distribution
        quantum = np.append(self._limits, 1.0)[queue]  # the last queue has no index
        index = np.where(
            queue < len(self._limits),
            distribution.quantum_index(service_s * live.gpus, quantum),
            0.0,
        )
        return np.lexsort((live.jobs, live.first_start_s, -index, queue))


POLICIES = (Gittins2d(),)
