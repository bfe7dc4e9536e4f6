"""Contradictions of a record with itself and with a cluster, all of them: each rule looks at all rows by itself.

The verifier stops at the first row that breaks a rule, as it should: it approves schedules. Here nothing is approved.
What is left when the jobs of these rows are set aside goes to the verifier like any other schedule.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shadowprice.brief import Brief
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.recorded.record import (
    NOWHERE,
    ContradictionKind,
    Contradictions,
    Mask,
    Remedy,
    RunRecord,
)
from shadowprice.instances.schedule import first_of_each

_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, repr=False)
class Places(Brief):
    """Positions of the nodes of a record in a cluster.

    Parameters
    ----------
    of_name : ndarray of int
        Position of each node of the record, :data:`NOWHERE` for those that the cluster does not have.
    note : str
        How they were matched; empty where there is nothing to match.
    """

    of_name: NDArray[np.int64]
    note: str = ""

    @classmethod
    def matched(cls, record: RunRecord, cluster: Cluster, names: tuple[str, ...] = ()) -> Places:
        """Nodes by name where a list has names, by number where names are numbers, else in order of their names.

        Parameters
        ----------
        names : tuple of str
            Names of the cluster's nodes, in order; empty if it has none.
        """
        nodes = len(cluster.nodes)
        if names:
            position = {name: k for k, name in enumerate(names)}
            result = [position.get(name, NOWHERE) for name in record.nodes]
            return cls(np.array(result, dtype=np.int64), "nodes are those of the list by name")
        if all(name.isdecimal() for name in record.nodes):
            numbers = [int(name) for name in record.nodes]
            result = [each if each < nodes else NOWHERE for each in numbers]
            return cls(
                np.array(result, dtype=np.int64), "nodes are known by number" if result else ""
            )
        order = sorted(range(len(record.nodes)), key=lambda k: _natural(record.nodes[k]))
        place = np.full(len(order), NOWHERE)
        place[order[:nodes]] = np.arange(min(nodes, len(order)))
        return cls(
            place,
            "nodes of the record are those of the cluster in order of their names: node-2 before node-10",
        )

    def of(self, record: RunRecord) -> NDArray[np.int64]:
        """Position of the node of each piece; :data:`NOWHERE` also where the record tells none."""
        if not len(self.of_name):
            return np.full(len(record.node), NOWHERE)
        return np.where(record.node == NOWHERE, NOWHERE, self.of_name[record.node])


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Key by which numbers within names are in order of their size."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part
    )


def contradictions(record: RunRecord, cluster: Cluster, places: Places) -> list[Contradictions]:
    """All that contradicts itself or the cluster, beside what was noticed in reading; O(R log R) for R pieces."""
    node = places.of(record)
    result = [
        *_of_times(record),
        _of_types(record, cluster, node),
        *_of_nodes(record, cluster, node),
        _overlaps(record),
        _gangs(record),
    ]
    doubtful = doubtful_jobs(record.with_more(*result))
    result.append(_over_capacity(record, cluster, node, doubtful))
    return [each for each in result if len(each)]


def doubtful_jobs(record: RunRecord) -> Mask:
    """True for jobs that are set aside by what was noticed, shape (n,)."""
    names = [
        name
        for each in record.contradictions
        if each.remedy is Remedy.SET_ASIDE
        for name in each.job.tolist()
    ]
    import pandas as pd

    aside: Mask = np.asarray(pd.Index(record.id).isin(names), dtype=np.bool_)
    if np.isfinite(record.submit_s).any():
        # Some jobs say when they were submitted: those that do not have no completion time.
        aside = aside | ~np.isfinite(record.submit_s)
    return aside


def _timed(record: RunRecord) -> Mask:
    """True for pieces that take time."""
    return np.asarray(record.start_s < record.end_s)


def _once(record: RunRecord, pieces: Mask) -> NDArray[np.int64]:
    """The first piece of each row and job among some."""
    places = np.flatnonzero(pieces)
    pairs = np.stack((record.row[places], record.job[places]))
    return places[np.sort(np.unique(pairs, axis=1, return_index=True)[1])]


def _of_times(record: RunRecord) -> list[Contradictions]:
    start, end, submit = record.start_s, record.end_s, record.submit_s[record.job]
    below = (start < 0) | (end < 0) | (submit < 0)
    # Dates are counted from the first submission: what lies before it is early, and no more.
    negative = below & (record.origin_s is None)
    cases: list[tuple[ContradictionKind, Mask, Callable[[int], str]]] = [
        (
            ContradictionKind.BACKWARDS,
            end < start,
            lambda k: f"ends {start[k] - end[k]:g} s before it starts",
        ),
        (ContradictionKind.NO_TIME, end == start, lambda k: f"starts and ends at {start[k]:g} s"),
        (
            ContradictionKind.EARLY,
            start < submit,
            lambda k: f"starts {submit[k] - start[k]:g} s before it is submitted",
        ),
        (
            ContradictionKind.NEGATIVE,
            negative,
            lambda k: (
                f"submitted at {submit[k]:g} s, from {start[k]:g} to {end[k]:g} s, expected times >= 0"
            ),
        ),
    ]
    result = []
    for kind, mask, say in cases:
        places = _once(record, mask)
        result.append(record.wrong(kind, places, [say(k) for k in places.tolist()]))
    return result


def _of_nodes(record: RunRecord, cluster: Cluster, node: NDArray[np.int64]) -> list[Contradictions]:
    lost = (record.node != NOWHERE) & (node == NOWHERE)
    size = np.where(node == NOWHERE, cluster.total_gpus, cluster.gpus_per_node[node])
    wide = ~lost & (record.gpus > size)
    missing, wider = np.flatnonzero(lost), np.flatnonzero(wide)
    return [
        record.wrong(
            ContradictionKind.UNKNOWN_NODE,
            missing,
            [
                f"{record.nodes[record.node[k]]!r} of {len(cluster.nodes)} nodes"
                for k in missing.tolist()
            ],
        ),
        record.wrong(
            ContradictionKind.WIDE,
            wider,
            [f"holds {record.gpus[k]} GPUs of {size[k]}" for k in wider.tolist()],
        ),
    ]


def _of_types(record: RunRecord, cluster: Cluster, node: NDArray[np.int64]) -> Contradictions:
    """Pieces on nodes of another type than the one that the cluster has and the job held."""
    asked = record.of_jobs.get("allowed_types")
    if asked is None:
        return record.wrong(ContradictionKind.TYPE, np.zeros(0, dtype=np.int64), [])
    mine = asked[record.job]
    types = np.array(cluster.gpu_types, dtype=object)[cluster.type_of_node[np.maximum(node, 0)]]
    bad = np.flatnonzero((node != NOWHERE) & np.isin(mine, cluster.gpu_types) & (mine != types))
    return record.wrong(
        ContradictionKind.TYPE,
        bad,
        [f"held GPUs of type {mine[k]} on a node of type {types[k]}" for k in bad.tolist()],
    )


def _overlaps(record: RunRecord) -> Contradictions:
    """Runs of a job that begin before another one of it has ended."""
    import pandas as pd

    timed = np.flatnonzero(_timed(record))
    order = timed[np.lexsort((record.start_s[timed], record.job[timed]))]
    job, start = record.job[order], record.start_s[order]
    first = first_of_each(job, start)
    if not len(first):
        return record.wrong(ContradictionKind.OVERLAP, first, [])
    end = np.maximum.reduceat(record.end_s[order], first)
    of = pd.Series(job[first])
    until = pd.Series(end).groupby(of).cummax().groupby(of).shift().to_numpy()
    bad = np.flatnonzero(start[first] < until)
    rows = order[first[bad]]
    return record.wrong(
        ContradictionKind.OVERLAP,
        rows,
        [
            f"starts at {record.start_s[row]:g} s, another run of the job ends at {until[k]:g} s"
            for k, row in zip(bad.tolist(), rows.tolist(), strict=True)
        ],
    )


def _gangs(record: RunRecord) -> Contradictions:
    """Runs that are not on the whole gang from beginning to end."""
    order = np.lexsort((record.start_s, record.job))
    order = order[~np.isnan(record.start_s[order])]
    job, end = record.job[order], record.end_s[order]
    first = first_of_each(job, record.start_s[order])
    if not len(first):
        return record.wrong(ContradictionKind.GANG, first, [])
    held = np.add.reduceat(record.gpus[order], first)
    low, high = np.fmin.reduceat(end, first), np.fmax.reduceat(end, first)
    wanted = record.gang[job[first]]
    bad = np.flatnonzero((held != wanted) | (low != high) & ~np.isnan(low))
    return record.wrong(
        ContradictionKind.GANG,
        order[first[bad]],
        [
            f"holds {held[k]} GPUs of a gang of {wanted[k]}"
            if held[k] != wanted[k]
            else f"its pieces end from {low[k]:g} to {high[k]:g} s"
            for k in bad.tolist()
        ],
    )


def _over_capacity(
    record: RunRecord, cluster: Cluster, node: NDArray[np.int64], doubtful: Mask
) -> Contradictions:
    """Runs without which no node holds more GPUs than it has, and the moment at which each is one too many.

    Of those that are held then one that is doubtful for another reason is named, else one that is enough by itself, and
    of these the one that ends last: for single GPUs that sets the fewest aside.
    """
    known = _timed(record) & ((record.node == NOWHERE) | (node != NOWHERE))
    if not record.places:
        node, size = np.zeros(len(record.node), dtype=np.int64), np.array([cluster.total_gpus])
    else:
        known, size = known & (node != NOWHERE), cluster.gpus_per_node
    pieces = np.flatnonzero(known & (record.gpus <= size[np.maximum(node, 0)]))
    time = np.concatenate((record.start_s[pieces], record.end_s[pieces]))
    change = np.concatenate((record.gpus[pieces], -record.gpus[pieces]))
    where = np.concatenate((node[pieces], node[pieces]))
    # Who ends leaves before who starts at that moment.
    order = np.lexsort((change > 0, time, where))
    # Each node begins and ends with nothing held.
    level = np.cumsum(change[order])
    crowded = np.unique(where[order][level > size[where[order]]])
    rows: list[int] = []
    texts: list[str] = []
    aside: set[int] = set()
    for each in crowded.tolist():
        mine = pieces[node[pieces] == each]
        for piece, text in _sweep(record, mine, int(size[each]), doubtful, aside):
            rows.append(piece)
            what = f"node {_name(record, piece)}" if record.places else "the cluster"
            texts.append(f"{what} {text}")
    return record.wrong(ContradictionKind.CAPACITY, np.array(rows, dtype=np.int64), texts)


def _name(record: RunRecord, piece: int) -> str:
    return str(record.nodes[record.node[piece]])


def _sweep(
    record: RunRecord, pieces: NDArray[np.int64], size: int, doubtful: Mask, aside: set[int]
) -> list[tuple[int, str]]:
    """Pieces of a node that are one too many, and what to say of them; their jobs are put ``aside``."""
    held, result = 0, []
    ends: list[tuple[float, int]] = []
    here: set[int] = set()
    for piece in pieces[np.argsort(record.start_s[pieces], kind="stable")].tolist():
        job, start = int(record.job[piece]), float(record.start_s[piece])
        if job in aside:
            continue
        while ends and ends[0][0] <= start:
            _, over = heapq.heappop(ends)
            if over in here:
                here.discard(over)
                held -= int(record.gpus[over])
        heapq.heappush(ends, (float(record.end_s[piece]), piece))
        here.add(piece)
        held += int(record.gpus[piece])
        while held > size:
            worst = max(here, key=_worse(record, held - size, doubtful))
            result.append(
                (worst, f"holds {held} of {size} GPUs at {start:g} s, when {record.id[job]} starts")
            )
            aside.add(int(record.job[worst]))
            for same in [each for each in here if record.job[each] == record.job[worst]]:
                here.discard(same)
                held -= int(record.gpus[same])
    return result


def _worse(
    record: RunRecord, excess: int, doubtful: Mask
) -> Callable[[int], tuple[bool, bool, float, int]]:
    """Key by which pieces are set aside: the doubtful, those that are enough by themselves, those that end last."""
    return lambda piece: (
        bool(doubtful[record.job[piece]]),
        bool(record.gpus[piece] >= excess),
        float(record.end_s[piece]),
        piece,
    )
