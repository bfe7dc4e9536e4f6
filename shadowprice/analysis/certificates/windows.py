"""Windows of completions as records of a certificate: the bound of few jobs, and its parts in an order to stream."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from shadowprice.analysis.certificates.bound_candidate import BoundCandidate
from shadowprice.analysis.certificates.records import Record, text_of
from shadowprice.solvers.offline.completions import completion_search
from shadowprice.solvers.offline.completions.completion_search import Cut, Part, Priced
from shadowprice.solvers.offline.node_assignment import assign_nodes_to_runs
from shadowprice.solvers.offline.one_pool import describes_unfailing

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.solvers.offline.bounds import Relaxation
    from shadowprice.solvers.offline.completions.completion_search import (
        CompletionTree,
        SearchedOptimum,
    )


def window_bounds(
    instance: Instance, jobs: Relaxation, effort_s: float
) -> Iterator[BoundCandidate]:
    """Bounds of the search over windows of completions, which ends with the preemptive optimum; none of many jobs.

    Parameters
    ----------
    instance : Instance
        Whose schedules they are; where nothing is charged and speeds are alike the search has one of them.
    jobs : Relaxation
        Gangs of which no two are on a GPU.
    effort_s : float
        Time for the search [s].
    """
    if len(jobs.release) > completion_search.MOST_SEARCHED:
        return
    completion_search.prepare()
    until = time.monotonic() + effort_s
    plain = describes_unfailing(instance) and instance.overheads.free
    for searched in completion_search.search_optimum(jobs, until=until):
        witness, finished = None, searched.finished
        if plain and finished:
            witness = assign_nodes_to_runs(instance, *completion_search.columns_of(searched.runs))
        yield replace(window_candidate(searched), optimal=finished, witness=witness)


def window_candidate(searched: SearchedOptimum) -> BoundCandidate:
    """The bound of a tree of windows, as a record and its parts."""
    tree = searched.tree
    record: Record = {
        "kind": "bound",
        "bound": "completion-windows",
        "grid": [],
        "prices": [],
        "jobs": list(tree.jobs),
        "unit": text_of(tree.price_unit),
    }
    return BoundCandidate(record, searched.lower_ticks, tuple(parts_of(tree)))


def parts_of(tree: CompletionTree) -> Iterator[Record]:
    """Parts of a tree, a cut before what it cuts; prices that are those of the leaf before are left out.

    A leaf comes before the cut beside it, so that who reads needs to keep the prices of one leaf only.
    """
    latest: Priced | None = None
    open_parts: list[Part] = [tree.root]
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Cut):
            late = _late_first(part, latest)
            first = "late" if late else "early"
            yield {"kind": "part", "cut": part.job, "at": text_of(part.at_ticks), "first": first}
            open_parts += [part.early, part.late] if late else [part.late, part.early]
            continue
        same = part is latest
        latest = part
        yield {
            "kind": "part",
            "grid": [] if same else [text_of(Fraction(at)) for at in part.grid_ticks],
            "prices": [] if same else [list(row) for row in part.rows],
        }


def _late_first(cut: Cut, latest: Priced | None) -> bool:
    if isinstance(cut.early, Cut):
        return isinstance(cut.late, Priced)
    return cut.late is latest and cut.early is not latest
