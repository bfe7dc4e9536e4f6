"""A policy that times the engine learns nothing of the jobs whose messages it timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from shadowprice.execution.engine import run
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.solvers.policy import Decision, State

TIMING = """
import time
from shadowprice.solvers.policy import Decision

class Clock:
    name, knows, preemptive = "clock", frozenset(), False
    answered = None

    def decide(self, state):
        waited = 0.0 if self.answered is None else time.perf_counter() - self.answered
        decision = Decision(state)
        if not len(state.running) and len(state.waiting):
            decision.start(min(state.waiting))
        # What it measured leaves with its answer: a time to wake at that never comes.
        decision.wake_at(state.now_s + 1e7 + 1e6 * waited)
        self.answered = time.perf_counter()
        return decision
"""
"""Measures how long the engine takes from its answer to the next message, with the clock that it has."""

JOBS = 400


class Recorded(SealedPolicy):
    """A sealed policy whose answers are looked at: who began, and the time that came with it."""

    def __init__(self, policy: str) -> None:
        super().__init__(policy)
        self.begun: list[int] = []
        self.waited: list[float] = []

    def decide(self, state: State) -> Decision:
        decision = super().decide(state)
        self.begun += list(decision.starts)
        self.waited.append(decision.wake_s - state.now_s - 1e7)
        return decision


def test_the_engine_takes_as_long_whatever_the_run_time(tmp_path: Path) -> None:
    file = tmp_path / "clock.py"
    file.write_text(TIMING, encoding="utf-8")
    work = np.random.default_rng(3).permutation(JOBS) + 1.0
    jobs = Workload.from_columns(arrival_s=[0.0] * JOBS, gpus=[1] * JOBS, work=work.tolist())
    with Recorded(f"{file}:Clock") as recording:
        run(Instance(Cluster.parse("1x1"), jobs), recording)
    assert recording.begun == list(range(JOBS))
    # The message after a job began comes when it has ended: its wait, if any, would tell the run time.
    waited = np.array(recording.waited[1 : JOBS + 1])
    assert (waited > 0).all(), "the clock of this test no longer measures"
    assert abs(spearmanr(waited, work).statistic) < 0.25
    # The measure does show it where the engine takes ten microseconds longer for every second of a job.
    assert spearmanr(waited + 10 * work, work).statistic > 0.5
