"""CPUs and memory beside GPUs: never more than a node has, and a start wherever there is room."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.cpu_memory import (
    CpuMemoryDemand,
    NodeCapacity,
    in_millionths,
    no_room,
)
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.placement.cpu_memory import CpuMemoryResource
from shadowprice.solvers.placement.ledger import ResourceLedger
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.registry import placement
from support.states import nobody

NODE = st.builds(
    NodeCapacity, st.integers(1, 3), st.integers(1, 9000), st.integers(0, 4000), st.booleans()
)
DEMAND = st.builds(
    CpuMemoryDemand,
    st.integers(1, 4),
    st.sampled_from([0, 0.5, 1, 3]),
    st.sampled_from([0, 1, 2.5]),
)


def ways(nodes: list[NodeCapacity], gpus: int) -> list[Pieces]:
    """All ways to spread a gang over nodes."""
    counts = itertools.product(*(range(node.gpus + 1) for node in nodes))
    return [
        tuple((at, count) for at, count in enumerate(row) if count)
        for row in counts
        if sum(row) == gpus
    ]


class Books:
    """The same by plain sums."""

    def __init__(self, nodes: list[NodeCapacity], demands: list[CpuMemoryDemand]) -> None:
        self.nodes, self.demands = nodes, demands
        self.runs: dict[int, Pieces] = {}
        self.aside: dict[int, tuple[int, int]] = {}

    def fits(self, job: int, pieces: Pieces) -> bool:
        runs = {**self.runs, job: pieces}
        for at, node in enumerate(self.nodes):
            gpus, cpus, memory = 0, *self.aside.get(at, (0, 0))
            held_here = [(k, n) for k, held in runs.items() for where, n in held if where == at]
            for other, count in held_here:
                held = node.held(self.demands[other], count)
                gpus, cpus, memory = gpus + count, cpus + held[0], memory + held[1]
            touched = any(where == at for where, _ in pieces)
            over = cpus > node.cpu_milli or memory > node.memory_mib
            if gpus > node.gpus or (touched and over):
                return False
        return True


@settings(max_examples=35, deadline=None)
@given(
    st.lists(NODE, min_size=1, max_size=3),
    st.lists(DEMAND, min_size=1, max_size=5),
    st.data(),
)
def test_a_gang_starts_where_there_is_room_and_nowhere_else(
    nodes: list[NodeCapacity], demands: list[CpuMemoryDemand], data: st.DataObject
) -> None:
    demands = [CpuMemoryDemand(1, 0.001), *demands]  # somebody asks
    cluster = Cluster(tuple(Node(node.gpus) for node in nodes))
    pools = [0] * len(nodes)
    cpu_memory = CpuMemoryResource(nodes, demands, pools)
    allocator = ResourceLedger(Count().allocator(cluster, pools), (), cpu_memory)
    allocator.arrive(nobody(), range(len(demands)))
    books = Books(nodes, demands)
    for _ in range(8):
        job = data.draw(st.integers(0, len(demands) - 1))
        if job in books.runs:
            pieces = books.runs.pop(job)
            allocator.release(job, pieces)
            if data.draw(st.booleans()) and books.fits(job, pieces):
                assert allocator.resume(job, pieces, None, {})
                books.runs[job] = pieces
            continue
        if data.draw(st.integers(0, 3)) == 0:
            books.aside = {0: (data.draw(st.integers(0, 4000)), 0)}
            cpu_memory.set_aside(books.aside)
        gang = demands[job].gpus
        possible = [pieces for pieces in ways(nodes, gang) if books.fits(job, pieces)]
        found = allocator.take(job, gang, (0,))
        assert (found is None) == (not possible)
        if found is not None:
            assert tuple(sorted(found)) in possible
            books.runs[job] = found
    for job, pieces in books.runs.items():
        allocator.release(job, pieces)
    cpu_memory.set_aside({})
    assert [cpu_memory.left_on(at) for at in range(len(nodes))] == [node.most for node in nodes]
    assert allocator.free_by_node() == [node.gpus for node in nodes]


@settings(max_examples=35, deadline=None)
@given(NODE, st.data())
def test_shares_of_all_gpus_fit(node: NodeCapacity, data: st.DataObject) -> None:
    """Where nobody asks for anything, nothing is in the way of a GPU, unless CPUs are whole and few."""
    cuts = sorted(data.draw(st.sets(st.integers(1, node.gpus - 1)))) if node.gpus > 1 else []
    parts = [b - a for a, b in itertools.pairwise([0, *cuts, node.gpus])]
    held = [node.held(CpuMemoryDemand(gpus), gpus) for gpus in parts]
    if not node.whole_cpus or node.cpu_milli >= 1000 * node.gpus:
        assert sum(cpus for cpus, _ in held) <= node.cpu_milli
    assert sum(memory for _, memory in held) <= node.memory_mib


@settings(max_examples=35, deadline=None)
@given(st.lists(NODE, min_size=1, max_size=3), DEMAND)
def test_no_room_is_told_where_no_way_fits(
    nodes: list[NodeCapacity], demand: CpuMemoryDemand
) -> None:
    books = Books(nodes, [demand])
    possible = any(books.fits(0, pieces) for pieces in ways(nodes, demand.gpus))
    why = no_room(demand, nodes, [range(len(nodes))])
    if demand.says:
        assert bool(why) != possible
    else:
        assert not why


def test_placements_keep_their_rule_on_what_is_left() -> None:
    """The fuller node is taken by consolidation, unless it lacks CPUs."""
    nodes = [NodeCapacity.of(4, 8, 32.0), NodeCapacity.of(4, 8, 32.0)]
    demands = [CpuMemoryDemand(2, 7.0), CpuMemoryDemand(2, 0.0), CpuMemoryDemand(1, 2.0)]
    cluster = Cluster.parse("2x4")
    cpu_memory = CpuMemoryResource(nodes, demands, [0, 0])
    allocator = ResourceLedger(placement("consolidate").allocator(cluster, [0, 0]), (), cpu_memory)
    allocator.arrive(nobody(), range(len(demands)))
    assert allocator.take(0, 2, (0,)) == ((0, 2),)
    assert allocator.take(2, 1, (0,)) == ((1, 1),)
    assert allocator.take(1, 2, (0,)) == ((1, 2),)
    assert not allocator.anywhere


@pytest.mark.parametrize(("cpus", "whole", "held"), [(3.0, False, 1500), (3.0, True, 2000)])
def test_whole_cpus_are_rounded_up(cpus: float, whole: bool, held: int) -> None:
    node = NodeCapacity.of(2, 8, 0.0, whole_cpus=whole)
    assert node.held(CpuMemoryDemand(2, cpus), 1) == (held, 0)


def test_what_runs_are_given_counts_in_millionths() -> None:
    """Rounded down, but for what doubles lack of a number that was whole."""
    assert in_millionths((8 / 3, 4.0)) == (2_666_666, 4_000_000)
    assert in_millionths((2.0 - 2**-52, 1e-6 - 2e-9)) == (2_000_000, 0)


@given(st.integers(0, 9), st.integers(1, 8), st.floats(0, 1e6), st.floats(0, 1e6))
def test_where_nobody_counts_them_nothing_is_in_the_way_and_nothing_remembered(
    job: int, gpus: int, cpus: float, memory_gb: float
) -> None:
    """One object stands for that in all allocators, so that no run may leave anything in it."""
    nothing, pieces, held = CpuMemoryResource(), ((0, gpus),), ((cpus, memory_gb),)
    before = {name: repr(value) for name, value in vars(nothing).items()}
    nothing.give(job, pieces, held)
    nothing.adjust(job, pieces, held)
    assert nothing.enough(job, pieces, held)
    assert nothing.fits_in(job, 0)
    assert nothing.suffices((job,), pieces)
    assert nothing.usable((job,), [gpus], empty=False) == [gpus]
    assert nothing.room_of_all() is None
    assert nothing.least(job, gpus) == (0.0, 0.0)
    assert nothing.held_by(job, pieces) == nothing.needed(job, gpus, 0) == nothing.left_in(0)
    assert {name: repr(value) for name, value in vars(nothing).items()} == before
