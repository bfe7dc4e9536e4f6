"""State that Synergy keeps from one decision to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import PolicyError
from shadowprice.solvers.policy import JobColumns, State
from shadowprice.solvers.synergy.demands import Demands
from shadowprice.solvers.synergy.orders import STARVED_S


@dataclass
class SynergyNotes:
    """Notes of one run.

    Attributes
    ----------
    demands : Demands or None
        None if jobs have no profiles.
    round_ends_s : float
        End of the current round [s].
    stale : bool
        Whether jobs came or went since the last plan.
    """

    demands: Demands | None
    round_ends_s: float = 0.0
    stale: bool = True
    _starved: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, state: State, policy: str) -> SynergyNotes:
        """The notes of a run, made at its first decision.

        Raises
        ------
        PolicyError
            If jobs have profiles and GPUs are of several types.
        """
        return state.notes(cls, lambda: cls(_demands(state, policy)))

    def starved(self, state: State, live: JobColumns) -> NDArray[np.bool_]:
        """Mask of the live jobs that have ever waited for longer than :data:`STARVED_S`."""
        self._starved.difference_update(state.finished)
        self._starved.update(live.jobs[live.waited_s > STARVED_S].tolist())
        if not self._starved:
            return np.zeros(len(live), dtype=bool)
        return np.isin(live.jobs, list(self._starved))


def _demands(state: State, policy: str) -> Demands | None:
    if not state.profiled:
        return None
    names = state.pools_of_gpus.names
    if len(names) > 1:
        raise PolicyError(
            f"{policy}: jobs have profiles by CPUs and memory and GPUs are of types "
            f"{', '.join(names)}, expected one type"
        )
    # At the first decision nothing runs: all GPUs of a node are free.
    size = np.array(state.free_gpus_by_node(), dtype=np.int64)
    return Demands(state, size, state.share_per_gpu)
