"""Synergy: mechanisms, orders, both stages of OPT, the floor, and the recorded runs of its simulator."""

from __future__ import annotations

import importlib.util
import itertools
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, PolicyError
from shadowprice.execution.engine import Rounds, run
from shadowprice.execution.preset_registry import preset
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.synergy import floor as synergy_floor
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.solvers.registry import policy
from shadowprice.solvers.synergy.moves import least_moves
from shadowprice.solvers.synergy.opt import choose, place_chosen, undominated
from shadowprice.solvers.synergy.orders import ORDERS, STARVED_S, Columns
from shadowprice.solvers.synergy.published_packing import PublishedPacking
from shadowprice.solvers.synergy.servers import Demands, ResourceRequest, ServerGrant, Servers
from shadowprice.solvers.synergy.synergy import MECHANISMS
from shadowprice.solvers.synergy.tune import Tune, make_room
from shadowprice.studies.presets.synergy.rounds import PublishedJob
from shadowprice.studies.presets.synergy.tuned import published_jobs
from support.paths import ROOT
from support.peers import PEERS, ends, needs_peers, recorded, runs_of, synergy_workload

SHARE = (3.0, 62.5)
CPUS = np.array([1.0, 2.0, 3.0, 4.5, 6.0, 9.0, 12.0, 24.0])
MEMORY_GB = np.array([10.0, 20.83, 62.5, 125.0, 187.5, 250.0])
SEEDS = st.integers(0, 2**32 - 1)


def random_profile(rng: np.random.Generator) -> Profile:
    """Some points of a grid, some speed at the share, no speed falling along an axis."""
    axes = []
    for axis, share in ((CPUS, SHARE[0]), (MEMORY_GB, SHARE[1])):
        some = rng.choice(axis, rng.integers(1, len(axis) + 1), replace=False)
        axes.append(np.unique([*some, rng.choice(axis[axis <= share])]))
    step = rng.integers(0, 3, (len(axes[0]), len(axes[1]))) / 4
    speed = 0.25 + step.cumsum(axis=0).cumsum(axis=1)
    return Profile(axes[0], axes[1], speed)


def random_case(
    seed: int, servers: int = 4, jobs: int = 24
) -> tuple[list[ResourceRequest], Demands]:
    """Jobs whose gangs together fit the GPUs of some servers, of one size or of several."""
    rng = np.random.default_rng(seed)
    size = rng.choice([8, 4, 3], rng.integers(1, servers + 1))
    if rng.random() < 0.5:
        size[:] = 8
    gangs: list[int] = []
    while len(gangs) < jobs and sum(gangs) < size.sum():
        gangs.append(int(rng.choice([1, 1, 1, 2, 3, 4, 8, 11])))
        if sum(gangs) > size.sum():
            gangs.pop()
            gangs.append(1)
    profiles = tuple(random_profile(rng) for _ in range(rng.integers(1, 6)))
    of = rng.integers(0, len(profiles), len(gangs))
    demands = Demands(Sensitivity(profiles, of), size, SHARE)
    return [demands.ask(job, gpus) for job, gpus in enumerate(gangs)], demands


# The floor.


def tune_keeps_the_floor(asks: list[ResourceRequest], demands: Demands) -> bool:
    servers = Servers(demands.size, demands.share)
    Tune().place(asks, servers, demands)
    return synergy_floor.check(servers, asks, demands)


@settings(max_examples=150)
@given(SEEDS)
def test_tune_places_every_job_and_none_below_its_floor(seed: int) -> None:
    asks, demands = random_case(seed)
    assert synergy_floor.hypotheses_hold(asks, demands)
    assert tune_keeps_the_floor(asks, demands)


@pytest.mark.slow
def test_tune_on_thousands_of_larger_clusters() -> None:
    for seed in range(5000):
        assert tune_keeps_the_floor(*random_case(seed, servers=12, jobs=80))


@settings(max_examples=30)
@given(SEEDS, st.sampled_from(["proportional", "tune", "opt"]))
def test_jobs_that_come_later_are_placed_beside_the_others(seed: int, name: str) -> None:
    asks, demands = random_case(seed)
    if name == "proportional":
        asks = [demands.proportional(ask.job, ask.gpus) for ask in asks]
    servers = Servers(demands.size, demands.share)
    early = len(asks) // 2
    for some in (asks[:early], asks[early:]):
        MECHANISMS[name].place(some, servers, demands)
    assert synergy_floor.check(servers, asks, demands)


def eight_gpus(asks: list[ResourceRequest]) -> Demands:
    """A server of 8 GPUs; speeds are 2 with the ask, 1 with the share, 0.5 with less of anything."""
    profiles = []
    for ask in asks:
        asked = (ask.cpus, ask.memory_gb)
        axes = [np.unique([amount, s]) for amount, s in zip(asked, SHARE, strict=True)]
        held = np.stack(np.meshgrid(*axes, indexing="ij"))
        shared, asked = (
            np.all([held[k] >= least[k] for k in (0, 1)], axis=0) for least in (SHARE, asked)
        )
        profiles.append(Profile(axes[0], axes[1], np.where(asked, 2.0, np.where(shared, 1.0, 0.5))))
    return Demands(Sensitivity(tuple(profiles), np.arange(len(asks))), np.array([8]), SHARE)


def test_the_published_rule_fails_where_cutting_down_raises() -> None:
    asks = synergy_floor.counter_example()
    demands = eight_gpus(asks)
    assert [synergy_floor.comparable(ask, SHARE) for ask in asks] == [False, True, True, True]
    assert not synergy_floor.published_places(asks, demands)
    assert tune_keeps_the_floor(asks, demands)


# Jobs of a server (GPUs, CPUs and GB for each GPU), and whether the published rule places them in its
# own order. In each the answer is another one if the named quantity is taken the other way round.
ORDERED = [
    ("gpus", [(1, 6.0, 220.0), (2, 1.0, 220.0), (3, 6.0, 20.0)], False),
    ("gpus", [(3, 1.0, 125.0), (2, 1.0, 220.0), (1, 6.0, 20.0)], True),
    ("cpus", [(2, 3.0, 220.0), (1, 12.0, 20.0), (1, 6.0, 220.0)], False),
    ("cpus", [(3, 6.0, 20.0), (2, 1.0, 125.0), (2, 12.0, 62.5)], True),
    ("memory", [(2, 1.0, 20.0), (2, 6.0, 20.0), (2, 1.0, 220.0)], False),
    ("memory", [(1, 6.0, 20.0), (1, 6.0, 62.5), (2, 1.0, 220.0)], True),
]


@pytest.mark.parametrize(("by", "jobs", "places"), ORDERED)
def test_the_published_rule_takes_the_largest_first(
    by: str, jobs: list[tuple[int, float, float]], places: bool
) -> None:
    asks = [ResourceRequest(k, *job) for k, job in enumerate(jobs)]
    demands = eight_gpus(asks)
    assert synergy_floor.published_places(asks, demands) == places
    keys = [(ask.gpus, ask.gpus * ask.cpus, ask.gpus * ask.memory_gb) for ask in asks]
    turned = ("gpus", "cpus", "memory").index(by)
    signs = [1 if k == turned else -1 for k in range(3)]
    order = sorted(asks, key=lambda ask: [s * x for s, x in zip(signs, keys[ask.job], strict=True)])
    peers = [PublishedJob(ask.job, ask.gpus, 0.0, 1.0, 1, ask, 1.0) for ask in order]
    packing = PublishedPacking(demands.size, demands.share)
    if places:
        with pytest.raises(PolicyError, match="the published simulator stops here"):
            packing.plan(peers, fair=False)
    else:
        assert set(packing.plan(peers, fair=False)) == {0, 1, 2}


@settings(max_examples=90)
@given(SEEDS)
def test_the_published_rule_holds_for_comparable_demands(seed: int) -> None:
    asks, demands = random_case(seed)
    if np.ptp(demands.size) == 0 and all(synergy_floor.comparable(ask, SHARE) for ask in asks):
        assert synergy_floor.published_places(asks, demands)


def test_cutting_a_spread_job_makes_room_on_its_other_server_too() -> None:
    servers = Servers(np.array([8, 8]), SHARE)
    servers.hold(0, ServerGrant(((0, 1), (1, 1)), 12.0, 20.0))
    for job in range(1, 5):
        servers.hold(job, ServerGrant(((0, 1),), 3.0, 20.0))
    for job in (5, 6):
        servers.hold(job, ServerGrant(((1, 1),), 3.0, 240.0))
    make_room(servers, ResourceRequest(7, 1, 3.0, 20.0))
    # The spread job has CPUs to give on server 0, and takes 42.5 GB more on server 1, which is full.
    assert servers.held[0] == ServerGrant(((0, 1), (1, 1)), *SHARE)
    assert [servers.held[job].memory_gb for job in (5, 6)] == [62.5, 240.0]
    assert servers.cpus.tolist() == [9.0, 15.0]
    assert servers.memory_gb.tolist() == [357.5, 135.0]


def test_too_many_gpus_are_refused() -> None:
    asks, demands = random_case(1)
    more = [*asks, *(ResourceRequest(0, 8, 1.0, 10.0) for _ in range(5))]
    with pytest.raises(PolicyError, match="needs 8 GPUs"):
        Tune().place(more, Servers(demands.size, demands.share), demands)


# OPT.


@settings(max_examples=18)
@given(SEEDS)
def test_stage_one_is_the_best_choice(seed: int) -> None:
    """Against all choices of all points, dominated ones included."""
    asks, demands = random_case(seed, servers=1, jobs=3)
    servers = Servers(demands.size, demands.share)
    options = []
    for ask in asks:
        p = demands.profile_of(ask.job)
        options.append(
            [
                (c * ask.gpus, m * ask.gpus, float(p.speed[i, j]))
                for i, c in enumerate(p.cpus_per_gpu)
                for j, m in enumerate(p.memory_gb_per_gpu)
                if p.speed[i, j] >= demands.floor(ask.job)
                and max(c / SHARE[0], m / SHARE[1]) <= demands.size.max()
            ]
        )
    room = demands.size.sum() * np.array(SHARE) + 1e-9
    best = max(
        sum(point[2] for point in points)
        for points in itertools.product(*options)
        if sum(p[0] for p in points) <= room[0] and sum(p[1] for p in points) <= room[1]
    )
    chosen = choose(asks, servers, demands, SolverOptions(relative_gap=0.0))
    assert chosen.value == pytest.approx(best)
    assert sorted(ask.job for ask in chosen.asks) == [ask.job for ask in asks]
    got = [demands.profile_of(a.job).at(a.cpus, a.memory_gb) for a in chosen.asks]
    assert sum(got) == pytest.approx(chosen.value)


@given(SEEDS)
def test_dropped_points_are_beaten(seed: int) -> None:
    profile = random_profile(np.random.default_rng(seed))
    kept = undominated(profile, SHARE, 8)
    for i, c in enumerate(profile.cpus_per_gpu):
        for j, m in enumerate(profile.memory_gb_per_gpu):
            speed = profile.speed[i, j]
            at_least = (kept[:, 0] <= c) & (kept[:, 1] <= m) & (kept[:, 2] >= speed)
            possible = c <= 8 * SHARE[0] and m <= 8 * SHARE[1]
            assert at_least.any() or speed < profile.at(*SHARE) or not possible
    assert (kept[:, 2] >= profile.at(*SHARE)).all()
    # A server of three GPUs has 9 CPUs and 187.5 GB to give to one of them.
    assert (undominated(profile, SHARE, 3)[:, :2] <= (9.0, 187.5)).all()
    for one, other in itertools.permutations(kept.tolist(), 2):
        assert not (one[0] <= other[0] and one[1] <= other[1] and one[2] >= other[2])


@settings(max_examples=8)
@given(SEEDS)
def test_a_vertex_leaves_few_jobs_and_rounding_keeps_the_floor(seed: int) -> None:
    asks, demands = random_case(seed)
    servers = Servers(demands.size, demands.share)
    chosen = choose(asks, servers, demands)
    left = place_chosen(chosen.asks, servers)
    assert synergy_floor.check_vertex(servers, chosen.asks, left)
    # Before rounding what is held is what stage 1 chose.
    asked = {ask.job: (ask.cpus, ask.memory_gb) for ask in chosen.asks}
    assert all((g.cpus, g.memory_gb) == asked[job] for job, g in servers.held.items())
    servers = Servers(demands.size, demands.share)
    MECHANISMS["opt"].place(asks, servers, demands)
    assert synergy_floor.check(servers, asks, demands)
    held = servers.held.items()
    speeds = [demands.profile_of(j).at(g.cpus, g.memory_gb) for j, g in held]
    assert sum(speeds) <= chosen.bound * (1 + 1e-6) + 1e-6


# Demands and mechanisms by hand.

SLOW = Profile(np.array([1.0]), np.array([20.0]), np.ones((1, 1)), "slow")
HUNGRY = Profile(
    np.array([3.0, 6.0, 12.0]), np.array([62.5]), np.array([[1.0], [1.5], [2.0]]), "hungry"
)
SENSITIVITY = Sensitivity((SLOW, HUNGRY), np.array([1, 1, 1, 0, 0, 0]))


def test_demands_are_cut_to_as_few_servers_as_the_gang_needs() -> None:
    demands = Demands(SENSITIVITY, np.array([8, 8]), SHARE)
    assert [demands.ask(0, gpus).cpus for gpus in (1, 2, 3, 4, 8, 9, 16)] == [12, 12, 6, 6, 3, 3, 3]
    assert demands.ask(3, 1) == ResourceRequest(3, 1, 1.0, 20.0)


def held(name: str, asks: list[ResourceRequest], servers: int = 1) -> dict[int, ServerGrant]:
    demands = Demands(SENSITIVITY, np.full(servers, 8), SHARE)
    where = Servers(demands.size, demands.share)
    MECHANISMS[name].place(asks, where, demands)
    return where.held


def test_greedy_skips_and_tune_shares() -> None:
    hungry = [ResourceRequest(job, 1, 12.0, 62.5) for job in range(3)]
    assert sorted(held("greedy", hungry)) == [0, 1]
    assert sorted(
        held(
            "greedy",
            [hungry[0], ResourceRequest(1, 1, 13.0, 62.5), ResourceRequest(3, 1, 1.0, 20.0)],
        )
    ) == [
        0,
        3,
    ]
    tuned = held("tune", hungry)
    # Nobody is cut while the share of the third can be had by cutting one.
    assert sorted(grant.cpus for grant in tuned.values()) == [3.0, 3.0, 12.0]


def test_tune_lets_who_needs_little_lend_to_who_needs_much() -> None:
    asks = [
        ResourceRequest(0, 1, 12.0, 62.5),
        *(ResourceRequest(job, 1, 1.0, 20.0) for job in (3, 4, 5)),
    ]
    assert {job: grant.cpus for job, grant in held("tune", asks).items()} == {
        0: 12,
        3: 1,
        4: 1,
        5: 1,
    }


def test_place_takes_the_fullest_server_and_splits_from_there() -> None:
    demands = Demands(SENSITIVITY, np.array([8, 8, 8]), SHARE)
    servers = Servers(demands.size, demands.share)
    for job, pieces in enumerate([((1, 6),), ((2, 3),), ((0, 4),)]):
        servers.hold(job, ServerGrant(pieces, 3.0, 62.5))
    Tune().place(
        [ResourceRequest(3, 1, 1.0, 20.0), ResourceRequest(4, 7, 3.0, 62.5)], servers, demands
    )
    # The gang of 7 goes first and fits on no server: 2 of server 1, 4 of server 0, 1 of server 2.
    assert servers.held[4].pieces == ((1, 2), (0, 4), (2, 1))
    assert servers.held[3].pieces == ((2, 1),)


def test_whole_gangs_go_to_the_server_with_the_fewest_free_gpus() -> None:
    for name, expected in (("tune", 1), ("greedy", 0), ("proportional", 1)):
        demands = Demands(SENSITIVITY, np.array([8, 8, 8]), SHARE)
        servers = Servers(demands.size, demands.share)
        for job, gpus in enumerate((4, 6, 5)):
            servers.hold(10 + job, ServerGrant(((job, gpus),), 3.0, 62.5))
        # Free are 4, 2 and 3 GPUs; GREEDY takes the first server.
        MECHANISMS[name].place([ResourceRequest(3, 1, 1.0, 20.0)], servers, demands)
        assert servers.held[3].pieces == ((expected, 1),)


@given(SEEDS)
def test_most_gpus_stay_with_their_jobs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = np.array([4, 4, 4, 2, 2])

    def anywhere() -> dict[int, tuple[tuple[int, int], ...]]:
        return {job: ((int(rng.integers(5)), int(rng.integers(1, 3))),) for job in range(6)}

    running, planned = anywhere(), anywhere()
    plan = {job: ServerGrant(pieces, 1.0, 1.0) for job, pieces in planned.items()}
    kept = least_moves(plan, running, size)

    def staying(where: dict[int, tuple[tuple[int, int], ...]]) -> int:
        return sum(pieces[0][1] for job, pieces in where.items() if pieces == running[job])

    best = 0
    for large in itertools.permutations(range(3)):
        for small in itertools.permutations((3, 4)):
            to = [*large, *small]
            moved: dict[int, tuple[tuple[int, int], ...]] = {
                job: ((to[p[0][0]], p[0][1]),) for job, p in planned.items()
            }
            best = max(best, staying(moved))
    assert staying({job: grant.pieces for job, grant in kept.items()}) == best


# Orders.


@dataclass
class Fixed:
    """Columns by hand."""

    arrival_s: ClassVar = np.array([0.0, 100.0, 200.0])
    gpus: ClassVar = np.array([1, 2, 4])
    attained_s: ClassVar = np.array([50.0, 10.0, 20.0])
    remaining_s: ClassVar = np.array([100.0, 60.0, 90.0])
    processing_s: ClassVar = np.array([150.0, 80.0, 100.0])


@pytest.mark.parametrize(
    ("name", "fair", "expected"),
    [
        ("fifo", False, [0, 1, 2]),
        ("srtf", False, [1, 2, 0]),
        ("srtf", True, [1, 0, 2]),
        ("srtf-share", False, [1, 0, 2]),
        ("las", False, [1, 0, 2]),
        # rho at 300 s: 400/150, 260/80, 190/200.
        ("ftf", False, [1, 0, 2]),
        ("drf", False, [0, 2, 1]),
        ("tetris", False, [0, 1, 2]),
    ],
)
def test_orders(name: str, fair: bool, expected: list[int]) -> None:
    shares = np.array([[0.1, 0.1], [0.2, 0.9], [0.4, 0.5]])
    columns = Columns(Fixed(), 300.0, np.array([1.0, 1.0, 2.0]), fair, shares)  # type: ignore[arg-type]
    assert np.argsort(ORDERS[name].key(columns), kind="stable").tolist() == expected


# Runs.

CLUSTER = Cluster((Node(8, cpus=24.0, memory_gb=500.0), Node(4, cpus=12.0, memory_gb=250.0)))


def conditioned(
    jobs: list[tuple[float, int, float]],
    profiles: list[Profile],
    cluster: Cluster = CLUSTER,
    overheads: Overheads | None = None,
) -> Instance:
    """Jobs (arrival, gpus, work), the k-th with the k-th profile."""
    arrival, gpus, work = zip(*jobs, strict=True)
    workload = Workload.from_columns(arrival_s=arrival, gpus=gpus, work=work)
    of = np.array([int(name) for name in workload.id])
    sensitivity = Sensitivity(tuple(profiles), of)
    return Instance(cluster, workload, overheads or Overheads(), sensitivity=sensitivity)


@st.composite
def sensitive(draw: st.DrawFn) -> Instance:
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(1, 10))
    jobs = [
        (float(rng.integers(60)), int(rng.choice([1, 1, 2, 4, 8, 12])), float(rng.integers(1, 90)))
        for _ in range(n)
    ]
    charges = draw(st.sampled_from([Overheads(), Overheads(1.0, 2.0, 4.0)]))
    return conditioned(jobs, [random_profile(rng) for _ in range(n)], overheads=charges)


NAMES = [
    *(f"synergy-{m}:{order},round_s=16" for m in MECHANISMS for order in ORDERS),
    *(f"{name}:{m},round_s=16" for name in ("drf", "tetris") for m in MECHANISMS),
]


@settings(max_examples=15)
@given(sensitive(), st.sampled_from(NAMES), st.sampled_from([0.0, 16.0]))
def test_every_run_ends_and_passes_the_verifier(
    instance: Instance, name: str, round_s: float
) -> None:
    first, second = (run(instance, policy(name), rounds=Rounds(round_s)).schedule for _ in range(2))
    verify(instance, first)
    assert first.to_frame().equals(second.to_frame())
    if "greedy" not in name:
        sensitivity = instance.sensitivity
        assert sensitivity is not None
        assert first.cpus is not None
        assert first.memory_gb is not None
        rows = zip(first.job, first.gpus, first.cpus, first.memory_gb, strict=True)
        for job, gpus, cpus, memory_gb in rows:
            profile = sensitivity.profile_of(job)
            assert profile.at(cpus / gpus, memory_gb / gpus) >= profile.at(*SHARE)


def completions(instance: Instance, name: str, rounds: Rounds | None = None) -> list[float]:
    schedule = run(instance, policy(name), rounds=rounds).schedule
    verify(instance, schedule)
    last = ends(instance.workload, schedule)
    return [float(last[instance.workload.row_of[str(k)]]) for k in range(len(last))]


def test_more_cpus_come_with_the_next_round_and_cost_no_restart() -> None:
    jobs = [(0.0, 1, 900.0), (0.0, 1, 150.0), (0.0, 1, 150.0)]
    charges = Overheads(restart_s=50.0, migration_s=50.0)
    one = Cluster((Node(8, cpus=24.0, memory_gb=500.0),))
    instance = conditioned(jobs, [HUNGRY] * 3, one, charges)
    schedule = run(instance, policy("synergy-tune:fifo")).schedule
    verify(instance, schedule)
    # Of three that want 12 of 24 CPUs one gets them, two their share of 3; the others are cut first.
    assert schedule.overhead_s.sum() == 0.0
    assert schedule.cpus is not None
    assert sorted(set(schedule.cpus.tolist())) == [3.0, 12.0]
    last = ends(instance.workload, schedule)
    assert last.max() < 900.0


def test_gpus_freed_within_a_round_are_used_at_once_or_at_the_boundary() -> None:
    jobs = [(0.0, 8, 100.0), (0.0, 4, 1000.0), (0.0, 8, 50.0)]
    instance = conditioned(jobs, [SLOW] * 3)
    assert completions(instance, "synergy-tune:fifo") == [100.0, 1000.0, 150.0]
    assert completions(instance, "synergy-tune:fifo", Rounds(300.0)) == [100.0, 1000.0, 350.0]


@pytest.mark.parametrize(
    ("name", "first"),
    [("proportional:srtf", 1), ("tune:srtf", 0), ("tune:srtf-share", 1), ("tune:ftf", 1)],
)
def test_time_left_is_at_the_best_speed_or_at_the_share(name: str, first: int) -> None:
    """Job 0 needs 100 s with its share, 50 s at best, which it cannot get; job 1 needs 80 s."""
    one = Cluster((Node(8, cpus=24.0, memory_gb=500.0),))
    instance = conditioned([(0.0, 8, 100.0), (0.0, 8, 80.0)], [HUNGRY, SLOW], one)
    assert completions(instance, f"synergy-{name}") == [[100.0, 180.0], [180.0, 80.0]][first]


def test_a_job_that_wants_more_than_a_server_ends_under_greedy() -> None:
    """Eight GPUs with 12 CPUs each want 96 of 24; two jobs that cannot run together take turns."""
    instance = conditioned([(0.0, 8, 100.0), (0.0, 12, 100.0), (1.0, 1, 100.0)], [HUNGRY] * 3)
    assert max(completions(instance, "synergy-greedy:fifo")) < 400.0


def test_greedy_leaves_gpus_idle_where_cpus_are_short() -> None:
    one = Cluster((Node(8, cpus=24.0, memory_gb=500.0),))
    instance = conditioned([(0.0, 1, 200.0), (0.0, 1, 200.0), (0.0, 1, 200.0)], [HUNGRY] * 3, one)
    assert completions(instance, "synergy-greedy:fifo") == [100.0, 100.0, 200.0]
    assert completions(instance, "synergy-proportional:fifo") == [200.0, 200.0, 200.0]


def test_a_starved_job_goes_first() -> None:
    n = 30
    one = Cluster((Node(1, cpus=3.0, memory_gb=62.5),))
    long_s = STARVED_S / 20
    jobs = [(0.0, 1, 2 * long_s), *((0.0 + k * long_s, 1, long_s) for k in range(n))]
    last = completions(conditioned(jobs, [SLOW] * (n + 1), one), "synergy-tune:srtf,round_s=30000")
    assert STARVED_S < last[0] < n * long_s


def test_plain_jobs_run_in_their_order_by_gpus() -> None:
    rng = np.random.default_rng(3)
    n = 40
    workload = Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 500, n)),
        gpus=rng.choice([1, 2, 4], n),
        work=rng.integers(10, 900, n),
    )
    instance = Instance(Cluster.parse("2x4"), workload)
    for order in ORDERS:
        plans = {
            tuple(completions(instance, f"synergy-{mechanism}:{order}")) for mechanism in MECHANISMS
        }
        assert len(plans) == 1
    # With a decision whenever something happens SRTF is the policy of that name.
    often = Rounds(1.0)
    assert completions(instance, "synergy-tune:srtf,round_s=1", often) == completions(
        instance, "srtf", often
    )


def test_thirds_of_the_cpus_add_up() -> None:
    one = Cluster((Node(3, cpus=8.0, memory_gb=500.0),))
    instance = conditioned([(0.0, 1, 10.0)] * 3, [SLOW] * 3, one)
    assert completions(instance, "synergy-proportional:fifo") == [10.0, 10.0, 10.0]
    assert completions(instance, "fifo") == [10.0, 10.0, 10.0]


# What is refused.


def test_a_profile_without_speed_at_the_share_is_reported() -> None:
    starving = Profile(np.array([6.0]), np.array([20.0]), np.array([[2.0]]), "res18")
    instance = conditioned([(0.0, 1, 10.0)], [starving])
    message = r"res18: speed with the GPU-proportional share of 3 CPUs and 62.5 GB .* is 0"
    for name in ("synergy-tune", "synergy-proportional", "synergy-opt", "synergy-greedy"):
        with pytest.raises(InputError, match=message):
            run(instance, policy(name))


@pytest.mark.parametrize(
    ("cell", "message"),
    [(np.nan, "is the cell missing"), (0.5, "no less than with fewer"), (-1.0, "a number >= 0")],
)
def test_bad_cells_are_reported(cell: float, message: str) -> None:
    speed = np.array([[1.0, 1.0], [1.0, cell]])
    with pytest.raises(InputError, match=f"alexnet: speed with 6 CPUs and 125 GB .*{message}"):
        Profile(np.array([3.0, 6.0]), np.array([62.5, 125.0]), speed, "alexnet")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("synergy-tune:sjf", "order is 'sjf', expected one of fifo"),
        ("synergy-tune:round_s=0", "round_s is 0.0, expected seconds > 0"),
        ("drf:best", "mechanism is 'best', expected one of proportional"),
    ],
)
def test_wrong_settings_are_explained(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        policy(name)


def test_profiles_on_several_gpu_types_are_refused() -> None:
    types = (
        Node(4, "v100", cpus=12.0, memory_gb=250.0),
        Node(4, "k80", cpus=12.0, memory_gb=250.0),
    )
    workload = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[10], throughput=[[2.0, 1.0]], gpu_types=("v100", "k80")
    )
    sensitivity = Sensitivity((SLOW,), np.zeros(1, dtype=np.int64))
    instance = Instance(Cluster(types), workload, sensitivity=sensitivity)
    with pytest.raises(PolicyError, match="GPUs are of types"):
        run(instance, policy("synergy-tune"))


# The published simulator.


def published_profiles() -> tuple[list[str], tuple[Profile, ...]]:
    """Tables as recorded; where the peer states a demand below the first column that is the column."""
    file = recorded("synergy_static32.json")
    axes = file["profile_axes"]
    models, profiles = sorted(file["profiles"]), []
    for model in models:
        table = file["profiles"][model]["1"]
        memory = np.array(axes["mem_cols_gb"], dtype=np.float64)
        memory[0] = min(memory[0], table["best_mem_gb_per_gpu"])
        cpus = np.array(axes["cpu_rows"], dtype=np.float64)
        profiles.append(Profile(cpus, memory, np.array(table["tput"]), model))
        assert profiles[-1].at(*SHARE) == 1.0
        assert profiles[-1].best == table["best_speedup"]
    return models, tuple(profiles)


def published_run(file: str, name: str) -> tuple[Instance, np.ndarray]:
    """A recorded run again, verified: instance and job completion times in the order of the file."""
    workload, nodes = synergy_workload(file), recorded(file)["cluster"]["servers"]
    models, profiles = published_profiles()
    cluster = Cluster((Node(8, cpus=24.0, memory_gb=500.0),) * nodes)
    sensitivity = Sensitivity(profiles, np.array([models.index(m) for m in workload.model]))
    recipe = preset("synergy").recipe(name, workload, cluster=cluster, sensitivity=sensitivity)
    instance = Instance(cluster, recipe.workload, recipe.overheads, sensitivity=recipe.sensitivity)
    schedule = run(
        instance, recipe.policy, placement=recipe.placement, rounds=recipe.rounds
    ).schedule
    verify(instance, schedule)
    last = ends(instance.workload, schedule)
    jobs = recorded(file)["jobs"]
    return instance, np.array([last[workload.row_of[str(job[0])]] - job[2] for job in jobs])


LONG = ("FIFO+tune", "SRTF+tune")
RECORDED = [
    pytest.param(file, name, marks=[pytest.mark.slow] if "W1k" in file and name in LONG else [])
    for file, name in runs_of("synergy_*.json")
    if file in ("synergy_static32.json", "synergy_W1k.json")
]


@needs_peers
@pytest.mark.parametrize(("file", "name"), RECORDED)
def test_the_recorded_runs_to_the_second(file: str, name: str) -> None:
    _, jct = published_run(file, name)
    np.testing.assert_allclose(jct, recorded(file)["runs"][name]["jct"], atol=1e-3)


def test_the_peer_cuts_demands_to_a_server_and_reads_speeds_off_a_line() -> None:
    cluster = Cluster((Node(8, cpus=24.0, memory_gb=500.0),) * 2)
    workload = Workload.from_columns(
        arrival_s=[0] * 4,
        gpus=[1, 2, 4, 16],
        work=[100] * 4,
        throughput=[[0.5]] * 4,
        gpu_types=("gpu",),
    )
    jobs = published_jobs(workload, cluster, Sensitivity((HUNGRY,), np.zeros(4, dtype=np.int64)))
    assert [job.ask.cpus for job in jobs] == [12.0, 12.0, 6.0, 3.0]
    assert [job.best for job in jobs] == pytest.approx([2.0, 2.0, 1 + 3 / 9, 1.0])
    jobs[0].advance(2.0)
    jobs[1].advance(1.0)
    # 100 iterations of 2 s: 300 in a round at speed 2, of which 100 are left; 150 at speed 1.
    assert [job.done for job in jobs[:2]] == [100, 100]
    assert jobs[2].remaining_s(fair=True) == 200.0
    assert jobs[2].remaining_s(fair=False) == pytest.approx(150.0)


@needs_peers
def test_what_the_preset_needs_is_said() -> None:
    assert PEERS.is_dir()
    with pytest.raises(InputError, match="needs profiles of the jobs by CPUs and memory"):
        preset("synergy").recipe("FIFO+tune", synergy_workload("synergy_static32.json"))


# Speed.


def test_a_round_is_quick() -> None:
    spec = importlib.util.spec_from_file_location("b", ROOT / "benchmarks" / "synergy_round.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    asks, demands = bench.jobs_on(1000, 128, 0, distinct=True)
    assert min(bench.tune_s(asks, demands) for _ in range(3)) < 0.1
    assert bench.decision_s(asks[:100], demands) < 0.1
    asks, demands = bench.jobs_on(512, 64, 0, distinct=True)
    began = time.process_time()
    chosen = choose(asks, Servers(demands.size, demands.share), demands)
    assert time.process_time() - began < 60.0
    assert chosen.gap < 1e-3
