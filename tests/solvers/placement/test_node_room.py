"""Room of nodes for plans of gangs: never more than there is, whatever is planned and given back."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.cpu_memory import CpuMemoryDemand, NodeCapacity
from shadowprice.solvers.hadar.round_selection import assign_nodes
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource, NodeRoom
from shadowprice.solvers.placement.ledger import ResourceLedger
from support.states import nobody

NODES = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 12_000), st.integers(0, 4_000), st.booleans()),
    min_size=1,
    max_size=4,
)
DEMANDS = st.lists(
    st.tuples(
        st.integers(1, 4), st.sampled_from([0.0, 0.7, 1.0, 5.0]), st.sampled_from([0.0, 1.3])
    ),
    min_size=1,
    max_size=4,
)


def built(nodes: list[tuple[int, int, int, bool]]) -> list[NodeCapacity]:
    return [NodeCapacity(*node[:3], whole_cpus=node[3]) for node in nodes]


@given(NODES, DEMANDS, st.data())
def test_most_is_what_can_be_added(
    nodes: list[tuple[int, int, int, bool]],
    demands: list[tuple[int, float, float]],
    data: st.DataObject,
) -> None:
    """By the definition: as many GPUs as the CPUs and memory that the job then has there suffice for."""
    capacities, asked = built(nodes), [CpuMemoryDemand(*demand) for demand in demands]
    room = NodeRoom(capacities, asked, [node.most for node in capacities])
    has: Counter[tuple[int, int]] = Counter()
    for _ in range(6):
        job = data.draw(st.integers(0, len(asked) - 1))
        node = data.draw(st.integers(0, len(capacities) - 1))
        free = data.draw(st.integers(0, 4))

        def fits(more: int, job: int = job, node: int = node) -> bool:
            after = has + Counter({(job, node): more})
            held = [
                capacities[node].held(asked[j], gpus) for (j, n), gpus in after.items() if n == node
            ]
            totals = [sum(each[k] for each in held) for k in range(2)]
            return all(
                total <= most for total, most in zip(totals, capacities[node].most, strict=True)
            )

        most = room.most(job, node, free)
        assert most == max((more for more in range(free + 1) if more == 0 or fits(more)), default=0)
        room.add(job, node, most)
        has[job, node] += most
        if data.draw(st.booleans()) and has[job, node]:
            room.add(job, node, -has[job, node])
            del has[job, node]


@given(NODES, DEMANDS)
def test_gangs_get_nodes_with_room_or_none(
    nodes: list[tuple[int, int, int, bool]], demands: list[tuple[int, float, float]]
) -> None:
    """All of a gang or nothing of it; the first fits if the empty cluster can hold it."""
    capacities, asked = built(nodes), [CpuMemoryDemand(*demand) for demand in demands]
    total, gangs, used = sum(node.gpus for node in capacities), {}, 0
    for job, demand in enumerate(asked):
        if used + demand.gpus <= total:
            gangs[job] = ((0, demand.gpus),)
            used += demand.gpus
    room = NodeRoom(capacities, asked, [node.most for node in capacities])
    sizes, types = [node.gpus for node in capacities], [0] * len(capacities)
    assigned = assign_nodes(gangs, {}, sizes, types, scattered=False, room=room)
    for node, capacity in enumerate(capacities):
        here = {job: dict(pieces).get(node, 0) for job, pieces in assigned.items()}
        assert sum(here.values()) <= capacity.gpus
        held = [capacity.held(asked[job], gpus) for job, gpus in here.items() if gpus]
        for k in range(2):
            assert sum(each[k] for each in held) <= capacity.most[k]
    for job, pieces in assigned.items():
        assert sum(gpus for _, gpus in pieces) == asked[job].gpus
    alone = {
        job
        for job in gangs
        if sum(node.most_gpus(asked[job], node.most, node.gpus) for node in capacities)
        >= asked[job].gpus
    }
    if alone == set(gangs) and gangs:
        assert assigned


@given(NODES, DEMANDS, st.data())
def test_usable_gpus_are_those_that_suffice(
    nodes: list[tuple[int, int, int, bool]],
    demands: list[tuple[int, float, float]],
    data: st.DataObject,
) -> None:
    """Of a pair as of one job: no more GPUs of a node have CPUs and memory for all of them, and these have."""
    capacities, asked = built(nodes), [CpuMemoryDemand(*demand) for demand in demands]
    cluster = Cluster(tuple(Node(node.gpus) for node in capacities))
    books = CpuMemoryResource(capacities, asked, [0] * len(nodes))
    ledger = ResourceLedger(Count().allocator(cluster, [0] * len(nodes)), (), books)
    ledger.arrive(nobody(), range(len(asked)))
    first = data.draw(st.integers(0, len(asked) - 1))
    held = ledger.take(first, asked[first].gpus, (0,)) if data.draw(st.booleans()) else None
    others = [job for job in range(len(asked)) if job != first]
    jobs = (
        data.draw(st.lists(st.sampled_from(others), min_size=1, max_size=2, unique=True))
        if others
        else [first]
    )
    if held is not None and jobs == [first]:
        return
    sizes = [node.gpus for node in capacities]
    for empty in (False, True):
        found = books.usable(jobs, sizes, empty=empty)
        for node, capacity in enumerate(capacities):
            left = capacity.most if empty else books.left_on(node)

            def enough(gpus: int, capacity: NodeCapacity = capacity, left: Any = left) -> bool:
                each = [capacity.held(asked[job], gpus) for job in jobs]
                return all(sum(held[k] for held in each) <= left[k] for k in range(2))

            if not any(each.says for each in asked):
                assert found == sizes
                continue
            expected = max((g for g in range(capacity.gpus + 1) if g == 0 or enough(g)), default=0)
            assert found[node] == expected
            if not empty and expected:
                assert books.suffices(jobs, ((node, expected),))
