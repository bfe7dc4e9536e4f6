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
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.solvers.tiresias.gittins_index import (
    LearnedDistribution,
    QuantumIndex,
    ServiceDistribution,
)
from shadowprice.solvers.tiresias.las2d import Las2d

__all__ = ["LEARNED", "POLICIES", "READINGS", "Gittins2d", "ServiceDistribution"]

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

    def with_switches(self, given: Mapping[str, Any]) -> Gittins2d:
        """The policy with the sample of a run instead of the workload's own distribution."""
        learned = "online" if self.learned == "online" else "sample"
        return replace(self, learned=learned, sample=given["samples"])

    def decide(self, state: State) -> Decision:
        """Learn what completed, then serve the queues as 2D-LAS does."""
        if self.learned == "online" and state.completed:
            done = state.columns(state.completed)
            self._distribution(state).learn((done.attained_s * done.gpus).tolist())
        return super().decide(state)

    def order(
        self,
        state: State,
        live: JobColumns,
        queue: NDArray[np.int64],
        service_s: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Queue, then index (highest first), then first start and arrival; last queue without index."""
        attained = service_s * live.gpus
        limits = np.append(self._limits, np.inf)[queue]
        quantum = limits if self.reading == "A" else limits - attained
        ranked = queue < len(self._limits)
        index = np.zeros(len(live))
        index[ranked] = self._index_of(state).quantum_index(attained[ranked], quantum[ranked])
        return np.lexsort((live.jobs, live.first_start_s, -index, queue))

    def job_index(self, service_gpu_s: NDArray[np.float64] | None) -> JobIndex | None:
        """Order by queue, Gittins index and first start; none while the distribution is learned."""
        plain = super().job_index(service_gpu_s)
        if plain is None or self.learned == "online":
            return None
        known = self.sample
        if known is None:
            assert service_gpu_s is not None
            known = ServiceDistribution(service_gpu_s)
        counts = np.array([self.reading == "B", len(self._limits)], dtype=np.float64)
        return replace(
            plain,
            key=against_index,
            level=queue_in_table,
            next_step_s=demoted_at_in_table_s,
            table=np.concatenate((counts, self._limits, *_by_value(known))),
            while_running=WhileRunning.VARIES,
        )

    def _index_of(self, state: State) -> QuantumIndex:
        if self.learned == "online":
            return self._distribution(state)
        if self.sample is not None:
            return self.sample
        return state.notes(ServiceDistribution, lambda: ServiceDistribution(state.service_gpu_s()))

    def _distribution(self, state: State) -> LearnedDistribution:
        """Distribution of service learned in this run."""
        return state.notes(LearnedDistribution, lambda: LearnedDistribution(self.sample))


def _by_value(known: ServiceDistribution) -> tuple[NDArray[np.float64], ...]:
    """Different samples, and before the first and behind each of them: samples up to there, and their sum."""
    samples = known.samples_gpu_s
    values, behind = np.unique(samples, return_counts=True)
    upto = np.concatenate(([0], np.cumsum(behind)))
    return values, upto.astype(np.float64), known.prefix[upto]


# The table of the index: 1.0 for reading B, the number of limits, the limits, m different samples, m + 1 numbers of
# samples up to them, m + 1 prefix sums. Fewer numbers stay in the cache than of all samples.


def queue_in_table(job: IndexedJob, table: Table) -> float:
    """Queue of a job by its service; the first is 0."""
    service = job.attained_s * job.gpus
    queue = 0.0
    for k in range(2, 2 + int(table[1])):
        if table[k] <= service:
            queue += 1.0
    return queue


def demoted_at_in_table_s(job: IndexedJob, table: Table) -> float:
    """Executed time at which a job leaves its queue [s], infinity in the last."""
    service = job.attained_s * job.gpus
    for k in range(2, 2 + int(table[1])):
        if table[k] > service:
            return float(table[k] / job.gpus)
    return np.inf


def against_index(job: IndexedJob, table: Table) -> float:
    """The index of a job in its queue with the sign turned, 0 in the last queue.

    As :meth:`.ServiceDistribution.quantum_index`, operation by operation.
    """
    limits = int(table[1])
    attained, queue = job.attained_s * job.gpus, 2
    while queue < 2 + limits and table[queue] <= attained:
        queue += 1
    if queue == 2 + limits:
        return 0.0
    quantum = table[queue] - attained if table[0] else table[queue]
    values = (len(table) - 4 - limits) // 3
    upto, prefix = 2 + limits + values, 3 + limits + 2 * values
    samples = table[2 + limits : upto]
    # As np.searchsorted on the right, without branches: which way it goes nobody can foresee.
    first, left = 0, values
    while left > 0:
        half = (left + 1) // 2
        first += half * (samples[first + half - 1] <= attained)
        left -= half
    if first == values:
        return 0.0
    until = attained + quantum
    within, left = first, values - first
    while left > 0:
        half = (left + 1) // 2
        within += half * (samples[within + half - 1] <= until)
        left -= half
    ending = table[upto + within] - table[upto + first]
    served = table[prefix + within] - table[prefix + first] - ending * attained
    served += (table[upto + values] - table[upto + within]) * quantum
    return float(-(ending / served))


POLICIES = (Gittins2d(),)
