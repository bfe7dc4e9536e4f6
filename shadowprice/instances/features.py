"""Features: what an instance may say beyond nodes and jobs, and the one place in which they are refused.

Closed by default: whoever reads an instance (engine, verifier, bound, certificate, theorem, file) has a constant
``KNOWS``, the features that it understands, and calls :func:`require`; what the constant does not name is refused. A
feature that is new is thereby refused everywhere until somebody has thought of it.

``KNOWS`` is written out, feature by feature: "all but" would let the next one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.instances.workload import Workload


class Feature(StrEnum):
    """One thing that an instance may say; its value is the word for it in files and tables.

    What each means is in :attr:`sentence`, and to the tick in ``docs/semantics.md``.
    """

    RATES = "rates"
    TYPES = "types"
    CHARGES = "charges"
    SHARING = "sharing"
    GRAPHS = "graphs"
    PROFILES = "profiles"
    SPREAD = "spread"
    WIDTHS = "widths"
    COPIES = "copies"
    FAILURES = "failures"
    QUOTAS = "quotas"
    PARTS = "parts"
    CORES = "cores"
    CPU_MEMORY = "cpu-memory"
    WINDOW = "window"
    STOPPED = "stopped"
    RESTART = "restart"
    RACKS = "racks"
    GOODPUT = "goodput"
    OWN = "own"

    @property
    def phrase(self) -> str:
        """Noun phrase for what an instance with it has, in the plural: ``quotas of tenants``."""
        return _MEANINGS[self].phrase

    @property
    def sentence(self) -> str:
        """Meaning in one sentence."""
        return _MEANINGS[self].sentence


@dataclass(frozen=True)
class _Meaning:
    phrase: str
    sentence: str
    jobs: Callable[[Workload], NDArray[np.bool_]] | None = None
    """Jobs that have it, where not all have."""


_MEANINGS: Mapping[Feature, _Meaning] = MappingProxyType(
    {
        Feature.RATES: _Meaning(
            "throughputs of jobs",
            "Work counts iterations, and every job has a throughput: run times are work over throughput.",
        ),
        Feature.TYPES: _Meaning(
            "GPU types that jobs tell apart",
            "Throughputs are of several GPU types: GPUs are told apart, and a job may be faster on some.",
        ),
        Feature.CHARGES: _Meaning(
            "charges for starts, restarts or migrations",
            "Starts, restarts or migrations take time in which a gang holds its GPUs without progress.",
        ),
        Feature.SHARING: _Meaning(
            "rates of jobs that share GPUs",
            "Two jobs may hold the same GPUs, each at a rate of its own while the other is there.",
        ),
        Feature.GRAPHS: _Meaning(
            "job graphs",
            "Jobs have stages and replicas, and an iteration takes as long as where these are makes it.",
        ),
        Feature.PROFILES: _Meaning(
            "profiles by CPUs and memory",
            "Speeds depend on the CPUs and the memory that a run was given.",
        ),
        Feature.SPREAD: _Meaning(
            "slowdowns of spread gangs",
            "Gangs on more nodes than they need are slower.",
        ),
        Feature.WIDTHS: _Meaning(
            "jobs that may grow",
            "Jobs may hold more GPUs than their gang, and are faster with them.",
        ),
        Feature.COPIES: _Meaning(
            "jobs that run as several copies",
            "Jobs run as several copies in rounds, each on a whole node, instead of as one gang.",
        ),
        Feature.FAILURES: _Meaning(
            "nodes that fail",
            "Nodes are down at times, and jobs lose what they have not saved by then.",
        ),
        Feature.QUOTAS: _Meaning(
            "quotas of tenants",
            "Tenants begin no run with which they would hold more GPUs than their quota of the day.",
        ),
        Feature.PARTS: _Meaning(
            "jobs that hold a part of a GPU",
            "Jobs hold a part of a GPU, which others may hold as well.",
            lambda jobs: jobs.fractional,
        ),
        Feature.CORES: _Meaning(
            "jobs that hold cores instead of GPUs",
            "Jobs hold cores of nodes that have only these, instead of GPUs.",
            lambda jobs: jobs.on_cores,
        ),
        Feature.CPU_MEMORY: _Meaning(
            "jobs that ask for CPUs or memory",
            "Jobs ask for CPUs or memory, and run where these are free.",
            lambda jobs: jobs.asking,
        ),
        Feature.WINDOW: _Meaning(
            "jobs outside a window, which need not be complete",
            "The run ends when a window of jobs is complete; those outside it need not be.",
        ),
        Feature.STOPPED: _Meaning(
            "jobs that need not be complete, for the run was stopped",
            "The run was stopped at a time; no job need be complete.",
        ),
        Feature.RESTART: _Meaning(
            "jobs that restart from nothing when preempted",
            "A job that is preempted loses its work and restarts from nothing.",
        ),
        Feature.RACKS: _Meaning(
            "racks of nodes",
            "Gangs across nodes are slower, across racks more so, and only so many may cross the uplink of a rack.",
        ),
        Feature.GOODPUT: _Meaning(
            "jobs with goodput",
            "Jobs run at any width and batch, and go through their epochs at the goodput that was measured there.",
        ),
        Feature.OWN: _Meaning(
            "terms of one's own",
            "A class in a file of one's own says what else runs hold, or how much slower they are.",
        ),
    }
)

DECLARED_KNOWS = frozenset({Feature.RACKS, Feature.GOODPUT})
"""Features of declared terms that come with the package: known to who goes by what such terms say."""

_FACTS: Mapping[str, frozenset[Feature]] = MappingProxyType(
    {
        "how fast a spread gang is": frozenset(
            {Feature.SPREAD, Feature.GRAPHS, Feature.COPIES, Feature.RACKS, Feature.GOODPUT}
        ),
        "how fast a job is at a width": frozenset(
            {Feature.WIDTHS, Feature.GRAPHS, Feature.COPIES, Feature.GOODPUT}
        ),
        "how fast a job is on a GPU": frozenset(
            {Feature.RATES, Feature.TYPES, Feature.CORES, Feature.GRAPHS, Feature.GOODPUT}
        ),
        "what a beginning costs": frozenset({Feature.CHARGES, Feature.COPIES}),
        "how fast jobs are on GPUs of which they hold less than all": frozenset(
            {Feature.SHARING, Feature.GOODPUT}
        ),
        "how fast a job is on a part of a GPU": frozenset({Feature.PARTS, Feature.GOODPUT}),
        "how fast a job is at its CPUs and memory": frozenset({Feature.PROFILES, Feature.GOODPUT}),
        "what slows a job beyond its speed by width": frozenset({Feature.OWN, Feature.GOODPUT}),
        "what of an epoch a node that fails leaves": frozenset({Feature.FAILURES, Feature.GOODPUT}),
        "what of its work a preempted job keeps": frozenset({Feature.RESTART, Feature.GOODPUT}),
    }
)
"""Facts about the world, and the features that state them: what two state would count twice."""

_BY_RATES = frozenset({Feature.RATES, Feature.TYPES, Feature.CORES})

_WHOLE_NODE = "a copy has its node to itself"

_WORLD = (
    (Feature.SHARING, Feature.COPIES, _WHOLE_NODE),
    (Feature.COPIES, Feature.PARTS, _WHOLE_NODE),
    (Feature.COPIES, Feature.CORES, "jobs on cores train no model that could be averaged"),
)
"""Other pairs that have no meaning, each for a reason about the world."""


def _apart() -> Iterator[tuple[frozenset[Feature], str]]:
    for fact, features in _FACTS.items():
        for pair in combinations(sorted(features, key=list(Feature).index), 2):
            # Types are told apart by rates, and cores from GPUs by types.
            if not _BY_RATES.issuperset(pair):
                yield frozenset(pair), f"both say {fact}"
    for one, other, reason in _WORLD:
        yield frozenset((one, other)), reason


APART: Mapping[frozenset[Feature], str] = MappingProxyType(dict(_apart()))
"""Pairs of features that no instance has together, each with what it would say twice, or what the world leaves open."""


class SaysMore(Protocol):
    """An instance, of which its readers are asked whether they know what it says."""

    @property
    def workload(self) -> Workload:
        """The jobs."""

    @property
    def features(self) -> frozenset[Feature]:
        """All that it says beyond nodes and jobs."""


def require_compatible(features: Collection[Feature], source: str) -> None:
    """Refuse features that do not go together.

    Raises
    ------
    InputError
        Naming the first such pair, and why.
    """
    for one, other in combinations(sorted(features, key=list(Feature).index), 2):
        reason = APART.get(frozenset((one, other)))
        if reason is not None:
            raise InputError(
                f"{source}: has {one.phrase} and {other.phrase}, expected one of the two: {reason}"
            )


def missing(instance: SaysMore, knows: Collection[Feature]) -> tuple[Feature, ...]:
    """Features of an instance that are not among those known, in the order of :class:`Feature`."""
    return tuple(each for each in Feature if each in instance.features and each not in knows)


def unknown(instance: SaysMore, knows: Collection[Feature]) -> tuple[str, ...]:
    """The same as hypotheses that fail, in words: ``there are quotas of tenants``."""
    return tuple(f"there are {each.phrase}" for each in missing(instance, knows))


def require(instance: SaysMore, knows: Collection[Feature], who: str) -> None:
    """Refuse an instance that says more than its reader knows.

    Parameters
    ----------
    knows : collection of Feature
        What the reader understands: its ``KNOWS``.
    who : str
        The reader, in words, such as ``SF-work`` or ``lower bounds``.

    Raises
    ------
    InputError
        Naming the features that it does not know.
    """
    more = missing(instance, knows)
    if more:
        words = " and ".join(_named(each, instance) for each in more)
        raise InputError(f"{instance.workload.source}: has {words}, not known to {who}")


def _named(feature: Feature, instance: SaysMore) -> str:
    """The phrase of a feature, with the first job that has it where not all have."""
    jobs = _MEANINGS[feature].jobs
    if jobs is None:
        return feature.phrase
    return f"{feature.phrase} (as {instance.workload.id[jobs(instance.workload).argmax()]!r})"
