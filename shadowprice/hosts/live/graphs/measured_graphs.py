"""Times of iterations of jobs with graphs: as their graphs say, and as they were measured.

A graph says how much longer an iteration takes under one mapping than under another; how long it
takes at all is measured. So a graph is slower than it says by one factor, the time of all timed
steps over what it says of them, whatever the mapping was.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.graphs.workload_graphs import JobGraphs, shape_of
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.workload import Workload


class MeasuredGraphs:
    """Measured factors of the graphs of a run.

    Parameters
    ----------
    given : JobGraphs
        As the job file says.
    """

    def __init__(self, given: JobGraphs) -> None:
        self._graphs = given
        self._timed: dict[int, tuple[int, float, float]] = {}
        self._known: dict[int, float] = {}

    def iteration_s(self, row: int, mapping: StageMapping) -> float:
        """Time of an iteration of a job under a mapping, by the graph as it was given [s]."""
        number = int(self._graphs.of[row])
        shape = shape_of(stages for _, stages in mapping)
        return self._graphs.times.iteration_s(number, self._graphs.graph[number], shape)

    def count(self, row: int, mapping: StageMapping, steps: int, seconds: float) -> None:
        """Add timed steps and the seconds that they took."""
        number = int(self._graphs.of[row])
        steps_before, said_s, took_s = self._timed.get(number, (0, 0.0, 0.0))
        said_s += steps * self.iteration_s(row, mapping)
        self._timed[number] = (steps_before + steps, said_s, took_s + seconds)

    def factors(self, fewest_steps: int, least_s: float) -> Mapping[int, float]:
        """Times over what graphs say, of those that were measured for so many steps and seconds."""
        return {
            number: took_s / said_s
            for number, (steps, said_s, took_s) in self._timed.items()
            if steps >= fewest_steps and took_s >= least_s
        }

    def learned(
        self, workload: Workload, fewest_steps: int, least_s: float, change: float
    ) -> JobGraphs | None:
        """Graphs as measured; None if no factor changed by more than a part of itself."""
        found = {
            number: factor
            for number, factor in self.factors(fewest_steps, least_s).items()
            if abs(factor - self._known.get(number, 1.0)) > change * self._known.get(number, 1.0)
        }
        if not found:
            return None
        graphs = slower(self._graphs, self._known | found)
        longest_s = workload.work * graphs.longest_iteration_s[graphs.of]
        if not np.all(longest_s < MAX_TIME_S):
            return None  # nobody could plan with that
        self._known |= found
        return graphs


def slower(graphs: JobGraphs, factors: Mapping[int, float]) -> JobGraphs:
    """Graphs of which some, by their numbers, take so many times as long under each mapping."""
    changed = tuple(
        graph.slower(factors[number]) if number in factors else graph
        for number, graph in enumerate(graphs.graph)
    )
    return JobGraphs(changed, graphs.of, graphs.network)
