"""Terms: what an instance may say beyond nodes and jobs, each in a module of this folder.

A module has all of one term: the record of what is said, how options and files write it, what is checked of it, what
it does to runs, what it means for lower bounds, and its entry in the written form of an instance. Instances, the
engine, files, digests and options go through the list of terms
(:data:`~shadowprice.instances.terms.registry.TERMS`) and name none of them.

By other hands, on purpose: the rule of the verifier (:mod:`shadowprice.proofs.verification`) and the records of
certificates (:mod:`shadowprice.analysis.certificates.records`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.instances.terms.effect import Effect
from shadowprice.instances.terms.settings import TermSettings

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.failures.node_failures import NodeFailures
    from shadowprice.instances.graphs.workload_graphs import JobGraphs
    from shadowprice.instances.speeds.sensitivity import Sensitivity
    from shadowprice.instances.speeds.sharing import SharedRuns
    from shadowprice.instances.speeds.throughputs import Throughputs
    from shadowprice.instances.workload import Workload

InstanceFields = dict[str, Any]
"""Arguments of :class:`~shadowprice.instances.instance.Instance` by name."""


class SeenInstance(Protocol):
    """Instance as terms see it: nodes, jobs, and what some terms have to know of others."""

    @property
    def cluster(self) -> Cluster:
        """Nodes."""

    @property
    def workload(self) -> Workload:
        """Jobs."""

    @property
    def graphs(self) -> JobGraphs | None:
        """Graphs of jobs."""

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Profiles by CPUs and memory."""

    @property
    def sharing_rates(self) -> Throughputs | None:
        """Rates of jobs that share GPUs."""

    @property
    def shared_runs(self) -> SharedRuns:
        """Run times of jobs that share."""

    @property
    def copies(self) -> object | None:
        """Rules of copies."""

    @property
    def failures(self) -> NodeFailures | None:
        """Downtimes of nodes."""


Value = TypeVar("Value")


class Term(Generic[Value]):
    """One thing that an instance may say, in a field of its own; all but its name has a default.

    Attributes
    ----------
    feature : Feature
        Its name.
    entry : str
        Name of its entry in the written form of an instance, and of its field unless :meth:`of` says another; empty if
        columns of jobs say it.
    record : type
        Type of that entry.
    settings : type of TermSettings, optional
        Record of what an option or a study file says of it.
    origin : str
        What else brings it, in words.
    varies : bool
        Whether a job that is alone on its GPUs may be faster in one run than in another on as many GPUs of a type,
        or on more.
    by_job : bool
        Whether its field speaks job by job, and has a ``select`` for some of them.
    """

    feature: ClassVar[Feature]
    entry: ClassVar[str] = ""
    record: ClassVar[Any] = None
    settings: ClassVar[type[TermSettings] | None] = None
    origin: ClassVar[str] = ""
    varies: ClassVar[bool] = False
    by_job: ClassVar[bool] = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def of(self, instance: SeenInstance) -> Any:
        """Value of its field."""
        return getattr(instance, self.entry)

    def present(self, instance: SeenInstance) -> bool:
        """True if an instance says it; O(jobs + nodes)."""
        return self.of(instance) is not None

    # All that follows is asked of instances that say it: ``value`` is what :meth:`of` gives.

    def check(self, value: Value, instance: SeenInstance) -> None:
        """Refuse an instance in which what it says does not fit nodes and jobs, or has no meaning.

        Raises
        ------
        InputError
            Saying what was expected.
        """

    # What it does to runs, and what it means for lower bounds.

    def effects(self, value: Value, instance: SeenInstance) -> Iterable[Effect]:
        """Rates and factors of runs, and fields that these have beside their GPUs."""
        return ()

    def least_s(self, value: Value, instance: SeenInstance) -> NDArray[np.float64] | None:
        """Least run time [s] of every job, whatever its GPUs and before any factor; None if it states no rate."""
        return None

    def best_speed(self, value: Value, instance: SeenInstance) -> NDArray[np.float64] | None:
        """Largest factor on the speed of every job; None if there is none above 1."""
        return None

    def lifted(self, instance: SeenInstance) -> InstanceFields:
        """Fields without it, if it only restricts schedules or ends a run early; else none.

        A lower bound of the instance with these fields is one of the instance.
        """
        return {}

    # The instance of some of the jobs.

    def select(self, value: Any, keep: NDArray[Any]) -> InstanceFields:
        """Fields that speak job by job, for some of the jobs: a mask, or rows in increasing order."""
        return {self.entry: value.select(keep)} if self.by_job else {}

    # The written form.

    def written(self, value: Value) -> Any:
        """The entry of an instance, without loss: the value itself, where nothing else is said."""
        return value

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """Fields of the instance with that of an entry.

        Parameters
        ----------
        so_far : mapping
            The fields that have been read: at least ``cluster`` and ``workload``.
        """
        return {**so_far, self.entry: record}


class ColumnTerm(Term["Workload"], ABC):
    """One thing that columns of the jobs say, which are its value."""

    def of(self, instance: SeenInstance) -> Workload:
        """The jobs."""
        return instance.workload

    @abstractmethod
    def present(self, instance: SeenInstance) -> bool:
        """True if the columns say it; O(jobs + nodes)."""


def expect_of_jobs(what: str, count: int, jobs: Workload) -> None:
    """Refuse what speaks of another number of jobs than there are.

    Raises
    ------
    InputError
        Saying both numbers.
    """
    if count != len(jobs):
        raise InputError(f"{jobs.source}: has {len(jobs)} jobs, but {count} {what}")
