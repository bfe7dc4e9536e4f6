"""Watches that stop runs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class StopAt:
    """Stops a run when it has asked so many times, and keeps what it was told."""

    calls: int
    told: list[tuple[int, int]] = field(default_factory=list)

    def stops(self, done: int, total: int) -> bool:
        self.told.append((done, total))
        return len(self.told) > self.calls

    def begins(self, step: str) -> None:
        """Keeps nothing of it."""

    def reaches(self, done: int, total: int) -> None:
        """Keeps nothing of it."""
