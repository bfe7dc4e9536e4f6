"""Measurements of running jobs: progress for the engine, throughputs for the policy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from shadowprice.execution.course_hosts import CourseHosts
from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.hosts.live.elastic import position_of
from shadowprice.hosts.live.graphs.run_graphs import PlacedReplicas, replicas_of, slowdowns, slower
from shadowprice.hosts.live.lease import HeldLease, JobRecord
from shadowprice.hosts.throughput_files import MeasuredRate, Observation, measured_rates
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.course import Position
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, shape_of
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, to_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.terms.effect import Fields, Pieces
from shadowprice.instances.terms.goodput import Goodput

FEWEST_STEPS = 3
SHORTEST_S = 0.05
"""Timed steps and seconds below which a window says nothing about a rate."""

_ENOUGH_S = 1.0
_CHANGE = 0.02
"""Timed seconds after which an estimate replaces what was assumed, and the least change of one."""


class JobProgress(msgspec.Struct, frozen=True, array_like=True):
    """Progress of a running job, as the engine is informed of it; a row of numbers in the journal.

    Parameters
    ----------
    ran_s : float
        Time it made progress since the last time [s].
    left_s : float
        Run time left on its fastest type [s].
    rate : float
        Rate against its fastest type.
    steps, seconds
        Timed steps and seconds of this lease so far.
    step : int
        Step it reached.
    reported : bool
        Whether the command reports its steps.
    stepping_s : float
        When its first step was seen [s], infinity before.
    """

    row: int
    ran_s: float
    left_s: float
    rate: float
    steps: int
    seconds: float
    step: int
    reported: bool
    stepping_s: float

    def step_s(self) -> float | None:
        """Time of a step of this lease [s]; None while too few were timed."""
        if self.steps < FEWEST_STEPS or self.seconds < SHORTEST_S:
            return None
        return self.seconds / self.steps


class Measuring:
    """Rates of a run.

    Parameters
    ----------
    instance : Instance
        With the rates that are assumed before anything is measured.
    tracked : sequence of JobRecord
        Its jobs by row.

    Attributes
    ----------
    instance : Instance
        With the rates that are known now.
    """

    def __init__(self, instance: Instance, tracked: Sequence[JobRecord]) -> None:
        self._tracked = tracked
        self._timed: dict[Observation, Observation] = {}
        self._counted = False
        self._graphs, self._slower = instance.graphs, dict[int, float]()
        self._rows_of = defaultdict[Kind, list[int]](list)
        self._rows = 0
        self.know(instance)

    def know(self, instance: Instance) -> None:
        """Go on with an instance that has other rates, or further jobs in its last rows."""
        self.instance = instance
        workload, course = instance.workload, instance.course
        fresh = slice(self._rows, None)
        kinds = zip(workload.model[fresh].tolist(), workload.gpus[fresh].tolist(), strict=True)
        for row, kind in enumerate(kinds, self._rows):
            self._rows_of[kind].append(row)
        self._rows = len(workload)
        self._hosts = SimulatedHosts(instance) if course is None else CourseHosts(instance, course)

    def progress(self, tracked: JobRecord, lease: HeldLease, now_s: float) -> JobProgress:
        """Progress of a lease since the engine was informed last."""
        row, report, known = lease.grant.row, lease.report, lease.progress
        until_s = min(now_s, lease.end.ended_s)
        ran_s = max(until_s - max(known.synced_s, known.stepping_s), 0.0)
        steps, seconds = timed(report)
        rate = self._window_rate(lease, steps, seconds)
        shortest_s = float(self.instance.shortest_s[row])
        reported = "step" in report
        if reported:
            # A lease that was just asked to stop or finish may report all steps: some work is left.
            iterations = tracked.job.iterations
            left_s = max(iterations - known.step, 0) / iterations * shortest_s
        else:
            left_s = shortest_s - tracked.estimated_s - ran_s * rate
        left_s = max(float(to_grid(left_s)), TICK_S)
        return JobProgress(
            row,
            ran_s,
            left_s,
            rate,
            steps,
            seconds,
            known.step,
            reported,
            known.stepping_s,
        )

    def left_s(self, tracked: JobRecord) -> float:
        """Work left of a job that does not run, as run time on its fastest type [s]."""
        shortest_s = float(self.instance.shortest_s[tracked.row])
        share = 1.0 - tracked.step / tracked.job.iterations
        left_s = shortest_s * share if tracked.step else shortest_s - tracked.estimated_s
        return max(float(to_grid(left_s)), TICK_S)

    def window(self, lease: HeldLease, steps: int, seconds: float) -> tuple[int, float] | None:
        """Steps and seconds timed since the engine was told last, None if none were."""
        more, passed_s = lease.progress.timed_since(steps, seconds)
        return (more, passed_s) if more > 0 and passed_s > 0 else None

    def count(self, lease: HeldLease, progress: JobProgress) -> None:
        """Add the steps that were timed since the last time."""
        window = self.window(lease, progress.steps, progress.seconds)
        if progress.steps < lease.progress.counted[0]:
            lease.progress.counted = (0, 0.0)
        if window is None:
            return
        lease.progress.counted = (progress.steps, progress.seconds)
        more, self._counted = self.observation(lease, window), True
        about = replace(more, steps=0, seconds=0.0)
        before = self._timed.get(about, about)
        steps, seconds = before.steps + more.steps, before.seconds + more.seconds
        self._timed[about] = replace(about, steps=steps, seconds=seconds)

    def observation(self, lease: HeldLease, window: tuple[int, float]) -> Observation:
        """Timed steps and seconds, and under what a lease ran.

        Seconds are as they would be where work is counted: with the share of its GPUs, under the best mapping of
        its graph. Rates are of that; profiles and graphs say how much faster or slower a lease is.
        """
        grant, cluster = lease.grant, self.instance.cluster
        speed = self.speed(grant.row, grant.pieces, lease.fields)
        partner = None if lease.partner == ALONE else self._tracked[lease.partner].job
        return Observation(
            grant.job.name,
            grant.job.model,
            len(grant.devices),
            cluster.gpu_types[cluster.type_of_node[grant.pieces[0][0]]],
            nodes=len(grant.pieces),
            co_runner="" if partner is None else partner.name,
            co_model="" if partner is None else partner.model,
            steps=window[0],
            seconds=window[1] * speed,
        )

    def speed(self, row: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a run that its profile explains, with the CPUs and memory chosen, or its graph; 1 without."""
        known, graphs = self.instance.sensitivity, self._graphs
        if known is not None and Feature.PROFILES in fields:
            return known.speed(row, pieces, fields[Feature.PROFILES])
        if graphs is not None:
            shortest_s = float(graphs.shortest_iteration_s[graphs.of[row]])
            return shortest_s / self._iteration_s(graphs, row, fields[Feature.GRAPHS])
        return 1.0

    def _iteration_s(self, graphs: JobGraphs, row: int, mapping: StageMapping) -> float:
        """Time of an iteration of a job under a mapping [s]."""
        number, shape = int(graphs.of[row]), shape_of(stages for _, stages in mapping)
        return graphs.times.iteration_s(number, graphs.graph[number], shape)

    def position(self, row: int, steps: float) -> Position | None:
        """Position in its epochs of a job that has done so many steps; None where jobs have none."""
        term, job = self.instance.course, self._tracked[row].job
        if not isinstance(term, Goodput):
            return None
        return position_of(term.by_name[job.model], job.batch_size, steps)

    def steps_done(self, tracked: JobRecord) -> float:
        """Steps that a job has committed; of one that reports none, by its time."""
        if tracked.step:
            return tracked.step
        share = tracked.estimated_s / float(self.instance.shortest_s[tracked.row])
        return min(share, 1.0) * tracked.job.iterations

    def prior_rate(self, row: int, pieces: Pieces, fields: Fields) -> float:
        """Rate of a run against the job's fastest type, best mapping, or gang, by what is known now.

        Raises
        ------
        PolicyError
            If it was to change its width, and was not measured there.
        """
        whole_s = self._hosts.whole_s(row, pieces, fields)
        return float(self.instance.shortest_s[row]) / whole_s if math.isfinite(whole_s) else 1.0

    def work_rate(self, row: int, pieces: Pieces, fields: Fields) -> float:
        """Iterations a second that are expected of a run."""
        return self._fastest(row) * self.prior_rate(row, pieces, fields)

    def placed(self, row: int, mapping: StageMapping | None) -> PlacedReplicas | None:
        """Replicas of a job's graph, as it was given, under a mapping; None without one."""
        graphs = self._graphs
        if mapping is None or graphs is None:
            return None
        replicas = replicas_of(graphs.graph[graphs.of[row]], mapping)
        return PlacedReplicas(mapping, replicas, self._iteration_s(graphs, row, mapping))

    def learn(self) -> bool:
        """Take rates that were measured well into the instance; whether any changed."""
        # How fast jobs are that change their width, their tables say.
        if self.instance.course is not None or not self._counted:
            return False
        self._counted = False
        fresh = self._rates() if self._graphs is None else self._slowed(self._graphs)
        if fresh is not None:
            self.know(fresh)
        return fresh is not None

    def _slowed(self, graphs: JobGraphs) -> Instance | None:
        """Instance with graphs as slow as was measured well; None if none changed, or nobody could plan with that."""
        workload = self.instance.workload
        measured = slowdowns(self._timed.values(), graphs, workload.row_of, FEWEST_STEPS, _ENOUGH_S)
        changed = {
            number: factor
            for number, factor in measured.items()
            if _differs(factor, self._slower.get(number, 1.0))
        }
        fresh = slower(graphs, self._slower | changed)
        longest_s = workload.work * fresh.longest_iteration_s[fresh.of]
        if not changed or not np.all(longest_s < MAX_TIME_S):
            return None
        self._slower |= changed
        return replace(self.instance, graphs=fresh)

    def _rates(self) -> Instance | None:
        """Instance with rates that were measured well, on as few nodes as were tried; None if none changed."""
        rates = [
            each
            for each in measured_rates(self._timed.values())
            if each.in_table and each.steps >= FEWEST_STEPS and each.seconds >= _ENOUGH_S
        ]
        workload = self.instance.workload
        assert workload.throughput is not None
        table, changed = workload.throughput.copy(), False
        for each in (rate for rate in rates if rate.partner is None):
            rows = self._rows_of[each.kind]
            column = workload.gpu_types.index(each.gpu_type)
            before = float(table[rows[0], column])
            if before > 0 and _differs(each.rate, before):
                table[rows, column] = each.rate
                changed = True
        pairs = self._pairs([each for each in rates if each.partner is not None])
        if not changed and pairs is self.instance.sharing_rates:
            return None
        fresh = replace(workload, throughput=table)
        return replace(self.instance, workload=fresh, sharing_rates=pairs)

    def _pairs(self, rates: Sequence[MeasuredRate]) -> Throughputs | None:
        """Rates of jobs that share GPUs, with those measured; what is known, where none changed."""
        known = self.instance.sharing_rates
        if known is None:
            return None
        table = dict(known.pairs)
        for each in rates:
            assert each.partner is not None
            mine, other = (each.kind, each.partner), (each.partner, each.kind)
            for key, place in (((each.gpu_type, *mine), 0), ((each.gpu_type, *other), 1)):
                before = table.get(key)
                if before is not None and _differs(each.rate, before[place]):
                    table[key] = (each.rate, before[1]) if place == 0 else (before[0], each.rate)
        return known if table == known.pairs else replace(known, pairs=table)

    def _window_rate(self, lease: HeldLease, steps: int, seconds: float) -> float:
        """Rate since the engine was told last, against the fastest type."""
        count, passed_s = lease.progress.timed_since(steps, seconds)
        if count < FEWEST_STEPS or passed_s < SHORTEST_S:
            return lease.progress.rate
        return float(count / passed_s / self._fastest(lease.grant.row))

    def _fastest(self, row: int) -> float:
        """Iterations a second on the fastest type."""
        return self._tracked[row].job.iterations / float(self.instance.shortest_s[row])


def timed(report: Mapping[str, Any]) -> tuple[int, float]:
    """Timed steps of a lease and the seconds they took, as its command reports them."""
    return int(number(report, "timed_steps", 0)), float(number(report, "seconds", 0.0))


def number(report: Mapping[str, Any], key: str, otherwise: float) -> float:
    """A number >= 0 that a job reported; what jobs say may be anything."""
    value = report.get(key)
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fine and 0 <= value < 1e15 else otherwise  # type: ignore[operator,return-value]


def _differs(rate: float, before: float) -> bool:
    """True if a rate differs from one before by more than noise."""
    return abs(rate - before) > _CHANGE * before
