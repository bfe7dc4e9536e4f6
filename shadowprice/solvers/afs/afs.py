r"""AFS (``afs``): GPUs one by one, each to the winner of comparisons of pairs of jobs.

Source: Hwang, Kim, Kim, Shin and Park, Elastic Resource Sharing for Distributed Deep Learning, NSDI 2021 (recalled;
AFS-L), the rule as in a simulator of it that we have read. Of two jobs the shorter one l, which would be complete
first on what it has been given so far, gets the next GPU rather than the longer one h if

.. math:: \frac{p_l(k_l + 1) - p_l(k_l)}{p_l(k_l)} > \frac{p_h(k_h + 1) - p_h(k_h)}{p_h(k_h + 1)}

with p(k) the speed on k GPUs. Of jobs that have none yet, the one that would be complete first on one GPU gets it.
The rule weighs what l gains now against what h loses until l is complete, after which h has all.

Guarantee: none for more than two jobs. ``models/afs.py`` bounds from below what any shares can reach with a few jobs.
Complexity: O(GPUs x jobs) a decision. Knows: durations and speeds. Preempts: a width changes by a stop and a start.
Jobs with run times instead of goodput keep their gangs; whoever fits starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.instances.goodput.application import packed
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.emptiest import allotted


@dataclass(frozen=True)
class Afs:
    """AFS-L, at arrivals and completions."""

    name: ClassVar[str] = "afs"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION, Knowledge.SPEED_UP})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Hand out all GPUs anew; who keeps its width keeps its nodes."""
        goodput = state.goodput
        if goodput is None:
            return Decision(state).start_all()
        live = sorted((*state.running, *state.waiting))
        speeds = {job: _speeds(goodput, job, state.up_gpus) for job in live}
        width = shares(speeds, state.up_gpus)
        order = sorted(live, key=lambda job: (-width[job], job))
        return allotted(state, {job: width[job] for job in order})


def shares(speeds: Mapping[int, Sequence[float]], gpus: int) -> dict[int, int]:
    """Widths of jobs on so many GPUs.

    Parameters
    ----------
    speeds : mapping of int to sequence of float
        Of each job by GPUs from 0 on, as the share of what is left of it that is done in a second: 0 on 0 GPUs,
        and where it cannot run.
    """
    width = dict.fromkeys(speeds, 0)
    following = {job: _next(table, 0) for job, table in speeds.items()}
    while True:
        can = [job for job in speeds if width[job] < following[job] <= width[job] + gpus]
        if not can:
            return width
        winner = can[0]
        for job in can[1:]:
            winner = _preferred(speeds, width, following, winner, job)
        gpus -= following[winner] - width[winner]
        width[winner] = following[winner]
        following[winner] = _next(speeds[winner], width[winner])


def _preferred(
    speeds: Mapping[int, Sequence[float]],
    width: Mapping[int, int],
    following: Mapping[int, int],
    one: int,
    other: int,
) -> int:
    """Winner of two jobs, who gets the next GPU."""
    longer, shorter = one, other
    if speeds[other][width[other]] <= speeds[one][width[one]]:
        longer, shorter = other, one
    now, then = (speeds[shorter][k] for k in (width[shorter], following[shorter]))
    if now == 0:
        return shorter if then > speeds[longer][following[longer]] else longer
    before, after = (speeds[longer][k] for k in (width[longer], following[longer]))
    return shorter if (then - now) / now > (after - before) / after else longer


def _next(table: Sequence[float], width: int) -> int:
    """The next width at which a job is faster; the same if there is none."""
    return next((k for k in range(width + 1, len(table)) if table[k] > table[width]), width)


def _speeds(goodput: GoodputJobs, job: int, gpus: int) -> list[float]:
    """Share of what is left that is done in a second by GPUs, on as few nodes as hold them."""
    left = max(goodput.application(job).ends[-1] - goodput.progress(job), 1e-9)
    table = [0.0]
    for width in range(1, min(goodput.widest(job), gpus) + 1):
        table.append(goodput.rate(job, packed(width, goodput.node_gpus)) / left)
    return table


POLICIES = (Afs(),)
