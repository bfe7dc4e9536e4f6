"""Claims in words, each with what would break it: names, definitions, exceptions, hypotheses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis import metrics, run_metrics
from shadowprice.errors import InputError
from shadowprice.execution.copies.hadare import HadarE
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.speeds.interference import Interference
from shadowprice.instances.terms.copies import total_steps
from shadowprice.proofs.hadar import copies_work as hadare_work
from shadowprice.proofs.hadar.competitive import factor
from shadowprice.proofs.lower_bounds import fluid as lb_fluid
from shadowprice.proofs.lower_bounds import job as lb_job
from shadowprice.proofs.lower_bounds import mbt as lb_mbt
from shadowprice.solvers.about import about, first_clause
from shadowprice.solvers.hadar.prices import ExponentialPrices, reserved_full_at
from support.copies import in_copies

# Finish-time fairness: n is the number of jobs present.


def counted(arrival_s: list[int], end_s: list[int]) -> list[float]:
    """Jobs present by looking at every second of every stay."""
    stays = list(zip(arrival_s, end_s, strict=True))
    return [
        sum(sum(r <= t < c for r, c in stays) for t in range(own, done)) / (done - own)
        for own, done in stays
    ]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 15)), min_size=1, max_size=8))
def test_jobs_present_are_counted_second_by_second(stays: list[tuple[int, int]]) -> None:
    arrival = [r for r, _ in stays]
    end = [r + length for r, length in stays]
    found = metrics.jobs_present(np.array(arrival, dtype=float), np.array(end, dtype=float))
    assert found.tolist() == pytest.approx(counted(arrival, end), rel=1e-15)


def test_a_job_is_present_itself_where_its_times_are_rounded() -> None:
    arrival = np.array([16_527.63552853, 412_000.1, 912_755.57727772])
    found = metrics.jobs_present(arrival, arrival + np.array([60_663.57797, 0.1, 81_585.3556563]))
    assert (found >= 1).all()
    assert found == pytest.approx([1, 1, 1])


def test_jobs_present_are_exact_where_sums_of_floats_are_not() -> None:
    """A tick beside 3,000 jobs of 100 years: their sum needs 84 bits."""
    years = 2.0**31
    arrival = np.concatenate((np.zeros(3000), [years / 2], [years / 2 + 1 / TICKS_PER_S]))
    end = np.concatenate((np.full(3000, years), arrival[-2:] + 1 / TICKS_PER_S))
    found = metrics.jobs_present(arrival, end)
    assert found[-2:].tolist() == [3001.0, 3001.0]
    assert found[0] == 3000.0 + 2 / TICKS_PER_S / years


def test_a_job_alone_in_its_time_is_fair_however_many_others_the_trace_has() -> None:
    """Jobs that never meet each have the cluster to themselves, and take as long as they do alone."""
    many = sp.Workload.from_columns(arrival_s=np.arange(50) * 100.0, gpus=[1] * 50, work=[10] * 50)
    summary = sp.simulate(many, "1x1", "fifo").summary()
    assert (summary["mean_ftf"], summary["max_ftf"]) == (1.0, 1.0)


def test_fairness_does_not_depend_on_how_often_a_trace_is_repeated() -> None:
    jobs = {"gpus": [1, 2, 1], "work": [10, 20, 30]}
    once = sp.Workload.from_columns(arrival_s=[0, 1, 2], **jobs)
    twice = sp.Workload.from_columns(
        arrival_s=[0, 1, 2, 1000, 1001, 1002], gpus=jobs["gpus"] * 2, work=jobs["work"] * 2
    )
    one, two = (sp.simulate(each, "1x2", "srtf").summary() for each in (once, twice))
    assert (one["mean_ftf"], one["max_ftf"]) == (two["mean_ftf"], two["max_ftf"])
    assert one["mean_ftf"] != 0


def test_shares_by_hand() -> None:
    """One GPU: 10 s from 0, 10 s from 5. The first is there with 1, then 2; fifo."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 5], gpus=[1, 1], work=[10, 10])
    outcome = sp.simulate(jobs, "1x1", "fifo")
    assert isinstance(outcome, sp.Outcome)
    found = run_metrics.of_schedule(outcome.instance, outcome.schedule)
    # 1.5 jobs in 0-10: 15 s alone. From 5 to 20: 5 s with 2, 10 s with 1: 4/3, 40/3 s alone.
    assert found.mean_ftf == pytest.approx((10 / 15 + 15 / (40 / 3)) / 2)
    fixed = run_metrics.of_schedule(outcome.instance, outcome.schedule, sharing=2)
    assert fixed.mean_ftf == pytest.approx((10 / 20 + 15 / 20) / 2)
    with pytest.raises(InputError, match="sharing is 0"):
        run_metrics.of_schedule(outcome.instance, outcome.schedule, sharing=0)
    assert math.isfinite(found.max_ftf or math.inf)


# What is said of all online algorithms: deterministic ones, without preemption, on one GPU.

DETERMINISTIC = ("fifo", "fifo-skip", "easy", "sjf", "asrpt", "asrpt-early", "asrpt-guarded")


def one_after_the_other(jobs: sp.Workload, order: list[int]) -> sp.Outcome:
    """A verified schedule of one GPU that runs jobs in an order, each as soon as it can."""
    starts, now = {}, 0.0
    for job in order:
        starts[job] = max(now, float(jobs.arrival_s[job]))
        now = starts[job] + float(jobs.work[job])
    start = np.array([starts[job] for job in order])
    rows = np.array(order)
    schedule = sp.Schedule(
        rows, 0 * rows, 0 * rows + 1, start, start + jobs.work[rows], 0.0 * start
    )
    return sp.Outcome.verified(
        sp.Instance(sp.Cluster.parse("1x1"), jobs), schedule, policy="by hand"
    )


def adversary(name: str, long_s: float, later_s: float, short_s: float, n: int) -> sp.Workload:
    """A long job at 0, and n short ones a little after the policy has started it.

    Whoever decides without chance or foresight starts the long job at the same moment as alone.
    """
    alone = sp.Workload.from_columns(arrival_s=[0.0], gpus=[1], work=[long_s])
    started = float(sp.simulate(alone, "1x1", name).jobs["first_start_s"][0])
    arrivals = [0.0] + [started + later_s] * n
    jobs = sp.Workload.from_columns(arrival_s=arrivals, gpus=1, work=[long_s] + [short_s] * n)
    assert sp.simulate(jobs, "1x1", name).jobs["first_start_s"][0] == started
    return jobs


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_no_deterministic_policy_without_preemption_is_better_than_2(name: str) -> None:
    """ASRPT-sharper, step 6: total completion time, one GPU, against schedules without preemption."""
    alone = sp.Workload.from_columns(arrival_s=[0.0], gpus=[1], work=[1024.0])
    waits = sp.simulate(alone, "1x1", name).end_s.sum() / 1024.0
    jobs = adversary(name, 1024.0, 2.0**-10, 2.0**-10, 300)
    best = one_after_the_other(jobs, [*range(1, 301), 0]).end_s.sum()
    ratio = max(waits, sp.simulate(jobs, "1x1", name).end_s.sum() / best)
    assert ratio >= 2.0 - 1e-9


@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.parametrize("n", [10, 40])
def test_no_deterministic_policy_has_a_constant_for_flow_time(name: str, n: int) -> None:
    """ASRPT-ratio, step 4: total flow time, one GPU, against schedules without preemption."""
    long_s, later = 1024.0, round(1024 / n)
    jobs = adversary(name, long_s, float(later), later / 2 ** (n.bit_length() + 1), n)
    orders = ([0, *range(1, n + 1)], [*range(1, n + 1), 0])
    best = min(float(one_after_the_other(jobs, order).jct_s.sum()) for order in orders)
    assert sp.simulate(jobs, "1x1", name).jct_s.sum() / best >= (n - 1) / 5


def srpt_points(jobs: list[tuple[int, int]], alpha: float) -> list[tuple[float, int]]:
    """When SRPT on one machine has done a fraction alpha of each job (release, length), in order."""
    left = [float(length) for _, length in jobs]
    points, now = [], 0.0
    while any(left):
        live = [j for j, (r, _) in enumerate(jobs) if r <= now and left[j] > 0]
        ahead = [r for r, _ in jobs if r > now]
        if not live:
            now = min(ahead)
            continue
        j = min(live, key=lambda k: (left[k], k))
        step = min(left[j], min(ahead, default=math.inf) - now)
        done = jobs[j][1] - left[j]
        if done < alpha * jobs[j][1] <= done + step:
            points.append((now + alpha * jobs[j][1] - done, j))
        now, left[j] = now + step, left[j] - step
    return sorted(points)


def expected_cost(jobs: list[tuple[int, int]], draws: int = 400) -> float:
    """Mean total completion time of starting jobs at random alpha-points, without preemption, online."""
    total = 0.0
    for k in range(draws):  # The density e^alpha / (e - 1), by its quantiles.
        alpha = math.log1p((k + 0.5) / draws * (math.e - 1))
        now = 0.0
        for point, j in srpt_points(jobs, alpha):
            now = max(now, point) + jobs[j][1]
            total += now / draws
    return total


JOBS = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=1, max_size=5)


@given(JOBS)
@example([(0, 7)])
@example([(0, 12)] + [(1, 1)] * 6)
@example([(0, 12)] + [(6, 1)] * 6)
def test_chance_is_better_than_2(jobs: list[tuple[int, int]]) -> None:
    """So 'no online algorithm without preemption' would be false: e / (e - 1) against SRPT, in expectation."""
    best = sum(done for done, _ in srpt_points(jobs, 1.0))
    assert expected_cost(jobs, 100) <= (math.e / (math.e - 1) + 0.01) * best


def test_e_over_e_less_1_is_reached_by_a_single_job() -> None:
    assert expected_cost([(0, 7)]) / 7 == pytest.approx(math.e / (math.e - 1), rel=1e-4)


# Lower bounds: nobody shares GPUs, and one GPU makes an optimum only where nothing is charged.


def test_jobs_that_share_a_gpu_end_before_the_fluid_bound() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=100, model="VAE")
    cluster = sp.Cluster.parse("1x1")
    shared = sp.Instance(cluster, jobs, sharing_rates=Interference().of(jobs, cluster))
    end = float(shared.shared_runs.run_s(0, 1, 0))
    rows = (
        np.array([0, 1]),
        np.array([0, 0]),
        np.array([1, 1]),
        np.zeros(2),
        np.full(2, end),
        np.zeros(2),
    )
    schedule = sp.Schedule(*rows, partner=np.array([1, 0]))
    cost = sp.Outcome.verified(shared, schedule, policy="by hand").end_s.sum()
    assert cost == 200.0
    assert lb_fluid.bound(sp.Instance(cluster, jobs)) == 300.0
    assert lb_mbt.bound(sp.Instance(cluster, jobs)) > cost
    assert lb_job.bound(shared) <= cost  # Of any kind of schedule.


def test_on_one_gpu_the_fluid_bound_is_no_optimum_where_starts_are_charged() -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[5, 15])
    free = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    assert lb_fluid.bound(free) == min(
        one_after_the_other(jobs, o).end_s.sum() for o in ([0, 1], [1, 0])
    )
    charged = sp.simulate(jobs, "1x1", "srtf", sp.RunOptions(overheads=sp.Overheads(start_s=5.0)))
    other = sp.simulate(jobs, "1x1", "fifo", sp.RunOptions(overheads=sp.Overheads(start_s=5.0)))
    assert (
        min(charged.end_s.sum(), other.end_s.sum())
        == 40.0
        > lb_fluid.bound(charged.instance)
        == 25.0
    )


# Guarantees that `shadowprice policies` prints: what they except occurs.


def idle_beside_unfinished(
    instance: sp.Instance, schedule: sp.Schedule
) -> list[tuple[int, int, int]]:
    """Rounds, jobs unfinished when they began, and nodes idle in them."""
    left = total_steps(instance.workload).copy()
    found = []
    for number, begin_s in enumerate(np.unique(schedule.start_s)):
        rows = np.flatnonzero(schedule.start_s == begin_s)
        idle = set(range(len(instance.cluster.nodes))) - set(schedule.node[rows].tolist())
        found += [(number, job, node) for job in np.flatnonzero(left > 0).tolist() for node in idle]
        assert schedule.steps is not None
        np.subtract.at(left, schedule.job[rows], schedule.steps[rows])
    return found


def hadare_run(work: float, rates: list[float]) -> tuple[sp.Instance, sp.Schedule]:
    types = tuple("ab"[: len(rates)])
    jobs = sp.Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[work], throughput=[rates], gpu_types=types
    )
    cluster = "2x1:a" if len(rates) == 1 else "1x1:a,1x1:b"
    instance = sp.Instance(sp.Cluster.parse(cluster), jobs)
    return in_copies(instance, HadarE(round_s=10.0, restart_s=0.0))


@pytest.mark.parametrize(
    ("work", "rates"),
    [(21, [1.0]), (30, [1.0, 0.0])],
    ids=["the last round", "a node the job cannot use"],
)
def test_nodes_are_idle_beside_an_unfinished_job_where_hadare_n_excepts_them(
    work: float, rates: list[float]
) -> None:
    """'No node is idle while a job is unfinished' is false; HADARE-n, with its exceptions, holds."""
    instance, schedule = hadare_run(work, rates)
    idle = idle_beside_unfinished(instance, schedule)
    assert idle
    assert hadare_work.check(instance, schedule)
    last = len(np.unique(schedule.start_s)) - 1
    assert all(number == last or rates[node] == 0 for number, _, node in idle)
    text = about(schedulers()["hadare"]).guarantee
    assert "does not end in this very round" in first_clause(text)
    assert "could do" in first_clause(text)


@pytest.mark.parametrize("name", ["srtf", "srsf"])
def test_gangs_wait_without_end_under_the_shortest_first(name: str) -> None:
    """Two GPUs: a single-GPU job of 1 s every second before gangs of a little more; flow time."""
    ratios = []
    for n in (5, 10, 20):
        singles = n * n
        jobs = sp.Workload.from_columns(
            arrival_s=[0.0] * n + list(range(singles)),
            gpus=[2] * n + [1] * singles,
            work=[1.0 + 2.0**-10] * n + [1.0] * singles,
        )
        costs = [sp.simulate(jobs, "1x2", each).jct_s.sum() for each in (name, "fifo")]
        ratios.append(costs[0] / costs[1])
    assert ratios[2] > 1.6 * ratios[1] > 2.4 * ratios[0] > 2.4


@pytest.mark.parametrize("name", ["las2d", "gittins2d"])
@pytest.mark.parametrize("n", [6, 12, 24])
def test_fixed_thresholds_have_no_constant_even_on_one_gpu(name: str, n: int) -> None:
    jobs = sp.Workload.from_columns(arrival_s=[0] * n, gpus=1, work=[3600.0] + [1.0] * (n - 1))
    shortest = one_after_the_other(jobs, [*range(1, n), 0]).end_s.sum()
    assert sp.simulate(jobs, "1x1", name).end_s.sum() / shortest > 0.9 * n


def test_shortest_first_is_not_optimal_with_release_dates_or_weights() -> None:
    dates = sp.Workload.from_columns(arrival_s=[0, 1], gpus=1, work=[100, 1])
    assert (
        sp.simulate(dates, "1x1", "sjf").end_s.sum()
        > one_after_the_other(dates, [1, 0]).end_s.sum()
    )
    weights = sp.Workload.from_columns(arrival_s=[0, 0], gpus=1, work=[1, 2], weight=[1, 100])
    costs = [
        float(weights.weight @ outcome.end_s)
        for outcome in (sp.simulate(weights, "1x1", "sjf"), one_after_the_other(weights, [1, 0]))
    ]
    assert costs[0] > costs[1]


def test_the_reservation_of_easy_is_kept_without_rounds_only() -> None:
    """One GPU is free at 15 s, which the head gets then; in rounds of 10 s it gets it at 20 s."""
    jobs = sp.Workload.from_columns(arrival_s=[0, 1], gpus=1, work=[15, 5])
    starts = [
        sp.simulate(jobs, "1x1", "easy", options).jobs["first_start_s"][1]
        for options in (sp.RunOptions(), sp.RunOptions(round_s=10.0))
    ]
    assert starts == [15.0, 20.0]


@pytest.mark.parametrize(("gang", "twice_alpha"), [(1, 123), (2, 6_919), (4, 576_000)])
def test_the_factor_of_hadar_2a_for_wide_gangs(gang: int, twice_alpha: int) -> None:
    """60 GPUs in nodes of 4, 600 rounds, equal utilities: L is half a utility over all GPUs and rounds."""
    capacity = np.full(15, 4)
    prices = ExponentialPrices(
        *(np.full(15, value) for value in (0.5 / (60 * 600), 1.0)), reserved_full_at(capacity, gang)
    )
    assert 2 * factor(prices, capacity, gang) == pytest.approx(twice_alpha, rel=5e-3)
