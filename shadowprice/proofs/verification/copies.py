"""Jobs that run as several copies, as the verifier sees them: rounds, charges and steps.

Everything is computed from the rows of the schedule and plain data of the instance, in whole ticks
and exact rationals, and not by the code that made the schedule.

A copy that was *cut* has no steps: the run ended within its round, or its node went down. Such a row is one if the
copy could have gone on. With n whole steps done by then its job has at least n + 1 left for it, beside those of its
other copies, and time for them in the round.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from math import ceil, floor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.proofs.run_speed import TICKS_PER_S, gpu_types, profile_speed
from shadowprice.proofs.verification.failures import outages_before, rows_at_faults
from shadowprice.proofs.verification.horizons import end_of_the_run_s
from shadowprice.proofs.verification.restarts import RESUME

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.terms.copies import CopyRules

Mask = NDArray[np.bool_]

_IS_DOWN = "the node is down during the run"


class _Counted(NamedTuple):
    """Steps of every job, and the first job of which there are too many, with the numbers."""

    done: list[int]
    fault: tuple[int, str] | None


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
        self._copy, self._steps, self._cut = copy, steps, steps == 0
        # Without throughputs a step is a tick of the gang's run time.
        unit = TICKS_PER_S if instance.workload.throughput is None else 1
        self._work = [Fraction(work) * unit for work in instance.workload.work.tolist()]

    def faults(self) -> Iterator[tuple[str, Mask, str]]:
        """Rules with the rows that break them and what was expected; each relies on those before."""
        s, rules = self._schedule, self._rules
        yield "type", ~self._able(), "the job has no throughput on this node's GPU type"
        say = "the job makes no progress with all CPUs and memory of its node"
        yield "resources", self._speeds == 0, say
        room = np.array([node.gpus for node in self._instance.cluster.nodes], dtype=np.int64)
        yield "node", s.gpus > room[s.node], "a copy uses more GPUs than its node has"
        yield from self._down()
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
        owed_s, length_s = self._owed_s(), s.end_s - s.start_s
        # Who is cut while it pays has paid until then.
        paid_s = np.where(self._cut, np.minimum(owed_s, length_s), owed_s)
        yield "overhead", s.overhead_s != paid_s, "expected exactly the charges owed"
        yield "steps", self._steps < 0, "expected at least one step"
        wrong = ~self._cut & (self._progress_ticks() != self._ticks_of(self._steps))
        yield "steps", wrong, "expected exactly the time its steps take, rounded up to the grid"
        early = self._cut & (s.end_s != self._end_s()) & ~self._struck
        yield "steps", early, "expected at least one step, or an end with the run or its node"
        full_s = owed_s + (self._ticks_of(self._next) / TICKS_PER_S).astype(np.float64)
        say = "it was cut, expected room for one more step in its round"
        yield "steps", self._cut & (full_s > rules.round_s), say

    def undone(self, required: Mask) -> tuple[int, str] | None:
        """A job that did more steps than its work has, or has to be complete and did fewer, and the numbers."""
        if self._counted.fault is not None:
            return self._counted.fault
        lacking = np.flatnonzero(required & ~self.complete)
        if not len(lacking):
            return None
        job = int(lacking[0])
        return job, f"did {self._counted.done[job]} steps, expected {self._work[job]}"

    @cached_property
    def complete(self) -> Mask:
        """True for jobs whose copies' steps add up to their work, shape (n,)."""
        found = [a == b for a, b in zip(self._counted.done, self._work, strict=True)]
        return np.array(found, dtype=bool)

    @cached_property
    def _counted(self) -> _Counted:
        """Steps of every job, round by round."""
        done, fault, work = [0] * len(self._work), None, self._work
        restarts, before = self._instance.preemption != RESUME, (-1, 0.0, 0)
        for job, start_s, steps, cut in self._rounds():
            # A run is a chain of rounds, each right after the one before, in which some copy went on.
            goes_on = (job, start_s - self._rules.round_s) == before[:2] and before[2] > 0
            if restarts and not goes_on:
                if fault is None and done[job] == work[job]:
                    fault = job, f"did {done[job]} steps, which complete it, and runs again"
                done[job] = 0
            before = job, start_s, steps
            done[job] += steps
            if fault is None and done[job] + cut > work[job]:
                more = f" and was to do {cut} more" if cut else ""
                fault = job, f"did {done[job]} steps{more}, expected {work[job]}"
        return _Counted(done, fault)

    def _rounds(self) -> Iterator[tuple[int, float, int, int]]:
        """Each job with a round, the steps of its copies in it, and those that copies were at which were cut."""
        s = self._schedule
        order = np.lexsort((s.start_s, s.job))
        columns = (s.job[order], s.start_s[order], self._steps[order], self._next[order])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for (job, start_s), group in groupby(rows, key=lambda row: row[:2]):
            mine = list(group)
            yield job, start_s, sum(row[2] for row in mine), sum(row[3] for row in mine)

    def _down(self) -> Iterator[tuple[str, Mask, str]]:
        """Rows on nodes that are down, or go on for longer than faults are known."""
        failures = self._instance.failures
        if failures is not None:
            yield "down", rows_at_faults(failures, self._schedule)[0], _IS_DOWN
            known_s = failures.known_until_s
            say = f"goes on after {known_s} s, and faults are known until then only"
            yield "down", self._schedule.end_s >= known_s, say

    @cached_property
    def _struck(self) -> Mask:
        """Rows that end when their node goes down."""
        failures = self._instance.failures
        if failures is None:
            return np.zeros(len(self._schedule), dtype=bool)
        return rows_at_faults(failures, self._schedule)[1]

    def _end_s(self) -> float:
        """End of the run [s], if it ended before all jobs were complete."""
        return end_of_the_run_s(self._instance, self._schedule, self.complete)

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
        """Charge of every row [s]: restart where the node ran another job last or was down since, and averaging."""
        s, rules = self._schedule, self._rules
        order, same = _agreeing(s.start_s, s.job)
        several = np.zeros(len(s), dtype=bool)
        several[order] = np.append(same, False) | np.append(False, same)
        owed = np.where(several, rules.aggregation_s, 0.0)
        order = np.lexsort((s.start_s, s.node))
        node, job = s.node[order], s.job[order]
        changed, failures = job[1:] != job[:-1], self._instance.failures
        if failures is not None:
            outages = outages_before(failures, s)[order]
            changed |= outages[1:] != outages[:-1]
        changed &= node[1:] == node[:-1]
        owed[order[1:]] += np.where(changed, rules.restart_s, 0.0)
        return owed

    def _progress_ticks(self) -> NDArray[np.int64]:
        s = self._schedule
        ticks = (s.end_s - s.start_s - s.overhead_s) * TICKS_PER_S
        return np.array([int(each) for each in ticks.tolist()], dtype=object)

    @cached_property
    def _next(self) -> NDArray[np.int64]:
        """Steps of every copy that was cut, up to the one that it was at; 0 of others."""
        pairs = zip(self._rates, self._progress_ticks(), self._cut.tolist(), strict=True)
        found = [floor(rate * ticks) + 1 if cut else 0 for rate, ticks, cut in pairs]
        return np.array(found, dtype=object)

    def _ticks_of(self, steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time that so many steps of every row take [ticks], rounded up."""
        pairs = zip(steps.tolist(), self._rates, strict=True)
        return np.array([ceil(count / rate) for count, rate in pairs], dtype=object)

    @cached_property
    def _rates(self) -> list[Fraction]:
        """Steps per tick of every row."""
        s, (names, gpu_type) = self._schedule, gpu_types(self._instance.cluster)
        known: dict[tuple[int, int, int, float], Fraction] = {}
        found = []
        columns = (s.job, gpu_type[s.node], s.gpus, self._speeds)
        for key in zip(*(column.tolist() for column in columns), strict=True):
            job, of_type, gpus, speed = key
            if key not in known:
                known[key] = gpus * self._rate_of_one(job, names[of_type]) * Fraction(speed)
            found.append(known[key])
        return found

    @cached_property
    def _speeds(self) -> NDArray[np.float64]:
        """Speed of every row with all CPUs and memory of its node."""
        s, sensitivity = self._schedule, self._instance.sensitivity
        if sensitivity is None:
            return np.ones(len(s))
        nodes = self._instance.cluster.nodes
        whole = np.array([(node.cpus, node.memory_gb) for node in nodes])[s.node]
        gpus = s.gpus.astype(np.float64)
        return profile_speed(sensitivity, s.job, gpus, whole[:, 0], whole[:, 1])

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
