"""GPUs that the jobs of each tenant hold, against the tenants' quotas."""

from __future__ import annotations

from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.workload import WHOLE_GPU
from shadowprice.solvers.job_table import JobTable


class QuotaLedger:
    """Holdings of tenants, of jobs numbered in order of arrival; every operation is O(log days).

    Parameters
    ----------
    quotas : Quotas
        GPUs that they may hold.
    """

    __slots__ = ("_held", "_of", "_place", "_size", "quotas")

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self._place = {name: place for place, name in enumerate(quotas.tenants)}
        self._held = [0] * len(quotas.tenants)
        self._of: list[int] = []
        self._size: list[int] = []

    def arrive(self, jobs: JobTable, rows: range) -> None:
        """Take note of jobs that arrive: their tenants, and thousandths of GPUs that they hold."""
        held = jobs.counts("gpus") * jobs.counts("gpu_milli")
        self._size += held[rows.start : rows.stop].tolist()
        self._of += [self._place[name] for name in jobs.text("tenant", rows).tolist()]

    def admits(self, job: int, now_s: float) -> bool:
        """True if a job may begin to run now."""
        tenant = self._of[job]
        limit = self.quotas.at(now_s)[tenant] * WHOLE_GPU
        return self._held[tenant] + self._size[job] <= limit

    def room(self, now_s: float) -> list[int]:
        """Thousandths of GPUs that each tenant may hold."""
        return [gpus * WHOLE_GPU for gpus in self.quotas.at(now_s)]

    def tenant_of(self, job: int) -> int:
        """Number of a job's tenant."""
        return self._of[job]

    def size_of(self, job: int) -> int:
        """Thousandths of GPUs that a job holds while it runs."""
        return self._size[job]

    def take(self, job: int) -> None:
        """Count a job that begins to run, or goes on."""
        self._held[self._of[job]] += self._size[job]

    def give_back(self, job: int) -> None:
        """Count a job that runs no more."""
        self._held[self._of[job]] -= self._size[job]
