"""States of policies outside a run."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.workload import Workload
from shadowprice.solvers.job_table import Environment, JobTable
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.ledger import ledger_of
from shadowprice.solvers.policy import Knowledge, State


def nobody() -> JobTable:
    """A table of no jobs, to tell of arrivals those whom only numbers concern."""
    instance = Instance(
        Cluster.parse("1x1"), Workload.from_columns(arrival_s=[0], gpus=[1], work=[1.0])
    )
    return JobTable(Environment.of(instance))


@dataclass
class Stops:
    """How many jobs a policy that stops at random may still stop; everybody has to finish."""

    left: int = 12


def state_of(instance: Instance, knows: Collection[Knowledge] = (), arrived: int = -1) -> State:
    """The state when so many jobs have arrived, all if not given, and nothing has been decided."""
    environment = Environment.of(instance)
    types = instance.cluster.type_of_node.tolist()
    pools = types if environment.typed else [0] * len(types)
    gpus = Count().allocator(instance.cluster, pools)
    state = State(environment, knows, ledger_of(instance, gpus, pools))
    end = len(instance.workload) if arrived < 0 else arrived
    state.admit(JobTable.of(instance, environment), end)
    return state
