"""Speeds by CPUs and memory, spreading and width: engine and verifier, each on its own."""

import json
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.metrics import preemptions
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import load, save
from shadowprice.errors import InputError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.clusters.node_sizes import fewest_nodes
from shadowprice.instances.documents.written_instance import read_written, written
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.effect import NO_FIELDS
from shadowprice.instances.terms.spread import Locality, SpreadFactor
from shadowprice.instances.terms.widths import Elasticity, Growth, WidthFactor
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.policy import Decision, Knowledge
from support.conditioned_jobs import CLUSTER, FLAT, PROFILE, Restless


@st.composite
def conditioned(draw):
    n = draw(st.integers(1, 6))
    gpus = np.array(draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)))
    workload = Workload.from_columns(
        arrival_s=draw(st.lists(st.integers(0, 20), min_size=n, max_size=n)),
        gpus=gpus,
        work=draw(st.lists(st.integers(1, 30), min_size=n, max_size=n)),
    )
    parts = draw(st.sampled_from(["s", "l", "e", "sl", "le", "sle"]))
    sensitivity = Sensitivity((PROFILE, FLAT), np.arange(n) % 2) if "s" in parts else None
    locality = Locality(np.linspace(0.3, 1.0, n)) if "l" in parts else None
    elasticity = None
    if "e" in parts:
        elasticity = Elasticity(np.minimum(workload.gpus * 2, 12), np.full(n, 0.9))
    charges = draw(st.sampled_from([Overheads(), Overheads(1.0, 2.0, 4.0)]))
    return Instance(
        CLUSTER,
        workload,
        charges,
        sensitivity=sensitivity,
        locality=locality,
        elasticity=elasticity,
    )


@settings(max_examples=90)
@given(conditioned(), st.integers(0, 1000))
def test_the_engine_does_what_the_verifier_expects(instance, seed):
    done = run(instance, Restless(seed)).schedule
    verify(instance, done)
    assert (done.cpus is not None) == (instance.sensitivity is not None)


@settings(max_examples=35)
@given(conditioned(), st.integers(0, 1000), st.data())
def test_a_changed_row_is_found(instance, seed, data):
    done = run(instance, Restless(seed)).schedule
    row = data.draw(st.integers(0, len(done) - 1))
    columns = ["gpus", "end_s"]
    if done.cpus is not None:
        columns += ["cpus", "memory_gb"]
    column = data.draw(st.sampled_from(columns))
    values = getattr(done, column).copy()
    # More than any node has; one GPU more is too much for a gang that cannot grow.
    rigid = instance.elasticity is None
    values[row] += 1 if column == "gpus" and rigid else 50
    changed = replace(done, **{column: values})
    with pytest.raises(Violation):
        verify(instance, changed)


def test_less_cpus_take_longer():
    workload = Workload.from_columns(arrival_s=[0], gpus=[2], work=[100])
    instance = Instance(
        CLUSTER,
        workload,
        sensitivity=Sensitivity((PROFILE,), np.zeros(1, dtype=np.int64)),
    )
    assert instance.shortest_s.tolist() == [50.0]

    @dataclass(frozen=True)
    class Give:
        cpus: float
        name: str = "give"
        knows: ClassVar[frozenset[Knowledge]] = frozenset()
        preemptive: ClassVar[bool] = False

        def decide(self, state):
            decision = Decision(state)
            for job in list(state.waiting):
                decision.start_at(job, ((0, 2),), ((self.cpus, 20.0),))
            return decision

    ends = [run(instance, Give(cpus)).schedule.end_s[0] for cpus in (12.0, 6.0, 5.9, 2.0)]
    assert ends == [50.0, 100.0, 200.0, 200.0]
    schedule = run(instance, Give(6.0)).schedule
    for name, values, rule in (
        ("cpus", [12.0], "work"),
        ("cpus", [1.0], "resources"),
        ("cpus", [12.1], "resources"),
        ("memory_gb", [np.nan], "memory_gb is nan, expected a number >= 0"),
        ("memory_gb", [-1.0], "memory_gb is -1.0, expected a number >= 0"),
        ("cpus", [np.nan], "cpus is nan, expected a number >= 0"),
        ("cpus", [np.inf], "cpus is inf, expected a number >= 0"),
        ("memory_gb", None, "resources"),
    ):
        changed = replace(schedule, **{name: None if values is None else np.array(values)})
        with pytest.raises(VerificationError, match=rule):
            verify(instance, changed)


def test_more_cpus_in_place_are_no_restart():
    workload = Workload.from_columns(arrival_s=[0], gpus=[2], work=[100])
    profiles = Sensitivity((PROFILE,), np.zeros(1, dtype=np.int64))
    charges = Overheads(start_s=1.0, restart_s=8.0, migration_s=16.0)
    instance = Instance(CLUSTER, workload, charges, sensitivity=profiles)

    @dataclass(frozen=True)
    class More:
        name: str = "more"
        knows: ClassVar[frozenset[Knowledge]] = frozenset()
        preemptive: ClassVar[bool] = True

        def decide(self, state):
            decision = Decision(state)
            if state.waiting:
                decision.start_at(0, ((1, 2),))
                decision.wake_at(41.0)
            elif state.running and state.now_s == 41.0:
                assert state.live().rate.tolist() == [1.0]
                assert state.cpu_memory_of == {0: ((6.0, 20.0),)}
                decision.adjust(0, ((12.0, 20.0),))
            return decision

    schedule = run(instance, More()).schedule
    verify(instance, schedule)
    # 1 s of start, 40 s at speed 1, the rest at speed 2.
    assert schedule.end_s.tolist() == [41.0, 71.0]
    assert schedule.overhead_s.tolist() == [1.0, 0.0]
    assert preemptions(instance, schedule).tolist() == [0]


def test_spread_gangs_are_slower():
    assert fewest_nodes(Cluster.parse("1x4,2x2")).tolist() == [0, 1, 1, 1, 1, 2, 2, 3, 3]
    term = SpreadFactor([0.5], fewest_nodes(CLUSTER).tolist())
    assert term.speed(0, ((0, 4),), NO_FIELDS) == 1.0
    assert term.speed(0, ((0, 2), (1, 2)), NO_FIELDS) == 0.5


def test_cores_are_never_spread():
    cluster = Cluster((Node(1), Node(3, gpu_type="cores"), Node(2, gpu_type="cores")))
    jobs = Workload.from_columns(arrival_s=[0, 0], work=8, gpus=[1, 5], allowed_types=["", "cores"])
    half = Locality(np.array([0.5, 0.5]))
    assert half.of(jobs).tolist() == [0.5, 1.0]
    # A gang of more cores than the cluster has GPUs.
    (factor,) = Instance(cluster, jobs, locality=half).effects
    assert isinstance(factor, SpreadFactor)
    assert factor.speed(1, ((1, 3), (2, 2)), NO_FIELDS) == 1.0


def test_wider_gangs_are_faster():
    term = WidthFactor(Elasticity(np.array([4]), np.array([0.75])), [1])
    assert term.speed(0, ((0, 4),), NO_FIELDS) == pytest.approx(2.25)
    with pytest.raises(InputError, match="holds 5 GPUs, expected 1 to 4"):
        term.speed(0, ((0, 4), (1, 1)), NO_FIELDS)


def test_bad_profiles_are_reported():
    axis = np.array([1.0, 2.0])
    with pytest.raises(InputError, match=r"res18: speed with 2 CPUs and 1 GB .* is 0\.5, expected"):
        Profile(axis, axis, np.array([[1.0, 1.0], [0.5, 1.0]]), "res18")
    with pytest.raises(InputError, match="missing"):
        Profile(axis, axis, np.array([[1.0, np.nan], [1.0, 1.0]]))
    with pytest.raises(InputError, match="every speed is 0"):
        Profile(axis, axis, np.zeros((2, 2)))
    with pytest.raises(InputError, match="shape"):
        Profile(axis, axis, np.ones((2, 3)))
    with pytest.raises(InputError, match="increasing"):
        Profile(np.array([2.0, 2.0]), axis, np.ones((2, 2)))


def test_conditions_that_do_not_belong_are_refused():
    workload = Workload.from_columns(arrival_s=[0], gpus=[2], work=[10])
    profiles = Sensitivity((PROFILE,), np.zeros(1, dtype=np.int64))
    with pytest.raises(InputError, match="need both"):
        Instance(Cluster.parse("2x4"), workload, sensitivity=profiles)
    with pytest.raises(InputError, match="2 speeds of spread"):
        Instance(CLUSTER, workload, locality=Locality(np.ones(2)))
    wide = Elasticity(np.array([1]), np.array([1.0]))
    with pytest.raises(InputError, match="no less than its gang"):
        Instance(CLUSTER, workload, elasticity=wide)
    with pytest.raises(InputError, match="expected 0 < s <= 1"):
        Locality(np.array([0.0]))


@settings(max_examples=12, deadline=None)
@given(instance=conditioned(), seed=st.integers(0, 100))
def test_run_directories_keep_conditions(tmp_path_factory, instance, seed):
    directory = tmp_path_factory.mktemp("run")
    done = run(instance, Restless(seed)).schedule
    save(Outcome.verified(instance, done, policy="restless"), directory)
    again = load(directory)
    assert again.schedule.to_frame().equals(done.to_frame())
    assert written(again.instance) == written(instance)


@pytest.mark.parametrize(
    "text",
    [
        '{"speed": 1}',
        '{"conditions": {}}',
        '{"locality": [1]}',
        '{"sensitivity": {"profiles": [], "of": [1.5]}}',
        '{"locality": {"spread_speed": ["x"]}}',
        '{"elasticity": "x"}',
    ],
)
def test_other_conditions_are_refused(text):
    with pytest.raises(InputError, match="file"):
        read_written({"cluster": [{"count": 1, "gpus": 1}], **json.loads(text)}, "file")


def test_growth_is_up_to_the_widest_and_within_a_node() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0, 0], gpus=[1, 4, 8], work=[1, 1, 1])
    assert Growth(4).of(jobs, Cluster.parse("2x8")).widest.tolist() == [4, 4, 8]
    assert Growth(16).of(jobs, Cluster.parse("2x8")).widest.tolist() == [8, 8, 8]


def test_parts_of_conditions_are_checked_and_cannot_be_changed() -> None:
    for efficiency in (0.5, 0.4, 1.01, math.nan):
        with pytest.raises(
            InputError, match=r"the efficiency of job 1 is .* expected 1/2 < e <= 1"
        ):
            Elasticity(np.array([2, 2]), np.array([0.9, efficiency]))
    for speed in (0.0, -1.0, 1.01, math.nan):
        with pytest.raises(InputError, match="the speed of job 1 when spread"):
            Locality(np.array([0.5, speed]))
    elastic = Elasticity(np.array([2]), np.array([0.9]))
    for column in (elastic.widest, elastic.efficiency, Locality(np.array([0.5])).spread_speed):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
