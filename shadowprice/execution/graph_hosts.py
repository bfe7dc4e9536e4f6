"""Simulated hosts of jobs with graphs: a run is as fast as where its replicas are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shadowprice.execution.simulated_hosts import SimulatedHosts
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, in_order, one_run_s, shape_of
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE, Schedule
from shadowprice.solvers.placement.protocol import Pieces


class GraphHosts(SimulatedHosts):
    """Executes starts and stops of jobs with graphs and records where their replicas were.

    Work left is told in run time at alpha_min. A run that does the whole job lasts exactly its
    iterations times alpha, rounded up to the time grid; one that does part of it uses up its share.
    """

    def __init__(self, instance: Instance, graphs: JobGraphs) -> None:
        super().__init__(instance)
        self._mixed = True
        self._times = graphs.times
        self._graph, self._of = graphs.graph, graphs.of.tolist()
        self._iterations: list[float] = instance.workload.work.tolist()
        self._next: Mapping[int, StageMapping] = {}
        self._where: dict[int, StageMapping] = {}
        self._stages: list[tuple[int, ...]] = []

    def map(self, mappings: Mapping[int, StageMapping]) -> None:
        """Where the replicas of the jobs that start next are; the others' are in order."""
        self._next = mappings

    def start(
        self, job: int, pieces: Pieces, now_s: float, partner: int = ALONE
    ) -> tuple[float, float]:
        """Begin a run; returns when progress begins [s] and its rate against alpha_min."""
        mapping = self._next.get(job)
        self._where[job] = mapping or in_order(self._graph[self._of[job]], pieces)
        return super().start(job, pieces, now_s, partner)

    def schedule(self) -> Schedule:
        """What was executed so far."""
        stages = np.empty(len(self._stages), dtype=object)
        for row, counts in enumerate(self._stages):
            stages[row] = counts
        return replace(super().schedule(), stages=stages)

    def _whole_s(self, job: int, pieces: Pieces, partner: int) -> float:
        shape = shape_of(stages for _, stages in self._where[job])
        return one_run_s(self._iterations[job], self._times.iteration_s(self._of[job], shape))

    def _record(
        self, job: int, pieces: Pieces, start_s: float, end_s: float, overhead_s: float
    ) -> None:
        super()._record(job, pieces, start_s, end_s, overhead_s)
        self._stages.extend(stages for _, stages in self._where[job])
