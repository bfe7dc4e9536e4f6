"""GPUs that a round of Hadar leaves idle, given to jobs that its prices refused.

Derived; not in the paper. The dual subroutine refuses a job whose payoff is not positive, also beside idle GPUs.
Here, after its choice, refused jobs are gone through in the order of the queue, that of payoff per GPU, and
each that fits gets its allocation of largest payoff at the prices of the load so far, whatever
the sign. Nobody who was chosen gives anything up, so that a round's utility is no less than without.

Guarantee: none beyond that: the proof of 2 alpha (proofs.hadar.competitive) needs that who is admitted
pays the price.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shadowprice.solvers.hadar.node_classes import NodeClasses
from shadowprice.solvers.hadar.round_selection import (
    QueuedJob,
    RoundSelection,
    find_alloc,
    gang_parts,
    take,
)


def filled(
    classes: NodeClasses,
    selection: RoundSelection,
    queue: Sequence[QueuedJob],
    communication: float,
) -> RoundSelection:
    """The selection, and refused jobs on what it leaves idle; afterwards none of them fits.

    Its payoff counts those of the jobs that were added, which may be negative. O(jobs x types x classes).
    """
    chosen = {position for position, _ in selection.gangs}
    gangs, state, payoff = list(selection.gangs), selection.state, selection.payoff
    for position, job in enumerate(queue):
        free = int(state @ classes.free)
        if free == 0:
            break
        if position in chosen or job.gpus > free:
            continue
        allocation = find_alloc(classes, state[None, :], job, communication)
        if not np.isfinite(allocation.payoff[0]):
            continue
        gangs.append((position, gang_parts(classes, allocation.taken[0])))
        state = take(classes, state[None, :], allocation.taken)[0]
        payoff += float(allocation.payoff[0])
    return replace(selection, payoff=payoff, gangs=tuple(gangs), state=state)
