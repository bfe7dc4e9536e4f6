"""Records of a certificate: what was given, and what was done; ``proofs/checker/README.md`` has their format.

Nothing here is taken from the program that checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.speeds import (
    WHOLE_GPU,
    copy_rates,
    may_grow,
    sharing_by_sort,
    sorts,
    speeds_by_width,
)
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import to_ticks
from shadowprice.instances.terms.copies import total_steps
from shadowprice.proofs import run_speed

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.job_utilities import JobUtilities
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity

Record = dict[str, Any]

KNOWS = frozenset(
    {
        Feature.RATES,  # times of each job by type
        Feature.TYPES,
        Feature.CHARGES,
        Feature.SHARING,
        Feature.GRAPHS,
        Feature.PROFILES,
        Feature.SPREAD,
        Feature.WIDTHS,
        Feature.COPIES,
        Feature.FAILURES,
        Feature.QUOTAS,
        Feature.PARTS,
        Feature.CORES,  # nodes of a type, on which jobs have a time
        Feature.CPU_MEMORY,  # are not written: the schedule is one of the same jobs without them
        Feature.WINDOW,
        Feature.STOPPED,
        Feature.RESTART,
    }
)

FORMAT = 3
NEVER = 2**60
"""Tick that no run reaches."""
_THOUSANDTHS = 1000
_REACHED = 1 + 1e-9
"""What CPUs and memory are multiplied with before they are compared with a profile's."""
_JOBS_AT_ONCE = 2**16
_ROWS_AT_ONCE = 2**16


def text_of(number: Fraction | float) -> int | str:
    """A rational as the format has it; of a double its exact value."""
    exact = Fraction(number)
    return exact.numerator if exact.denominator == 1 else str(exact)


def header(
    instance: Instance,
    policy: str,
    goal: str,
    utilities: JobUtilities | None = None,
    *,
    preemptive: bool = True,
) -> Record:
    """Policy, objective and charges of gangs; of total utilities their name and the length of a round.

    Unless ``preemptive`` it says that each job begins once, in the schedule and in those of its class.
    """
    charges = instance.overheads
    steps = charges.restart_by_gpus or ((1, charges.restart_s),)
    return {
        "kind": "header",
        "format": FORMAT,
        "policy": policy,
        "objective": goal,
        "start": int(to_ticks(charges.start_s)),
        "migration": int(to_ticks(charges.migration_s)),
        "restart": [[gpus, int(to_ticks(cost_s))] for gpus, cost_s in steps],
        **({"preemption": "restart"} if instance.restarts else {}),
        **({"types": "ample"} if instance.has_small_types else {}),
        **({} if preemptive else {"starts": "once"}),
        **({} if utilities is None else {"utility": utilities.name, "round": utilities.length}),
        **_ends(instance),
    }


def _ends(instance: Instance) -> Record:
    """End of a run before all jobs are complete."""
    window, stopped_s = instance.until_complete, instance.stopped_s
    return {
        **({} if window is None else {"window": [window.first, window.last]}),
        **({} if stopped_s is None else {"stopped": int(to_ticks(stopped_s))}),
    }


# What was given.


def instance_records(
    instance: Instance, *, pairs: bool, utilities: JobUtilities | None = None
) -> Iterator[Record]:
    """Rules, nodes, tables of speeds, and jobs; with ``pairs`` the speeds of jobs that share GPUs.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``.
    """
    require(instance, KNOWS, "records of certificates")
    fields = _JobFields(instance, pairs)
    yield from _of_features(instance, _RULES)
    yield from _nodes(instance)
    yield from _of_features(instance, _LIMITS)
    for k, row in enumerate(fields.tables):
        yield {"kind": "widths", "widths": k, "speeds": [text_of(speed) for speed in row]}
    yield from _of_features(instance, _SPEEDS)
    for record in _jobs(instance, fields):
        yield record if utilities is None else record | utilities.fields(record["job"])


Writer = Callable[["Instance"], Iterator[Record]]


def _of_features(instance: Instance, writers: Mapping[Feature, Writer]) -> Iterator[Record]:
    for feature, write in writers.items():
        if feature in instance.features:
            yield from write(instance)


def _copy_rules(instance: Instance) -> Iterator[Record]:
    rules = instance.copies
    assert rules is not None
    times = ("round", rules.round_s), ("restart", rules.restart_s)
    ticks = {name: int(to_ticks(time_s)) for name, time_s in times}
    average = int(to_ticks(rules.aggregation_s))
    yield {"kind": "copies", **ticks, "aggregation": average, "most": rules.max_copies}


def _network(instance: Instance) -> Iterator[Record]:
    assert instance.graphs is not None
    network = instance.graphs.network
    yield {
        "kind": "network",
        "intra": text_of(network.intra_bytes_per_s),
        "nic": text_of(network.nic_bytes_per_s),
        "gpus": int(network.gpus_per_node),
        "sharing": network.sharing,
    }


def _nodes(instance: Instance) -> Iterator[Record]:
    """Nodes, with what profiles ask of them."""
    counted = Feature.PROFILES in instance.features
    for k, node in enumerate(instance.cluster.nodes):
        record: Record = {"kind": "node", "node": k, "gpus": node.gpus, "type": node.gpu_type}
        if counted:
            cpu_memory = {"cpus": node.cpus, "memory": node.memory_gb}
            record |= {name: round(amount * _THOUSANDTHS) for name, amount in cpu_memory.items()}
        yield record


def _profiles(instance: Instance) -> Iterator[Record]:
    for k, profile in enumerate(_sensitivity(instance).profiles):
        cells = [[cpus, memory, text_of(speed)] for cpus, memory, speed in profile_cells(profile)]
        yield {"kind": "profile", "profile": k, "cells": cells}


def _sensitivity(instance: Instance) -> Sensitivity:
    assert instance.sensitivity is not None
    return instance.sensitivity


def _checkpoints(instance: Instance) -> Iterator[Record]:
    assert instance.failures is not None
    rule, known_s = instance.failures.checkpoints, instance.failures.known_until_s
    never = rule.interval_s == np.inf
    yield {
        "kind": "checkpoints",
        "interval": NEVER if never else int(to_ticks(rule.interval_s)),
        "cost": int(to_ticks(rule.cost_s)),
        "until": NEVER if known_s == np.inf else int(known_s * run_speed.TICKS_PER_S),
    }


def _quotas(instance: Instance) -> Iterator[Record]:
    """A record a tenant, of the moments from which another number of GPUs holds."""
    quotas = instance.cluster.quotas
    assert quotas is not None
    starts = [int(to_ticks(start_s)) for start_s in quotas.start_s]
    for k, column in enumerate(zip(*quotas.gpus, strict=True)):
        periods = [[start, int(gpus)] for start, gpus in zip(starts, column, strict=True)]
        yield {"kind": "quota", "quota": k, "periods": periods}


def _faults(instance: Instance) -> Iterator[Record]:
    failures = instance.failures
    assert failures is not None
    for node, down_s, up_s in zip(
        failures.node.tolist(), failures.down_s.tolist(), failures.up_s.tolist(), strict=True
    ):
        up = NEVER if up_s == np.inf else int(to_ticks(up_s))
        yield {"kind": "fault", "node": node, "down": int(to_ticks(down_s)), "up": up}


def profile_cells(profile: Profile) -> list[tuple[int, int, float]]:
    """Thousandths of CPUs and of memory a GPU, rounded down, and speed; row by row of the profile."""
    axes = profile.cpus_per_gpu.tolist(), profile.memory_gb_per_gpu.tolist()
    return [
        (int(cpus * _THOUSANDTHS), int(memory * _THOUSANDTHS), float(profile.speed[a, b]))
        for a, cpus in enumerate(axes[0])
        for b, memory in enumerate(axes[1])
        if profile.speed[a, b] > 0
    ]


def _graphs(instance: Instance) -> Iterator[Record]:
    assert instance.graphs is not None
    for k, graph in enumerate(instance.graphs.graph):
        yield {
            "kind": "graph",
            "graph": k,
            "microbatches": int(graph.microbatches),
            "stages": [
                [
                    int(stage.replicas),
                    *map(text_of, (stage.forward_s, stage.backward_s, stage.parameter_bytes)),
                ]
                for stage in graph.stages
            ],
            "links": [
                [int(k.source), int(k.target), text_of(k.bytes_per_replica), bool(k.exchange)]
                for k in graph.links
            ],
        }


_RULES: Mapping[Feature, Writer] = {
    Feature.COPIES: _copy_rules,
    Feature.FAILURES: _checkpoints,
    Feature.GRAPHS: _network,
}
"""Records before the nodes."""
_LIMITS: Mapping[Feature, Writer] = {Feature.FAILURES: _faults, Feature.QUOTAS: _quotas}
"""Records after the nodes."""
_SPEEDS: Mapping[Feature, Writer] = {Feature.PROFILES: _profiles, Feature.GRAPHS: _graphs}
"""Records before the jobs."""

FieldsOfJob = Callable[[int], Record]


def _part(instance: Instance) -> FieldsOfJob:
    milli = instance.workload.gpu_milli
    return lambda job: {"part": int(milli[job])} if milli[job] < WHOLE_GPU else {}


def _quota(instance: Instance) -> FieldsOfJob:
    quotas, tenant = instance.cluster.quotas, instance.workload.tenant
    assert quotas is not None
    number = {name: k for k, name in enumerate(quotas.tenants)}
    on_cores = instance.workload.on_cores
    return lambda job: {} if on_cores[job] else {"quota": number[tenant[job]]}


def _spread(instance: Instance) -> FieldsOfJob:
    assert instance.locality is not None
    speed, whole = instance.locality.spread_speed, instance.workload.on_whole_gpus
    # A part of a GPU is never spread, nor are cores.
    return lambda job: {"spread": text_of(speed[job])} if whole[job] else {}


def _profile(instance: Instance) -> FieldsOfJob:
    of, on_cores = _sensitivity(instance).of, instance.workload.on_cores
    return lambda job: {} if on_cores[job] else {"profile": int(of[job])}


def _graph(instance: Instance) -> FieldsOfJob:
    graphs, work = instance.graphs, instance.workload.work
    assert graphs is not None
    return lambda job: {"graph": int(graphs.of[job]), "work": text_of(work[job]), "run": {}}


def _copied(instance: Instance) -> FieldsOfJob:
    rates, steps = copy_rates(instance), total_steps(instance.workload).tolist()

    def of(job: int) -> Record:
        rate = {name: text_of(rate) for name, rate in rates[job].items()}
        return {"steps": steps[job], "rate": rate, "run": {}}

    return of


def _sharing(instance: Instance) -> FieldsOfJob:
    names, sort = run_speed.gpu_types(instance.cluster)[0], sorts(instance)[1]
    sharing_ticks = sharing_by_sort(instance)

    def of(job: int) -> Record:
        by_type = {
            names[kind]: {str(sort): text_of(each) for sort, each in by_sort.items()}
            for kind, by_sort in sharing_ticks[job].items()
        }
        return {"sort": sort[job], "beside": by_type}

    return of


_FIELDS: Mapping[Feature, Callable[[Instance], FieldsOfJob]] = {
    Feature.PARTS: _part,
    Feature.QUOTAS: _quota,
    Feature.SPREAD: _spread,
    Feature.PROFILES: _profile,
    Feature.GRAPHS: _graph,
    Feature.COPIES: _copied,
}


class _JobFields:
    """Fields of jobs that some instances add; ``tables`` are the speeds by width that jobs refer to."""

    def __init__(self, instance: Instance, pairs: bool) -> None:
        self.tables: list[tuple[float, ...]] = []
        self._table_of: dict[int, int] = {}
        known: dict[tuple[float, ...], int] = {}
        for job in np.flatnonzero(may_grow(instance)).tolist():
            row = tuple(speeds_by_width(instance, job))
            self._table_of[job] = known.setdefault(row, len(known))
        self.tables = list(known)
        self._writers = [of(instance) for each, of in _FIELDS.items() if each in instance.features]
        if self.tables:
            self._writers.append(self._widths)
        if pairs:
            self._writers.append(_sharing(instance))

    @property
    def plain(self) -> bool:
        """True if no job has any."""
        return not self._writers

    def of(self, job: int) -> Record:
        """Those of a job."""
        fields: Record = {}
        for write in self._writers:
            fields |= write(job)
        return fields

    def _widths(self, job: int) -> Record:
        return {"widths": self._table_of[job]} if job in self._table_of else {}


def _jobs(instance: Instance, fields: _JobFields) -> Iterator[Record]:
    jobs, (types, _) = instance.workload, run_speed.gpu_types(instance.cluster)
    ticks = run_speed.alone_ticks(instance)
    plain = fields.plain
    weights: dict[float, int | str] = {}
    for first in range(0, len(jobs), _JOBS_AT_ONCE):
        some = slice(first, first + _JOBS_AT_ONCE)
        columns = (
            jobs.id[some].tolist(),
            to_ticks(jobs.arrival_s[some]).tolist(),
            jobs.gpus[some].tolist(),
            jobs.weight[some].tolist(),
            ticks[some].tolist(),
        )
        rows = zip(*columns, strict=True)
        for job, (name, arrival, gpus, weight, run) in enumerate(rows, first):
            if weight not in weights:
                weights[weight] = text_of(weight)
            yield {
                "kind": "job",
                "job": job,
                "id": name,
                "arrival": arrival,
                "gpus": gpus,
                "weight": weights[weight],
                "run": {kind: time for kind, time in zip(types, run, strict=True) if time},
                **({} if plain else fields.of(job)),
            }


# What was done.


def runs(instance: Instance, schedule: Schedule) -> Iterator[Record]:
    """Runs in order of start, then job: rows of one job that start together are one, of copies each row."""
    order = np.lexsort((schedule.node, schedule.job, schedule.start_s))
    more = _PieceFields(instance, schedule)
    begins = schedule.begins_again
    last: Record | None = None
    for row, record in _rows(schedule, order):
        node, gpus = record.pop("node"), record.pop("gpus")
        same = last is not None and (last["job"], last["start"]) == (record["job"], record["start"])
        if last is not None and same and schedule.copy is None:
            last["pieces"].append([node, gpus, *more.of(row)])
            continue
        if last is not None:
            yield last
        last = {**record, "pieces": [[node, gpus, *more.of(row)]]}
        if begins[row]:
            last["goes_on"] = False
    if last is not None:
        yield last


def _rows(schedule: Schedule, order: NDArray[np.int64]) -> Iterator[tuple[int, Record]]:
    """Rows in an order, as records of runs."""
    for first in range(0, len(order), _ROWS_AT_ONCE):
        some = order[first : first + _ROWS_AT_ONCE]
        columns = {"job": schedule.job, "node": schedule.node, "gpus": schedule.gpus}
        times = {"start": schedule.start_s, "end": schedule.end_s, "overhead": schedule.overhead_s}
        written = {name: column[some].tolist() for name, column in columns.items()}
        written |= {name: to_ticks(column[some]).tolist() for name, column in times.items()}
        if schedule.copy is not None and schedule.steps is not None:
            written["copy"] = schedule.copy[some].tolist()
            written["steps"] = schedule.steps[some].tolist()
        names, partner = list(written), schedule.partner[some].tolist()
        for row, other, values in zip(
            some.tolist(), partner, zip(*written.values(), strict=True), strict=True
        ):
            record = {"kind": "run", **dict(zip(names, values, strict=True))}
            if other >= 0:
                record["partner"] = other
            yield row, record


class _PieceFields:
    """Further entries of pieces of runs: a GPU held in part, a row of a profile, replicas of stages."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self._schedule = schedule
        self._milli, self._on_cores = instance.workload.gpu_milli, instance.workload.on_cores
        known, self._nodes = instance.sensitivity, instance.cluster.nodes
        self._cell: NDArray[np.int64] | None = None
        if known is not None:
            self._cell = np.zeros(len(schedule), dtype=np.int64)
            of = known.of[schedule.job]
            for number, profile in enumerate(known.profiles):
                mine = np.flatnonzero(of == number)
                self._cell[mine] = self._reached(profile, mine)

    def _reached(self, profile: Profile, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of a profile that what is held reaches, of those with a speed; -1 for none."""
        s = self._schedule
        axes = (
            (profile.cpus_per_gpu, self._held("cpus", s.cpus, rows)),
            (profile.memory_gb_per_gpu, self._held("memory_gb", s.memory_gb, rows)),
        )
        gpus = s.gpus[rows] * self._milli[s.job[rows]] / WHOLE_GPU
        at = [
            np.searchsorted(axis, held / gpus * _REACHED, side="right") - 1 for axis, held in axes
        ]
        number = np.cumsum(profile.speed.ravel() > 0) - 1
        cell = number[np.maximum(at[0], 0) * len(axes[1][0]) + np.maximum(at[1], 0)]
        return np.where((at[0] >= 0) & (at[1] >= 0), cell, -1)

    def _held(
        self, name: str, cpu_memory: NDArray[np.float64] | None, rows: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Amount of CPUs or memory that rows hold; copies have all of their nodes."""
        if cpu_memory is not None:
            return cpu_memory[rows]
        of_node = np.array([getattr(node, name) for node in self._nodes], dtype=np.float64)
        return np.asarray(of_node[self._schedule.node[rows]])

    def of(self, row: int) -> list[Any]:
        """Entries of a row beyond its node and GPUs."""
        s = self._schedule
        fields: list[Any] = []
        if s.shared_gpu is not None and self._milli[s.job[row]] < WHOLE_GPU:
            fields.append(int(s.shared_gpu[row]))
        if self._cell is not None and not self._on_cores[s.job[row]]:
            fields.append(int(self._cell[row]))
        if s.stages is not None:
            fields.append([int(count) for count in s.stages[row]])
        return fields
