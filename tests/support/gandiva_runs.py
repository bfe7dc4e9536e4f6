"""What the tests of Gandiva share: small instances, verified runs, and a strategy for both."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeVar

import numpy as np
from hypothesis import strategies as st

from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.gandiva.gandiva import Gandiva
from shadowprice.solvers.registry import policy

T = TypeVar("T")

QUANTUM_S = 60.0
FULL = Gandiva()
REACTIVE = policy("gandiva-reactive")


def pair_table(
    shares: dict[tuple[str, str], tuple[float, float]],
    alone: dict[tuple[str, str], float] | None = None,
    types: tuple[str, ...] = ("gpu",),
) -> Throughputs:
    """Rates of pairs for every gang up to 12: shares of their own rates (1 if not given)."""
    own = alone or {}
    together = {
        (kind, (one, gang), (other, gang)): (
            mine * own.get((one, kind), 1.0),
            theirs * own.get((other, kind), 1.0),
        )
        for (one, other), (mine, theirs) in shares.items()
        for kind, gang in product(types, range(1, 13))
    }
    return Throughputs(types, {}, together)


def instance_of(
    cluster: str,
    jobs: list[tuple[float, int, float]],
    *,
    overheads: Overheads | None = None,
    sharing_rates: Throughputs | None = None,
    locality: Locality | None = None,
    elasticity: Elasticity | None = None,
    **columns: Any,
) -> Instance:
    """An instance of jobs (arrival, gpus, work)."""
    arrival, gpus, work = zip(*jobs, strict=True)
    workload = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work, **columns)
    return Instance(
        Cluster.parse(cluster),
        workload,
        overheads or Overheads(),
        sharing_rates,
        locality=locality,
        elasticity=elasticity,
    )


def rows_of(schedule: Schedule, job: int) -> list[tuple[float, float, tuple[tuple[int, int], ...]]]:
    """Runs of a job: start, end, nodes and GPUs; runs that differ in the partner only are one."""
    runs: dict[tuple[float, float], list[tuple[int, int]]] = {}
    for row in np.flatnonzero(schedule.job == job).tolist():
        key = float(schedule.start_s[row]), float(schedule.end_s[row])
        runs.setdefault(key, []).append((int(schedule.node[row]), int(schedule.gpus[row])))
    joined: list[tuple[float, float, tuple[tuple[int, int], ...]]] = []
    for (start, end), pieces in sorted(runs.items()):
        where = tuple(sorted(pieces))
        if joined and joined[-1][1] == start and joined[-1][2] == where:
            joined[-1] = (joined[-1][0], end, where)
        else:
            joined.append((start, end, where))
    return joined


def done(instance: Instance, chosen: Any = FULL, **switches: Any) -> Schedule:
    """A verified run."""
    schedule = run(instance, chosen, **switches).schedule
    verify(instance, schedule)
    return schedule


def ends(schedule: Schedule) -> list[float]:
    """Completion times [s] by row of the workload."""
    last = np.zeros(schedule.job.max() + 1)
    np.maximum.at(last, schedule.job, schedule.end_s)
    found: list[float] = last.tolist()
    return found


MODELS = ("a", "b", "")
TYPES = ("fast", "slow")
SPEED = {("a", "fast"): 4.0, ("a", "slow"): 1.0, ("b", "fast"): 2.0, ("b", "slow"): 3.0}


@st.composite
def introspective(draw: st.DrawFn) -> Instance:
    """Jobs that may share, lose when spread, and grow; long enough for many turns."""
    typed = draw(st.booleans())
    sizes = draw(st.lists(st.integers(1, 4), min_size=1 + typed, max_size=4))
    # Without throughputs types differ in what pairs make of them, and in nothing else.
    several = typed or draw(st.booleans())
    kinds = [TYPES[k % 2] if several else "gpu" for k in range(len(sizes))]
    cluster = Cluster(tuple(Node(g, kind) for g, kind in zip(sizes, kinds, strict=True)))
    n = draw(st.integers(1, 9))

    def of_jobs(values: st.SearchStrategy[T]) -> list[T]:
        return draw(st.lists(values, min_size=n, max_size=n))

    model = of_jobs(st.sampled_from(MODELS[: 2 if typed else 3]))
    workload = Workload.from_columns(
        arrival_s=of_jobs(st.integers(0, 200)),
        gpus=of_jobs(st.integers(1, int(cluster.gpus_per_type.max()))),
        work=of_jobs(st.integers(1, 900)),
        weight=of_jobs(st.sampled_from([1.0, 1.0, 2.0])),
        model=model,
        throughput=[[SPEED[name, kind] for kind in TYPES] for name in model] if typed else None,
        gpu_types=TYPES if typed else (),
    )
    part = st.sampled_from((0.2, 0.45, 0.5, 0.7, 1.0))
    together: dict[Any, tuple[float, float]] = {}
    for kind in cluster.gpu_types:
        pairs = {
            pair: (draw(part), draw(part))
            for pair in (("a", "a"), ("a", "b"), ("b", "b"), ("", "a"), ("", ""))
            if draw(st.integers(0, 4))
        }
        together |= pair_table(pairs, SPEED if typed else None, (kind,)).pairs
    charges = draw(st.sampled_from([Overheads(), Overheads(0.5, 2.0, 4.0)]))
    parts = draw(st.sampled_from(["", "l", "e", "le"]))
    rows = np.arange(n)
    locality = Locality(np.where(rows % 2, 0.4, 1.0)) if "l" in parts else None
    elasticity = None
    if "e" in parts:
        widest = np.minimum(workload.gpus * 3, max(int(cluster.total_gpus), 1))
        widest = np.maximum(widest, workload.gpus)
        elasticity = Elasticity(widest, np.where(rows % 3, 0.95, 0.501))
    table = Throughputs(cluster.gpu_types, {}, together)
    return Instance(cluster, workload, charges, table, locality=locality, elasticity=elasticity)
