"""Allocation problems from JSON, as in the published record of Gavel's policies.

One object: ``cluster`` (GPU type to number of GPUs), ``jobs`` (objects with ``type``, ``sf`` (gang),
``w`` (weight), ``steps``, ``t0`` (seconds since arrival) and ``tput``, steps per second by type name,
``{"v100": 40, "k80": 10}``, or a list in the order in which the cluster is written), and optionally

==============  =====================================================================================
``pairs``       null for none; ``"lookup"``: from the throughput table given beside; or a list of
                objects ``jobs`` (two positions) and ``tput`` (for each type, the two rates)
``placements``  further types of throughputs that draw on a type's GPUs, e.g. not consolidated:
                name to type of the cluster; in lists they come after the types of the cluster
``prices``      GPU type to dollars per GPU and hour; public ones for known names, else 1
``data``        what models of one's own ask for, by name of a Param: a number, a list, or an object
                with a number for each GPU type or each entity
==============  =====================================================================================

and for each job ``id``, ``slo_s`` (seconds from now, null for none), ``isolated_s``, ``entity``, and
``data``, numbers by name, in all jobs the same names.
Other entries are errors; so is text where a number is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Meta, UnsetType
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.documents.schema import Amount, Line, Number, decode
from shadowprice.instances.entries import LARGEST, known_keys, shown
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.throughputs import Throughputs

_Gpus: TypeAlias = Annotated[
    float, Meta(ge=0, le=LARGEST, multiple_of=1, description="a whole number of GPUs")
]


_Rate = TypeVar("_Rate", float, tuple[float, float])


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """Fields are called as columns of a problem, the file's keys as in the published record."""

    id: Line | int | UnsetType = UNSET
    model: Line | int = msgspec.field(name="type", default="")
    throughput: list[Number] | dict[str, Number] = msgspec.field(name="tput")
    gpus: Number = msgspec.field(name="sf", default=1.0)
    weight: Number = msgspec.field(name="w", default=1.0)
    steps: Number = 1.0
    elapsed_s: Number = msgspec.field(name="t0", default=0.0)
    isolated_s: Number = 0.0
    slo_s: Number | None = None
    entity: Line | int = ""
    data: dict[str, Number] = msgspec.field(default_factory=dict)


_COLUMNS = ("gpus", "weight", "steps", "elapsed_s", "isolated_s", "entity")


class _Pair(msgspec.Struct, frozen=True):
    jobs: tuple[int, int]
    tput: list[tuple[Number, Number]] | dict[str, tuple[Number, Number]]


class _Problem(msgspec.Struct, frozen=True):
    cluster: dict[str, _Gpus]
    jobs: list[_Job]
    pairs: Annotated[
        list[_Pair] | Literal["lookup"] | None,
        Meta(description='null, "lookup" or a list of pairs'),
    ] = None
    placements: dict[str, str] | None = None
    prices: dict[str, Amount] | None = None
    data: dict[str, Number | list[Number] | dict[str, Number]] = msgspec.field(default_factory=dict)


def load_allocation_problem(
    path: str | Path, throughputs: Throughputs | None = None
) -> AllocationProblem:
    """Read a problem.

    Parameters
    ----------
    throughputs : Throughputs, optional
        Where ``"pairs": "lookup"`` looks; if given, pairs are looked up when the file has none.

    Raises
    ------
    InputError
        Naming the file, the entry, its value and what was expected.
    """
    return problem_of(read_json(path), throughputs, str(path))


def problem_of(
    data: object, throughputs: Throughputs | None = None, source: str = "problem"
) -> AllocationProblem:
    """The problem of a parsed JSON object."""
    given = decode(_Problem, data, source)
    cluster, jobs = given.cluster, given.jobs
    if not cluster:
        raise InputError(f"{source}: cluster has no GPU type, expected at least one")
    if not jobs:
        raise InputError(f"{source}: jobs has no entry, expected at least one job")
    placements = given.placements or {}
    for name, drawn_from in placements.items():
        if drawn_from not in cluster:
            raise InputError(
                f"{source}: placements[{shown(name)}] is {shown(drawn_from)}, expected a type of the "
                "cluster"
            )
    for name in placements:
        if name in cluster:
            raise InputError(
                f"{source}: placements[{shown(name)}] is a type of the cluster, expected another name"
            )
    types, accelerators = [*cluster, *placements], list(cluster)
    prices = {name: PRICES_PER_GPU_H.get(name, 1.0) for name in cluster}
    prices |= known_keys(given.prices or {}, f"{source}: prices", tuple(cluster))
    rates = [_by_type(job.throughput, types, f"{source}: jobs[{k}]") for k, job in enumerate(jobs)]
    columns: dict[str, Any] = {name: [getattr(job, name) for job in jobs] for name in _COLUMNS}
    problem = AllocationProblem.from_columns(
        gpu_types=types,
        accelerators=[accelerators.index(placements.get(name, name)) for name in types],
        capacity=[cluster[name] for name in accelerators],
        price=[prices[placements.get(name, name)] for name in types],
        throughput=rates,
        id=[k if job.id is UNSET else job.id for k, job in enumerate(jobs)],
        slo_s=[inf if job.slo_s is None else job.slo_s for job in jobs],
        source=source,
        job_data=_job_data(jobs, source),
        **columns,
    )
    problem = replace(problem, data=_data(given.data, problem))
    if isinstance(given.pairs, list):
        return problem.with_pairs(_listed(given.pairs, len(problem), types, source))
    if throughputs is None:
        return problem
    models = [str(job.model) for job in jobs]
    return problem.with_pairs(looked_up_pairs(problem, models, throughputs))


def _by_type(
    rates: Sequence[_Rate] | Mapping[str, _Rate], types: Sequence[str], where: str
) -> list[_Rate]:
    """Rates in the order of the types: by name, or as many as there are in the order of the file."""
    if isinstance(rates, Mapping):
        named = known_keys(dict(rates), f"{where}: tput", tuple(types), tuple(types))
        return [named[name] for name in types]
    if len(rates) != len(types):
        raise InputError(
            f"{where}: tput is {shown(rates)}, expected {len(types)} rates, by type name or in the "
            f"order of the file: {', '.join(types)}"
        )
    return list(rates)


def _job_data(jobs: Sequence[_Job], source: str) -> dict[str, list[float]]:
    """Columns of the jobs' further numbers."""
    names = set(jobs[0].data) if jobs else set()
    for k, job in enumerate(jobs):
        if set(job.data) != names:
            raise InputError(
                f"{source}: jobs[{k}]: data has {shown(sorted(job.data))}, expected as the first job "
                f"has, {shown(sorted(names))}"
            )
    return {name: [job.data[name] for job in jobs] for name in sorted(names)}


def _data(
    numbers: Mapping[str, float | list[float] | dict[str, float]], problem: AllocationProblem
) -> dict[str, NDArray[np.float64]]:
    """Further numbers in the order of index sets: GPU types, or entities by their first jobs."""
    entities = list(dict.fromkeys(problem.entity.tolist()))
    found: dict[str, NDArray[np.float64]] = {}
    for name, values in numbers.items():
        if isinstance(values, dict):
            orders = (list(problem.gpu_types), entities)
            order = next((order for order in orders if set(order) == set(values)), None)
            if order is None:
                raise InputError(
                    f"{problem.source}: data[{shown(name)}] is for {shown(sorted(values))}, expected "
                    f"a number for each GPU type, {shown(orders[0])}, or each entity, {shown(entities)}"
                )
            values = [values[key] for key in order]
        found[name] = np.array(values, dtype=np.float64)
    return found


def looked_up_pairs(
    problem: AllocationProblem, models: Sequence[str], throughputs: Throughputs
) -> Pairs:
    """All pairs of jobs of equal gang that were measured together; O(kinds^2 + pairs).

    Parameters
    ----------
    models : sequence of str
        Model of each job.
    """
    kinds = [(model, int(gpus)) for model, gpus in zip(models, problem.gpus, strict=True)]
    distinct = list(dict.fromkeys(kinds))
    number = np.array([distinct.index(kind) for kind in kinds], dtype=np.int64)
    size, types = len(distinct), problem.gpu_types
    rates = np.zeros((size, size, len(types), 2))
    for a, one in enumerate(distinct):
        for b, other in enumerate(distinct):
            if one[1] == other[1]:
                for j, name in enumerate(types):
                    rates[a, b, j] = throughputs.pair(name, one, other) or (0.0, 0.0)
    able = np.asarray(rates.any(axis=(2, 3)))
    first, second = np.triu_indices(len(problem), 1)
    together = able[number[first], number[second]]
    first, second = first[together], second[together]
    both = rates[number[first], number[second]]
    return Pairs(
        first, second, np.ascontiguousarray(both[..., 0]), np.ascontiguousarray(both[..., 1])
    )


def _listed(pairs: list[_Pair], count: int, types: Sequence[str], source: str) -> Pairs:
    first, second, rates = [], [], []
    for k, pair in enumerate(pairs):
        where = f"{source}: pairs[{k}]"
        if not all(0 <= job < count for job in pair.jobs):
            raise InputError(
                f"{where}: jobs is {shown([*pair.jobs])}, expected two positions from 0 to {count - 1}"
            )
        both = np.array(_by_type(pair.tput, types, where), dtype=np.float64)
        swap = pair.jobs[0] > pair.jobs[1]
        first.append(min(pair.jobs))
        second.append(max(pair.jobs))
        rates.append(both[:, ::-1] if swap else both)
    table = np.array(rates).reshape(-1, len(types), 2)
    return Pairs(
        np.array(first, dtype=np.int64),
        np.array(second, dtype=np.int64),
        table[..., 0],
        table[..., 1],
    )


# Public prices of GPUs, used where an input names a type and gives no price.
#
# Google Cloud, preemptible, in dollars per GPU and hour, as in Gavel's released code
# (github.com/stanford-futuredata/gavel at c4fa400, 2022).


PRICES_PER_GPU_H: Mapping[str, float] = MappingProxyType({"v100": 0.74, "p100": 0.43, "k80": 0.135})
