"""Measurements of running jobs: progress for the engine, throughputs for the policy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec

from shadowprice.hosts.live.elastic.elastic_speeds import ElasticSpeeds
from shadowprice.hosts.live.graphs.measured_graphs import MeasuredGraphs
from shadowprice.hosts.live.graphs.replicas import PlacedReplicas, replicas_of
from shadowprice.hosts.live.lease import HeldLease, JobRecord
from shadowprice.instances.goodput.course import Position
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import one_run_s, shape_of
from shadowprice.instances.grid import TICK_S, to_grid
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.sensitivity import Amounts
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.solvers.placement.protocol import Pieces

_K = TypeVar("_K")

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


@dataclass(frozen=True, order=True)
class TimingConditions:
    """Under what steps were timed; ``co_row`` is the row of the partner, -1 for none."""

    row: int
    gpu_type: int
    nodes: int
    co_row: int


class Measuring:
    """Rates of a run.

    Parameters
    ----------
    instance : Instance
        With the rates that are assumed before anything is measured.

    Attributes
    ----------
    instance : Instance
        With the rates that are known now.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._sums: dict[TimingConditions, tuple[int, float]] = {}
        self._kinds: list[Kind] = []
        self._rows: dict[Kind, list[int]] = defaultdict(list)
        graphs = instance.graphs
        self._graphs = None if graphs is None else MeasuredGraphs(graphs)
        course = instance.course
        self._elastic = (
            ElasticSpeeds(course, instance.cluster) if isinstance(course, Goodput) else None
        )
        self._take_kinds()

    def grow(self, instance: Instance) -> None:
        """Go on with an instance that has further jobs in its last rows."""
        self.instance = instance
        self._take_kinds()

    def _take_kinds(self) -> None:
        workload, first = self.instance.workload, len(self._kinds)
        for row in range(first, len(workload)):
            kind = (str(workload.model[row]), int(workload.gpus[row]))
            self._kinds.append(kind)
            self._rows[kind].append(row)

    def progress(self, tracked: JobRecord, lease: HeldLease, now_s: float) -> JobProgress:
        """Progress of a lease since the engine was told last."""
        row, report = lease.row, lease.report
        until_s = min(now_s, lease.ended_s)
        ran_s = max(until_s - max(lease.synced_s, lease.stepping_s), 0.0)
        steps, seconds = timed(report)
        rate = self._window_rate(lease, steps, seconds)
        shortest_s = float(self.instance.shortest_s[row])
        reported = "step" in report
        if reported:
            # A lease that was just asked to stop or finish may report all steps: some work is left.
            share = max(lease.target - lease.step, 0) / max(tracked.job.iterations, 1)
            left_s = share * shortest_s
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
            lease.step,
            reported,
            lease.stepping_s,
        )

    def left_s(self, tracked: JobRecord) -> float:
        """Work left of a job that does not run, as run time on its fastest type [s]."""
        shortest_s = float(self.instance.shortest_s[tracked.row])
        share = 1.0 - tracked.step / tracked.job.iterations
        left_s = shortest_s * share if tracked.step else shortest_s - tracked.estimated_s
        return max(float(to_grid(left_s)), TICK_S)

    def window(self, lease: HeldLease, steps: int, seconds: float) -> tuple[int, float] | None:
        """Steps and seconds timed since the engine was told last, None if none were."""
        more, passed_s = lease.timed_since(steps, seconds)
        return (more, passed_s) if more > 0 and passed_s > 0 else None

    def count(self, lease: HeldLease, progress: JobProgress) -> None:
        """Add the steps that were timed since the last time."""
        window = self.window(lease, progress.steps, progress.seconds)
        if progress.steps < lease.counted[0]:
            lease.counted = (0, 0.0)
        if window is None:
            return
        lease.counted = (progress.steps, progress.seconds)
        conditions = self.conditions(lease)
        self._sums[conditions] = _add(self._sums.get(conditions), self.at_share(lease, window))
        if self._graphs is not None and lease.mapping is not None:
            self._graphs.count(lease.row, lease.mapping, *window)

    def at_share(self, lease: HeldLease, window: tuple[int, float]) -> tuple[int, float]:
        """Timed steps and seconds, as they would be where work is counted: with the share of its GPUs.

        Rates are of that; profiles say how much faster a lease is with the CPUs and memory it holds.
        """
        return window[0], window[1] * self.speed(lease.row, lease.pieces, lease.chosen_amounts)

    def speed(self, row: int, pieces: Pieces, given: Amounts | None) -> float:
        """Speed of a job with CPUs and memory that the policy gave it; 1 where it gives none."""
        known = self.instance.sensitivity
        if known is None or given is None:
            return 1.0
        return known.speed(row, pieces, given)

    def width_speed(self, row: int, pieces: Pieces) -> float:
        """Speed of a job at its width against that on its gang, by its tables; 1 where jobs have none."""
        if self._elastic is None:
            return 1.0
        return self._elastic.speed(self.instance.workload, row, pieces)

    def position(self, row: int, steps: float) -> Position | None:
        """Position in its epochs of a job that has done so many steps; None where jobs have none."""
        if self._elastic is None:
            return None
        return self._elastic.position(self.instance.workload, row, steps)

    def steps_done(self, tracked: JobRecord) -> float:
        """Steps that a job has committed; of one that reports none, by its time."""
        if tracked.step:
            return tracked.step
        share = tracked.estimated_s / float(self.instance.shortest_s[tracked.row])
        return min(share, 1.0) * tracked.job.iterations

    def conditions(self, lease: HeldLease) -> TimingConditions:
        """Under what a lease runs now."""
        gpu_type = int(self.instance.cluster.type_of_node[lease.pieces[0][0]])
        return TimingConditions(lease.row, gpu_type, len(lease.pieces), lease.partner)

    def prior_rate(
        self,
        row: int,
        pieces: Pieces,
        partner: int,
        given: Amounts | None = None,
        mapping: StageMapping | None = None,
    ) -> float:
        """Rate of a run against the job's fastest type, or its best mapping, by what is known now."""
        instance = self.instance
        if mapping is not None:
            return self._mapped_rate(row, mapping)
        types = {int(instance.cluster.type_of_node[node]) for node, _ in pieces}
        if partner != ALONE:
            whole_s = max(
                instance.shared_runs.one_run_s(row, partner, gpu_type) for gpu_type in types
            )
        else:
            whole_s = max(float(instance.plain_processing_s[row, gpu_type]) for gpu_type in types)
            whole_s /= self.speed(row, pieces, given) or 1.0
            whole_s /= self.width_speed(row, pieces)
        return float(instance.shortest_s[row]) / whole_s if math.isfinite(whole_s) else 1.0

    def work_rate(
        self,
        row: int,
        pieces: Pieces,
        partner: int,
        given: Amounts | None = None,
        mapping: StageMapping | None = None,
    ) -> float:
        """Iterations a second that are expected of a run."""
        return self._fastest(row) * self.prior_rate(row, pieces, partner, given, mapping)

    def placed(self, tracked: JobRecord, mapping: StageMapping | None) -> PlacedReplicas | None:
        """Replicas of a job's graph under a mapping; None without one."""
        graphs = self.instance.graphs
        if mapping is None or graphs is None or self._graphs is None:
            return None
        graph = graphs.graph[graphs.of[tracked.row]]
        said_s = self._graphs.iteration_s(tracked.row, mapping)
        return PlacedReplicas(mapping, replicas_of(graph, mapping), said_s)

    def _mapped_rate(self, row: int, mapping: StageMapping) -> float:
        graphs = self.instance.graphs
        assert graphs is not None
        number, shape = int(graphs.of[row]), shape_of(stages for _, stages in mapping)
        iteration_s = graphs.times.iteration_s(number, graphs.graph[number], shape)
        whole_s = one_run_s(float(self.instance.workload.work[row]), iteration_s)
        return float(self.instance.shortest_s[row]) / whole_s

    def _learn_graphs(self, known: MeasuredGraphs) -> bool:
        """Take times of iterations that were measured well into the instance; whether any changed."""
        limits = (FEWEST_STEPS, _ENOUGH_S, _CHANGE)
        graphs = known.learned(self.instance.workload, *limits)
        if graphs is not None:
            self.instance = replace(self.instance, graphs=graphs)
        return graphs is not None

    def learn(self) -> bool:
        """Take rates that were measured well into the instance; whether any changed."""
        if self._graphs is not None:
            return self._learn_graphs(self._graphs)
        if self._elastic is not None:
            return False  # how fast such jobs are, their tables say
        workload, types = self.instance.workload, self.instance.cluster.gpu_types
        assert workload.throughput is not None
        columns = [workload.gpu_types.index(name) for name in types]
        table, changed = workload.throughput.copy(), False
        alone, pairs = self._rates()
        for (kind, gpu_type), rate in alone.items():
            rows = self._rows[kind]
            before = float(table[rows[0], columns[gpu_type]])
            if abs(rate - before) > _CHANGE * before and before > 0:
                table[rows, columns[gpu_type]] = rate
                changed = True
        together, more = self._together(pairs)
        if changed or more:
            fresh = replace(workload, throughput=table)
            self.instance = replace(self.instance, workload=fresh, pair_throughputs=together)
        return changed or more

    def _together(
        self, pairs: Mapping[tuple[int, Kind, Kind], float]
    ) -> tuple[Throughputs | None, bool]:
        """Rates of pairs with those measured, and whether any changed."""
        known = self.instance.pair_throughputs
        if known is None or not pairs:
            return known, False
        table, changed = dict(known.pairs), False
        for (gpu_type, kind, other), rate in pairs.items():
            name = self.instance.cluster.gpu_types[gpu_type]
            for key, place in (((name, kind, other), 0), ((name, other, kind), 1)):
                rates = table.get(key)
                if rates is not None and abs(rate - rates[place]) > _CHANGE * rates[place]:
                    table[key] = (rate, rates[1]) if place == 0 else (rates[0], rate)
                    changed = True
        return (replace(known, pairs=table) if changed else known), changed

    def _rates(
        self,
    ) -> tuple[dict[tuple[Kind, int], float], dict[tuple[int, Kind, Kind], float]]:
        """Measured rates of kinds alone, on as few nodes as were tried, and beside others."""
        fewest: dict[tuple[Kind, int], int] = {}
        for found in self._sums:
            if found.co_row == ALONE:
                key = (self._kinds[found.row], found.gpu_type)
                fewest[key] = min(fewest.get(key, found.nodes), found.nodes)
        alone: dict[tuple[Kind, int], tuple[int, float]] = {}
        pairs: dict[tuple[int, Kind, Kind], tuple[int, float]] = {}
        for found, sums in self._sums.items():
            kind = self._kinds[found.row]
            if found.co_row != ALONE:
                pair = (found.gpu_type, kind, self._kinds[found.co_row])
                pairs[pair] = _add(pairs.get(pair), sums)
            elif found.nodes == fewest[kind, found.gpu_type]:
                alone[kind, found.gpu_type] = _add(alone.get((kind, found.gpu_type)), sums)
        return _well_measured(alone), _well_measured(pairs)

    def _window_rate(self, lease: HeldLease, steps: int, seconds: float) -> float:
        """Rate since the engine was told last, against the fastest type."""
        count, passed_s = lease.timed_since(steps, seconds)
        if count < FEWEST_STEPS or passed_s < SHORTEST_S:
            return lease.rate
        return float(count / passed_s / self._fastest(lease.row))

    def _fastest(self, row: int) -> float:
        """Iterations a second on the fastest type."""
        if self._elastic is not None:
            return self._elastic.gang_rate(self.instance.workload, row)
        return float(self.instance.workload.work[row]) / float(self.instance.shortest_s[row])


def timed(report: Mapping[str, Any]) -> tuple[int, float]:
    """Timed steps of a lease and the seconds they took, as its command reports them."""
    return int(number(report, "timed_steps", 0)), float(number(report, "seconds", 0.0))


def number(report: Mapping[str, Any], key: str, otherwise: float) -> float:
    """A number >= 0 that a job reported; what jobs say may be anything."""
    value = report.get(key)
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return value if fine and 0 <= value < 1e15 else otherwise  # type: ignore[operator,return-value]


def _add(before: tuple[int, float] | None, more: tuple[int, float]) -> tuple[int, float]:
    return more if before is None else (before[0] + more[0], before[1] + more[1])


def _well_measured(sums: Mapping[_K, tuple[int, float]]) -> dict[_K, float]:
    return {
        key: steps / seconds
        for key, (steps, seconds) in sums.items()
        if steps >= FEWEST_STEPS and seconds >= _ENOUGH_S
    }
