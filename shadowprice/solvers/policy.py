"""All that the author of a policy reads: the protocol, the decision, and the state it is about.

A policy is one method, ``decide``, which is given a :class:`State` and returns a :class:`Decision`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import Any, Protocol, runtime_checkable

from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.clusters.cpu_memory import RunCpuMemory, combined, per_node
from shadowprice.instances.features import Feature
from shadowprice.instances.goodput.application import Batching
from shadowprice.instances.graphs.job_graph import StageMapping
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.terms.goodput import BatchField
from shadowprice.solvers.job_columns import JobColumns
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.state import State

__all__ = ["Decision", "JobColumns", "Knowledge", "Policy", "State"]

_MOST_CPU_MEMORY = 1e9
"""More CPUs or GB than any node has."""


@runtime_checkable
class Policy(Protocol):
    """An online scheduling policy.

    A policy is usually a small frozen dataclass of parameters in one file. In a file of your own it is
    named by its path, ``mine.py:Widest``; in one of ``shadowprice.solvers`` that lists it in ``POLICIES``
    it is found by its name, tested by the common battery and compared, with nothing else to edit.
    """

    @property
    def name(self) -> str:
        """Name on the command line."""

    @property
    def knows(self) -> frozenset[Knowledge]:
        """Knowledge of the policy beyond the past."""

    @property
    def preemptive(self) -> bool:
        """True if it ever stops a running job; decides which optimum it is compared with."""

    def decide(self, state: State) -> Decision:
        """Say which jobs start and stop now, and optionally when to ask again."""


@runtime_checkable
class ChoosesCpuMemory(Protocol):
    """Policy that chooses the CPUs and memory of runs where jobs have profiles of them."""

    @property
    def chooses_cpu_memory(self) -> bool:
        """True: jobs that ask for CPUs or memory are not for it, which does not look at what is the least."""


@runtime_checkable
class ChoosesNodes(Protocol):
    """Policy that chooses the nodes of jobs by their free GPUs alone, not by the placement."""

    @property
    def chooses_nodes(self) -> bool:
        """True: jobs that ask for CPUs or memory are not for it, which does not look at these."""


class Decision:
    """A decision under construction; GPUs are reserved as it is written, nothing runs yet.

    A new one is empty: nothing starts, nothing stops.

    Parameters
    ----------
    state : State
        What it is about.

    Attributes
    ----------
    starts : dict of int to pieces
        Jobs to start, in this order, and the nodes they were given.
    stops : list of int
        Running jobs to preempt.
    fields : dict of int to dict, or None
        What terms are told of jobs to start, and of jobs that go on with something else than before: the
        partner from now on, -1 for nobody, of all whose sharing was touched (``Feature.SHARING``), the nodes
        of replicas (``GRAPHS``), CPUs and memory [GB] on each node (``PROFILES``); None if nothing was.
    wake_s : float
        Time [s] at which the policy wants to decide again although nothing happened.
    """

    __slots__ = (
        "_allocator",
        "_state",
        "fields",
        "starts",
        "stops",
        "wake_s",
    )

    def __init__(self, state: State) -> None:
        self._state = state
        self._allocator = state.allocator
        self.starts: dict[int, Pieces] = {}
        self.stops: list[int] = []
        # Most decisions need none and are spared a dictionary.
        self.fields: dict[int, dict[Feature, Any]] | None = None
        self.wake_s = math.inf

    @property
    def free_gpus(self) -> int:
        """GPUs neither held nor reserved; where jobs hold parts of GPUs also those with room for more."""
        return self._allocator.free_gpus

    def start(self, job: int) -> bool:
        """Reserve GPUs for a waiting job; False, and no change, if its gang does not fit now."""
        return self._start(job)

    def start_on(self, job: int, pool: int) -> bool:
        """Reserve GPUs of one pool (GPU type) for a waiting job.

        False, and no change, if its gang does not fit there now or can never run there.
        """
        return self._start(job, pool)

    def start_at(self, job: int, pieces: Pieces, cpu_memory: RunCpuMemory | None = None) -> bool:
        """Reserve exactly these GPUs for a waiting job, of several types or more than its gang if need be.

        That the job can use them is for the engine and the verifier to say.

        Parameters
        ----------
        cpu_memory : tuple of (float, float), optional
            CPUs and memory [GB] on each of these nodes, where jobs have profiles of them; no less than the job
            asks for (``state.allocator.cpu_memory.least``). If not given the share of its GPUs, or what it
            asks for where that is more.

        Returns
        -------
        bool
            False, and no change, if they are not all free, or the job's CPUs or memory are not.

        Raises
        ------
        PolicyError
            If the job's tenant has a quota, which this would exceed, or it is given less than it asks for, or what
            is no number of CPUs or GB.
        """
        if not self._allocator.admits(job, _width(pieces)):
            raise PolicyError(
                f"job {job} is placed beyond its tenant's quota, expected a policy that asks `admits` of the "
                "allocator before, or leaves places to the placement"
            )
        if cpu_memory is not None:
            _expect_numbers(job, cpu_memory)
        ledger = self._allocator.cpu_memory
        ledger.give(job, pieces, cpu_memory)
        if not self._allocator.hold(job, pieces):
            ledger.give(job, pieces, None)
            return False
        self._note(job, pieces)
        if cpu_memory is not None:
            self._tell(job, Feature.PROFILES, cpu_memory)
        return True

    def adjust(self, job: int, cpu_memory: RunCpuMemory) -> None:
        """Let a running job go on with other CPUs and memory, no less than it asks for, at no charge.

        Raises
        ------
        PolicyError
            If it does not run, has not as many nodes, or is given less than it asks for.
        """
        pieces = self._expect_for(
            job, None if job in self.stops else self._state.running.get(job), cpu_memory
        )
        self._allocator.cpu_memory.adjust(job, pieces, cpu_memory)
        self._tell(job, Feature.PROFILES, cpu_memory)
        partner = self.partner_of(job)
        if partner is not None:
            # Of two that share GPUs rows begin and end together.
            self._tell(partner, Feature.PROFILES, self._cpu_memory_of(partner, pieces))

    def train(self, job: int, batching: Batching) -> None:
        """Let a job that starts or runs make up its batch so, of jobs with goodput that may have any; at no charge.

        Raises
        ------
        PolicyError
            If it holds no GPUs after the decision so far, keeps its batch, or jobs have no goodput.
        """
        goodput = self._state.goodput
        if goodput is None or goodput.batch_size(job) or self._pieces_of(job) is None:
            raise PolicyError(
                f"job {job} is told to train at {tuple(batching)}, expected one with goodput that holds GPUs and may "
                "have any batch"
            )
        if goodput.present(job) != batching or job in self.starts:
            self._tell(job, Feature.GOODPUT, BatchField(Batching(*batching)))

    def start_mapped(self, job: int, mapping: StageMapping) -> bool:
        """Reserve exactly these GPUs for the replicas of a waiting job with a graph.

        Its run then takes as long as this mapping makes its iterations. A job with a graph that is
        started in another way has its stages in order on the GPUs it was given.

        Returns
        -------
        bool
            False, and no change, if they are not all free, or the quota of the job's tenant is used up.

        Raises
        ------
        PolicyError
            If the instance has no graphs, or it is no mapping of the job's replicas.
        """
        mapping, pieces = self._checked(job, mapping)
        allocator = self._allocator
        if not allocator.admits(job, _width(pieces)) or not allocator.hold(job, pieces):
            return False
        self._note(job, pieces)
        self._tell(job, Feature.GRAPHS, mapping)
        return True

    def join(self, job: int, partner: int, cpu_memory: RunCpuMemory | None = None) -> bool:
        """Let a waiting job share the GPUs of a job that runs or was just started.

        Joining is free for the partner; the job pays for its own start or restart. When one of
        the two ends or stops, the other goes on alone on the same GPUs.

        Parameters
        ----------
        cpu_memory : tuple of (float, float), optional
            CPUs and memory [GB] on each of the nodes that the job takes of what its partner holds, where jobs
            have profiles of them; half if not given. Who goes on alone takes back what the other had.

        Returns
        -------
        bool
            False, and no change, if the two cannot share there, the partner has one already, the nodes
            have not the job's CPUs and memory left, the quota of its tenant is used up, or one of the two
            would make no progress, or have less than it asks for, with its part of their CPUs and memory.

        Raises
        ------
        PolicyError
            If the partner holds no GPUs, or the job is given CPUs and memory for other nodes.
        """
        state = self._state
        pieces = self._pieces_of(partner)
        if pieces is None:
            raise PolicyError(f"job {job} joins job {partner}, which holds no GPUs")
        if self.partner_of(partner) is not None or not state.can_share(job, partner, pieces):
            return False
        if cpu_memory is not None:
            self._expect_for(job, pieces, cpu_memory)

        def joined() -> bool:
            return self._allocator.join(job, partner, pieces)

        if not self._share_cpu_memory(job, partner, pieces, cpu_memory, joined):
            return False
        self._share(job, partner)
        self._note(job, pieces)
        return True

    def partner_of(self, job: int) -> int | None:
        """Job that shares its GPUs with this one after the decision so far."""
        said = None if self.fields is None else self.fields.get(job, {}).get(Feature.SHARING)
        if said is None:
            return self._state.partner_of.get(job)
        partner: int = said
        return None if partner == ALONE else partner

    def of(self, feature: Feature) -> dict[int, Any]:
        """Fields of one term, by job."""
        told = (self.fields or {}).items()
        return {job: fields[feature] for job, fields in told if feature in fields}

    def stop(self, job: int) -> None:
        """Preempt a running job; its GPUs are free for the starts that follow, if not shared."""
        pieces = self._state.running.get(job)
        if pieces is None:
            raise PolicyError(f"job {job} is stopped, but does not run")
        partner = self._state.partner_of.get(job) if self.fields is None else self.partner_of(job)
        if partner is None:
            self._allocator.release(job, pieces)
        else:
            self._leave(job, pieces, partner)
            self._tell(job, Feature.SHARING, ALONE)
            self._tell(partner, Feature.SHARING, ALONE)
            if self._state.profiled:
                both = combined(*(self._cpu_memory_of(each, pieces) for each in (job, partner)))
                self._allocator.cpu_memory.adjust(partner, pieces, both)
                self._tell(partner, Feature.PROFILES, both)
        if self.fields is not None:
            # CPUs and memory that it was given for the nodes on which it no longer runs.
            self.fields.get(job, {}).pop(Feature.PROFILES, None)
        self.stops.append(job)

    def resume_in_place(self, job: int) -> bool:
        """Take a stop back if the very same GPUs are still free, or its partner is still alone."""
        state, pieces = self._state, self._state.running[job]
        before = partner = state.partner_of.get(job)
        if partner is not None:
            if partner in self.stops:
                partner = None
            elif self.partner_of(partner) is not None:
                return False
        mine = state.cpu_memory_of.get(job)
        if partner is None and before is not None and mine is not None:
            mine = combined(mine, state.cpu_memory_of[before])

        def resumed() -> bool:
            return self._allocator.resume(job, pieces, partner, self.starts)

        if partner is None:
            ledger = self._allocator.cpu_memory
            ledger.give(job, pieces, mine)
            if not resumed():
                ledger.give(job, pieces, None)
                return False
            if before is not None and mine is not None:
                self._tell(job, Feature.PROFILES, mine)
        else:
            if not self._share_cpu_memory(job, partner, pieces, mine, resumed):
                return False
            if (
                state.profiled
                and self._cpu_memory_of(partner, pieces) == state.cpu_memory_of[partner]
            ):
                # Nothing has changed for either, and no row ends.
                for each in (job, partner):
                    del (self.fields or {})[each][Feature.PROFILES]
            self._share(job, partner)
        self.stops.remove(job)
        return True

    def _leave(self, job: int, pieces: Pieces, partner: int) -> None:
        """Free what a job holds beside the GPUs that its partner has to itself from now on."""
        self._allocator.leave(job, partner, pieces)
        if self._allocator.crowded(partner, pieces, self.starts):
            raise PolicyError(
                f"job {job} is stopped after others of the tenant of its partner, job {partner}, were started, "
                "which now exceed its quota; expected stops before starts"
            )

    def _share_cpu_memory(
        self,
        job: int,
        partner: int,
        pieces: Pieces,
        mine: RunCpuMemory | None,
        take: Callable[[], bool],
    ) -> bool:
        """Take what a job holds beside a partner, some of whose CPUs and memory it gets, half if not told.

        False, and no change, if that is not free, or one of the two would make no progress or have less than it
        asks for.
        """
        if not self._state.profiled:
            return take()
        held, ledger = self._cpu_memory_of(partner, pieces), self._allocator.cpu_memory
        if mine is None:
            mine = tuple((cpus / 2, memory_gb / 2) for cpus, memory_gb in held)
        rest = tuple(
            (cpus - less, memory_gb - less_gb)
            for (cpus, memory_gb), (less, less_gb) in zip(held, mine, strict=True)
        )
        both = {job: mine, partner: rest}
        for each, its in both.items():
            feeds = self._state.profile_of(each).of(pieces, its) > 0
            if not feeds or not ledger.enough(each, pieces, its):
                return False
        ledger.adjust(partner, pieces, rest)
        ledger.give(job, pieces, mine)
        if not take():
            ledger.give(job, pieces, None)
            ledger.adjust(partner, pieces, held)
            return False
        for each, its in both.items():
            self._tell(each, Feature.PROFILES, its)
        return True

    def _cpu_memory_of(self, job: int, pieces: Pieces) -> RunCpuMemory:
        """CPUs and memory of a job after the decision so far."""
        told: RunCpuMemory | None = (self.fields or {}).get(job, {}).get(Feature.PROFILES)
        if told is not None:
            return told
        if job not in self.starts:
            return self._state.cpu_memory_of[job]
        pairs = zip(
            self._state.share_per_gpu, self._allocator.cpu_memory.least(job, 1), strict=True
        )
        cpus, memory_gb = (max(pair) for pair in pairs)
        return per_node((cpus, memory_gb), pieces)

    def _expect_for(self, job: int, pieces: Pieces | None, cpu_memory: RunCpuMemory) -> Pieces:
        """Nodes of a job, which is given CPUs and memory on each of them."""
        if pieces is None or len(pieces) != len(cpu_memory) or not self._state.profiled:
            raise PolicyError(f"job {job} is given CPUs and memory {cpu_memory} on nodes {pieces}")
        _expect_numbers(job, cpu_memory)
        return pieces

    def start_all(self) -> Decision:
        """Start every waiting job that fits, in the order they wait."""
        for job in self._state.waiting:
            self.start(job)
        return self

    def wake_at(self, time_s: float) -> None:
        """Ask to decide again at this time, at the latest."""
        self.wake_s = min(self.wake_s, time_s)

    def _start(self, job: int, pool: int | None = None) -> bool:
        """Start a job in the first of its pools with a place for it, or in one of them."""
        state = self._state
        try:
            pools = state.pools[job]
        except IndexError:
            state.require_arrived(job)
            raise
        if pool is not None:
            if pool not in pools:
                return False
            pools = (pool,)
        pieces = self._allocator.take(job, state.gang[job], pools)
        if pieces is None:
            return False
        # As in _note, whose call would be a hundredth of a run's time.
        if job in self.starts:
            raise self._twice(job)
        self.starts[job] = pieces
        return True

    def _note(self, job: int, pieces: Pieces) -> None:
        if job in self.starts:
            raise self._twice(job)
        self.starts[job] = pieces

    def _twice(self, job: int) -> PolicyError:
        return PolicyError(f"job {job} is started twice at {self._state.now_s} s")

    def _share(self, job: int, partner: int) -> None:
        self._tell(job, Feature.SHARING, partner)
        self._tell(partner, Feature.SHARING, job)

    def _tell(self, job: int, feature: Feature, value: object) -> None:
        """Set a field of a job that starts, or that goes on otherwise."""
        if self.fields is None:
            self.fields = {}
        self.fields.setdefault(job, {})[feature] = value

    def _checked(self, job: int, mapping: StageMapping) -> tuple[StageMapping, Pieces]:
        """A mapping of a job's replicas, and its GPUs."""
        state = self._state
        try:
            mapping = tuple((index(node), tuple(stages)) for node, stages in mapping)
            state.iteration_s(job, mapping)
        except (InputError, TypeError, ValueError) as error:
            raise PolicyError(f"job {job} is started with a wrong mapping: {error}") from error
        pieces = tuple((node, sum(stages)) for node, stages in mapping)
        nodes = {node for node, gpus in pieces if gpus and 0 <= node < state.nodes}
        if len(nodes) < len(pieces):
            raise PolicyError(
                f"job {job} is started with a wrong mapping: on nodes and GPUs {pieces}, expected "
                f"different nodes of 0 to {state.nodes - 1} with at least one replica each"
            )
        return mapping, pieces

    def _pieces_of(self, job: int) -> Pieces | None:
        """GPUs that a job holds after the decision so far; O(1) on average."""
        if job in self.starts:
            return self.starts[job]
        return None if job in self.stops else self._state.running.get(job)


def _expect_numbers(job: int, cpu_memory: RunCpuMemory) -> None:
    """Refuse CPUs and memory that are no numbers of either, or too many to count."""
    if not all(0 <= each <= _MOST_CPU_MEMORY for pair in cpu_memory for each in pair):
        raise PolicyError(
            f"job {job} is given CPUs and memory {cpu_memory}, expected numbers from 0 to {_MOST_CPU_MEMORY:.0e}"
        )


def _width(pieces: Pieces) -> int:
    """GPUs of a run."""
    return sum(gpus for _, gpus in pieces)
