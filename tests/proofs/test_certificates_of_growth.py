"""Certificates of gangs that may grow, by powers of their widths: any exponent bounds any schedule, forgeries fail."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.analysis.certificates.checked_class import CheckedClass
from shadowprice.analysis.certificates.speed_up import speed_up_bounds
from shadowprice.analysis.certify import certify
from shadowprice.analysis.outcome import Outcome
from shadowprice.execution.engine import run
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.terms.widths import Growth
from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.costs import LeastWork
from shadowprice.proofs.checker.speed_up import ONE, bound_speed_up_power, coefficient, power
from shadowprice.solvers.classic.hesrpt import optimal_parts
from shadowprice.solvers.registry import policy
from support.certificate_cases import CASES
from support.certificate_text import records_of, signed

UNIT = 2**20
JOB = st.tuples(
    st.integers(0, 40), st.integers(1, 3), st.integers(1, 60), st.sampled_from([0, 1, 2.5])
)
EXPONENT = st.integers(0, UNIT - 1) | st.sampled_from([0, 1, UNIT // 2, UNIT - 1])


class AnyWidths:
    """An instance of which only the times by width are asked."""

    def __init__(self, times):
        self.times = times

    def by_any_width(self, job):
        return self.times[job]


def bounded(times, gpus, exponent, *, arrival=None, weight=None, cuts=()):
    """The bound of the program that checks, of jobs with these widths and ticks."""
    n = len(times)
    shortest = [min(ticks for _, ticks in row) for row in times]
    columns = arrival or [0] * n, weight or [Fraction(1)] * n, shortest, [0] * n, [1] * n
    jobs = LeastWork(*columns, gpus, gpus, 1, True)
    return bound_speed_up_power(AnyWidths(times), jobs, {"exponent": exponent, "grid": list(cuts)})


def of_kind(found, kind):
    return next(record for record in found if record["kind"] == kind)


# Powers.


@settings(max_examples=10)
@given(st.integers(1, 3 * ONE), EXPONENT | st.integers(UNIT, 20 * UNIT))
def test_powers_are_enclosed(base, exponent):
    low, high = (power(base, exponent, 20, up=up) for up in (False, True))
    with localcontext(prec=90) as context:
        context.Emin = -(10**8)
        exact = (Decimal(base) / ONE) ** (Decimal(exponent) / UNIT) * ONE
    assert low <= exact <= high
    assert high - low <= max(1, high >> 40) + 2000


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 10**6), EXPONENT)
def test_coefficients_are_rounded_down_and_by_little(k, exponent):
    p = Decimal(exponent) / UNIT
    with localcontext(prec=90):
        exact = k * (1 - (Decimal(k - 1) / k) ** (1 / (1 - p))) ** (1 - p) if k > 1 else Decimal(1)
        found = Decimal(coefficient(k, exponent)) / ONE
        # The decimals are rounded themselves.
        assert exact * (1 - Decimal(2) ** -33) <= found <= exact * (1 + Decimal(10) ** -80)


# The bound, against what it bounds.


def continuously(sizes, gpus, p, weight=None):
    """Total completion time of shares of a continuous machine that are optimal for equal weights."""
    left = sorted(((float(x), w) for x, w in zip(sizes, weight or [1.0] * len(sizes), strict=True)))
    left, now, total = left[::-1], 0.0, 0.0
    while left:
        speed = [(gpus * part) ** p for part in optimal_parts(p, len(left))]
        lasts = left[-1][0] / speed[-1]
        now += lasts
        total += now * left[-1][1]
        rows = zip(left[:-1], speed[:-1], strict=True)
        left = [(x - lasts * v, w) for (x, w), v in rows]
    return total


@settings(max_examples=8)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=7),
    st.sampled_from([1, 4, 64]),
    st.integers(1, UNIT - 2**10),
)
def test_it_is_attained_by_the_optimal_parts_of_a_continuous_machine(sizes, gpus, exponent):
    least = bounded([[(1, x * UNIT)] for x in sizes], gpus, exponent) / UNIT
    # In units of a machine on which one GPU has speed 1.
    best = continuously(sizes, gpus, exponent / UNIT)
    alone = sum(sizes)
    assert float(least) == pytest.approx(max(best, alone), rel=1e-6)


def best_of_widths(jobs, speed, gpus):
    """Least weighted total of jobs whose widths change only when one arrives or is complete, over all such widths."""

    def least(now, left):
        if not left:
            return 0.0
        here = [j for j in left if jobs[j][0] <= now]
        later = [jobs[j][0] for j in left if jobs[j][0] > now]
        best = math.inf if here or later else 0.0
        for widths in product(range(gpus + 1), repeat=len(here)):
            if sum(widths) > gpus or not (any(widths) or later):
                continue
            rate = {j: speed(w) if w else 0.0 for j, w in zip(here, widths, strict=True)}
            ends = [now + left[j] / v for j, v in rate.items() if v]
            until = min([*ends, *later])
            rest = {j: x - rate.get(j, 0.0) * (until - now) for j, x in left.items()}
            done = [j for j, x in rest.items() if x < 1e-9]
            cost = sum(jobs[j][2] * until for j in done)
            kept = {j: x for j, x in rest.items() if j not in done}
            best = min(best, cost + least(until, kept))
        return best

    return least(0.0, {j: float(job[1]) for j, job in enumerate(jobs)})


@settings(max_examples=10, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0, 2, 5]), st.integers(1, 9), st.sampled_from([1, 1, 3])),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([0.3, 0.5, 0.85]),
    EXPONENT,
    st.lists(st.integers(1, 6), unique=True, max_size=2).map(sorted),
)
def test_no_choice_of_widths_costs_less_than_any_exponent_says(jobs, growth, exponent, cuts):
    """By trying all; times are rounded down, so that no rounding is in favour of the bound."""
    times = [
        [(w, max(int(work * UNIT / w**growth), 1)) for w in range(1, 5)] for _, work, _ in jobs
    ]
    arrival = [at * UNIT for at, _, _ in jobs]
    weight = [Fraction(w) for _, _, w in jobs]
    cuts = [at * UNIT for at in cuts]
    least = bounded(times, 4, exponent, arrival=arrival, weight=weight, cuts=cuts) / UNIT
    best = best_of_widths(jobs, lambda w: w**growth, 4)
    assert float(least) <= best * (1 + 1e-9)
    alone = sum(w * (at + work / 4**growth) for at, work, w in jobs)
    assert float(least) >= alone * (1 - 1e-5) or not cuts


@settings(max_examples=8, deadline=None)
@given(
    st.lists(JOB, min_size=1, max_size=7),
    st.sampled_from([0.6, 0.8, 0.95, 1.0]),
    st.sampled_from(["hesrpt", "srtf", "lpf", "fifo"]),
    st.data(),
)
def test_no_run_costs_less_at_any_exponent_and_cuts(jobs, efficiency, name, data):
    arrival, gpus, work, weight = (list(each) for each in zip(*jobs, strict=True))
    columns = {"arrival_s": arrival, "gpus": gpus, "work": work, "weight": weight}
    load = sp.Workload.from_columns(**columns)
    outcome = sp.simulate(load, "2x3", name, sp.RunOptions(growth=Growth(6, efficiency)))
    found = certify(outcome, "completion", budget_s=0.0)
    every = records_of(found.text)
    cuts = data.draw(st.lists(st.integers(0, 40 * UNIT), unique=True, max_size=3).map(sorted))
    of_kind(every, "bound").update(bound="speed-up-power", grid=cuts, prices=[])
    for field in ("rows", "values"):
        of_kind(every, "bound").pop(field, None)
    of_kind(every, "bound")["exponent"] = data.draw(EXPONENT)
    # It is refused where the schedule costs less than the bound, and with no other claim.
    every[-1].update(bound=0, ratio=1)
    if Fraction(every[-1]["cost"]):
        with pytest.raises(Rejected, match=r"^the cost \S+( \S+)? is not 1 x 0$"):
            check(signed(every))


@settings(max_examples=6, deadline=None)
@given(CASES["conditions"][0])
def test_two_programs_have_the_same_bound(case):
    instance, _ = case
    schedules = CheckedClass.of(instance, pairs=False)
    given_records = checker.instance.CertificateInstance()
    from shadowprice.analysis.certificates import records

    for record in [
        records.header(instance, "some", "flow"),
        *records.instance_records(instance, pairs=False),
    ]:
        checker.instance.TAKE[record.pop("kind")](given_records, record)
    for found in speed_up_bounds(instance, schedules):
        record = {name: value for name, value in found.record.items() if name != "kind"}
        theirs = checker.bounds.bound_of(given_records, given_records.relaxed(), record, None)
        assert found.ticks <= theirs <= found.ticks / (1 - Fraction(1, 2**28))


# What is written, and what is changed.


def grown(name="hesrpt", *, arrival=0, seed=1):
    draw = np.random.default_rng(seed)
    work = np.ceil(draw.lognormal(5, 1, 12))
    came = np.sort(draw.integers(0, arrival + 1, 12))
    columns = {"arrival_s": came, "gpus": np.ones(12, int), "work": work}
    jobs = sp.Workload.from_columns(**columns)
    return sp.simulate(jobs, "1x64", name, sp.RunOptions(growth=Growth(64, 0.9)))


@pytest.fixture(scope="module")
def text():
    return certify(grown(), "flow", budget_s=0.0).text


def test_it_is_written_where_it_is_the_largest(text):
    """The largest without it says 1.63."""
    claim = check(text)
    assert (claim["kind"], claim["objective"]) == ("speed-up-power", "flow")
    assert float(Fraction(claim["ratio"])) == pytest.approx(1.007, abs=0.002)
    assert "in which no two jobs share a GPU and gangs may grow" in claim["class"]
    tried = certify(grown(), "flow", budget_s=0.0).history.bounds
    others = [bound.value_s for bound in tried if bound.kind != "speed-up-power"]
    assert max(others) < 0.7 * max(bound.value_s for bound in tried)


def test_jobs_that_come_in_two_batches_are_bounded_by_batch():
    outcome = grown()
    jobs = outcome.instance.workload
    later = np.where(np.arange(12) < 6, 0.0, 3000.0)
    instance = replace(outcome.instance, workload=replace(jobs, arrival_s=later))
    made = Outcome.verified(instance, run(instance, policy("hesrpt")).schedule, policy="hesrpt")
    found = certify(made, "flow", budget_s=0.0)
    bound = of_kind(records_of(found.text), "bound")
    assert (bound["bound"], bound["grid"]) == ("speed-up-power", [3000 * TICKS_PER_S])
    assert found.ratio < Fraction(102, 100)
    together = {**bound, "grid": []}
    every = [together if record is bound else record for record in records_of(found.text)]
    every = [together if record["kind"] == "bound" else record for record in every]
    with pytest.raises(Rejected, match=r"^the bound is .*, not "):
        check(signed(every))


@pytest.mark.parametrize(
    ("kind", "fields", "says"),
    [
        ("bound", {"exponent": 0}, "the bound is .*, not "),
        ("bound", {"exponent": 870_000}, "the bound is .*, not "),
        ("bound", {"exponent": 900_000}, "the bound is .*, not "),
        ("bound", {"exponent": UNIT}, r"exponent is 1048576, not less than 2\^20"),
        ("bound", {"exponent": -1}, "exponent is -1, not an integer from 0"),
        ("bound", {"exponent": True}, "exponent is True, not an integer from 0"),
        ("bound", {"exponent": 0.5}, r"exponent is 0\.5, not an integer from 0"),
        ("bound", {"exponent": None}, "exponent is None, not an integer from 0"),
        ("bound", {"grid": [5, 5]}, "the cuts of arrivals do not increase"),
        ("bound", {"grid": [-5]}, "cut of arrivals is -5, not an integer"),
        ("bound", {"grid": 7}, "grid of a bound is 7, not a list"),
        ("bound", {"prices": [1]}, "speed-up-power takes no prices"),
        ("bound", {"unit": 1}, "speed-up-power has fields exponent, unit"),
        ("bound", {"bound": "speed-up-powers"}, "which is unknown"),
        ("bound", {"bound": "fluid"}, "fluid has fields exponent"),
        ("claim", {"class": "preemptive schedules"}, "the class is 'preemptive schedules', not"),
        ("header", {"objective": "makespan"}, "the schedule costs|'speed-up-power' is no bound of"),
        ("header", {"stopped": 2**40}, "the schedule costs|no bound of what was stopped|class"),
        ("job", {"run": {"gpu": 2**40}}, "ticks short|digest|the bound|no node"),
        ("job", {"gpus": 2}, "holds 1 GPUs, not its gang|holds \\d+ GPUs"),
        ("widths", {"speeds": [1]}, "GPUs, not its gang"),
    ],
)
def test_a_forged_certificate_is_rejected(text, kind, fields, says):
    every = records_of(text)
    of_kind(every, kind).update(fields)
    with pytest.raises(Rejected, match=says) as refused:
        check(signed(every))
    assert "\n" not in str(refused.value)


def test_a_bound_that_is_a_little_larger_is_rejected(text):
    every = records_of(text)
    for more, says in ((1 + Fraction(1, 2**20), "the bound is "), (1 - Fraction(1, 2**20), None)):
        claim = dict(every[-1])
        bound = Fraction(claim["bound"]) * more
        claim["bound"] = str(bound) if bound.denominator > 1 else bound.numerator
        ratio = Fraction(claim["cost"]) / bound
        claim["ratio"] = str(ratio) if ratio.denominator > 1 else ratio.numerator
        if says is None:
            assert check(signed([*every[:-1], claim]))
        else:
            with pytest.raises(Rejected, match=says):
                check(signed([*every[:-1], claim]))


def test_a_job_that_is_dropped_is_missed(text):
    every = records_of(text)
    last = max(k for k, record in enumerate(every) if record["kind"] == "job")
    with pytest.raises(Rejected, match="a run is of job 11, which there is not"):
        check(signed([*every[:last], *every[last + 1 :]]))
    runs = [record for record in every if record.get("job") != 11 or record["kind"] != "run"]
    with pytest.raises(Rejected, match="job 11 is lost"):
        check(signed(runs))
    gone = [record for record in every if record.get("job") != 11]
    with pytest.raises(Rejected, match=r"the schedule costs .*, not "):
        check(signed(gone))


@pytest.mark.parametrize("of", ["parts", "pairs", "copies", "stopped"])
def test_it_is_of_gangs_that_share_nothing_until_all_are_complete(of):
    refused = []

    @settings(max_examples=4, deadline=None, derandomize=True)
    @given(CASES[of][0])
    def tried(case):
        outcome = Outcome.verified(*case, policy="some")
        found = certify(outcome, "completion", budget_s=0.0)
        every = records_of(found.text)
        shares = "no two jobs share a GPU" not in found.of_class
        if of == "stopped" or shares:
            kept = {"kind": "bound", "bound": "speed-up-power", "grid": [], "prices": []}
            every[-2] = {**kept, "exponent": 2**19}
            with pytest.raises(Rejected, match=r"share GPUs, hold parts|of what was stopped"):
                check(signed(every))
            refused.append(of)

    tried()
    assert refused


@pytest.mark.slow
def test_every_gang_is_bounded_whatever_its_speed_depends_on():
    """Types, job graphs, profiles: an exponent of 0 has every job at its shortest time."""
    for of in ("types", "graphs", "conditions", "failures", "quotas", "restarts"):

        @settings(max_examples=3, deadline=None, derandomize=True)
        @given(CASES[of][0])
        def holds(case):
            outcome = Outcome.verified(*case, policy="some")
            every = records_of(certify(outcome, "completion", budget_s=0.0).text)
            if "no two jobs share a GPU" not in every[-1]["class"]:
                return
            for exponent in (0, 2**19, 900_000):
                kept = {"kind": "bound", "bound": "speed-up-power", "grid": [], "prices": []}
                every[-2] = {**kept, "exponent": exponent}
                every[-1].update(bound=1, ratio=10**30)
                check(signed(every))

        holds()


def test_widths_of_a_job_increase_its_speed_by_no_more_than_their_power(text):
    """Of the exponent that certify finds: 1 + log2 of the efficiency, by which all sizes are the work."""
    bound = of_kind(records_of(text), "bound")
    assert bound["exponent"] / UNIT == pytest.approx(1 + math.log2(0.9), abs=2e-3)
    speeds = [float(Fraction(v)) for v in of_kind(records_of(text), "widths")["speeds"]]
    assert all(a < b for a, b in pairwise(speeds))
    assert json.loads(json.dumps(bound)) == bound
