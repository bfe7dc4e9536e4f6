"""Quotas of tenants as they are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType

from shadowprice.analysis.terms.written_term import WrittenRun, WrittenTerm
from shadowprice.errors import InputError
from shadowprice.instances.clusters.quotas import read_quotas
from shadowprice.instances.documents.schema import FileName
from shadowprice.instances.entries import shown
from shadowprice.instances.features import Feature

_Date = Annotated[str, Meta(min_length=1, description="a date such as 2020-04-01T00:00:00")]


@dataclass(frozen=True)
class QuotasSettings(WrittenTerm):
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
        self._said_s()

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run on a cluster with these quotas."""
        if run.endless:
            raise InputError(
                f"{run.jobs}: is endless, and quotas are about the days of a trace, expected one of the two"
            )
        said_s = self._said_s()
        origin_s = run.origin_s if said_s is None else said_s
        if origin_s is None:
            raise InputError(
                f"{run.jobs}: does not say the date of its time 0, expected that of quotas as well, such as "
                "date=2020-04-01T00:00:00"
            )
        return replace(run, cluster=replace(run.cluster, quotas=read_quotas(self.file, origin_s)))

    def _said_s(self) -> float | None:
        """Time 0 in seconds since 1970, None if the trace is to say it."""
        if self.date is UNSET:
            return None
        try:
            return datetime.fromisoformat(self.date).replace(tzinfo=UTC).timestamp()
        except ValueError:
            raise InputError(
                f"date is {shown(self.date)}, expected one as 2020-04-01T00:00:00"
            ) from None
