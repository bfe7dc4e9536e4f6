"""Recorded rounds: which job held which workers in which round, as simulators in rounds write it (JSON, may be xz).

::

    {"cluster": {"nodes": 8, "gpus_per_node": 4},                  or a text such as "8x4"
     "jobs": [{"id": 0, "gpus": 1, "arrival_s": 0.0}, ...],
     "runs": {"las": {"round_s": 120,
                      "rounds": [{"0": [0]}, {"0": [0], "1": [1, 2]}, ...],
                      "jct": [1182.6, ...],                          optional: a list, or one by job
                      "makespan": ..., "avg_jct": ..., "cluster_util": ...}}}   optional

One run may stand in place of ``runs``. Round k goes from ``start_s + k round_s``, ``start_s`` being the first arrival
if it is not said, or a round is a pair of its time and its jobs. Workers are numbered through the nodes. In its last
round a job ends when it is complete, if the file says when, with the round otherwise. Rounds that follow each other
on the same workers are one run. Gavel's simulator and those made of it go on to the next round as soon as all jobs of a
round are complete, and rounds of real runs drift: of three clocks that one is taken which contradicts fewest arrivals
and completions, and a note says which. Form of our own, after what Shockwave's simulator (NSDI'23) keeps: *read*.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import is_number, on_one_line, shown
from shadowprice.instances.files import read_json
from shadowprice.instances.grid import MAX_TIME_S, TICK_S, to_grid
from shadowprice.instances.recorded.record import ContradictionKind, Contradictions, RunRecord
from shadowprice.instances.workload import MAX_GANG

_STATED = {"makespan": "makespan_s", "avg_jct": "avg_jct_s", "cluster_util": "utilization"}
"""Metrics that a run may state, and our names for them."""

_LATE = 0.1
"""Share of a round by which real ones may be longer than they are said to be."""
_SLACK_S = 1e-3
"""Rounding of times in files [s]: a millisecond after its last round a job still ends with it."""


def read_rounds(path: str | Path) -> list[RunRecord]:
    """Records of all runs of a file, in its order.

    Raises
    ------
    InputError
        If the file is not of this form, naming what and where.
    """
    path = Path(path)
    raw = read_json(path)
    if not isinstance(raw, dict):
        raise InputError(f"{path}: expected an object with cluster, jobs and runs")
    runs = raw.get("runs", {str(raw.get("name", path.name)): raw})
    if not isinstance(runs, dict) or not runs:
        raise InputError(f"{path}: runs: expected an object of runs by name, at least one")
    jobs, cluster = _Jobs.read(raw.get("jobs"), f"{path}: jobs"), _cluster(raw, path)
    return [_record(path, name, run, jobs, cluster) for name, run in runs.items()]


@dataclass(frozen=True)
class _Jobs:
    """Jobs of a file."""

    names: list[str]
    arrival_s: list[float]
    gpus: list[int]
    place: Mapping[str, int]

    @classmethod
    def read(cls, raw: Any, where: str) -> _Jobs:
        if not isinstance(raw, list) or not raw:
            raise InputError(f"{where}: expected a list of jobs with id, gpus and arrival_s")
        names, arrivals, gangs = [], [], []
        for number, job in enumerate(raw):
            if not isinstance(job, dict):
                raise InputError(f"{where}: job {number}: expected an object")
            name = str(job.get("id", number))
            if not name or not on_one_line(name):
                raise InputError(f"{where}: job {number}: id is {shown(name)}, expected a name")
            arrival, gpus = job.get("arrival_s"), job.get("gpus")
            if not is_number(arrival) or not 0 <= arrival <= MAX_TIME_S:
                raise InputError(
                    f"{where}: job {name!r}: arrival_s is {shown(arrival)}, expected seconds >= 0"
                )
            if isinstance(gpus, bool) or not isinstance(gpus, int) or not 1 <= gpus <= MAX_GANG:
                raise InputError(
                    f"{where}: job {name!r}: gpus is {shown(gpus)}, expected a whole number >= 1"
                )
            names.append(name)
            arrivals.append(float(arrival))
            gangs.append(gpus)
        if len(set(names)) < len(names):
            raise InputError(f"{where}: two jobs have one id")
        return cls(names, arrivals, gangs, {name: k for k, name in enumerate(names)})


def _cluster(raw: Mapping[str, Any], path: Path) -> Cluster | None:
    words = raw.get("cluster")
    if words is None:
        return None
    if isinstance(words, str):
        return Cluster.parse(words)
    counts = (
        [words.get(name) for name in ("nodes", "gpus_per_node")] if isinstance(words, dict) else []
    )
    if not counts or not all(isinstance(each, int) and each > 0 for each in counts):
        raise InputError(
            f"{path}: cluster: expected nodes and gpus_per_node, or a text such as 8x4"
        )
    return Cluster.parse("{}x{}".format(*counts))


def _record(path: Path, name: str, run: Any, jobs: _Jobs, cluster: Cluster | None) -> RunRecord:
    where = f"{path}: run {name!r}"
    if not isinstance(run, dict) or not isinstance(run.get("rounds"), list) or not run["rounds"]:
        raise InputError(f"{where}: rounds: expected a list of rounds, at least one")
    if cluster is None:
        raise InputError(f"{where}: workers are numbers, and the file names no cluster")
    rounds = _rounds(run, min(jobs.arrival_s), where)
    end_s = _completions(run.get("jct"), jobs, where)
    clocks = _clocks(rounds, jobs, end_s)
    readings = {words: _read(spans, jobs, cluster, end_s, where) for words, spans in clocks.items()}
    clock = min(readings, key=lambda words: readings[words].misfits)
    notes = [f"rounds of {rounds.length_s:g} s{clock}; workers are numbered through the nodes"]
    if end_s:
        notes.append("a job ends in its last round when the file says that it was complete")
    stated = {ours: float(run[key]) for key, ours in _STATED.items() if is_number(run.get(key))}
    return readings[clock].record(path, name, notes, stated)


Held = Mapping[str, Any]
Span = tuple[float, float, Held]
"""Begin and end of a round [s], and who holds which workers."""


@dataclass(frozen=True)
class _Rounds:
    """Rounds of a run by the clock that its file states."""

    length_s: float
    start_s: list[float]
    held: list[Held]
    timed: bool


def _rounds(run: Mapping[str, Any], first_s: float, where: str) -> _Rounds:
    rounds, length = run["rounds"], run.get("round_s")
    if not is_number(length) or not 0 < length <= MAX_TIME_S:
        raise InputError(f"{where}: round_s is {shown(length)}, expected seconds > 0")
    begin = run.get("start_s", first_s)
    if not is_number(begin):
        raise InputError(f"{where}: start_s is {shown(begin)}, expected seconds")
    timed = [
        _timed(each, begin + k * length, f"{where}: round {k + 1}") for k, each in enumerate(rounds)
    ]
    starts = [start for start, _ in timed]
    if any(two <= one for one, two in itertools.pairwise(starts)):
        raise InputError(f"{where}: rounds are not in order of their times")
    return _Rounds(
        float(length), starts, [held for _, held in timed], any(isinstance(e, list) for e in rounds)
    )


_EARLY = ", of which one ends with the last of its jobs where all of them complete in it"
_DRIFTS = _EARLY + ", and later where jobs complete or arrive up to a tenth of it later"


def _clocks(
    rounds: _Rounds, jobs: _Jobs, end_s: Mapping[int, float]
) -> Mapping[str, Sequence[Span]]:
    """Rounds by the clock of the file, and by those of rounds that end early, or drift; by words for them."""
    ends = [*rounds.start_s[1:], rounds.start_s[-1] + rounds.length_s]
    fixed = list(zip(rounds.start_s, ends, rounds.held, strict=True))
    if rounds.timed or not end_s:
        return {"": fixed}
    return {
        "": fixed,
        _EARLY: list(_moving(rounds, jobs, end_s, late=0.0)),
        _DRIFTS: list(_moving(rounds, jobs, end_s, late=_LATE)),
    }


def _moving(
    rounds: _Rounds, jobs: _Jobs, end_s: Mapping[int, float], late: float
) -> Iterator[Span]:
    """Rounds of which each begins when the one before is over.

    Parameters
    ----------
    late : float
        Share of its length by which a round may end later, for jobs that complete in it or arrive for the next.
    """
    last = {name: k for k, held in enumerate(rounds.held) for name in held}
    known = [[name for name in held if name in jobs.place] for held in rounds.held]
    begin = rounds.start_s[0]
    for k, held in enumerate(rounds.held):
        end = begin + rounds.length_s
        leave = [end_s.get(jobs.place[name], np.inf) for name in known[k] if last[name] == k]
        over = max(leave, default=np.inf)
        if len(leave) == len(held) and begin < over < end:
            end = over
        if late:
            follow = known[k + 1] if k + 1 < len(known) else []
            arrivals = [jobs.arrival_s[jobs.place[name]] for name in follow]
            latest = max([end, *(each for each in leave if each < np.inf), *arrivals])
            end = min(latest, end + late * rounds.length_s)
        yield begin, end, held
        begin = end


def _read(
    spans: Sequence[Span], jobs: _Jobs, cluster: Cluster, end_s: Mapping[int, float], where: str
) -> _Reading:
    read = _Reading(jobs, cluster, end_s)
    for number, (start, end, held) in enumerate(spans, 1):
        read.round(number, start, end, held, f"{where}: round {number}")
    read.expect_ends()
    return read


def _timed(raw: Any, start_s: float, where: str) -> tuple[float, Mapping[str, Any]]:
    if isinstance(raw, list) and len(raw) == 2 and is_number(raw[0]):
        start_s, raw = float(raw[0]), raw[1]
    if not isinstance(raw, dict):
        raise InputError(
            f"{where}: expected an object of workers by job, or a pair of its time and one"
        )
    return start_s, raw


def _completions(raw: Any, jobs: _Jobs, where: str) -> dict[int, float]:
    """Completions that the file states [s], by position of the job."""
    if raw is None:
        return {}
    if isinstance(raw, list):
        if len(raw) != len(jobs.names):
            raise InputError(f"{where}: jct: {len(raw)} values, expected {len(jobs.names)}")
        raw = dict(zip(jobs.names, raw, strict=True))
    if not isinstance(raw, dict):
        raise InputError(f"{where}: jct: expected a list, or an object by job")
    result = {}
    for name, value in raw.items():
        if name not in jobs.place or not (value is None or is_number(value)):
            raise InputError(
                f"{where}: jct of {shown(name)} is {shown(value)}, expected seconds of a job"
            )
        if value is not None:
            place = jobs.place[name]
            result[place] = jobs.arrival_s[place] + float(value)
    return result


class _Reading:
    """Pieces of one run, gathered round by round."""

    def __init__(self, jobs: _Jobs, cluster: Cluster, end_s: Mapping[int, float]) -> None:
        self.jobs, self.cluster, self.end_s = jobs, cluster, end_s
        # Node of every worker.
        self.node_of = np.repeat(np.arange(len(cluster.nodes)), cluster.gpus_per_node).tolist()
        self.runs: list[tuple[int, tuple[int, ...], float, float, int]] = []
        self.last: dict[int, int] = {}
        self.early = 0
        self.wrong: dict[ContradictionKind, list[tuple[int, str, str]]] = defaultdict(list)

    def say(self, kind: ContradictionKind, number: int, job: str, detail: str) -> None:
        """Note a contradiction."""
        self.wrong[kind].append((number, job, detail))

    def round(
        self, number: int, start: float, end: float, held: Mapping[str, Any], where: str
    ) -> None:
        """Take in who held which workers in a round."""
        holder: dict[int, str] = {}
        for name, raw in held.items():
            if not isinstance(raw, list) or not all(
                isinstance(each, int) and not isinstance(each, bool) for each in raw
            ):
                raise InputError(f"{where}: job {name!r}: expected a list of numbers of workers")
            place = self.jobs.place.get(name)
            if place is None:
                self.say(
                    ContradictionKind.NO_SUCH_JOB, number, name, "is not among the jobs of the file"
                )
                continue
            if raw:
                self._held(number, start, end, place, tuple(raw), holder)

    def _held(
        self,
        number: int,
        start: float,
        end: float,
        place: int,
        workers: tuple[int, ...],
        holder: dict[int, str],
    ) -> None:
        name = self.jobs.names[place]
        say = partial(self.say, number=number, job=name)
        outside = [each for each in workers if not 0 <= each < len(self.node_of)]
        if outside:
            most = len(self.node_of) - 1
            detail = f"worker {outside[0]}, expected 0 to {most}"
            say(ContradictionKind.UNKNOWN_NODE, detail=detail)
        for worker in workers:
            if worker in holder:
                detail = f"worker {worker}, which {holder[worker]} holds"
                say(ContradictionKind.TWICE, detail=detail)
            holder[worker] = name
        wanted = self.jobs.gpus[place]
        if len(workers) != wanted:
            say(ContradictionKind.GANG, detail=f"{len(workers)} workers, expected {wanted}")
        complete = self.end_s.get(place, np.inf)
        if abs(complete - start) <= _SLACK_S:
            # Complete as its round begins: of the work that was left nothing can be seen at this resolution.
            complete = start + TICK_S
        if start >= complete:
            late = f"holds workers from {start:g} s, complete at {complete:.6f} s"
            say(ContradictionKind.AFTER_END, detail=late)
            return
        stop, before = min(end, complete), self.last.get(place)
        self.early += before is None and start < self.jobs.arrival_s[place]
        if before is not None:
            _, same, begun, until, first = self.runs[before]
            if same == workers and until == start:
                self.runs[before] = (place, workers, begun, stop, first)
                return
        self.last[place] = len(self.runs)
        self.runs.append((place, workers, start, stop, number))

    @property
    def misfits(self) -> int:
        """Jobs that are complete, or arrive, when the rounds do not say so."""
        kinds = (ContradictionKind.AFTER_END, ContradictionKind.BEYOND_ROWS)
        return self.early + sum(len(self.wrong.get(kind, ())) for kind in kinds)

    def expect_ends(self) -> None:
        """Note jobs that are complete after their last round, or never ran."""
        for place, complete in self.end_s.items():
            if place not in self.last:
                continue
            _, _, _, until, first = self.runs[self.last[place]]
            if complete > until + _SLACK_S:
                detail = f"complete at {complete:.6f} s, its last round ends at {until:g} s"
                self.say(ContradictionKind.BEYOND_ROWS, first, self.jobs.names[place], detail)
        for place, name in enumerate(self.jobs.names):
            if place not in self.last:
                self.say(ContradictionKind.NEVER_RAN, 0, name, "holds no worker in any round")

    def record(
        self, path: Path, name: str, notes: Sequence[str], stated: Mapping[str, float]
    ) -> RunRecord:
        """The record of what was taken in."""
        columns: tuple[list[Any], ...] = ([], [], [], [], [], [])
        for place, workers, start, end, number in self.runs:
            on: dict[int, int] = defaultdict(int)
            for worker in workers:
                on[self.node_of[worker] if 0 <= worker < len(self.node_of) else -2] += 1
            for node, count in on.items():
                if node >= 0:
                    for column, value in zip(
                        columns, (place, node, count, start, end, number), strict=True
                    ):
                        column.append(value)
        return RunRecord(
            source=str(path),
            name=name,
            id=np.array(self.jobs.names, dtype=object),
            submit_s=np.array(self.jobs.arrival_s),
            gang=np.array(self.jobs.gpus, dtype=np.int64),
            job=np.array(columns[0], dtype=np.int64),
            node=np.array(columns[1], dtype=np.int64),
            gpus=np.array(columns[2], dtype=np.int64),
            start_s=to_grid(columns[3]),
            end_s=to_grid(columns[4]),
            row=np.array(columns[5], dtype=np.int64),
            nodes=tuple(map(str, range(len(self.cluster.nodes)))),
            contradictions=tuple(
                Contradictions(
                    kind,
                    np.array([number for number, _, _ in rows], dtype=np.int64),
                    np.array([job for _, job, _ in rows], dtype=object),
                    [detail for _, _, detail in rows],
                )
                for kind, rows in self.wrong.items()
                if rows
            ),
            notes=tuple(notes),
            cluster=self.cluster,
            stated=stated,
        )
