"""Certificates of total utility in whole rounds: enumerated schedules respect them, and no other class is claimed."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.job_utilities import JobUtilities
from shadowprice.analysis.certificates.utility_prices import RoundMarket
from shadowprice.analysis.certificates.whole_rounds import in_whole_rounds
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility, certify_utility_into
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import save
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.cli.app import app
from shadowprice.execution.engine import run
from shadowprice.instances.traces import load_trace
from shadowprice.proofs.checker import Rejected, check
from shadowprice.solvers.registry import policy
from support.certificate_cases import CASES
from support.certificate_text import records_of, signed
from support.schedule_segments import Cut, by_end

SECOND = 2**20
ROUND_S = 4.0
LENGTH = int(ROUND_S * SECOND)


@st.composite
def typed_jobs(draw, most=3):
    """A few jobs on one type of GPUs or two, of which one may be slower."""
    kinds = draw(st.sampled_from([("a",), ("a", "b")]))
    n = draw(st.integers(1, most))
    columns = {
        "arrival_s": [draw(st.sampled_from([0, 0, 1, 4, 6])) for _ in range(n)],
        "gpus": [draw(st.integers(1, 2)) for _ in range(n)],
        "work": [draw(st.integers(1, 11)) for _ in range(n)],
        "weight": [draw(st.sampled_from([1, 2, 5])) for _ in range(n)],
        "deadline_s": [draw(st.sampled_from([4.0, 8.0, 12.0, np.inf])) for _ in range(n)],
    }
    rate = st.sampled_from([1.0, 0.5, 0.625])
    rates = [[draw(rate) for _ in kinds] for _ in range(n)]
    jobs = sp.Workload.from_columns(**columns, throughput=rates, gpu_types=kinds)
    return sp.Instance(sp.Cluster.parse(",".join(f"1x2:{kind}" for kind in kinds)), jobs)


def market_of(instance, name):
    utilities = JobUtilities.of(instance, name, ROUND_S)
    schedules = CheckedClass.of(instance, pairs=False)
    return RoundMarket.of(instance, schedules, utilities).in_whole_rounds()


def utility_of_round(utilities, job, number):
    """Utility of a job that completes in a round, by hand; of runs that were not stopped."""
    end = (number + 1) * utilities.length
    assert utilities.until is None
    if utilities.deadline is not None:
        return utilities.worth[job] if end <= utilities.deadline[job] else Fraction(0)
    return utilities.worth[job] * SECOND / max(end - utilities.arrival[job], utilities.length)


def best_of_rounds(instance, market, rounds):
    """The largest total utility of any schedule in so many whole rounds, all of them tried."""
    kinds = range(len(market.capacity))
    gangs = [
        [each for each in product(range(job.gpus + 1), repeat=len(kinds)) if sum(each) == job.gpus]
        for job in market.jobs
    ]
    ticks = checkable_ticks(instance)

    @cache
    def best(number, done):
        if number == rounds:
            return Fraction(0)
        ways = []
        for j, part in enumerate(done):
            here = market.utilities.arrival[j] <= number * LENGTH and part < 1
            ways.append([None, *(gangs[j] if here else ())])
        most = Fraction(0)
        for choice in product(*ways):
            held = [sum(gang[k] for gang in choice if gang) for k in kinds]
            if any(h > c for h, c in zip(held, market.capacity.tolist(), strict=True)):
                continue
            after, earned = list(done), Fraction(0)
            for j, gang in enumerate(choice):
                if gang is not None:
                    slowest = max(ticks[j][k] for k in kinds if gang[k])
                    after[j] = min(after[j] + Fraction(LENGTH, slowest), Fraction(1))
                    earned += utility_of_round(market.utilities, j, number) if after[j] == 1 else 0
            most = max(most, earned + best(number + 1, tuple(after)))
        return most

    return best(0, (Fraction(0),) * len(market.jobs))


def checkable_ticks(instance):
    """Ticks of all of each job on each type, by hand."""
    jobs = instance.workload
    return [
        [-(-int(work * SECOND * 1000) // int(rate * 1000)) for rate in row]
        for work, row in zip(jobs.work.tolist(), jobs.throughput.tolist(), strict=True)
    ]


PRICE = st.integers(0, 9)


@pytest.mark.parametrize("examples", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_no_schedule_in_whole_rounds_earns_more_at_any_prices(examples):
    @settings(max_examples=examples, deadline=None)
    @given(typed_jobs(), st.sampled_from(["completion_time", "deadline"]), st.data())
    def holds(instance, name, data):
        market = market_of(instance, name)
        rounds = 3
        shape = rounds, len(market.capacity)
        drawn = [[data.draw(PRICE) for _ in range(shape[1])] for _ in range(rounds)]
        prices = np.array(drawn, dtype=np.int64)
        unit = data.draw(st.sampled_from([Fraction(0), Fraction(1, 50), Fraction(1, 7)]))
        assert best_of_rounds(instance, market, rounds) <= market.bound(unit, prices)

    holds()


def test_jobs_of_half_a_round_attain_it():
    """Two of half a round on one GPU: in time both end within the round, in whole rounds one does."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[2, 2], weight=[1, 1], deadline_s=[4, 4]
    )
    instance = sp.Instance(sp.Cluster.parse("1x1"), jobs)
    options = sp.RunOptions(round_s=ROUND_S)
    rounds = sp.simulate(jobs, "1x1", "fifo", options)
    found = certify_utility(rounds, "deadline", ROUND_S, budget_s=1.0)
    assert (found.bound_kind, float(found.ratio)) == (
        "whole-round-prices",
        pytest.approx(1, abs=1e-3),
    )
    assert found.of_class.endswith("no two jobs share a GPU, in whole rounds of 4.0 s")
    assert found.of_class in found.sentence()
    at_once = Outcome.verified(instance, run(instance, policy("fifo")).schedule, policy="fifo")
    other = certify_utility(at_once, "deadline", ROUND_S, budget_s=1.0)
    assert (other.bound_kind, other.ratio) == ("typed-round-prices", 1)
    assert "rounds" not in other.of_class
    # The run at once earns two, more than any schedule in whole rounds: its claim would be refuted.
    assert Fraction(records_of(other.text)[-1]["earned"]) == 2


def test_rounds_of_several_speeds_count_together():
    """A round of the fast type and one of the slow do as much as two of the fast: no type is rounded by itself."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[4.04], throughput=[[1.0, 0.0625]], gpu_types=("a", "b")
    )
    market = market_of(sp.Instance(sp.Cluster.parse("1x1:a,1x1:b"), jobs), "completion_time")
    prices = np.array([[0, 100], [100, 0], [100, 100]], dtype=np.int64)
    # 0.99 and 0.0155 of it, for nothing.
    alone = utility_of_round(market.utilities, 0, 1)
    assert market.bound(Fraction(1, 10**6), prices) >= alone + Fraction(400, 10**6)


@settings(max_examples=12, deadline=None)
@given(typed_jobs(6), st.sampled_from(["hadar", "gavel", "srtf"]), st.data())
def test_runs_in_rounds_have_it_and_respect_it_at_any_prices(instance, name, data):
    outcome = sp.simulate(instance.workload, instance.cluster, name, sp.RunOptions(round_s=ROUND_S))
    assert in_whole_rounds(outcome, LENGTH)
    found = certify_utility(outcome, "completion_time", ROUND_S, budget_s=0.0)
    assert found.bound_kind in ("whole-round-prices", "typed-round-prices")
    every = records_of(found.text)
    every[0]["rounds"] = "whole"
    types = len({record["type"] for record in every if record["kind"] == "node"})
    every[-2].update(
        bound="whole-round-prices",
        prices=[[data.draw(PRICE) for _ in range(4)] for _ in range(types)],
        unit=data.draw(st.sampled_from([1, "1/7", "1/100"])),
    )
    whole = found.of_class.removesuffix(", in whole rounds of 4.0 s") + ", in whole rounds of 4.0 s"
    every[-1].update({"class": whole, "bound": 10**9, "ratio": 10**30})
    check(signed(every))


@settings(max_examples=15, deadline=None)
@given(st.one_of(CASES["types"][0], CASES["quotas"][0]), st.sampled_from([0.25, 1.0, 2.0]))
def test_who_is_in_whole_rounds_is_what_the_checker_says(case, round_s):
    outcome = Outcome.verified(*case, policy="some")
    assume(len(outcome.schedule))
    found = certify_utility(outcome, "completion_time", round_s, budget_s=0.0)
    every = records_of(found.text)
    within = in_whole_rounds(outcome, int(round_s * SECOND))
    assert ("rounds" in every[0]) <= within
    suffix = f", in whole rounds of {round_s} s"
    every[0]["rounds"] = "whole"
    every[-1]["class"] = every[-1]["class"].removesuffix(suffix) + suffix
    if within:
        check(signed(every))
    else:
        with pytest.raises(Rejected, match=r"does not begin with a round|ends within a round"):
            check(signed(every))


# Forgeries.


@pytest.fixture(scope="module")
def outcome():
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 1, 5, 6],
        gpus=[1, 2, 1, 2, 1],
        work=[2, 5, 9, 3, 6],
        weight=[1, 2, 1, 3, 1],
    )
    return sp.simulate(jobs, "1x2", "srtf", sp.RunOptions(round_s=ROUND_S))


@pytest.fixture(scope="module")
def text(outcome):
    found = certify_utility(outcome, "completion_time", ROUND_S, budget_s=0.2)
    assert found.bound_kind == "whole-round-prices"
    return found.text


def of_kind(found, kind):
    return next(record for record in found if record["kind"] == kind)


PLAIN = "preemptive schedules in which no two jobs share a GPU"


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("header", {"rounds": None}, "whole-round-prices: the schedule is not in whole rounds"),
        ("header", {"rounds": "some"}, "rounds are 'some', not whole"),
        ("header", {"rounds": 1}, "rounds are 1, not whole"),
        ("header", {"round": LENGTH + 1}, "does not begin with a round|ends within a round"),
        ("header", {"round": 3 * LENGTH}, "does not begin with a round|ends within a round"),
        ("header", {"round": LENGTH // 2}, "the schedule earns|the bound is|the class is"),
        ("claim", {"class": PLAIN}, f"the class is '{PLAIN}', not '{PLAIN}, in whole rounds of 4"),
        ("claim", {"class": f"{PLAIN}, in whole rounds of 2.0 s"}, "the class is "),
        ("bound", {"bound": "typed-round-prices"}, "the bound is .*, not "),
        ("bound", {"bound": "round-prices"}, "the bound is .*, not "),
        ("bound", {"prices": [[0, 0]]}, "the bound is .*, not "),
        ("bound", {"prices": [[1], [1]]}, "there are no prices for 1 types"),
        ("bound", {"unit": 10**6}, "the bound is .*, not "),
        ("bound", {"exponent": 5}, "has a unit of prices by round, and no grid"),
        ("job", {"worth": 10**6}, "the schedule earns|the bound is "),
        ("run", {"start": 1}, "does not begin with a round"),
        ("run", {"end": SECOND}, "ends within a round, and its job does not"),
    ],
)
def test_a_forged_certificate_is_rejected(text, kind, fields, says):
    every = records_of(text)
    of_kind(every, kind).update(fields)
    for field in [name for name, value in fields.items() if value is None]:
        of_kind(every, kind).pop(field)
    with pytest.raises(Rejected, match=says) as refused:
        check(signed(every))
    assert "\n" not in str(refused.value)


def test_a_bound_that_is_a_little_less_is_rejected(text):
    every = records_of(text)
    bound = Fraction(every[-1]["bound"]) * (1 - Fraction(1, 2**90))
    every[-1]["bound"] = str(bound)
    with pytest.raises(Rejected, match=r"the bound is .*, not "):
        check(signed(every))


def test_a_job_that_is_dropped_is_missed(text):
    every = records_of(text)
    kept = [record for record in every if record.get("job") != 4]
    with pytest.raises(Rejected, match="the schedule earns"):
        check(signed(kept))
    runs = [record for record in every if record["kind"] != "run" or record["job"] != 4]
    with pytest.raises(Rejected, match="job 4 is lost"):
        check(signed(runs))


def test_rounds_are_of_utilities_of_gangs(outcome, text):
    plain = records_of(certify(outcome, "flow", budget_s=0.0).text)
    plain[0]["rounds"] = "whole"
    with pytest.raises(Rejected, match="rounds are 'whole', not whole, or of no utility"):
        check(signed(plain))
    parts = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[4, 4], gpu_milli=[500, 500]
    )
    halves = sp.simulate(parts, "1x1", "fifo", sp.RunOptions(round_s=ROUND_S))
    found = certify_utility(halves, "completion_time", ROUND_S, budget_s=0.0)
    assert found.bound_kind == "round-prices"
    every = records_of(found.text)
    every[0]["rounds"] = "whole"
    every[-1]["class"] += ", in whole rounds of 4.0 s"
    check(signed(every))
    every[-2]["bound"] = "whole-round-prices"
    with pytest.raises(Rejected, match="prices by type: jobs share GPUs, may grow"):
        check(signed(every))
    rules = {"kind": "copies", "round": 9, "restart": 0, "aggregation": 0, "most": 1}
    every.insert(1, rules)
    with pytest.raises(Rejected, match="copies are in whole rounds"):
        check(signed(every))


def test_runs_on_disk_have_the_same_certificate(outcome, text, tmp_path):
    cut = Cut(by_end(outcome.schedule), range(3, len(outcome.schedule), 3))
    streamed = StreamedOutcome(outcome.instance, cut, outcome.policy, {})
    assert in_whole_rounds(streamed, LENGTH)
    path = tmp_path / "cert.jsonl"
    certify_utility_into(streamed, path, "completion_time", ROUND_S, budget_s=0.0)
    again = certify_utility(outcome, "completion_time", ROUND_S, budget_s=0.0)
    assert path.read_text() == again.text


def test_the_commands_name_the_class(tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{k},{k},{1 + k % 2},5" for k in range(6)]
    trace.write_text("\n".join(["job_id,arrival_s,gpus,duration_s", *rows]))
    run_directory, cert = tmp_path / "run", str(tmp_path / "cert.jsonl")
    made = sp.simulate(load_trace(trace).workload, "1x2", "las", sp.RunOptions(round_s=ROUND_S))
    save(made, run_directory)
    call = CliRunner().invoke
    asked = ["certify", str(run_directory), "-o", cert, "--budget", "0.1", "--round", "4"]
    told = call(app, [*asked, "--objective", "utility", "--utility", "completion_time"])
    assert told.exit_code == 0, told.output
    assert "share a GPU, in whole rounds of 4.0 s is at most" in told.output
    assert "certified by whole-round-prices" in told.output
    checked = call(app, ["verify", cert, str(trace), "--cluster", "1x2"])
    assert checked.exit_code == 0, checked.output
    assert "in whole rounds of 4.0 s is at most" in checked.output
