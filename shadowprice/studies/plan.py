"""Plan of a study: every run of every combination of its axes, and the bounds they are compared with.

A run is known by its key: all that its rows depend on, files by name and digest of their contents. Names of the axes'
entries are not part of it, so that renaming one runs nothing again. With common random numbers, a seed draws the same
jobs for every policy, condition and load.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from shadowprice.analysis.preparation import require_taken
from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.brief import Brief
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.entries import known_keys
from shadowprice.instances.features import Feature
from shadowprice.instances.files import absolute
from shadowprice.instances.generators import generators
from shadowprice.instances.speeds.equal_types import types_taken_as_equal
from shadowprice.instances.terms.options.reading import terms_of_mapping
from shadowprice.solvers import registry
from shadowprice.solvers.graph_placement.protocol import graph_placements
from shadowprice.studies.job_table import COLUMNS
from shadowprice.studies.points.digests import DIGITS, file_digest, package_digest
from shadowprice.studies.run_task import RunTask
from shadowprice.studies.study_file import (
    SETTING,
    StudyFile,
    TraceArrivals,
    WorkloadEntry,
    named,
    plain_value,
)
from shadowprice.studies.term_axes import AxisLabel, AxisPoint, points_of, put_all
from shadowprice.user_code import code_from, code_in, runs_a_file

CLUSTER_FILES = (".toml", ".csv")
"""Suffixes of files of clusters; other words are their short notation."""

ANY_POLICY = "fifo"
"""A policy whose runs have the instance that all have: only presets change it."""

Swept: TypeAlias = tuple[tuple[str, AxisLabel], ...]
"""Entries of the axes over terms, by the columns of results."""


@dataclass(frozen=True, repr=False)
class PlannedRun(Brief):
    """A combination of the axes' entries, what it runs, and what bounds it.

    Parameters
    ----------
    axes : mapping of str to entry
        Names of the entries, by the columns that say which run a row is of, as :attr:`StudyFile.columns` has them;
        no load is None.
    bounds : RunTask or None
        Bounds of the instance, if the study asks for some.
    """

    axes: Mapping[str, Any]
    task: RunTask
    bounds: RunTask | None = None

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {value}" for name, value in self.axes.items() if value is not None
        )


@dataclass(frozen=True, repr=False)
class StudyPlan(Brief):
    """All runs of a study, in the order of its tables.

    Parameters
    ----------
    study : StudyFile
    runs : tuple of PlannedRun
    notes : tuple of str
        What the plan leaves out, and why; and GPU types that jobs do not tell apart.
    code : str
        Digest of the package.
    """

    study: StudyFile
    runs: tuple[PlannedRun, ...]
    notes: tuple[str, ...] = ()
    code: str = field(default_factory=lambda: package_digest()[:DIGITS])

    @property
    def tasks(self) -> list[RunTask]:
        """All tasks, each once, bounds after the runs of their instance."""
        found: dict[str, RunTask] = {}
        for run in self.runs:
            found.setdefault(run.task.key, run.task)
        for run in self.runs:
            if run.bounds is not None:
                found.setdefault(run.bounds.key, run.bounds)
        return list(found.values())

    @property
    def files(self) -> dict[str, str]:
        """Digests of the files that runs read, by path."""
        return dict(sorted({each for task in self.tasks for each in task.files}))


def plan_study(study: StudyFile, folder: Path) -> StudyPlan:
    """Expand a study; every name and file is looked up before anything is run.

    Parameters
    ----------
    folder : Path
        To which paths of the study are relative.

    Raises
    ------
    InputError
        If a policy, generator, parameter, cluster or file is not as expected.
    """
    code = package_digest()[:DIGITS]
    given: dict[str, dict[Any, Any]] = {
        "workload": {
            name: _workload(name, entry, folder) for name, entry in study.workloads.items()
        },
        "load": {load: load for load in study.loads or (None,)},
        "cluster": {name: _cluster(text, folder) for name, text in named(study.clusters).items()},
        "conditions": dict(_every_conditions(study, folder)),
        "policy": {name: code_from(text, folder) for name, text in named(study.policies).items()},
    }
    _check_names(study, given["policy"].values(), given["conditions"])
    seeds = study.every_seed
    drawn = {name: _is_drawn(entry) for name, entry in study.workloads.items()}
    runs: list[PlannedRun] = []
    for labels in itertools.product(*given.values()):
        entries = {axis: given[axis][label] for axis, label in zip(given, labels, strict=True)}
        for seed in seeds if drawn[labels[0]] else seeds[:1]:
            workload, load, cluster, (conditions, swept), policy = labels
            setting = dict(zip(SETTING, (workload, load, cluster, conditions), strict=True))
            axes = {**setting, **dict(swept), "policy": policy, "seed": seed}
            runs.append(PlannedRun(axes, *_tasks(study, {**entries, "seed": seed}, code)))
    _require_taken_options(runs)
    notes = [
        f"workload {name!r} is a recorded trace, the same for every seed: one run each, without intervals over seeds; "
        "`arrivals: shuffled` or `poisson` draws others"
        for name in drawn
        if not drawn[name] and len(seeds) > 1
    ]
    return StudyPlan(study, tuple(runs), (*notes, *_equal_types(runs)), code)


def _require_taken_options(runs: Iterable[PlannedRun]) -> None:
    """Refuse conditions with an option that one of the policies does not take; files are read once for each."""
    options: dict[str, RunOptions | None] = {}
    checked: set[tuple[str, str]] = set()
    for run in runs:
        settings = json.loads(run.task.settings)
        conditions, policy = json.dumps(settings["conditions"], sort_keys=True), settings["policy"]
        if (conditions, policy) in checked:
            continue
        checked.add((conditions, policy))
        if conditions not in options:
            try:
                options[conditions] = run.task.arguments().options
            except ShadowpriceError:  # The run itself says what is wrong with these jobs.
                options[conditions] = None
        chosen = options[conditions]
        if chosen is not None:
            try:
                require_taken(policy, chosen)
            except InputError as error:
                name, label = run.axes["conditions"], run.axes["policy"]
                raise InputError(f"conditions[{name!r}], policies[{label!r}]: {error}") from error


def _equal_types(runs: Iterable[PlannedRun]) -> Iterator[str]:
    """A sentence for each workload without throughputs and cluster of several GPU types, which it takes as equal."""
    first: dict[tuple[str, str], PlannedRun] = {}
    for run in runs:
        first.setdefault((run.axes["workload"], run.axes["cluster"]), run)
    for (workload, cluster), run in first.items():
        if len(Cluster.load(json.loads(run.task.settings)["cluster"]).gpu_types) == 1:
            continue
        try:
            read = run.task.arguments()
        except ShadowpriceError:  # The run itself says what is wrong.
            continue
        sentence = types_taken_as_equal(read.workload, read.cluster)
        if sentence is not None:
            yield f"workload {workload!r}, cluster {cluster!r}: {sentence}"


def _check_names(
    study: StudyFile,
    policies: Iterable[str],
    conditions: Mapping[tuple[str, Swept], dict[str, Any]],
) -> None:
    """Refuse policies, placements and groups that there are not, and windows that are missing or none."""
    unknown = [name for name in study.statistics.groups or () if name not in COLUMNS]
    if unknown:
        raise InputError(
            f"statistics: groups has {unknown[0]!r}, expected columns of jobs: {', '.join(COLUMNS)}"
        )
    endless = [name for name, entry in study.workloads.items() if entry.endless]
    for (name, _), entry in conditions.items():
        if "preset" not in entry:
            for text in policies:
                if not (entry.get("sealed") and runs_a_file(text)):
                    _require(text)
            placement = entry.get("placement")
            if placement is not None and placement not in graph_placements():
                registry.placement(placement)
        if endless and Feature.WINDOW not in entry.get("with", {}):
            raise InputError(
                f"conditions[{name!r}]: with has no {Feature.WINDOW}, needed by workload {endless[0]!r}, which is "
                "endless"
            )


def _require(text: str) -> None:
    """Refuse a policy that there is not, or whose parameters are not its own."""
    known = schedulers()
    if text.partition(":")[0] in known:
        registry.resolve("policy", text, known)
    else:
        registry.policy(text)


def _is_drawn(entry: WorkloadEntry) -> bool:
    """True if a seed changes the jobs."""
    return entry.trace is None or entry.arrivals is not TraceArrivals.RECORDED


def _tasks(study: StudyFile, settings: dict[str, Any], code: str) -> tuple[RunTask, RunTask | None]:
    wanted = study.statistics
    groups = None if wanted.groups is None else list(wanted.groups)
    warm_up = wanted.warm_up if isinstance(wanted.warm_up, int) else str(wanted.warm_up)
    run = _task({"kind": "run", **settings, "warm_up": warm_up, "groups": groups}, code)
    if study.bounds is None:
        return run, None
    bounds = {
        "objectives": [str(each) for each in study.bounds.objectives],
        "columns": study.bounds.columns,
    }
    policy = ANY_POLICY if settings["conditions"].get("preset") is None else settings["policy"]
    return run, _task({"kind": "bounds", **settings, "policy": policy, **bounds}, code)


def _task(settings: dict[str, Any], code: str) -> RunTask:
    text = json.dumps(settings, sort_keys=True)
    key, files = text, []
    for path in sorted(set(_paths(settings)), key=len, reverse=True):
        digest = file_digest(Path(path))
        files.append((path, digest))
        key = key.replace(json.dumps(path)[1:-1], f"{Path(path).name}:{digest}")
    return RunTask(text, tuple(sorted(files)), code, key)


def _paths(settings: dict[str, Any]) -> Iterator[str]:
    """Paths of all files that settings name."""
    entry, conditions = settings["workload"], settings["conditions"]
    for name in ("trace", "throughputs"):
        if name in entry:
            yield entry[name]
    if settings["cluster"].endswith(CLUSTER_FILES):
        yield settings["cluster"]
    if "samples" in conditions:
        yield conditions["samples"]
    for term in terms_of_mapping(conditions.get("with", {}), "with"):
        yield from term.files.values()
    for text in (settings["policy"], *(conditions.get(n, "") for n in ("placement", "predictor"))):
        yield from code_in(text)


def _workload(name: str, entry: WorkloadEntry, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(entry)
    if entry.generator is not None:
        found["parameters"] = _parameters(name, entry)
    for each in ("trace", "throughputs"):
        if each in found:
            found[each] = absolute(found[each], folder)
    return found


def _parameters(name: str, entry: WorkloadEntry) -> dict[str, Any]:
    """Parameters of a generator, their values as numbers where they look like some."""
    known = generators()
    if entry.generator not in known:
        raise InputError(
            f"workloads[{name!r}]: generator is {entry.generator!r}, expected one of {', '.join(sorted(known))}"
        )
    make = getattr(known[entry.generator], "endless" if entry.endless else "generate", None)
    if make is None:
        raise InputError(f"workloads[{name!r}]: generator {entry.generator!r} cannot be endless")
    taken = tuple(
        each for each in signature(make).parameters if each not in ("seed", "throughputs")
    )
    known_keys(entry.parameters, f"workloads[{name!r}]: parameters", taken)
    return {key: plain_value(value) for key, value in entry.parameters.items()}


def _every_conditions(
    study: StudyFile, folder: Path
) -> Iterator[tuple[tuple[str, Swept], dict[str, Any]]]:
    """Conditions at every point of the axes over terms, by their name and the entries of these axes."""
    for name, entry in study.conditions.items():
        for point in points_of(study.axes):
            swept = tuple((axis.name, axis.label(value)) for axis, value in point)
            yield (name, swept), _conditions(name, entry, point, folder)


def _conditions(name: str, entry: WrittenOptions, point: AxisPoint, folder: Path) -> dict[str, Any]:
    """Conditions of runs at a value of every axis over terms, with paths from the folder."""
    swept = msgspec.structs.replace(entry, with_=put_all(entry.with_, point))
    return dict(msgspec.to_builtins(swept.within(folder, f"conditions[{name!r}]: with")))


def _cluster(text: str, folder: Path) -> str:
    found = absolute(text, folder) if text.endswith(CLUSTER_FILES) else text
    Cluster.load(found)
    return found
