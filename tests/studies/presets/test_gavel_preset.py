"""Gavel's simulator reproduced job by job, and the laws of its round mechanism."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from shadowprice.analysis.run_options import RunOptions
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, PolicyError
from shadowprice.instances.allocation_problem import AllocationProblem, Pairs
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.terms.window import JobWindow
from shadowprice.instances.traces.gavel import load
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.solvers.gavel.rounds import (
    Combinations,
    SelectedCombinations,
    deficits_after,
    fractions,
    priorities,
    select,
)
from shadowprice.studies.presets.gavel.policies import (
    POLICIES,
    Allocate,
    Allocation,
    PublishedFifo,
    PublishedPolicy,
    all_alike,
    as_on_reference,
    isolated,
)
from shadowprice.studies.presets.gavel.record import (
    GavelSimulation,
    GavelSimulationRound,
    RoundTask,
    schedule_of,
)
from shadowprice.studies.presets.gavel.rounds import Workers
from shadowprice.studies.presets.gavel.simulator import TYPE_ORDER, simulate_gavel
from support.paths import SHARED

GOLDEN, DATA = SHARED / "golden" / "gavel", SHARED / "data" / "gavel"
needs_gavel = pytest.mark.skipif(
    not (GOLDEN.is_dir() and DATA.is_dir()), reason="recorded runs of Gavel are not here"
)
TYPES = ("k80", "p100", "v100")


@cache
def recorded(file: str) -> dict[str, Any]:
    return json.loads((GOLDEN / file).read_text()) if GOLDEN.is_dir() else {}


@cache
def table(file: str = "simulation_throughputs.json") -> Throughputs:
    return load_throughputs(DATA / f"{file}.xz")


RUNS = recorded("simulations.json").get("runs", [])
WITHOUT_LP = [k for k, run in enumerate(RUNS) if run["policy"] in POLICIES]
LOGGED = [k for k, run in enumerate(RUNS) if "allocation_log" in run]


def name_of(k: int) -> str:
    return f"{RUNS[k]['policy']}-{RUNS[k]['group']}"


def instance_of(run: dict[str, Any]) -> Instance:
    rates = table(run.get("throughputs_file", "simulation_throughputs.json"))
    workload = load(DATA / "traces" / Path(run["trace"]).name, rates).workload
    server = run.get("gpus_per_server") or dict.fromkeys(TYPES, 1)
    nodes = [f"{n // server[k]}x{server[k]}:{k}" for k, n in run["cluster"].items() if n]
    return Instance(Cluster.parse(",".join(nodes)), workload, sharing_rates=rates)


@cache
def executed(k: int) -> tuple[Instance, GavelSimulation]:
    instance = instance_of(RUNS[k])
    return instance, simulate_gavel(instance, RUNS[k]["policy"], seed=RUNS[k]["seed"])


def log_of(instance: Instance, run: GavelSimulation) -> list[Any]:
    """The rounds as the peer's log has them."""
    types = sorted(instance.cluster.gpu_types)
    return [
        [
            each.start_s,
            [
                [instance.workload.id[task.key[0]], types[task.gpu_type], list(task.workers)]
                for task in each.tasks
            ],
        ]
        for each in run.rounds
    ]


@needs_gavel
@pytest.mark.parametrize("k", WITHOUT_LP, ids=name_of)
def test_every_job_ends_when_the_peer_says(k: int) -> None:
    _, run = executed(k)
    golden = RUNS[k]["end_time_s"]
    assert run.end_s.keys() == golden.keys()
    np.testing.assert_allclose(
        [run.end_s[job] for job in golden], list(golden.values()), rtol=0, atol=2e-3
    )
    assert not run.dropped


@needs_gavel
@pytest.mark.parametrize("k", WITHOUT_LP, ids=name_of)
def test_rounds_leases_and_busy_time_are_those_of_the_peer(k: int) -> None:
    instance, run = executed(k)
    golden = RUNS[k]
    assert sum(bool(each.tasks) for each in run.rounds) == golden["rounds"]
    assert run.allocations == golden["allocation_computations"]
    assert run.lease_extensions == golden["lease_extensions"]
    assert run.lease_opportunities == golden["lease_opportunities"]
    assert run.busy_gpu_s == pytest.approx(golden["busy_gpu_s"], rel=1e-9)
    assert run.clock_s == pytest.approx(golden["makespan_s"], rel=1e-9)
    whole = run.clock_s * instance.cluster.total_gpus
    assert run.busy_gpu_s / whole == pytest.approx(golden["utilization"], rel=1e-9)


@needs_gavel
@pytest.mark.parametrize("k", WITHOUT_LP, ids=name_of)
def test_schedules_are_verified(k: int) -> None:
    instance, run = executed(k)
    if (run.schedule.partner >= 0).any():
        # Two that share GPUs both hold them until the later has done its steps.
        with pytest.raises(Violation) as found:
            verify(instance, run.schedule)
        assert found.value.rule == "work"
    else:
        verify(instance, run.schedule)
    last = np.zeros(len(instance.workload))
    np.maximum.at(last, run.schedule.job, run.schedule.end_s)
    ends = [run.end_s[job] for job in instance.workload.id]
    # Exact work: up to a tick later for each round that ended with the job, and never earlier than that.
    np.testing.assert_allclose(last, ends, rtol=0, atol=2**-16)


@needs_gavel
def test_some_of_the_recorded_runs_share_gpus() -> None:
    shared = {RUNS[k]["policy"] for k in WITHOUT_LP if (executed(k)[1].schedule.partner >= 0).any()}
    assert shared == {"gandiva", "fifo_packed"}


def replay(log: Sequence[Mapping[str, ArrayLike]]) -> Allocate:
    """Allocations recorded elsewhere, one after the other: fractions by job id, 0 where absent.

    Pairs get nothing.

    Raises
    ------
    InputError
        When asked for one more than there are, or if a record has a job that is not there.
    """
    recorded = iter(log)

    def allocate(problem: AllocationProblem) -> Allocation:
        rows = next(recorded, None)
        if rows is None:
            raise InputError(f"recorded allocations: a run asks for more than the {len(log)} given")
        row = {name: k for k, name in enumerate(problem.id.tolist())}
        strange = [name for name in rows if name not in row]
        if strange:
            raise InputError(f"recorded allocations: job {strange[0]!r} is not there at that time")
        table = np.zeros((len(problem) + len(problem.pairs), len(problem.gpu_types)))
        for name, shares in rows.items():
            table[row[name]] = shares
        return table

    return allocate


# The log has nine digits. Jobs that got less than half of the last one compete for left-over GPUs
# by what is lost; these are amounts, in order, that give the order of the peer.
LOST_DIGITS: dict[str, dict[str, list[float]]] = {
    "max_min_fairness_perf": {"10": [4e-10, 0.0, 0.0]},
    "finish_time_fairness_perf": {
        "6": [0.0, 4.9e-10, 0.0],
        "19": [0.0, 4e-10, 0.0],
        "10": [0.0, 3e-10, 0.0],
    },
}


@needs_gavel
@pytest.mark.parametrize("k", LOGGED, ids=name_of)
def test_logged_allocations_give_the_logged_rounds(k: int) -> None:
    golden = RUNS[k]
    log = [{job: np.array(x) for job, x in rows} for _, rows in golden["allocation_log"]]
    for job, lost in LOST_DIGITS.get(golden["policy"], {}).items():
        with_digits = log[-1][job] + lost
        np.testing.assert_array_equal(np.round(with_digits, 9), log[-1][job])
        log[-1][job] = with_digits
    peer = PublishedPolicy(
        golden["policy"],
        replay(log),
        shuffles=golden["policy"] == "isolated",
        only_positive=golden["policy"].startswith("fifo"),
    )
    instance = instance_of(golden)
    run = simulate_gavel(instance, peer, seed=golden["seed"])
    assert log_of(instance, run) == golden["round_log"]
    for job, end_s in golden["end_time_s"].items():
        assert run.end_s[job] == pytest.approx(end_s, abs=2e-3)


def problem_of(name: str, active: list[int] | None = None) -> AllocationProblem:
    given = recorded("policies.json")["inputs"][name]
    jobs = given["jobs"]
    ids = list(range(len(jobs))) if active is None else active
    kind = [(jobs[k]["type"], jobs[k]["sf"]) for k in ids]
    ends = [
        (a, b)
        for b in range(len(ids))
        for a in range(b)
        if given["pairs"] and kind[a][1] == kind[b][1]
    ]
    rates = [[table().pair(t, kind[a], kind[b]) or (0, 0) for t in TYPES] for a, b in ends]
    both = np.array(rates, dtype=float).reshape(-1, 3, 2)
    first, second = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    return AllocationProblem.from_columns(
        gpu_types=TYPES,
        capacity=[given["cluster"][t] for t in TYPES],
        throughput=[jobs[k]["tput"] for k in ids],
        gpus=[jobs[k]["sf"] for k in ids],
        steps=[jobs[k]["steps"] for k in ids],
        elapsed_s=[jobs[k]["t0"] for k in ids],
        id=[str(k) for k in ids],
        pairs=Pairs(first, second, both[..., 0], both[..., 1]),
    )


def compare(case: dict[str, Any], problem: AllocationProblem, x: NDArray[np.float64]) -> None:
    ends = zip(problem.pairs.first.tolist(), problem.pairs.second.tolist(), strict=True)
    ids = problem.id.tolist()
    names: list[Any] = [int(name) for name in ids] + [(int(ids[a]), int(ids[b])) for a, b in ends]
    golden = {tuple(k) if isinstance(k, list) else k: row for k, row in case["allocation"]}
    for name, row in zip(names, x, strict=True):
        np.testing.assert_allclose(row, golden.get(name, [0.0] * 3), atol=1e-5, err_msg=str(name))
    assert set(golden) <= set(names)


CASES = [
    k
    for k, case in enumerate(recorded("policies.json").get("cases", []))
    if case["policy"] in POLICIES and case["allocation"]
]
ONCE = [k for k in CASES if "call" not in recorded("policies.json")["cases"][k]]
SERIES = sorted(
    {
        (case["input"], case["policy"])
        for case in (recorded("policies.json")["cases"][k] for k in CASES)
        if "call" in case
    }
)


def case_name(k: int) -> str:
    case = recorded("policies.json")["cases"][k]
    return f"{case['policy']}-{case['input']}"


@needs_gavel
@pytest.mark.parametrize("k", ONCE, ids=case_name)
def test_one_allocation_is_that_of_the_peer(k: int) -> None:
    case = recorded("policies.json")["cases"][k]
    problem = problem_of(case["input"])
    seed = (case.get("params") or {}).get("seed", 0)
    compare(case, problem, POLICIES[case["policy"]](seed).allocate(problem))


@needs_gavel
@pytest.mark.parametrize(("given_input", "policy"), SERIES)
def test_allocations_of_a_policy_that_remembers(given_input: str, policy: str) -> None:
    peer = POLICIES[policy](0)
    for case in recorded("policies.json")["cases"]:
        if (case["input"], case["policy"]) == (given_input, policy) and "call" in case:
            problem = problem_of(given_input, case["call"]["active"])
            compare(case, problem, peer.allocate(problem))


def small(
    arrival_s: list[float],
    steps: list[float],
    cluster: str = "1x1:v100",
    gpus: list[int] | None = None,
    rate: float = 1.0,
) -> Instance:
    workload = Workload.from_columns(
        arrival_s=arrival_s,
        gpus=gpus or 1,
        work=steps,
        model="m",
        throughput=np.full((len(steps), 3), rate),
        gpu_types=TYPES,
    )
    return Instance(Cluster.parse(cluster), workload)


def starts(run: GavelSimulation, job: int) -> float:
    return min(each.start_s for each in run.rounds for task in each.tasks if job in task.key)


def test_late_arrivals_wait_for_the_next_allocation_beside_free_gpus() -> None:
    run = simulate_gavel(small([0, 500, 800, 1200], [9000] * 4, "1x4:v100"), "isolated")
    assert [starts(run, job) for job in range(4)] == [0.0, 720.0, 2880.0, 2880.0]


def test_an_idle_gap_counts_as_busy() -> None:
    run = simulate_gavel(small([0, 100_000], [600, 600]), "isolated")
    assert run.end_s == {"0": 600.0, "1": 100_600.0}
    assert run.busy_gpu_s == run.clock_s == 100_600.0


def test_a_round_lasts_until_its_last_task_ends() -> None:
    run = simulate_gavel(small([0, 0, 0], [10, 360, 5], "1x2:v100"), "fifo_perf")
    # The GPU of the first job idles until the round ends.
    assert run.end_s == {"0": 10.0, "1": 360.0, "2": 365.0}
    assert [each.start_s for each in run.rounds] == [0.0, 360.0, 365.0]


def test_a_job_that_is_never_chosen_is_an_error_not_an_endless_loop() -> None:
    def nobody(problem: AllocationProblem) -> NDArray[np.float64]:
        return np.zeros((len(problem), len(problem.gpu_types)))

    with pytest.raises(PolicyError, match="waiting for ever"):
        simulate_gavel(small([0], [10]), PublishedPolicy("nobody", nobody, only_positive=True))


@pytest.mark.parametrize("table", [np.zeros((2, 1)), np.zeros((1, 3)), np.full((1, 1), np.nan)])
def test_an_allocation_that_is_none_is_refused(table: NDArray[np.float64]) -> None:
    with pytest.raises(PolicyError, match=r"expected finite fractions of shape \(1, 1\)"):
        simulate_gavel(small([0], [10]), PublishedPolicy("none", lambda problem: table))


def test_records_that_do_not_fit_a_run_are_refused() -> None:
    with pytest.raises(InputError, match="more than the 0 given"):
        simulate_gavel(small([0], [10]), PublishedPolicy("replay", replay([])))
    with pytest.raises(InputError, match="'7' is not there"):
        simulate_gavel(small([0], [10]), PublishedPolicy("replay", replay([{"7": [1.0]}])))


def test_a_pair_that_never_does_a_step_is_an_error_not_an_endless_loop() -> None:
    def together(problem: AllocationProblem) -> NDArray[np.float64]:
        return np.concatenate((np.zeros((2, 1)), np.ones((1, 1))))

    instance = small([0, 0], [10, 10])
    crawl = {("v100", ("m", 1), ("m", 1)): (1e-3, 1e-3)}
    rates = Throughputs(("v100",), {("m", 1): (1.0,)}, crawl)
    slow = Instance(instance.cluster, instance.workload, sharing_rates=rates)
    with pytest.raises(PolicyError, match="waiting for ever"):
        simulate_gavel(slow, PublishedPolicy("together", together, pairs=True))


def test_a_job_too_slow_for_a_step_a_round_is_dropped_after_five_rounds() -> None:
    run = simulate_gavel(small([0, 0], [10, 9000], "1x2:v100", rate=1.0), "isolated")
    assert not run.dropped
    slow = simulate_gavel(small([0], [1], rate=1 / 400), "isolated")
    assert slow.dropped == ("0",)
    assert not slow.end_s
    assert len(slow.rounds) == 6
    # Two workers of a gang cannot divide one step, however fast they are.
    gang = simulate_gavel(small([0], [1], "1x2:v100", gpus=[2]), "isolated")
    assert gang.dropped == ("0",)


def test_the_time_in_isolation_is_kept_for_the_policy() -> None:
    seen: list[AllocationProblem] = []

    def watch(problem: AllocationProblem) -> NDArray[np.float64]:
        seen.append(problem)
        return isolated(problem)

    simulate_gavel(small([0, 100], [400, 5000]), PublishedPolicy("watch", watch))
    assert [problem.id.tolist() for problem in seen] == [["0"], ["0", "1"], ["1"]]
    assert seen[0].isolated_s.tolist() == [0.0]
    # Alone until the second job came; from there on each has half of the only GPU.
    assert seen[1].isolated_s.tolist() == [360.0, 0.0]
    assert seen[1].elapsed_s.tolist() == [360.0, 260.0]
    done = 5000.0 - seen[2].steps[0]
    assert done > 0
    assert seen[2].isolated_s.tolist() == [2.0 * done]


def test_fifo_hands_types_on_in_order_of_arrival() -> None:
    def problem(ids: list[str], rates: list[list[float]]) -> AllocationProblem:
        return AllocationProblem.from_columns(
            gpu_types=("a", "b"), capacity=[1, 1], throughput=rates, id=ids
        )

    fifo = PublishedFifo(seed=0)
    two = problem(["0", "1"], [[1, 0], [1, 1]])
    # The first cannot run on the last type, is passed over, and comes second.
    assert fifo(two).tolist() == [[0, 0], [0, 1]]
    assert fifo(two).tolist() == [[1, 0], [0, 1]]
    # Both have ended: the new job takes the type of the one that came first.
    assert fifo(problem(["2"], [[1, 1]])).tolist() == [[1, 0]]


def test_what_a_policy_is_told_of_throughputs() -> None:
    rates = np.array([[1.0, 2.0, 3.0], [0.0, 5.0, 4.0]])
    np.testing.assert_array_equal(all_alike(rates, TYPES), np.ones((2, 3)))
    np.testing.assert_array_equal(as_on_reference(rates, TYPES), [[3.0] * 3, [4.0] * 3])
    with pytest.raises(InputError, match="v100"):
        as_on_reference(rates[:, :2], ("k80", "p100"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "srtf"}, "expected one of allox, fifo"),
        ({"policy": "gandiva"}, "rates of pairs"),
        ({"cluster": "1x1:a100"}, "'a100'"),
        ({"overheads": Overheads(start_s=1.0)}, "has charges for starts"),
        ({"policy": "allox", "gpus": [2], "cluster": "1x2:v100"}, "expected 1"),
    ],
)
def test_what_the_peer_cannot_do_is_refused(change: dict[str, Any], message: str) -> None:
    gpu_types = ("a100",) if "a100" in change.get("cluster", "") else TYPES
    workload = Workload.from_columns(
        arrival_s=[0],
        gpus=change.get("gpus", 1),
        work=[10],
        throughput=np.ones((1, len(gpu_types))),
        gpu_types=gpu_types,
    )
    cluster = Cluster.parse(change.get("cluster", "1x1:v100"))
    instance = Instance(cluster, workload, change.get("overheads", Overheads()))
    with pytest.raises(InputError, match=message):
        simulate_gavel(instance, change.get("policy", "isolated"))


def test_seconds_of_work_are_refused() -> None:
    workload = Workload.from_columns(arrival_s=[0], gpus=1, work=[10])
    with pytest.raises(InputError, match="throughputs"):
        simulate_gavel(Instance(Cluster.parse("1x1:v100"), workload), "isolated")


# The round mechanism.


def reference(
    rows: Combinations,
    keys: list[NDArray[np.float64]],
    capacity: list[int],
    order: list[int],
    one_queue: bool,
    only_positive: bool,
) -> list[tuple[int, int]]:
    """The selection, entry by entry."""
    left, taken, served = list(capacity), set(), []
    queues = [[(row, kind) for row in range(len(rows))] for kind in order]
    if one_queue:
        queues = [[entry for queue in queues for entry in queue]]
    for queue in queues:
        for row, kind in sorted(
            queue, key=lambda entry: tuple(key[entry] for key in keys), reverse=True
        ):
            jobs = {int(rows.first[row]), int(rows.second[row])}
            if not rows.runnable[row, kind] or (only_positive and keys[0][row, kind] <= 0):
                continue
            if jobs & taken or rows.gpus[row] > left[kind]:
                continue
            left[kind] -= int(rows.gpus[row])
            taken |= jobs
            served.append((row, kind))
    return served


@st.composite
def selections(draw: st.DrawFn) -> dict[str, Any]:
    jobs, types = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    gangs = draw(st.lists(st.sampled_from([1, 1, 2, 4]), min_size=jobs, max_size=jobs))
    pairs = [(a, b) for b in range(jobs) for a in range(b) if gangs[a] == gangs[b]]
    kept = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    ends = [(k, k) for k in range(jobs)] + kept
    first, second = np.array(ends, dtype=np.int64).T
    shape = (len(ends), types)
    cells = shape[0] * shape[1]

    def column(values: list[float]) -> NDArray[Any]:
        drawn = draw(st.lists(st.sampled_from(values), min_size=cells, max_size=cells))
        return np.array(drawn).reshape(shape)

    gpus = np.array(gangs, dtype=np.int64)[first]
    return {
        "rows": Combinations(first, second, gpus, column([True, True, False])),
        "keys": [column([0.0, 1.0, 2.0, -1.0]), column([0.0, 5.0]), column([0.0, 0.5])],
        "capacity": draw(st.lists(st.integers(0, 6), min_size=types, max_size=types)),
        "order": draw(st.permutations(range(types))),
        "one_queue": draw(st.booleans()),
        "only_positive": draw(st.booleans()),
    }


def chosen(case: dict[str, Any]) -> SelectedCombinations:
    return select(
        case["rows"],
        case["keys"],
        np.array(case["capacity"]),
        case["order"],
        one_queue=case["one_queue"],
        only_positive=case["only_positive"],
    )


@given(selections())
def test_selection_is_the_greedy_one(case: dict[str, Any]) -> None:
    got = chosen(case)
    assert list(zip(got.row.tolist(), got.gpu_type.tolist(), strict=True)) == reference(**case)


@given(selections())
def test_laws_of_the_selection(case: dict[str, Any]) -> None:
    got, rows = chosen(case), case["rows"]
    used = np.zeros(len(case["capacity"]), dtype=np.int64)
    np.add.at(used, got.gpu_type, rows.gpus[got.row])
    assert (used <= case["capacity"]).all()
    alone = rows.first[got.row] == rows.second[got.row]
    jobs = np.concatenate((rows.first[got.row], rows.second[got.row][~alone]))
    assert len(jobs) == len(set(jobs.tolist()))
    assert rows.runnable[got.row, got.gpu_type].all()
    # What was passed over does not fit, has a job that runs, or was not to run there.
    left = np.array(case["capacity"]) - used
    for row in range(len(rows)):
        taken = rows.first[row] in jobs or rows.second[row] in jobs
        for gpu_type in range(len(used)):
            unwanted = case["only_positive"] and case["keys"][0][row, gpu_type] <= 0
            small_enough = rows.gpus[row] <= left[gpu_type]
            assert taken or unwanted or not small_enough or not rows.runnable[row, gpu_type]
    # On each type by decreasing priority.
    for gpu_type in set(got.gpu_type.tolist()):
        rank = case["keys"][0][got.row[got.gpu_type == gpu_type], gpu_type]
        assert (np.diff(rank) <= 0).all()


def large(rows: int, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    first = np.arange(rows)
    gpus = random.choice([1, 2, 4, 8], rows)
    return {
        "rows": Combinations(first, first, gpus, random.random((rows, 3)) > 0.1),
        "keys": [random.random((rows, 3)), np.zeros((rows, 3)), random.random((rows, 3))],
        "capacity": [rows // 3 + 5, rows, rows // 9 + 1],
        "order": [2, 1, 0],
        "one_queue": False,
        "only_positive": False,
    }


@pytest.mark.parametrize("one_queue", [False, True])
def test_selection_of_long_queues(one_queue: bool) -> None:
    case = large(2000) | {"one_queue": one_queue}
    got = chosen(case)
    assert list(zip(got.row.tolist(), got.gpu_type.tolist(), strict=True)) == reference(**case)


def test_a_round_over_ten_thousand_jobs_takes_milliseconds() -> None:
    case = large(10_000) | {"capacity": [333, 333, 333]}
    received, x = case["keys"][2] * 1000.0, case["keys"][0]
    took = []
    for _ in range(5):
        began = time.process_time()
        rank = priorities(x, fractions(received), case["rows"].runnable)
        chosen(case | {"keys": [rank, *case["keys"][1:]]})
        took.append(time.process_time() - began)
    # About 4 ms; one Python step for each entry and type takes ten times as long.
    assert min(took) < 0.02


def test_selection_of_nobody_and_for_no_gpus() -> None:
    nobody = Combinations(*(np.zeros(0, dtype=np.int64),) * 3, np.zeros((0, 2), dtype=bool))
    assert len(select(nobody, [np.zeros((0, 2))], np.array([3, 3]))) == 0
    one = Combinations(*(np.array([0]),) * 2, np.array([1]), np.ones((1, 2), dtype=bool))
    assert len(select(one, [np.ones((1, 2))], np.array([0, 0]))) == 0
    assert select(one, [np.ones((1, 2))], np.array([1, 1]), [1]).gpu_type.tolist() == [1]


def test_priorities_by_hand() -> None:
    received = np.array([[100.0, 0.0], [300.0, 0.0]])
    x = np.array([[0.5, 0.5], [0.3, 0.0]])
    everywhere = np.ones((2, 2), dtype=bool)
    share = fractions(received)
    np.testing.assert_allclose(share, [[0.25, 0.0], [0.75, 0.0]])
    np.testing.assert_allclose(priorities(x, share, everywhere), [[2.0, np.inf], [0.4, 0.0]])
    peer = priorities(x, share, everywhere, unserved=1e9)
    np.testing.assert_allclose(peer, [[2.0, 5e8], [0.4, 0.0]])
    np.testing.assert_allclose(fractions(received, np.array([800.0, 0.0]))[:, 0], [0.125, 0.375])
    unable = priorities(x, share, np.array([[False, True], [True, True]]))
    np.testing.assert_allclose(unable, [[0.0, np.inf], [0.4, 0.0]])


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6), st.integers(2, 40))
def test_the_mechanism_gives_everybody_his_fraction(wanted: list[float], extra: int) -> None:
    x = np.array(wanted)[:, None] / sum(wanted)
    first = np.arange(len(x))
    rows = Combinations(first, first, np.ones(len(x), dtype=np.int64), np.ones(x.shape, dtype=bool))
    received, served = np.zeros(x.shape), 50 + extra
    for _ in range(served):
        rank = priorities(x, fractions(received), rows.runnable)
        row = select(rows, [rank, x], np.array([1])).row
        received[row, 0] += 1.0
    # One GPU, fractions that add up to 1: nobody is ever a whole round ahead of his due.
    assert (received - x * served < 1.0 + 1e-9).all()


def test_deficits_are_what_was_due_less_what_was_received() -> None:
    got = deficits_after(np.array([[1.0]]), np.array([[0.5]]), np.array([[280.0]]), 360.0, 180.0)
    np.testing.assert_array_equal(got, [[1.0 + 180.0 - 100.0]])


def test_combinations_of_a_problem() -> None:
    pair = (np.array([0]), np.array([2]), np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]))
    problem = AllocationProblem.from_columns(
        gpu_types=("a", "b"),
        capacity=[2, 2],
        throughput=[[1, 0], [1, 1], [2, 2]],
        gpus=[2, 1, 2],
        pairs=Pairs(*pair),
    )
    rows = Combinations.of(problem)
    assert rows.first.tolist() == [0, 1, 2, 0]
    assert rows.second.tolist() == [0, 1, 2, 2]
    assert rows.gpus.tolist() == [2, 1, 2, 2]
    assert rows.runnable.tolist() == [[True, False], [True, True], [True, True], [True, False]]
    with pytest.raises(InputError, match="equal lengths"):
        Combinations(rows.first[:2], rows.second, rows.gpus, rows.runnable)


def test_the_peer_knows_three_types() -> None:
    assert sorted(TYPE_ORDER) == list(TYPES)


@pytest.mark.parametrize("completed", [{0: 1}, {}])
def test_a_job_that_is_complete_in_floats_does_all_of_its_work(completed: dict[int, int]) -> None:
    """The exact sum of its steps is a little less than its work, and the next round begins before its end."""
    jobs = Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[8, 8], throughput=[[1.0], [1.0]], gpu_types=("v100",)
    )
    instance = Instance(Cluster.parse("1x1:v100"), jobs)

    def a_round(start_s: float, job: int, steps: float, end_s: float) -> GavelSimulationRound:
        return GavelSimulationRound(start_s, (RoundTask((job, job), 0, (0,), (steps,), end_s),))

    rounds = [
        a_round(0.0, 0, 4.0 - 1e-9, 4.0),
        a_round(4.0, 0, 4.0, 8.0),
        a_round(7.5, 1, 8.0, 16.0),
    ]
    schedule = schedule_of(rounds, Workers.of(instance.cluster), instance, set(), completed)
    if completed:
        verify(instance, schedule)
        assert schedule.end_s.tolist() == [4.0, 8.0, 16.0]
    else:
        with pytest.raises(Violation, match="ticks are missing"):
            verify(instance, schedule)


def test_a_window_with_a_job_that_is_dropped_is_refused_in_a_line() -> None:
    """Job 0 is too slow for a step in a round; job 2 comes when the others are gone."""
    jobs = Workload.from_columns(
        id=["slow", "fast", "later"],
        arrival_s=[0, 0, 100_000],
        gpus=1,
        work=[10.0, 10.0, 10.0],
        model="m",
        throughput=[[1e-3] * 3, [1.0] * 3, [1.0] * 3],
        gpu_types=TYPES,
    )
    until = RunOptions(preset="gavel", until_complete=JobWindow(0, 2))
    with pytest.raises(PolicyError, match="drops job 'slow', which is one of jobs 0 to 1 that are"):
        simulate(jobs, "1x2:v100", "isolated", until)
    alone = RunOptions(preset="gavel", until_complete=JobWindow(1, 2))
    assert simulate(jobs, "1x2:v100", "isolated", alone).jct_s[1] == 10.0
