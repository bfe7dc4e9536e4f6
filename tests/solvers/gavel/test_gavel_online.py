"""Gavel's policies online: rounds, sharing, ideal execution, the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.allocation_file import problem_of
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.instances.traces import load_trace
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.gavel.explain import explain
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.registry import allocation
from shadowprice.studies.presets.gavel.simulator import simulate_gavel
from support.allocation_policies import EVERY_POLICY
from support.command_line import CommandLine
from support.ideal_execution import run_fluid
from support.paths import SHARED

needs_shared = pytest.mark.skipif(
    not (SHARED / "golden" / "gavel").is_dir(), reason="reference data are not here"
)
TYPES = ("fast", "slow")
ONLINE = sorted(set(EVERY_POLICY) - {"allox", "pop"})


def table(slowdown: float = 0.6) -> sp.Throughputs:
    """Two kinds of jobs on two types; sharing costs each 40 % of its speed."""
    alone = {
        (model, gang): (rate * gang, slow * gang)
        for model, rate, slow in (("a", 4.0, 2.0), ("b", 3.0, 0.5))
        for gang in (1, 2)
    }
    together = {
        (name, one, other): (slowdown * alone[one][k], slowdown * alone[other][k])
        for k, name in enumerate(TYPES)
        for one in alone
        for other in alone
        if one[1] == other[1]
    }
    return sp.Throughputs(TYPES, alone, together)


RATES = table()


def workload(rows: list[tuple[float, int, str, float]], **columns: Any) -> sp.Workload:
    """Jobs (arrival_s, gpus, model, steps)."""
    arrival, gpus, model, work = (list(column) for column in zip(*rows, strict=True))
    return sp.Workload.from_columns(
        arrival_s=arrival,
        gpus=gpus,
        model=model,
        work=work,
        throughput=[RATES.rates(kind, gang) for kind, gang in zip(model, gpus, strict=True)],
        gpu_types=TYPES,
        **columns,
    )


jobs = st.lists(
    st.tuples(
        st.floats(0, 3000).map(round).map(float),
        st.sampled_from([1, 2]),
        st.sampled_from(["a", "b"]),
        st.integers(10, 20_000).map(float),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("name", ONLINE)
@settings(max_examples=2)
@given(rows=jobs)
def test_every_allocation_policy_makes_verified_schedules(name: str, rows: list[Any]) -> None:
    nodes = (sp.Node(2, "fast", price_per_hour=4.0), sp.Node(2, "slow", price_per_hour=1.0))
    outcome = sp.simulate(
        workload(rows), sp.Cluster(nodes), f"gavel:{name}", sp.RunOptions(sharing_rates=RATES)
    )
    assert np.isfinite(outcome.jct_s).all()


@given(rows=jobs)
def test_nobody_waits_beside_gpus_it_fits_on(rows: list[Any]) -> None:
    outcome = sp.simulate(workload(rows), "1x2:fast,1x2:slow", "gavel")
    schedule, arrivals = outcome.schedule, outcome.instance.workload.arrival_s
    first = outcome.jobs["first_start_s"].to_numpy()
    for job in np.flatnonzero(first > arrivals).tolist():
        now = arrivals[job]
        running = (schedule.start_s <= now) & (schedule.end_s > now)
        for node in (0, 1):
            free = 2 - schedule.gpus[running & (schedule.node == node)].sum()
            assert free < outcome.instance.workload.gpus[job]


def test_two_equal_jobs_take_turns() -> None:
    two = workload([(0.0, 1, "a", 40_000.0), (0.0, 1, "a", 40_000.0)])
    outcome = sp.simulate(two, "1x1:fast", "gavel:max_min_fairness:aware=true,round_s=100")
    # 10,000 s each, one GPU: both end within a round of the other, at the end.
    assert sorted(outcome.end_s) == [pytest.approx(19_900, abs=1), 20_000]


def test_weights_divide_the_time() -> None:
    two = workload([(0.0, 1, "a", 40_000.0), (0.0, 1, "a", 40_000.0)], weight=[3.0, 1.0])
    outcome = sp.simulate(two, "1x1:fast", "gavel:max_min_fairness:aware=true,round_s=10")
    # Three quarters of the time until the first has its 10,000 s.
    assert outcome.end_s[0] == pytest.approx(10_000 / 0.75, abs=40)


def test_types_go_to_those_whom_they_suit() -> None:
    # b is six times slower on the slow type, a only twice: b belongs on the fast one.
    two = workload([(0.0, 1, "a", 4_000.0), (0.0, 1, "b", 3_000.0)])
    aware = sp.simulate(two, "1x1:fast,1x1:slow", "gavel:max_sum_throughput:aware=true")
    kind = aware.schedule.node[aware.schedule.job == 1]
    assert set(kind.tolist()) == {0}


def test_sharing_pays_where_two_together_are_faster() -> None:
    two = workload([(0.0, 1, "a", 4_000.0), (0.0, 1, "a", 4_000.0)])
    options = sp.RunOptions(sharing_rates=RATES)
    alone = sp.simulate(two, "1x1:fast", "gavel:max_min_fairness:aware=true", options)
    shared = sp.simulate(two, "1x1:fast", "gavel:max_min_fairness:aware=true,packed=true", options)
    # 1,000 s each alone; together 1,000 / 0.6.
    assert alone.end_s.max() == 2_000
    assert shared.end_s.tolist() == pytest.approx([1_000 / 0.6] * 2)
    assert shared.summary()["utilization"] == pytest.approx(1.0)
    assert (shared.schedule.partner >= 0).all()


def test_policies_without_rates_of_pairs_do_not_share() -> None:
    two = workload([(0.0, 1, "a", 4_000.0), (0.0, 1, "a", 4_000.0)])
    outcome = sp.simulate(two, "1x1:fast", "gavel:max_min_fairness:aware=true,packed=true")
    assert (outcome.schedule.partner < 0).all()


def test_bounds_know_that_jobs_may_share() -> None:
    """Both jobs at 0.6 of their rate: GPUs do 1.2 times the work of one job alone."""
    two = workload([(0.0, 1, "a", 4_000.0), (0.0, 1, "a", 4_000.0)])
    options = sp.RunOptions(sharing_rates=RATES)
    names = ["gavel:max_min_fairness:aware=true,packed=true", "srtf"]
    packed, srtf = sp.compare(two, "1x1:fast", names, options=options).rows
    assert packed.holds_for.sharing
    assert packed.bound <= packed.cost == pytest.approx(2 * 1_000 / 0.6, abs=1e-5)
    assert srtf.optimum_s is None
    bound = sp.compare_utility(two, "1x1:fast", ["srtf"], options=options, budget_s=0.1).bound
    assert bound.of_class.endswith("in which no two jobs share a GPU")
    with pytest.raises(InputError, match="no bound of utilities: it lets jobs share GPUs"):
        sp.compare_utility(two, "1x1:fast", names, options=options, budget_s=0.1)


def test_gpus_without_types_are_one_type() -> None:
    plain = sp.Workload.from_columns(arrival_s=[0, 0, 5], gpus=[1, 2, 1], work=[10, 10, 10])
    outcome = sp.simulate(plain, "1x2", "gavel")
    assert outcome.summary()["verified"]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("gavel:nix", "allocation policy 'nix'"),
        ("gavel:isolated,round_s=0", "round_s is 0.0"),
        ("gavel:isolated,speed=1", "parameter 'speed=1'"),
        ("gavel:allox", "needs 2 GPUs; allox is for jobs of one GPU"),
    ],
)
def test_what_cannot_be_is_refused(policy: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sp.simulate(workload([(0.0, 2, "a", 10.0)]), "1x2:fast", policy)


def test_ideal_execution_by_hand() -> None:
    # Alone until 100 s, then half the GPU each, until the first has its 200 s of work at 300 s.
    two = workload([(0.0, 1, "a", 800.0), (100.0, 1, "a", 800.0)])
    instance = sp.Instance(sp.Cluster.parse("1x1:fast"), two)
    run = run_fluid(instance, "max_min_fairness:aware=true")
    assert run.end_s.tolist() == pytest.approx([300.0, 400.0])
    assert [period.throughput.tolist() for period in run.periods] == [
        pytest.approx(rates) for rates in ([4.0], [2.0, 2.0], [4.0])
    ]


@pytest.mark.parametrize(("price", "end_s"), [(1.5, 200.0), (3.0, 400.0)])
def test_ideal_execution_goes_by_the_prices_of_the_cluster(price: float, end_s: float) -> None:
    # Twice as fast: worth one and a half times the price of the slow GPU, not three times.
    nodes = (sp.Node(1, "fast", price_per_hour=price), sp.Node(1, "slow", price_per_hour=1.0))
    instance = sp.Instance(sp.Cluster(nodes), workload([(0.0, 1, "a", 800.0)]))
    assert run_fluid(instance, "min_cost:aware=true").end_s.tolist() == pytest.approx([end_s])


@given(rows=jobs, name=st.sampled_from(["water_filling:aware=true", "isolated"]))
def test_ideal_execution_does_all_the_work(rows: list[Any], name: str) -> None:
    instance = sp.Instance(sp.Cluster.parse("1x2:fast,1x2:slow"), workload(rows))
    run = run_fluid(instance, name)
    done = np.zeros(len(rows))
    for period in run.periods:
        done[period.jobs] += period.throughput * (period.end_s - period.start_s)
    assert done == pytest.approx(instance.workload.work, rel=1e-6)
    assert (run.jct_s >= instance.shortest_s - 2.0**-20).all()


def test_short_rounds_approach_ideal_execution() -> None:
    rng = np.random.default_rng(0)
    rows = [(0.0, 1, str(rng.choice(["a", "b"])), 20_000.0) for _ in range(8)]
    instance = sp.Instance(sp.Cluster.parse("1x2:fast,1x2:slow"), workload(rows))
    name = "water_filling:aware=true"
    ideal = run_fluid(instance, name).jct_s.mean()
    gaps = [
        abs(
            sp.simulate(
                instance.workload, instance.cluster, f"gavel:{name},round_s={length}"
            ).jct_s.mean()
            / ideal
            - 1
        )
        for length in (2000.0, 20.0)
    ]
    assert gaps[1] < min(gaps[0], 0.01)


@needs_shared
@pytest.mark.parametrize(
    ("group", "policy", "within"),
    [
        ("medium", "max_min_fairness_perf", 0.005),
        ("small", "max_min_fairness_perf", 0.005),
        ("artifact", "max_min_fairness_perf", 0.005),
        ("medium_servers", "max_min_fairness_perf", 0.005),
        ("medium", "max_min_fairness", 0.005),
        ("medium", "max_min_fairness_water_filling_perf", 0.005),
        ("medium", "finish_time_fairness_perf", 0.028),
        ("medium", "finish_time_fairness", 0.028),
        ("medium", "min_total_duration_perf", 0.028),
        ("medium", "min_total_duration", 0.028),
        ("medium", "max_sum_throughput_perf", 0.028),
        ("medium", "max_min_fairness_packed", 0.028),
    ],
)
def test_the_preset_with_programmes_is_within_the_spread_of_solvers(
    group: str, policy: str, within: float
) -> None:
    # Allocations are not unique: the peer moves by 0.5 % (20 jobs) to 2.8 % (96) with its solver.
    runs = json.loads((SHARED / "golden" / "gavel" / "simulations.json").read_text())["runs"]
    run = next(r for r in runs if r["group"] == group and r["policy"] == policy and "jct_s" in r)
    file = run.get("throughputs_file", "simulation_throughputs.json")
    rates = sp.load_throughputs(SHARED / "data" / "gavel" / f"{file}.xz")
    trace = SHARED / "data" / "gavel" / "traces" / Path(run["trace"]).name
    per_server = run.get("gpus_per_server") or dict.fromkeys(run["cluster"], 1)
    nodes = [
        f"{count // per_server[name]}x{per_server[name]}:{name}"
        for name, count in run["cluster"].items()
        if count
    ]
    instance = sp.Instance(
        sp.Cluster.parse(",".join(nodes)),
        load_trace(trace, throughputs=rates).workload,
        sharing_rates=rates,
    )
    found = simulate_gavel(instance, policy, seed=run["seed"])
    arrival = dict(zip(instance.workload.id, instance.workload.arrival_s, strict=True))
    mean = np.mean([end - arrival[name] for name, end in found.end_s.items()])
    assert mean == pytest.approx(run["avg_jct_s"], rel=within)


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capfd)


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(
        json.dumps(
            {
                "cluster": {"k80": 1, "v100": 1},
                "jobs": [
                    {"type": "x", "sf": 1, "w": 1, "steps": 10, "t0": 0, "tput": rates}
                    for rates in ([10.0, 40.0], [4.0, 12.0], [50.0, 100.0])
                ],
                "pairs": [{"jobs": [0, 1], "tput": [[0, 0], [20.0, 7.5]]}],
            }
        )
    )
    return path


def test_allocate_prints_what_it_promises(command: CommandLine, problem_file: Path) -> None:
    done = command(
        "allocate",
        "max_min_fairness:aware=true",
        str(problem_file),
        "--json",
        "--explain",
        "--solver",
        "highs-simplex",
    )
    assert done.returncode == 0
    report = json.loads(done.stdout)
    # The example of the paper, section 4.1.
    assert report["objective"] == pytest.approx(0.7272727272)
    assert report["bound"] == pytest.approx(report["objective"])
    assert (report["status"], report["verified"]) == ("optimal", True)
    assert report["gpu_types"] == ["k80", "v100"]
    assert [row[0] for row in report["allocation"]] == [0, 1, 2]
    assert len(report["effective_throughput"]) == len(report["explanation"]) == 3
    assert "v100 capacity, price" in report["explanation"][0]
    assert report["solve_s"] <= report["total_s"]


V100_FASTER = {
    "by name": {"v100": 40, "k80": 10},
    "by name, in another order": {"k80": 10, "v100": 40},
    "in the order of the cluster": [40, 10],
}


@pytest.mark.parametrize("rates", V100_FASTER.values(), ids=V100_FASTER)
def test_rates_are_of_the_types_that_the_file_says(rates: Any) -> None:
    """They were taken in the order of the alphabet: 40 steps/s went to the k80."""
    written = {"cluster": {"v100": 1, "k80": 2}, "jobs": [{"tput": rates}]}
    problem = problem_of(written)
    assert problem.gpu_types == ("v100", "k80")
    assert problem.capacity.tolist() == [1.0, 2.0]
    assert problem.throughput.tolist() == [[40.0, 10.0]]
    found = allocate(problem, "max_min_fairness:aware=true")
    assert found.effective_throughput.tolist() == pytest.approx([40.0])


def test_rates_of_pairs_and_of_placements_are_of_the_types_that_the_file_says() -> None:
    written: dict[str, Any] = {
        "cluster": {"v100": 4, "k80": 2},
        "placements": {"v100 spread": "v100", "a spread": "k80"},
        "jobs": [{"tput": [40, 10, 30, 5]}] * 2,
        "pairs": [{"jobs": [1, 0], "tput": [[1, 2], [3, 4], [5, 6], [7, 8]]}],
        "prices": {"k80": 1, "v100": 2},
    }
    listed = problem_of(written)
    assert listed.gpu_types == ("v100", "k80", "v100 spread", "a spread")
    assert listed.accelerators == (0, 1, 0, 1)
    assert listed.price.tolist() == [2, 1, 2, 1]
    assert listed.pairs.throughput_first.tolist() == [[2, 4, 6, 8]]
    both = {"a spread": [7, 8], "k80": [3, 4], "v100": [1, 2], "v100 spread": [5, 6]}
    named = problem_of(
        written
        | {
            "jobs": [{"tput": {"a spread": 5, "v100 spread": 30, "k80": 10, "v100": 40}}] * 2,
            "pairs": [{"jobs": [1, 0], "tput": both}],
        }
    )
    assert named.throughput.tolist() == listed.throughput.tolist()
    assert named.pairs.throughput_first.tolist() == listed.pairs.throughput_first.tolist()
    assert named.pairs.throughput_second.tolist() == listed.pairs.throughput_second.tolist()


def test_every_policy_explains_itself() -> None:
    """Policies that know no types have one price for the GPUs of all."""
    problem = AllocationProblem.from_columns(
        gpu_types=["a", "b", "c"],
        capacity=[1, 2, 1],
        throughput=[[3.0, 2.0, 1.0], [5.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 4.0, 2.0]] * 2,
        gpus=[1, 1, 1, 2] * 2,
        weight=[1.0] * 8,
        steps=[100.0] * 8,
    )
    said = {
        name: explain(allocation(name).allocate(problem, Workspace()))
        for name in EVERY_POLICY
        if name != "allox"
    }
    assert {len(sentences) for sentences in said.values()} == {len(problem)}
    assert any("all types' capacity, price" in each for each in said["max_min_fairness"])
    assert not any("all types'" in each for each in said["max_min_fairness:aware=true"])


def test_allocate_shares_listed_pairs(command: CommandLine, problem_file: Path) -> None:
    alone, packed = (
        json.loads(command("allocate", name, str(problem_file), "--json").stdout)
        for name in ("max_min_fairness:aware=true", "max_min_fairness:aware=true,packed=true")
    )
    assert packed["objective"] > alone["objective"]
    assert [0, 1] in [row[0] for row in packed["allocation"]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobs": [{"tput": [0.0, 0.0]}], "pairs": None}, "no throughput on any of k80, v100"),
        (
            {"jobs": [{"tput": [1.0]}]},
            "expected 2 rates, by type name or in the order of the file: k80, v100",
        ),
        ({"jobs": [{"tput": {"v100": 1.0}}]}, "jobs[0]: tput: has no k80"),
        ({"jobs": [{"tput": {"v100": 1.0, "k80": 1, "p100": 1}}]}, "unknown key 'p100'"),
        ({"placements": {"k80": "v100"}}, "placements['k80'] is a type of the cluster"),
        ({"jobs": [{"tput": [1.0, 1.0], "sf": 0}]}, "'gpus'"),
        ({"jobs": 3}, "jobs is 3, expected a list of objects"),
        ({"cluster": {"v100": -1}}, "cluster['v100'] is -1, expected a whole number of GPUs"),
        ({"pairs": "guess"}, "pairs is 'guess'"),
        ({"pairs": [{"jobs": [0, 0], "tput": [[1, 1], [1, 1]]}]}, "two different rows"),
        ({"colour": 1}, "unknown key 'colour'"),
    ],
)
def test_allocate_names_what_is_wrong(
    command: CommandLine, problem_file: Path, change: dict[str, Any], message: str
) -> None:
    problem_file.write_text(json.dumps(json.loads(problem_file.read_text()) | change))
    done = command("allocate", "max_min_fairness:aware=true", str(problem_file))
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr


def test_allocate_says_which_slos_and_gangs_cannot_be(
    command: CommandLine, problem_file: Path
) -> None:
    data = json.loads(problem_file.read_text())
    data["jobs"][0] |= {"slo_s": 0.1, "id": "late"}
    data["jobs"][1] |= {"sf": 4, "id": "wide"}
    data["pairs"] = None
    problem_file.write_text(json.dumps(data))
    done = command(
        "allocate",
        "max_sum_throughput:aware=true,per_price=true,slos=true",
        str(problem_file),
        "--json",
    )
    notes = json.loads(done.stdout)["notes"]
    assert "'late': its SLO needs 100 steps/s and cannot be kept" in notes[0]
    assert "'wide': its gang of 4 GPUs fits on no type" in notes[1]
