r"""SYN-floor: Synergy-TUNE places every job and none below its GPU-proportional speed; vertices of OPT.

Notation. :math:`s` servers; server :math:`i` has :math:`G_i` GPUs, :math:`C_i = c G_i` CPUs and
:math:`M_i = m G_i` GB, so that (c, m) is the share of a GPU. Job :math:`j` needs :math:`g_j` GPUs and asks for
:math:`d_j = (c_j, m_j)` for each; :math:`W_j` is its profile, which does not fall with more of either.

Hypotheses.

H1. All servers have the same CPUs and the same memory for a GPU.
H2. :math:`\sum_j g_j \le \sum_i G_i`, counting the GPUs of jobs that hold servers already.
H3. A gang may be split over servers GPU by GPU, and its speed is that of its CPUs and memory alone.
H4. :math:`W_j(d_j) \ge W_j(c, m) > 0`.

Statement 1. Under H1 to H4 TUNE (``solvers.synergy.tune``) places every job; no job is slower than with
its GPU-proportional share; GPUs, CPUs and memory of every server suffice; a job of one GPU is on
one server.

Statement 2. A basic solution of stage 2 of OPT leaves at most :math:`3 s` jobs that are not whole on servers.

Status. The paper's claim, with the hypotheses its code needs made explicit (ours); 2 is ours.

Proof of 1. Call a job *cut* if it holds the share or less of both resources for each GPU. (a) PLACE
never oversteps a server, by its tests. (b) Only ``regrant`` in ``make_room`` can, so let it be called
for an ask a of g GPUs with :math:`a \le (c, m)`, which holds: an ask that exceeds the share anywhere was replaced by
it. The chosen servers have g free GPUs in all by H2. Let server i lack CPUs for its part h_i of
the ask, at most its free GPUs (0 on servers that were not chosen). If all jobs on i held at most c CPUs
for each GPU, they and the part would need at most :math:`c G_i = C_i`: so one holds more, is not cut, and
is the next peer. The same goes for memory. Each step cuts a job that was not cut, and cut jobs stay
cut; so the loop ends after at most n steps, and then no server on its list lacks anything. A server is
put on the list whenever a job on it changes, so none is overstepped. (c) PLACE then succeeds: if one
server was chosen, all of the ask fits on it. Otherwise no server has g free GPUs, PLACE splits, and
goes through servers in the order in which they were chosen, with as many free GPUs as then; on each
chosen server at least h_i GPUs fit with a, and the h_i add up to g. (d) Speeds: a job holds d_j or the
share, H4. A job of one GPU is never given to ``split``. Q.E.D.

Where the published code does not keep it. It cuts down peers until what they hold *in excess* covers what is
short. A peer with more than its share of one resource and less of the other gets more of the other:
with 8 GPUs, 24 CPUs, 500 GB let jobs of one GPU ask for (12, 20), (6, 220), (6, 220), (3, 20). The
last finds no CPU; the first is cut to (3, 62.5), and 502.5 GB are held: an assertion fails
(:func:`counter_example`). The claim is true of the published code under

H5. Each ask exceeds the share in no resource or falls below it in none,

for then cutting down raises nothing; the published profiles satisfy it (:func:`comparable`). Splitting
is needed as well: gangs 4, 4, 3, 3, 3, 3 fill two servers of 10 GPUs, but placed in this order on one
server each, fewest free GPUs first, 4 + 4 and 3 + 3 + 3 leave no room for the last. "Fits server
by server" is therefore not enough without H3, and with H3 the sum (H2) is.

Proof of 2. Stage 2 with K kinds has 3 s + K rows, so a basic solution has at most 3 s + K positive x.
Every kind has at least one. Let kind k have f_k x that are not whole. If f_k > 0, its jobs not placed
whole are the sum of the fractional parts of these, an integer below f_k: at most f_k - 1. The sum over
kinds is at most the positive x less one for each kind, 3 s. With kinds of one job each: at most 3 s
fractional jobs. Q.E.D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shadowprice.errors import PolicyError
from shadowprice.solvers.synergy.published_packing import PublishedPacking
from shadowprice.solvers.synergy.servers import ROUNDING, Demands, ResourceRequest, Servers


@dataclass
class _ToBePacked:
    """A job as the published packing takes it."""

    row: int
    gpus: int
    ask: ResourceRequest
    speed: float = 1.0


STATUS = "the paper's claim with the hypotheses its code needs; the vertex count is ours"


def bound(servers: int) -> int:
    """Most jobs that a vertex of stage 2 does not place whole."""
    return 3 * servers


def hypotheses_hold(asks: Sequence[ResourceRequest], demands: Demands) -> bool:
    """H2 and H4 of jobs on empty servers; H1 and H3 are built into :class:`Servers`."""
    enough = sum(ask.gpus for ask in asks) <= int(demands.size.sum())
    return enough and all(
        demands.profile_of(ask.job).at(ask.cpus, ask.memory_gb) >= demands.floor(ask.job)
        for ask in asks
    )


def check(servers: Servers, asks: Sequence[ResourceRequest], demands: Demands) -> bool:
    """Statement 1: all jobs placed, none below its floor, one-GPU jobs whole, on servers that suffice.

    Reads what is held only, not the books of what is free; O(pieces).
    """
    used = np.zeros((3, len(demands.size)))
    for ask in asks:
        grant = servers.held.get(ask.job)
        if grant is None or sum(gpus for _, gpus in grant.pieces) != ask.gpus:
            return False
        if ask.gpus == 1 and len(grant.pieces) != 1:
            return False
        profile = demands.profile_of(ask.job)
        if profile.at(grant.cpus, grant.memory_gb) < demands.floor(ask.job):
            return False
        for server, gpus in grant.pieces:
            used[:, server] += gpus * np.array([1.0, grant.cpus, grant.memory_gb])
    room = np.array([1.0, *demands.share])[:, None] * demands.size
    return bool((used <= room + ROUNDING).all())


def check_vertex(
    servers: Servers, asks: Sequence[ResourceRequest], left: Sequence[ResourceRequest]
) -> bool:
    """Statement 2: of the jobs of a vertex few are left over, and all others are placed."""
    placed = set(servers.held) | {ask.job for ask in left}
    once = len(servers.held) + len(left) == len(asks)
    return len(left) <= bound(len(servers.size)) and once and placed == {ask.job for ask in asks}


def comparable(ask: ResourceRequest, share: tuple[float, float]) -> bool:
    """H5: more than the share of nothing, or less than it of nothing."""
    above = (ask.cpus > share[0], ask.memory_gb > share[1])
    below = (ask.cpus < share[0], ask.memory_gb < share[1])
    return not any(above) or not any(below)


def counter_example() -> list[ResourceRequest]:
    """Four jobs of one GPU for a server of 8 GPUs, 24 CPUs, 500 GB on which the published rule fails."""
    demands = [(12.0, 20.0), (6.0, 220.0), (6.0, 220.0), (3.0, 20.0)]
    return [ResourceRequest(job, 1, *demand) for job, demand in enumerate(demands)]


def published_places(asks: Sequence[ResourceRequest], demands: Demands) -> bool:
    """True if the published rule, most GPUs, CPUs, memory first, validly places these jobs."""
    order = sorted(asks, key=lambda a: (-a.gpus, -a.gpus * a.cpus, -a.gpus * a.memory_gb))
    jobs = [_ToBePacked(ask.job, ask.gpus, ask) for ask in order]
    try:
        PublishedPacking(demands.size, demands.share).plan(jobs, fair=False)
    except PolicyError:
        return False
    return True
