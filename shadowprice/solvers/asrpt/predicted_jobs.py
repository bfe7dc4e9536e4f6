"""Jobs as a policy with predictions knows them: iterations, and the time of one.

Predictions are made once, at arrival; the predictor learns a job when it has completed. Times of
an iteration: alpha_min and alpha_max of the job's graph; without graphs 1 over the throughput on
the fastest and on the slowest usable GPU type, which is 1 where work is in seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.predictors.predictor import Features, predictor
from shadowprice.solvers.state import State


class PredictedJobs:
    """Predictions during one run.

    Attributes
    ----------
    iterations : ndarray, shape (n,)
        Predicted iterations of the jobs that have arrived.
    """

    def __init__(self, state: State, specification: str) -> None:
        self._predictor = predictor(specification)
        workload = state._instance.workload
        # Rows of jobs that have not arrived are never looked at.
        self._features = Features.of(workload)
        self._graphs = state._instance.graphs
        self.iterations = np.zeros(len(workload))

    def update(self, state: State) -> None:
        """Learn what completed and predict what arrived since the last decision."""
        if state.finished:
            rows = np.array(state.finished)
            # A job's iterations are known to everyone once it has run them.
            done = state._instance.workload.work[rows]
            self._predictor.learn(self._features.select(rows), done)
        if state.arrived:
            rows = np.array(state.arrived)
            truth = None
            if self._predictor.clairvoyant:
                state.require(Knowledge.DURATION)
                truth = state._instance.workload.work[rows]
            self.iterations[rows] = self._predictor.predict(self._features.select(rows), truth)

    def run_s(self, state: State, jobs: list[int]) -> tuple[list[float], list[float]]:
        """Predicted run times of jobs at alpha_min and at alpha_max [s], on the time grid."""
        rows = np.array(jobs)
        predicted = self.iterations[rows]
        if self._graphs is not None:
            graph = self._graphs.of[rows]
            shortest = predicted * self._graphs.shortest_iteration_s[graph]
            longest = predicted * self._graphs.longest_iteration_s[graph]
        else:
            rate = state.columns(jobs).throughput
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
