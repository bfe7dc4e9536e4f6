"""Jobs with profiles: CPUs and memory by a mechanism of Synergy, at every event, for the first gangs by rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.library.search.ranked.protocol import Ints, Ranked
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.synergy.orders import Columns, JobOrder
from shadowprice.solvers.synergy.synergy import Mechanism, decide_in_rounds
from shadowprice.solvers.synergy.tune import Tune


@dataclass(frozen=True, eq=False, repr=False)
class RankedOnServers(Ranked):
    """A mechanism divides the servers whenever a job comes or goes."""

    mechanism: Mechanism = field(default_factory=Tune)
    round_s: float = TICK_S
    chooses_cpu_memory: ClassVar[bool] = True

    @classmethod
    def choices(cls, instance: Instance) -> Ints:
        """None but the order."""
        return np.ones(len(instance.workload), dtype=np.int64)

    def decide(self, state: State) -> Decision:
        """Plan anew where jobs came or went."""
        order = JobOrder(self._key, knows_durations=False, boosts=False)
        decision = decide_in_rounds(state, self, order, self.mechanism)
        if state.running or decision.starts:
            decision.wake_s = math.inf  # Nothing changes until somebody comes or goes.
        return decision

    def _key(self, columns: Columns) -> NDArray[np.float64]:
        return self.rank[columns.live.jobs].astype(np.float64)
