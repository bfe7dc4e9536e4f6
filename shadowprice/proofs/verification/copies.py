"""Jobs that run as several copies, as the verifier sees them: rounds, charges and steps.

Everything is computed from the rows of the schedule and plain data of the instance, in whole ticks
and exact rationals, and not by the code that made the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs.run_speed import TICKS_PER_S, gpu_types

if TYPE_CHECKING:
    from shadowprice.instances.copies import CopyRules
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule

Mask = NDArray[np.bool_]


class CopiedRuns:
    """Copies of jobs under the rules of an instance; O(R log R) for R rows.

    Parameters
    ----------
    instance, rules
        What was given, and the rules of copies in it.
    schedule : Schedule
        Its rows name jobs and nodes that exist, times are on the grid.
    copy, steps : ndarray of int
        The columns of these names.
    """

    def __init__(
        self,
        instance: Instance,
        rules: CopyRules,
        schedule: Schedule,
        copy: NDArray[np.int64],
        steps: NDArray[np.int64],
    ) -> None:
        self._instance, self._rules, self._schedule = instance, rules, schedule
        self._copy, self._steps = copy, steps

    def faults(self) -> Iterator[tuple[str, Mask, str]]:
        """Rules with the rows that break them and what was expected; each relies on those before."""
        s, rules = self._schedule, self._rules
        yield "type", ~self._able(), "the job has no throughput on this node's GPU type"
        room = np.array([node.gpus for node in self._instance.cluster.nodes], dtype=np.int64)
        yield "node", s.gpus > room[s.node], "a copy uses more GPUs than its node has"
        late = s.end_s > s.start_s + rules.round_s
        yield "round", late, f"expected an end within the round of {rules.round_s} s"
        begin, number = np.unique(s.start_s, return_inverse=True)
        near = np.diff(begin, prepend=-np.inf) < rules.round_s
        say = f"expected all copies of a round to begin with it, rounds {rules.round_s} s apart"
        yield "round", near[number], say
        wrong = (self._copy < 0) | (self._copy >= rules.max_copies)
        yield "copy", wrong, f"expected a number of the copy from 0 to {rules.max_copies - 1}"
        # Copies of a job are numbered below k and differ, so that it has no more than k.
        yield "copy", _again(s.start_s, s.node), "expected one copy a node"
        yield "copy", _again(s.start_s, s.job, self._copy), "expected a copy on one node a round"
        yield "overhead", s.overhead_s != self._owed_s(), "expected exactly the charges owed"
        yield "steps", self._steps < 1, "expected at least one step"
        wrong = self._progress_ticks() != self._needed_ticks()
        yield "steps", wrong, "expected exactly the time its steps take, rounded up to the grid"

    def undone(self) -> tuple[int, str] | None:
        """The first job whose copies' steps do not add up to its work, and the numbers."""
        workload = self._instance.workload
        done = np.zeros(len(workload), dtype=object)
        np.add.at(done, self._schedule.job, self._steps.astype(object))
        # Without throughputs a step is a tick of the gang's run time.
        unit = TICKS_PER_S if workload.throughput is None else 1
        for job, (steps, work) in enumerate(zip(done, workload.work.tolist(), strict=True)):
            expected = Fraction(work) * unit
            if steps != expected:
                return job, f"did {steps} steps, expected {expected}"
        return None

    def _able(self) -> Mask:
        """True for each row on a GPU type that its job has a throughput for."""
        s, jobs = self._schedule, self._instance.workload
        if jobs.throughput is None:
            return np.ones(len(s), dtype=bool)
        names, gpu_type = gpu_types(self._instance.cluster)
        column = np.array([jobs.gpu_types.index(name) for name in names], dtype=np.int64)
        able: Mask = jobs.throughput[s.job, column[gpu_type[s.node]]] > 0
        return able

    def _owed_s(self) -> NDArray[np.float64]:
        """Charge of every row [s]: restart where the node ran another job last, and averaging."""
        s, rules = self._schedule, self._rules
        order, same = _agreeing(s.start_s, s.job)
        several = np.zeros(len(s), dtype=bool)
        several[order] = np.append(same, False) | np.append(False, same)
        owed = np.where(several, rules.aggregation_s, 0.0)
        order = np.lexsort((s.start_s, s.node))
        node, job = s.node[order], s.job[order]
        changed = (node[1:] == node[:-1]) & (job[1:] != job[:-1])
        owed[order[1:]] += np.where(changed, rules.restart_s, 0.0)
        return owed

    def _progress_ticks(self) -> NDArray[np.float64]:
        s = self._schedule
        return (s.end_s - s.start_s - s.overhead_s) * TICKS_PER_S

    def _needed_ticks(self) -> NDArray[np.int64]:
        """Time that the steps of every row take [ticks], rounded up."""
        s, (names, gpu_type) = self._schedule, gpu_types(self._instance.cluster)
        rates: dict[tuple[int, int, int], Fraction] = {}
        needed = []
        columns = (s.job, gpu_type[s.node], s.gpus, self._steps)
        for job, of_type, gpus, steps in zip(*(c.tolist() for c in columns), strict=True):
            key = (job, of_type, gpus)
            if key not in rates:
                rates[key] = gpus * self._rate_of_one(job, names[of_type])
            rate = rates[key]
            needed.append(-(-steps * rate.denominator // rate.numerator))
        return np.array(needed, dtype=object)

    def _rate_of_one(self, job: int, gpu_type: str) -> Fraction:
        """Steps per tick on one GPU: an equal part of the gang's."""
        workload = self._instance.workload
        share = Fraction(1, int(workload.gpus[job]))
        if workload.throughput is None:
            return share
        rate = float(workload.throughput[job, workload.gpu_types.index(gpu_type)])
        return share * Fraction(rate) / TICKS_PER_S


def _agreeing(*columns: NDArray[np.float64] | NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
    """Rows in an order in which equal ones are neighbours; of each but the first, if it is as the last."""
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        same &= column[order[1:]] == column[order[:-1]]
    return order, same


def _again(*columns: NDArray[np.float64] | NDArray[np.int64]) -> Mask:
    """True for each row that agrees in all columns with an earlier one."""
    order, same = _agreeing(*columns)
    again = np.zeros(len(order), dtype=bool)
    again[order[1:]] = same
    return again
