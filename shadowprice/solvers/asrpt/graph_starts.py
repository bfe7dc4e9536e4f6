"""Starting jobs where a placement of job graphs puts them; by count where jobs have no graphs."""

from __future__ import annotations

from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.solvers.graph_placement.protocol import graph_placement
from shadowprice.solvers.policy import Decision, State


class GraphStarts:
    """Plans and starts during one run; made before anything runs.

    Parameters
    ----------
    state : State
    placement : str
        Name of a placement of job graphs; not looked at where jobs have none.
    """

    def __init__(self, state: State, placement: str) -> None:
        self._placement = graph_placement(placement)
        self._empty = state.free_gpus_by_node() if state.mapped else []
        self._best_s: dict[JobGraph, float] = {}

    def plan(self, state: State, job: int) -> StageMapping | None:
        """Mapping of a job's graph to the GPUs free now; None if the gang does not fit."""
        return self._placement.place(state.graph_of(job), state.free_gpus_by_node(), state.network)

    def best_iteration_s(self, state: State, job: int) -> float:
        """Time of an iteration where the placement puts the job on the empty cluster [s]."""
        graph = state.graph_of(job)
        found = self._best_s.get(graph)
        if found is None:
            mapping = self._placement.place(graph, self._empty, state.network)
            assert mapping is not None  # Every gang fits the cluster, or the instance is refused.
            found = self._best_s[graph] = state.iteration_s(job, mapping)
        return found

    def start(self, state: State, decision: Decision, job: int) -> bool:
        """Start a job if its gang fits now."""
        if not state.mapped:
            return decision.start(job)
        mapping = self.plan(state, job)
        return mapping is not None and decision.start_mapped(job, mapping)
