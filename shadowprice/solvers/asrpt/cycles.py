"""Cycles of time of which predictions have one part, and a rule that does without them the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cycles:
    """Predicted and blind time in whole ticks.

    Parameters
    ----------
    length, blind : int
        Of a cycle, and of the blind time at its end [ticks].
    """

    length: int
    blind: int

    def predicted(self, now: int) -> int:
        """Predicted time until a moment [ticks]."""
        cycles, rest = divmod(now, self.length)
        return cycles * (self.length - self.blind) + min(rest, self.length - self.blind)

    def is_blind(self, now: int) -> bool:
        """True if a moment is in blind time."""
        return now % self.length >= self.length - self.blind

    def ends(self, now: int) -> int:
        """End of the part of the cycle that a moment is in [ticks]."""
        begun = now - now % self.length
        return begun + self.length - (0 if self.is_blind(now) else self.blind)
