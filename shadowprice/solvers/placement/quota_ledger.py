"""GPUs that the jobs of each tenant hold, against the tenants' quotas."""

from __future__ import annotations

from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.job_table import JobTable


class QuotaLedger:
    """Holdings of tenants, of jobs numbered in order of arrival; every operation is O(log days).

    A job counts the GPUs that it holds, also beyond its gang, and half of those that it shares; one on cores none.

    Parameters
    ----------
    quotas : Quotas
        GPUs that they may hold.
    cores : int
        Pool of cores, -1 if there is none.
    """

    __slots__ = ("_cores", "_held", "_held_by", "_milli", "_of", "_place", "_size", "quotas")

    def __init__(self, quotas: Quotas, cores: int = -1) -> None:
        self.quotas, self._cores = quotas, cores
        self._place = {name: place for place, name in enumerate(quotas.tenants)}
        self._held = [0] * len(quotas.tenants)
        self._held_by: dict[int, int] = {}
        self._of: list[int] = []
        self._size: list[int] = []
        self._milli: list[int] = []

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of jobs that arrive: their tenants, and thousandths of GPUs that they hold."""
        milli = jobs.counts("gpu_milli")
        for job, name in zip(rows, jobs.text("tenant", rows).tolist(), strict=True):
            on_cores = jobs.pools[job][0] == self._cores
            self._milli.append(0 if on_cores else int(milli[job]))
            self._size.append(self._milli[-1] * jobs.gang[job])
            self._of.append(self._place.get(name, 0) if on_cores else self._place[name])

    def admits(self, job: int, now_s: float, gpus: int | None = None) -> bool:
        """True if a job may begin to run now, on as many GPUs as it asks for, or on so many."""
        tenant, more = self._of[job], self._sized(job, gpus)
        return not more or self._held[tenant] + more <= self._limit(tenant, now_s)

    def exceeded(self, job: int, now_s: float) -> bool:
        """True if a job's tenant holds more than it may begin to hold now."""
        tenant = self._of[job]
        return self._held[tenant] > self._limit(tenant, now_s)

    def admits_beside(self, job: int, partner: int, now_s: float) -> bool:
        """True if a job may begin to share the GPUs of one that has them to itself."""
        tenant, half = self._of[job], self._size[job] // 2
        freed = self._held_by[partner] // 2 if self._of[partner] == tenant else 0
        return self._held[tenant] - freed + half <= self._limit(tenant, now_s)

    def _limit(self, tenant: int, now_s: float) -> int:
        return self.quotas.at(now_s)[tenant] * WHOLE_GPU

    def _sized(self, job: int, gpus: int | None) -> int:
        return self._size[job] if gpus is None else gpus * self._milli[job]

    def room(self, now_s: float) -> list[int]:
        """Thousandths of GPUs that each tenant may hold."""
        return [gpus * WHOLE_GPU for gpus in self.quotas.at(now_s)]

    def tenant_of(self, job: int) -> int:
        """Number of a job's tenant."""
        return self._of[job]

    def size_of(self, job: int) -> int:
        """Thousandths of GPUs that a job holds while it runs as it asks to."""
        return self._size[job]

    def take(self, job: int, gpus: int | None = None) -> None:
        """Count a job that begins to run, or goes on, on as many GPUs as it asks for, or on so many."""
        self._hold(job, self._sized(job, gpus))

    def share(self, job: int, partner: int) -> None:
        """Count a job that runs on the GPUs of another, from now on a half each."""
        for each in (job, partner):
            self._hold(each, self._size[each] // 2)

    def leave(self, job: int, partner: int) -> None:
        """Count a job that runs no more, and its partner, which has the GPUs to itself from now on."""
        self.give_back(job)
        self._hold(partner, self._size[partner])

    def give_back(self, job: int) -> None:
        """Count a job that runs no more."""
        self._hold(job, 0)
        del self._held_by[job]

    def _hold(self, job: int, milli: int) -> None:
        self._held[self._of[job]] += milli - self._held_by.get(job, 0)
        self._held_by[job] = milli
