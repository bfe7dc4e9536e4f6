r"""GAN-match: greedy packing has half of the best gain; introspection never ends below time slicing.

Statement.

1. Jobs, and for some pairs a gain :math:`v_{ij} > 0`. Greedy takes the pair with the largest gain
   among jobs that have no partner yet, until none is left. Its total gain is at least half of the
   largest total gain of any matching, and no better constant holds (:func:`tight_family`).
2. Let a job :math:`j` alone on GPUs :math:`P` work at rate :math:`a_j > 0`, with another at :math:`r_j`,
   rates that do not change. *Time slicing* gives turns on :math:`P`: its throughput, in units of what each job
   does alone, averages :math:`\sum_j f_j \le 1` for shares of time :math:`f_j`, whoever they are. A pair that
   introspection keeps after its trial on :math:`P` has :math:`r_i / a_i + r_j / a_j > 1`. So at every moment,
   pairs under trial aside, the normalised throughput of all jobs, each GPU counted once, is at least the number
   of GPUs in use, and time slicing never gets more than this number out of them.
3. A trial that is reverted costs less than its quantum :math:`q` times the GPUs of the pair, against turns.
   Two jobs are tried at most once on the same GPUs, so the loss is finite whatever the rates: at most
   :math:`q \, g` GPU-seconds for each reverted trial of gangs of :math:`g`.

Overheads are left aside on both sides: a pair pays for one restart when it is made, turns pay one
for every turn.

Status. 1 classic (Avis, Networks 13, 1983); 2 and 3 ours, immediate.

Proof.

1. Charge every pair e of a best matching M to the pair of greedy's G that first made e impossible, e
   itself if greedy took it. It was chosen before e was refused, so its gain is at least that of e. It
   has two jobs, each in at most one pair of M, so it is charged at most twice:
   :math:`v(M) \le 2 v(G)`. In a path with gains :math:`1, 1 + \epsilon, 1` greedy takes the middle, the
   best takes both ends: :math:`(1 + \epsilon) / 2`.
2. In turns at most one of the jobs holds P at any time and makes 1 of it. The pair's sum is what was
   measured in the trial, which the rule compares with 1; rates do not change, and a pair that
   begins to run on other servers is tried anew. Jobs without a partner make 1 of their GPUs.
3. A reverted pair makes at least 0 of its g GPUs for q seconds, turns at most 1. A refused pair is
   remembered by both. Q.E.D.

Check. :func:`check` compares pairs with networkx's matching, exactly; :func:`check_introspection` reads the true
rates of the instance, which the policy never does, and looks for a pair that outlived its trial
and makes no more than turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICK_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE, Schedule
from shadowprice.solvers.gandiva.exact import Gains, Pair, best_pairs

STATUS = "classic; ours for introspection"

KNOWS: frozenset[Feature] = frozenset(
    {
        Feature.RATES,  # shares are of the rate that a job has alone
        Feature.TYPES,  # of the slowest type that a gang is on
        Feature.CHARGES,  # are left aside on both sides
        Feature.SHARING,
        Feature.SPREAD,  # slows a job alone and beside another alike
        Feature.WIDTHS,  # who has grown shares with nobody
    }
)
"""Of 2 and 3; 1 is about gains alone."""


def bound(gains: Gains) -> Fraction:
    """Least total gain that greedy must have: half of the best."""
    return _gain(gains, best_pairs(gains)) / 2


def check(gains: Gains, chosen: Sequence[Pair]) -> bool:
    """True if pairs, such as greedy's, are disjoint and have at least half of the best gain."""
    paired = [job for pair in chosen for job in pair]
    return len(paired) == len(set(paired)) and _gain(gains, chosen) >= bound(gains)


def _gain(gains: Gains, pairs: Sequence[Pair]) -> Fraction:
    return sum((Fraction(gains[pair]) for pair in pairs), Fraction(0))


def tight_family(paths: int, epsilon: float) -> dict[tuple[int, int], float]:
    """Disjoint paths of four jobs on which greedy has (1 + epsilon) / 2 of the best gain."""
    gains: dict[tuple[int, int], float] = {}
    for k in range(paths):
        a, b, c, d = range(4 * k, 4 * k + 4)
        gains |= {(a, b): 1.0, (b, c): 1.0 + epsilon, (c, d): 1.0}
    return gains


@dataclass(frozen=True)
class Spell:
    """Two jobs on the same GPUs for some time.

    Parameters
    ----------
    jobs : (int, int)
        Rows of the workload.
    start_s, end_s : float
    gain : float
        True sum of the shares of their own rates; 1 is what turns make.
    """

    jobs: tuple[int, int]
    start_s: float
    end_s: float
    gain: float


def spells(instance: Instance, schedule: Schedule) -> Iterator[Spell]:
    """All runs of pairs in a schedule with their true gains; O(rows log rows).

    Raises
    ------
    InputError
        If the instance says more than the theorem knows.
    """
    require(instance, KNOWS, "GAN-match")
    runs: dict[tuple[int, float], list[int]] = {}
    for row in np.flatnonzero(schedule.partner != ALONE).tolist():
        if schedule.job[row] < schedule.partner[row]:
            runs.setdefault((int(schedule.job[row]), float(schedule.start_s[row])), []).append(row)
    for (job, start_s), rows in sorted(runs.items()):
        partner, nodes = int(schedule.partner[rows[0]]), schedule.node[rows].tolist()
        gpu_types = {int(instance.cluster.type_of_node[node]) for node in nodes}
        gain = _share(instance, job, partner, gpu_types) + _share(instance, partner, job, gpu_types)
        yield Spell((job, partner), start_s, float(schedule.end_s[rows[0]]), gain)


def check_introspection(instance: Instance, schedule: Schedule, quantum_s: float) -> bool:
    """True if no two jobs shared GPUs for longer than a trial without beating time slicing.

    Raises
    ------
    InputError
        If the instance says more than the theorem knows.
    """
    return all(
        spell.gain > 1.0 or spell.end_s - spell.start_s <= quantum_s + TICK_S
        for spell in spells(instance, schedule)
    )


def _share(instance: Instance, job: int, partner: int, gpu_types: set[int]) -> float:
    """Part of its own rate that a job keeps beside another on GPUs of these types."""
    alone_s = max(float(instance.plain_processing_s[job, gpu_type]) for gpu_type in gpu_types)
    beside_s = max(
        float(instance.shared_runs.run_s(job, partner, gpu_type)) for gpu_type in gpu_types
    )
    return alone_s / beside_s
