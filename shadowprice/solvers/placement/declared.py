"""Amounts that runs hold by a declared term, against its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.terms.declared import (
    Amount,
    DeclaredRun,
    HoldingTerm,
    Place,
    answer,
)
from shadowprice.instances.terms.effect import Pieces
from shadowprice.instances.workload import Workload
from shadowprice.solvers.placement.resource import Resource

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class DeclaredResource(Resource):
    """Amounts of a term, which may depend on all nodes of a run together; every operation asks the term.

    Parameters
    ----------
    term : HoldingTerm
    cluster, jobs
        Of the instance.
    """

    on_nodes = False
    of_gangs = True

    def __init__(self, term: HoldingTerm, cluster: Cluster, jobs: Workload) -> None:
        super().__init__()
        self.of_starts = term.of_starts
        self._term, self._cluster, self._jobs = term, cluster, jobs
        self._now_s = 0.0
        self._change_s = self._later(0.0)

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Nothing: the term knows all jobs."""

    def amounts(self, job: int, pieces: Pieces, *, shared: bool) -> Sequence[Amount]:
        """Amounts that the term says of a run."""
        run = DeclaredRun(job, pieces, shared, self._jobs, self._cluster)
        return answer(self._term, self._holds, run)

    def _holds(self, run: DeclaredRun) -> tuple[Amount, ...]:
        found = tuple(self._term.holds(run))
        if any(amount < 0 for _, amount in found):
            raise InputError(f"{self._term.name}: a run holds {found}, expected amounts >= 0")
        return found

    def limit(self, place: Place) -> int:
        """Limit that the term says of now."""
        return answer(self._term, self._term.limit, place, self._now_s)

    def at(self, now_s: float) -> None:
        """Take note of the time."""
        self._now_s = now_s
        if now_s >= self._change_s:
            self._change_s = self._later(now_s)

    def _later(self, now_s: float) -> float:
        """Time of the next change, which has to be later [s]."""
        found = answer(self._term, self._term.next_change_s, now_s)
        if not found > now_s:
            raise InputError(
                f"{self._term.name}: next_change_s({now_s!r}) is {found!r}, expected a later time"
            )
        return max(
            math.ceil(found * TICKS_PER_S) / TICKS_PER_S if found < math.inf else found, now_s
        )

    @property
    def next_change_s(self) -> float:
        """Time at which the term says that limits may change next [s]."""
        return self._change_s
