"""Clusters of several GPU types whose jobs do not say that these differ."""

from __future__ import annotations

from shadowprice.instances.cluster import CORES, Cluster
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.workload import Workload

_NAMED = 5
"""GPU types that the sentence names; of more it names the first."""


def types_taken_as_equal(workload: Workload | EndlessWorkload, cluster: Cluster) -> str | None:
    """A sentence where GPU types have names and jobs no rates: all GPUs are then equally fast; else None.

    Where jobs say on which types they may run, their types differ in that, and nothing is said.

    Examples
    --------
    >>> jobs = Workload.from_columns(arrival_s=[0.0], gpus=1, work=10.0)
    >>> types_taken_as_equal(jobs, Cluster.parse("1x4:v100,1x4:k80"))
    'GPUs of v100 and k80 are taken as equally fast: the jobs have no throughputs'
    >>> types_taken_as_equal(jobs, Cluster.parse("2x4:v100")) is None
    True
    """
    types = [name for name in cluster.gpu_types if name != CORES]
    if len(types) < 2:
        return None
    jobs = workload.first(1) if isinstance(workload, EndlessWorkload) else workload
    if jobs.throughput is not None or jobs.on_allowed_types(cluster) is not jobs:
        return None
    first, last = (
        (types[:-1], f" and {types[-1]}") if len(types) <= _NAMED else (types[:_NAMED], ", ...")
    )
    return (
        f"GPUs of {', '.join(first)}{last} are taken as equally fast: the jobs have no throughputs"
    )
