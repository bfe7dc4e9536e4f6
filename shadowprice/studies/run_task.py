"""Tasks of a study carried out: one run, or the bounds of one instance, in whatever process."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.preparation import prepare_run
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.documents.schema import decode
from shadowprice.instances.generators import endless, generate, generators
from shadowprice.instances.generators.rescaling import at_load, poisson_arrivals_of, shuffled
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.steady_state.endless import EndlessWorkload
from shadowprice.instances.traces import Imported, load_trace
from shadowprice.instances.workload import Workload
from shadowprice.studies.instance_digest import digest_of
from shadowprice.studies.points.digests import DIGITS, file_digest, package_digest
from shadowprice.studies.run_rows import rows_of_run
from shadowprice.studies.study_file import TraceArrivals, plain_value
from shadowprice.user_code import runs_a_file

_CACHED_TRACES = 2


@dataclass(frozen=True, repr=False)
class RunArguments(Brief):
    """All that one run is made of."""

    workload: Workload | EndlessWorkload
    cluster: Cluster
    policy: str
    options: RunOptions
    drop_infeasible: bool


@dataclass(frozen=True, repr=False)
class RunTask(Brief):
    """A run, or the bounds of an instance, as it is sent to whatever process carries it out.

    Parameters
    ----------
    settings : str
        All that it depends on, as JSON; files by their paths.
    files : tuple of (str, str)
        Paths, and the digests of what was in them.
    code : str
        Digest of the package.
    key : str
        ``settings`` with the files' names and digests for their paths.
    """

    settings: str
    files: tuple[tuple[str, str], ...]
    code: str
    key: str

    def rows(self) -> list[dict[str, Any]]:
        """Carry it out.

        Raises
        ------
        ShadowpriceError
            As of :func:`shadowprice.simulate`; or where another machine has another version of the package, or a file
            changed or is missing.
        """
        here = package_digest()[:DIGITS]
        if here != self.code:
            raise InputError(
                f"package: its code is {here} here and {self.code} where the study was planned, expected one version "
                "on all machines"
            )
        for path, digest in self.files:
            if file_digest(Path(path)) != digest:
                raise InputError(f"{path}: is not the file that the study was planned with")
        settings = json.loads(self.settings)
        if settings["kind"] == "bounds":
            return _bounds(self.arguments(), settings["objectives"], settings["columns"])
        return rows_of_run(self.outcome(), settings["warm_up"], settings["groups"])

    def outcome(self) -> Outcome:
        """The verified outcome of a run.

        Raises
        ------
        ShadowpriceError
            As of :func:`shadowprice.simulate`.
        """
        run = self.arguments()
        return simulate(
            run.workload,
            run.cluster,
            run.policy,
            run.options,
            drop_infeasible=run.drop_infeasible,
        )

    def arguments(self) -> RunArguments:
        """Jobs, cluster and options.

        Raises
        ------
        InputError
            If a file or a value is not as expected.
        """
        return _read(json.loads(self.settings))


def _bounds(run: RunArguments, objectives: list[str], columns: int) -> list[dict[str, Any]]:
    """Certified bounds of an instance, for preemptive schedules."""
    if isinstance(run.workload, EndlessWorkload) or run.options.until_complete is not None:
        raise InputError("bounds: are of runs in which all jobs complete, and a window is given")
    # The instance is the same wherever its policy runs; a sealed policy's file is never run here.
    if run.options.sealed and runs_a_file(run.policy):
        raise InputError("bounds: are computed under a policy by its name where runs are sealed")
    unsealed = replace(run.options, sealed=False)
    instance = prepare_run(
        run.workload, run.cluster, run.policy, unsealed, drop_infeasible=run.drop_infeasible
    ).instance
    goals = [Objective(name) for name in objectives]
    where = "" if instance.failures is None else " on nodes that never fail"
    bounds = certified_bounds(instance, goals, BoundEffort.of_size(columns))
    return [
        {
            "table": "bounds",
            "instance": digest_of(instance),
            "objective": str(goal),
            "bound_s": bound.value_s,
            "bound_ticks": str(bound.ticks),
            "bound_kind": bound.kind,
            "bound_class": f"{bound.holds_for}{where}",
            "certified": bound.certified,
        }
        for goal, bound in bounds.items()
    ]


def _read(settings: dict[str, Any]) -> RunArguments:
    entry = settings["workload"]
    written = decode(WrittenOptions, settings["conditions"], "conditions")
    table = None if "throughputs" not in entry else _throughputs(entry["throughputs"])
    cluster, seed = Cluster.load(settings["cluster"]), settings["seed"]
    # Every policy meets the same draws of a seed, those of failures among them.
    run = written.read(
        cluster,
        table,
        seed=seed,
        jobs=entry.get("trace", entry.get("generator")),
        origin_s=_origin_s(entry),
        endless=entry.get("endless", False),
        drawn_by=seed,
    )
    jobs = _jobs(entry, cluster, settings["load"], seed, table)
    return RunArguments(jobs, run.cluster, settings["policy"], run.options, written.drop_infeasible)


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
    drawn = generate(entry["generator"], **{**more, **plain_value(given)})
    return drawn if load is None or of_its_own else _at_load(drawn, cluster, load)


def _at_load(jobs: Workload, cluster: Cluster, load: float) -> Workload:
    """Jobs at a load of the cluster, each counted on the type on which it is fastest; those that fit nowhere not."""
    fastest_s = jobs.on_allowed_types(cluster).processing_s(cluster).min(axis=1)
    run_s = np.where(np.isfinite(fastest_s), fastest_s, 0.0)
    return at_load(jobs, load, cluster.physical_gpus, run_s)


def _endless(
    name: str, parameters: dict[str, Any], load: float | None, seed: int, table: Throughputs | None
) -> EndlessWorkload:
    if load is not None:
        raise InputError(
            f"generator {name!r}: an endless workload has a rate of its own, and load {load:g} is given"
        )
    more = {} if table is None else {"throughputs": table}
    return endless(name, seed=seed, **more, **plain_value(parameters))


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


@lru_cache(_CACHED_TRACES)
def _read_trace(path: Path, _digest: str, name: str | None, table: str | None) -> Imported:
    """A trace, kept while a process runs for the tasks that follow."""
    return load_trace(path, format=name, throughputs=None if table is None else _throughputs(table))


@lru_cache(_CACHED_TRACES)
def _throughputs(path: str) -> Throughputs:
    return load_throughputs(path)
