"""Records of a certificate: what was given, and what was done; ``docs/certificates.md`` has their format.

Nothing here is taken from the program that checks them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.analysis.certificates.demands import (
    WHOLE_GPU,
    copy_rates,
    may_grow,
    sorts,
    speeds_by_width,
    ticks_beside,
)
from shadowprice.instances.copies import total_steps
from shadowprice.instances.grid import to_ticks
from shadowprice.proofs import run_speed

if TYPE_CHECKING:
    from shadowprice.analysis.certificates.job_utilities import JobUtilities
    from shadowprice.instances.clusters.quotas import Quotas
    from shadowprice.instances.failures.node_failures import NodeFailures
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.sensitivity import Profile

Record = dict[str, Any]

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
    instance: Instance, policy: str, goal: str, utilities: JobUtilities | None = None
) -> Record:
    """Policy, objective and charges of gangs; of total utilities their name and the length of a round."""
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
        **({} if utilities is None else {"utility": utilities.name, "round": utilities.length}),
        **_ends(instance),
    }


def _ends(instance: Instance) -> Record:
    """End of a run before all jobs are complete."""
    if instance.until_complete is not None:
        return {"window": [instance.until_complete.first, instance.until_complete.last]}
    if instance.stopped_s is not None:
        return {"stopped": int(to_ticks(instance.stopped_s))}
    return {}


# What was given.


def given(
    instance: Instance, *, pairs: bool, utilities: JobUtilities | None = None
) -> Iterator[Record]:
    """Rules, nodes, tables of speeds, and jobs; with ``pairs`` the speeds of jobs that share GPUs."""
    if instance.copies is not None:
        rules = instance.copies
        times = ("round", rules.round_s), ("restart", rules.restart_s)
        ticks = {name: int(to_ticks(time_s)) for name, time_s in times}
        average = int(to_ticks(rules.aggregation_s))
        yield {"kind": "copies", **ticks, "aggregation": average, "most": rules.max_copies}
    if instance.failures is not None:
        yield _checkpoints(instance.failures)
    if instance.graphs is not None:
        network = instance.graphs.network
        yield {
            "kind": "network",
            "intra": text_of(network.intra_bytes_per_s),
            "nic": text_of(network.nic_bytes_per_s),
            "gpus": int(network.gpus_per_node),
            "sharing": network.sharing,
        }
    conditions = instance.conditions
    profiles = None if conditions is None else conditions.sensitivity
    for k, node in enumerate(instance.cluster.nodes):
        record: Record = {"kind": "node", "node": k, "gpus": node.gpus, "type": node.gpu_type}
        if profiles is not None:
            amounts = {"cpus": node.cpus, "memory": node.memory_gb}
            record |= {name: round(amount * _THOUSANDTHS) for name, amount in amounts.items()}
        yield record
    if instance.failures is not None:
        yield from _faults(instance.failures)
    if instance.cluster.quotas is not None:
        yield from _quotas(instance.cluster.quotas)
    speeds = _JobFields(instance, pairs)
    for k, row in enumerate(speeds.tables):
        yield {"kind": "widths", "widths": k, "speeds": [text_of(speed) for speed in row]}
    for k, profile in enumerate(() if profiles is None else profiles.profiles):
        cells = [[cpus, memory, text_of(speed)] for cpus, memory, speed in profile_cells(profile)]
        yield {"kind": "profile", "profile": k, "cells": cells}
    if instance.graphs is not None:
        yield from _graphs(instance.graphs)
    for record in _jobs(instance, speeds):
        yield record if utilities is None else record | utilities.fields(record["job"])


def _checkpoints(failures: NodeFailures) -> Record:
    rule, known_s = failures.checkpoints, failures.known_until_s
    never = rule.interval_s == np.inf
    return {
        "kind": "checkpoints",
        "interval": NEVER if never else int(to_ticks(rule.interval_s)),
        "cost": int(to_ticks(rule.cost_s)),
        "until": NEVER if known_s == np.inf else int(known_s * run_speed.TICKS_PER_S),
    }


def _quotas(quotas: Quotas) -> Iterator[Record]:
    """A record a tenant, of the moments from which another number of GPUs holds."""
    starts = [int(to_ticks(start_s)) for start_s in quotas.start_s]
    for k, column in enumerate(zip(*quotas.gpus, strict=True)):
        periods = [[start, int(gpus)] for start, gpus in zip(starts, column, strict=True)]
        yield {"kind": "quota", "quota": k, "periods": periods}


def _faults(failures: NodeFailures) -> Iterator[Record]:
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


def _graphs(graphs: JobGraphs) -> Iterator[Record]:
    for k, graph in enumerate(graphs.graph):
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


class _JobFields:
    """Fields of jobs that some instances add; ``tables`` are the speeds by width that jobs refer to."""

    def __init__(self, instance: Instance, pairs: bool) -> None:
        self._instance, self._pairs = instance, pairs
        self._names = run_speed.gpu_types(instance.cluster)[0]
        self.tables: list[tuple[float, ...]] = []
        self._table_of: dict[int, int] = {}
        known: dict[tuple[float, ...], int] = {}
        for job in np.flatnonzero(may_grow(instance)).tolist():
            row = tuple(speeds_by_width(instance, job))
            self._table_of[job] = known.setdefault(row, len(known))
        self.tables = list(known)
        self._beside = ticks_beside(instance) if pairs else []
        self._sort = sorts(instance)[1] if pairs else []
        self._rates = copy_rates(instance) if instance.copies is not None else []
        copies = instance.copies is not None
        self._steps = total_steps(instance.workload).tolist() if copies else []
        quotas = instance.cluster.quotas
        tenants = () if quotas is None else quotas.tenants
        self._quota = {tenant: k for k, tenant in enumerate(tenants)}

    @property
    def plain(self) -> bool:
        """True if no job has any."""
        instance = self._instance
        parts = (instance.conditions, instance.graphs, instance.copies)
        more = self._pairs or self._in_parts or self._quota
        return all(part is None for part in parts) and not more

    @property
    def _in_parts(self) -> bool:
        return bool(self._instance.workload.fractional.any())

    def of(self, job: int) -> Record:
        """Those of a job."""
        instance = self._instance
        found: Record = {}
        milli = int(instance.workload.gpu_milli[job])
        if milli < WHOLE_GPU:
            found["part"] = milli
        if self._quota:
            found["quota"] = self._quota[instance.workload.tenant[job]]
        conditions = instance.conditions
        if conditions is not None and conditions.locality is not None:
            found["spread"] = text_of(conditions.locality.spread_speed[job])
        if job in self._table_of:
            found["widths"] = self._table_of[job]
        if conditions is not None and conditions.sensitivity is not None:
            found["profile"] = int(conditions.sensitivity.of[job])
        if self._pairs:
            found["sort"] = self._sort[job]
            found["beside"] = {
                self._names[kind]: {str(sort): ticks for sort, ticks in by_sort.items()}
                for kind, by_sort in self._beside[job].items()
            }
        if instance.graphs is not None:
            found["graph"] = int(instance.graphs.of[job])
            found["work"] = text_of(instance.workload.work[job])
            found["run"] = {}
        if instance.copies is not None:
            found["steps"] = self._steps[job]
            found["rate"] = {name: text_of(rate) for name, rate in self._rates[job].items()}
            found["run"] = {}
        return found


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
    if last is not None:
        yield last


def _rows(schedule: Schedule, order: NDArray[np.int64]) -> Iterator[tuple[int, Record]]:
    """Rows in an order, as records of runs."""
    for first in range(0, len(order), _ROWS_AT_ONCE):
        some = order[first : first + _ROWS_AT_ONCE]
        columns = {"job": schedule.job, "node": schedule.node, "gpus": schedule.gpus}
        times = {"start": schedule.start_s, "end": schedule.end_s, "overhead": schedule.overhead_s}
        found = {name: column[some].tolist() for name, column in columns.items()}
        found |= {name: to_ticks(column[some]).tolist() for name, column in times.items()}
        if schedule.copy is not None and schedule.steps is not None:
            found["copy"] = schedule.copy[some].tolist()
            found["steps"] = schedule.steps[some].tolist()
        names, partner = list(found), schedule.partner[some].tolist()
        for row, other, values in zip(
            some.tolist(), partner, zip(*found.values(), strict=True), strict=True
        ):
            record = {"kind": "run", **dict(zip(names, values, strict=True))}
            if other >= 0:
                record["partner"] = other
            yield row, record


class _PieceFields:
    """Third entry of pieces of runs: a GPU held in part, a row of a profile, or replicas of stages."""

    def __init__(self, instance: Instance, schedule: Schedule) -> None:
        self._schedule = schedule
        self._milli = instance.workload.gpu_milli
        conditions = instance.conditions
        self._cell: NDArray[np.int64] | None = None
        if conditions is not None and conditions.sensitivity is not None:
            self._cell = np.zeros(len(schedule), dtype=np.int64)
            of = conditions.sensitivity.of[schedule.job]
            for number, profile in enumerate(conditions.sensitivity.profiles):
                mine = np.flatnonzero(of == number)
                self._cell[mine] = self._reached(profile, mine)

    def _reached(self, profile: Profile, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Row of a profile that what is held reaches, of those with a speed; -1 for none."""
        s = self._schedule
        assert s.cpus is not None
        assert s.memory_gb is not None
        axes = (profile.cpus_per_gpu, s.cpus), (profile.memory_gb_per_gpu, s.memory_gb)
        at = [
            np.searchsorted(axis, held[rows] / s.gpus[rows] * _REACHED, side="right") - 1
            for axis, held in axes
        ]
        number = np.cumsum(profile.speed.ravel() > 0) - 1
        cell = number[np.maximum(at[0], 0) * len(axes[1][0]) + np.maximum(at[1], 0)]
        return np.where((at[0] >= 0) & (at[1] >= 0), cell, -1)

    def of(self, row: int) -> list[Any]:
        """Entries of a row beyond its node and GPUs."""
        s = self._schedule
        if s.stages is not None:
            return [[int(count) for count in s.stages[row]]]
        if self._cell is not None:
            return [int(self._cell[row])]
        if s.shared_gpu is not None and self._milli[s.job[row]] < WHOLE_GPU:
            return [int(s.shared_gpu[row])]
        return []
