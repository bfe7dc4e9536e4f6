"""Declared terms: what an instance says in a class of its own, known by what it says and not by its name.

A declared term is a frozen dataclass of settings. What it says of runs is its kind: what they hold at places that
have limits (:class:`HoldingTerm`), how much slower they are (:class:`SlowingTerm`), or both: it only ever delays
jobs, so that every lower bound of the instance without it is one of the instance with it. Or it says how jobs go
through their work instead of any run time (:class:`CourseTerm`), and of which instance a bound is one of its own.

Engine, ledger, digests and lower bounds go by the kinds. The verifier goes by a rule, by another hand: without one
it approves nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.course import Course
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.effect import Effect, Fields, Pieces, SpeedFactor
from shadowprice.user_code import sentence

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster
    from shadowprice.instances.workload import Workload

Place = Hashable
"""Where something is held: a node's CPUs, a tenant's quota."""

Amount = tuple[Place, int]
"""What a run holds at one place."""

Answer = TypeVar("Answer")


class DeclaredRun(NamedTuple):
    """A run as declared terms see it.

    ``job`` is a row of ``jobs``, ``pieces`` are pairs of a node's position in ``cluster`` and the GPUs held there;
    ``shared`` says that another job holds the same GPUs.
    """

    job: int
    pieces: Pieces
    shared: bool
    jobs: Workload
    cluster: Cluster

    @property
    def gpus(self) -> int:
        """GPUs that it holds, with a partner or alone."""
        return sum(gpus for _, gpus in self.pieces)

    @property
    def nodes(self) -> list[int]:
        """Positions of its nodes."""
        return [node for node, _ in self.pieces]


class DeclaredTerm(ABC):
    """One thing that an instance says, in a frozen dataclass of settings.

    Attributes
    ----------
    name : str
        By which messages call it.
    feature : Feature
        What its instances have; that of a term of one's own stays as it is.
    example : str
        Command line that has it.
    rule : object
        Rule of a term of one's own, by which the verifier checks it (:mod:`shadowprice.proofs.verification.rules`).
    """

    name: ClassVar[str]
    feature: ClassVar[Feature] = Feature.OWN
    example: ClassVar[str] = ""
    rule: ClassVar[Any] = None

    def check(self, cluster: Cluster, jobs: Workload) -> None:
        """Refuse a cluster or jobs that it does not describe.

        Raises
        ------
        InputError
            Saying what was expected.
        """


class HoldingTerm(DeclaredTerm):
    """Amounts that runs hold at places, each with a limit.

    Attributes
    ----------
    of_starts : bool
        Whether limits are of beginnings: then a run that goes on may hold more than what has become the limit.
    """

    of_starts: ClassVar[bool] = False

    @abstractmethod
    def holds(self, run: DeclaredRun) -> Iterable[Amount]:
        """Amounts that a run holds, each place once."""

    @abstractmethod
    def limit(self, place: Place, now_s: float) -> int:
        """Most that may be held at a place at a time."""

    def next_change_s(self, now_s: float) -> float:
        """Time after this one at which some limit may change next [s]; infinity for never."""
        return math.inf


class SlowingTerm(DeclaredTerm):
    """A factor on the speed of runs, above 0 and at most 1."""

    @abstractmethod
    def speed(self, run: DeclaredRun) -> float:
        """Speed of a run against the same without the term."""


class CourseTerm(DeclaredTerm):
    """Course of jobs through their work, by what they hold and a field of their own, instead of a run time."""

    @abstractmethod
    def begin(self) -> Any:
        """Position of a job that has done nothing."""

    @abstractmethod
    def proceeding(self, run: DeclaredRun, field: Any) -> Course | None:
        """A run with a field; None if it makes no progress."""

    @abstractmethod
    def effect(self, cluster: Cluster, jobs: Workload) -> Effect:
        """The field of runs, by which it is filled in and shown."""

    @abstractmethod
    def slowed_by_others(self, running: Mapping[int, Pieces]) -> Collection[int]:
        """Jobs that others slow while all of these run."""

    @abstractmethod
    def when_slowed(self, field: Any, slowed: bool) -> Any:
        """The field of a run which others slow, or do not; the same object where that changes nothing."""

    @abstractmethod
    def relaxed(self, cluster: Cluster, jobs: Workload) -> tuple[dict[str, Any], ...]:
        """Fields of instances of which each lower bound is one of that with the term; at least one."""


class DeclaredFactor(SpeedFactor):
    """A term that slows runs, among the factors of an instance.

    Parameters
    ----------
    term : SlowingTerm
    cluster, jobs
        Of the instance.
    """

    def __init__(self, term: SlowingTerm, cluster: Cluster, jobs: Workload) -> None:
        self._term, self._cluster, self._jobs = term, cluster, jobs

    def speed(self, job: int, pieces: Pieces, fields: Fields) -> float:
        """Speed of a run.

        Raises
        ------
        InputError
            If the term says none above 0 and at most 1.
        """
        shared = fields.get(Feature.SHARING, ALONE) != ALONE
        run = DeclaredRun(job, pieces, shared, self._jobs, self._cluster)
        said = answer(self._term, self._term.speed, run)
        if not (isinstance(said, int | float) and 0 < said <= 1):
            raise InputError(
                f"{self._term.name}: the speed of job {self._jobs.id[job]!r} on {pieces} is {said!r}, "
                "expected a number above 0 and at most 1"
            )
        return float(said)


def answer(term: DeclaredTerm, ask: Callable[..., Answer], *about: object) -> Answer:
    """Answer of a term.

    Raises
    ------
    InputError
        If it cannot: with file, line and the sentence Python has for it.
    """
    try:
        return ask(*about)
    except ShadowpriceError:
        raise
    except Exception as error:
        raise InputError(f"{term.name}: {sentence(error)}") from error


def expect_declared(terms: Sequence[DeclaredTerm], cluster: Cluster, jobs: Workload) -> None:
    """Refuse terms that are there twice, or do not describe such jobs on such a cluster.

    Raises
    ------
    InputError
        As of :meth:`DeclaredTerm.check`, or naming a term that is there twice.
    """
    names = [each.name for each in terms]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{jobs.source}: has the term {name} twice, expected once")
    own = [
        each.name for each in terms if isinstance(each, CourseTerm) and each.feature is Feature.OWN
    ]
    if own:
        raise InputError(
            f"{jobs.source}: has the term {own[0]} in a class of one's own, which says how jobs go through their work; "
            "expected one that says what runs hold or how much slower they are"
        )
    for each in terms:
        answer(each, each.check, cluster, jobs)
