"""Suspend and resume: quanta on over-subscribed servers. Gandiva (OSDI'18), sec. 3.1, 3.2.

Turns end together, every ``quantum_s`` on one grid, so that a gang gets all its GPUs at once. Units
are then served by priority, and among equals in the order in which they began to wait; who had a
turn of at least half a quantum goes to the end. A unit is therefore passed only by those that began
to wait before it, and each of them at most twice: nobody starves among equals, however long others
arrive. A unit is never suspended for one of lower priority (the paper's rule; priority is the
weight). Derived: one grid for all servers, and half a quantum.

Servers are chosen by affinity, as in getNodes (sec. 3.2.1, Algorithm 1). The paper's condition
``height(n1) < 1`` cannot hold on a server with a job, since the height is rounded up; meant is that
there are enough free GPUs, which is what is tested here (derived). As derived as well: where the
paper queues a job of which no server has the affinity, it is put on the server with the lowest
load, so that it is time-sliced; a job that fits no server spans several; and free GPUs of several
servers are used before any are over-subscribed. As derived: where jobs ask for CPUs and memory, a turn needs
these on its servers too, and a pair what both ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from shadowprice.solvers.gandiva.units import ServerOccupancy, Unit, UnitDecision, fits
from shadowprice.solvers.placement.protocol import Pieces, in_turn

# getNodes: the server for a job by affinity.


def free_home(
    occupancy: ServerOccupancy, free: Sequence[int], gang: int, pools: Iterable[int]
) -> Pieces | None:
    """Free GPUs for a gang on one server; None if there are none. O(nodes).

    The pools are tried in order; in each, first the servers with its affinity, least loaded first,
    then idle ones, then any (which mixes affinities), tightest first.
    """
    for pool in pools:
        node = one_server(occupancy, free, gang, pool)
        if node is not None:
            return ((node, gang),)
    return None


def spread_home(
    occupancy: ServerOccupancy, free: Sequence[int], gang: int, pools: Iterable[int]
) -> Pieces | None:
    """Free GPUs for a gang on as few servers of a pool as there are; O(nodes log nodes)."""
    for pool in pools:
        nodes = occupancy.nodes_of[pool]
        if sum(free[node] for node in nodes) >= gang:
            return in_turn(sorted(nodes, key=lambda node: (-free[node], node)), free, gang)
    return None


def one_server(occupancy: ServerOccupancy, free: Sequence[int], gang: int, pool: int) -> int | None:
    """The server of a pool on which a gang is put without over-subscribing it; O(nodes)."""
    best: tuple[int, ...] | None = None
    for node in occupancy.nodes_of[pool]:
        if free[node] < gang:
            continue
        affinity = occupancy.affinity(node)
        if affinity == gang:
            rank: tuple[int, ...] = (0, occupancy.load[node], node)
        elif affinity == 0:
            rank = (1, occupancy.size[node], node)
        else:
            rank = (2, free[node], node)
        if best is None or rank < best:
            best = rank
    return None if best is None else best[-1]


def shared_home(
    occupancy: ServerOccupancy, gang: int, pools: Iterable[int], sizes: Sequence[int]
) -> Pieces:
    """GPUs for a gang on servers that are over-subscribed for it; O(nodes log nodes).

    The server that will have the lowest height, among equals one with its affinity, then the least
    loaded; several, least loaded first, if none is large enough.

    Parameters
    ----------
    sizes : sequence of int
        GPUs of every server that the gang can have there: all, unless CPUs or memory are too few.
    """
    pools = tuple(pools)
    # Positions break ties, so the fastest of equally loaded pools comes first.
    place = {pool: k for k, pool in enumerate(pools)}
    large = [node for pool in pools for node in occupancy.nodes_of[pool] if sizes[node] >= gang]
    if large:
        node = min(
            large,
            key=lambda node: (
                -(-(occupancy.load[node] + gang) // occupancy.size[node]),
                occupancy.affinity(node) != gang,
                occupancy.load[node] / occupancy.size[node],
                place[occupancy.pool[node]],
                node,
            ),
        )
        return ((node, gang),)
    for pool in pools:
        nodes = occupancy.nodes_of[pool]
        if sum(sizes[node] for node in nodes) >= gang:
            by_load = sorted(
                nodes, key=lambda node: (occupancy.load[node] / occupancy.size[node], node)
            )
            return in_turn(by_load, sizes, gang)
    # The instance refuses jobs that fit no pool.
    return ()


Rank = tuple[float, float, bool, float, int]


def rotate(shift: UnitDecision, quantum_s: float) -> None:
    """End the turns of those whose GPUs others waited for longer; O(units log units)."""
    occupancy, now_s = shift.occupancy, shift.state.now_s
    for unit in occupancy.running:
        if now_s - unit.started_s >= quantum_s / 2:
            unit.since_s = now_s

    def rank(unit: Unit) -> Rank:
        runs = unit in occupancy.running
        return (-unit.weight, unit.since_s, runs, -unit.started_s if runs else 0.0, unit.jobs[0])

    free, room = list(occupancy.size), shift.state.allocator.cpu_memory.room_of_all()
    chosen: dict[Unit, None] = {}
    for unit in sorted((*occupancy.running, *occupancy.waiting), key=rank):
        if not unit.home or not fits(free, unit.home):
            continue
        if room is None or room.place(unit.jobs, unit.home):
            for node, gpus in unit.home:
                free[node] -= gpus
            chosen[unit] = None
    for unit in [unit for unit in occupancy.running if unit not in chosen]:
        if shift.untouched(unit):
            shift.stop(unit)
    for unit in [unit for unit in chosen if unit in occupancy.waiting]:
        if shift.untouched(unit) and shift.fits(unit, unit.home):
            shift.start(unit, unit.home)


def fill(shift: UnitDecision) -> None:
    """Start waiting units on free GPUs, at home or elsewhere, by priority and order of waiting.

    The paper's reaction to a departure: a queued job, then a suspended one, which migrates. Who
    needs several servers for what would fit one comes after all others (derived): on GPUs that would
    idle otherwise, being spread costs nobody else.
    O(waiting log waiting), and O(nodes) for each that is started.
    """
    occupancy = shift.occupancy
    if not any(shift.free) or not occupancy.waiting:
        return
    order = sorted(occupancy.waiting, key=lambda unit: (-unit.weight, unit.since_s, unit.jobs[0]))
    for place in (_home_on_one_server, _spread):
        left = sum(shift.free)
        for unit in order:
            if unit.gang <= left and unit in occupancy.waiting:
                home = place(shift, unit)
                if home is not None:
                    shift.start(unit, home)
                    left -= unit.width


def assign_homes(shift: UnitDecision) -> None:
    """Give every waiting job a home where it takes turns, and none on more servers than it needs.

    Pairs keep theirs: it is where they were seen to run well together.
    """
    occupancy, largest = shift.occupancy, max(shift.occupancy.size)
    for unit in occupancy.waiting:
        if not unit.home or (unit.alone and len(unit.home) > 1 and unit.gang <= largest):
            occupancy.assign_home(unit, ())
            home = shared_home(occupancy, unit.gang, shift.pools(unit), shift.sizes_for(unit))
            occupancy.assign_home(unit, home)


def _home_on_one_server(shift: UnitDecision, unit: Unit) -> Pieces | None:
    """Free GPUs on one server, or at home, or on several if no server is large enough."""
    if unit.home and shift.fits(unit, unit.home):
        return unit.home
    if unit.gang > max(shift.occupancy.size):
        return _spread(shift, unit)
    home = free_home(shift.occupancy, shift.free_for(unit), unit.gang, shift.pools(unit))
    return home if home is None or shift.suits(unit, home) else None


def _spread(shift: UnitDecision, unit: Unit) -> Pieces | None:
    """Free GPUs on any servers."""
    home = spread_home(shift.occupancy, shift.free_for(unit), unit.gang, shift.pools(unit))
    return home if home is None or shift.suits(unit, home) else None
