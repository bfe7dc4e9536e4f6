"""Jobs as a policy with predictions knows them: iterations, and the time of one.

Predictions are made once, at arrival; the predictor learns a job when it has completed. Times of
an iteration: alpha_min and alpha_max of the job's graph; without graphs 1 over the throughput on
the fastest and on the slowest usable GPU type, which is 1 where work is in seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.graphs.job_graph import JobGraph, StageMapping
from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.solvers.graph_placement.protocol import graph_placement
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.predictors.predictor import Features, predictor


class PredictedJobs:
    """Predictions during one run.

    Attributes
    ----------
    iterations : dict of int to float
        Predicted iterations of the jobs that have arrived and not finished.
    """

    def __init__(self, specification: str) -> None:
        self._predictor = predictor(specification)
        self.iterations: dict[int, float] = {}

    def update(self, state: State) -> None:
        """Learn what completed and predict what arrived since the last decision."""
        if state.finished:
            completed = state.completed
            if completed:
                features = Features.of(state.columns(completed))
                self._predictor.learn(features, state.completed_work())
            for job in state.finished:
                self.iterations.pop(job, None)
        if state.arrived:
            jobs = state.columns(state.arrived)
            truth = jobs.work if self._predictor.clairvoyant else None
            predicted = self._predictor.predict(Features.of(jobs), truth).tolist()
            self.iterations.update(zip(state.arrived, predicted, strict=True))

    def run_s(self, state: State, jobs: list[int]) -> tuple[list[float], list[float]]:
        """Predicted run times of jobs at alpha_min and at alpha_max [s], on the time grid."""
        predicted, live = np.array([self.iterations[job] for job in jobs]), state.columns(jobs)
        if state.mapped:
            shortest, longest = predicted * live.alpha_min_s, predicted * live.alpha_max_s
        else:
            rate = live.throughput
            with np.errstate(divide="ignore"):
                shortest = predicted / rate.max(axis=1)
                longest = predicted / np.where(rate > 0, rate, np.inf).min(axis=1)
        return _on_grid(shortest), _on_grid(longest)


def knowledge(specification: str) -> frozenset[Knowledge]:
    """Knowledge that a policy declares for a predictor: durations if that is told the truth."""
    told = predictor(specification).clairvoyant
    return frozenset({Knowledge.DURATION}) if told else frozenset()


def _on_grid(times_s: NDArray[np.float64]) -> list[float]:
    up = np.ceil(times_s / TICK_S) * TICK_S
    clipped: list[float] = np.clip(up, TICK_S, MAX_TIME_S).tolist()
    return clipped


# Starting jobs where a placement of job graphs puts them; by count where jobs have no graphs.


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
        # Nodes may be down at the first decision.
        self._empty = [node.gpus for node in state.environment.cluster.nodes]
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
