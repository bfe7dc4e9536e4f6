"""Free GPUs of the nodes in compiled code: the placements ``count``, ``consolidate`` and ``pack``.

What :mod:`shadowprice.solvers.placement` says, node by node: the same gang at the same moment gets the
same pieces in the same order. A gang is a chain of pieces, its first one stands for it.
"""

from __future__ import annotations

import math

from shadowprice.execution.kernel.arrays import COUNT, NOBODY, NODES_A_WORD, PACK, Arrays
from shadowprice.execution.kernel.compiling import apart, inlined


@inlined
def take(a: Arrays, gpus: int) -> int:
    """First piece of a gang placed now, NOBODY if there is no place for it."""
    if a.run[0].free_gpus < gpus:
        return NOBODY
    if a.run[0].placement == COUNT:
        return _from_stack(a, gpus)
    found = _together(a, gpus)
    if found == NOBODY and a.run[0].placement == PACK:
        found = _spread(a, gpus)
    return found


@inlined
def give_back(a: Arrays, first: int) -> None:
    """Free the GPUs of a gang, whose pieces stay as they are."""
    run, piece = a.run[0], first
    while piece != NOBODY:
        node, gpus = a.pieces[piece].node, a.pieces[piece].gpus
        if run.placement == COUNT and a.nodes[node].free == 0:
            a.nodes[run.height].stacked = node
            run.height += 1
        _change(a, node, gpus)
        piece = a.pieces[piece].next


@inlined
def take_again(a: Arrays, first: int) -> bool:
    """Take exactly these pieces if their GPUs are all free; under consolidated placements."""
    piece = first
    while piece != NOBODY:
        if a.nodes[a.pieces[piece].node].free < a.pieces[piece].gpus:
            return False
        piece = a.pieces[piece].next
    piece = first
    while piece != NOBODY:
        _change(a, a.pieces[piece].node, -a.pieces[piece].gpus)
        piece = a.pieces[piece].next
    return True


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
    if run.placement == COUNT:
        return
    a.with_free[free] -= 1
    a.with_free[free + gpus] += 1
    word, bit = node // NODES_A_WORD, 1 << node % NODES_A_WORD
    a.sets[free * run.words + word] ^= bit
    a.sets[(free + gpus) * run.words + word] ^= bit
    if free == it.gpus:
        run.whole_gpus -= free
    elif free + gpus == it.gpus:
        run.whole_gpus += it.gpus


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
def _from_stack(a: Arrays, gpus: int) -> int:
    run = a.run[0]
    first = last = NOBODY
    while gpus > 0:
        node = a.nodes[run.height - 1].stacked
        part = min(a.nodes[node].free, gpus)
        last = _hold(a, node, part, last)
        if first == NOBODY:
            first = last
        gpus -= part
        if a.nodes[node].free == 0:
            run.height -= 1
    return first


@inlined
def _fullest_with(a: Arrays, gpus: int) -> int:
    """The node with fewest free GPUs that has enough, ties to the first."""
    words = a.run[0].words
    for free in range(gpus, len(a.with_free)):
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
def _fullest_other(a: Arrays, gpus: int) -> int:
    """The same among nodes that are not marked as taken."""
    best = NOBODY
    for node in range(len(a.nodes)):
        free = a.nodes[node].free
        if (
            free >= gpus
            and not a.nodes[node].taken
            and (best == NOBODY or free < a.nodes[best].free)
        ):
            best = node
    return best


@inlined
def _together(a: Arrays, gpus: int) -> int:
    """A gang on one node, or on wholly free ones and at most one other."""
    node = _fullest_with(a, gpus)
    if node != NOBODY:
        return _hold(a, node, gpus, NOBODY)
    run = a.run[0]
    if gpus <= run.largest_node or gpus > run.whole_gpus + run.largest_node:
        return NOBODY
    return _over_nodes(a, gpus)


@apart
def _over_nodes(a: Arrays, gpus: int) -> int:
    """A gang that is larger than any node, on wholly free ones and at most one other."""
    run = a.run[0]
    whole, rest, left = 0, NOBODY, gpus
    for k in range(len(a.nodes)):
        node = a.nodes[k].by_size
        if a.nodes[node].free < a.nodes[node].gpus:
            continue
        a.nodes[node].taken = 1
        whole += 1
        left -= a.nodes[node].gpus
        if left <= run.largest_node:
            rest = _fullest_other(a, left) if left else node
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
def _spread(a: Arrays, gpus: int) -> int:
    """A gang on the nodes with most free GPUs, ties to the first; there are enough."""
    first = last = NOBODY
    for free in range(len(a.with_free) - 1, 0, -1):
        if a.with_free[free] == 0:
            continue
        for node in range(len(a.nodes)):
            if a.nodes[node].free == free and gpus > 0:
                part = min(free, gpus)
                last = _hold(a, node, part, last)
                first = last if first == NOBODY else first
                gpus -= part
    return first
