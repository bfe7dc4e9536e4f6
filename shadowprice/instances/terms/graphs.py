"""Job graphs as a term: an iteration takes as long as where the job's replicas are makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.features import Feature
from shadowprice.instances.graphs.workload_graphs import JobGraphs, in_order, one_run_s, shape_of
from shadowprice.instances.terms.term import Fields, Pieces, Rate, Told


class GraphsTerm(Rate):
    """The rate of a mapping: iterations times alpha; the field is the mapping, stages in order if left open.

    Parameters
    ----------
    graphs : JobGraphs
    iterations : sequence of float
        Of each job.
    """

    feature: ClassVar[Feature] = Feature.GRAPHS

    def __init__(self, graphs: JobGraphs, iterations: Sequence[float]) -> None:
        self._times, self._graph, self._of = graphs.times, graphs.graph, graphs.of.tolist()
        self._iterations = iterations

    def complete(self, job: int, pieces: Pieces, fields: dict[Feature, Any]) -> None:
        """Put the stages on the pieces in their order."""
        if Feature.GRAPHS not in fields:
            fields[Feature.GRAPHS] = in_order(self._graph[self._of[job]], pieces)

    def whole_s(self, job: int, pieces: Pieces, fields: Fields) -> float | None:
        """Run time of all iterations under the mapping [s]."""
        shape = shape_of(stages for _, stages in fields[Feature.GRAPHS])
        number = self._of[job]
        alpha_s = self._times.iteration_s(number, self._graph[number], shape)
        return one_run_s(self._iterations[job], alpha_s)

    def columns(self, rows: int, told: Sequence[Told]) -> Mapping[str, NDArray[Any]]:
        """Replicas of each stage, a tuple a row."""
        stages = np.empty(rows, dtype=object)
        for first, _, fields in told:
            for row, (_, counts) in enumerate(fields[Feature.GRAPHS], first):
                stages[row] = counts
        return {"stages": stages}
