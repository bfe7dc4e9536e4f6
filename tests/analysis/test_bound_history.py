"""Convergence of bounds, and the warning where the best one knows no queue."""

from __future__ import annotations

from fractions import Fraction

import shadowprice as sp
from shadowprice.analysis.bound_history import BoundHistory
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.solvers.offline.bounds import Bound, bound_of


def bounds(*pairs: tuple[str, int], certified: bool = True) -> tuple[Bound, ...]:
    return tuple(
        bound_of(Fraction(s * TICKS_PER_S), kind, certified=certified) for kind, s in pairs
    )


def test_what_a_search_gained_is_said() -> None:
    values = [100, 110, 105, 120, 121]
    found = bounds(("job", 90), *(("priced-plans", value) for value in values), ("fluid", 40))
    history = BoundHistory((*found, *bounds(("milp", 500), certified=False)))
    assert list(history.sentences()) == [
        "fluid: 40 s",
        "job: 90 s",
        "priced-plans: 121 s, 21.000% more than at first in 4 improvements; the last tenth of them gained 0.833%",
    ]
    assert history.warning() is None


def test_a_trivial_bound_is_warned_of() -> None:
    warning = BoundHistory(bounds(("job", 90), ("fluid", 40))).warning()
    assert warning is not None
    assert "knows no queue" in warning
    assert BoundHistory(()).warning() is None
    crowded = sp.Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 2], work=[9, 1, 30])
    alone = sp.compare(crowded, "1x4", ["srtf"], "flow", budget_s=0.0)
    idle = sp.compare(crowded, "2x4", ["srtf"], "flow", budget_s=0.0)
    known = sp.compare(crowded, "1x4", ["srtf"], "flow", budget_s=0.5)
    kinds = [row.rows[0].bound_kind for row in (alone, idle, known)]
    assert kinds == ["job", "job", "completion-windows"]
    assert [len(each.warnings) for each in (alone, idle, known)] == [1, 0, 0]
