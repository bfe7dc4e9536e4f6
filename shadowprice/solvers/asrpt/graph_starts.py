"""Starting jobs where a placement of job graphs puts them; by count where jobs have no graphs."""

from __future__ import annotations

from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.solvers.decision import Decision
from shadowprice.solvers.graph_placement.registry import graph_placement
from shadowprice.solvers.state import State


class GraphStarts:
    """Plans and starts during one run; made before anything runs.

    Parameters
    ----------
    state : State
    placement : str
        Name of a placement of job graphs; not looked at where jobs have none.
    """

    def __init__(self, state: State, placement: str) -> None:
        self._graphs = state._instance.graphs
        self._placement = graph_placement(placement)
        self._empty = state.free_gpus_by_node() if self._graphs is not None else []
        self._best_s: dict[int, float] = {}

    @property
    def mapped(self) -> bool:
        """True if jobs have graphs."""
        return self._graphs is not None

    def plan(self, state: State, job: int) -> StageMapping | None:
        """Mapping of a job's graph to the GPUs free now; None if the gang does not fit."""
        return self._placement.place(state.graph_of(job), state.free_gpus_by_node(), state.network)

    def best_iteration_s(self, state: State, job: int) -> float:
        """Time of an iteration where the placement puts the job on the empty cluster [s]."""
        assert self._graphs is not None
        graph = int(self._graphs.of[job])
        found = self._best_s.get(graph)
        if found is None:
            mapping = self._placement.place(state.graph_of(job), self._empty, state.network)
            assert mapping is not None  # Every gang fits the cluster, or the instance is refused.
            found = self._best_s[graph] = state.iteration_s(job, mapping)
        return found

    def start(self, state: State, decision: Decision, job: int) -> bool:
        """Start a job if its gang fits now."""
        if self._graphs is None:
            return decision.start(job)
        mapping = self.plan(state, job)
        return mapping is not None and decision.start_mapped(job, mapping)
