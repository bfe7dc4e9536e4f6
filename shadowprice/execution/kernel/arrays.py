"""Arrays that the compiled loop works on: one row a job, a node, a gang size, a piece."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance

NOBODY = -1
"""No job, no piece, no node."""

_LINE = 64
"""Bytes of a line of the cache."""


JOB = np.dtype(
    [
        ("level", "f8"),
        ("key", "f8"),
        ("tie", "f8"),
        ("keyed", "i8"),  # the last decision in which level, key and tie were computed
        ("gpus", "i8"),
        ("size", "i8"),  # row of its gang size
        ("pieces", "i8"),  # the first of those it holds
        ("step_s", "f8"),  # attained time at which the key steps next
        ("before", "i8"),  # neighbours among waiting jobs, in the order they began to wait
        ("after", "i8"),
        ("running", "i8"),  # whether it runs
        ("start_s", "f8"),  # of the present run, as are the next three
        ("end_s", "f8"),
        ("progress_from_s", "f8"),
        ("overhead_s", "f8"),
        ("left_s", "f8"),
        ("attained_s", "f8"),
        ("crossing_s", "f8"),  # when it attains that if it goes on running
        ("first_start_s", "f8"),
        ("debt_s", "f8"),  # owed when it resumes
        ("arrival_s", "f8"),
        ("weight", "f8"),
        ("processing_s", "f8"),
        ("rank", "i8"),  # position among the jobs of its gang size, in order of arrival
    ],
    align=True,
)
"""Jobs, three lines of the cache each; by the first one orders of jobs are told."""

SIZE = np.dtype(
    [
        ("gpus", "i8"),
        ("best", "i8"),  # the first of its waiting jobs, NOBODY if none waits
        ("refused", "i8"),  # the last decision in which a gang of this size found no place
        ("running", "i8"),  # how many are in its list of running jobs
        ("listed", "i8"),  # where that list begins, and the stack of refused jobs
        ("unsettled", "i8"),  # how many of them have a key with steps to come
        ("split", "i8"),  # how many of them come before a certain waiting job
        ("pulled", "i8"),  # how many of its waiting jobs are in a prefix of the order
        ("first", "i8"),  # where its heap of waiting jobs begins
        ("waiting", "i8"),  # and how many are in it
        (
            "stacked",
            "i8",
        ),  # and how many in the stack of those that were chosen, but found no place
        ("room", "i8"),  # of that stack
        ("tree", "i8"),  # where its tree of times left begins, in trees
        ("leaves", "i8"),  # of that tree
        ("restart_s", "f8"),  # charge for resuming
        ("tenant", "i8"),  # whose quota counts, NOBODY for none
        ("order", "i8"),  # where its pools begin, best first, in orders
        ("pools", "i8"),  # and how many they are
        ("by_last", "i8"),  # list of gang sizes: those of running jobs, by the last of these
    ],
    align=True,
)
"""Gang sizes, in increasing order; with quotas or pools one row for each tenant and order of pools of a size."""

NODE = np.dtype(
    [
        ("free", "i8"),
        ("gpus", "i8"),
        ("stacked", "i8"),
        ("by_size", "i8"),
        ("taken", "i8"),
        ("pool", "i8"),
    ]
)
"""Nodes; ``stacked`` and ``by_size`` are lists of nodes: the stacks of count, and the largest first."""

POOL = np.dtype(
    [
        ("height", "i8"),  # end of its stack of nodes
        ("whole_gpus", "i8"),  # of nodes that are wholly free
        ("largest_node", "i8"),
        ("row", "i8"),  # of its nodes by free GPUs
        ("free_gpus", "i8"),
        ("gpus", "i8"),
        ("room", "i8"),  # GPUs left in a decision under construction
    ]
)
"""Pools of GPUs that are alike to the jobs: GPU types, or one."""

TENANT = np.dtype(
    [
        ("held", "i8"),
        ("quota", "i8"),
        ("began", "i8"),  # the last decision in which a run of its began
        ("left", "i8"),  # what a decision under construction leaves of the quota
    ]
)

PIECE = np.dtype([("node", "i8"), ("gpus", "i8"), ("next", "i8")])

ENDED = np.dtype([("job", "i8"), ("decision", "i8")])
"""Jobs that ended, and the number of the decision that saw it first."""

DECIDED = np.dtype([("chosen", "i8"), ("stopped", "i8"), ("passed", "i8")])
"""Three lists of jobs of a decision under construction."""

LAST = np.dtype([("held_at", "i8"), ("held_count", "i8"), ("turn", "i8")])
"""Last run of each job: where the pieces are that it held, how many, and its place among all starts."""

PACE = np.dtype([("whole", "i8"), ("done", "i8"), ("rate", "f8")])
"""A job in a pool: ticks that all of it takes (0: it cannot run), progress there, speed against its best pool."""

QUOTA = np.dtype([("start_s", "f8"), ("gpus", "i8")])
"""A tenant in a period, which begins then."""

END = np.dtype([("end_s", "f8"), ("job", "i8")])
"""Ends of runs; of a run that was stopped it is in vain."""

ROW = np.dtype(
    [
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("overhead_s", "f8"),
        ("job", "i4"),
        ("node", "i4"),
        ("gpus", "i4"),
    ],
    align=True,
)
"""Rows of the schedule."""

RUN = np.dtype(
    [
        ("now_s", "f8"),
        ("wake_s", "f8"),
        ("round_s", "f8"),
        ("first_round_s", "f8"),
        ("start_charge_s", "f8"),
        ("migration_s", "f8"),
        ("quantum_s", "f8"),
        ("rule", "i8"),
        ("placement", "i8"),
        ("knows_durations", "i8"),  # whether keys know how long jobs run
        ("changes", "i8"),  # whether keys change while jobs run, beside steps
        ("disorders", "i8"),  # and the order of running jobs of one gang size with them
        ("steps", "i8"),
        ("levels", "i8"),
        ("by_first_start", "i8"),
        ("charges", "i8"),
        ("total_gpus", "i8"),
        ("free_gpus", "i8"),
        ("words", "i8"),  # of the set of nodes of each number of free GPUs
        ("counts", "i8"),  # numbers of free GPUs that a node may have, from 0
        ("spare_piece", "i8"),  # the first of the pieces that nobody holds
        ("admitted", "i8"),
        ("waiting", "i8"),
        ("waiting_gpus", "i8"),
        ("head", "i8"),  # first and last of the waiting jobs
        ("tail", "i8"),
        ("ending", "i8"),  # length of the heap of ends
        ("running", "i8"),
        ("listed_from", "i8"),  # where the one list of running jobs begins
        ("listed", "i8"),  # and where it ends; jobs that ended are in it
        ("crossing_s", "f8"),  # the first time at which the key of a running job may step
        ("crossing", "i8"),  # the job whose key does, NOBODY if it is not known
        ("unsettled_gpus", "i8"),  # of all jobs that have arrived and whose key has steps to come
        ("virtual_now", "i8"),  # time of the virtual machine [1/m tick]
        ("virtual", "i8"),  # jobs that it has not completed
        ("joined", "i8"),  # jobs that have joined it
        ("released", "i8"),  # jobs that it has completed
        ("served", "i8"),  # and those of them that have started
        ("asks", "i8"),  # whether predictions are asked for when jobs arrive
        ("asked", "i8"),  # and have been for the decision that is due
        ("ended", "i8"),  # jobs that ended since they were last asked for
        ("rows", "i8"),
        ("decisions", "i8"),
        ("faulty", "i8"),  # a job whose key is no number
        ("windowed", "i8"),  # whether the run ends when a window of jobs is complete
        ("first_wanted", "i8"),  # that window
        ("beyond_wanted", "i8"),
        ("wanted", "i8"),  # jobs of it that are not complete
        ("latest_s", "f8"),  # when the run is given up
        ("starts", "i8"),  # runs that have begun, where it is looked at in which order
        ("typed", "i8"),  # whether there are several pools
        ("stops", "i8"),  # whether the rule stops jobs
        ("anywhere", "i8"),  # whether as many free GPUs as a gang has are a place for it
        ("period", "i8"),  # of the quotas of now
        ("acted", "i8"),  # the last decision in which a run began or stopped
        ("idle", "i8"),  # decisions since in which nothing could
    ],
    align=True,
)

COUNT, CONSOLIDATE, PACK = range(3)
"""Placements."""

HEAD_BLOCKS, SKIPS, PREEMPTS, FILLS, BACKFILLS, RELEASES = range(6)
"""Rules."""


class Arrays(NamedTuple):
    """All that a run changes.

    ``run`` has one row. ``heaps`` are heaps of waiting jobs, one a gang size, ``stacks`` stacks of those of
    them that were refused, first on top; ``listed`` lists of running jobs, ``sorting`` room to sort them;
    ``ends`` a heap of ends of runs; ``decided`` jobs of a decision under construction; ``with_free`` the number of
    nodes by free GPUs, ``sets`` these nodes themselves, bit by bit; ``of_size`` the jobs of each gang size in
    order of arrival, ``trees`` the least time left of those that wait; ``works`` virtual works [GPU-ticks]
    and ``ended`` jobs that a predictor has not learned; ``last`` runs of each job, and ``held`` the pieces of
    these, which cost nothing to come back to.

    ``limits`` is empty where GPUs are all alike and nobody has a quota: by its length, which is a part of its
    type, there is a variant of the loop without code for these. In the other ``orders`` are pools, best first,
    of each row of ``sizes``; ``quotas`` are by period and tenant, ``paces`` by job and pool.
    """

    run: NDArray[Any]
    jobs: NDArray[Any]
    sizes: NDArray[Any]
    nodes: NDArray[Any]
    pieces: NDArray[Any]
    rows: NDArray[Any]
    heaps: NDArray[np.int64]
    stacks: NDArray[np.int64]
    listed: NDArray[np.int64]
    sorting: NDArray[np.int64]
    ends: NDArray[Any]
    decided: NDArray[Any]
    with_free: NDArray[np.int64]
    sets: NDArray[np.int64]
    of_size: NDArray[np.int64]
    trees: NDArray[np.float64]
    works: NDArray[np.int64]
    ended: NDArray[Any]
    held: NDArray[Any]
    last: NDArray[Any]
    limits: tuple[int, ...]
    pools: NDArray[Any]
    orders: NDArray[np.int64]
    tenants: NDArray[Any]
    quotas: NDArray[Any]
    paces: NDArray[Any]


@dataclass(frozen=True)
class HoldingLimits:
    """Limits of an instance beside the number of its GPUs: where jobs may run, and how much tenants may hold.

    Attributes
    ----------
    pool_of_node : ndarray of int, shape (nodes,)
    tenant, order : ndarray of int, shape (n,)
        Tenant of each job, NOBODY without quotas, and which order of pools it has.
    orders, begins, lengths : ndarray of int
        Orders of pools one behind the other, where each begins, and how long it is.
    tenants : ndarray
        Records as :data:`TENANT`, at time 0.
    quotas, paces : ndarray
        Records as :data:`QUOTA` by period and tenant, as :data:`PACE` by job and pool.
    """

    pool_of_node: NDArray[np.int64]
    tenant: NDArray[np.int64]
    order: NDArray[np.int64]
    orders: NDArray[np.int64]
    begins: NDArray[np.int64]
    lengths: NDArray[np.int64]
    tenants: NDArray[Any]
    quotas: NDArray[Any]
    paces: NDArray[Any]

    @classmethod
    def none(cls, instance: Instance) -> HoldingLimits:
        """One pool, and no quotas."""
        return cls(
            pool_of_node=np.zeros(len(instance.cluster.nodes), dtype=np.int64),
            tenant=np.full(1, NOBODY),
            order=np.zeros(1, dtype=np.int64),
            orders=np.zeros(1, dtype=np.int64),
            begins=np.zeros(1, dtype=np.int64),
            lengths=np.ones(1, dtype=np.int64),
            tenants=np.zeros(0, dtype=TENANT),
            quotas=np.zeros(0, dtype=QUOTA),
            paces=np.zeros(0, dtype=PACE),
        )

    @classmethod
    def of(cls, instance: Instance) -> HoldingLimits:
        """Pools and quotas as an instance has them."""
        found = cls.none(instance)
        if instance.workload.throughput is not None:
            found = found._with_pools(instance)
        quotas = instance.cluster.quotas
        if quotas is None:
            return found
        tenants = np.zeros(len(quotas.tenants), dtype=TENANT)
        tenants["quota"], tenants["began"] = quotas.gpus[0], NOBODY
        place = {name: place for place, name in enumerate(quotas.tenants)}
        by_period = np.zeros((len(quotas.start_s), len(tenants)), dtype=QUOTA)
        by_period["start_s"] = np.array(quotas.start_s)[:, None]
        by_period["gpus"] = quotas.gpus
        return replace(
            found,
            tenant=np.array([place[name] for name in instance.workload.tenant], dtype=np.int64),
            tenants=tenants,
            quotas=by_period.reshape(-1),
        )

    def _with_pools(self, instance: Instance) -> HoldingLimits:
        """GPU types as pools, of each job the fastest first, those on which it can run."""
        run_s = instance.processing_s
        usable = np.isfinite(run_s)
        fastest_first = np.argsort(run_s, axis=1, kind="stable")
        behind = np.arange(run_s.shape[1]) >= usable.sum(axis=1)[:, None]
        rows = np.where(behind, NOBODY, fastest_first)
        kinds, order = np.unique(rows, axis=0, return_inverse=True)
        lengths = (kinds != NOBODY).sum(axis=1)
        paces = np.zeros(run_s.shape, dtype=PACE)
        paces["whole"] = np.where(usable, run_s, 0.0) * TICKS_PER_S
        paces["rate"] = instance.shortest_s[:, None] / run_s
        return replace(
            self,
            pool_of_node=instance.cluster.type_of_node.astype(np.int64),
            order=order.reshape(-1),
            orders=kinds[kinds != NOBODY],
            begins=np.cumsum(lengths) - lengths,
            lengths=lengths,
            paces=paces.reshape(-1),
        )


NODES_A_WORD = 32
"""Bits of a word of a set of nodes that are used; so many are exact as a floating-point number."""


def arrays_of(
    instance: Instance,
    rows: int,
    *,
    in_sets: bool,
    backfills: bool,
    releases: bool,
    limited: bool = False,
) -> Arrays:
    """Arrays of an instance before its first event.

    Parameters
    ----------
    rows : int
        Rows of the schedule that there is room for at a time.
    in_sets : bool
        Whether nodes are looked for by their free GPUs, as consolidated placements do.
    backfills : bool
        Whether waiting jobs are looked for by the time they have left.
    releases : bool
        Whether a virtual machine says in which order they start.
    limited : bool
        Whether there are several pools or quotas.
    """
    overheads, n = instance.overheads, len(instance.workload)
    gpus = instance.cluster.gpus_per_node
    total, most = int(gpus.sum()), len(gpus)
    limits = HoldingLimits.of(instance) if limited else HoldingLimits.none(instance)
    sizes, which, counts = _sizes(instance, total, limits, backfills=backfills)
    room_listed = int(sizes["room"].sum())
    moves = overheads.migration_s > 0
    room = np.minimum(instance.workload.gpus, most) if moves else np.zeros(n, dtype=np.int64)
    held = np.zeros(int(room.sum()), dtype=PIECE)
    last = np.zeros(n if moves or instance.until_complete is not None else 0, dtype=LAST)
    if moves:
        last["held_at"] = np.cumsum(room) - room
    of_size = np.argsort(which, kind="stable")
    jobs = _jobs(instance, which)
    jobs["rank"][of_size] = np.arange(n) - np.repeat(np.cumsum(counts) - counts, counts)
    return Arrays(
        run=_run(instance, gpus, limits),
        jobs=jobs,
        sizes=sizes,
        nodes=_nodes(gpus, limits.pool_of_node),
        pieces=_pieces(2 * total),
        rows=np.zeros(rows + 2 * total, dtype=ROW),
        heaps=np.zeros(n, dtype=np.int64),
        stacks=np.zeros(room_listed, dtype=np.int64),
        listed=np.zeros(max(4 * total, room_listed), dtype=np.int64),
        sorting=np.zeros(max(4 * total, room_listed), dtype=np.int64),
        ends=np.zeros(4 * total, dtype=END),
        decided=np.zeros(total, dtype=DECIDED),
        with_free=_with_free(gpus, limits.pool_of_node),
        sets=_sets(gpus, limits.pool_of_node) if in_sets else np.zeros(0, dtype=np.int64),
        of_size=of_size,
        trees=np.full(2 * int(sizes["leaves"].sum()), np.inf),
        works=np.zeros(n if releases else 0, dtype=np.int64),
        ended=np.zeros(n if releases else 0, dtype=ENDED),
        held=held,
        last=last,
        limits=(1,) if limited else (),
        pools=_pools(gpus, limits.pool_of_node),
        orders=limits.orders,
        tenants=limits.tenants,
        quotas=limits.quotas,
        paces=limits.paces,
    )


def _sizes(
    instance: Instance, total: int, limits: HoldingLimits, *, backfills: bool
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Gang sizes, at least one; which of them each job has, and how many jobs each has."""
    orders, tenants = len(limits.begins), len(limits.tenants) + 1
    kinds = instance.workload.gpus
    if orders > 1 or tenants > 1:
        kinds = (kinds * tenants + limits.tenant + 1) * orders + limits.order
    kinds, which = np.unique(kinds, return_inverse=True)
    kinds, order = np.divmod(kinds, orders)
    gangs, tenant = np.divmod(kinds, tenants)
    counts = np.bincount(which, minlength=len(gangs))
    sizes = np.zeros(max(len(gangs), 1), dtype=SIZE)
    sizes["refused"] = sizes["best"] = NOBODY
    mine = sizes[: len(gangs)]
    mine["gpus"], mine["tenant"] = gangs, tenant - 1
    mine["order"], mine["pools"] = limits.begins[order], limits.lengths[order]
    mine["first"] = np.cumsum(counts) - counts
    mine["room"] = np.minimum(counts, total // gangs)
    mine["listed"] = np.cumsum(mine["room"]) - mine["room"]
    mine["restart_s"] = [instance.overheads.restart_charge_s(g) for g in gangs.tolist()]
    if backfills:
        mine["leaves"] = [1 << (int(count) - 1).bit_length() for count in counts]
        mine["tree"] = 2 * (np.cumsum(mine["leaves"]) - mine["leaves"])
    return sizes, which, counts


def _run(instance: Instance, gpus: NDArray[np.int64], limits: HoldingLimits) -> NDArray[Any]:
    run = np.zeros(1, dtype=RUN)
    overheads = instance.overheads
    run["wake_s"] = run["crossing_s"] = np.inf
    run["start_charge_s"], run["migration_s"] = overheads.start_s, overheads.migration_s
    run["charges"] = not overheads.free
    run["total_gpus"] = run["free_gpus"] = gpus.sum()
    run["counts"], run["words"] = gpus.max() + 1, -(-len(gpus) // NODES_A_WORD)
    run["typed"], run["acted"] = len(set(limits.pool_of_node.tolist())) > 1, NOBODY
    run["head"] = run["tail"] = run["faulty"] = run["crossing"] = NOBODY
    window = instance.until_complete
    if window is not None:
        run["windowed"], run["latest_s"] = 1, window.latest_s
        run["first_wanted"], run["beyond_wanted"] = window.first, window.last
        run["wanted"] = window.last - window.first
    return run


def _jobs(instance: Instance, size: NDArray[np.int64]) -> NDArray[Any]:
    workload = instance.workload
    jobs = _in_lines(len(workload), JOB)
    jobs["arrival_s"], jobs["weight"], jobs["gpus"] = (
        workload.arrival_s,
        workload.weight,
        workload.gpus,
    )
    jobs["processing_s"] = jobs["left_s"] = instance.shortest_s
    jobs["first_start_s"] = jobs["step_s"] = jobs["crossing_s"] = np.inf
    jobs["size"], jobs["keyed"] = size, NOBODY
    for name in ("pieces", "before", "after"):
        jobs[name] = NOBODY
    return jobs


def _in_lines(count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Zeros that begin where a line of the cache does."""
    assert kind.itemsize % _LINE == 0
    room = np.zeros(count * kind.itemsize + _LINE, dtype=np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + count * kind.itemsize].view(kind)


def _rows(gpus: NDArray[np.int64], pool_of_node: NDArray[np.int64]) -> int:
    """Numbers of free GPUs, of all pools together."""
    return (int(pool_of_node.max()) + 1) * (int(gpus.max()) + 1)


def _with_free(gpus: NDArray[np.int64], pool_of_node: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of nodes by pool and free GPUs, all free."""
    row = pool_of_node * (int(gpus.max()) + 1) + gpus
    return np.bincount(row, minlength=_rows(gpus, pool_of_node)).astype(np.int64)


def _sets(gpus: NDArray[np.int64], pool_of_node: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nodes by pool and free GPUs, all free, as bits."""
    words, nodes = -(-len(gpus) // NODES_A_WORD), np.arange(len(gpus))
    row = pool_of_node * (int(gpus.max()) + 1) + gpus
    sets = np.zeros(_rows(gpus, pool_of_node) * words, dtype=np.int64)
    np.bitwise_or.at(sets, row * words + nodes // NODES_A_WORD, 1 << nodes % NODES_A_WORD)
    return sets


def _nodes(gpus: NDArray[np.int64], pool_of_node: NDArray[np.int64]) -> NDArray[Any]:
    nodes = np.zeros(len(gpus), dtype=NODE)
    nodes["free"] = nodes["gpus"] = gpus
    nodes["pool"] = pool_of_node
    # Stacks one behind the other, the first node of each on top.
    nodes["stacked"] = np.lexsort((-np.arange(len(gpus)), pool_of_node))
    nodes["by_size"] = np.argsort(-gpus, kind="stable")
    return nodes


def _pools(gpus: NDArray[np.int64], pool_of_node: NDArray[np.int64]) -> NDArray[Any]:
    """Pools, all of them free."""
    pools = np.zeros(int(pool_of_node.max()) + 1, dtype=POOL)
    pools["height"] = np.cumsum(np.bincount(pool_of_node))
    for pool in range(len(pools)):
        mine = gpus[pool_of_node == pool]
        pools[pool]["largest_node"] = mine.max()
        for name in ("whole_gpus", "free_gpus", "gpus"):
            pools[pool][name] = mine.sum()
    pools["row"] = np.arange(len(pools)) * (int(gpus.max()) + 1)
    return pools


def _pieces(count: int) -> NDArray[Any]:
    """Pieces that nobody holds, each with the next one."""
    pieces = np.zeros(count, dtype=PIECE)
    pieces["next"] = np.arange(1, count + 1)
    pieces["next"][-1] = NOBODY
    return pieces
