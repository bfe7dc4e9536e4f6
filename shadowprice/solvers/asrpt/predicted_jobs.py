"""Jobs as a policy with predictions knows them: iterations, and the time of one.

Predictions are made once, at arrival; the predictor learns a job when it has completed. Times of
an iteration: alpha_min and alpha_max of the job's graph; without graphs 1 over the throughput on
the fastest and on the slowest usable GPU type, which is 1 where work is in seconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import MAX_TIME_S, TICK_S
from shadowprice.solvers.policy import Knowledge, State
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
            features = Features.of(state.columns(state.finished))
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
