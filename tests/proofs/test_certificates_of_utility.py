"""Certificates of total utility: bounds hold at any prices, both programs have them, forgeries fail."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shadowprice as sp
from shadowprice.analysis.certificates.exact_cost import measured_rows
from shadowprice.analysis.certificates.job_utilities import WORTHS, JobUtilities
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility, certify_utility_into
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import save
from shadowprice.analysis.streamed_outcome import StreamedOutcome
from shadowprice.cli.app import app
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.traces import load_trace
from shadowprice.instances.utility import (
    deadline,
    effective_throughput,
    finish_time_fairness,
    over_duration,
)
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, check
from support.certificate_cases import CASES
from support.certificate_text import changes, records_of, signed
from support.schedule_segments import Cut, by_end

SECOND = 2**20
EVERY = ("effective_throughput", "completion_time", "fairness", "deadline")


def of_kind(found, kind):
    return next(record for record in found if record["kind"] == kind)


def with_deadlines(instance, data):
    """The same jobs, some with deadlines, between ticks too."""
    late = st.sampled_from([np.inf, 2.0, 7.5, 11.0000001, 30.0])
    some = [data.draw(late) for _ in range(len(instance.workload))]
    return replace(instance, workload=replace(instance.workload, deadline_s=np.array(some)))


def earned_by_hand(instance, outcome, name, round_s):
    """The definition, of jobs that count and are complete."""
    jobs, found = instance.workload, Fraction(0)
    length = Fraction(round_s)
    for j in measured_rows(instance).tolist():
        end = float(outcome.end_s[j])
        if not np.isfinite(end):
            continue
        round_end = -(-Fraction(end) // length) * length
        since = max(round_end - Fraction(float(jobs.arrival_s[j])), length)
        worth = {
            "effective_throughput": lambda j: float(jobs.work[j]),
            "completion_time": lambda j: float(jobs.weight[j]),
            "fairness": lambda j: float(len(jobs) * instance.shortest_s[j]),
            "deadline": lambda j: float(jobs.weight[j]),
        }[name](j)
        if name == "deadline":
            found += Fraction(worth) if round_end <= jobs.deadline_s[j] else 0
        else:
            found += Fraction(worth) / since
    return found


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of", CASES)
def test_a_certificate_proves_what_the_run_earned_and_holds_at_any_prices(of, examples):
    cases, words = CASES[of]

    @settings(max_examples=examples, deadline=None)
    @given(cases, st.sampled_from(EVERY), st.sampled_from([1.0, 2.5, 10.0]), st.data())
    def proves(case, name, round_s, data):
        instance, schedule = with_deadlines(case[0], data), case[1]
        assume(name != "fairness" or np.isfinite(instance.shortest_s).all())
        outcome = Outcome.verified(instance, schedule, policy="some")
        exact = earned_by_hand(instance, outcome, name, round_s)
        try:
            found = certify_utility(outcome, name, round_s, budget_s=0.0)
        except InputError:
            assert exact == 0
            return
        claim = check(found.text)
        assert 0 <= exact - Fraction(claim["earned"]) <= exact / 2**98
        assert (claim["utility"], claim["round"]) == (name, round_s * SECOND)
        assert claim["class"] == found.of_class
        assert words in found.of_class
        # Any prices do: the schedule never earns more than they say.
        every = records_of(found.text)
        bound = of_kind(every, "bound")
        price = st.sampled_from([0, 0, 1, 7, 2**16])
        bound["prices"] = [[data.draw(price) for _ in row] for row in bound["prices"]]
        bound["unit"] = data.draw(st.sampled_from([1, "1/7", "1/100000", 0]))
        every[-1].update(bound=10**30, ratio=10**900)
        if exact > Fraction(1, 10**300):
            check(signed(every))

    proves()


def test_the_values_are_those_of_utilities_in_doubles():
    tables = {
        "effective_throughput": effective_throughput,
        "completion_time": over_duration,
        "fairness": finish_time_fairness,
        "deadline": deadline,
    }
    assert set(WORTHS) == set(tables) == {*checker.form.OVER_TIME, checker.form.BY_DEADLINE}
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 3, 4.5],
        gpus=[1, 2, 1],
        work=[5, 8, 13],
        weight=[1, 2.5, 3],
        deadline_s=[9, 20, np.inf],
    )
    instance = sp.Instance(sp.Cluster.parse("1x4"), jobs)
    for name, values in tables.items():
        mine = JobUtilities.of(instance, name, 2.5)
        expected = values(instance, 2.5, 9).values[:, :9]
        checked = checker.utility.Utilities(
            mine.arrival, mine.worth, mine.deadline or [], mine.length, mine.until
        )
        found = [[float(checked.of(j, k)) for k in range(9)] for j in range(3)]
        assert found == pytest.approx(expected)
        assert mine.table(8) == pytest.approx(expected)


# Bounds that are attained.


def best_in_time(jobs, gpus):
    """Most weight of jobs of one round each that can all end by their deadlines, of every subset."""
    best = 0.0
    for chosen in product([False, True], repeat=len(jobs)):
        some = [job for job, fine in zip(jobs, chosen, strict=True) if fine]
        fits = all(
            sum(gang for gang, _, by in some if by <= limit) <= gpus * limit for limit in (1, 2, 3)
        )
        if fits:
            best = max(best, sum(weight for _, weight, _ in some))
    return best


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.just(1), st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=6),
    st.integers(1, 2),
)
def test_the_bound_is_never_below_the_best_and_often_is_it(rows, gpus):
    """Jobs of a GPU and a round, by whose weights and deadlines the best is known."""
    gang, weight, by = zip(*rows, strict=True)
    jobs = sp.Workload.from_columns(
        arrival_s=[0] * len(rows), gpus=gang, work=[1] * len(rows), weight=weight, deadline_s=by
    )
    best = best_in_time(rows, gpus)
    outcome = sp.simulate(jobs, f"1x{gpus}", "fifo")
    try:
        found = certify_utility(outcome, "deadline", 1.0, budget_s=0.05)
    except InputError:
        return
    limit = float(Fraction(check(found.text)["bound"]))
    assert limit >= best
    assert limit <= sum(weight)


def two_late():
    """Two jobs of a round on one GPU, of which one can be in time."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0], gpus=[1, 1], work=[4, 4], deadline_s=[4, 4], weight=[1, 1]
    )
    return certify_utility(sp.simulate(jobs, "1x1", "fifo"), "deadline", 4.0, budget_s=0.5).text


def test_one_of_two_in_time_is_proven_to_be_the_most():
    every = records_of(two_late())
    of_kind(every, "bound").update(prices=[[1, 0]], unit=1)
    every[-1].update(earned=1, bound=1, ratio=1)
    assert check(signed(every))["ratio"] == 1
    every[-1].update(bound="999/1000")
    with pytest.raises(Rejected, match="the bound is 1, not 999/1000"):
        check(signed(every))
    of_kind(every, "bound").update(prices=[["1", 0]])
    with pytest.raises(Rejected, match="price is '1', not an integer"):
        check(signed(every))


@pytest.mark.parametrize("name", EVERY)
def test_jobs_that_do_not_meet_have_their_most(name):
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 1, 3],
        gpus=[1, 2, 1],
        work=[5, 8, 13],
        weight=[1, 2.5, 3],
        deadline_s=[9, 20, np.inf],
    )
    found = certify_utility(sp.simulate(jobs, "1x4", "fifo"), name, 1.0, budget_s=0.0)
    assert found.ratio == 1
    assert found.warning() is None
    assert "is at most 1x that of fifo" in found.sentence()


def test_the_cheapest_gang_is_of_the_types_that_are_as_fast():
    """At prices of slow GPUs alone a fast gang costs nothing, at those of fast ones it completes too late."""
    jobs = sp.Workload.from_columns(
        arrival_s=[0],
        gpus=[2],
        work=[8],
        weight=[1],
        throughput=[[2.0, 1.0]],
        gpu_types=("fast", "slow"),
    )
    outcome = sp.simulate(jobs, "1x2:fast,1x3:slow", "fifo")
    every = records_of(certify_utility(outcome, "completion_time", 4.0, budget_s=0.0).text)
    found = {}
    for fast, slow in ((0, 0), (1, 0), (0, 1), (1, 1)):
        of_kind(every, "bound").update(prices=[[fast], [slow]], unit="1/8")
        every[-1].update(bound=10**6, ratio=10**7)
        check(signed(every))
        every[-1].update(bound="1/1000", ratio=10**7)
        with pytest.raises(Rejected) as rejected:
            check(signed(every))
        found[fast, slow] = str(rejected.value).split()[3].rstrip(",")
    # It earns 1/4 in the first round and 1/8 in the second, pays 1/4 for fast GPUs; all are let for 2/8 and 3/8.
    assert found == {(0, 0): "1/4", (1, 0): "3/8", (0, 1): "5/8", (1, 1): "3/4"}


# What is changed.


def small(name):
    jobs = sp.Workload.from_columns(
        arrival_s=[0, 0, 5, 7],
        gpus=[2, 1, 3, 4],
        work=[30, 20, 10, 4],
        weight=[1, 2, 1, 0.5],
        deadline_s=[32, 24, 16, 24],
    )
    instance = sp.Instance(sp.Cluster.parse("2x2"), jobs)
    outcome = Outcome.verified(instance, sp.simulate(jobs, "2x2", "srtf").schedule, policy="srtf")
    return certify_utility(outcome, name, 8.0, budget_s=0.1).text


@pytest.fixture(scope="module")
def texts():
    return {name: small(name) for name in ("completion_time", "deadline")}


def mutants(value):
    """Other values of a field, within lists and records too."""
    yield from changes(value)
    if isinstance(value, list):
        for k, item in enumerate(value):
            yield from ([*value[:k], other, *value[k + 1 :]] for other in mutants(item))


@pytest.mark.parametrize("name", ["completion_time", "deadline"])
def test_a_change_of_any_field_is_refused_or_claims_no_more(texts, name):
    """With digests made anew: a claim of another instance or utility, or of no smaller a ratio."""
    every = records_of(texts[name])
    about = check(texts[name])
    key = about["instance"], about["utility"], about["round"]
    refused = 0
    for k, record in enumerate(every):
        for field in sorted(record.keys() - {"kind"}):
            for other in mutants(record[field]):
                if other == record[field] and type(other) is type(record[field]):
                    continue
                text = signed([*every[:k], {**record, field: other}, *every[k + 1 :]])
                try:
                    claim = check(text)
                except Rejected:
                    refused += 1
                    continue
                same = (claim["instance"], claim["utility"], claim["round"]) == key
                assert not same or Fraction(claim["ratio"]) >= Fraction(about["ratio"]), field
            gone = {each: value for each, value in record.items() if each != field}
            if field in ("instance", "file"):
                continue  # They are made anew.
            with pytest.raises(Rejected):
                check(signed([*every[:k], gone, *every[k + 1 :]]))
    assert refused > 150


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("header", {"utility": "speed"}, "utility is 'speed', not one of effective_throughput"),
        ("header", {"utility": ["deadline"]}, "utility is "),
        ("header", {"utility": "completion_time"}, "has a worth or a deadline that no utility"),
        ("header", {"round": 0}, "round of utilities is 0, not an integer from 1"),
        ("header", {"objective": "flow"}, "a utility is no objective"),
        ("job", {"worth": 1.0}, r"worth of job 0 is 1\.0"),
        ("job", {"worth": "2/2"}, "lowest terms"),
        ("job", {"worth": 2**200}, "the class is|the bound is"),
        ("job", {"deadline": -1}, "deadline of job 0 is -1"),
        ("job", {"deadline": True}, "deadline of job 0 is True"),
        ("bound", {"bound": "interval-lp"}, "'interval-lp', and not one of round-prices"),
        ("bound", {"bound": ["round-prices"]}, "and not one of round-prices"),
        ("bound", {"grid": [0]}, "no grid"),
        ("bound", {"values": []}, "no grid"),
        ("bound", {"prices": []}, "there are no prices, or not as many"),
        ("bound", {"prices": [[1], [1]]}, "there are no prices for 1 types"),
        ("bound", {"prices": [[1], [1, 2]]}, "there are no prices, or not as many"),
        ("bound", {"prices": [[-1]]}, "price is -1"),
        ("bound", {"prices": [[]]}, "the bound is "),
        ("bound", {"prices": [[2**90]]}, "the bound is "),
        ("bound", {"unit": 10**30}, "the bound is "),
        ("bound", {"unit": "-1/2"}, "unit of prices is '-1/2'"),
        ("claim", {"earned": 10**6}, "the schedule earns .*, not 1000000"),
        ("claim", {"bound": 1}, "the bound is .*, not 1$"),
        ("claim", {"bound": 10**6}, "the bound 1000000 is not "),
        ("claim", {"ratio": "1/2"}, "the ratio is 1/2, no schedule earns more than the best"),
        ("claim", {"ratio": 1}, "is not 1 x"),
        ("claim", {"cost": 5}, "the claim is of what the objective is not"),
    ],
)
def test_a_forged_certificate_is_rejected(texts, kind, fields, says):
    every = records_of(texts["deadline"])
    of_kind(every, kind).update(fields)
    with pytest.raises(Rejected, match=says):
        check(signed(every))


def test_who_is_late_earns_nothing(texts):
    every = records_of(texts["deadline"])
    for record in every:
        if record["kind"] == "job":
            record["deadline"] = 2 * SECOND
    with pytest.raises(Rejected, match=r"the schedule earns 0, not "):
        check(signed(every))


def test_a_certificate_of_a_cost_claims_no_utility():
    plain = sp.simulate(sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[4]), "1x1", "fifo")
    every = records_of(certify(plain, "flow", budget_s=0).text)
    for kind, fields, says in (
        ("header", {"utility": "deadline", "round": 4}, "a utility is no objective"),
        ("header", {"round": 4}, "a utility is no objective"),
        ("job", {"worth": 1}, "that no utility asks for"),
        ("job", {"deadline": 1}, "that no utility asks for"),
        ("claim", {"earned": 1}, "of what the objective is not"),
        ("bound", {"bound": "round-prices", "unit": 1, "prices": [[1]]}, "which is unknown"),
    ):
        found = json.loads(json.dumps(every))
        of_kind(found, kind).update(fields)
        with pytest.raises(Rejected, match=says):
            check(signed(found))


@pytest.mark.parametrize("of", ["parts", "pairs", "graphs", "copies"])
def test_prices_by_type_are_of_whole_gangs(of):
    tried = []

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(CASES[of][0])
    def refused(case):
        instance, schedule = case
        outcome = Outcome.verified(instance, schedule, policy="some")
        found = certify_utility(outcome, "completion_time", 5.0, budget_s=0.0)
        if found.bound_kind != "round-prices":
            return
        every = records_of(found.text)
        bound = of_kind(every, "bound")
        types = {record["type"] for record in every if record["kind"] == "node"}
        bound.update(bound="typed-round-prices", prices=bound["prices"] * len(types))
        with pytest.raises(Rejected, match="jobs share GPUs, may grow, have graphs or run as"):
            check(signed(every))
        tried.append(found.bound_kind)

    refused()
    assert tried


# What is asked of them.


def test_sums_are_exact_or_rounded_down():
    short = [Fraction(1, 3), Fraction(1, 7), Fraction(2)]
    assert checker.form.summed(short) == sum(short)
    assert checker.form.summed([]) == 0
    many = [Fraction((-1) ** k, 2**61 + 2 * k + 1) for k in range(200)]
    exact = sum(many, Fraction(0))
    assert 0 < exact - checker.form.summed(many) < Fraction(200, 2**1200)


def test_bounds_are_rounded_up_and_what_was_earned_down():
    jobs, length = range(120), 2**40
    arrival = [2 * k + 1 for k in jobs]
    utilities = checker.utility.Utilities(arrival, [Fraction(1)] * 120, [], length, None)
    offers = [checker.utility.PricedSpeeds([length + 999], [[0, 0]], Fraction(1))] * 120
    exact = sum((utilities.of(j, 1) for j in jobs), Fraction(0))
    assert 0 < exact - utilities.earned([length + 2000] * 120) < Fraction(120, 2**1200)
    assert 0 < utilities.most(offers, 2, Fraction(1)) - exact < Fraction(120, 2**1200)


def test_what_is_worth_nothing_after_a_run_was_stopped():
    utilities = checker.utility.Utilities([0], [Fraction(1)], [], 4, 9)
    assert [utilities.of(0, k) > 0 for k in range(5)] == [True, True, True, False, False]


def test_what_earned_nothing_has_no_certificate():
    jobs = sp.Workload.from_columns(arrival_s=[0], gpus=[1], work=[4], deadline_s=[2])
    outcome = sp.simulate(jobs, "1x1", "fifo")
    # Nobody can be in time: the best earns nothing either.
    assert certify_utility(outcome, "deadline", 1.0, budget_s=0.0).ratio == 1
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[4, 2], deadline_s=[1, 2])
    late = sp.simulate(jobs, "1x1", "fifo")
    for call, says in (
        (lambda: certify_utility(late, "deadline", 1.0, budget_s=0.0), "earned nothing"),
        (lambda: certify_utility(late, "speed", 1.0), "expected one of effective_throughput"),
        (lambda: certify_utility(late, "deadline", 0.0), "round of utilities"),
        (lambda: certify_utility(late, "fairness", 2.0**-20), "at most 1048576 rounds"),
    ):
        with pytest.raises(InputError, match=says):
            call()


def test_prices_of_a_run_are_tried_and_streamed_runs_have_the_same_certificate(tmp_path):
    rng = np.random.default_rng(5)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(rng.integers(0, 300, 12)),
        work=rng.integers(100, 900, 12),
        gpus=rng.choice([1, 2], 12),
    )
    kept = sp.simulate(jobs, "1x2,1x2", "hadar", sp.RunOptions(round_s=60.0, prices=True))
    found = certify_utility(kept, "effective_throughput", 60.0, budget_s=0.1)
    assert [origin for origin, _ in found.tried] == [
        "each job alone",
        "prices of hadar",
        "improved prices",
    ]
    assert found.tried[2][1] <= found.tried[1][1]
    plain = sp.simulate(jobs, "1x4", "srtf")
    cut = Cut(by_end(plain.schedule), range(7, len(plain.schedule), 7))
    streamed = StreamedOutcome(plain.instance, cut, "srtf", {})
    path = tmp_path / "cert.jsonl"
    certify_utility_into(streamed, path, "completion_time", 60.0, budget_s=0.0)
    again = certify_utility(plain, "completion_time", 60.0, budget_s=0.0)
    assert path.read_text() == again.text
    assert "every job as if it were alone" in again.warning()


def test_the_commands_know_them(tmp_path):
    trace = tmp_path / "trace.csv"
    rows = [f"{k},{k},{1 + k % 4},5" for k in range(8)]
    trace.write_text("\n".join(["job_id,arrival_s,gpus,duration_s", *rows]))
    call, cert = CliRunner().invoke, str(tmp_path / "cert.jsonl")
    run = tmp_path / "run"
    save(sp.simulate(load_trace(trace).workload, "2x2", "las"), run)
    asked = ["certify", str(run), "-o", cert, "--budget", "0.1"]
    by = ["--objective", "utility", "--utility", "completion_time", "--round", "5"]
    made = call(app, [*asked, *by])
    assert made.exit_code == 0, made.output
    assert "the best total utility of preemptive schedules" in made.output
    assert "(completion_time in rounds of 5.0 s, certified by typed-round-prices)" in made.output
    bound_to = ["verify", cert, str(trace), "--cluster"]
    told = call(app, [*bound_to, "2x2"])
    assert told.exit_code == 0, told.output
    assert "that of las (completion_time in rounds of 5.0 s, by typed-round-pr" in told.output
    assert isinstance(call(app, [*bound_to, "1x4"]).exception, VerificationError)
    found = json.loads(call(app, ["verify", cert, "--json"]).stdout)
    assert (found["utility"], found["objective"]) == ("completion_time", "utility")
    wrong = call(app, ["certify", str(run), "-o", cert, "--force", "--round", "5"]).exception
    assert "--round 5.0: goes with --objective utility" in str(wrong)
    # The deadlines of another file are another instance.
    made = call(app, [*asked, "--force", "--objective", "utility"])
    assert "effective_throughput in rounds of 360.0 s" in made.output
    trace.write_text(trace.read_text().replace("7,7,4,5", "7,7,4,6"))
    assert isinstance(call(app, [*bound_to, "2x2"]).exception, VerificationError)
