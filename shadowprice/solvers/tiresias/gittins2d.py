"""2D-Gittins: 2D-LAS whose queues are ordered by the Gittins index of attained GPU-time.

Source: Gu et al., Tiresias, NSDI'19, sections 4.2-4.3; the index is that of
:mod:`shadowprice.solvers.tiresias.gittins_index`. For queue i < K the supremum over quanta is replaced by
a quantum of the queue's own, about which the paper's text can be read in two ways:

    reading A: D = Q_i, the queue's upper limit, counted from what the job has attained (as printed);
    reading B: D = Q_i - a, what is left up to the limit.

The last queue is first in first out. With one threshold of 4 GPU-s, reading A gives the mean of 10
of the paper's worked example; the supremum itself, ties by row, gives 9.3 there (derived).

Where the distribution comes from is ``learned``. Learned online it is of the jobs completed so far
in this run, each with the GPUs x time it was measured to hold, overheads left out. Until the first
has completed all indices are 0, and a queue is in order of first start: 2D-LAS. So are jobs that
have attained more than any sample.

Guarantee: no constant ratio for total completion time with fixed thresholds, even on one GPU with all
jobs released at 0 (the instance of TIR-las (d)); TIR-las (b) bounds each job; see
``proofs/tiresias/gittins.py`` for the index.
Knows: the distribution of service over the workload, but not whose is which; nothing if the
distribution is a sample given or learned. Preempts.
Cost per decision: O(L log n) for L live jobs and n samples, after one sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.solvers.index_policy import IndexedJob, JobIndex, Table, WhileRunning
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.tiresias.gittins_index import (
    LearnedDistribution,
    ServiceDistribution,
)
from shadowprice.solvers.tiresias.las2d import Las2d, queue_of

__all__ = ["LEARNED", "POLICIES", "READINGS", "Gittins2d", "ServiceDistribution"]

LARGEST = 1e300
"""Limit of the last queue in arithmetic, where infinity times 0 is no number."""

READINGS = ("A", "B")
LEARNED = ("workload", "sample", "online")


@dataclass(frozen=True)
class Gittins2d(Las2d):
    """2D-LAS queues, each but the last ordered by the Gittins index over the queue's quantum.

    Parameters
    ----------
    reading : str
        Of the quantum: ``A``, the queue's limit; ``B``, what is left up to it.
    learned : str
        Where the distribution of service comes from: ``workload``, told; ``sample``, the sample
        given; ``online``, the jobs completed so far, beside the sample if one is given.
    sample : ServiceDistribution, optional
        A sample of total service [GPU-s], from a history for instance.
    """

    name: str = "gittins2d"
    reading: str = "A"
    learned: str = "workload"
    sample: ServiceDistribution | None = field(default=None, repr=False, compare=False)
    takes: ClassVar[frozenset[str]] = frozenset({"samples"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, value, known in (
            ("reading", self.reading, READINGS),
            ("learned", self.learned, LEARNED),
        ):
            if value not in known:
                raise InputError(
                    f"{self.name}: {what} is {value!r}, expected one of {', '.join(known)}"
                )
        if self.learned == "sample" and self.sample is None:
            raise InputError(f"{self.name}: learned is 'sample', but no sample is given")
        if self.learned == "workload" and self.sample is not None:
            raise InputError(
                f"{self.name}: a sample is given, but learned is 'workload', expected sample or online"
            )

    @property
    def knows(self) -> frozenset[Knowledge]:
        """The distribution of the workload, if that is where it comes from."""
        told = self.learned == "workload"
        return frozenset({Knowledge.DISTRIBUTION}) if told else frozenset()

    def with_options(self, values: Mapping[str, Any]) -> Gittins2d:
        """The policy with the sample of a run instead of the workload's own distribution."""
        learned = "online" if self.learned == "online" else "sample"
        return replace(self, learned=learned, sample=values["samples"])

    def decide(self, state: State) -> Decision:
        """Learn what completed, then serve the queues as 2D-LAS does."""
        if self.learned == "online" and state.completed:
            done = state.columns(state.completed)
            self._distribution(state).learn((done.attained_s * done.gpus).tolist())
        return super().decide(state)

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """Order by queue, Gittins index and first start; none with promotions, or while the distribution is learned."""
        if self.promote_knob < np.inf or self.learned == "online":
            return None
        return self._ranked(service_gpu_s)

    def index_in(self, state: State) -> JobIndex:
        """The same; a distribution that is learned grows while the index is used."""
        if self.learned != "online":
            return self._ranked(state.service_gpu_s() if self.sample is None else None)
        plain, distribution = self._queues(), self._distribution(state)

        def against_learned(job: Any, table: Table) -> Any:
            attained = job.attained_s * job.gpus
            until = table[1 + np.searchsorted(table[1:-1], attained, side="right")]
            ranked = until < np.inf
            quantum = until - attained if self.reading == "B" else until
            key = np.zeros(len(attained))
            key[ranked] = -distribution.quantum_index(attained[ranked], quantum[ranked])
            return key

        varies = WhileRunning.VARIES
        return replace(plain, key=against_learned, level=queue_of, while_running=varies)

    def _ranked(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex:
        known = self.sample
        if known is None:
            assert service_gpu_s is not None
            known = ServiceDistribution(service_gpu_s)
        plain = self._queues()
        reading = np.array([self.reading == "B"], dtype=np.float64)
        return replace(
            plain,
            key=against_index,
            level=queue_of,
            table=np.concatenate((plain.table, reading, *_by_value(known))),
            while_running=WhileRunning.VARIES,
        )

    def _distribution(self, state: State) -> LearnedDistribution:
        """Distribution of service learned in this run."""
        return state.notes(LearnedDistribution, lambda: LearnedDistribution(self.sample))


def _by_value(known: ServiceDistribution) -> tuple[NDArray[np.float64], ...]:
    """Different samples, and before the first and behind each of them: samples up to there, and their sum."""
    samples = known.samples_gpu_s
    values, behind = np.unique(samples, return_counts=True)
    upto = np.concatenate(([0], np.cumsum(behind)))
    return values, upto.astype(np.float64), known.prefix[upto]


# The table of the index: that of 2D-LAS, 1.0 for reading B, m different samples, m + 1 numbers of samples up to
# them, m + 1 prefix sums. Fewer numbers stay in the cache than of all samples.


def against_index(job: IndexedJob, table: Table) -> float:
    """The index of a job in its queue with the sign turned, 0 in the last queue.

    As :meth:`.ServiceDistribution.quantum_index`, operation by operation.
    """
    limits = int(table[0])
    values = (len(table) - 5 - limits) // 3
    samples = table[3 + limits : 3 + limits + values]
    upto = table[3 + limits + values : 4 + limits + 2 * values]
    prefix = table[4 + limits + 2 * values :]
    attained = job.attained_s * job.gpus
    queue = np.searchsorted(table[1 : 1 + limits], attained, side="right")
    # 0 in the last queue, whose limit is infinite.
    ranked = queue < limits
    quantum = (np.minimum(table[1 + queue], LARGEST) - table[2 + limits] * attained) * ranked
    first = np.searchsorted(samples, attained, side="right")
    within = np.searchsorted(samples, attained + quantum, side="right")
    ending = upto[within] - upto[first]
    served = prefix[within] - prefix[first] - ending * attained
    served = served + (upto[-1] - upto[within]) * quantum
    # Where nobody ends, nobody may be served either.
    return -(ending / (served + (ending == 0.0)))  # type: ignore[no-any-return]


POLICIES = (Gittins2d(),)
