r"""ASRPT-conv: from the virtual machine back to the cluster, job by job.

Statement. :math:`m` GPUs in one pool, any of which will do for a gang; nobody shares GPUs, a run costs nothing
but its time, and the scheduler is asked at every event, not in rounds. Job :math:`j` has release :math:`r_j`,
gang :math:`g_j \le m`, shortest run :math:`p_j` and longest run :math:`P_j \le \rho p_j` over all placements
and conditions. :math:`V` is one machine of speed 1 with work :math:`v_j = g_j q_j / m` for given numbers
:math:`q_j > 0`, under preemptive SRPT; :math:`C_j^V` is its completion time and :math:`i < j` means that
:math:`V` completes :math:`i` before :math:`j`. The cluster starts jobs strictly in the order of :math:`V`: job
:math:`j` at the first moment :math:`S_j` at or after :math:`C_j^V` at which all :math:`i < j` have been started
and :math:`g_j` GPUs are free. It runs without interruption for some :math:`a_j \le P_j`. Then, with
:math:`\gamma_j = \max_{i \le j} g_i` and :math:`\gamma = \max_j g_j`,

.. math:: C_j \le C_j^V + \frac{\sum_{i<j} g_i P_i}{m - \gamma_j + 1} + P_j,
   \qquad
   C_j \le C_j^V \Bigl(1 + \frac{\kappa m}{m - \gamma + 1}\Bigr) + P_j,

where :math:`\kappa = \max_i P_i / q_i`. For :math:`q_j = p_j` that is :math:`\kappa \le \rho`, and the second
reads :math:`C_j \le C_j^V (1 + \rho m / (m - \gamma + 1)) + \rho p_j`.

If the head of the queue may be held back on purpose (the consolidation delay), but job :math:`i` never
after :math:`C_i^V + \tau_i`, add :math:`\max_{i \le j} \tau_i` to either: the largest delay, not their sum.

Status. Ours; the published lemma could not be read. Without delays it is what the conversion of a
one-machine schedule is recalled to need.

Proof.

1. Let t be in [C_j^V, S_j), with no job held back on purpose. All jobs i <= j have been released by
   V. Let i be the first that has not been started; i <= j since j has not. All before i have been
   started, so i has not for lack of GPUs: fewer than :math:`g_i \le \gamma_j` are free, that is at least
   :math:`m - \gamma_j + 1` are busy.
2. Jobs start in the order of V, so everything that runs at t comes before j. What such jobs ever
   occupy is at most :math:`\sum_{i<j} g_i P_i` GPU-seconds. With step 1,
   :math:`(S_j - C_j^V)(m - \gamma_j + 1) \le \sum_{i<j} g_i P_i`. Adding a_j <= P_j gives the first claim.
3. V has speed 1 and has completed all i <= j at C_j^V, having started no earlier than at 0, so
   :math:`\sum_{i<j} g_i P_i \le \kappa \sum_{i<j} g_i q_i = \kappa m \sum_{i<j} v_i \le
   \kappa m (C_j^V - v_j)`; and :math:`\gamma_j \le \gamma`. That is the second claim.
4. Job i is held back only within [C_i^V, C_i^V + tau_i), and C_i^V <= C_j^V for i <= j. Hence all
   moments after C_j^V at which some i <= j is held back lie before
   :math:`C_j^V + \max_{i \le j} \tau_i`; step 1 holds at all others. Q.E.D.

On the time grid a release is rounded up to the next tick, which adds less than a tick: the sums
below use the rounded C_j^V.

Search. Random instances and Hypothesis, maximising measured total over the first bound's total, with
gangs up to the whole cluster, rho up to 100 and q_j off by factors up to 100, found none above 1,
which a single job attains.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.workload_graphs import run_s
from shadowprice.instances.grid import TICKS_PER_S, to_ticks
from shadowprice.instances.instance import Instance
from shadowprice.proofs.described_run import DescribedRun, missing_in, not_strictly_in_order
from shadowprice.proofs.hypotheses import Hypotheses
from shadowprice.solvers.asrpt.srpt_machine import virtual_completions

STATUS = "ours"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # p_j is work over throughput
        Feature.SHARING,  # others may share, A-SRPT lets nobody
        Feature.GRAPHS,  # P_j is the longest over mappings
        Feature.RESTART,  # A-SRPT stops nobody
    }
)
HYPOTHESES = Hypotheses("ASRPT-conv", KNOWS)


@dataclass(frozen=True)
class Gangs:
    """Jobs and capacity in the theorems on A-SRPT, in whole ticks; all sequences of shape (n,).

    Parameters
    ----------
    capacity : int
        m, GPUs.
    release, gang : tuple of int
        r_j [ticks] and g_j [GPUs].
    shortest, longest : tuple of int
        p_j and P_j [ticks], run times on the best and on the worst placement.
    virtual : tuple of int
        q_j [ticks], the run time the virtual machine assumes.
    """

    capacity: int
    release: tuple[int, ...]
    gang: tuple[int, ...]
    shortest: tuple[int, ...]
    longest: tuple[int, ...]
    virtual: tuple[int, ...]

    @classmethod
    def of(cls, instance: Instance, virtual_s: ArrayLike | None = None) -> Gangs:
        """The jobs of an instance; the virtual machine assumes the shortest runs if not told.

        Raises
        ------
        InputError
            If a hypothesis of ASRPT-conv on the instance fails.
        """
        HYPOTHESES.expect(instance)
        shortest = to_ticks(instance.shortest_s)
        virtual = shortest if virtual_s is None else np.maximum(to_ticks(virtual_s), 1)
        columns = (to_ticks(instance.workload.arrival_s), instance.workload.gpus, shortest)
        return cls(
            instance.cluster.total_gpus,
            *(tuple(column.tolist()) for column in (*columns, longest_ticks(instance), virtual)),
        )

    @property
    def crowding(self) -> Fraction:
        """Factor m / (m - max g_j + 1), from 1 for single GPUs to m for gangs of all GPUs."""
        return Fraction(self.capacity, self.capacity - max(self.gang, default=1) + 1)

    @property
    def rho(self) -> Fraction:
        """Largest ratio of a longest to a shortest run."""
        return largest_ratio(self.longest, self.shortest)

    @property
    def kappa(self) -> Fraction:
        """Largest ratio of a longest run to what the virtual machine assumes."""
        return largest_ratio(self.longest, self.virtual)

    @property
    def virtual_over(self) -> Fraction:
        """Largest ratio of what the virtual machine assumes to the shortest run."""
        return largest_ratio(self.virtual, self.shortest)

    def virtual_order(self) -> list[tuple[int, int]]:
        """Jobs in the order of V with C_j^V in units of 1/m tick."""
        release = [r * self.capacity for r in self.release]
        work = [g * q for g, q in zip(self.gang, self.virtual, strict=True)]
        return virtual_completions(release, work)


def largest_ratio(above: Sequence[int], below: Sequence[int]) -> Fraction:
    """Largest quotient of two columns, 1 for empty ones."""
    return max((Fraction(a, b) for a, b in zip(above, below, strict=True)), default=Fraction(1))


def longest_ticks(instance: Instance) -> NDArray[np.int64]:
    """Run time of every job on its worst placement [ticks], shape (n,).

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    HYPOTHESES.expect(instance)
    if instance.graphs is None:
        return to_ticks(instance.shortest_s)
    longest_s = instance.graphs.longest_iteration_s[instance.graphs.of]
    return to_ticks(run_s(instance.workload.work, longest_s))


def completions(
    gangs: Gangs, run: Sequence[int], delay: Sequence[int] | None = None
) -> list[Fraction]:
    """Completion times [ticks] of the strict order release when job j runs for run[j] ticks.

    The abstract algorithm of the statement, without engine, nodes or graphs; O(n log n). With
    ``delay`` every job is held back for as many ticks after its virtual completion.
    """
    m, free, now = gangs.capacity, gangs.capacity, 0
    ends: list[tuple[int, int]] = []
    result = [Fraction(0)] * len(run)
    for job, released in gangs.virtual_order():
        now = max(now, released + (delay[job] * m if delay is not None else 0))
        while ends and (ends[0][0] <= now or free < gangs.gang[job]):
            end, gpus = heapq.heappop(ends)
            now, free = max(now, end), free + gpus
        free -= gangs.gang[job]
        heapq.heappush(ends, (now + run[job] * m, gangs.gang[job]))
        result[job] = Fraction(now, m) + run[job]
    return result


def job_bounds(gangs: Gangs, delay: Sequence[int] | None = None) -> list[Fraction]:
    """The first bound of every C_j [ticks], shape (n,); O(n log n).

    Parameters
    ----------
    delay : sequence of int, optional
        Largest time [ticks] each job may be held back on purpose after its virtual completion.
    """
    m = gangs.capacity
    ahead, widest, held = 0, 1, 0
    bounds = [Fraction(0)] * len(gangs.gang)
    for job, released in gangs.virtual_order():
        widest = max(widest, gangs.gang[job])
        held = max(held, delay[job] if delay is not None else 0)
        wait = Fraction(ahead, m - widest + 1)
        bounds[job] = Fraction(-(-released // m) + held + gangs.longest[job]) + wait
        ahead += gangs.gang[job] * gangs.longest[job]
    return bounds


def bound(instance: Instance, virtual_s: ArrayLike | None = None) -> Fraction:
    """Upper bound of total completion time [s] of the strict order release.

    Parameters
    ----------
    virtual_s : array_like, optional
        q_j [s], shape (n,); the shortest runs if not given.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    total = sum(job_bounds(Gangs.of(instance, virtual_s)), Fraction(0))
    return total / TICKS_PER_S


def missing_hypotheses(run: DescribedRun) -> tuple[str, ...]:
    """Hypotheses that a run does not meet, in words; jobs may be held back, which adds the largest delay."""
    return missing_in(run, HYPOTHESES, not_strictly_in_order(run))


def check(
    instance: Instance,
    total_completion_s: float | Fraction,
    virtual_s: ArrayLike | None = None,
) -> bool:
    """True if a run's total completion time [s] respects the bound.

    Raises
    ------
    InputError
        If a hypothesis on the instance fails.
    """
    return bound(instance, virtual_s) >= Fraction(total_completion_s)
