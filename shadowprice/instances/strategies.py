"""Hypothesis strategies for clusters, workloads and instances.

For tests of your own policies and placements too.

Needs hypothesis, which the ``test`` extra installs; nothing else in the package imports this.
"""

from __future__ import annotations

from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload


def clusters(max_nodes: int = 3, max_gpus: int = 4) -> st.SearchStrategy[Cluster]:
    """Clusters of a few nodes of one type, not necessarily of equal size."""
    sizes = st.lists(st.integers(1, max_gpus), min_size=1, max_size=max_nodes)
    return sizes.map(lambda gpus: Cluster(tuple(Node(g) for g in gpus)))


@st.composite
def workloads(
    draw: st.DrawFn,
    *,
    max_jobs: int = 8,
    max_gang: int = 4,
    max_arrival_s: int = 30,
    max_work_s: int = 40,
    distinct_arrivals: bool = False,
    min_jobs: int = 1,
    whole_seconds: bool = True,
) -> Workload:
    """Workloads of a few jobs, drawn in any order of arrival.

    Parameters
    ----------
    max_gang : int
        Largest gang [GPUs].
    distinct_arrivals : bool
        Whether no two jobs arrive together, so that no tie is broken by order of rows.
    whole_seconds : bool
        Whether times are whole seconds, as in most traces; any multiple of a tick otherwise.
    """
    n = draw(st.integers(min_jobs, max_jobs))
    per_s = 1 if whole_seconds else TICKS_PER_S
    ticks = st.integers(0, max_arrival_s * per_s)
    arrivals = draw(st.lists(ticks, min_size=n, max_size=n, unique=distinct_arrivals))
    gpus = draw(st.lists(st.integers(1, max_gang), min_size=n, max_size=n))
    work = draw(st.lists(st.integers(1, max_work_s * per_s), min_size=n, max_size=n))
    return Workload.from_columns(
        arrival_s=[arrival / per_s for arrival in arrivals],
        gpus=gpus,
        work=[amount / per_s for amount in work],
        source="strategy",
    )


@st.composite
def instances(
    draw: st.DrawFn,
    *,
    max_jobs: int = 8,
    max_nodes: int = 3,
    max_gpus: int = 4,
    max_arrival_s: int = 30,
    max_work_s: int = 40,
    distinct_arrivals: bool = False,
    min_jobs: int = 1,
    whole_seconds: bool = True,
) -> Instance:
    """A small cluster and jobs whose gangs fit it, up to the whole cluster."""
    cluster = draw(clusters(max_nodes, max_gpus))
    workload = draw(
        workloads(
            max_jobs=max_jobs,
            max_gang=cluster.total_gpus,
            max_arrival_s=max_arrival_s,
            max_work_s=max_work_s,
            distinct_arrivals=distinct_arrivals,
            min_jobs=min_jobs,
            whole_seconds=whole_seconds,
        )
    )
    return Instance(cluster, workload)
