"""Certificates that are made to cost time and memory: each is refused in a line, soon, whatever it asks for."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from copy import deepcopy
from itertools import count
from pathlib import Path

import pytest

from shadowprice.proofs import checker
from shadowprice.proofs.checker import Rejected, check, command, form, limits
from support.certificate_text import records_of, signed
from support.every_record import EVERY
from support.small_certificates import CLASS, certificate, earning, job, least, node, run

CHECKER = Path(checker.__file__).parent
CPU_S, MEMORY = 2, 600 * 2**20
GROW = f"{CLASS} and gangs may grow"


def limited():
    """No more CPU time and memory than these."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def refusal(folder, text):
    """What the program that checks says of a certificate, in one line."""
    path = folder / "cert.jsonl"
    path.write_text(text, encoding="ascii")
    started = [sys.executable, "-I", "-S", str(CHECKER), str(path)]
    done = subprocess.run(started, capture_output=True, text=True, check=False, preexec_fn=limited)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert re.fullmatch(r"rejected: .*\n", done.stderr), done.stderr
    return done.stderr


def primes(most):
    """Numbers with no divisor in common."""
    found = []
    for number in count(2):
        if all(number % each for each in found):
            found.append(number)
        if len(found) == most:
            return found


def coprime(number):
    """A denominator of a thousand digits or nearly so, which has nothing in common with the others."""
    return PRIMES[number] ** (990 * 10 // len(str(PRIMES[number] ** 10)))


PRIMES = primes(400)
ONE = [node(0, 1), job(0, 10), run(0, 0, 10)]


def in_turn(jobs):
    """Jobs of a tick one after the other."""
    return [run(j, j, j + 1) for j in range(jobs)]


def gangs():
    """The GPUs of a node as a table."""
    bound = least("configurations", [0, 10], [[1]])
    return certificate(node(0, 2**29), job(0, 10), run(0, 0, 10), bound)


def gangs_of_cells():
    """Each cell fills a large node anew."""
    bound = least("configurations", list(range(2001)), [[1] * 2000])
    return certificate(node(0, 10**6), job(0, 10), run(0, 0, 10), bound)


def gangs_on_a_node():
    """A node of which all that fits is looked for, again and again."""
    bound = {**least("priced-fluid-of-nodes", None, [1]), "rows": [[0, 10**6, [1], 0]] * 50}
    return certificate(node(0, 10**6), job(0, 10), run(0, 0, 10), bound)


def windows():
    """Sums of twenty-four gangs of which no two are the same."""
    jobs = [job(j, 1, 2**j) for j in range(19)]
    bound = {**least("completion-windows"), "jobs": list(range(19)), "unit": 1}
    part = {"kind": "part", "grid": [0, 99], "prices": [[1]] * 19}
    runs = [run(j, j, j + 1, [0, 2**j]) for j in range(19)]
    return certificate(node(0, 10**6), *jobs, *runs, bound, part)


def windows_again():
    """The same prices of thousands of cells for one part after the other."""
    jobs = [job(j, 1, 2**j) for j in range(12)]
    bound = {**least("completion-windows"), "jobs": list(range(12)), "unit": 1}
    grid = {"kind": "part", "grid": list(range(301)), "prices": [[1] * 300] * 12}
    cuts = [{"kind": "part", "cut": 0, "at": 50, "first": "early"}] * 300
    runs = [run(j, j, j + 1, [0, 2**j]) for j in range(12)]
    again = [{"kind": "part", "grid": [], "prices": []}] * 300
    return certificate(node(0, 10**4), *jobs, *runs, bound, *cuts, grid, *again)


def moments():
    """Moments whose common denominator grows with each."""
    grid = [f"{k * coprime(k) + 1}/{coprime(k)}" for k in range(300)]
    bound = {**least("completion-windows"), "jobs": [0], "unit": 1}
    part = {"kind": "part", "grid": grid, "prices": [[1] * 299]}
    return certificate(*ONE, bound, part)


def weights():
    """The sum of weights is exact."""
    jobs = [job(j, 1, weight=f"1/{coprime(j)}") for j in range(300)]
    return certificate(node(0, 1), *jobs, *in_turn(300), least("mean-busy-time"), cost=1)


def stages():
    """So are sums of what the stages of a graph send."""
    links = [[0, 1, f"1/{coprime(k)}", False] for k in range(300)]
    graph = {"kind": "graph", "graph": 0, "microbatches": 1, "links": links}
    graph["stages"] = [[1, 1, 0, 0], [1, 1, 0, 0]]
    network = {"kind": "network", "intra": 1, "nic": 1, "gpus": 2, "sharing": "per-job"}
    return certificate(network, node(0, 2), graph, job(0, {}, 2, graph=0, work=1), cost=1)


def long_graph(stages, links):
    """A graph of stages in a row, linked again and again."""
    graph = {"kind": "graph", "graph": 0, "microbatches": 1}
    graph["stages"] = [[1, 1, 0, 0]] * stages
    graph["links"] = [[k % (stages - 1), k % (stages - 1) + 1, 1, False] for k in range(links)]
    network = {"kind": "network", "intra": 1, "nic": 1, "gpus": 2, "sharing": "per-job"}
    return certificate(network, node(0, 2), graph, job(0, {}, 2, graph=0, work=1), cost=1)


def many_stages():
    return long_graph(300, 10)


def many_links():
    return long_graph(10, 5000)


def wide_jobs():
    """Many jobs of a table of many widths."""
    table = {"kind": "widths", "widths": 0, "speeds": [1] * 100_000}
    jobs = [job(j, 10, widths=0) for j in range(20)]
    return certificate(node(0, 1), table, *jobs, run(0, 0, 10), about=GROW)


def points():
    """Every width with every row of a profile."""
    table = {"kind": "widths", "widths": 0, "speeds": [1] * 6000}
    cells = [[k, k, 1] for k in range(1, 6000)]
    profile = {"kind": "profile", "profile": 0, "cells": cells}
    more = job(0, 10, widths=0, profile=0)
    bound = least("priced-fluid-of-amounts", None, [1, 1, 1])
    machine = node(0, 1, cpus=1, memory=1)
    return certificate(machine, table, profile, more, run(0, 0, 10, [0, 1, 0]), bound, about=GROW)


def kinds_of_nodes():
    """Every job on every size of nodes."""
    nodes = [node(k, k + 1) for k in range(1000)]
    jobs = [job(j, 1, j + 1) for j in range(1000)]
    bound = {**least("priced-fluid-of-nodes", None, [1]), "rows": [[0, 1, [1], 0]] * 2000}
    held = [run(j, j, j + 1, [j, j + 1]) for j in range(1000)]
    return certificate(*nodes, *jobs, *held, bound)


def cells_of_modes():
    """Every job in every cell in every mode."""
    bound = least("typed-interval-lp", list(range(20_001)), [[0]] * 20_000)
    bound["values"] = [0] * 2000
    return certificate(node(0, 1), *(job(j, 1) for j in range(2000)), *in_turn(2000), bound)


def cells_of_jobs():
    """Every job in every cell."""
    bound = least("interval-lp", list(range(20_001)), [0] * 20_000)
    return certificate(node(0, 1), *(job(j, 1) for j in range(2000)), *in_turn(2000), bound)


def levels():
    """Every weight with every job."""
    jobs = [job(j, 1, weight=j + 1) for j in range(7000)]
    bound = {**least("speed-up-power"), "exponent": 1}
    return certificate(node(0, 1), *jobs, *in_turn(7000), bound)


def types():
    """A column of times for each type."""
    return certificate(
        *(node(k, 1, f"type {k}") for k in range(100)), job(0, {"type 0": 1}), cost=1
    )


def measures():
    """Speeds whose differences have only a measure of millions of bits in common."""
    names = [f"type {k}" for k in range(60)]
    times = {kind: 7 ** (34 - k % 3) + PRIMES[k] ** 10 for k, kind in enumerate(names)}
    due = job(0, times, worth=1, deadline=2**99)
    held = run(0, 0, times["type 0"])
    nodes = [node(k, 1, kind) for k, kind in enumerate(names)]
    bound = {**least("typed-round-prices", None, [[1] * 9] * 60), "unit": 1}
    return earning(*nodes, due, held, bound, earned=1, bound=1, round=2**99)


def paces():
    """A job whose every run is at another speed: their sum is exact."""
    count, speeds = 1500, [1, *(f"{2**20 + 2 * k + 1}/{2**20}" for k in range(1500))]
    table = {"kind": "widths", "widths": 0, "speeds": speeds}
    runs = [run(0, k, k + 1, [0, k + 1]) for k in range(count)]
    return certificate(node(0, 4000), table, job(0, 2**52 - 1, widths=0), *runs, about=GROW, cost=1)


def deep():
    """A list within a list within a list."""
    return f'{{"kind":"header","policy":{"[" * 10**6}{"]" * 10**6}}}\n'


def digits():
    """A number of a million digits."""
    return f'{{"kind":"node","node":{"9" * 10**6}}}\n'


def exponent():
    return '{"kind":"node","node":1e999999999}\n'


BOMBS = {
    gangs: "more than 1000000 GPUs",
    gangs_of_cells: "configurations: checking it takes too many steps",
    gangs_on_a_node: "nodes: checking it takes too many steps",
    windows: "of 19 jobs, and not of 12 at most",
    moments: "moments have no common denominator",
    weights: "weights have no common denominator",
    stages: "a graph's numbers have no common denominator",
    many_stages: "more than 256 stages",
    many_links: "more than 4096 links",
    wide_jobs: "speeds of jobs: checking it takes too many steps",
    points: "amounts: checking it takes too many steps",
    kinds_of_nodes: "nodes: checking it takes a table of too many entries",
    cells_of_modes: "prices over time: checking it takes too many steps",
    cells_of_jobs: "interval-lp: checking it takes too many steps",
    levels: "speed-up-power: checking it takes too many steps",
    types: "more than 64 GPU types",
    measures: "no short measure in common",
    paces: "short of its work|too many speeds",
    deep: "malformed",
    digits: "malformed",
    exponent: "not in canonical form",
}


@pytest.mark.parametrize(("bomb", "says"), BOMBS.items(), ids=[b.__name__ for b in BOMBS])
def test_what_would_take_all_time_or_memory_is_refused_soon(bomb, says, tmp_path):
    assert re.search(says, refusal(tmp_path, bomb()))


def test_parts_with_the_prices_of_the_part_before_are_counted_too(monkeypatch):
    text = windows_again()
    monkeypatch.setattr(checker.windows, "MOST_SUMS", 10**5)
    with pytest.raises(Rejected, match="completion-windows: checking it takes too many steps"):
        check(text)


EACH = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import checker
for name, texts in json.load(open(sys.argv[2])).items():
    for text in texts:
        began = time.process_time()
        try:
            checker.check(text)
        except checker.Rejected as error:
            assert "\\n" not in str(error) and len(str(error)) < 2500, (name, error)
        assert time.process_time() - began < 2, (name, text)
"""
HUGE = (2**100, 2**64, 10**7, f"{10**999 + 7}/{10**998 + 1}")


def changed(record):
    """The record with each of its numbers huge."""

    def places(value, path):
        entries = value.items() if isinstance(value, dict) else ()
        for key, entry in enumerate(value) if isinstance(value, list) else entries:
            if type(entry) is int or (type(entry) is str and "/" in entry):
                yield (*path, key)
            yield from places(entry, (*path, key))

    for path in places(record, ()):
        for value in HUGE:
            found = deepcopy(record)
            inner = found
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            yield found


def test_no_huge_number_takes_long(tmp_path):
    """Neither time nor memory: each of them in the place of every number of every record."""
    texts = {
        name: [
            signed([*found[:k], other, *found[k + 1 :]])
            for k, record in enumerate(found)
            for other in changed(record)
        ]
        for name, found in ((name, records_of(text)) for name, text in EVERY.items())
    }
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    started = [sys.executable, "-I", "-S", "-c", EACH, str(CHECKER.parent), str(path)]
    memory = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))}
    done = subprocess.run(started, capture_output=True, text=True, check=False, **memory)
    assert (done.returncode, done.stderr) == (0, "")


def test_lines_have_an_end(monkeypatch):
    text = certificate(*ONE)
    longest = max(map(len, text.splitlines(keepends=True)))
    for most in (longest, longest - 1):
        for module in (form, checker.claim):
            monkeypatch.setattr(module, "LONGEST_LINE", most)
        if most == longest:
            check(text)
            continue
        with pytest.raises(Rejected, match="has more than 10\\^8 characters"):
            check(text)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "checking it takes more memory than there is"),
        (RecursionError("deep"), "a record is malformed: RecursionError"),
        (AssertionError("odd\nor not"), "a record is malformed: AssertionError"),
        (StopIteration(), "a record is malformed"),
    ],
)
def test_whatever_happens_is_a_refusal_in_a_line(error, says, monkeypatch, tmp_path, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr(checker.claim, "bound_of", fail)
    path = tmp_path / "cert.jsonl"
    path.write_text(certificate(*ONE))
    monkeypatch.setattr(sys, "argv", ["checker", str(path)])
    assert command.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"rejected: {says}")
    assert printed.err.count("\n") == 1


def test_names_are_printed_where_they_cannot_be(tmp_path):
    path = tmp_path / "cert.jsonl"
    found = records_of(certificate(*ONE))
    path.write_text(signed([{**found[0], "policy": "las\u00e9"}, *found[1:]]))
    started = [sys.executable, str(CHECKER), str(path)]
    plain = {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(started, capture_output=True, text=True, check=False, env=plain)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("proven: las\\xe9 costs at most")


def test_a_job_runs_at_as_many_speeds_as_have_a_measure(monkeypatch):
    speeds = ["3/2", "5/4", "9/8"]
    table = {"kind": "widths", "widths": 0, "speeds": [1, *speeds]}
    runs = [run(0, k, k + 1, [0, k + 2]) for k in range(3)]
    text = certificate(node(0, 4), table, job(0, 2**40, widths=0), *runs, about=GROW, cost=1)
    for bits, says in ((200, "short of its work"), (80, "a job ran at too many speeds")):
        monkeypatch.setattr(checker.gangs, "MOST_BITS", bits)
        with pytest.raises(Rejected, match=says):
            check(text)


def test_many_jobs_are_not_too_many():
    """Steps grow with the jobs: cells of plans are fewer than those that a job adds."""
    effort = limits.Effort("plans", 82_247)
    effort.spend(4_000 * 82_247)
    effort = limits.Effort("plans", 10**6)
    effort.spend(4_000 * 10**6)


DOCS = Path(checker.__file__).parent / "README.md"


def test_the_docs_state_the_limits():
    text = DOCS.read_text(encoding="utf-8")
    table = text[text.index("\n## Limits\n") :]
    assert form.LONGEST_LINE == limits.MOST_SUMS == 10**8
    assert form.LARGEST == 2**100
    assert form.MOST == 10**1000
    for row in (
        "| characters of a line | 10^8 |",
        "| times, prices and numbers of things | 2^100 |",
        "a claim | 2^53 |",
        "denominator | 1,000 each |",
        f"GPUs of a graph | 10^{len(str(limits.MOST_GPUS)) - 1} |",
        f"| GPU types | {limits.MOST_TYPES} |",
        f"| jobs | 10^{len(str(limits.MOST_JOBS)) - 1} |",
        f"| stages and links of a graph | {limits.MOST_STAGES} and {limits.MOST_LINKS:,} |",
        f"| jobs of `completion-windows` | {limits.MOST_WINDOWED} |",
        f"at which a job ran | 2^{limits.MOST_BITS.bit_length() - 1} bits |",
        f"can have, in bounds of utilities | 2^{limits.MEASURE_BITS.bit_length() - 1} bits |",
        "entries of a table of modes, rows and jobs | 2 x 10^7 |",
        f"levels of weights | 10^7, and {limits.STEPS_OF_A_JOB:,} for each job |",
        f"width and node | 10^6, and {limits.STEPS_OF_A_JOB:,} for each job |",
        f"prices of utilities | 10^8, and {limits.STEPS_OF_A_JOB:,} for each job",
    ):
        assert row in table, row
    assert (limits.MOST_STEPS, limits.MOST_SPEEDS) == (10**7, 10**6)
    assert (limits.MOST_GPUS, limits.MOST_JOBS, limits.MOST_ENTRIES) == (10**6, 10**7, 2 * 10**7)
    assert (limits.MOST_BITS, limits.MEASURE_BITS) == (2**20, 2**16)


def test_steps_are_counted_to_the_last():
    for effort, most in (
        (limits.Effort("work"), limits.MOST_STEPS),
        (limits.Effort("work", 3, 5), 5 + 3 * limits.STEPS_OF_A_JOB),
    ):
        effort.spend(most - 1)
        effort.spend(1)
        effort.spend(0)
        with pytest.raises(Rejected, match="work: checking it takes too many steps"):
            effort.spend(1)
    limits.fits(limits.MOST_ENTRIES, "a table")
    with pytest.raises(Rejected, match="a table: checking it takes a table of too many entries"):
        limits.fits(limits.MOST_ENTRIES + 1, "a table")


@pytest.mark.parametrize(
    ("name", "module", "limit", "most"),
    [
        ("the LP", "instance", "MOST_GPUS", 2),
        ("charges", "instance", "MOST_GPUS", 2),
        ("charges", "instance", "MOST_TYPES", 1),
        ("copies", "instance", "MOST_TYPES", 2),
        ("windows", "instance", "MOST_JOBS", 2),
        ("windows", "windows", "MOST_WINDOWED", 2),
        ("windows", "windows", "MOST", 3),
        ("charges", "instance", "MOST", 3),
        ("graphs", "speeds", "MOST_STAGES", 2),
        ("graphs", "speeds", "MOST_LINKS", 1),
        ("graphs", "speeds", "MOST_GPUS", 3),
        ("graphs", "speeds", "MOST", 3),
        ("the LP", "gangs", "MOST_BITS", 4),
    ],
)
def test_what_is_at_its_limit_is_taken(name, module, limit, most, monkeypatch):
    """And one less than there is, not."""
    owner = getattr(checker, module)
    monkeypatch.setattr(owner, limit, most)
    check(EVERY[name])
    monkeypatch.setattr(owner, limit, most - 1)
    with pytest.raises(
        Rejected, match=r"more than \d|at most|too many speeds|no common denominator"
    ):
        check(EVERY[name])


EFFORT = {
    "the LP": {"interval-lp": 1},
    "plans": {"prices of plans": 2},  # The cell, and that after which waiting does not pay.
    "configurations": {"configurations": 1 * 1 * 2, "prices of plans": 2},
    "values": {"prices over time": 1 + 1, "entries": 1},
    # The row: two GPUs, one gang and none. One job, of one kind, in two modes, and one row.
    "nodes": {"nodes": 2 * 2, "entries": 2 + 8 * 1 * (2 + 1)},
    "powers": {"speeds of jobs": 3 * 2, "speed-up-power": 2 * 96 + 1},
    "windows": {"completion-windows": 2 * 2 * 2},
    # One job and two ends of cells, each for starts and ends; the job after nobody.
    "lists": {"list-schedules": 1 * (1 + 8 * 2) + 1 * (1 + 0 + 1)},
    "utility": {"prices of types": 2, "prices of rounds": 2 * 2, "entries": 2},
    "copies": {"speeds of jobs": 2},
    "growth, profiles and spreading": {"speeds of jobs": 2 * 2},
    # One key, two rows; one by one and with those that are kept. Three of width 1 for three jobs and kinds.
    "amounts": {"speeds of jobs": 4, "amounts": 2 + 1, "entries": 2 + 3 * 2},
    "who begins again where he could go on": {"speeds of jobs": 2},
    "graphs": {"speeds of jobs": 1, "runs of job graphs": 10 * 3 * 2},
    "parts": {"speeds of jobs": 2},
    "powers of graphs": {
        "speeds of jobs": 1,
        "runs of job graphs": 10 * 3 * 2,
        "speed-up-power": 96 + 1,
    },
    "pairs": {"speeds of jobs": 2 * 5, "pairs": 1 + 1, "entries": 2},
}
"""Steps by what they are of, and entries of tables, of small certificates."""


@pytest.mark.parametrize("name", EVERY)
def test_all_that_takes_steps_is_counted(name, monkeypatch):
    counted = {}

    def count_steps(effort, steps):
        counted[effort.what] = counted.get(effort.what, 0) + steps

    def count_entries(entries, _):
        counted["entries"] = counted.get("entries", 0) + entries

    monkeypatch.setattr(limits.Effort, "spend", count_steps)
    for module in (checker.modes, checker.utility):
        monkeypatch.setattr(module, "fits", count_entries)
    check(EVERY[name])
    assert counted == EFFORT.get(name, {})


def test_prices_that_count_take_steps(monkeypatch):
    """Sums of gangs of windows are counted where they are worth something; two jobs in one cell, one sum and two."""
    counted = []
    monkeypatch.setattr(limits.Effort, "spend", lambda effort, steps: counted.append(steps))
    found = records_of(EVERY["windows"])
    found[8]["prices"] = [[1], [1]]
    with pytest.raises(Rejected, match="the bound is"):
        check(signed(found))
    assert counted == [4, 1, 2, 4, 1, 2]
