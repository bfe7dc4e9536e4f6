"""The checker that is proven: its proofs are complete, it agrees with the other one, and a fault breaks them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from operator import mul
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

import shadowprice as sp
from shadowprice.analysis.certify import certify
from shadowprice.analysis.certify_utility import certify_utility
from shadowprice.analysis.outcome import Outcome
from shadowprice.instances.clusters.quotas import Quotas
from shadowprice.instances.terms.window import JobWindow
from shadowprice.proofs.checker import Rejected, check
from shadowprice.proofs.checker.form import PRICE_UNIT
from shadowprice.proofs.checker.instance import TAKE, CertificateInstance
from support.certificate_cases import CASES
from support.certificate_text import records_of, signed
from support.paths import ROOT
from support.small_certificates import CLASS, certificate, earning, job, least, node, run

ROCQ = ROOT / "shadowprice" / "proofs" / "rocq"
PROOFS = ROOT / "tests" / "proofs"
NEEDED = ("coqc", "ocamlfind", "make")
FAST = "not (slow or gpu or ray or slurm)"
OUTSIDE = "not covered by the proof"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)), reason="Rocq (Debian's coq) or OCaml is not installed"
    ),
]


def make(folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["make", "-C", str(folder), "BUILD=build"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the proofs, compiled, and what the compilation printed."""
    folder = tmp_path_factory.mktemp("rocq")
    shutil.copytree(ROCQ, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("build"))
    done = make(folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_the_theorem_rests_on_no_axiom(built):
    _, printed = built
    assert "Closed under the global context" in printed


def by_area(number):
    """A certificate of a random run by `area`, which the proof speaks of, whichever bounds are largest of others."""
    draw = np.random.default_rng(number)
    jobs = sp.Workload.from_columns(
        arrival_s=np.sort(draw.integers(0, 20, 6)),
        gpus=draw.integers(1, 9, 6),
        work=draw.integers(1, 30, 6),
        weight=draw.integers(1, 4, 6),
    )
    outcome = sp.simulate(jobs, "2x4", ("fifo", "srtf", "las")[number % 3])
    return certify(outcome, "makespan", budget_s=0).text


def answers_of(folder, paths):
    """The proven checker's line for each file."""
    lines = []
    for first in range(0, len(paths), 500):
        command = [folder / "build" / "proven-checker", *paths[first : first + 500]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines += done.stdout.splitlines()
    return dict(zip(paths, lines, strict=True))


def test_it_agrees_with_the_other_checker_on_every_certificate_of_its_tests(built, tmp_path):
    """And covers more than nine in ten of those that are proven; of the others it prints how many lack what."""
    folder, _ = built
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # The plugin comes before the registration of what pytest rewrites.
    command += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", FAST]
    environment = {
        **os.environ,
        "RECORDED_CERTIFICATES": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    tests = [
        *sorted(PROOFS.glob("test_certificate*.py")),
        PROOFS / "test_checker.py",
        PROOFS / "checker",
    ]
    done = subprocess.run(
        [*command, "-p", "support.recorded_certificates", *tests],
        capture_output=True,
        text=True,
        env=environment,
        cwd=ROOT,
        check=False,
    )
    # What searches find in some seconds differs beside other work, and a few of these tests ask for it.
    assert done.returncode in (0, 1), done.stdout
    for number in range(40):
        (tmp_path / f"area-{number}.proven").write_text(by_area(number), encoding="ascii")
    answers: Counter[tuple[str, str]] = Counter()
    lacks: Counter[str] = Counter()
    for path, line in answers_of(folder, sorted(tmp_path.iterdir())).items():
        mine, what = line.removeprefix(f"{path}: ").partition(": ")[::2]
        other = path.suffix[1:]
        if mine not in (OUTSIDE, other):
            # Tests break the other checker, too: it is asked again.
            other = judged(path.read_text(encoding="ascii"))
        assert mine in (OUTSIDE, other), line
        answers[other, mine] += 1
        if (other, mine) == ("proven", OUTSIDE):
            lacks[what] += 1
    print(*(f"{count:5} {what}" for what, count in lacks.most_common()), sep="\n")
    proven, outside = answers["proven", "proven"], answers["proven", OUTSIDE]
    print(f"{proven} of {proven + outside} certificates are covered")
    assert answers["rejected", "rejected"] > 14_000
    assert 10 * proven > 9 * (proven + outside)


def judged(text):
    try:
        check(text)
    except Rejected:
        return "rejected"
    return "proven"


CHARGED = sp.RunOptions(overheads=sp.Overheads(start_s=1.5, restart_s=0.25, migration_s=0.5))
RESTARTING = replace(CHARGED, preemption=sp.Preemption.RESTART)


def by_jobs(text):
    """The certificate with the bound of every job alone, a start in it, in place of its own."""
    every = records_of(text)
    jobs = [each for each in every if each["kind"] == "job"]
    start, late = every[0]["start"], every[0]["objective"] == "completion"
    ends = (min(each["run"].values()) + start + late * each["arrival"] for each in jobs)
    claim, bound = every[-1], sum(ends)
    every[-2] = {"kind": "bound", "bound": "job", "grid": [], "prices": []}
    claim |= {"bound": bound, "ratio": str(Fraction(claim["cost"], bound))}
    return every


@pytest.mark.parametrize(
    ("goal", "options"),
    [
        (goal, each)
        for goal in ("flow", "completion", "makespan")
        for each in (sp.RunOptions(), CHARGED, RESTARTING)
    ],
)
def test_charges_of_starts_and_work_that_is_lost_are_proven(built, tmp_path, goal, options):
    """Of runs on types of which one is too small for a gang; those that owe a tick more are refused."""
    folder, _ = built
    draw = np.random.default_rng(7)
    for number in range(6):
        jobs = sp.Workload.from_columns(
            arrival_s=np.sort(draw.integers(0, 20, 16)),
            gpus=draw.integers(1, 4, 16),
            work=draw.integers(1, 30, 16),
        )
        outcome = sp.simulate(jobs, "2x2:a,1x1:b", ("srtf", "las")[number % 2], options)
        made = certify(outcome, goal, budget_s=0)
        every = records_of(made.text) if goal == "makespan" else by_jobs(made.text)
        for owed, expected in ((0, 0), (1, 1)):
            every[0]["start"] += owed
            text = signed(every)
            path = tmp_path / f"{number}.jsonl"
            path.write_text(text, encoding="ascii")
            command = [folder / "build" / "proven-checker", path]
            found = subprocess.run(command, capture_output=True, text=True, check=False)
            assert found.returncode == expected, found.stdout
            if expected:
                with pytest.raises(Rejected):
                    check(text)
            else:
                check(text)


def test_it_knows_windows_stopped_runs_quotas_and_utilities(built, tmp_path):
    """Which the certificates that `certify` writes of such runs show, and those with a claim that is a bit better."""
    folder, _ = built
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 2], work=[9, 5], tenant="a")
    whole = sp.simulate(jobs, "1x4", "fifo")
    cluster = replace(sp.Cluster.parse("1x4"), quotas=Quotas(("a",), (0.0,), ((4,),)))
    rows = whole.schedule
    half = replace(rows, end_s=np.minimum(rows.end_s, 6.0))
    outcomes = [
        sp.simulate(jobs, cluster, "fifo"),
        Outcome.verified(
            replace(whole.instance, until_complete=JobWindow(0, 1)), rows, policy="fifo"
        ),
        Outcome.verified(replace(whole.instance, stopped_s=6.0), half, policy="fifo"),
    ]
    texts = [certify(outcome, budget_s=0).text for outcome in outcomes]
    texts.append(certify_utility(whole, "completion_time", 2.0, budget_s=0).text)
    paths = []
    for number, text in enumerate(texts):
        every = records_of(text)
        claim, better = every[-1], Fraction(every[-1]["ratio"]) - Fraction(1, 10**9)
        forged = [*every[:-1], {**claim, "ratio": str(better)}]
        for name, written in (("proven", text), ("rejected", signed(forged))):
            paths.append(tmp_path / f"{number}.{name}")
            paths[-1].write_text(written, encoding="ascii")
    for path, line in answers_of(folder, paths).items():
        assert line.startswith(f"{path}: {path.suffix[1:]}"), line


ONE_GPU = [node(0, 1), job(0, 10), job(1, 4, arrival=2), run(0, 0, 10), run(1, 10, 14)]
QUEUE = [node(0, 1), job(0, 10), job(1, 10), run(0, 0, 10), run(1, 10, 20)]
# Gangs of two on nodes of three GPUs, which hold one of them each.
THREES = [
    *(node(k, 3) for k in range(2)),
    *(job(j, 10, 2) for j in range(4)),
    *(run(j, j // 2 * 10, j // 2 * 10 + 10, [j % 2, 2]) for j in range(4)),
]
ROWS = {"rows": [[0, 3, [PRICE_UNIT], 0]]}
APART = [
    *(node(k, 1, kind) for k, kind in enumerate("ab")),
    *(job(k, {kind: 10}) for k, kind in enumerate("ab")),
    *(run(k, 0, 10, [k, 1]) for k in range(2)),
]
# Ten ticks with half a CPU and a quarter of the memory, or twenty with less.
CELLS = {"kind": "profile", "profile": 0, "cells": [[500, 250, 1], [0, 125, "1/2"]]}
AMOUNTS = [
    node(0, 2, cpus=1000, memory=1000),
    CELLS,
    *(job(j, 10, profile=0) for j in range(2)),
    *(run(j, 0, 10, [0, 1, 0]) for j in range(2)),
]
ONCE = {"starts": "once", "about": f"non-{CLASS}"}
RESTARTED = {"preemption": "restart", "about": f"{CLASS}, jobs restart when preempted"}
FEW = {"placement": "consolidated", "about": f"{CLASS}, on as few nodes as gangs fit on"}
LAST = {"objective": "makespan"}
WINDOWS = {**least("completion-windows"), "jobs": [0, 1], "unit": 1}
CUT = [
    {"kind": "part", "cut": 0, "at": "31/2", "first": "early"},
    {"kind": "part", "grid": [0, 20], "prices": [[0], [0]]},
    {"kind": "part", "grid": [], "prices": []},
]
IN_ROUNDS = {"rounds": "whole", "about": f"{CLASS}, in whole rounds of {10 / 2**20!r} s"}
DUE = [job(j, 6, worth=4 - 2 * j, deadline=10) for j in range(2)]


def listed(value):
    """The record that says which cost no list is below."""
    return {**least("list-schedules"), "least": value}


LARGEST = {
    "lists, begun once": (ONE_GPU, listed, ONCE, 22),
    "lists, restarted": (ONE_GPU, listed, RESTARTED, 22),
    "lists, the last end": (ONE_GPU[:3] + QUEUE[3:4] + [run(1, 11, 15)], listed, ONCE | LAST, 14),
    "configurations": (QUEUE, least("configurations", [0, 10], [[PRICE_UNIT // 2]]), {}, 25),
    "windows": ([*QUEUE, *CUT], WINDOWS, {}, 20),
    "prices by type": (APART, least("priced-fluid", None, [1, 1]), {}, 15),
    "the last end at prices": (
        QUEUE,
        least("priced-span", None, [[1], [1, 1]]),
        LAST,
        Fraction(40, 3),
    ),
    "amounts": (AMOUNTS, least("priced-fluid-of-amounts", None, [1, 1, 1]), {}, Fraction(105, 8)),
    "nodes": (THREES, {**least("priced-fluid-of-nodes", None, [1, 1]), **ROWS}, {}, 25),
    "few nodes": (
        THREES,
        {**least("priced-fluid-of-nodes", None, [1, 1]), **ROWS},
        FEW,
        Fraction(75, 2),
    ),
    "the last end on nodes": (
        QUEUE,
        {**least("priced-span-of-nodes", None, [[1], [1, 1]]), "rows": []},
        LAST,
        Fraction(40, 3),
    ),
}
"""Runs, a bound of them that is below their cost, and its value."""


def larger(name, more):
    """A certificate whose bound is that much above its value."""
    records, bound, header, value = LARGEST[name]
    bound = bound(value + more) if callable(bound) else bound
    return certificate(*records, bound, bound=value + more, **header)


def in_rounds(less):
    """A certificate of the total utility in whole rounds, whose bound is that much below its value."""
    bound = {**least("whole-round-prices", None, [[1]]), "unit": 1}
    records = [node(0, 1), *DUE, run(0, 0, 6), run(1, 10, 16)]
    return earning(*records, bound, earned=4, bound=5 - less, round=10, **IN_ROUNDS)


@pytest.mark.parametrize("name", [*LARGEST, "whole rounds"])
def test_bounds_are_proven_up_to_their_value(built, tmp_path, name):
    """And one that is a tick above is refused, as by the other checker."""
    folder, _ = built
    paths = []
    for more, expected in ((0, "proven"), (1, "rejected")):
        text = in_rounds(Fraction(more, 8)) if name == "whole rounds" else larger(name, more)
        assert judged(text) == expected
        paths.append(tmp_path / f"cert.{expected}")
        paths[-1].write_text(text, encoding="ascii")
    for path, line in answers_of(folder, paths).items():
        assert line.startswith(f"{path}: {path.suffix[1:]}"), line


def alone(text, more=0):
    """The certificate with what all jobs by themselves cost in place of its bound, and so many ticks more than that."""
    every = records_of(text)
    instance = CertificateInstance()
    for kind, record in ((each["kind"], {**each}) for each in every):
        if kind in TAKE:
            del record["kind"]
            TAKE[kind](instance, record)
    jobs, claim = instance.relaxed(), every[-1]
    ends = map(sum, zip(jobs.arrival, jobs.shortest, strict=True))
    value = sum(map(mul, jobs.weight, ends), Fraction(more))
    every[-2] = {"kind": "bound", "bound": "job", "grid": [], "prices": []}
    ratio = max(Fraction(claim["cost"]) / value, Fraction(1))
    every[-1] = {**claim, "bound": written(value), "ratio": written(ratio)}
    return signed(every)


def written(number):
    return int(number) if number.denominator == 1 else str(number)


@pytest.mark.parametrize("of", ["graphs", "copies"])
def test_graphs_and_copies_are_bounded_as_the_other_checker_says(built, tmp_path, of):
    """Of each random run the bound of jobs by themselves is proven, to the last digit: one tick more is not."""
    folder, _ = built
    cases, _ = CASES[of]
    paths = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(cases)
    def recorded(case):
        outcome = Outcome.verified(*case, policy="some")
        assume(outcome.instance.stopped_s is None and outcome.instance.until_complete is None)
        text = certify(outcome, "completion", budget_s=0).text
        for name, each in (("proven", alone(text)), ("rejected", alone(text, 1))):
            assert judged(each) == name
            paths.append(tmp_path / f"{len(paths)}.{name}")
            paths[-1].write_text(each, encoding="ascii")

    recorded()
    assert len(paths) >= 40
    for path, line in answers_of(folder, paths).items():
        assert line.startswith(f"{path}: {path.suffix[1:]}"), line


@pytest.mark.parametrize("more", [{"rows": []}, {"least": 1}, {"jobs": [0]}])
def test_bounds_have_no_fields_of_others(built, tmp_path, more):
    folder, _ = built
    paths = []
    for number, text in enumerate((in_rounds(0), certificate(*QUEUE, bound=20))):
        changed = [
            {**each, **more} if each["kind"] == "bound" else each for each in records_of(text)
        ]
        assert judged(signed(changed)) == "rejected"
        paths.append(tmp_path / f"{number}.rejected")
        paths[-1].write_text(signed(changed), encoding="ascii")
    for path, line in answers_of(folder, paths).items():
        assert line.startswith(f"{path}: rejected"), line


def test_windows_that_end_with_a_busy_cluster_are_not_covered(built, tmp_path):
    """Whose value rests on that some best schedule is over by then."""
    folder, _ = built
    part = {"kind": "part", "grid": [0, 10, 14, 30], "prices": [[3, 2, 0], [3, 2, 0]]}
    text = certificate(*QUEUE, WINDOWS, part, bound=18)
    check(text)
    path = tmp_path / "cert.proven"
    path.write_text(text, encoding="ascii")
    line = answers_of(folder, [path])[path]
    assert line == f"{path}: {OUTSIDE}: windows that end when all is over"


def test_it_says_what_its_proof_does_not_speak_of(built, tmp_path):
    folder, _ = built
    jobs = sp.Workload.from_columns(arrival_s=[0, 0], gpus=[1, 2], work=[9, 5])
    whole = sp.simulate(jobs, "1x4", "fifo")
    every = records_of(certify(whole, budget_s=0).text)
    texts = {}
    every[-2] = {"kind": "bound", "bound": "speed-up-power", "grid": [], "prices": []}
    every[-2]["exponent"] = 0
    texts["the bound speed-up-power"] = signed(every)
    for what, text in texts.items():
        path = tmp_path / "cert.jsonl"
        path.write_text(text, encoding="ascii")
        found = subprocess.run(
            [folder / "build" / "proven-checker", path], capture_output=True, text=True, check=False
        )
        assert found.stdout == f"{path}: {OUTSIDE}: {what}\n"
        assert found.returncode == 2


@pytest.mark.parametrize(
    ("module", "before", "after"),
    [
        ("Checker", "(now + snd e <=? most)", "(now + snd e <=? most + 1)"),
        ("Checker", "(stop r <=? start r')", "(start r <=? start r')"),
        ("Checker", "(arrival j <=? start r)", "(0 <=? start r)"),
        ("Checker", "complete || negb (required I j)", "true"),
        ("Checker", "(sum snd (pieces r) <=? widest I * gang j)", "true"),
        ("Checker", "if Qle_bool 1 all", "if Qle_bool (1 # 2) all"),
        ("Claim", "(a <? b) && increasingb later", "increasingb later"),
        ("Claim", "Qle_bool (claimed_bound c) bound", "Qle_bool 0 bound"),
        ("Duality", "price * (b - a) + all_earn later more", "all_earn later more"),
        ("JobPrice", "most / 2);", "most / 2 - 1);"),
        ("PlanPrice", "(rent * price + delay, length)", "(rent * price + delay + 1, length)"),
        ("PlanPrice", "fst offer <? theta", "fst offer <? theta - 1"),
        ("Checker", "negb (goes_on r)\n", "true\n"),
        ("Schedule", "then least else (weight j * inject_Z limit)%Q", "then least else least"),
        ("Schedule", "Z.min (ran mod", "Z.max (ran mod"),
        ("Claim", "inject_Z (arrival j + shortest j)", "inject_Z (arrival j + shortest j + 1)"),
        ("Starts", "shortest j + c)) (times j)", "shortest j + c + c)) (times j)"),
        ("Starts", "(0 <=? migration c) &&", "true &&"),
        ("Claim", "(least_start I <=? start_charge (charged I))", "true"),
        ("Span", "capacity I <? 2 * gang (snd kj)", "capacity I <? 3 * gang (snd kj)"),
        ("Fluid", "if x <=? y then x :: l", "if y <=? x then x :: l"),
        ("Fluid", "consume (m * (r - now))", "consume (m * (r - now) - 1)"),
        ("Fluid", "gang (snd kj) * (q + 1)", "gang (snd kj) * (q + 2)"),
        ("BusyTime", "(b <=? r * m) && (r * m <? b + y)", "(r * m <? b + y)"),
        ("BusyTime", "(b + y) * (b + y) - b * b + blocks", "(b + y) * (b + y) + blocks"),
        ("Doubles", "if Z.even q then q else q + 1", "if Z.even q then q else q + 2"),
        ("Graphs", "then best else far_byte N)", "then far_byte N else far_byte N)"),
        ("Graphs", "(2 * more (away_byte N", "(3 * more (away_byte N"),
        ("GraphClaim", "(2 <=? length (sizes P))%nat", "(3 <=? length (sizes P))%nat"),
        ("Dealing", "Z.of_nat n - 1 - Z.of_nat w", "Z.of_nat n - Z.of_nat w"),
        ("Copies", "Qle_bool (inject_Z p * fastest C K)", "Qle_bool (inject_Z p)"),
        ("CopyClaim", "Qle_bool 1 (copy_ratio c)", "true"),
        ("Utility", "Z.max a (k * round)),\n", "a),\n"),
        ("Utility", "gang j * (up * work - sum", "gang j * (up * work + sum"),
        ("Utility", "snd other <=? snd entry", "snd other <? snd entry"),
        ("Claim", "Qle_bool (most_earned c) (claimed_most c)", "Qle_bool 0 (claimed_most c)"),
        ("Lists", "(now a <=? now b) &&", "true &&"),
        ("Lists", "let from := Z.max (now st) (ready (item_at k)) in", "let from := now st + 1 in"),
        (
            "Lists",
            "if least <=? at_least then_ (snd p) then",
            "if least - 1 <=? at_least then_ (snd p) then",
        ),
        ("ListBound", "(once I || lost I) &&", "true &&"),
        ("Worth", "(from x <? b) &&", "(from x <? a) &&"),
        ("Windows", "Z.max (fst (snd w)) moment, snd", "Z.max (fst (snd w)) (moment + 2), snd"),
        ("Windows", "let p := fine * shortest j in", "let p := fine * shortest j + 1 in"),
        ("WholeRounds", "way_of (up round (snd entry))", "way_of (up round (snd entry) + 1)"),
        ("WholeRounds", "forallb (fun r => start r mod round_length c =? 0) s", "true"),
        ("Priced", "let worth := worth + least kj in", "let worth := worth + least kj + 1 in"),
        ("Modes", "(lasts_in m <=? pace I (snd kj) r)", "true"),
        ("Nodes", "<=? whole_node)", "<=? whole_node + 1)"),
        ("Nodes", "if (2 <=? g) &&", "if (3 <=? g) &&"),
        ("MoreClaims", "ByModes table _ _ => check_fed I table s", "ByModes table _ _ => true"),
    ],
)
def test_a_checker_that_is_wrong_has_no_proof(built, tmp_path, module, before, after):
    folder, _ = built
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    source = tmp_path / f"{module}.v"
    text = source.read_text(encoding="utf-8")
    assert text.count(before) >= 1
    source.write_text(text.replace(before, after), encoding="utf-8")
    assert make(tmp_path).returncode != 0
