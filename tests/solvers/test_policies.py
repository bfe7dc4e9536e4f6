"""Each policy on examples small enough to follow by hand, and on those its paper works out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InfeasibleJobError, InputError, PolicyError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.placement.consolidated import Consolidate, Pack
from shadowprice.solvers.policy import Decision, Policy, State
from shadowprice.solvers.registry import placement, policies, policy
from shadowprice.solvers.tiresias.gittins_index import ServiceDistribution


def completions(
    cluster: str, jobs: list[tuple[float, int, float]], chosen: str | Policy, **switches: object
) -> list[float]:
    """Completion times [s] of jobs (arrival, gpus, work) under a policy."""
    arrival, gpus, work = zip(*jobs, strict=True)
    workload = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)
    overheads = switches.pop("overheads", Overheads())
    instance = Instance(Cluster.parse(cluster), workload, overheads)  # type: ignore[arg-type]
    found = policy(chosen) if isinstance(chosen, str) else chosen
    schedule = run(instance, found, **switches).schedule  # type: ignore[arg-type]
    verify(instance, schedule)
    last = np.zeros(len(workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return [last[workload.row_of[str(k)]] for k in range(len(jobs))]


BLOCKED = [(0.0, 1, 10.0), (1.0, 2, 5.0), (2.0, 1, 3.0), (3.0, 1, 20.0)]


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("fifo", [10, 15, 18, 35]),
        ("fifo-skip", [10, 30, 5, 25]),
        ("easy", [10, 15, 5, 35]),
        ("sjf", [10, 15, 5, 35]),
        ("srtf", [15, 9, 5, 29]),
        ("srsf", [10, 15, 5, 30]),
    ],
)
def test_a_gang_of_two_behind_a_long_job(name: str, ends: list[float]) -> None:
    assert completions("1x2", BLOCKED, name) == ends


# A-SRPT waits for its virtual machine on purpose; its times are in test_asrpt.py.
@pytest.mark.parametrize("name", sorted(set(policies()) - {"asrpt", "asrpt-guarded"}))
def test_one_job_runs_at_once(name: str) -> None:
    assert completions("2x4", [(7.0, 5, 11.0)], name) == [18.0]


def test_easy_lets_pass_only_who_fits_beside_the_reservation() -> None:
    """The head needs 3 of 4 GPUs at 10 s: one long job may pass it, not two."""
    jobs = [(0.0, 2, 10.0), (1.0, 3, 5.0), (2.0, 1, 100.0), (2.0, 1, 100.0), (3.0, 1, 4.0)]
    assert completions("1x4", jobs, "easy") == [10.0, 15.0, 102.0, 115.0, 7.0]


def test_las2d_demotes_at_the_true_crossing() -> None:
    """Two GPUs reach 100 GPU-s after 50 s, not after 100 s."""
    ends = completions(
        "1x2", [(0.0, 2, 80.0), (10.0, 2, 30.0)], policy("las2d:thresholds_gpu_s=100")
    )
    assert ends == [110.0, 80.0]


def test_las2d_promotes_a_starving_job() -> None:
    jobs = [(0.0, 1, 20.0), (0.0, 1, 500.0), *((10.0 + 10 * k, 1, 10.0) for k in range(30))]
    starved = completions("1x1", jobs, policy("las2d:thresholds_gpu_s=10"))
    promoted = completions("1x1", jobs, policy("las2d:thresholds_gpu_s=10,promote_knob=4"))
    assert promoted[0] < starved[0]


def test_las2d_promotes_when_the_wait_is_long_enough() -> None:
    """Stopped at 10 s after running 10 s, promoted after waiting 4 x 10 s, done at 60 s."""
    stream = [(10.0 + 10 * k, 1, 10.0) for k in range(30)]
    patient = policy("las2d:thresholds_gpu_s=10,promote_knob=4")
    assert completions("1x1", [(0.0, 1, 20.0), *stream], patient)[0] == 60.0


def test_las_takes_turns() -> None:
    assert completions("1x1", [(0.0, 1, 20.0), (0.0, 1, 20.0)], policy("las:quantum_s=10")) == [
        30.0,
        40.0,
    ]


def test_the_worked_gittins_index() -> None:
    """S in {4, 8, 12}, equally likely: values worked out by hand."""
    d = ServiceDistribution(np.array([4.0, 8.0, 12.0]))
    indices = [d.index(a) for a in (0, 2, 4, 6, 8, 10)]
    assert indices == pytest.approx([0.125, 1 / 6, 1 / 6, 0.25, 0.25, 0.5])


@given(
    samples=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    attained=st.integers(0, 60),
)
def test_the_index_is_the_supremum_over_quanta(samples: list[int], attained: int) -> None:
    left = [s - attained for s in samples if s > attained]
    ratios = [
        sum(s <= d for s in left) / sum(min(s, d) for s in left) for d in range(1, 61) if left
    ]
    brute = max(ratios, default=0.0)
    found = ServiceDistribution(np.sort(np.array(samples, float))).index(float(attained))
    assert found == pytest.approx(brute)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_tiresias_worked_example() -> None:
    """(GPUs, time) (2,2), (1,8), (2,6) on 2 GPUs: mean JCT 9.3 under SRSF (Tiresias, Fig. 7)."""
    assert mean(
        completions("1x2", [(0.0, 2, 2.0), (0.0, 1, 8.0), (0.0, 2, 6.0)], "srsf")
    ) == pytest.approx(28 / 3)


def test_consolidated_gangs_wait_for_a_node() -> None:
    jobs = [(0.0, 3, 10.0), (0.0, 3, 20.0), (1.0, 2, 5.0)]
    assert completions("2x4", jobs, "fifo", placement=Consolidate()) == [10.0, 20.0, 15.0]
    assert completions("2x4", jobs, "fifo", placement=Pack()) == [10.0, 20.0, 6.0]


def test_a_gang_that_fits_a_node_is_never_split() -> None:
    """Three GPUs fit the busy node of four; the two free nodes of two are no place for them."""
    jobs = [(0.0, 4, 10.0), (1.0, 3, 5.0)]
    assert completions("1x4,2x2", jobs, "fifo", placement=Consolidate()) == [10.0, 15.0]
    assert completions("1x4,2x2", jobs, "fifo", placement=Pack()) == [10.0, 6.0]


def test_rounds_gather_events() -> None:
    jobs = [(0.0, 1, 90.0), (1.0, 1, 10.0)]
    assert completions("1x1", jobs, "fifo", rounds=Rounds(60.0)) == [90.0, 130.0]


def test_preemption_costs_what_it_says() -> None:
    jobs = [(0.0, 1, 100.0), (10.0, 1, 5.0)]
    costs = Overheads(start_s=1.0, restart_s=7.0)
    assert completions("1x1", jobs, "srtf", overheads=costs) == [115.0, 16.0]


def test_heterogeneous_types_fastest_first() -> None:
    workload = Workload.from_columns(
        arrival_s=[0, 0],
        gpus=[1, 1],
        work=[100, 100],
        throughput=[[10, 4], [10, 4]],
        gpu_types=("v100", "k80"),
    )
    instance = Instance(Cluster.parse("1x1:v100,1x1:k80"), workload)
    schedule = run(instance, policy("fifo")).schedule
    verify(instance, schedule)
    assert sorted(schedule.end_s.tolist()) == [10.0, 25.0]


def test_preemptive_policies_keep_pools_apart() -> None:
    rng = np.random.default_rng(5)
    n = 24
    workload = Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 80, n)),
        gpus=rng.choice([1, 2, 4], n),
        work=rng.integers(10, 500, n),
        throughput=rng.choice([0.0, 1.0, 2.5, 3.0], (n, 2)) + np.array([[0.5, 0.0]]),
        gpu_types=("v100", "k80"),
    )
    instance = Instance(Cluster.parse("2x4:v100,1x4:k80"), workload)
    for name in policies():
        for where in ("count", "consolidate", "pack"):
            verify(instance, run(instance, policy(name), placement=placement(where)).schedule)


def test_a_job_that_can_never_fit_is_refused_before_the_run() -> None:
    jobs = Workload.from_columns(id=["a", "wide"], arrival_s=[0, 0], gpus=[1, 9], work=[1, 1])
    with pytest.raises(InfeasibleJobError, match="job 'wide' needs 9 GPUs"):
        Instance(Cluster.parse("2x4"), jobs)
    kept, dropped = Instance.feasible(Cluster.parse("2x4"), jobs)
    assert dropped.tolist() == ["wide"]
    assert kept.workload.id.tolist() == ["a"]


class Idle:
    name = "idle"
    knows = frozenset()  # type: ignore[var-annotated]
    preemptive = False

    def decide(self, state: State) -> Decision:
        return Decision(state)


class Zeno(Idle):
    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        decision.wake_at(state.now_s)
        return decision


class Waiting(Idle):
    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        decision.wake_at(state.now_s + 1.0)
        return decision


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (Idle(), "1 jobs waiting for ever"),
        (Zeno(), "expected a later time"),
        (Waiting(), "for ever"),
    ],
)
def test_a_policy_that_starves_jobs_is_an_error_not_a_hang(bad: Policy, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        completions("1x1", [(0.0, 1, 1.0)], bad)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("srft", "did you mean 'srtf'"),
        ("las2d:thresholds_gpu_s=5/3", "increasing"),
        ("las2d:knob=1", "expected NAME=VALUE"),
        ("las:quantum_s=x", "got 'x'"),
        ("las:quantum_s=0", "expected seconds"),
    ],
)
def test_wrong_policy_names_are_explained(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        policy(name)


class EverySecond(Idle):
    """Asks to be woken every second, whatever happens."""

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in state.waiting:
            decision.start(job)
        decision.wake_at(state.now_s + 1.0)
        return decision


def test_a_run_ends_with_its_last_job_though_the_policy_would_be_woken_again() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[3, 2])
    ran = run(Instance(Cluster.parse("1x2"), jobs), EverySecond())
    assert ran.schedule.end_s.max() == 3
    assert ran.decisions <= 4
