"""Quotas of tenants, by day.

A run may begin only if the tenant's jobs then hold no more GPUs than the tenant's quota of that day. A quota that
becomes smaller stops nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.instances.clusters.quotas import Quotas, read_quotas
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.entries import shown
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.settings import TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

_Date = Annotated[str, Meta(min_length=1, description="a date such as 2020-04-01T00:00:00")]


@dataclass(frozen=True)
class QuotasSettings(TermSettings):
    """GPUs that each tenant may hold by day.

    Parameters
    ----------
    file : str
        Table by day, as Helios' cluster_gpu_number.csv.
    date : str
        Date of time 0 of the jobs, by the clock of the table; what the trace says if left out.
    """

    feature: ClassVar[Feature] = Feature.QUOTAS
    example: ClassVar[str] = (
        "simulate log.csv --cluster 16x8 --policy fifo "
        "--with quotas:file=cluster_gpu_number.csv,date=2020-04-01T00:00:00"
    )

    file: FileName
    date: _Date | UnsetType = UNSET

    def __post_init__(self) -> None:
        self._date_s()

    def on(self, run: TermContext) -> TermContext:
        """The run on a cluster with these quotas."""
        if run.endless:
            raise InputError(
                f"{run.jobs}: is endless, and quotas are about the days of a trace, expected one of the two"
            )
        said_s = self._date_s()
        origin_s = run.origin_s if said_s is None else said_s
        if origin_s is None:
            raise InputError(
                f"{run.jobs}: does not say the date of its time 0, expected that of quotas as well, such as "
                "date=2020-04-01T00:00:00"
            )
        return replace(run, cluster=replace(run.cluster, quotas=read_quotas(self.file, origin_s)))

    def _date_s(self) -> float | None:
        """Time 0 in seconds since 1970, None if the trace is to say it."""
        if self.date is UNSET:
            return None
        try:
            return datetime.fromisoformat(self.date).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InputError(
                f"date is {shown(self.date)}, expected one as 2020-04-01T00:00:00"
            ) from None


class QuotasTerm(Term[Quotas]):
    """Quotas of the cluster, of which beginnings of runs are refused that would exceed them."""

    feature: ClassVar[Feature] = Feature.QUOTAS
    entry: ClassVar[str] = "quotas"
    record: ClassVar[Any] = Quotas
    settings: ClassVar[type[TermSettings] | None] = QuotasSettings

    def of(self, instance: SeenInstance) -> Any:
        """Quotas of the cluster."""
        return instance.cluster.quotas

    def check(self, value: Quotas, instance: SeenInstance) -> None:
        """Refuse jobs that no quota of their tenant ever lets begin."""
        jobs, copies = instance.workload, instance.copies is not None
        needs = _smallest_nodes(instance.cluster, jobs) if copies else jobs.held_gpus
        able, known = within_quotas(value, jobs, needs), np.isin(jobs.tenant, value.tenants)
        if able.all():
            return
        job = int((~able).argmax())
        tenant = jobs.tenant[job]
        why = f"more than any later quota of {tenant!r}" if known[job] else "no tenant with a quota"
        what, leave = "", "drop infeasible jobs"
        if copies:
            what, leave = "a node of ", "leave such jobs out"
        raise InfeasibleJobError(
            f"{jobs.source}: job {jobs.id[job]!r} of tenant {tenant!r} needs {what}{needs[job]:g} GPUs: "
            f"{why} ({int((~able).sum())} such jobs); {leave}, or give other quotas"
        )

    def lifted(self, instance: SeenInstance) -> InstanceFields:
        """The cluster without quotas."""
        return {"cluster": replace(instance.cluster, quotas=None)}

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """The cluster with the quotas."""
        return {**so_far, "cluster": replace(so_far["cluster"], quotas=record)}


def _smallest_nodes(cluster: Cluster, workload: Workload) -> NDArray[np.float64]:
    """GPUs of the smallest node on which a copy of each job can run, shape (n,)."""
    size = cluster.gpus_per_node.astype(np.float64)
    if workload.throughput is None:
        return np.full(len(workload), size.min())
    columns = [workload.gpu_types.index(node.gpu_type) for node in cluster.nodes]
    found: NDArray[np.float64] = np.where(workload.throughput[:, columns] > 0, size, np.inf).min(
        axis=1
    )
    return found


def within_quotas(
    quotas: Quotas, workload: Workload, needs: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """True for jobs whose need fits some quota of their tenants on the day they arrive or later, or hold cores."""
    gpus = np.array(quotas.gpus, dtype=np.int64)
    later = np.maximum.accumulate(gpus[::-1], axis=0)[::-1]
    period = np.searchsorted(quotas.start_s, workload.arrival_s, side="right") - 1
    place = {name: k for k, name in enumerate(quotas.tenants)}
    tenant = np.array([place.get(name, -1) for name in workload.tenant.tolist()], dtype=np.int64)
    able: NDArray[np.bool_] = (tenant >= 0) & (needs <= later[period, tenant])
    return able | workload.on_cores
