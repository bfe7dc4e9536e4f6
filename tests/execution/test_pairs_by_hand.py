"""Two jobs under two features at once, worked out by hand: so the engine runs them, and just that the verifier takes.

The meanings are those of ``docs/semantics.md``. Each example says what the rows have to be, in seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

import numpy as np
import pytest

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.failures.checkpointing import Checkpointing
from shadowprice.instances.failures.node_failures import NodeFailures, merged
from shadowprice.instances.failures.preemption import Preemption
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.graphs.workload_graphs import JobGraphs
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.policy import Decision, Knowledge, State
from shadowprice.solvers.registry import policy
from support.horizons import ended

Step = Callable[[Decision], object]
Row = tuple[int, int, int, float, float]
"""Job, node, GPUs, begin and end [s]."""


@dataclass(frozen=True)
class Scripted:
    """Does what is written down for a time, and starts whoever fits."""

    steps: Mapping[float, Step] = field(default_factory=dict)
    name: str = "scripted"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        step = self.steps.get(state.now_s)
        if step is not None:
            step(decision)
        for job in [job for job in state.waiting if job not in decision.starts]:
            decision.start(job)
        for at_s in self.steps:
            if at_s > state.now_s:
                decision.wake_at(at_s)
        return decision


def jobs(**columns: object) -> Workload:
    """Two jobs that are there from 0."""
    return Workload.from_columns(**{"arrival_s": [0, 0], "gpus": 1, "work": 4, **columns})


def quotas(*periods: tuple[float, int]) -> Quotas:
    """Of the one tenant: GPUs from a time on [s]."""
    return Quotas(("x",), tuple(at for at, _ in periods), tuple((gpus,) for _, gpus in periods))


def both(tenant: str = "x") -> dict[str, object]:
    return {"tenant": [tenant, tenant]}


HALF_AS_FAST = Locality(np.array([0.5, 0.5]))
WIDER = Elasticity(np.array([2, 1]), np.ones(2))
FED = Profile(np.array([1.0, 2.0]), np.array([1.0]), np.array([[0.5], [1.0]]))
PAIRS = Throughputs(("any",), {}, {("any", ("", 1), ("", 1)): (0.5, 0.5)})
SLOWER_ON_K80 = Throughputs(
    ("v100", "k80"),
    {},
    {
        ("v100", ("", 2), ("", 2)): (0.5, 0.5),
        ("k80", ("", 2), ("", 2)): (0.25, 0.25),
    },
)
TWO_STAGES = JobGraph(
    "two stages",
    (Stage("a", 1, 0.25, 0.25, 0), Stage("b", 1, 0.25, 0.25, 0)),
    (Link(0, 1, 2**27),),
)
GRAPHS = JobGraphs((TWO_STAGES,), np.zeros(2, dtype=np.int64), Network(2**30, 2**28, 2))

SHORT = JobGraphs(
    (JobGraph("short", (Stage("a", 1, 2.0**-31, 2.0**-31, 0),), ()),),
    np.zeros(2, dtype=np.int64),
    Network(2**30, 2**28, 2),
)


@dataclass(frozen=True)
class Example:
    """An instance, what is done, and the rows that come of it."""

    why: str
    instance: Instance
    rows: tuple[Row, ...]
    steps: Mapping[float, Step] = field(default_factory=dict)
    go_on: tuple[tuple[int, float], ...] = ()
    """Job and begin of the rows that go on."""


def down(begin_s: float, end_s: float, interval_s: float, cost_s: float) -> NodeFailures:
    """Node 0 fails once; jobs write checkpoints."""
    rule = Checkpointing(interval_s, cost_s)
    return merged(np.array([0]), np.array([begin_s]), np.array([end_s]), "faults", rule)


TWO_CPUS = Cluster((Node(1, cpus=2.0, memory_gb=1.0),))
THREE_CPUS = Cluster((Node(1, gpu_type="any", cpus=3.0, memory_gb=2.0),))
RESTARTS = Overheads(restart_s=1.0)
BY_CPUS = Sensitivity((FED,), np.zeros(2, dtype=np.int64))
FOUR_CPUS = Cluster((Node(2, cpus=4.0, memory_gb=2.0),))
TWICE_WITH_FOUR = Sensitivity(
    (Profile(np.array([1.0, 2.0, 4.0]), np.array([1.0]), np.array([[0.5], [1.0], [2.0]])),),
    np.zeros(2, dtype=np.int64),
)
ONE_GPU = Cluster((Node(1, gpu_type="any"),))


def again(decision: Decision) -> None:
    """Stop job 0 and start it again at that moment."""
    decision.stop(0)
    assert decision.start(0)


EXAMPLES = {
    "quotas and spread": Example(
        "Both are of one tenant with 2 GPUs: while job 0 is spread, at half speed, job 1 may not begin on node 0.",
        Instance(
            Cluster((Node(2), Node(1), Node(1)), quotas=quotas((0.0, 2))),
            jobs(gpus=2, **both()),
            locality=HALF_AS_FAST,
        ),
        ((0, 1, 1, 0, 8), (0, 2, 1, 0, 8), (1, 0, 2, 8, 12)),
        {
            0.0: lambda decision: decision.start_at(0, ((1, 1), (2, 1))),
            8.0: lambda decision: decision.start_at(1, ((0, 2),)),
        },
    ),
    "quotas and profiles": Example(
        "The quota falls to none at 1; job 0, given half the CPUs at 2, goes on: it does not begin. Two of its four "
        "seconds of work are left, at half speed. Job 1 begins with the quota of 7.",
        Instance(
            Cluster(
                (Node(1, cpus=2.0, memory_gb=1.0),), quotas=quotas((0.0, 1), (1.0, 0), (7.0, 1))
            ),
            jobs(**both()),
            sensitivity=Sensitivity((FED,), np.zeros(2, dtype=np.int64)),
        ),
        ((0, 0, 1, 0, 2), (0, 0, 1, 2, 6), (1, 0, 1, 7, 11)),
        {2.0: lambda decision: decision.adjust(0, ((1.0, 1.0),))},
        ((0, 2),),
    ),
    "quotas and graphs": Example(
        "An iteration takes 0.5 s of each stage and 2 x 128 MiB over 1 GiB/s between them, 0.75 s: four take 3 s. "
        "The second job waits for the quota, not for GPUs.",
        Instance(
            Cluster((Node(2), Node(2)), quotas=quotas((0.0, 2))),
            jobs(gpus=2, **both()),
            graphs=GRAPHS,
        ),
        ((0, 0, 2, 0, 3), (1, 0, 2, 3, 6)),
    ),
    "quotas and demands": Example(
        "Job 1 waits for the quota until 2, and then for the CPUs of job 0.",
        Instance(
            Cluster((Node(2, cpus=3.0, memory_gb=8.0),), quotas=quotas((0.0, 1), (2.0, 2))),
            jobs(cpus=[2.0, 2.0], **both()),
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 4, 8)),
    ),
    "quotas and widths": Example(
        "On two GPUs job 0 is twice as fast and holds all of the quota, beyond its gang of one.",
        Instance(Cluster((Node(3),), quotas=quotas((0.0, 2))), jobs(**both()), elasticity=WIDER),
        ((0, 0, 2, 0, 2), (1, 0, 1, 2, 6)),
        {0.0: lambda decision: decision.start_at(0, ((0, 2),))},
    ),
    "quotas and sharing": Example(
        "Each holds half of the one GPU that the quota is. At half speed job 1 ends at 4; job 0 has done two "
        "seconds by then and has the GPU to itself, which is no beginning though the quota has gone at 1.",
        Instance(
            Cluster((Node(2, gpu_type="any"),), quotas=quotas((0.0, 1), (1.0, 0))),
            jobs(work=[4.0, 2.0], **both()),
            sharing_rates=PAIRS,
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 4), (0, 0, 1, 4, 6)),
        {0.0: lambda decision: (decision.start(0), decision.join(1, 0))},
        ((0, 4),),
    ),
    "sharing and types": Example(
        "Gangs of two on a GPU of each type: beside each other they do 1/2 a second on one type, and 1/4 on the other.",
        Instance(
            Cluster((Node(2, gpu_type="v100"), Node(2, gpu_type="k80"))),
            jobs(gpus=2, throughput=[[1.0, 1.0]] * 2, gpu_types=("v100", "k80")),
            sharing_rates=SLOWER_ON_K80,
        ),
        ((0, 0, 1, 0, 16), (0, 1, 1, 0, 16), (1, 0, 1, 0, 16), (1, 1, 1, 0, 16)),
        {0.0: lambda decision: (decision.start_at(0, ((0, 1), (1, 1))), decision.join(1, 0))},
    ),
    "profiles and demands": Example(
        "Job 0 asks for all 4 CPUs and is given them, not its share of 2: it is twice as fast. Job 1 has to wait, for "
        "its share is not free, though a GPU is.",
        Instance(FOUR_CPUS, jobs(cpus=[4.0, 0.0]), sensitivity=TWICE_WITH_FOUR),
        ((0, 0, 1, 0, 2), (1, 0, 1, 2, 6)),
    ),
    "profiles and demands that are given": Example(
        "Job 0 asks for 3 CPUs and has these. Job 1 asks for 1 and is given it, which is less than its share, at half "
        "speed; of its four seconds two are left at 5, when it is given 2. Each pays a second once.",
        Instance(FOUR_CPUS, jobs(cpus=[3.0, 1.0]), Overheads(1.0), sensitivity=TWICE_WITH_FOUR),
        ((0, 0, 1, 0, 5), (1, 0, 1, 0, 5), (1, 0, 1, 5, 7)),
        {
            0.0: lambda decision: (
                decision.start_at(0, ((0, 1),)),
                decision.start_at(1, ((0, 1),), ((1.0, 1.0),)),
            ),
            5.0: lambda decision: decision.adjust(1, ((2.0, 1.0),)),
        },
        ((1, 5),),
    ),
    "profiles, demands and cores": Example(
        "Beside its core job 1 is given the 3 GB that it asks for, of 4; job 0 waits for 2 of them.",
        Instance(
            Cluster((*FOUR_CPUS.nodes, Node(2, gpu_type="cores", memory_gb=4.0))),
            jobs(allowed_types="cores", memory_gb=[2.0, 3.0]),
            sensitivity=TWICE_WITH_FOUR,
        ),
        ((1, 1, 1, 0, 4), (0, 1, 1, 4, 8)),
        {0.0: lambda decision: decision.start_at(1, ((1, 1),))},
    ),
    "demands and widths": Example(
        "Job 0 asks for 2 CPUs on its gang of one and holds 4 on two GPUs, all that there are.",
        Instance(
            Cluster((Node(3, cpus=4.0, memory_gb=8.0),)),
            jobs(cpus=[2.0, 1.0]),
            elasticity=WIDER,
        ),
        ((0, 0, 2, 0, 2), (1, 0, 1, 2, 6)),
        {0.0: lambda decision: decision.start_at(0, ((0, 2),))},
    ),
    "demands and graphs": Example(
        "Two replicas hold 3 CPUs, of 4 that each node has: there are GPUs for both jobs on node 0, and CPUs for one.",
        Instance(
            Cluster((Node(4, cpus=4.0, memory_gb=8.0), Node(2, cpus=4.0, memory_gb=8.0))),
            jobs(gpus=2, cpus=[3.0, 3.0]),
            graphs=JobGraphs((TWO_STAGES,), np.zeros(2, dtype=np.int64), Network(2**30, 2**28, 4)),
        ),
        ((0, 0, 2, 0, 3), (1, 1, 2, 0, 3)),
    ),
    "parts and demands": Example(
        "Half of the GPU is free beside job 0, and one CPU: job 1, who asks for none, holds half of a share of two.",
        Instance(
            Cluster((Node(2, cpus=4.0, memory_gb=8.0),)),
            jobs(gpu_milli=[500, 500], cpus=[3.0, 0.0]),
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 4)),
    ),
    "parts that wait for demands": Example(
        "There is room on the GPU for both, and not the CPUs.",
        Instance(
            Cluster((Node(2, cpus=4.0, memory_gb=8.0),)),
            jobs(gpu_milli=[500, 500], cpus=[3.0, 2.0]),
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 4, 8)),
    ),
    "parts and spread": Example(
        "A part of a GPU is never spread: half of one GPU for 4 s, and a gang of two over two nodes at half speed.",
        Instance(
            Cluster((Node(2), Node(2))),
            jobs(gpus=[1, 2], gpu_milli=[500, 1000]),
            locality=HALF_AS_FAST,
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 8), (1, 1, 1, 0, 8)),
        {0.0: lambda decision: (decision.start(0), decision.start_at(1, ((0, 1), (1, 1))))},
    ),
    "cores and quotas": Example(
        "The quota of one GPU is that of job 0; three cores are nobody's GPUs, and job 1 begins at once.",
        Instance(
            Cluster((Node(2), Node(4, gpu_type="cores")), quotas=quotas((0.0, 1))),
            jobs(gpus=[1, 3], allowed_types=["", "cores"], **both()),
        ),
        ((0, 0, 1, 0, 4), (1, 1, 3, 0, 4)),
    ),
    "cores and spread": Example(
        "Cores are never spread; and two GPUs on two nodes are not, since only the node of cores could hold two.",
        Instance(
            Cluster((Node(1), Node(1), Node(2, gpu_type="cores"), Node(1, gpu_type="cores"))),
            jobs(gpus=[2, 2], allowed_types=["", "cores"]),
            locality=HALF_AS_FAST,
        ),
        ((0, 0, 1, 0, 4), (0, 1, 1, 0, 4), (1, 2, 1, 0, 4), (1, 3, 1, 0, 4)),
        {0.0: lambda decision: decision.start_at(1, ((2, 1), (3, 1)))},
    ),
    "cores and widths": Example(
        "The job on a GPU grows; cores do not.",
        Instance(
            Cluster((Node(2), Node(4, gpu_type="cores"))),
            jobs(allowed_types=["", "cores"]),
            elasticity=WIDER,
        ),
        ((0, 0, 2, 0, 2), (1, 1, 1, 0, 4)),
        {0.0: lambda decision: decision.start_at(0, ((0, 2),))},
    ),
    "parts and widths": Example(
        "Who holds a part of a GPU does not grow; the other, on two GPUs, is twice as fast.",
        Instance(
            Cluster((Node(3),)),
            jobs(gpu_milli=[1000, 500]),
            elasticity=WIDER,
        ),
        ((0, 0, 2, 0, 2), (1, 0, 1, 0, 4)),
        {0.0: lambda decision: (decision.start_at(0, ((0, 2),)), decision.start(1))},
    ),
    "sharing and parts": Example(
        "Who holds a part of a GPU pairs with nobody, whatever the rates say: job 1 waits for a whole one.",
        Instance(
            Cluster((Node(1, gpu_type="any"),)),
            jobs(gpu_milli=[500, 1000]),
            sharing_rates=PAIRS,
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 4, 8)),
        {0.0: lambda decision: (decision.start(0), decision.join(1, 0))},
    ),
    "sharing and cores": Example(
        "Cores are nobody's to share, though the table has rates for nodes of that name.",
        Instance(
            Cluster((Node(1, gpu_type="any"), Node(1, gpu_type="cores"))),
            jobs(allowed_types=["cores", "cores"]),
            sharing_rates=Throughputs(("cores",), {}, {("cores", ("", 1), ("", 1)): (0.5, 0.5)}),
        ),
        ((0, 1, 1, 0, 4), (1, 1, 1, 4, 8)),
        {0.0: lambda decision: (decision.start(0), decision.join(1, 0))},
    ),
    "cores and demands": Example(
        "There are cores for both, and of 8 GB of memory 5 for one.",
        Instance(
            Cluster((Node(1), Node(2, gpu_type="cores", memory_gb=8.0))),
            jobs(allowed_types=["cores", "cores"], memory_gb=[5.0, 5.0]),
        ),
        ((0, 1, 1, 0, 4), (1, 1, 1, 4, 8)),
    ),
    "graphs and profiles": Example(
        "Four iterations take 3 s, as above, and with one CPU for each GPU of two twice that.",
        Instance(
            Cluster((Node(4, cpus=8.0, memory_gb=4.0),)),
            jobs(gpus=2),
            graphs=JobGraphs((TWO_STAGES,), np.zeros(2, dtype=np.int64), Network(2**30, 2**28, 4)),
            sensitivity=Sensitivity((FED,), np.zeros(2, dtype=np.int64)),
        ),
        ((0, 0, 2, 0, 6), (1, 0, 2, 0, 3)),
        {0.0: lambda decision: decision.start_at(0, ((0, 2),), ((2.0, 2.0),))},
    ),
    "graphs and parts": Example(
        "One replica on half a GPU takes 0.5 s an iteration; two of them are on the one GPU at once.",
        Instance(
            Cluster((Node(1),)),
            jobs(gpu_milli=[500, 500]),
            graphs=JobGraphs(
                (JobGraph("one stage", (Stage("a", 1, 0.25, 0.25, 0),), ()),),
                np.zeros(2, dtype=np.int64),
                Network(2**30, 2**28, 2),
            ),
        ),
        ((0, 0, 1, 0, 2), (1, 0, 1, 0, 2)),
    ),
    "profiles and parts": Example(
        "Half a GPU has half of its share, one CPU, which is two for a whole one: speed 1. Job 1 has half of that.",
        Instance(
            Cluster((Node(1, cpus=2.0, memory_gb=1.0),)),
            jobs(gpu_milli=[500, 500]),
            sensitivity=Sensitivity((FED,), np.zeros(2, dtype=np.int64)),
        ),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 8)),
        {
            0.0: lambda decision: (
                decision.start(0),
                decision.start_at(1, ((0, 1),), ((0.5, 0.5),)),
            )
        },
    ),
    "profiles and cores": Example(
        "Cores run at speed 1 and hold no CPUs beside them; job 0 has half of its CPUs.",
        Instance(
            Cluster((Node(1, cpus=2.0, memory_gb=1.0), Node(2, gpu_type="cores"))),
            jobs(allowed_types=["", "cores"]),
            sensitivity=Sensitivity((FED,), np.zeros(2, dtype=np.int64)),
        ),
        ((0, 0, 1, 0, 8), (1, 1, 1, 0, 4)),
        {0.0: lambda decision: decision.start_at(0, ((0, 1),), ((1.0, 1.0),))},
    ),
    "failures and profiles": Example(
        "Job 0 does 1/4 until 1, with half of the CPUs 1/8 until 2, when two seconds of progress are done: it writes a "
        "checkpoint until 3, and loses what it does until the failure at 4. K = 2 floor(4 / 3) = 2: the first two "
        "seconds of its run, 3/8. At full speed 5/8 are 2.5 s, with a checkpoint after two of them 3.5 s; all of job 1 "
        "is 2 + 1 + 2. Had its clock begun anew at 1, it would have kept 1/4 + 2/8.",
        Instance(TWO_CPUS, jobs(), sensitivity=BY_CPUS, failures=down(4.0, 5.0, 2.0, 1.0)),
        ((0, 0, 1, 0, 1), (0, 0, 1, 1, 4), (0, 0, 1, 5, 8.5), (1, 0, 1, 8.5, 13.5)),
        {
            1.0: lambda decision: decision.adjust(0, ((1.0, 1.0),)),
            5.0: lambda decision: decision.start(0),
        },
        ((0, 1),),
    ),
    "failures and profiles that change often": Example(
        "Other CPUs cut the row, not the clock: the one checkpoint of each job is that after two seconds of progress. "
        "At full speed throughout, job 0 is in the second half of writing it from 2.5 on.",
        Instance(TWO_CPUS, jobs(), sensitivity=BY_CPUS, failures=down(90.0, 91.0, 2.0, 1.0)),
        (
            *((0, 0, 1, at, at + 0.5) for at in (0, 0.5, 1, 1.5, 2, 2.5)),
            (0, 0, 1, 3, 5),
            (1, 0, 1, 5, 10),
        ),
        {
            at: lambda decision: decision.adjust(0, ((2.0, 1.0),))
            for at in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
        },
        tuple((0, at) for at in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)),
    ),
    "failures and sharing": Example(
        "Job 0 does 1/4 until job 1 joins at 1, at half speed each. Its clock goes on: 1/8 until 2, a checkpoint until "
        "3. That of job 1 begins at 1: 2/8 until 3, a checkpoint until 4. The failure at 4.5 strikes both: job 0 keeps "
        "2 floor(4.5 / 3) = 2 s of progress, 1/4 + 1/8, job 1 2 floor(3.5 / 3) = 2 s, 2/8. Then each runs alone: 5/8 "
        "in 2 + 1 + 0.5 s, and 3/4 in 2 + 1 + 1 s.",
        Instance(ONE_GPU, jobs(), sharing_rates=PAIRS, failures=down(4.5, 5.0, 2.0, 1.0)),
        (
            (0, 0, 1, 0, 1),
            (0, 0, 1, 1, 4.5),
            (1, 0, 1, 1, 4.5),
            (0, 0, 1, 5, 8.5),
            (1, 0, 1, 8.5, 12.5),
        ),
        {1.0: lambda decision: decision.join(1, 0), 5.0: lambda decision: decision.start(0)},
        ((0, 1),),
    ),
    "failures and restart": Example(
        "The node goes down at 2: job 0 starts from nothing at 3, is stopped at 5 and starts from nothing again at "
        "that moment, and is complete at 9. Who writes no checkpoints loses the same by either.",
        Instance(
            ONE_GPU,
            jobs(),
            failures=merged(
                np.array([0]), np.array([2.0]), np.array([3.0]), "faults", Checkpointing()
            ),
            preemption=Preemption.RESTART,
        ),
        ((0, 0, 1, 0, 2), (0, 0, 1, 3, 5), (0, 0, 1, 5, 9), (1, 0, 1, 9, 13)),
        {3.0: lambda decision: decision.start(0), 5.0: again},
    ),
    "restart and sharing": Example(
        "Job 1 joins job 0 at 1, which is no preemption. At 2 job 0 is stopped and joins job 1 at that moment: what it "
        "did in both rows is lost, 1/4 + 1/8. Job 1, a second of work, has done half of it and ends at 3; job 0 has "
        "done 1/8 of its new run, and does 7/8 alone in 3.5 s.",
        Instance(
            ONE_GPU,
            jobs(work=[4.0, 1.0]),
            sharing_rates=PAIRS,
            preemption=Preemption.RESTART,
        ),
        (
            (0, 0, 1, 0, 1),
            (0, 0, 1, 1, 2),
            (1, 0, 1, 1, 2),
            (0, 0, 1, 2, 3),
            (1, 0, 1, 2, 3),
            (0, 0, 1, 3, 6.5),
        ),
        {
            1.0: lambda decision: decision.join(1, 0),
            2.0: lambda decision: (decision.stop(0), decision.join(0, 1)),
        },
        ((0, 1), (1, 2), (0, 3)),
    ),
    "restart and profiles": Example(
        "With half of the CPUs from 1 and all of them from 2 job 0 has done 1/4 + 1/8 + 1/2 at 4, all in one run. It "
        "is stopped and started again at that moment, on the same GPU: all of it is lost.",
        Instance(TWO_CPUS, jobs(), sensitivity=BY_CPUS, preemption=Preemption.RESTART),
        (
            (0, 0, 1, 0, 1),
            (0, 0, 1, 1, 2),
            (0, 0, 1, 2, 4),
            (0, 0, 1, 4, 8),
            (1, 0, 1, 8, 12),
        ),
        {
            1.0: lambda decision: decision.adjust(0, ((1.0, 1.0),)),
            2.0: lambda decision: decision.adjust(0, ((2.0, 1.0),)),
            4.0: again,
        },
        ((0, 1), (0, 2)),
    ),
    "charges and profiles": Example(
        "After the second that its start costs job 0 does 1/4 until 2, and with half of the CPUs 1/4 until 4; other "
        "CPUs cost nothing. Stopped and started again at that moment it pays for a start and a restart, 2 s, on the "
        "GPU that it had, and does the other half in 2 s. Job 1 pays for a start.",
        Instance(TWO_CPUS, jobs(), Overheads(1.0, 1.0, 1.0), sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 2), (0, 0, 1, 2, 4), (0, 0, 1, 4, 8), (1, 0, 1, 8, 13)),
        {2.0: lambda decision: decision.adjust(0, ((1.0, 1.0),)), 4.0: again},
        ((0, 2),),
    ),
    "sharing and graphs": Example(
        "On two nodes an iteration takes 2.5 s, all of a job 10 s, and beside each other 40 s, at the quarter of the "
        "slower type. After a second job 0 has 9/10 left and takes 36 s; job 1 then has 1/10 left, and does it in 1 s.",
        Instance(
            Cluster((Node(1, gpu_type="v100"), Node(1, gpu_type="k80"))),
            jobs(gpus=2),
            RESTARTS,
            SLOWER_ON_K80,
            GRAPHS,
        ),
        (
            *((0, node, 1, 0.0, 1.0) for node in (0, 1)),
            *((job, node, 1, 1.0, 37.0) for job in (0, 1) for node in (0, 1)),
            *((1, node, 1, 37.0, 38.0) for node in (0, 1)),
        ),
        {1.0: lambda decision: decision.join(1, 0)},
        ((0, 1), (0, 1), (1, 37), (1, 37)),
    ),
    "sharing and graphs with many iterations": Example(
        "Of 2^-30 s each there are 3 2^30, which take 3 s, and 6 s at half speed: as many iterations as that at half "
        "of one a second would go on for longer than times go.",
        Instance(ONE_GPU, jobs(work=3 * 2.0**30), RESTARTS, PAIRS, SHORT),
        ((0, 0, 1, 0, 6), (1, 0, 1, 0, 6)),
        {0.0: lambda decision: decision.start(0) and decision.join(1, 0)},
    ),
    "sharing and profiles": Example(
        "Job 0 has all three CPUs for a second, then job 1 takes one of them: at half rate job 0 takes 8 s with "
        "its two CPUs, job 1 with one 16 s. Alone from 7 on job 1 has all of them and does its last 5/8 in 2.5 s.",
        Instance(THREE_CPUS, jobs(), RESTARTS, PAIRS, sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 1), (0, 0, 1, 1, 7), (1, 0, 1, 1, 7), (1, 0, 1, 7, 9.5)),
        {1.0: lambda decision: decision.join(1, 0, ((1.0, 1.0),))},
        ((0, 1), (1, 7)),
    ),
    "sharing and profiles by halves": Example(
        "With one and a half CPUs each all takes 16 s; from 4 on job 0 has two of them and takes 8 s, and a row of job "
        "1 ends as well. Alone from 10 on that takes all back, and does its last 3/8 in 1.5 s.",
        Instance(THREE_CPUS, jobs(), RESTARTS, PAIRS, sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 4), (0, 0, 1, 4, 10), (1, 0, 1, 4, 10), (1, 0, 1, 10, 11.5)),
        {
            0.0: lambda decision: decision.start(0) and decision.join(1, 0),
            4.0: lambda decision: (
                decision.adjust(0, ((2.0, 1.0),)),
                decision.adjust(1, ((1.0, 1.0),)),
            ),
        },
        ((0, 4), (1, 4), (1, 10)),
    ),
    "sharing and profiles, one of them adjusted": Example(
        "At 4 job 0 gives up half a CPU, without which it is as fast as with it; the rows of both end.",
        Instance(THREE_CPUS, jobs(), RESTARTS, PAIRS, sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 4), (1, 0, 1, 0, 4), (0, 0, 1, 4, 16), (1, 0, 1, 4, 16)),
        {
            0.0: lambda decision: decision.start(0) and decision.join(1, 0),
            4.0: lambda decision: decision.adjust(0, ((1.0, 1.0),)),
        },
        ((0, 4), (1, 4)),
    ),
    "sharing and profiles, one after the other": Example(
        "Job 0, of 2 s, takes 8 s beside job 1, which takes all CPUs then and is half done; job 2 has half of them "
        "from 8 on, beside job 1 until 16, and does its other half with all of them.",
        Instance(
            THREE_CPUS,
            Workload.from_columns(arrival_s=[0, 0, 0], gpus=1, work=[2, 4, 4]),
            RESTARTS,
            PAIRS,
            sensitivity=Sensitivity((FED,), np.zeros(3, dtype=np.int64)),
        ),
        ((0, 0, 1, 0, 8), (1, 0, 1, 0, 8), (1, 0, 1, 8, 16), (2, 0, 1, 8, 16), (2, 0, 1, 16, 18)),
        {
            0.0: lambda decision: decision.start(0) and decision.join(1, 0),
            8.0: lambda decision: decision.join(2, 1),
        },
        ((1, 8), (2, 16)),
    ),
    "sharing and profiles, stopped": Example(
        "At 8, half done, job 1 stops and job 0 does the other half with all CPUs in 2 s; then job 1 does the same "
        "after a restart of 1 s.",
        Instance(THREE_CPUS, jobs(), RESTARTS, PAIRS, sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 8), (1, 0, 1, 0, 8), (0, 0, 1, 8, 10), (1, 0, 1, 10, 13)),
        {
            0.0: lambda decision: decision.start(0) and decision.join(1, 0),
            8.0: lambda decision: decision.stop(1),
        },
        ((0, 8),),
    ),
    "sharing and profiles, stopped and taken back": Example(
        "At 4 nothing changes for a pair of which both are stopped and taken back. At 8, half done, job 1 stops and "
        "job 0 does the other half with all CPUs in 2 s; then job 1 does the same after a restart of 1 s.",
        Instance(THREE_CPUS, jobs(), RESTARTS, PAIRS, sensitivity=BY_CPUS),
        ((0, 0, 1, 0, 8), (1, 0, 1, 0, 8), (0, 0, 1, 8, 10), (1, 0, 1, 10, 13)),
        {
            0.0: lambda decision: decision.start(0) and decision.join(1, 0),
            4.0: lambda decision: (
                [decision.stop(job) for job in (0, 1)]
                + [decision.resume_in_place(job) for job in (1, 0)]
            ),
            8.0: lambda decision: (
                [decision.stop(job) for job in (1, 0)] + [decision.resume_in_place(0)]
            ),
        },
        ((0, 8),),
    ),
}


@pytest.mark.parametrize(
    ("stopped_s", "end_s", "complete"),
    [
        # Job 0 takes 4 s and job 1 takes 6 s, side by side. Stopped at 3 both are cut, and nobody is required.
        (3.0, 3.0, [False, False]),
        # The window is complete at the very tick at which the run is stopped, or before: job 1 is cut then.
        (4.0, 4.0, [True, False]),
        (5.0, 4.0, [True, False]),
    ],
)
def test_a_window_that_is_stopped_by_hand(
    stopped_s: float, end_s: float, complete: list[bool]
) -> None:
    # The engine needs an arrival after the end of the window.
    last = Workload.from_columns(arrival_s=[0, 0, 9], gpus=1, work=[4, 6, 1])
    given = Instance(Cluster((Node(2),)), last, until_complete=JobWindow(0, 1))
    instance = replace(given, stopped_s=stopped_s)
    schedule = ended(instance, run(given, Scripted()).schedule)
    assert schedule.job.tolist() == [0, 1]
    assert schedule.end_s.tolist() == [end_s, end_s]
    assert verify(instance, schedule).tolist() == [*complete, False]
    later = replace(schedule, end_s=schedule.end_s + np.array([0.0, 2.0**-20]))
    with pytest.raises(Violation, match=r"^stop: row 1 .* goes on after"):
        verify(instance, later)


@pytest.mark.parametrize("name", EXAMPLES)
def test_engine_and_verifier_agree_with_the_hand(name: str) -> None:
    example = EXAMPLES[name]
    done = run(example.instance, Scripted(example.steps))
    s = done.schedule
    rows = zip(
        s.job.tolist(),
        s.node.tolist(),
        s.gpus.tolist(),
        s.start_s.tolist(),
        s.end_s.tolist(),
        strict=True,
    )
    assert sorted(rows) == sorted(example.rows), example.why
    going = s.continues
    assert (s.goes_on is not None) == bool(example.go_on)
    assert sorted(zip(s.job[going], s.start_s[going], strict=True)) == sorted(example.go_on)
    verify(done.instance, s)
    last = int(s.end_s.argmax())
    for by_s in (-(2.0**-20), 2.0**-20):
        end_s = s.end_s.copy()
        end_s[(s.job == s.job[last]) & (s.end_s == s.end_s[last])] += by_s
        with pytest.raises(Violation):
            verify(done.instance, replace(s, end_s=end_s))


def test_nobody_joins_whom_that_would_leave_without_progress() -> None:
    example = EXAMPLES["sharing and profiles"]
    found: list[bool] = []

    def joined(decision: Decision) -> None:
        for given in (((2.5, 1.0),), ((0.5, 1.0),), ((1.0, 1.5),), ((4.0, 1.0),)):
            found.append(decision.join(1, 0, given))

    rows = run(example.instance, Scripted({1.0: joined})).schedule
    assert found == [False] * 4
    assert rows.job.tolist() == [0, 1]
    given = Scripted({1.0: lambda decision: decision.join(1, 0, ())})
    with pytest.raises(PolicyError, match=r"job 1 is given CPUs and memory \(\) on nodes"):
        run(example.instance, given)


@pytest.mark.parametrize("cpus", [math.inf, math.nan, -1.0, 1e305])
@pytest.mark.parametrize("order", ["start", "join", "adjust"])
def test_cpus_that_are_no_number_of_them_are_refused(cpus: float, order: str) -> None:
    orders: dict[str, Callable[[Decision], object]] = {
        "start": lambda decision: decision.start_at(0, ((0, 1),), ((cpus, 1.0),)),
        "join": lambda decision: decision.join(1, 0, ((cpus, 1.0),)),
        "adjust": lambda decision: decision.adjust(0, ((cpus, 1.0),)),
    }
    steps = {0.0 if order == "start" else 1.0: orders[order]}
    with pytest.raises(
        PolicyError, match=r"is given CPUs and memory .* expected numbers from 0 to"
    ):
        run(EXAMPLES["sharing and profiles"].instance, Scripted(steps))


def test_what_two_hold_beside_each_other_is_within_the_node() -> None:
    example = EXAMPLES["sharing and profiles"]
    done = run(example.instance, Scripted(example.steps)).schedule
    assert done.cpus is not None
    assert done.cpus.tolist() == [3.0, 2.0, 1.0, 3.0]
    more = np.where(done.partner == 0, 1.5, done.cpus)
    with pytest.raises(Violation, match=r"^resources: .* 3.5 CPUs held on the node at 1.0 s"):
        verify(example.instance, replace(done, cpus=more))


def test_jobs_with_graphs_share_where_they_have_rates() -> None:
    example = EXAMPLES["sharing and graphs"]
    # On one node an iteration takes 0.75 s.
    assert example.instance.shared_runs.run_s(0, 1, [0, 1]).tolist() == [6.0, 12.0]
    done = run(example.instance, Scripted(example.steps)).schedule
    without = replace(example.instance, sharing_rates=Throughputs(("v100", "k80"), {}, {}))
    with pytest.raises(Violation, match=r"^partner: .* have no rates for sharing GPUs"):
        verify(without, done)
    assert run(without, Scripted(example.steps)).schedule.partner.tolist() == [-1] * 4


def test_cores_are_given_no_cpus() -> None:
    example = EXAMPLES["profiles and cores"]
    given = Scripted({0.0: lambda decision: decision.start_at(1, ((1, 1),), ((1.0, 0.0),))})
    with pytest.raises(InputError, match="job 1: holds cores and is given CPUs and memory"):
        run(example.instance, given)
    done = run(example.instance, Scripted(example.steps)).schedule
    assert done.cpus is not None
    cpus = np.where(done.job == 1, 1.0, done.cpus)
    with pytest.raises(Violation, match="holds cores and 1 CPUs beside them, expected none"):
        verify(example.instance, replace(done, cpus=cpus))


def test_nobody_is_given_less_than_it_asks_for() -> None:
    example = EXAMPLES["profiles and demands that are given"]
    done = run(example.instance, Scripted(example.steps)).schedule
    assert done.cpus is not None
    assert done.cpus.tolist() == [3.0, 1.0, 2.0]
    less = replace(done, cpus=np.where(done.job == 0, 2.0, done.cpus))
    say = r"cpu_memory: row 0 .* was given 2 CPUs, its job asks for at least 3 there"
    with pytest.raises(Violation, match=say):
        verify(example.instance, less)
    given: Mapping[float, Step] = {
        0.0: lambda decision: decision.start_at(0, ((0, 1),), ((2.0, 1.0),)),
        1.0: lambda decision: decision.adjust(0, ((2.0, 1.0),)),
    }
    for at_s, step in given.items():
        with pytest.raises(PolicyError, match="job 0 is given 2 CPUs and 1 GB on 1 GPUs, expected"):
            run(example.instance, Scripted({at_s: step}))


def test_who_is_stopped_and_goes_on_holds_what_it_was_given() -> None:
    """A stop that is taken back frees nothing, and one that is not frees what was given."""
    example = EXAMPLES["profiles and demands that are given"]
    asked: list[bool] = []

    def stop(decision: Decision) -> None:
        decision.stop(1)
        asked.append(decision.start_at(1, ((0, 1),), ((2.0, 1.0),)))
        asked.append(decision.resume_in_place(1))

    done = run(example.instance, Scripted({**example.steps, 1.0: stop})).schedule
    assert asked == [False, True]
    verify(example.instance, done)
    assert sorted(done.end_s.tolist()) == [5.0, 5.0, 7.0]


@dataclass(frozen=True)
class Watched(Scripted):
    """Notes after every decision what job 0 would hold on a GPU of node 0 [millionths of CPUs and GB]."""

    held: list[tuple[int, int]] = field(default_factory=list)

    def decide(self, state: State) -> Decision:
        decision = super().decide(state)
        self.held.append(state.allocator.cpu_memory.held_by(0, ((0, 1),)))
        return decision


def given_one(decision: Decision) -> None:
    decision.start_at(0, ((0, 1),), ((1.0, 1.0),))


def asks_for_too_much(decision: Decision) -> None:
    """Job 0 is started with more CPUs than there are, and then with its share."""
    decision.stop(0)
    assert not decision.start_at(0, ((0, 1),), ((5.0, 1.0),))
    assert decision.start(0)


def makes_place(decision: Decision) -> None:
    """Job 1 takes both GPUs before the stop of job 0 is taken back."""
    decision.stop(0)
    assert decision.start(1)
    assert not decision.resume_in_place(0)


@pytest.mark.parametrize(
    ("given", "steps", "held", "start_s"),
    [
        # Half a share is left for job 1, which asks for 3, as soon as job 0 has only 1.
        ({"cpus": [1.0, 3.0]}, {1.0: lambda d: d.adjust(0, ((1.0, 1.0),))}, [2, 1], [0, 1, 1]),
        # Who begins again has its share, not what it was given before: job 1 waits for its end at 5.
        (
            {"cpus": [1.0, 3.0], "arrival_s": [0, 2]},
            {0.0: given_one, 1.0: again},
            [1, 2, 2],
            [0, 1, 4.5],
        ),
        ({"cpus": [1.0, 3.0]}, {1.0: asks_for_too_much}, [2, 2], [0, 1, 4]),
        (
            {"gpus": [1, 2], "cpus": [1.0, 0.0]},
            {0.0: given_one, 1.0: makes_place},
            [1, 2],
            [0, 1, 5],
        ),
    ],
)
def test_what_was_given_is_counted_while_it_is_held(
    given: dict[str, object], steps: dict[float, Step], held: list[int], start_s: list[float]
) -> None:
    instance = Instance(FOUR_CPUS, jobs(**given), sensitivity=TWICE_WITH_FOUR)
    watched = Watched(steps)
    schedule = run(instance, watched).schedule
    verify(instance, schedule)
    assert watched.held[: len(held)] == [(cpus * 10**6, 10**6) for cpus in held]
    assert sorted(schedule.start_s) == start_s


def test_cores_are_given_the_memory_that_they_ask_for() -> None:
    example = EXAMPLES["profiles, demands and cores"]
    done = run(example.instance, Scripted(example.steps)).schedule
    assert done.memory_gb is not None
    assert sorted(done.memory_gb) == [2.0, 3.0]
    for by_gb, say in ((1e-3, "expected at most"), (-1e-3, "its job asks for at least")):
        with pytest.raises(Violation, match=say):
            verify(example.instance, replace(done, memory_gb=done.memory_gb + by_gb))


def test_who_chooses_cpus_refuses_jobs_that_ask_for_them() -> None:
    instance = EXAMPLES["profiles and demands"].instance
    say = "has jobs that ask for CPUs or memory .* not known to policies that choose CPUs and memory, as synergy-tune"
    with pytest.raises(InputError, match=say):
        run(instance, policy("synergy-tune"))


def test_cores_ask_for_no_cpus() -> None:
    cluster = Cluster((Node(1), Node(2, gpu_type="cores", cpus=8.0)))
    with pytest.raises(InputError, match="holds 1 cores and asks for 2 CPUs beside them"):
        Instance(cluster, jobs(allowed_types=["", "cores"], cpus=[0.0, 2.0]))


EITHER_WAY: Mapping[str, frozenset[tuple[int, float]]] = {
    # Beginning there, too, job 0 would write one checkpoint.
    "failures and profiles that change often": frozenset((0, at) for at in (0.5, 1.0, 1.5, 3.0)),
    # In one run or in two, it is lost.
    "restart and sharing": frozenset({(0, 1.0)}),
    "restart and profiles": frozenset({(0, 1.0), (0, 2.0)}),
}
"""Rows of examples that might as well begin a run, for what comes of it is the same."""


@pytest.mark.parametrize("name", [name for name, each in EXAMPLES.items() if each.go_on])
def test_which_rows_go_on_is_checked(name: str) -> None:
    """Who is said to go on instead of to begin, or the other way round, is refused; so is who goes on from nothing."""
    example = EXAMPLES[name]
    done = run(example.instance, Scripted(example.steps))
    s = done.schedule
    assert s.goes_on is not None
    for row in range(len(s)):
        flags = s.goes_on.copy()
        flags[row] ^= True
        if (int(s.job[row]), float(s.start_s[row])) in EITHER_WAY.get(name, ()):
            verify(done.instance, replace(s, goes_on=flags))
        else:
            with pytest.raises(Violation):
                verify(done.instance, replace(s, goes_on=flags))
        following = (s.job == s.job[row]) & (s.start_s == s.end_s[row])
        if s.goes_on[following].any():
            kept = np.arange(len(s)) != row
            rest = {each.name: getattr(s, each.name) for each in fields(s)}
            rest = {name: each[kept] for name, each in rest.items() if each is not None}
            with pytest.raises(Violation):
                verify(done.instance, replace(s, **rest))
