r"""HADARE-n: how many copies keep every node busy; and a check of fork records.

Statement. n nodes, at most k copies of a job at a time, a copy holds one node. In a round with u
unfinished jobs

1. at most :math:`\min(n, k u)` nodes are busy, and if every job can run on every node and has at
   least n steps left, that many can be;
2. "no node idles in a round while a job that could do a step on it (in a round with all charges
   owed) is unfinished, except in that job's last round" can be kept for every instance if and only
   if :math:`k \ge n`. HadarE as in ``solvers.hadar.copies`` keeps it.

Status. Ours: the published claim of maximal utilisation, made precise; the last round is an exception
because a job with fewer steps left than nodes cannot occupy them all.

Proof.

1. Busy nodes are at most n. Each holds one copy of an unfinished job, and each job has at most k:
   at most k u. Conversely deal out the :math:`\min(n, k u)` first nodes to the jobs in turn; each gets
   at most k, and at least one step for each of its copies is left.
2. Necessity: one job with work for two rounds of all nodes and k < n: by 1 at most k nodes are busy
   in the first round, which is not its last. Sufficiency: let :math:`k \ge n`, let node h be idle in
   a round and let job j, able to do a step on h in a round, not end in it. If j was served, it took
   only as many nodes as finish it, none dispensable, so each of them does a step and j ends, or else
   every free node it can run on; h was free then, since nodes once taken do a step and so are busy,
   and :math:`k \ge n` never limits: h would hold j. If j was not served, serving stopped with no
   free node on which an unserved job can run, so h was taken, by a job whose nodes all do a step.
   Nodes given out afterwards as further copies go to jobs that end in this round, and are not used
   if with them a node would be left without a step that the job was served with. Q.E.D.

The check of records shares nothing with what made them: it reads the instance and the record, in
whole ticks and exact rationals.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import VerificationError
from shadowprice.instances.forks import Forks, total_steps
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance

STATUS = "ours, makes the published claim precise"


def bound(nodes: int, copies: int, unfinished: int) -> int:
    """Largest number of busy nodes in a round, min(n, k u)."""
    return min(nodes, copies * unfinished)


def check(instance: Instance, record: Forks) -> bool:
    """True if a verified record keeps both statements in every round; O(R + rounds x n x jobs)."""
    done = np.zeros(len(instance.workload), dtype=np.int64)
    total = total_steps(instance.workload)
    nodes, order = len(instance.cluster.nodes), np.argsort(record.round, kind="stable")
    first = np.searchsorted(record.round[order], np.arange(record.rounds + 1))
    able = _able(instance, record)
    for number in range(record.rounds):
        rows = order[first[number] : first[number + 1]]
        there = instance.workload.arrival_s <= record.start_s[rows[0]]
        unfinished = there & (done < total)
        busy = np.zeros(nodes, dtype=bool)
        busy[record.node[rows]] = True
        if busy.sum() > bound(nodes, record.max_copies, int(unfinished.sum())):
            return False
        np.add.at(done, record.job[rows], record.steps[rows])
        goes_on = unfinished & (done < total)
        if record.max_copies >= nodes and able[goes_on][:, ~busy].any():
            return False
    return True


def _able(instance: Instance, record: Forks) -> NDArray[np.bool_]:
    """Mask of the nodes on which each job surely does a step in a round, shape (n, nodes).

    A copy is taken to use no more GPUs than the job's gang: one that uses more is only faster.
    """
    workload, cluster = instance.workload, instance.cluster
    width = np.minimum(workload.gpus[:, None], cluster.gpus_per_node[None, :])
    if workload.throughput is None:
        speed = np.full(width.shape, float(TICKS_PER_S))
    else:
        columns = [workload.gpu_types.index(node.gpu_type) for node in cluster.nodes]
        speed = workload.throughput[:, columns]
    free_s = record.round_s - record.restart_s - record.aggregation_s
    able: NDArray[np.bool_] = speed * width / workload.gpus[:, None] * free_s >= 1.0 + 1e-6
    return able


def verify_forks(instance: Instance, record: Forks) -> None:
    """Check a record against its instance, rule by rule; O(R log R).

    Rules: rows name jobs, nodes and copies that exist (``row``); at most as many GPUs as the node
    has, and a type the job has a throughput for (``node``); all copies of a round begin with it, at
    or after the job's arrival, and end within it, rounds being in order and a round apart, so that
    models are averaged between rounds only (``round``); one copy a node, no copy on two nodes,
    at most k copies a job (``copy``); charges are exactly what is owed (``overhead``); a copy holds its
    node exactly as long as its steps take, rounded up to the grid (``steps``); the steps of a
    job's copies add up to exactly its work (``work``).

    Raises
    ------
    VerificationError
        Naming the rule, the row and what was expected.
    """
    _check_rows(instance, record)
    _check_nodes(instance, record)
    _check_rounds(instance, record)
    _check_copies(record, len(instance.workload))
    _check_overheads(record, len(instance.cluster.nodes))
    _check_steps(instance, record)
    done = np.zeros(len(instance.workload), dtype=object)
    np.add.at(done, record.job, record.steps.astype(object))
    for job, (steps, work) in enumerate(zip(done, total_steps(instance.workload), strict=True)):
        if steps != work:
            raise VerificationError(
                f"forks: work: job {instance.workload.id[job]!r} did {steps} steps, expected {work}"
            )


def _refuse(rule: str, bad: NDArray[np.bool_], record: Forks, expected: str) -> None:
    """Raise for the first bad row, if any."""
    rows = np.flatnonzero(bad)
    if len(rows):
        row = int(rows[0])
        told = ", ".join(f"{name} {getattr(record, name)[row]}" for name in record.columns())
        raise VerificationError(f"forks: {rule}: row {row} ({told}), expected {expected}")


def _check_rows(instance: Instance, record: Forks) -> None:
    jobs, nodes = len(instance.workload), len(instance.cluster.nodes)
    number = record.copy // max(jobs, 1)
    _refuse("row", (record.job < 0) | (record.job >= jobs), record, f"a job from 0 to {jobs - 1}")
    _refuse(
        "row", (record.node < 0) | (record.node >= nodes), record, f"a node from 0 to {nodes - 1}"
    )
    wrong = (record.copy - number * jobs != record.job) | (number < 1)
    _refuse(
        "row", wrong | (number > record.max_copies), record, f"copy {jobs} i + job, i from 1 to k"
    )
    for name in ("start_s", "end_s", "overhead_s"):
        ticks = getattr(record, name) * TICKS_PER_S
        with np.errstate(invalid="ignore"):
            off = ~(np.isfinite(ticks) & (ticks >= 0) & (np.floor(ticks) == ticks))
        _refuse("row", off, record, f"{name} a multiple of 2**-20 s, at least 0")


def _check_nodes(instance: Instance, record: Forks) -> None:
    cluster, workload = instance.cluster, instance.workload
    room = cluster.gpus_per_node[record.node]
    _refuse("node", (record.gpus < 1) | (record.gpus > room), record, "1 to all GPUs of the node")
    if workload.throughput is not None:
        columns = np.array([workload.gpu_types.index(name) for name in cluster.gpu_types])
        kind = columns[cluster.type_of_node[record.node]]
        unable = ~(workload.throughput[record.job, kind] > 0)
        _refuse("node", unable, record, "a GPU type the job has a throughput for")


def _check_rounds(instance: Instance, record: Forks) -> None:
    begin = np.full(record.rounds, np.inf)
    _refuse("round", record.round < 0, record, "a round from 0")
    np.minimum.at(begin, record.round, record.start_s)
    _refuse("round", record.start_s != begin[record.round], record, "the beginning of its round")
    early = record.start_s < instance.workload.arrival_s[record.job]
    _refuse("round", early, record, "a start at or after the job's arrival")
    late = record.end_s > record.start_s + record.round_s
    _refuse("round", late, record, f"an end within the round of {record.round_s} s")
    # Also refuses a missing round, whose beginning is infinite.
    apart = np.isfinite(begin[1:]) & (begin[1:] >= begin[:-1] + record.round_s)
    near = np.flatnonzero(~apart)
    if len(near):
        raise VerificationError(
            f"forks: round: round {near[0] + 1} begins at {begin[near[0] + 1]} s, expected at least "
            f"{record.round_s} s after round {near[0]}, at {begin[near[0]]} s"
        )


def _check_copies(record: Forks, jobs: int) -> None:
    if record.max_copies < 1:
        raise VerificationError(f"forks: copy: max_copies is {record.max_copies}, expected >= 1")
    for name, expected in (("node", "one copy a node"), ("copy", "a copy on one node a round")):
        column = getattr(record, name)
        order = np.lexsort((column, record.round))
        again = np.zeros(len(record), dtype=bool)
        again[order[1:]] = (np.diff(column[order]) == 0) & (np.diff(record.round[order]) == 0)
        _refuse("copy", again, record, expected)
    # Copies are numbered from 1 to k and differ, so that no job has more than k.


def _several(record: Forks) -> NDArray[np.bool_]:
    """True for each row whose job has several copies in its round."""
    order = np.lexsort((record.job, record.round))
    job, number = record.job[order], record.round[order]
    same = (np.diff(job) == 0) & (np.diff(number) == 0)
    several = np.zeros(len(record), dtype=bool)
    several[order] = np.append(same, False) | np.append(False, same)
    return several


def _check_overheads(record: Forks, nodes: int) -> None:
    owed = np.zeros(len(record))
    if len(record):
        owed += np.where(_several(record), record.aggregation_s, 0.0)
        order = np.lexsort((record.round, record.node))
        node, job = record.node[order], record.job[order]
        changed = (np.diff(node) == 0) & (np.diff(job) != 0)
        owed[order[1:]] += np.where(changed, record.restart_s, 0.0)
    _refuse("overhead", record.overhead_s != owed, record, "exactly the charges owed")


def _check_steps(instance: Instance, record: Forks) -> None:
    _refuse("steps", record.steps < 1, record, "at least one step")
    workload, cluster = instance.workload, instance.cluster
    ticks = ((record.end_s - record.start_s - record.overhead_s) * TICKS_PER_S).tolist()
    rates: dict[tuple[int, int, int], Fraction] = {}
    bad = np.zeros(len(record), dtype=bool)
    kinds = cluster.type_of_node[record.node].tolist()
    columns = zip(
        record.job.tolist(), kinds, record.gpus.tolist(), record.steps.tolist(), ticks, strict=True
    )
    for row, (job, kind, gpus, steps, held) in enumerate(columns):
        key = (job, kind, gpus)
        if key not in rates:
            gang = int(workload.gpus[job])
            rates[key] = Fraction(gpus, gang) * _gang_rate(instance, job, cluster.gpu_types[kind])
        rate = rates[key]
        bad[row] = -(-steps * rate.denominator // rate.numerator) != held
    _refuse("steps", bad, record, "exactly the time its steps take, rounded up to the grid")


def _gang_rate(instance: Instance, job: int, gpu_type: str) -> Fraction:
    """Steps per tick of the whole gang."""
    workload = instance.workload
    if workload.throughput is None:
        return Fraction(1)
    rate = float(workload.throughput[job, workload.gpu_types.index(gpu_type)])
    return Fraction(rate) / TICKS_PER_S
