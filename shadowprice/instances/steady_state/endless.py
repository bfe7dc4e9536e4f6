"""Workloads without end, of which any number of first jobs can be had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shadowprice.brief import Brief
from shadowprice.instances.workload import Workload


@dataclass(frozen=True, repr=False)
class EndlessWorkload(Brief):
    """Jobs that never stop to arrive.

    Parameters
    ----------
    first : callable
        The first n jobs. The first n of the first m are the first n, for all n <= m.
    source : str
        Where the jobs come from, for messages.
    """

    first: Callable[[int], Workload]
    source: str
