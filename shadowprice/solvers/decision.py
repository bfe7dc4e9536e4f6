"""What a policy returns: gangs to start and to stop, and when to be asked again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shadowprice.errors import PolicyError
from shadowprice.solvers.placement.protocol import Pieces

if TYPE_CHECKING:
    from shadowprice.solvers.state import State


class Decision:
    """A decision under construction; GPUs are reserved as it is written, nothing runs yet.

    Attributes
    ----------
    starts : list of (int, pieces)
        Jobs to start and the nodes they were given.
    stops : list of int
        Running jobs to preempt.
    wake_s : float
        Time [s] at which the policy wants to decide again although nothing happened.
    """

    __slots__ = ("_allocator", "_state", "starts", "stops", "wake_s")

    def __init__(self, state: State) -> None:
        self._state = state
        self._allocator = state.allocator
        self.starts: list[tuple[int, Pieces]] = []
        self.stops: list[int] = []
        self.wake_s = math.inf

    @property
    def free_gpus(self) -> int:
        """GPUs neither held nor reserved."""
        return self._allocator.free_gpus

    def start(self, job: int) -> bool:
        """Reserve GPUs for a waiting job; False, and no change, if its gang does not fit now."""
        state = self._state
        pieces = self._allocator.take(state.gang[job], state.pools[job])
        if pieces is None:
            return False
        self.starts.append((job, pieces))
        return True

    def stop(self, job: int) -> None:
        """Preempt a running job; its GPUs are free for the starts that follow."""
        pieces = self._state.running.get(job)
        if pieces is None:
            raise PolicyError(f"job {job} is stopped, but does not run")
        self._allocator.give_back(pieces)
        self.stops.append(job)

    def resume_in_place(self, job: int) -> bool:
        """Take a stop back if the very same GPUs are still free."""
        if not self._allocator.take_again(self._state.running[job]):
            return False
        self.stops.remove(job)
        return True

    def start_all(self) -> Decision:
        """Start every waiting job that fits, in the order they wait."""
        for job in self._state.waiting:
            self.start(job)
        return self

    def wake_at(self, time_s: float) -> None:
        """Ask to decide again at this time, at the latest."""
        self.wake_s = min(self.wake_s, time_s)
