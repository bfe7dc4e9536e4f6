"""Virtual works of jobs for the compiled loop, by a predictor that is asked when jobs arrive."""

from __future__ import annotations

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.execution.kernel.arrays import Arrays
from shadowprice.execution.kernel.releasing import LATEST
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.index_policy import VirtualWork
from shadowprice.solvers.predictors.predictor import Features, predictor


class Predictions:
    """Predictions during one run, as :mod:`shadowprice.solvers.asrpt.predicted_jobs` makes them.

    Those of a predictor that learns nothing are made at once. Others learn and predict in the same portions as
    they would in the engine: what completed by each decision, what arrived by each.
    """

    def __init__(self, instance: Instance, virtual: VirtualWork) -> None:
        self._predictor = predictor(virtual.predictor)
        self._stretch = virtual.stretch
        self._workload = instance.workload
        self._features = Features.of(instance.workload)
        arrival_s = float(instance.workload.arrival_s.max(initial=0.0))
        gpus = instance.cluster.total_gpus
        self._latest = int(arrival_s * TICKS_PER_S) * gpus
        self._known = 0
        self.at_once = bool(getattr(self._predictor, "learns_nothing", False))

    def tell(self, a: Arrays) -> None:
        """Learn what completed, and predict the works of the jobs that arrived since the last time."""
        ended = a.ended[: int(a.run["ended"][0])]
        a.run["ended"] = 0
        portions = np.flatnonzero(np.diff(ended["decision"])) + 1
        for portion in np.split(ended["job"], portions) if len(ended) else []:
            self._predictor.learn(self._features.select(portion), self._workload.work[portion])
        end = len(a.jobs) if self.at_once else int(a.run["admitted"][0])
        if end > self._known:
            self._predict(a, slice(self._known, end))
            self._known = end

    def _predict(self, a: Arrays, jobs: slice) -> None:
        truth = self._workload.work[jobs] if self._predictor.clairvoyant else None
        predicted = self._predictor.predict(self._features.select(jobs), truth)
        run_s = np.clip(np.ceil(predicted / TICK_S) * TICK_S, TICK_S, MAX_TIME_S)
        ticks = np.ceil(run_s * self._stretch * TICKS_PER_S)
        gangs = self._workload.gpus[jobs]
        # Also false where a prediction is not a number.
        if not self._latest + float((ticks * gangs).sum()) < LATEST / 2:
            raise PolicyError("virtual works are not numbers, or too large for the compiled loop")
        a.works[jobs] = ticks.astype(np.int64) * gangs
        self._latest += int(a.works[jobs].sum())
