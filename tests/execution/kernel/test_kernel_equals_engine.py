"""The compiled loop makes the engine's schedules, row by row, and takes as many decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import ClassVar

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import ShadowpriceError
from shadowprice.execution import engine
from shadowprice.execution.kernel import run as kernel
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.terms.window import JobWindow
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.classic.easy import Easy
from shadowprice.solvers.classic.fifo import Fifo, FifoSkip
from shadowprice.solvers.classic.las import Las
from shadowprice.solvers.classic.server_filling import ServerFillingSrpt
from shadowprice.solvers.classic.sjf import Sjf
from shadowprice.solvers.classic.srtf import Srsf, Srtf
from shadowprice.solvers.index_policy import (
    PREEMPTIVE_RULES,
    IndexedJob,
    IndexPolicy,
    JobIndex,
    QueueRule,
    Table,
    Ties,
    WhileRunning,
)
from shadowprice.solvers.placement.consolidated import Consolidate, Pack
from shadowprice.solvers.placement.count import Count
from shadowprice.solvers.policy import Decision, Knowledge, Policy, State
from shadowprice.solvers.tiresias.gittins2d import Gittins2d
from shadowprice.solvers.tiresias.las2d import Las2d
from support.refuted import SEARCHING


def remaining_per_weight(job: IndexedJob, table: Table) -> float:
    return job.remaining_s / job.weight


def youngest(job: IndexedJob, table: Table) -> float:
    return -job.arrival_s if job.gpus < table[0] else job.attained_s


def narrowest(job: IndexedJob, table: Table) -> float:
    return job.gpus


def periods(job: IndexedJob, table: Table) -> float:
    """Stepping every four seconds."""
    return job.attained_s // 4.0


def next_period(job: IndexedJob, table: Table) -> float:
    return (job.attained_s // 4.0 + 1.0) * 4.0


@dataclass(frozen=True)
class Own(IndexPolicy):
    index: JobIndex
    name: str = "own"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})

    @property
    def preemptive(self) -> bool:
        return self.index.rule in PREEMPTIVE_RULES

    def job_index(self, service_gpu_s: np.ndarray | None) -> JobIndex:
        return self.index


PREEMPTS, VARIES = QueueRule.PREEMPTS, WhileRunning.VARIES
OWN = [
    JobIndex(PREEMPTS, remaining_per_weight, while_running=VARIES),
    JobIndex(PREEMPTS, youngest, table=np.array([3.0]), while_running=VARIES, quantum_s=7.0),
    JobIndex(QueueRule.SKIPS, remaining_per_weight),
    JobIndex(QueueRule.FILLS, remaining_per_weight, level=narrowest, while_running=VARIES),
    JobIndex(QueueRule.FILLS, youngest, table=np.array([3.0]), while_running=VARIES),
    JobIndex(
        PREEMPTS,
        periods,
        level=narrowest,
        ties=Ties.FIRST_START,
        while_running=WhileRunning.STEPS,
        next_step_s=next_period,
    ),
]
THRESHOLDS = [(12.0,), (5.0, 40.0), (3.0, 10.0, 33.3)]
POLICIES: list[Policy] = [
    Fifo(),
    FifoSkip(),
    Sjf(),
    Srtf(),
    Srsf(),
    Las(quantum_s=3.0),
    Las(quantum_s=60.0),
    *(Las2d(thresholds_gpu_s=limits) for limits in THRESHOLDS),
    *(Gittins2d(thresholds_gpu_s=limits, reading=r) for limits in THRESHOLDS for r in "AB"),
    Easy(),
    ServerFillingSrpt(),
    Asrpt(),
    Asrpt(stretch=3.0),
    Asrpt(predictor="adversarial:2/3"),
    Asrpt(predictor="median"),
    Asrpt(predictor="forest:first_training=2,retrain_every=2,trees=3,leaf=1"),
    *map(Own, OWN),
]
# Of many jobs a forest is trained now and then: to train it costs most of a run.
CROWD_POLICIES = [
    replace(each, predictor="forest:first_training=60,retrain_every=60,trees=3,leaf=1")
    if isinstance(each, Asrpt) and each.predictor.startswith("forest")
    else each
    for each in POLICIES
]
PLACEMENTS: list[Count | Consolidate | Pack] = [Count(), Consolidate(), Pack()]
CLUSTERS = ["1x1", "2x4", "3x2", "4x4", "2x4,3x2", "1x8,4x1", "6x1"]
OVERHEADS = [
    sp.Overheads(),
    sp.Overheads(start_s=1.5),
    sp.Overheads(restart_s=2.25, migration_s=4.0),
    sp.Overheads(start_s=0.5, restart_by_gpus=((1, 1.0), (4, 3.0)), migration_s=1.0),
]
ROUNDS = [(0.0, 0.0), (5.0, 0.0), (6.5, 2.25), (30.0, 0.0)]
LATEST = [np.inf, np.inf, 20.0]
LATE = [0.0, 60.0, 500.0]
TYPED = [
    "2x4:v,3x2:k",
    "1x6:v,2x3:k",
    "1x8:v,4x1:k,3x2:p",
    "2x2:v,2x4:k,1x3:p",
    "6x1:v,2x2:p,1x1:k",
]
DAYS = Quotas(("a", "b", "c"), (0.0, 200.0, 500.0), ((8, 10, 3), (12, 0, 24), (9, 9, 9)))
PERIODS: list[tuple[float, ...]] = [(), (10.0,), (6.5, 20.0), (1.0, 2.0, 300.0)]


def same(one: sp.Schedule, other: sp.Schedule) -> bool:
    columns = [each.name for each in fields(sp.Schedule)]
    pairs = [(getattr(one, name), getattr(other, name)) for name in columns]
    return all(a is b is None or np.array_equal(a, b) for a, b in pairs)


@st.composite
def instances(draw: st.DrawFn) -> sp.Instance:
    """Few jobs on small clusters, often at equal times, of equal length, and in bursts."""
    cluster = sp.Cluster.parse(draw(st.sampled_from(CLUSTERS)))
    n = draw(st.integers(1, 14))
    wide = st.sampled_from([g for g in (1, 1, 2, 3, 4, 6) if g <= cluster.total_gpus])
    gaps = st.sampled_from([0.0, 0.0, 1.0, 2.5, 7.0, 2.0**-20])
    works = st.sampled_from([1.0, 3.0, 4.0, 10.0, 12.5, 20.0 + 2.0**-20, 60.0])
    arrival = np.cumsum(draw(st.lists(gaps, min_size=n, max_size=n)))
    jobs = sp.Workload.from_columns(
        arrival_s=arrival,
        gpus=draw(st.lists(wide, min_size=n, max_size=n)),
        work=draw(st.lists(works, min_size=n, max_size=n)),
        weight=draw(st.lists(st.sampled_from([1.0, 2.0, 0.5]), min_size=n, max_size=n)),
    )
    return sp.Instance(cluster, jobs, draw(st.sampled_from(OVERHEADS)))


@st.composite
def ending_early(draw: st.DrawFn, those: st.SearchStrategy[sp.Instance]) -> sp.Instance:
    """Runs until a window of jobs is complete, most often before the last one comes."""
    instance = draw(those)
    n, jobs = len(instance.workload), instance.workload
    first = draw(st.integers(0, n - 1))
    window = JobWindow(first, draw(st.integers(first + 1, n)), draw(st.sampled_from(LATEST)))
    arrival_s = jobs.arrival_s + np.where(np.arange(n) == n - 1, draw(st.sampled_from(LATE)), 0.0)
    return replace(instance, workload=replace(jobs, arrival_s=arrival_s), until_complete=window)


@st.composite
def by_rates(draw: st.DrawFn, those: st.SearchStrategy[sp.Instance]) -> sp.Instance:
    """Work in iterations, by rates on GPUs that are all alike."""
    instance = draw(those)
    n = len(instance.workload)
    rates = draw(st.lists(st.sampled_from([1.0, 0.3, 7.0]), min_size=n, max_size=n))
    nodes = tuple(replace(node, gpu_type="v100") for node in instance.cluster.nodes)
    jobs = replace(instance.workload, throughput=np.array(rates)[:, None], gpu_types=("v100",))
    return replace(instance, cluster=sp.Cluster(nodes), workload=jobs)


@st.composite
def on_types(draw: st.DrawFn, those: st.SearchStrategy[sp.Instance]) -> sp.Instance:
    """Work in iterations, by rates on two or three types of GPUs, of which jobs may lack some."""
    instance = draw(those)
    jobs, n = instance.workload, len(instance.workload)
    cluster = sp.Cluster.parse(draw(st.sampled_from(TYPED)))
    rate = st.sampled_from([1.0, 1.0, 0.3, 7.0, 1 / 3, 0.0])
    shape = (n, len(cluster.gpu_types))
    rates = np.array(draw(st.lists(rate, min_size=n * shape[1], max_size=n * shape[1])))
    throughput = rates.reshape(shape)
    # On the type with most GPUs any gang can run.
    widest = int(cluster.gpus_per_type.argmax())
    throughput[throughput[:, widest] == 0.0, widest] = 0.7
    gpus = np.minimum(jobs.gpus, cluster.gpus_per_type[widest])
    typed = replace(jobs, gpus=gpus, throughput=throughput, gpu_types=cluster.gpu_types)
    return sp.Instance(cluster, typed, instance.overheads)


@st.composite
def under_quotas(draw: st.DrawFn, those: st.SearchStrategy[sp.Instance]) -> sp.Instance:
    """Two or three tenants with quotas of the day, which in the end hold any job of theirs."""
    instance = draw(those)
    n, total = len(instance.workload), instance.cluster.total_gpus
    names = ("a", "b", "c")[: draw(st.integers(1, 3))]
    ends = draw(st.sampled_from(PERIODS))
    quota = st.integers(0, total)
    rows = [tuple(draw(quota) for _ in names) for _ in ends]
    last = tuple(draw(st.integers(min(6, total), total)) for _ in names)
    quotas = Quotas(names, (0.0, *ends), (*rows, last))
    tenant = np.array(draw(st.lists(st.sampled_from(names), min_size=n, max_size=n)), dtype=object)
    return replace(
        instance,
        cluster=replace(instance.cluster, quotas=quotas),
        workload=replace(instance.workload, tenant=tenant),
    )


def agree(
    instance: sp.Instance,
    policy: Policy,
    placement: Count | Consolidate | Pack,
    rounds: engine.Rounds,
) -> None:
    def run(loop: Callable[..., engine.EngineRun], **more: int) -> engine.EngineRun | str:
        try:
            return loop(instance, policy, placement=placement, rounds=rounds, **more)
        except ShadowpriceError as error:
            return f"{type(error).__name__}: {error}"

    found = run(kernel.run_fastest, least_jobs=0)
    expected = run(engine.run)
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected
    else:
        assert same(found.schedule, expected.schedule)
        assert found.decisions == expected.decisions


@settings(max_examples=8)
@given(instances(), st.sampled_from(PLACEMENTS), st.sampled_from(ROUNDS))
def test_schedules_are_the_engines(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


LADDERS = [each for each in POLICIES if isinstance(each, Las2d)]


def almost_demoted(charges: sp.Overheads) -> sp.Instance:
    """A job is preempted a tick before it has had 40 GPU-s; it then pays to go on, while another waits."""
    preempted_s = charges.start_s + 40.0 - 2.0**-20
    jobs = sp.Workload.from_columns(
        arrival_s=[0.0, preempted_s, preempted_s], gpus=[1, 1, 1], work=[60, 1, 30]
    )
    return sp.Instance(sp.Cluster.parse("1x1"), jobs, charges)


@settings(max_examples=8)
@example(almost_demoted(OVERHEADS[2]), (0.0, 0.0))
@example(almost_demoted(OVERHEADS[3]), (0.0, 0.0))
@given(instances(), st.sampled_from(ROUNDS))
def test_a_decision_is_due_to_an_event_a_start_or_a_demotion(
    instance: sp.Instance, round_s: tuple[float, float]
) -> None:
    """Nobody is woken again and again by service that stands still while a start is paid for."""
    for policy in LADDERS:
        found = kernel.run_fastest(instance, policy, rounds=engine.Rounds(*round_s), least_jobs=0)
        jobs, rows = len(instance.workload), found.schedule
        starts = len(set(zip(rows.job.tolist(), rows.start_s.tolist(), strict=True)))
        events, demotions = 2 * jobs, jobs * len(policy.thresholds_gpu_s)
        assert found.decisions <= events + starts + demotions


@dataclass(frozen=True)
class Restless(Las2d):
    """2D-LAS, woken every second besides."""

    def decide(self, state: State) -> Decision:
        decision = super().decide(state)
        decision.wake_at(state.now_s + 1.0)
        return decision


@settings(max_examples=20)
@given(instances(), st.sampled_from(THRESHOLDS))
def test_further_decisions_change_nothing_where_gangs_take_any_gpus(
    instance: sp.Instance, limits: tuple[float, ...]
) -> None:
    """Queues change at demotions, at which 2D-LAS is woken; so it is asked as seldom as can be."""
    expected = engine.run(instance, Restless(thresholds_gpu_s=limits))
    for run in (engine.run, partial(kernel.run_fastest, least_jobs=0)):
        assert same(run(instance, Las2d(thresholds_gpu_s=limits)).schedule, expected.schedule)


@settings(max_examples=8)
@given(
    ending_early(instances() | by_rates(instances())),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(ROUNDS),
)
def test_runs_end_with_a_window_of_jobs_as_in_the_engine(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


@settings(max_examples=5)
@given(by_rates(instances()), st.sampled_from(PLACEMENTS), st.sampled_from(ROUNDS))
def test_work_by_rates_on_equal_gpus_is_as_in_the_engine(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


@settings(max_examples=8)
@given(on_types(instances()), st.sampled_from(PLACEMENTS), st.sampled_from(ROUNDS))
def test_gangs_go_to_the_types_of_the_engine(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


@settings(max_examples=8)
@given(under_quotas(instances()), st.sampled_from(PLACEMENTS), st.sampled_from(ROUNDS))
def test_quotas_bind_as_in_the_engine(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


@settings(max_examples=8)
@given(
    ending_early(under_quotas(on_types(instances()))),
    st.sampled_from(PLACEMENTS),
    st.sampled_from(ROUNDS),
)
def test_windows_quotas_and_types_together_are_as_in_the_engine(
    instance: sp.Instance, placement: Count | Consolidate | Pack, round_s: tuple[float, float]
) -> None:
    for policy in POLICIES:
        agree(instance, policy, placement, engine.Rounds(*round_s))


def crowd(seed: int) -> sp.Instance:
    """Gangs of all sizes on nodes that they fill badly."""
    rng = np.random.default_rng(seed)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 600, 200)).astype(float),
        gpus=rng.choice([1, 1, 2, 3, 4, 5, 6, 7], 200),
        work=rng.integers(1, 40, 200).astype(float),
    )
    return sp.Instance(sp.Cluster.parse("2x5,1x4"), jobs)


def test_schedules_of_a_crowd_are_the_engines() -> None:
    for seed in range(2):
        for policy in CROWD_POLICIES:
            if policy.preemptive:
                agree(crowd(seed), policy, Consolidate(), engine.Rounds())


def test_a_crowd_is_cut_off_in_the_order_in_which_runs_began() -> None:
    instance = replace(crowd(0), until_complete=JobWindow(10, 40))
    for policy in CROWD_POLICIES:
        for placement in PLACEMENTS:
            agree(instance, policy, placement, engine.Rounds())


def crowd_on_types(seed: int) -> sp.Instance:
    """The crowd on three types, each job as fast as it happens on each, of three tenants with quotas."""
    rng, plain = np.random.default_rng(seed), crowd(seed).workload
    cluster = replace(sp.Cluster.parse("2x5:v,2x4:k,1x6:p"), quotas=DAYS)
    jobs = replace(
        plain,
        throughput=rng.choice([1.0, 1 / 3, 0.7, 2.1], (200, 3)),
        gpu_types=cluster.gpu_types,
        tenant=rng.choice(np.array(["a", "b", "c"], dtype=object), 200),
    )
    return sp.Instance(cluster, jobs)


def test_schedules_of_a_crowd_on_types_are_the_engines() -> None:
    """By turns every policy with two placements, by night with all."""
    for seed in range(2):
        whole = crowd_on_types(seed)
        without = replace(whole, cluster=replace(whole.cluster, quotas=None))
        for k, policy in enumerate(CROWD_POLICIES):
            turn = (k + seed) % len(PLACEMENTS)
            for placement in PLACEMENTS if SEARCHING else PLACEMENTS[turn : turn + 1]:
                agree(whole, policy, placement, engine.Rounds())
                agree(without, policy, placement, engine.Rounds(20.0 * seed))
