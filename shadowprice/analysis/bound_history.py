"""Bounds in the order in which a search found them: how far it had converged, and whether it knows a queue at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shadowprice.analysis.wording import amount_at_least, counted
from shadowprice.brief import MOST_ROWS, screen
from shadowprice.solvers.offline.bounds import Bound

TRIVIAL = {"job": "every job as if it were alone", "area": "work over GPUs"}
"""Kinds of bounds that know no queue, and what they count."""


@dataclass(frozen=True, repr=False)
class BoundHistory:
    """Bounds of one instance.

    Parameters
    ----------
    bounds : tuple of Bound
        In the order in which they were found.
    """

    bounds: tuple[Bound, ...]

    def by_kind(self) -> dict[str, list[Bound]]:
        """Bounds of the search that are larger than all before of their kind, by kind."""
        kinds: dict[str, list[Bound]] = {}
        for bound in self.bounds:
            if bound.record is not None:
                mine = kinds.setdefault(bound.kind, [])
                if not mine or bound.ticks > mine[-1].ticks:
                    mine.append(bound)
        return kinds

    def sentences(self) -> Iterator[str]:
        """Largest bound of each kind, the smallest first; of searches how much their last tenth still gained."""
        kinds = self.by_kind()
        for kind in sorted(kinds, key=lambda kind: kinds[kind][-1].ticks):
            mine = kinds[kind]
            sentence = f"{kind}: {amount_at_least(mine[-1].value_s)} s"
            if len(mine) > 1 and mine[0].ticks > 0:
                late = mine[-1 - -(-len(mine) // 10)]
                first, last = (float(mine[-1].ticks / each.ticks) - 1 for each in (mine[0], late))
                sentence += (
                    f", {first:.3%} more than at first in {len(mine)} improvements; "
                    f"the last tenth of them gained {last:.3%}"
                )
            yield sentence

    def __repr__(self) -> str:
        head = f"BoundHistory({counted(len(self.bounds), 'bound')}; of each certified kind the largest)"
        return screen(head, [f"    {each}" for each in self.sentences()][-MOST_ROWS:])

    def warning(self) -> str | None:
        """A sentence if the largest certified bound is a trivial one."""
        certified = [bound for bound in self.bounds if bound.certified]
        best = max(certified, key=lambda bound: bound.ticks, default=None)
        if best is None or best.kind not in TRIVIAL:
            return None
        return (
            f"the largest certified bound is {best.kind}, {TRIVIAL[best.kind]}: it knows no queue, so factors "
            "say little where jobs wait; a larger --budget may find a better one"
        )
