"""Instances of public traces: a window of the jobs of a file that is known by its checksum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import load_throughputs
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload
from shadowprice.library.recipes.recipe import Terms, files_of, on_cluster
from shadowprice.studies.data_sets.catalogue import DATA_SETS
from shadowprice.studies.data_sets.download import path_of


@dataclass(frozen=True)
class TraceCut:
    """A window of the jobs of a trace on a cluster.

    Parameters
    ----------
    data_set : str
        Name of the trace among the data sets.
    jobs, first : int
        Number of jobs, and the first of them, from 0: in order of arrival among those that are cut from.
    cluster : str
        Short notation of the cluster.
    widest : int
        Largest gang of jobs that are cut from.
    shortest, longest : float
        Least and most work of jobs that are cut from, in the units of the trace (seconds, or steps).
    reading : str, optional
        Format of the trace with what is chosen of its rows, as of ``--format``; by its first line if left out.
    terms : mapping
        Settings of terms by their names, as ``--with`` has them.
    throughputs : str, optional
        Data set with the rates of the jobs.
    """

    data_set: str
    jobs: int
    first: int
    cluster: str
    widest: int = 2**31
    shortest: float = 0.0
    longest: float = float(2**62)
    reading: str | None = None
    terms: Terms = field(default_factory=lambda: MappingProxyType({}))
    throughputs: str | None = None

    @property
    def source(self) -> str:
        """The folder of the data set."""
        return DATA_SETS[self.data_set].folder

    def data_sets(self) -> tuple[str, ...]:
        """The trace, its rates, and files of terms."""
        rates = () if self.throughputs is None else (self.throughputs,)
        return (self.data_set, *rates, *files_of(self.terms))

    def instance(self) -> Instance:
        """The window, whose first job arrives at 0, on the cluster."""
        rates = None if self.throughputs is None else path_of(self.throughputs)
        whole = _trace(path_of(self.data_set), self.reading, rates)
        able = (whole.gpus <= self.widest) & (whole.work >= self.shortest)
        rows = np.flatnonzero(able & (whole.work <= self.longest))
        rows = rows[self.first : self.first + self.jobs]
        if len(rows) < self.jobs:
            raise InputError(
                f"data set {self.data_set!r}: has {len(rows)} jobs of the window, expected {self.jobs}"
            )
        jobs = whole.select(rows)
        since_first = replace(jobs, arrival_s=jobs.arrival_s - jobs.arrival_s[0])
        return on_cluster(since_first, self.cluster, self.terms)

    def document(self) -> dict[str, Any]:
        """The recipe as JSON has it."""
        usual = {name: each.default for name, each in type(self).__dataclass_fields__.items()}
        window = ("widest", "shortest", "longest", "reading", "throughputs")
        chosen = {name: getattr(self, name) for name in window}
        terms = {name: dict(settings) for name, settings in self.terms.items()}
        return {
            "data_set": self.data_set,
            "checksum": DATA_SETS[self.data_set].checksum,
            "licence": DATA_SETS[self.data_set].licence,
            "jobs": self.jobs,
            "first": self.first,
            "cluster": self.cluster,
            **{name: value for name, value in chosen.items() if value != usual[name]},
            **({"with": terms} if terms else {}),
        }


@lru_cache(maxsize=2)
def _trace(path: Path, reading: str | None, throughputs: Path | None) -> Workload:
    """Jobs of a trace; several instances are cut from one."""
    table = None if throughputs is None else load_throughputs(throughputs)
    return load_trace(path, format=reading, throughputs=table).workload
