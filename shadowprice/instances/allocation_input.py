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

and for each job ``id``, ``slo_s`` (seconds from now), ``isolated_s``, ``entity``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.files import read_text
from shadowprice.instances.prices import PRICES_PER_GPU_H
from shadowprice.instances.throughputs import Throughputs

_JOB_COLUMNS = {
    "sf": ("gpus", 1),
    "w": ("weight", 1.0),
    "steps": ("steps", 1.0),
    "t0": ("elapsed_s", 0.0),
    "isolated_s": ("isolated_s", 0.0),
    "slo_s": ("slo_s", float("inf")),
    "entity": ("entity", ""),
}
_KNOWN = {"cluster", "jobs", "pairs", "placements", "prices"}


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
    source = str(path)
    try:
        data = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{source}: is not JSON: {error}") from error
    return problem_of(data, throughputs, source)


def problem_of(
    data: object, throughputs: Throughputs | None = None, source: str = "problem"
) -> AllocationProblem:
    """The problem of a parsed JSON object."""
    if not isinstance(data, dict) or not {"cluster", "jobs"} <= data.keys():
        raise InputError(f"{source}: expected an object with cluster and jobs")
    unknown = sorted(data.keys() - _KNOWN)
    if unknown:
        raise InputError(
            f"{source}: entry {unknown[0]!r}, expected one of {', '.join(sorted(_KNOWN))}"
        )
    cluster = _numbers(data["cluster"], f"{source}: cluster")
    placements = _names(data.get("placements"), cluster, f"{source}: placements")
    types = sorted({*cluster, *placements})
    accelerators = sorted(cluster)
    jobs = data["jobs"]
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise InputError(f"{source}: jobs is no list of objects")
    prices = {name: PRICES_PER_GPU_H.get(name, 1.0) for name in cluster}
    prices |= _numbers(data.get("prices") or {}, f"{source}: prices")
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


def _with_pairs(
    problem: AllocationProblem,
    pairs: object,
    jobs: Sequence[Mapping[str, Any]],
    throughputs: Throughputs | None,
) -> AllocationProblem:
    source = problem.source
    if isinstance(pairs, list):
        return problem.with_pairs(_listed(pairs, len(problem.gpu_types), source))
    if pairs not in (None, "lookup"):
        raise InputError(f'{source}: pairs is {pairs!r}, expected null, "lookup" or a list')
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


def _listed(pairs: list[Any], types: int, source: str) -> Pairs:
    first, second, rates = [], [], []
    for k, pair in enumerate(pairs):
        where = f"{source}: pair {k}"
        try:
            a, b = (int(job) for job in pair["jobs"])
            both = np.array(pair["tput"], dtype=np.float64).reshape(types, 2)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{where}: expected two jobs and, for each of {types} types, two rates: {error}"
            ) from error
        swap = a > b
        first.append(min(a, b))
        second.append(max(a, b))
        rates.append(both[:, ::-1] if swap else both)
    table = np.array(rates).reshape(-1, types, 2)
    return Pairs(
        np.array(first, dtype=np.int64), np.array(second, dtype=np.int64),
        table[..., 0], table[..., 1],
    )  # fmt: skip


def _rates(job: Mapping[str, Any], types: int, where: str) -> list[float]:
    rates = job.get("tput")
    if not isinstance(rates, list) or len(rates) != types:
        raise InputError(
            f"{where}: tput is {rates!r}, expected {types} rates, in order of type names"
        )
    return rates


def _numbers(given: object, where: str) -> dict[str, float]:
    if not isinstance(given, dict):
        raise InputError(f"{where} is {given!r}, expected an object of numbers")
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < np.inf:
            raise InputError(f"{where}: {name} is {value!r}, expected a number >= 0")
    return dict(given)


def _names(given: object, cluster: Mapping[str, float], where: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict) or not all(name in cluster for name in given.values()):
        raise InputError(f"{where} is {given!r}, expected an object of types of the cluster")
    return dict(given)
