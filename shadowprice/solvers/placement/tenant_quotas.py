"""GPUs that the jobs of each tenant hold, against the tenants' quotas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.terms.declared import Amount, Place
from shadowprice.instances.terms.effect import Pieces
from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.placement.resource import Resource

if TYPE_CHECKING:
    from shadowprice.solvers.job_table import JobTable


class TenantQuotas(Resource):
    """Thousandths of GPUs that tenants hold; every operation is O(nodes of the gang), a change of day O(tenants).

    A job counts the GPUs that it holds, also beyond its gang, and half of those that it shares; one on cores none.

    Parameters
    ----------
    quotas : Quotas
        GPUs that they may hold.
    cores : int
        Pool of cores, -1 if there is none.
    """

    on_nodes = False
    of_starts = True

    def __init__(self, quotas: Quotas, cores: int = -1) -> None:
        super().__init__()
        self._quotas, self._cores = quotas, cores
        self._place = {name: place for place, name in enumerate(quotas.tenants)}
        self._of: list[int] = []
        self._milli: list[int] = []
        self._limits: dict[Place, int] = {}
        self._change_s = 0.0
        self.at(0.0)

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of the tenants of jobs, and of the thousandths of a GPU that they hold."""
        milli = jobs.counts("gpu_milli")
        for job, name in zip(rows, jobs.text("tenant", rows).tolist(), strict=True):
            on_cores = jobs.pools[job][0] == self._cores
            self._milli.append(0 if on_cores else int(milli[job]))
            self._of.append(self._place.get(name, 0) if on_cores else self._place[name])

    def amounts(self, job: int, pieces: Pieces, *, shared: bool) -> Sequence[Amount]:
        """Thousandths of GPUs, at its tenant."""
        milli = sum(gpus for _, gpus in pieces) * self._milli[job]
        return ((self._of[job], milli // 2 if shared else milli),) if milli else ()

    def limit(self, place: Place) -> int:
        """Thousandths of GPUs of a tenant's quota of now."""
        return self._limits[place]

    def at(self, now_s: float) -> None:
        """Take note of the day."""
        if now_s >= self._change_s:
            today = enumerate(self._quotas.at(now_s))
            self._limits = {tenant: gpus * WHOLE_GPU for tenant, gpus in today}
            self._change_s = self._quotas.next_change_s(now_s)

    @property
    def next_change_s(self) -> float:
        """Start of the next day with quotas of its own [s]."""
        return self._change_s
