"""Watching a run: what it tells while it goes on, and who may have it stopped."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Sees how far a run is."""

    def begins(self, step: str) -> None:
        """Take note of what is done next, in a few words: simulating, verifying."""

    def reaches(self, done: int, total: int) -> None:
        """Take note of how much is done of a step that cannot be stopped with what it has."""

    def stops(self, done: int, total: int) -> bool:
        """Take note of how much of the step is done; called some hundred thousand times a second at most.

        Parameters
        ----------
        done, total : int
            Of a simulation, jobs that are complete and all of them.

        Returns
        -------
        bool
            True if the step has to stop now: what it has done until then is kept.
        """
