"""Recipes: how an instance is made again, to the byte."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.studies.data_sets.download import path_of

Terms = Mapping[str, Mapping[str, object]]
"""Settings of terms by their names, as ``--with`` has them."""


class Recipe(Protocol):
    """Maker of an instance."""

    @property
    def jobs(self) -> int:
        """Number of jobs."""

    @property
    def source(self) -> str:
        """Origin of the jobs, in a word."""

    def data_sets(self) -> tuple[str, ...]:
        """Public data sets that it reads, by their names."""

    def instance(self) -> Instance:
        """The instance.

        Raises
        ------
        InputError
            If a data set is not here, or is not what was published.
        """

    def document(self) -> dict[str, Any]:
        """The recipe as JSON has it."""


def on_cluster(workload: Workload, cluster: str, terms: Terms) -> Instance:
    """The instance of jobs on a cluster with terms, as a run of an order of jobs has it.

    The file of a term is a data set by its name. Faults of nodes are those that are known before a run begins; no node
    fails after them, so that a schedule of any length can be verified.
    """
    settings = {name: dict(each) for name, each in terms.items()}
    for each in settings.values():
        if "file" in each:
            each["file"] = str(path_of(str(each["file"])))
    read = WrittenOptions(with_=settings).read(cluster, jobs=workload.source)
    instance = prepare_run(workload, read.cluster, "srtf", read.options).instance
    if instance.failures is None:
        return instance
    known = replace(instance.failures, known_until_s=math.inf, source="faults of the library")
    return replace(instance, failures=known)


def files_of(terms: Terms) -> tuple[str, ...]:
    """Data sets that are files of terms."""
    return tuple(str(each["file"]) for each in terms.values() if "file" in each)
