"""Features: what an instance may say beyond nodes and jobs, and the one place in which they are refused.

Closed by default: whoever reads an instance (engine, verifier, bound, certificate, theorem, file) has a constant
``KNOWS``, the features that it understands, and calls :func:`require`; what the constant does not name is refused. A
feature that is new is thereby refused everywhere until somebody has thought of it.

``KNOWS`` is written out, feature by feature: "all but" would let the next one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
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
    AMOUNTS = "amounts"
    WINDOW = "window"
    STOPPED = "stopped"
    RESTART = "restart"

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
        Feature.AMOUNTS: _Meaning(
            "jobs that ask for CPUs or memory",
            "Jobs ask for fixed amounts of CPUs or memory, and run where these are free.",
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
    }
)

_TWICE = "a graph says how long an iteration takes, and throughputs would say it again"
_WHOLE_NODE = "a copy has its node to itself"
_NO_MODEL = "jobs on cores train no model of which this could be measured"
_EQUAL_QUOTA = "a quota counts GPUs that are worth the same wherever they are"

APART: Mapping[frozenset[Feature], str] = MappingProxyType(
    {
        frozenset(pair): reason
        for *pair, reason in (
            (Feature.GRAPHS, Feature.RATES, _TWICE),
            (Feature.GRAPHS, Feature.TYPES, _TWICE),
            (
                Feature.GRAPHS,
                Feature.SHARING,
                "rates of pairs were measured in one place, and do not say how two jobs slow each other's network",
            ),
            (
                Feature.GRAPHS,
                Feature.PROFILES,
                "an iteration waits for data or for the network, and profiles do not say how far both overlap",
            ),
            (
                Feature.GRAPHS,
                Feature.SPREAD,
                "a graph says what a spread gang loses, and a slowdown would count it again",
            ),
            (
                Feature.GRAPHS,
                Feature.WIDTHS,
                "a graph has one replica for each GPU of the gang, and none for more",
            ),
            (
                Feature.PROFILES,
                Feature.SHARING,
                "rates of pairs were measured with all CPUs, and do not say how fast a pair is with fewer",
            ),
            (
                Feature.COPIES,
                Feature.GRAPHS,
                "copies are averaged between rounds, replicas of a graph in each iteration",
            ),
            (Feature.COPIES, Feature.SHARING, _WHOLE_NODE),
            (Feature.COPIES, Feature.PARTS, _WHOLE_NODE),
            (Feature.COPIES, Feature.PROFILES, "a copy has all CPUs and memory of its node"),
            (Feature.COPIES, Feature.SPREAD, "a copy is on one node, and never spread"),
            (
                Feature.COPIES,
                Feature.WIDTHS,
                "a job grows by its copies, and widths would say again how fast it then is",
            ),
            (
                Feature.COPIES,
                Feature.CHARGES,
                "copies have charges of their own (restart_s and aggregation_s), paid in each round",
            ),
            (
                Feature.COPIES,
                Feature.WINDOW,
                "copies are averaged when a round ends, and a window ends the run within one",
            ),
            (
                Feature.COPIES,
                Feature.STOPPED,
                "copies are averaged when a round ends, and the run was stopped within one",
            ),
            (
                Feature.COPIES,
                Feature.FAILURES,
                "copies are averaged when a round ends, and nothing says what one keeps that fails before",
            ),
            (
                Feature.COPIES,
                Feature.QUOTAS,
                "a copy holds its node whole, and a quota counts the GPUs that a gang uses",
            ),
            (
                Feature.COPIES,
                Feature.RESTART,
                "copies are averaged when a round ends, and what was averaged is kept",
            ),
            (
                Feature.COPIES,
                Feature.CORES,
                "jobs on cores train no model that could be averaged",
            ),
            (Feature.STOPPED, Feature.WINDOW, "both say when the run ends"),
            (
                Feature.FAILURES,
                Feature.PROFILES,
                "checkpoints are counted from the beginning of a run, and other CPUs begin another",
            ),
            (
                Feature.RESTART,
                Feature.SHARING,
                "a partner that comes or goes begins another run, and nothing says whether it restarts",
            ),
            (
                Feature.RESTART,
                Feature.PROFILES,
                "other CPUs begin another run, and nothing says whether it restarts",
            ),
            (
                Feature.RESTART,
                Feature.FAILURES,
                "jobs that restart from nothing write no checkpoints",
            ),
            (
                Feature.PARTS,
                Feature.GRAPHS,
                "a part of a GPU holds one replica, and a graph says what several exchange",
            ),
            (
                Feature.PARTS,
                Feature.SHARING,
                "both say who may be on a GPU with whom",
            ),
            (
                Feature.PARTS,
                Feature.PROFILES,
                "profiles give CPUs and memory to whole GPUs",
            ),
            (Feature.PARTS, Feature.SPREAD, "a part of a GPU is on one node, and never spread"),
            (Feature.PARTS, Feature.WIDTHS, "a part of a GPU does not grow by whole ones"),
            (Feature.CORES, Feature.GRAPHS, _NO_MODEL),
            (Feature.CORES, Feature.SHARING, _NO_MODEL),
            (Feature.CORES, Feature.PROFILES, _NO_MODEL),
            (Feature.CORES, Feature.SPREAD, _NO_MODEL),
            (Feature.CORES, Feature.WIDTHS, _NO_MODEL),
            (Feature.CORES, Feature.QUOTAS, "a quota counts GPUs, and no cores"),
            (Feature.QUOTAS, Feature.GRAPHS, _EQUAL_QUOTA),
            (Feature.QUOTAS, Feature.PROFILES, _EQUAL_QUOTA),
            (Feature.QUOTAS, Feature.SPREAD, _EQUAL_QUOTA),
            (
                Feature.QUOTAS,
                Feature.SHARING,
                "a quota does not say how much of it each of two jobs on one GPU holds",
            ),
            (
                Feature.QUOTAS,
                Feature.WIDTHS,
                "a quota does not say whether GPUs beyond the gang count against it",
            ),
            (
                Feature.AMOUNTS,
                Feature.GRAPHS,
                "amounts are divided by GPUs, and stages of a graph need unequal ones",
            ),
            (Feature.AMOUNTS, Feature.PROFILES, "both say what CPUs and memory a job holds"),
            (
                Feature.AMOUNTS,
                Feature.WIDTHS,
                "amounts are of the gang, and do not say what more GPUs need",
            ),
            (
                Feature.AMOUNTS,
                Feature.PARTS,
                "amounts are divided by whole GPUs, and do not say what a part of one needs",
            ),
            (Feature.AMOUNTS, Feature.CORES, "both say how many cores a job holds"),
            (
                Feature.AMOUNTS,
                Feature.QUOTAS,
                "a quota counts GPUs, and does not say whom CPUs and memory belong to",
            ),
        )
    }
)
"""Pairs of features that no instance has together, each with what the world leaves open or says twice."""


class SaysMore(Protocol):
    """An instance, of which its readers are asked whether they know what it says."""

    @property
    def workload(self) -> Workload:
        """The jobs."""

    @property
    def features(self) -> frozenset[Feature]:
        """All that it says beyond nodes and jobs."""


def expect_together(features: Collection[Feature], source: str) -> None:
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
