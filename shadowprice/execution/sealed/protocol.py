"""The protocol of a sealed policy: lines of JSON, from the engine to the policy and back.

The engine speaks first; each ``hello`` and each ``decide`` is answered by one line, ``begin`` by none:

1. ``hello``: the version; the answer is :class:`Introduction`, what the policy is called and declares.
2. ``begin``: a run begins (:class:`Begin`), all that is known before a job arrives. A process may be asked for several.
3. ``decide``: a decision is due (:class:`Due`), with what changed since the last one; the answer is :class:`Answer`.

Jobs are numbers in order of arrival from 0, nodes and pools positions from 0. Times are seconds in decimals that read
back as the very double, a multiple of 2^-20; ``null`` stands for infinity. What has its usual value is left out.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from shadowprice.instances.clusters.cpu_memory import CpuMemoryDemand, RunCpuMemory
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.documents.written_instance import NodeGroup
from shadowprice.instances.graphs.job_graph import JobGraph
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.terms.racks import Racks
from shadowprice.solvers.knowledge import Knowledge

VERSION = 1
"""Version of the protocol; another one is another language."""

Pieces = tuple[tuple[int, int], ...]
"""GPUs by node: pairs of a node and how many."""


class Hello(Struct, frozen=True, tag_field="message", tag="hello"):
    """First message to the policy."""

    version: int = VERSION


class Introduction(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answer to ``hello``: what the policy is, before it has seen anything.

    Parameters
    ----------
    version : int
        That it speaks.
    name : str
    knows : tuple of Knowledge
        What it declares to know beyond the past, and is then told.
    preemptive : bool
        Whether it ever stops a running job.
    chooses_nodes, chooses_cpu_memory : bool
        Whether it chooses nodes, or CPUs and memory, and does not look at what jobs ask for.
    """

    name: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]
    version: int = VERSION
    knows: tuple[Knowledge, ...] = ()
    preemptive: bool = False
    chooses_nodes: bool = False
    chooses_cpu_memory: bool = False


class SharingKind(Struct, frozen=True, array_like=True):
    """A model and a gang size that may share GPUs."""

    model: str
    gpus: int


class Sharing(Struct, frozen=True, kw_only=True):
    """Rates of jobs that share GPUs.

    Parameters
    ----------
    kinds : tuple of SharingKind
        Numbered from 1; kind 0 never shares.
    rates : nested tuples of float
        Work a second by GPU type, kind, and kind of the partner.
    """

    kinds: tuple[SharingKind, ...]
    rates: tuple[tuple[tuple[float, ...], ...], ...]


class Checkpoints(Struct, frozen=True, kw_only=True):
    """Checkpoints of runs: one after each interval of progress, which takes its cost [s]."""

    interval_s: float | None = None
    cost_s: float = 0.0


class PlacementSettings(Struct, frozen=True, kw_only=True):
    """A placement of ours and its settings."""

    name: str
    settings: dict[str, Any]


class Begin(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="message", tag="begin"
):
    """Knowledge before a job arrives.

    Parameters
    ----------
    cluster : tuple of NodeGroup
        Nodes, equal ones together.
    knows : tuple of Knowledge
        What the policy is told, as it declared.
    placement : PlacementSettings
        Rule that chooses the nodes of starts that name none.
    typed : bool
        Whether each GPU type is a pool of its own, on which jobs have rates; else all GPUs are one pool.
    overheads, quotas, network, sharing, checkpoints, goodput, racks
        What the instance says of charges and runs, where it says any.
    profiled, elastic, parts, asking : bool
        Whether jobs have profiles by CPUs and memory, may grow, may hold parts of GPUs, ask for CPUs and memory.
    service_gpu_s : tuple of float, optional
        Services of all jobs, sorted [GPU-s], for a policy that declares ``distribution``.
    """

    cluster: tuple[NodeGroup, ...]
    knows: tuple[Knowledge, ...]
    placement: PlacementSettings
    typed: bool = False
    overheads: Overheads = Overheads()
    quotas: Quotas | None = None
    network: Network | None = None
    sharing: Sharing | None = None
    checkpoints: Checkpoints | None = None
    goodput: Goodput | None = None
    racks: Racks | None = None
    profiled: bool = False
    elastic: bool = False
    parts: bool = False
    asking: bool = False
    service_gpu_s: tuple[float, ...] | None = None


class WrittenProfile(Struct, frozen=True, kw_only=True):
    """Speeds by CPUs and memory for each GPU."""

    name: str
    cpus_per_gpu: tuple[float, ...]
    memory_gb_per_gpu: tuple[float, ...]
    speed: tuple[tuple[float, ...], ...]


class ArrivedJob(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job that arrives: all that is known of it then.

    Parameters
    ----------
    job : int
    id : str
    gpus : int
        Gang size.
    arrival_s : float
    weight, deadline_s, limit_s, nodes, gpu_milli, batch_size, tenant, model, group, name, job_class
        As columns of a workload.
    pools : tuple of int
        Pools that it may use, fastest first.
    throughput : tuple of float, optional
        Work a second on each pool, where GPUs have types.
    widest : int
        Most GPUs that it may hold, where jobs may grow.
    kind : int
        Kind by which it shares GPUs; 0 if it does not.
    runs_on : tuple of int, optional
        GPU types on which it can run, where jobs may share.
    graph, profile : int, optional
        Number of its graph or profile; those that are new are in ``graph_is`` and ``profile_is``.
    alpha_s : tuple of (float, float), optional
        Least and largest time of an iteration of its graph [s].
    asks : CpuMemoryDemand, optional
        CPUs and memory that it asks for, where jobs do.
    run_s, work, alone_s
        Run time on the fastest type [s], whole work, run time on each GPU type [s]: for a policy that declares
        ``duration``.
    efficiency : float, optional
        For a policy that declares ``speed-up``.
    """

    job: int
    id: str
    gpus: int
    arrival_s: float
    weight: float = 1.0
    deadline_s: float | None = None
    limit_s: float | None = None
    nodes: int = 0
    gpu_milli: int = 1000
    batch_size: int = 0
    tenant: str = ""
    model: str = ""
    group: str = ""
    name: str = ""
    job_class: str = ""
    pools: tuple[int, ...] = (0,)
    throughput: tuple[float, ...] | None = None
    widest: int = 0
    kind: int = 0
    runs_on: tuple[int, ...] | None = None
    graph: int | None = None
    graph_is: JobGraph | None = None
    alpha_s: tuple[float, float] | None = None
    profile: int | None = None
    profile_is: WrittenProfile | None = None
    asks: CpuMemoryDemand | None = None
    run_s: float | None = None
    work: float | None = None
    alone_s: tuple[float | None, ...] | None = None
    efficiency: float | None = None


class StartedJob(Struct, frozen=True, array_like=True):
    """A job and the nodes that it holds."""

    job: int
    pieces: Pieces


class Ended(Struct, frozen=True, tag_field="event", tag="ended"):
    """A job is complete; its whole work is known from then on."""

    job: int
    work: float


class Failed(Struct, frozen=True, tag_field="event", tag="failed"):
    """A job lost a node; it waits again."""

    job: int


class Down(Struct, frozen=True, tag_field="event", tag="down"):
    """A node is down."""

    node: int


class Up(Struct, frozen=True, tag_field="event", tag="up"):
    """A node is up again."""

    node: int


class Progress(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Progress of a job, where that is other than what was sent last.

    Parameters
    ----------
    job : int
    attained_s : float
        Time for which it ran before its present run [s].
    owed_s : float
        Overhead that it owes when it resumes [s].
    speed : float
        Speed of its run against the fastest type, 0 while it waits; to twelve bits for a policy that does not declare
        ``duration``.
    from_s : float
        Time from which its present run makes progress [s].
    first_start_s : float, optional
        Time of its first start [s].
    waiting_since_s : float
        Time at which it arrived or stopped last [s].
    left_s : float, optional
        Run time left at ``from_s`` [s], for a policy that declares ``duration``.
    """

    job: int
    attained_s: float = 0.0
    owed_s: float = 0.0
    speed: float = 0.0
    from_s: float = 0.0
    first_start_s: float | None = None
    waiting_since_s: float = 0.0
    left_s: float | None = None


class Epoch(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Place of a job with goodput at the beginning of its present run, and its batch.

    Parameters
    ----------
    job, epoch : int
    done : str
        Progress since the epoch began, in units of 2^-220; a whole number in decimals.
    batching : tuple of (int, int), optional
        Local batch and accumulations of its run.
    slowed : bool
        Whether others slow it.
    from_s : float
        Time from which its run makes progress [s].
    """

    job: int
    epoch: int = 0
    done: str = "0"
    batching: tuple[int, int] | None = None
    slowed: bool = False
    from_s: float = 0.0


class Due(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="message", tag="decide"):
    """A decision is due: what changed since the last one, in this order.

    Parameters
    ----------
    now_s : float
    free_gpus : int
        GPUs that nobody holds.
    stopped : tuple of int
        Jobs that the last decision stopped.
    started : tuple of StartedJob
        Jobs that it started, and where.
    events : tuple
        Ends, failures, and nodes that went down or came up, in order of time.
    arrived : tuple of ArrivedJob
        Jobs that are new; who failed waits again, and is not among them.
    progress : tuple of Progress
        Jobs of which any of these is new.
    partners : tuple of (int, int)
        Jobs that have another partner on their GPUs than before; -1 for none.
    cpu_memory : tuple of (int, RunCpuMemory)
        Running jobs that hold other CPUs and memory than before, by node.
    epochs : tuple of Epoch
        Jobs with goodput of which any of these is new.
    """

    now_s: float
    free_gpus: int
    stopped: tuple[int, ...] = ()
    started: tuple[StartedJob, ...] = ()
    events: tuple[Ended | Failed | Down | Up, ...] = ()
    arrived: tuple[ArrivedJob, ...] = ()
    progress: tuple[Progress, ...] = ()
    partners: tuple[tuple[int, int], ...] = ()
    cpu_memory: tuple[tuple[int, RunCpuMemory], ...] = ()
    epochs: tuple[Epoch, ...] = ()


class Start(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A job to start.

    Parameters
    ----------
    job : int
    pieces : tuple of (int, int), optional
        Where: it is an error if they are not free. If not given the placement chooses, and a job that does not
        fit goes on waiting.
    pool : int, optional
        Pool of which the placement chooses nodes; any if not given.
    partner : int, optional
        Running job, or one that is started before, whose GPUs it shares.
    cpu_memory : optional
        CPUs and memory on each of its nodes.
    mapping : optional
        Replicas of its graph: pairs of a node and the replicas of each stage there.
    batching : tuple of (int, int), optional
        Local batch and accumulations.
    """

    job: int
    pieces: Pieces | None = None
    pool: int | None = None
    partner: int | None = None
    cpu_memory: RunCpuMemory | None = None
    mapping: tuple[tuple[int, tuple[int, ...]], ...] | None = None
    batching: tuple[int, int] | None = None


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A running job that goes on with other CPUs and memory, or another batch."""

    job: int
    cpu_memory: RunCpuMemory | None = None
    batching: tuple[int, int] | None = None


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A decision: stops first, then starts in their order, then changes.

    Parameters
    ----------
    stop : tuple of int
    start : tuple of Start
    change : tuple of Change
    wake_s : float, optional
        Time at which to be asked again if nothing happens before [s].
    touched : tuple of int
        Jobs in the order in which a schedule shows those that go on otherwise; any if not given.
    error : str, optional
        One sentence instead of a decision: the run ends with it.
    """

    stop: tuple[int, ...] = ()
    start: tuple[Start, ...] = ()
    change: tuple[Change, ...] = ()
    wake_s: float | None = None
    touched: tuple[int, ...] = ()
    error: str | None = None


Message = Hello | Begin | Due
"""Words of the engine."""


def _plain(value: object) -> object:
    """A number of NumPy, as policies decide with, as one of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of a message")


encoded = msgspec.json.Encoder(enc_hook=_plain).encode
"""Line of a message or an answer, without its end."""
message_of = msgspec.json.Decoder(Message).decode
"""Message of a line."""
introduction_of = msgspec.json.Decoder(Introduction).decode
"""Introduction of a line."""
answer_of = msgspec.json.Decoder(Answer).decode
"""Answer of a line."""
