"""Tasks of a study carried out: one run, or the bounds of one instance, in whatever process."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.points.digests import DIGITS, file_digest, package_digest
from shadowprice.analysis.points.kept import Kept
from shadowprice.analysis.semantics import Semantics
from shadowprice.analysis.settle import settle
from shadowprice.analysis.simulate import simulate
from shadowprice.analysis.study.instance_digest import digest_of
from shadowprice.analysis.study.plan import RunTask
from shadowprice.analysis.study.run_rows import rows_of_run
from shadowprice.analysis.study.study_file import TraceArrivals
from shadowprice.analysis.switches import WrittenSwitches
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import endless, generate, generators
from shadowprice.instances.generators.rescaling import at_load, poisson_arrivals_of, shuffled
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.terms.options.reading import terms_of_mapping
from shadowprice.instances.traces import Imported, load_trace
from shadowprice.instances.workload import Workload

_TRACES_KEPT = 2


@dataclass(frozen=True)
class FailedRun:
    """A task that gave no rows.

    Parameters
    ----------
    why : str
        In one line.
    details : str
        The traceback, of failures that the user cannot have caused; empty of others.
    """

    why: str
    details: str = field(default="", repr=False)


@dataclass(frozen=True)
class RunGiven:
    """All that one run is made of."""

    workload: Workload | EndlessWorkload
    cluster: Cluster
    policy: str
    semantics: Semantics
    drop_infeasible: bool


def run_task(task: RunTask) -> Kept | FailedRun:
    """Rows of a task; a task that fails takes no other with it."""
    began_s = time.process_time()
    try:
        _expect_same(task)
        settings = json.loads(task.settings)
        rows = _bounds(settings) if settings["kind"] == "bounds" else _run(settings)
    except ShadowpriceError as error:
        return FailedRun(" ".join(str(error).split()))
    except Exception as error:
        return FailedRun(f"{type(error).__name__}: {error}", traceback.format_exc())
    return Kept(task.code, rows, time.process_time() - began_s)


def _expect_same(task: RunTask) -> None:
    """Refuse to run by other code or on other files than the task was planned with.

    Raises
    ------
    InputError
        Where another machine has another version of the package, or a file changed or is missing.
    """
    here = package_digest()[:DIGITS]
    if here != task.code:
        raise InputError(
            f"package: its code is {here} here and {task.code} where the study was planned, expected one version "
            "on all machines"
        )
    for path, digest in task.files:
        found = file_digest(Path(path))
        if found != digest:
            raise InputError(f"{path}: is not the file that the study was planned with")


def carried_out(task: RunTask) -> Outcome:
    """The verified outcome of a run, again.

    Raises
    ------
    ShadowpriceError
        As of :func:`shadowprice.simulate`.
    """
    return _outcome(json.loads(task.settings))


def _run(settings: dict[str, Any]) -> list[dict[str, Any]]:
    groups = settings["groups"]
    return rows_of_run(_outcome(settings), settings["warm_up"], groups)


def _outcome(settings: dict[str, Any]) -> Outcome:
    given = read_run(settings)
    return simulate(
        given.workload,
        given.cluster,
        given.policy,
        given.semantics,
        drop_infeasible=given.drop_infeasible,
    )


def _bounds(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Certified bounds of an instance, for preemptive schedules."""
    given = read_run(settings)
    if isinstance(given.workload, EndlessWorkload) or given.semantics.until_complete is not None:
        raise InputError("bounds: are of runs in which all jobs complete, and a window is given")
    run = settle(
        given.workload,
        given.cluster,
        given.policy,
        given.semantics,
        drop_infeasible=given.drop_infeasible,
    )
    goals = [Objective(name) for name in settings["objectives"]]
    where = "" if run.instance.failures is None else " on nodes that never fail"
    found = certified_bounds(run.instance, goals, BoundEffort.of_size(settings["columns"]))
    return [
        {
            "table": "bounds",
            "instance": digest_of(run.instance),
            "objective": str(goal),
            "bound_s": bound.value_s,
            "bound_ticks": str(bound.ticks),
            "bound_kind": bound.kind,
            "bound_class": f"{bound.holds_for}{where}",
            "certified": bound.certified,
        }
        for goal, bound in found.items()
    ]


def read_run(settings: dict[str, Any]) -> RunGiven:
    """Jobs, cluster and switches of a task.

    Raises
    ------
    InputError
        If a file or a value is not as expected.
    """
    entry, conditions = settings["workload"], dict(settings["conditions"])
    table = None if "throughputs" not in entry else _throughputs(entry["throughputs"])
    cluster, seed = Cluster.load(settings["cluster"]), settings["seed"]
    drop = conditions.pop("drop_infeasible", False)
    terms = terms_of_mapping(conditions.pop("with", {}), "with")
    if "samples" in conditions:
        conditions["samples"] = Path(conditions["samples"])
    # Every policy meets the same draws of a seed, those of failures among them.
    run = WrittenSwitches(**conditions, seed=seed, terms=terms).read(
        cluster,
        table,
        jobs=entry.get("trace", entry.get("generator")),
        origin_s=_origin_s(entry),
        endless=entry.get("endless", False),
        drawn_by=seed,
    )
    jobs = _jobs(entry, cluster, settings["load"], seed, table)
    return RunGiven(jobs, run.cluster, settings["policy"], run.semantics, drop)


def _origin_s(entry: dict[str, Any]) -> float | None:
    """Time 0 of a trace's jobs in seconds since 1970, None if it does not say it or jobs are generated."""
    return _imported(entry).origin_s if "trace" in entry else None


def _jobs(
    entry: dict[str, Any],
    cluster: Cluster,
    load: float | None,
    seed: int,
    table: Throughputs | None,
) -> Workload | EndlessWorkload:
    if "trace" in entry:
        jobs = _traced(entry)
        if entry.get("arrivals") == TraceArrivals.SHUFFLED:
            jobs = shuffled(jobs, seed)
        elif entry.get("arrivals") == TraceArrivals.POISSON:
            jobs = poisson_arrivals_of(shuffled(jobs, seed), seed)
        return jobs if load is None else _at_load(jobs, cluster, load)
    given = entry["parameters"]
    if entry.get("endless"):
        return _endless(entry["generator"], given, load, seed, table)
    takes = signature(generators()[entry["generator"]].generate).parameters
    more: dict[str, Any] = {"seed": seed}
    if "gpus_total" in takes:
        more["gpus_total"] = cluster.physical_gpus
    if "throughputs" in takes and table is not None:
        more["throughputs"] = table
    of_its_own = load is not None and "load" in takes
    if of_its_own:
        more["load"] = load
    drawn = generate(entry["generator"], **{**more, **_with_numbers(given)})
    return drawn if load is None or of_its_own else _at_load(drawn, cluster, load)


def _at_load(jobs: Workload, cluster: Cluster, load: float) -> Workload:
    """Jobs at a load of the cluster, each counted on the type on which it is fastest; those that fit nowhere not."""
    fastest_s = jobs.on_allowed_types(cluster).processing_s(cluster).min(axis=1)
    run_s = np.where(np.isfinite(fastest_s), fastest_s, 0.0)
    return at_load(jobs, load, cluster.physical_gpus, run_s)


def _endless(
    name: str, given: dict[str, Any], load: float | None, seed: int, table: Throughputs | None
) -> EndlessWorkload:
    if load is not None:
        raise InputError(
            f"generator {name!r}: an endless workload has a rate of its own, and load {load:g} is given"
        )
    more = {} if table is None else {"throughputs": table}
    return endless(name, seed=seed, **more, **_with_numbers(given))


def _with_numbers(value: Any) -> Any:
    """Mappings with numbers for keys that are some: JSON has text there."""
    if isinstance(value, dict):
        return {_number(key): _with_numbers(each) for key, each in value.items()}
    return value


def _number(text: str) -> Any:
    return int(text) if text.isdigit() else text


def _traced(entry: dict[str, Any]) -> Workload:
    path, jobs = Path(entry["trace"]), _imported(entry).workload
    first = entry.get("jobs")
    if first is None:
        return jobs
    if first > len(jobs):
        raise InputError(f"{path}: has {len(jobs)} jobs, expected at least {first}")
    return jobs.select(np.arange(first))


def _imported(entry: dict[str, Any]) -> Imported:
    path = Path(entry["trace"])
    return _read_trace(path, file_digest(path), entry.get("format"), entry.get("throughputs"))


@lru_cache(_TRACES_KEPT)
def _read_trace(path: Path, _digest: str, name: str | None, table: str | None) -> Imported:
    """A trace, kept while a process runs for the tasks that follow."""
    return load_trace(path, format=name, throughputs=None if table is None else _throughputs(table))


@lru_cache(_TRACES_KEPT)
def _throughputs(path: str) -> Throughputs:
    return load_throughputs(path)
