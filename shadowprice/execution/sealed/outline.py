"""Knowledge before a job arrives: taken from an instance, and made again where a sealed policy runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import msgspec
import numpy as np

from shadowprice.errors import InputError
from shadowprice.execution.sealed.protocol import (
    Begin,
    Checkpoints,
    PlacementSettings,
    Sharing,
    SharingKind,
)
from shadowprice.instances.cluster import ANY_TYPE, Cluster, Node
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.documents.written_instance import NodeGroup
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.features import Feature, require
from shadowprice.instances.graphs.workload_graphs import IterationTimes
from shadowprice.instances.instance import Instance, Pools
from shadowprice.instances.speeds.sharing import SharingRates
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.racks import Racks
from shadowprice.solvers.job_table import Environment
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Placement
from shadowprice.solvers.registry import placements

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,
        Feature.GOODPUT,
        Feature.FAILURES,
        Feature.QUOTAS,
        Feature.PARTS,
        Feature.CORES,
        Feature.CPU_MEMORY,
        Feature.RACKS,
        Feature.WINDOW,
        Feature.RESTART,
    }
)
"""Features of instances of which a sealed policy is told what others see; a class of one's own is not sent."""


def outline(
    instance: Instance,
    knows: Sequence[Knowledge],
    placement: Placement,
    service_gpu_s: Sequence[float] | None,
) -> Begin:
    """Message that begins a run.

    Raises
    ------
    InputError
        If the instance or the placement has what is not sent to sealed policies.
    """
    require(instance, KNOWS, "sealed policies")
    goodput = instance.course if isinstance(instance.course, Goodput) else None
    if goodput is not None and Knowledge.SPEED_UP not in knows:
        raise InputError(
            f"{instance.workload.source}: jobs have goodput, whose tables a sealed policy is sent if it declares "
            "'speed-up'; expected one that does, or a run that is not sealed"
        )
    failures, graphs = instance.failures, instance.graphs
    pairs = None if instance.sharing_rates is None else instance.pair_rates
    return Begin(
        cluster=tuple(_groups(instance.cluster)),
        knows=tuple(knows),
        placement=_written(placement),
        typed=instance.workload.throughput is not None,
        overheads=instance.overheads,
        quotas=instance.cluster.quotas,
        network=None if graphs is None else graphs.network,
        sharing=None if pairs is None else _sharing(pairs),
        checkpoints=None if failures is None else _checkpoints(failures.checkpoints),
        goodput=goodput,
        racks=next((each for each in instance.declared if isinstance(each, Racks)), None),
        profiled=instance.sensitivity is not None,
        elastic=instance.elasticity is not None,
        parts=Feature.PARTS in instance.features,
        asking=instance.asked_cpu_memory is not None,
        service_gpu_s=None if service_gpu_s is None else tuple(service_gpu_s),
    )


def environment_of(begin: Begin) -> Environment:
    """Knowledge before any job arrives, as the engine's state has it."""
    cluster = cluster_of(begin)
    return Environment(
        cluster=cluster,
        pools=pools_of(cluster, typed=begin.typed),
        overheads=begin.overheads,
        typed=begin.typed,
        network=begin.network,
        times=None if begin.network is None else IterationTimes(begin.network),
        pair_rates=None if begin.sharing is None else _rates(begin.sharing),
        profiled=begin.profiled,
        elastic=begin.elastic,
        checkpoints=None if begin.checkpoints is None else _rule(begin.checkpoints),
        course=begin.goodput,
    )


def cluster_of(begin: Begin) -> Cluster:
    """Nodes of a run, and the quotas of its tenants."""
    nodes: list[Node] = []
    for group in begin.cluster:
        one = {each.name: getattr(group, each.name) for each in fields(Node)}
        nodes += [Node(**one)] * group.count
    return Cluster(tuple(nodes), begin.quotas)


def pools_of(cluster: Cluster, *, typed: bool) -> Pools:
    """Pools of a cluster: GPU types if jobs have rates on them, else one."""
    if typed:
        names, gpus, pool = cluster.gpu_types, cluster.gpus_per_type, cluster.type_of_node
    else:
        names, gpus = (ANY_TYPE,), np.array([cluster.total_gpus], dtype=np.int64)
        pool = np.zeros(len(cluster.nodes), dtype=np.int64)
    prices = np.bincount(pool, [node.price_per_hour for node in cluster.nodes], len(names))
    return Pools(names, gpus, np.asarray(prices / gpus))


def placement_of(chosen: PlacementSettings) -> Placement:
    """The placement of a message.

    Raises
    ------
    InputError
        If there is none of this name, or a setting is not as expected.
    """
    known: Mapping[str, Placement] = placements()
    if chosen.name not in known:
        raise InputError(f"placement {chosen.name!r}: is none of ours")
    return decode(type(known[chosen.name]), chosen.settings, f"placement {chosen.name!r}")


def _groups(cluster: Cluster) -> list[NodeGroup]:
    groups = []
    for count, node in cluster.groups():
        one = {each.name: getattr(node, each.name) for each in fields(Node)}
        groups.append(NodeGroup(count=count, **one))
    return groups


def _written(placement: Placement) -> PlacementSettings:
    known: Mapping[str, Any] = placements()
    if type(placement) is not type(known.get(placement.name)):
        raise InputError(
            f"placement {placement.name!r}: is of code of one's own, which sealed runs do not take; expected one of "
            f"{', '.join(sorted(known))}"
        )
    return PlacementSettings(name=placement.name, settings=msgspec.to_builtins(placement))


def _sharing(rates: SharingRates) -> Sharing:
    kinds = sorted(rates.row_of, key=lambda kind: rates.row_of[kind])
    table = tuple(tuple(map(tuple, of_type)) for of_type in rates.table.tolist())
    return Sharing(kinds=tuple(SharingKind(*kind) for kind in kinds), rates=table)


def _rates(sharing: Sharing) -> SharingRates:
    rows = {(kind.model, kind.gpus): row for row, kind in enumerate(sharing.kinds, start=1)}
    return SharingRates(np.array(sharing.rates, dtype=np.float64), rows)


def _checkpoints(rule: Checkpointing) -> Checkpoints:
    return Checkpoints(
        interval_s=None if rule.interval_s == math.inf else rule.interval_s, cost_s=rule.cost_s
    )


def _rule(checkpoints: Checkpoints) -> Checkpointing:
    interval_s = math.inf if checkpoints.interval_s is None else checkpoints.interval_s
    return Checkpointing(interval_s, checkpoints.cost_s)
