"""Study files: axes of a study as YAML, decoded strictly; ``docs/studies.md`` explains every key.

Policies meet the same jobs: what a seed draws depends on the workload and the seed, and on no other axis.
"""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from shadowprice.analysis.written_options import WrittenOptions
from shadowprice.brief import Brief
from shadowprice.errors import InputError
from shadowprice.instances.documents.plain_yaml import parse, read_small
from shadowprice.instances.documents.schema import Name, decode
from shadowprice.instances.entries import shown
from shadowprice.instances.objective import Objective
from shadowprice.studies.term_axes import (
    ENTRY_KEYS,
    TermAxis,
    is_axis,
    read_axes,
    terms_without_axes,
)

Positive: TypeAlias = Annotated[float, Meta(gt=0, le=1e300, description="a number > 0")]
Seed: TypeAlias = Annotated[int, Meta(ge=0, lt=2**32, description="a seed from 0 to 2^32 - 1")]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=10**9, description="a whole number >= 1")]
Share: TypeAlias = Annotated[
    float, Meta(gt=0, lt=1, description="a share between 0 and 1, both left out")
]

Named: TypeAlias = dict[Name, Name] | list[Name]

MOST_RUNS = 1_000_000

SETTING = ("workload", "load", "cluster", "conditions")
"""Columns of results that every study has, the same for all policies that are compared."""


class TraceArrivals(StrEnum):
    """Arrivals of a trace's jobs."""

    RECORDED = "recorded"
    """Jobs at their times; a seed changes nothing of them."""

    SHUFFLED = "shuffled"
    """Jobs in an order that the seed draws, at the recorded times."""

    POISSON = "poisson"
    """Jobs in an order and at times that the seed draws, at the recorded rate."""


class WarmUpRule(StrEnum):
    """Rule by which first jobs are left out of statistics."""

    NONE = "none"
    MSER5 = "mser5"


class WorkloadEntry(Brief, msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Source of jobs: a generator or a trace.

    Parameters
    ----------
    generator : str, optional
        Name of a generator, which gets the seed.
    parameters : mapping
        Of the generator.
    endless : bool
        Whether jobs come without end; conditions then have a window.
    trace, format, throughputs : str, optional
        Path of a trace, its importer, and the path of a throughput table.
    jobs : int, optional
        The first so many jobs of the trace.
    arrivals : TraceArrivals
        Of the trace.
    """

    generator: Name | None = None
    parameters: dict[Name, Any] = {}
    endless: bool = False
    trace: Name | None = None
    format: Name | None = None
    throughputs: Name | None = None
    jobs: Count | None = None
    arrivals: TraceArrivals = TraceArrivals.RECORDED

    def __post_init__(self) -> None:
        if (self.generator is None) == (self.trace is None):
            raise ValueError("expected either generator or trace")
        if self.trace is None:
            given = {"format": self.format, "jobs": self.jobs}
            wrong = [name for name, value in given.items() if value is not None]
            if self.arrivals is not TraceArrivals.RECORDED:
                wrong.append("arrivals")
            if wrong:
                raise ValueError(
                    f"{wrong[0]} is about a trace, and generator is given; parameters are the generator's"
                )
        elif self.parameters or self.endless:
            name = "parameters" if self.parameters else "endless"
            raise ValueError(f"{name} is about a generator, and trace is given")


class BoundsEntry(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """Certified bounds that costs are compared with.

    Parameters
    ----------
    objectives : tuple of Objective
    columns : int
        Size of the interval LPs: the effort, in place of a time limit, so that bounds repeat.
    """

    objectives: tuple[Objective, ...] = (Objective.FLOW,)
    columns: Count = 20_000


class StatisticsEntry(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """Choices of what is computed of each run, and of how runs are compared.

    Parameters
    ----------
    warm_up : WarmUpRule or int
        ``none``, ``mser5``, or how many first jobs of each run are left out of its statistics.
    groups : tuple of str, optional
        Columns of jobs whose entries have statistics of their own; gang, class, tenant, model and GPU type
        where these differ, if not given.
    baseline : str, optional
        Policy that the others are compared with, seed by seed; the first if not given.
    starved_ratio : float
        Times that a class's mean JCT may be the best policy's before the class counts as starved.
    growth_share : float
        Share of a class's arrivals that may pile up before it counts as not kept up with.
    """

    warm_up: WarmUpRule | Annotated[int, Meta(ge=0)] = WarmUpRule.NONE
    groups: tuple[Name, ...] | None = None
    baseline: Name | None = None
    starved_ratio: Annotated[float, Meta(gt=1, description="a number > 1")] = 10.0
    growth_share: Share = 0.1


class StudyFile(Brief, msgspec.Struct, frozen=True, kw_only=True):
    """A study: all combinations of its axes are run.

    Parameters
    ----------
    study : str
        Title.
    workloads : mapping of str to WorkloadEntry
    clusters, policies : mapping or list
        Clusters and policies as on the command line, by names of your own or by themselves.
    loads : tuple of float
        Offered loads; arrivals are those of the workloads if empty.
    conditions : mapping of str to WrittenOptions
    swept : mapping of str to tuple
        Values of settings of terms by the keys of these axes, ``with.TERM.SETTING`` or ``with.TERM``, as
        :func:`study_of` reads them.
    seeds : int or tuple of int
        Seeds, or how many: then they are 0, 1, ...
    bounds : BoundsEntry, optional
    statistics : StatisticsEntry
    """

    study: Name
    workloads: dict[Name, WorkloadEntry]
    clusters: Named
    policies: Named
    loads: tuple[Positive, ...] = ()
    conditions: dict[Name, WrittenOptions] = msgspec.field(
        default_factory=lambda: {"plain": WrittenOptions()}
    )
    swept: dict[str, tuple[Any, ...]] = msgspec.field(default_factory=dict, name=ENTRY_KEYS)
    seeds: Count | tuple[Seed, ...] = 1
    bounds: BoundsEntry | None = None
    statistics: StatisticsEntry = StatisticsEntry()

    def __post_init__(self) -> None:
        for name in ("workloads", "clusters", "policies", "conditions", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, expected at least one")
        for name in ("loads", "seeds"):
            given = getattr(self, name)
            if isinstance(given, tuple) and len(set(given)) < len(given):
                raise ValueError(f"{name} has {given!r}, expected each once")
        for name in ("clusters", "policies"):
            given = getattr(self, name)
            if isinstance(given, list) and len(set(given)) < len(given):
                raise ValueError(f"{name} has {', '.join(given)}, expected each once")
        baseline = self.statistics.baseline
        if baseline is not None and baseline not in named(self.policies):
            raise ValueError(
                f"statistics: baseline is {baseline!r}, expected one of {', '.join(named(self.policies))}"
            )

        if self.most_runs > MOST_RUNS:
            raise ValueError(f"has {self.most_runs} runs, expected at most {MOST_RUNS}")

    @property
    def most_runs(self) -> int:
        """Runs of all combinations, each workload drawn by every seed."""
        given = (
            self.workloads,
            self.loads or (None,),
            self.clusters,
            self.conditions,
            self.policies,
        )
        seeds = self.seeds if isinstance(self.seeds, int) else len(self.seeds)
        return seeds * math.prod(map(len, (*given, *self.swept.values())))

    @property
    def axes(self) -> tuple[TermAxis, ...]:
        """Axes over terms, in the order of the file."""
        return tuple(TermAxis.of(key, values) for key, values in self.swept.items())

    @property
    def setting_columns(self) -> tuple[str, ...]:
        """Columns of results that are the same for all policies that are compared."""
        return (*SETTING, *self.swept)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that say which run a row is of."""
        return (*self.setting_columns, "policy", "seed")

    @property
    def baseline(self) -> str:
        """The policy that others are compared with."""
        return self.statistics.baseline or next(iter(named(self.policies)))

    @property
    def every_seed(self) -> tuple[int, ...]:
        """All seeds."""
        return tuple(range(self.seeds)) if isinstance(self.seeds, int) else self.seeds

    def to_plain(self) -> dict[str, Any]:
        """The study as plain data, which :func:`study_of` reads again."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        swept = found.pop(ENTRY_KEYS)
        return {**found, **swept}


def named(entries: dict[str, str] | list[str]) -> dict[str, str]:
    """Entries by name; those without are their own names."""
    if isinstance(entries, dict):
        return dict(entries)
    return {text: text for text in entries}


def plain_value(value: Any) -> Any:
    """A value of a YAML file with numbers for what is written as one, in keys too.

    >>> plain_value({"1": "0.5", "name": "x", "often": True})
    {1: 0.5, 'name': 'x', 'often': True}
    """
    if isinstance(value, dict):
        return {plain_value(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_value(each) for each in value]
    if isinstance(value, str):
        for kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                continue
    return value


def read_study(path: str | Path) -> StudyFile:
    """Read a study file.

    Raises
    ------
    InputError
        Naming file, place, value and what was expected.
    """
    path = Path(path)
    return study_of(parse(read_small(path), str(path), truth_values=True), str(path))


def study_of(data: object, source: str) -> StudyFile:
    """A study of plain data, as YAML or JSON have it.

    Raises
    ------
    InputError
        Naming place, value and what was expected.
    """
    axes: tuple[TermAxis, ...] = ()
    if isinstance(data, dict):
        axes = read_axes({key: each for key, each in data.items() if is_axis(key)}, source)
        swept = {axis.name: list(axis.values) for axis in axes}
        data = {key: each for key, each in data.items() if not is_axis(key)} | {ENTRY_KEYS: swept}
    if isinstance(data, dict) and isinstance(data.get("workloads"), list):
        raise InputError(
            f"{source}: workloads is {shown(data['workloads'])}, expected a mapping of names to entries"
        )
    study = decode(StudyFile, data, source, numbers_as_text=True)
    conditions = {
        name: msgspec.structs.replace(
            entry, with_=terms_without_axes(entry.with_, axes, source, f"conditions[{name!r}]")
        )
        for name, entry in study.conditions.items()
    }
    return msgspec.structs.replace(study, conditions=conditions)


__all__ = [
    "BoundsEntry",
    "StatisticsEntry",
    "StudyFile",
    "TraceArrivals",
    "WarmUpRule",
    "WorkloadEntry",
    "named",
    "plain_value",
    "read_study",
    "study_of",
]
