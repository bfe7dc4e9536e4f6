"""Synergy's simulator with GPU-proportional shares: github.com/msr-fiddle/synergy at 1bb2bed.

Rounds of 300 s. All leases end with the round; live jobs are ranked again and packed greedily
by GPU count; preemption and migration are free. A job does floor(300 / iteration time)
iterations in a round it runs in and can only finish on a round boundary. LAS ranks by executed
seconds x GPUs. Rounds start at 0, but at 1 s for a static trace, all of whose jobs arrive within
the first second.

``+tune``, and FTF, DRF and TETRIS, also ``+fair``, read the jobs' profiles; their rules are in
``rounds.py``. All of them reproduce the recorded runs to the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.execution.engine import Rounds
from shadowprice.execution.preset import Preset, RecipeInputs, RunSetup
from shadowprice.instances.workload import Workload
from shadowprice.solvers.list_scheduling import run_exactly
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, JobColumns, Knowledge, State
from shadowprice.studies.presets.synergy.rounds import ROUND_S
from shadowprice.studies.presets.synergy.tuned import PROFILED, first_round_s, profiled_recipe


@dataclass(frozen=True)
class RankedEachRound:
    """Rank all live jobs at every round boundary and run as many as fit, skipping."""

    name: str
    rank: Callable[[JobColumns], NDArray[np.float64]]
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Serve by rank, ties by arrival; decide again next round while somebody waits."""
        if not state.waiting:
            return Decision(state)
        live = state.live()
        decision = run_exactly(state, live, np.argsort(self.rank(live), kind="stable"))
        if len(state.waiting) + len(decision.stops) > len(decision.starts):
            decision.wake_at(state.now_s + 1.0)
        return decision


@dataclass(frozen=True)
class IterationCounts:
    """Iteration counts of the original, in whole rounds.

    Parameters
    ----------
    iteration_s : ndarray, shape (n,)
        Time of an iteration [s]; one second of work where the workload has no throughputs.
    iterations : ndarray, shape (n,)
        Iterations to do.
    """

    iteration_s: NDArray[np.float64]
    iterations: NDArray[np.float64]

    @classmethod
    def of(cls, workload: Workload) -> IterationCounts:
        """From the fastest throughput of every job."""
        if workload.throughput is None:
            return cls(np.ones(len(workload)), workload.work)
        return cls(1.0 / workload.throughput.max(axis=1), workload.work)

    @property
    def per_round(self) -> NDArray[np.float64]:
        """Iterations done in one round, at least 1; guarded against 1/(1/x) != x."""
        return np.maximum(np.floor(ROUND_S / self.iteration_s * (1 + 1e-12)), 1.0)

    def whole_rounds_s(self) -> NDArray[np.float64]:
        """Run time in whole rounds [s]."""
        return np.ceil(self.iterations / self.per_round) * ROUND_S

    def remaining_s(self, live: JobColumns) -> NDArray[np.float64]:
        """Iterations left x iteration time [s], by which SRTF ranks."""
        jobs = live.jobs
        done = live.attained_s / ROUND_S * self.per_round[jobs]
        left: NDArray[np.float64] = (self.iterations[jobs] - done) * self.iteration_s[jobs]
        return left


def _recipe(name: str, inputs: RecipeInputs) -> RunSetup:
    workload = inputs.workload
    progress = IterationCounts.of(workload)
    ranks: dict[str, Callable[[JobColumns], NDArray[np.float64]]] = {
        "FIFO+fair": lambda live: live.arrival_s,
        "SRTF+fair": progress.remaining_s,
        "LAS+fair": lambda live: live.attained_s * live.gpus,
    }
    rounded = replace(workload, work=progress.whole_rounds_s(), throughput=None, gpu_types=())
    rounds = Rounds(ROUND_S, first_round_s(workload))
    return RunSetup(rounded, RankedEachRound(name, ranks[name]), inputs.placement, rounds)


PRESET = Preset(
    name="synergy",
    source="github.com/msr-fiddle/synergy at 1bb2bed",
    placements={"count": Count()},
    recipes={
        **{name: partial(_recipe, name) for name in ("FIFO+fair", "SRTF+fair", "LAS+fair")},
        **{name: partial(profiled_recipe, name) for name in PROFILED},
    },
)
