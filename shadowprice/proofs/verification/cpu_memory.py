"""CPUs and memory that jobs ask for: what every row of a schedule holds, and what nodes have.

Computed from columns of the workload and of the nodes, and not by the code that gives them out. A job holds of
what it asks for the part of its GPUs that are on the node, CPUs rounded up to thousandths and memory down to MiB; of
what it does not ask for the share of these GPUs, or of its part of one, rounded down; nothing if jobs may share GPUs.
Nodes that give out whole CPUs round both accordingly. Where runs are given some, by profiles, rows say how much, and
:mod:`shadowprice.proofs.verification.speeds` adds it up; here it is no less than what jobs ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.workload import Workload

_MILLI = 1000
_MIB_PER_GB = 1e9 / 2**20
_NOISE = 1e-6
"""Of a thousandth, or of a MiB: what rounding may have added to a number that was whole."""
MILLIONTH = 1e-6
"""Of a CPU, or of a GB: what may be lacking where runs are given both."""

Whole = NDArray[np.int64]


class RowCpuMemory:
    """CPUs in thousandths and memory in MiB that every row holds; O(R) for R rows.

    Attributes
    ----------
    cpus, memory : ndarray of int, shape (R,)
    node_cpus, node_memory : ndarray of int, shape (nodes,)
        All that each node has.
    """

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        s, jobs, nodes = schedule, instance.workload, instance.cluster.nodes
        cpus = np.array([node.cpus for node in nodes], dtype=np.float64)
        memory_gb = np.array([node.memory_gb for node in nodes], dtype=np.float64)
        whole = np.array([node.whole_cpus for node in nodes], dtype=np.bool_)[s.node]
        size = np.array([node.gpus for node in nodes], dtype=np.int64)[s.node]
        self.node_cpus = _down(cpus * _MILLI)
        self.node_memory = _down(memory_gb * _MIB_PER_GB)
        part = s.gpus / jobs.gpus[s.job]
        by_share = instance.sharing_rates is None
        asked = np.ceil(jobs.cpus[s.job] * _MILLI * part - _NOISE).astype(np.int64)
        asked = np.where(whole, -(-asked // _MILLI) * _MILLI, asked)
        held, of = s.gpus * jobs.gpu_milli[s.job], size * _MILLI
        share = self.node_cpus[s.node] * held // of
        share = np.where(whole, np.maximum(share // _MILLI, 1) * _MILLI, share)
        self.cpus: Whole = np.where(jobs.cpus[s.job] > 0, asked, share * by_share)
        asked = _down(jobs.memory_gb[s.job] * _MIB_PER_GB * part)
        share = self.node_memory[s.node] * held // of
        self.memory: Whole = np.where(jobs.memory_gb[s.job] > 0, asked, share * by_share)


def any_asked(jobs: Workload) -> bool:
    """True if a job asks for CPUs or memory."""
    return bool((jobs.cpus > 0).any() or (jobs.memory_gb > 0).any())


def too_much(instance: Instance, schedule: Schedule) -> tuple[int, str] | None:
    """The first row, in order of node and time, with which a node gives more than it has; O(R log R).

    Returns
    -------
    (int, str) or None
        The row and what is wrong with it.
    """
    s, n, held = schedule, len(schedule), RowCpuMemory(instance, schedule)
    node, time = np.concatenate((s.node, s.node)), np.concatenate((s.end_s, s.start_s))
    # At one node and time CPUs and memory are given back before others are taken.
    order = np.lexsort((np.arange(2 * n) >= n, time, node))
    for name, mine, most in (
        ("thousandths of a CPU", held.cpus, held.node_cpus),
        ("MiB of memory", held.memory, held.node_memory),
    ):
        total, room = np.cumsum(np.concatenate((-mine, mine))[order]), most[node[order]]
        if (total > room).any():
            k = int((total > room).argmax())
            say = f"{total[k]} {name} held on the node at {time[order[k]]} s, it has {room[k]}"
            return int(order[k] % n), say
    return None


def too_little(instance: Instance, schedule: Schedule) -> tuple[int, str] | None:
    """The first row that was given less than its job asks for, by more than a millionth; O(R)."""
    s, jobs = schedule, instance.workload
    given = (("CPUs", s.cpus, jobs.cpus), ("GB of memory", s.memory_gb, jobs.memory_gb))
    for name, held, asked in given:
        assert held is not None
        least = asked[s.job] * s.gpus / jobs.gpus[s.job]
        less = held < least - MILLIONTH
        if less.any():
            k = int(less.argmax())
            return k, f"was given {held[k]:g} {name}, its job asks for at least {least[k]:g} there"
    return None


def _down(values: NDArray[np.float64]) -> Whole:
    return np.asarray(np.floor(values + _NOISE).astype(np.int64))
