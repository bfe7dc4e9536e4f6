"""Tiresias: queues, the Gittins index, placement by skew, its programme and its theorems."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import tiresias as testbed
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.model_skew import (
    SHARE_AND_MB,
    ModelSkew,
    ModelSkews,
    published_skews,
)
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.spread import locality_of
from shadowprice.instances.workload import Workload
from shadowprice.models import tiresias
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.lower_bounds import fluid as lb_fluid
from shadowprice.proofs.tiresias import gittins as tiresias_gittins
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.placement.skew import Skew
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from shadowprice.solvers.registry import placement, policy
from shadowprice.solvers.tiresias.gittins2d import Gittins2d
from shadowprice.solvers.tiresias.gittins_index import LearnedDistribution, ServiceDistribution

EXAMPLE = Workload.from_columns(arrival_s=[0, 0, 0], gpus=[2, 1, 2], work=[2, 8, 6])
SAMPLES = [4, 8, 12]


def ends(instance, chosen, **switches):
    """Completion times by row, of a verified run."""
    found = policy(chosen) if isinstance(chosen, str) else chosen
    schedule = run(instance, found, **switches).schedule
    verify(instance, schedule)
    last = np.zeros(len(instance.workload))
    np.maximum.at(last, schedule.job, schedule.end_s)
    return last


def on(cluster, **columns):
    return Instance(Cluster.parse(cluster), Workload.from_columns(**columns))


# The worked example of the paper: mean 9.3, 10 and 11.7.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("srsf", [2, 10, 16]),
        ("gittins2d:thresholds_gpu_s=4", [2, 12, 16]),
        ("las2d:thresholds_gpu_s=1/2/3/4/5/6/7/8/9/10/11/12", [5, 14, 16]),
    ],
)
def test_the_worked_example(name, expected):
    instance = Instance(Cluster.parse("1x2"), EXAMPLE)
    assert ends(instance, name, rounds=Rounds(1.0)).tolist() == expected


def test_the_means_of_the_worked_example_are_the_published_ones():
    assert [round(sum(e) / 3, 1) for e in ([2, 10, 16], [2, 12, 16], [5, 14, 16])] == [
        9.3,
        10.0,
        11.7,
    ]


def test_the_worked_indices():
    values = [tiresias_gittins.scan(SAMPLES, a) for a in (0, 2, 4, 6, 8, 10)]
    assert values == [Fraction(1, k) for k in (8, 6, 6, 4, 4, 2)]


# Queues.


def test_order_inside_a_queue_is_by_first_start_not_by_arrival():
    """b arrives before c but starts after it, for want of GPUs; both are demoted, then c goes on first."""
    instance = on("1x2", id=["a", "b", "c"], arrival_s=[0, 1, 2], gpus=[1, 2, 1], work=[20, 30, 30])
    # a and c run up to their 10 GPU-s at 10 and 12, b from 12 on up to 17; then c before b.
    done = run(instance, policy("las2d:thresholds_gpu_s=10")).schedule
    first = [done.start_s[done.job == row].min() for row in range(3)]
    assert first[2] < first[1]
    after = ends(instance, "las2d:thresholds_gpu_s=10")
    assert after[2] < after[1]


def test_demotion_is_at_the_crossing_in_gpu_seconds():
    """4 GPUs cross 100 GPU-s at 25 s, between the arrivals; a half threshold in seconds would be at 96."""
    instance = on("1x4", arrival_s=[0, 10], gpus=[4, 4], work=[40, 5])
    assert ends(instance, "las2d:thresholds_gpu_s=100").tolist() == [45.0, 30.0]
    assert ends(instance, "gittins2d:thresholds_gpu_s=100,learned=online").tolist() == [45.0, 30.0]


@given(instance=instances(), name=st.sampled_from(["las2d", "gittins2d"]), knob=st.integers(1, 8))
def test_promotion_keeps_all_work(instance, name, knob):
    """The queue's service is counted anew, the job's work is not: the verifier adds it up."""
    ends(instance, f"{name}:thresholds_gpu_s=5,promote_knob={knob}")


def test_a_promoted_job_loses_its_service_in_the_queue_only():
    """Demoted at 10 s, starved for 4 x 10 s, first again at 50 s, for 10 s more: then demoted again."""
    stream = 30
    instance = on(
        "1x1",
        arrival_s=[0, *(10 + 10 * k for k in range(stream))],
        gpus=[1] * (stream + 1),
        work=[40, *[10] * stream],
    )
    schedule = run(instance, policy("las2d:thresholds_gpu_s=10,promote_knob=4")).schedule
    verify(instance, schedule)
    mine = schedule.job == 0
    assert schedule.start_s[mine].tolist() == [0.0, 50.0, 100.0, 150.0]
    assert schedule.end_s[mine].tolist() == [10.0, 60.0, 110.0, 160.0]


@example(
    instance=on("2x4", arrival_s=[0, 0, 0], gpus=[1, 2, 3], work=[5, 6, 7]),
    name="las2d",
    where="consolidate",
)
@given(
    instance=instances(),
    name=st.sampled_from(["las2d", "gittins2d", "gittins2d:learned=online"]),
    where=st.sampled_from(["consolidate", "skew-wait", "pack"]),
)
def test_starting_only_those_who_wait_changes_nothing(instance, name, where):
    """While all fit by count only they are looked at; a knob that never acts looks at everybody."""
    base, _, more = name.partition(":")
    limits = f"{base}:thresholds_gpu_s=4" + (f",{more}" if more else "")
    quick, full = (
        run(instance, policy(chosen), placement=placement(where)).schedule
        for chosen in (limits, f"{limits},promote_knob=1e300")
    )
    for column in ("job", "node", "gpus", "start_s", "end_s"):
        assert np.array_equal(getattr(quick, column), getattr(full, column))


# The Gittins index, given and learned.


def test_readings_differ():
    """Limit 10: at a = 0 both quanta are 10; a job at 8 is near an end at 12 by A only."""
    sample = ServiceDistribution(np.array([4.0, 12.0, 100.0]))
    a = sample.quantum_index([0.0, 8.0], 10.0)
    b = sample.quantum_index([0.0, 8.0], [10.0, 2.0])
    assert a.tolist() == pytest.approx([1 / 24, 1 / 14])
    assert b.tolist() == pytest.approx([1 / 24, 0.0])
    instance = on("1x1", arrival_s=[0, 8], gpus=[1, 1], work=[12, 100])
    first = []
    for reading in "AB":
        chosen = Gittins2d(
            thresholds_gpu_s=(10.0,), reading=reading, learned="sample", sample=sample
        )
        done = run(instance, chosen).schedule
        first.append(float(done.start_s[done.job == 1].min()))
    # A lets the first job go on to its limit, B sends the newcomer first.
    assert first == [10.0, 8.0]


def test_nothing_is_known_before_the_first_completion():
    online = policy("gittins2d:learned=online")
    assert online.knows == frozenset()
    assert policy("gittins2d").knows == {Knowledge.DISTRIBUTION}
    assert LearnedDistribution().quantum_index([0.0, 5.0], 10.0).tolist() == [0.0, 0.0]


@given(instance=instances())
def test_without_completions_online_gittins_is_las(instance):
    """Up to the first completion both do the same."""
    schedules = [
        run(instance, policy(f"{name}:thresholds_gpu_s=3{more}")).schedule
        for name, more in (("las2d", ""), ("gittins2d", ",learned=online"))
    ]
    first = min((s.end_s.min() for s in schedules if len(s)), default=0.0)
    done = [
        sorted(
            (int(j), int(n), float(t))
            for j, n, t in zip(s.job, s.node, s.start_s, strict=True)
            if t < first
        )
        for s in schedules
    ]
    assert done[0] == done[1]


@given(
    before=st.lists(st.integers(1, 30), max_size=4),
    batches=st.lists(st.lists(st.integers(1, 30), max_size=90), max_size=8),
    attained=st.lists(st.integers(0, 35), min_size=1, max_size=5),
    quantum=st.integers(1, 40),
)
@settings(max_examples=35)
def test_learning_is_as_knowing(before, batches, attained, quantum):
    """What was learned piece by piece is the distribution of all of it."""
    learned = LearnedDistribution(ServiceDistribution(np.sort(np.array(before, float))))
    for batch in batches:
        learned.learn([float(value) for value in batch])
    everything = sorted([*before, *(value for batch in batches for value in batch)])
    assert len(learned) == len(everything)
    expected = [float(tiresias_gittins.quantum_index(everything, a, quantum)) for a in attained]
    found = learned.quantum_index(np.array(attained, float), float(quantum))
    assert found.tolist() == pytest.approx(expected, rel=1e-12)


def test_what_is_learned_is_measured_service():
    """A spread job takes longer, and that is what its service is; its restart charge is not."""
    workload = Workload.from_columns(
        arrival_s=[0, 0], gpus=[4, 4], work=[12, 12], model=["VGG19", "VGG19"]
    )
    instance = Instance(
        Cluster.parse("2x2,1x4"),
        workload,
        Overheads(start_s=5.0),
        locality=locality_of(workload),
    )
    noted = []

    class Noting(Gittins2d):
        def _distribution(self, state):
            found = super()._distribution(state)
            noted.append(found)
            return found

    ends(instance, Noting(learned="online"))
    samples = noted[-1]._recent.samples_gpu_s
    slow = 4 * 12 / locality_of(workload).spread_speed[0]
    assert samples.tolist() == pytest.approx([48.0, slow], abs=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("reading=C", "reading is 'C', expected one of A, B"),
        ("learned=never", "learned is 'never', expected one of workload, sample, online"),
        ("learned=sample", "no sample is given"),
        ("promote_knob=0", "promote_knob is 0.0, expected a number > 0"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(InputError, match=message):
        policy(f"gittins2d:{parameters}")


def test_a_sample_that_would_not_be_used_is_refused():
    with pytest.raises(InputError, match="expected sample or online"):
        Gittins2d(sample=ServiceDistribution(np.array([1.0])))


# Placement by skew.


def test_the_published_limit_separates_the_models():
    for limit in (0.15, 0.4, 0.59):
        chosen = {name for name, (share, _) in SHARE_AND_MB.items() if share > limit}
        assert chosen == {"VGG19", "VGG16", "VGG11", "AlexNet"}


def pieces_of(workload, cluster, name="skew"):
    allocator = placement(name).allocator(cluster, [0] * len(cluster.nodes))
    for model in workload.model.tolist():
        allocator.arrive_with(model)
    return [allocator.take(row, g, (0,)) for row, g in enumerate(workload.gpus.tolist())]


def test_skewed_models_get_whole_nodes_the_others_the_gaps():
    """So says the allocator, and so does the engine."""
    workload = Workload.from_columns(
        arrival_s=[0, 1, 2, 3, 4],
        gpus=[3, 2, 5, 4, 1],
        work=[1, 1, 1, 1, 1],
        model=["vgg-19", "ResNet50", "inception_3", "AlexNet", "GoogleNet"],
    )
    expected = [
        ((0, 3),),
        ((1, 2),),  # Fits no gap; not cut up.
        ((0, 1), (1, 2), (2, 2)),  # Wider than a node: the gaps first, and no second whole node.
        ((3, 4),),
        ((2, 1),),
    ]
    assert pieces_of(workload, Cluster.parse("4x4")) == expected
    instance = Instance(Cluster.parse("4x4"), replace(workload, work=np.full(5, 10.0)))
    done = run(instance, policy("las2d"), placement=placement("skew")).schedule
    rows = set(zip(done.job.tolist(), done.node.tolist(), done.gpus.tolist(), strict=True))
    assert rows == {(j, *piece) for j, pieces in enumerate(expected) for piece in pieces}


def test_a_skewed_gang_without_a_place_is_spread_or_waits():
    workload = Workload.from_columns(
        arrival_s=[0, 0, 1], gpus=[3, 3, 2], work=[10, 20, 5], model=["VGG16"] * 3
    )
    instance = Instance(Cluster.parse("2x4"), workload)
    assert ends(instance, "fifo", placement=placement("skew")).tolist() == [10.0, 20.0, 6.0]
    assert ends(instance, "fifo", placement=placement("skew-wait")).tolist() == [10.0, 20.0, 15.0]


@given(instance=instances(), name=st.sampled_from(["skew", "skew-wait"]), seed=st.integers(0, 9))
def test_any_mix_of_models_runs(instance, name, seed):
    rng = np.random.default_rng(seed)
    frame = instance.workload.to_frame()
    frame["model"] = rng.choice([*SHARE_AND_MB, "", "mine"], len(frame))
    mixed = Instance(instance.cluster, Workload.from_frame(frame))
    for chosen in ("las2d:thresholds_gpu_s=4", "gittins2d:thresholds_gpu_s=4,learned=online"):
        ends(mixed, chosen, placement=placement(name))


def test_placement_by_skew_loses_no_speed_of_skewed_models():
    """On the paper's mix, skewed models are spread less than by count, and total run time is shorter."""
    workload = testbed.generate(seed=1)
    locality = locality_of(workload)
    instance = Instance(Cluster.parse("15x4"), workload, locality=locality)
    run_time = {}
    for name in ("count", "skew"):
        done = run(instance, policy("las2d:thresholds_gpu_s=3200"), placement=placement(name))
        verify(instance, done.schedule)
        span = done.schedule.end_s - done.schedule.start_s
        run_time[name] = float((span * done.schedule.gpus).sum())
    assert run_time["skew"] < run_time["count"]


def test_speeds_are_between_the_published_gain_and_one():
    table = published_skews()
    assert table.entry("VGG11").spread_speed == pytest.approx(1 / 1.67)
    assert all(1 / 1.68 < model.spread_speed < 1 for model in table.models.values())


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_a_table_of_ones_own(tmp_path, ending):
    file = tmp_path / f"table.{ending}"
    file.write_text(
        '{"models": {"Mine": {"skew": 0.5, "spread_speed": 0.25}}, "default": {"skew": 0, "spread_speed": 1}}'
        if ending == "json"
        else "[models]\nMine = {skew = 0.5, spread_speed = 0.25}\n[default]\nskew = 0\nspread_speed = 1\n"
    )
    table = ModelSkews.load(file)
    workload = Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[1, 1], model=["mine", "other"]
    )
    assert locality_of(workload, table).spread_speed.tolist() == [0.25, 1.0]
    assert [Skew(skews=table).consolidates(each) for each in workload.model] == [True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"models": {"a": {"skew": 2, "spread_speed": 1}}}',
            r"'a'\]: skew is 2.0, expected a share",
        ),
        ('{"models": {"a": {"skew": 0, "spread_speed": 0}}}', "expected 0 < s <= 1"),
        ('{"models": {"a": {"skew": 0, "spread_speed": "x"}}}', "'x', expected a number"),
        ('{"models": {"a": {"skew": 0}}}', "has no spread_speed, expected skew, spread_speed"),
        (
            '{"models": {"a-1": {"skew": 0, "spread_speed": 1}, "A1": {"skew": 0, "spread_speed": 1}}}',
            "listed twice",
        ),
        ('{"models": {}, "more": 1}', "unknown key 'more'; did you mean 'models'"),
        ("[]", r"is \[\], expected a mapping with models"),
        ("{", "Expecting property name"),
    ],
)
def test_a_bad_table_is_named(tmp_path, text, message):
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        ModelSkews.load(file)
    assert "bad.json" in str(caught.value)


def test_an_unknown_model_is_named():
    workload = Workload.from_columns(id=["j"], arrival_s=[0], gpus=[1], work=[1], model=["Mine"])
    with pytest.raises(InputError, match="job 'j' has model 'Mine'"):
        locality_of(workload)
    with pytest.raises(InputError, match="no such file"):
        ModelSkews.load("nowhere.json")
    with pytest.raises(InputError, match=r"expected \.json or \.toml"):
        ModelSkews.load("table.csv")
    with pytest.raises(InputError, match="expected a share"):
        Skew(pack_limit=1.5)
    with pytest.raises(InputError, match="spread_speed"):
        ModelSkew(0.5, 1.5)


# The programme of the appendix.


def all_placements(job):
    for workers in itertools.product(*(range(g + 1) for g in job.free)):
        if sum(workers) == job.workers:
            for servers in itertools.product(range(len(job.free)), repeat=len(job.shards)):
                yield workers, servers


@st.composite
def server_jobs(draw):
    nodes = draw(st.integers(1, 3))
    free = tuple(draw(st.lists(st.integers(0, 3), min_size=nodes, max_size=nodes)))
    if not sum(free):
        free = (1, *free[1:])
    return tiresias.ServerJob(
        draw(st.integers(1, sum(free))),
        tuple(draw(st.lists(st.integers(0, 9).map(float), min_size=1, max_size=3))),
        free,
        tuple(draw(st.lists(st.integers(0, 20).map(float), min_size=nodes, max_size=nodes))),
    )


@pytest.mark.filterwarnings("ignore::shadowprice.solvers.programs.compile.SolverWarning")
@example(job=tiresias.ServerJob(2, (1.0,), (0, 1, 1), (0.0, 0.0, 20.0)))
@given(job=server_jobs())
@settings(max_examples=25, deadline=None)
def test_the_programme_finds_the_best_placement(job):
    best = min(job.busiest(*chosen) for chosen in all_placements(job))
    solution = compile_model(tiresias.build(job)).solve(SolverOptions(absolute_gap=1e-6))
    assert solution.objective == pytest.approx(best, abs=1e-5)


def test_bad_jobs_of_the_programme_are_named():
    for job, message in (
        ((3, (1.0,), (1, 1), (0.0, 0.0)), "room for all"),
        ((1, (1.0,), (1, 1), (0.0,)), "expected as many"),
        ((1, (-1.0,), (1,), (0.0,)), "sizes >= 0"),
    ):
        with pytest.raises(InputError, match=message):
            tiresias.ServerJob(*job)


# Theorems.

WORKS = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@given(work=WORKS, capacity=st.integers(1, 4))
def test_continuous_las_is_within_two_of_the_optimum(work, capacity):
    exact = [Fraction(p) for p in work]
    total = sum(tiresias_las.continuous_completions(exact, capacity))
    best = tiresias_las.optimum(exact, capacity)
    assert total <= tiresias_las.continuous_bound(exact, capacity) < 2 * best
    assert total >= best


def test_two_is_tight():
    jobs = [Fraction(1)] * 200
    ratio = sum(tiresias_las.continuous_completions(jobs, 1)) / tiresias_las.optimum(jobs, 1)
    assert ratio == Fraction(400, 201)


@given(work=WORKS, gpus=st.integers(1, 3))
@settings(max_examples=35)
def test_the_optimum_is_that_of_shortest_first(work, gpus):
    instance = on(f"1x{gpus}", arrival_s=[0] * len(work), gpus=[1] * len(work), work=work)
    assert sum(ends(instance, "sjf")) == tiresias_las.optimum([Fraction(p) for p in work], gpus)


@given(work=WORKS, gpus=st.integers(1, 3), quantum=st.integers(1, 6))
def test_las_with_a_quantum_respects_its_bounds(work, gpus, quantum):
    instance = on(f"1x{gpus}", arrival_s=[0] * len(work), gpus=[1] * len(work), work=work)
    done = ends(instance, f"las:quantum_s={quantum}")
    limits = tiresias_las.quantum_bounds(work, gpus, quantum)
    assert all(Fraction(end) <= limit for end, limit in zip(done, limits, strict=True))


@given(
    instance=instances(),
    name=st.sampled_from(["las2d", "gittins2d", "gittins2d:learned=online,reading=B"]),
    thresholds=st.sets(st.integers(1, 40), min_size=1, max_size=4).map(sorted),
)
def test_queues_respect_their_bounds(instance, name, thresholds):
    base, _, more = name.partition(":")
    limits = "/".join(map(str, thresholds))
    done = ends(instance, f"{base}:thresholds_gpu_s={limits}" + (f",{more}" if more else ""))
    assert tiresias_las.check(instance, [float(t) for t in thresholds], done)


def test_the_bound_of_queues_can_be_broken_by_others():
    """Not a bound of every policy: first come, first served makes a short job wait for a long one."""
    instance = on("1x1", arrival_s=[0, 0], gpus=[1, 1], work=[1000, 1])
    assert not tiresias_las.check(instance, [1.0], ends(instance, "fifo"))
    assert tiresias_las.check(instance, [1.0], ends(instance, "las2d:thresholds_gpu_s=1"))


@pytest.mark.parametrize("thresholds", ["60", "20/60", "20/40/60"])
@pytest.mark.parametrize("jobs", [2, 5, 9])
def test_the_family_without_a_constant(thresholds, jobs):
    """The engine runs the family as the closed form says, whatever the number of queues."""
    longest = 60 * jobs * jobs
    work = tiresias_las.family(jobs, 60, longest)
    instance = on("1x1", arrival_s=[0] * jobs, gpus=[1] * jobs, work=work)
    total = Fraction(sum(ends(instance, f"las2d:thresholds_gpu_s={thresholds}")))
    best = tiresias_las.optimum([Fraction(p) for p in work], 1)
    assert total / best == tiresias_las.family_ratio(jobs, 60, longest)


def test_the_family_exceeds_any_constant():
    ratios = [tiresias_las.family_ratio(n, 60, 60 * n**3) for n in (10, 100, 1000)]
    assert ratios[0] > 8
    assert ratios[1] > 98
    assert ratios[2] > 998


@given(
    gangs=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4),
    capacity=st.integers(4, 5),
)
@settings(max_examples=35, deadline=None)
def test_gangs_are_within_their_factor(gangs, capacity):
    gang, work = zip(*gangs, strict=True)
    found = tiresias_las.GangInstance(capacity, gang, work)
    best = found.slotted_optimum()
    las = found.las(16)
    # Every job may be passed by a part of a slot of each other: that is the limit's remainder.
    slack = Fraction(sum(gang) * len(gang), 16)
    assert las <= tiresias_las.gang_factor(capacity, max(gang)) * best + slack
    instance = on(f"1x{capacity}", arrival_s=[0] * len(gang), gpus=gang, work=work)
    assert lb_fluid.check(instance, float(best))


@pytest.mark.parametrize(("capacity", "wide"), [(8, 4), (18, 6), (32, 8)])
def test_no_constant_for_gangs_on_clusters_of_any_size(capacity, wide):
    found = tiresias_las.gang_family(capacity, wide)
    floor = tiresias_las.gang_family_floor(capacity, wide)
    best = Fraction(wide * (wide + 1), 2) + wide + capacity
    assert found.las(4) >= wide * (capacity - Fraction(1, 4))
    assert found.las(16) / best >= floor * Fraction(99, 100)
    assert floor < tiresias_las.gang_factor(capacity, capacity)


def test_the_family_of_gangs_exceeds_any_constant():
    assert tiresias_las.gang_family_floor(2 * 100**2, 200) > 98


def test_the_worst_gangs_found():
    worst = tiresias_las.WORST_GANGS
    ratio = worst.las(8) / worst.slotted_optimum()
    assert ratio == tiresias_las.WORST_RATIO
    assert ratio < tiresias_las.gang_factor(worst.capacity, max(worst.gang))


@given(
    samples=st.lists(st.integers(1, 40), min_size=1, max_size=8).map(sorted),
    attained=st.fractions(0, 45, max_denominator=4),
    quanta=st.lists(st.fractions(Fraction(1, 8), 60, max_denominator=8), max_size=20),
)
def test_the_scan_is_the_supremum(samples, attained, quanta):
    found = tiresias_gittins.scan(samples, attained)
    every = [*quanta, *(s - attained for s in samples if s > attained)]
    values = [tiresias_gittins.quantum_index(samples, attained, d) for d in every]
    assert found == max([Fraction(0), *values])
    floating = ServiceDistribution(np.array(samples, float)).index(float(attained))
    assert floating == pytest.approx(float(found), rel=1e-12)


@given(
    samples=st.lists(st.integers(1, 30), min_size=1, max_size=14).map(sorted),
    attained=st.lists(st.integers(0, 32), min_size=1, max_size=9),
)
def test_the_index_is_attained_where_it_is_said(samples, attained):
    """At the least sample that attains it; nowhere beyond the largest."""
    index, until = ServiceDistribution(np.array(samples, float)).index_until(attained)
    for a, found, end in zip(attained, index.tolist(), until.tolist(), strict=True):
        best = tiresias_gittins.scan(samples, a)
        assert found == pytest.approx(float(best), rel=1e-12)
        ends = [s for s in samples if s > a]
        first = [s for s in ends if tiresias_gittins.quantum_index(samples, a, s - a) == best]
        assert end == (min(first) if ends else np.inf)


@given(q=st.fractions(0, Fraction(99, 100), max_denominator=100), quantum=st.integers(1, 30))
def test_geometric_service_has_a_constant_index(q, quantum):
    assert tiresias_gittins.geometric_index(q, quantum) == 1 - q


def test_exponential_service_has_a_constant_index():
    """Quantiles of an exponential law of rate 1/100; near the end of the sample it is coarse."""
    n = 200_000
    samples = -100.0 * np.log1p(-(np.arange(n) + 0.5) / n)
    found = ServiceDistribution(samples).quantum_index(
        np.array([0.0, 50.0, 200.0])[:, None], np.array([1.0, 30.0, 300.0])
    )
    assert found == pytest.approx(np.full((3, 3), 0.01), rel=2e-3)


DISTRIBUTIONS = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(lambda s: tuple(sorted(s)))


@given(jobs=st.lists(DISTRIBUTIONS, min_size=1, max_size=3).map(tuple))
@settings(max_examples=35, deadline=None)
def test_the_index_rule_is_the_best_that_does_not_see_the_future(jobs):
    assert tiresias_gittins.check(jobs, tiresias_gittins.bound(jobs))
