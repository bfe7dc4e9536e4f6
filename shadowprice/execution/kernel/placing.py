"""Free GPUs of the nodes in compiled code: the placements ``count``, ``consolidate`` and ``pack``.

What :mod:`shadowprice.solvers.placement` says, node by node: the same gang at the same moment gets the
same pieces in the same order. A gang is a chain of pieces, its first one stands for it. GPUs that are all alike are one
pool, the first.
"""

from __future__ import annotations

import math

from numba import int64

from shadowprice.execution.kernel.arrays import COUNT, NOBODY, NODES_A_WORD, PACK, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined
from shadowprice.execution.kernel.quotas import count_begun, count_ended, may_begin, may_go_on


@inlined
def take(a: Arrays, job: int) -> int:
    """First piece of a job's gang placed now, NOBODY if it may not begin or there is no place for it."""
    if a.run[0].free_gpus < a.jobs[job].gpus:
        return NOBODY
    if len(a.limits):
        return _within_limits(a, job)
    return _in_pool(a, a.jobs[job].gpus, int64(0))


@apart
def _within_limits(a: Arrays, job: int) -> int:
    """The same by quotas, in the first of its pools with a place for it."""
    gpus, size = a.jobs[job].gpus, a.sizes[a.jobs[job].size]
    if not may_begin(a, size.tenant, gpus):
        return NOBODY
    for k in range(size.order, size.order + size.pools):
        pool = a.orders[k]
        if a.pools[pool].free_gpus >= gpus:
            first = _in_pool(a, gpus, pool)
            if first != NOBODY:
                count_begun(a, size.tenant, gpus)
                return first
    return NOBODY


@inlined
def _in_pool(a: Arrays, gpus: int, pool: int) -> int:
    """First piece of a gang in a pool that has as many free GPUs."""
    if a.run[0].placement == COUNT:
        return _from_stack(a, gpus, pool)
    found = _consolidated(a, gpus, pool)
    if found == NOBODY and a.run[0].placement == PACK:
        found = _spread(a, gpus, pool)
    return found


@inlined
def _pool_of(a: Arrays, node: int) -> int:
    return a.nodes[node].pool if len(a.limits) else int64(0)


@inlined
def give_back(a: Arrays, job: int) -> None:
    """Free the GPUs of a job, whose pieces stay as they are."""
    piece = a.jobs[job].pieces
    while piece != NOBODY:
        node, gpus = a.pieces[piece].node, a.pieces[piece].gpus
        if a.run[0].placement == COUNT and a.nodes[node].free == 0:
            pool = a.pools[_pool_of(a, node)]
            a.nodes[pool.height].stacked = node
            pool.height += 1
        _change(a, node, gpus)
        piece = a.pieces[piece].next
    if len(a.limits):
        count_ended(a, a.sizes[a.jobs[job].size].tenant, a.jobs[job].gpus)


@inlined
def take_again(a: Arrays, job: int) -> bool:
    """Take exactly the pieces of a job if their GPUs are all free; under consolidated placements or in pools."""
    if len(a.limits) and not may_go_on(a, a.sizes[a.jobs[job].size].tenant, a.jobs[job].gpus):
        return False
    piece = a.jobs[job].pieces
    while piece != NOBODY:
        if a.nodes[a.pieces[piece].node].free < a.pieces[piece].gpus:
            return False
        piece = a.pieces[piece].next
    piece = a.jobs[job].pieces
    while piece != NOBODY:
        node, gpus = a.pieces[piece].node, a.pieces[piece].gpus
        _change(a, node, -gpus)
        if len(a.limits) and a.run[0].placement == COUNT and a.nodes[node].free == 0:
            _drop_from_stack(a, node)
        piece = a.pieces[piece].next
    if len(a.limits):
        count_ended(a, a.sizes[a.jobs[job].size].tenant, -a.jobs[job].gpus)
    return True


@apart
def _drop_from_stack(a: Arrays, node: int) -> None:
    """Take a node without free GPUs out of the stack of its pool, wherever it is."""
    pool = a.pools[a.nodes[node].pool]
    place = pool.height - 1
    while a.nodes[place].stacked != node:
        place -= 1
    pool.height -= 1
    for k in range(place, pool.height):
        a.nodes[k].stacked = a.nodes[k + 1].stacked


@inlined
def drop_pieces(a: Arrays, first: int) -> None:
    """Put pieces back among those that nobody holds."""
    run, piece = a.run[0], first
    while piece != NOBODY:
        following = a.pieces[piece].next
        a.pieces[piece].next = run.spare_piece
        run.spare_piece = piece
        piece = following


@inlined
def _change(a: Arrays, node: int, gpus: int) -> None:
    """Free so many GPUs of a node, or take them if the number is negative."""
    run, it = a.run[0], a.nodes[node]
    free = it.free
    it.free = free + gpus
    run.free_gpus += gpus
    pool = a.pools[_pool_of(a, node)]
    if len(a.limits):
        pool.free_gpus += gpus
    if run.placement == COUNT:
        return
    row = pool.row if len(a.limits) else int64(0)
    a.with_free[row + free] -= 1
    a.with_free[row + free + gpus] += 1
    word, bit = node // NODES_A_WORD, 1 << node % NODES_A_WORD
    a.sets[(row + free) * run.words + word] ^= bit
    a.sets[(row + free + gpus) * run.words + word] ^= bit
    if free == it.gpus:
        pool.whole_gpus -= free
    elif free + gpus == it.gpus:
        pool.whole_gpus += it.gpus


@inlined
def _hold(a: Arrays, node: int, gpus: int, last: int) -> int:
    """Take GPUs of a node as a piece, which follows the last one of its gang if there is one."""
    run = a.run[0]
    piece = run.spare_piece
    run.spare_piece = a.pieces[piece].next
    a.pieces[piece].node, a.pieces[piece].gpus, a.pieces[piece].next = node, gpus, NOBODY
    if last != NOBODY:
        a.pieces[last].next = piece
    _change(a, node, -gpus)
    return piece


@inlined
def _from_stack(a: Arrays, gpus: int, pool: int) -> int:
    stack = a.pools[pool]
    first = last = NOBODY
    while gpus > 0:
        node = a.nodes[stack.height - 1].stacked
        part = min(a.nodes[node].free, gpus)
        last = _hold(a, node, part, last)
        if first == NOBODY:
            first = last
        gpus -= part
        if a.nodes[node].free == 0:
            stack.height -= 1
    return first


@inlined
def _fullest_with(a: Arrays, gpus: int, pool: int) -> int:
    """The node with fewest free GPUs that has enough, ties to the first."""
    words, row = a.run[0].words, a.pools[pool].row if len(a.limits) else int64(0)
    for free in range(row + gpus, row + a.run[0].counts):
        if a.with_free[free]:
            place = free * words
            while a.sets[place] == 0:
                place += 1
            word = a.sets[place]
            # The lowest bit is a power of two, whose exponent is its position.
            _, beyond = math.frexp(float(word & -word))
            return (place - free * words) * NODES_A_WORD + beyond - 1
    return NOBODY


@inlined
def _fullest_other(a: Arrays, gpus: int, pool: int) -> int:
    """The same among nodes that are not marked as taken."""
    best = NOBODY
    for node in range(len(a.nodes)):
        free = a.nodes[node].free
        if (
            free >= gpus
            and not a.nodes[node].taken
            and _pool_of(a, node) == pool
            and (best == NOBODY or free < a.nodes[best].free)
        ):
            best = node
    return best


@inlined
def _consolidated(a: Arrays, gpus: int, pool: int) -> int:
    """A gang on one node, or on wholly free ones and at most one other."""
    node = _fullest_with(a, gpus, pool)
    if node != NOBODY:
        return _hold(a, node, gpus, NOBODY)
    of = a.pools[pool]
    if gpus <= of.largest_node or gpus > of.whole_gpus + of.largest_node:
        return NOBODY
    return _over_nodes(a, gpus, pool)


@apart
def _over_nodes(a: Arrays, gpus: int, pool: int) -> int:
    """A gang that is larger than any node, on wholly free ones and at most one other."""
    largest = a.pools[pool].largest_node
    whole, rest, left = 0, NOBODY, gpus
    for k in range(len(a.nodes)):
        node = a.nodes[k].by_size
        if a.nodes[node].free < a.nodes[node].gpus or _pool_of(a, node) != pool:
            continue
        a.nodes[node].taken = 1
        whole += 1
        left -= a.nodes[node].gpus
        if left <= largest:
            rest = _fullest_other(a, left, pool) if left else node
        if rest != NOBODY:
            break
    first = last = NOBODY
    for k in range(len(a.nodes)):
        node = a.nodes[k].by_size
        if a.nodes[node].taken:
            a.nodes[node].taken = 0
            if rest != NOBODY:
                last = _hold(a, node, a.nodes[node].gpus, last)
                first = last if first == NOBODY else first
    if rest != NOBODY and left:
        _hold(a, rest, left, last)
    return first


@apart
def _spread(a: Arrays, gpus: int, pool: int) -> int:
    """A gang on the nodes with most free GPUs, ties to the first; there are enough."""
    first = last = NOBODY
    row = a.pools[pool].row if len(a.limits) else int64(0)
    for free in range(a.run[0].counts - 1, 0, -1):
        if a.with_free[row + free] == 0:
            continue
        for node in range(len(a.nodes)):
            here = a.nodes[node].free == free and _pool_of(a, node) == pool
            if here and gpus > 0:
                part = min(free, gpus)
                last = _hold(a, node, part, last)
                first = last if first == NOBODY else first
                gpus -= part
    return first
