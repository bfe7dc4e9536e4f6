"""Allocation problems from JSON, as in the published record of Gavel's policies.

One object: ``cluster`` (GPU type to number of GPUs), ``jobs`` (objects with ``type``, ``sf`` (gang),
``w`` (weight), ``steps``, ``t0`` (seconds since arrival) and ``tput``, a list in sorted order of
type names), and optionally

==============  =====================================================================================
``pairs``       null for none; ``"lookup"``: from the throughput table given beside; or a list of
                objects ``jobs`` (two positions) and ``tput`` (for each type, the two rates)
``placements``  further types of throughputs that draw on a type's GPUs, e.g. not consolidated:
                name to type of the cluster; ``tput`` is then in sorted order of all names
``prices``      GPU type to dollars per GPU and hour; public ones for known names, else 1
==============  =====================================================================================

and for each job ``id``, ``slo_s`` (seconds from now, null for none), ``isolated_s``, ``entity``.
Other entries are errors; so is text where a number is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.entries import ONE_LINE, is_number, known_keys, on_one_line, shown
from shadowprice.instances.files import read_json
from shadowprice.instances.speeds.throughputs import Throughputs

_JOB_COLUMNS = {
    "sf": ("gpus", 1),
    "w": ("weight", 1.0),
    "steps": ("steps", 1.0),
    "t0": ("elapsed_s", 0.0),
    "isolated_s": ("isolated_s", 0.0),
    "slo_s": ("slo_s", float("inf")),
    "entity": ("entity", ""),
}
_NUMBERS = frozenset(_JOB_COLUMNS) - {"entity"}
_KNOWN = ("cluster", "jobs", "pairs", "placements", "prices")
_JOB = ("id", "type", "tput", *_JOB_COLUMNS)
_PAIR = ("jobs", "tput")


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
    data = known_keys(data, source, _KNOWN, ("cluster", "jobs"))
    cluster = _numbers(data["cluster"], f"{source}: cluster")
    for name, gpus in cluster.items():
        if gpus != int(gpus):
            raise InputError(f"{source}: cluster: {shown(name)} is {gpus!r}, expected whole GPUs")
    placements = _names(data.get("placements"), cluster, f"{source}: placements")
    types = sorted({*cluster, *placements})
    accelerators = sorted(cluster)
    if not isinstance(data["jobs"], list):
        raise InputError(f"{source}: jobs is {shown(data['jobs'])}, expected a list of objects")
    jobs = [_job(job, f"{source}: job {k}") for k, job in enumerate(data["jobs"])]
    prices = {name: PRICES_PER_GPU_H.get(name, 1.0) for name in cluster}
    prices |= _numbers(
        known_keys(data.get("prices") or {}, f"{source}: prices", tuple(cluster)),
        f"{source}: prices",
    )
    columns: dict[str, Any] = {
        ours: [job.get(theirs, default) for job in jobs]
        for theirs, (ours, default) in _JOB_COLUMNS.items()
    }
    columns["slo_s"] = [np.inf if slo is None else slo for slo in columns["slo_s"]]
    problem = AllocationProblem.from_columns(
        gpu_types=types,
        accelerators=[accelerators.index(placements.get(name, name)) for name in types],
        capacity=[cluster[name] for name in accelerators],
        price=[prices[placements.get(name, name)] for name in types],
        throughput=[_rates(job, len(types), f"{source}: job {k}") for k, job in enumerate(jobs)],
        id=[job.get("id", k) for k, job in enumerate(jobs)],
        source=source,
        **columns,
    )
    return _with_pairs(problem, data.get("pairs"), jobs, throughputs)


def _job(entry: object, where: str) -> dict[str, Any]:
    """One job, its numbers being numbers."""
    ours = {column: key for key, (column, _) in _JOB_COLUMNS.items()}
    job = known_keys(entry, where, _JOB, ("tput",), ours)
    for key in _NUMBERS & job.keys():
        if not is_number(job[key]) and not (key == "slo_s" and job[key] is None):
            raise InputError(f"{where}: {key} is {shown(job[key])}, expected a number")
    for key in ("id", "type", "entity"):
        name = job.get(key, "")
        if type(name) is not int and not (isinstance(name, str) and on_one_line(name)):
            raise InputError(f"{where}: {key} is {shown(name)}, expected {ONE_LINE}")
    return job


def _with_pairs(
    problem: AllocationProblem,
    pairs: object,
    jobs: Sequence[Mapping[str, Any]],
    throughputs: Throughputs | None,
) -> AllocationProblem:
    source = problem.source
    if isinstance(pairs, list):
        return problem.with_pairs(_listed(pairs, len(problem), len(problem.gpu_types), source))
    if pairs not in (None, "lookup"):
        raise InputError(f'{source}: pairs is {shown(pairs)}, expected null, "lookup" or a list')
    if throughputs is None:
        return problem
    models = [str(job.get("type", "")) for job in jobs]
    return problem.with_pairs(looked_up_pairs(problem, models, throughputs))


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


def _listed(pairs: list[Any], count: int, types: int, source: str) -> Pairs:
    first, second, rates = [], [], []
    for k, pair in enumerate(pairs):
        where = f"{source}: pair {k}"
        known_keys(pair, where, _PAIR, _PAIR)
        jobs, rows = pair["jobs"], pair["tput"]
        some = isinstance(jobs, list) and [type(job) for job in jobs] == [int, int]
        if not some or not all(0 <= job < count for job in jobs):
            raise InputError(
                f"{where}: jobs is {shown(jobs)}, expected two positions from 0 to {count - 1}"
            )
        if not isinstance(rows, list) or len(rows) != types or not all(map(_two, rows)):
            raise InputError(
                f"{where}: tput is {shown(rows)}, expected two rates for each of {types} types"
            )
        (a, b), both = jobs, np.array(rows, dtype=np.float64)
        swap = a > b
        first.append(min(a, b))
        second.append(max(a, b))
        rates.append(both[:, ::-1] if swap else both)
    table = np.array(rates).reshape(-1, types, 2)
    return Pairs(
        np.array(first, dtype=np.int64),
        np.array(second, dtype=np.int64),
        table[..., 0],
        table[..., 1],
    )


def _two(rates: object) -> bool:
    return isinstance(rates, list) and len(rates) == 2 and all(map(is_number, rates))


def _rates(job: Mapping[str, Any], types: int, where: str) -> list[float]:
    rates = job.get("tput")
    if not isinstance(rates, list) or len(rates) != types or not all(map(is_number, rates)):
        raise InputError(
            f"{where}: tput is {shown(rates)}, expected {types} rates, in order of type names"
        )
    return rates


def _numbers(given: object, where: str) -> dict[str, float]:
    if not isinstance(given, dict):
        raise InputError(f"{where} is {shown(given)}, expected an object of numbers")
    for name, value in given.items():
        if not is_number(value) or value < 0:
            raise InputError(f"{where}: {shown(name)} is {shown(value)}, expected a number >= 0")
    return dict(given)


def _names(given: object, cluster: Mapping[str, float], where: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(name in cluster for name in given.values()):
        raise InputError(f"{where} is {shown(given)}, expected an object of types of the cluster")
    return dict(given)


# Public prices of GPUs, used where an input names a type and gives no price.
#
# Google Cloud, preemptible, in dollars per GPU and hour, as in Gavel's released code
# (github.com/stanford-futuredata/gavel at c4fa400, 2022).


PRICES_PER_GPU_H: Mapping[str, float] = MappingProxyType({"v100": 0.74, "p100": 0.43, "k80": 0.135})
