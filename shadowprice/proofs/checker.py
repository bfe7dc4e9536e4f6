"""Check a certificate: ``python checker.py FILE [DIGEST]``. Standard library only; imports nothing else.

A certificate claims that a schedule costs at most r times what any schedule of its class costs;
docs/certificates.md has its format, what is checked, and which bound holds for which class. The file is read once,
line by line: of jobs a few numbers are kept, of runs only what is still held or not yet done. Checked are
form and digests; the schedule (every job runs, after its arrival, on its gang, one run at a time, on types it
can use, all of its work, overheads charged and paid first, no node over its GPUs); the cost; the bound, from its
multipliers by weak duality, which must be as large as claimed; and cost <= r x bound, r >= 1. Numbers are
whole or fractions, and nothing is rounded in favour of the claim. Speeds under conditions are doubles, and
a run time divided by them is rounded up as IEEE 754 says: that is their definition.

With DIGEST, which `shadowprice certify` prints, the instance must be the one of this digest.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import json
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import accumulate, chain, pairwise
from math import ceil, lcm
from typing import Any, NamedTuple

Record = dict[str, Any]
Held = tuple[tuple[int, int], ...]
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

FORMAT = 3
LARGEST = 2**100
MOST = 10**1000
PRICE_UNIT = 2**20
FINE = 2**1200
TICKS_PER_S = 2**20
WHOLE_GPU = 1000
UTILITY = "utility"
OVER_TIME = ("effective_throughput", "completion_time", "fairness")
BY_DEADLINE = "deadline"
RATIONAL = re.compile(r"[0-9]{1,1000}/[0-9]{1,1000}", re.ASCII)
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""The one way to write a record."""


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def need(fine: object, message: str) -> None:
    """Reject unless a condition holds."""
    if not fine:
        raise Rejected(message)


def whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number from ``least`` on."""
    if type(value) is not int or not least <= value <= LARGEST:
        raise Rejected(f"{what} is {value!r:.80}, not an integer from {least} to 2^100")
    return value


def rational(value: Any, what: str) -> Fraction:
    """A number >= 0 as an integer or "p/q" in lowest terms, of at most 1,000 digits each."""
    if type(value) is int:
        need(0 <= value < MOST, f"{what} is {value!r:.80}, not a number from 0 to 10^1000")
        return Fraction(value)
    say = f'{what} is {value!r:.80}, not an integer or "p/q" >= 0 in lowest terms'
    need(type(value) is str and RATIONAL.fullmatch(value), say)
    number = Fraction(*map(int, value.split("/")))
    need(number.denominator > 1 and str(number) == value, say)
    return number


def double(value: Any, what: str) -> float:
    """A number >= 0 that a double is, exactly."""
    number = rational(value, what)
    need(Fraction(float(number)) == number, f"{what} is {value!r:.80}, which is no double")
    return float(number)


def name(value: Any, what: str) -> str:
    """A name that prints on one line as what it is."""
    fine = type(value) is str and 0 < len(value) <= 1000 and value.isprintable()
    need(fine, f"{what} is {value!r:.80}, not a printable name of 1 to 1,000 characters")
    return str(value)


def total(terms: Iterable[Fraction]) -> Fraction:
    """Their sum, rounded down to a multiple of 2^-1200; pairwise, for denominators may all be different."""
    by_unit: dict[int, int] = {}
    for term in terms:
        by_unit[term.denominator] = by_unit.get(term.denominator, 0) + term.numerator
    sums = [(above, below) for below, above in by_unit.items()]
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=False)
        sums = [*((a * d + c * b, b * d) for (a, b), (c, d) in pairs), *sums[len(sums) & ~1 :]]
    return Fraction((sums[0][0] << 1200) // sums[0][1], 1 << 1200)


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of lines of text."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


# The file: kinds of records in their order, with their fields and those that some instances add.

FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "header": (
        {"format", "policy", "objective", "start", "restart", "migration"},
        {"placement", "window", "stopped", "preemption", "utility", "round"},
    ),
    "copies": ({"round", "restart", "aggregation", "most"}, set()),
    "checkpoints": ({"interval", "cost", "until"}, set()),
    "network": ({"intra", "nic", "gpus", "sharing"}, set()),
    "node": ({"node", "gpus", "type"}, {"cpus", "memory"}),
    "fault": ({"node", "down", "up"}, set()),
    "quota": ({"quota", "periods"}, set()),
    "widths": ({"widths", "speeds"}, set()),
    "profile": ({"profile", "cells"}, set()),
    "graph": ({"graph", "microbatches", "stages", "links"}, set()),
    "job": (
        {"job", "id", "arrival", "gpus", "weight", "run"},
        {"part", "spread", "widths", "profile", "sort", "beside", "graph", "work", "steps", "rate"}
        | {"quota", "worth", "deadline"},
    ),
    "run": ({"job", "start", "end", "overhead", "pieces"}, {"partner", "copy", "steps"}),
    "bound": ({"bound", "grid", "prices"}, {"jobs", "unit", "rows", "values"}),
    "part": (set(), {"cut", "at", "first", "grid", "prices"}),
    "claim": ({"class", "bound", "ratio", "instance", "file"}, {"cost", "earned"}),
}
OF_ALL_JOBS = {"quota", "worth", "deadline"}
"""Fields that no job's speed depends on."""
ORDER = {kind: place for place, kind in enumerate(FIELDS)}
ONCE = {"header", "copies", "checkpoints", "network", "bound", "claim"}


class LinesDigest:
    """SHA-256 of lines of text that come one by one, as they would be joined."""

    def __init__(self) -> None:
        self.sum, self.begun = hashlib.sha256(), False

    def add(self, line: str) -> None:
        """Take the next line."""
        self.sum.update(b"\n" + line.encode() if self.begun else line.encode())
        self.begun = True


def read(lines: Iterable[str]) -> Iterator[tuple[str, Record]]:
    """Kind and fields of every record, after form and order; the claim comes last, after the digests."""
    count = dict.fromkeys(FIELDS, 0)
    given, every, latest, claim = LinesDigest(), LinesDigest(), 0, None
    for number, line in enumerate(lines, 1):
        need(line[-1:] == "\n", "the file does not end with a line break")
        need(line.isascii(), "the file is not ASCII")
        record, text = json.loads(line), line[:-1]
        need(type(record) is dict, f"line {number} is not an object")
        need(canonical(record) == text, f"line {number} is not in canonical form")
        kind = record.pop("kind", None)
        fine = type(kind) is str and kind in ORDER
        need(fine, f"line {number}: kind is {kind!r:.80}, not one of {', '.join(ORDER)}")
        check_form(number, kind, record)
        need(ORDER[kind] >= latest, f"line {number}: {kind} comes too late")
        count[kind], latest = count[kind] + 1, ORDER[kind]
        if count[kind] != 1 or not count["header"]:
            check_count(count, {kind} & ONCE | {"header"})
        if kind == "claim":
            claim = record
            continue
        every.add(text)
        if ORDER["header"] < latest < ORDER["run"]:
            given.add(text)
        yield kind, record
    check_count(count, {"header", "bound", "claim"})
    if claim is not None:
        need(claim["instance"] == given.sum.hexdigest(), "the digest of the instance is another")
        signed = {"kind": "claim", **claim}
        signature = signed.pop("file")
        every.add(canonical(signed))
        need(signature == every.sum.hexdigest(), "the digest of the file is another")
        yield "claim", claim


def check_count(count: dict[str, int], kinds: Iterable[str]) -> None:
    """There is one record of each of these kinds."""
    for kind in sorted(kinds):
        need(count[kind] == 1, f"{count[kind]} lines are of kind {kind}, not one")


def check_form(number: int, kind: str, record: Record) -> None:
    """The format is known, and a record has its fields and no others."""
    if kind == "header":
        made = record.get("format")
        fine = type(made) is int and made == FORMAT
        need(fine, f"format is {made!r:.80}, this program checks format {FORMAT}")
    fields, more = FIELDS[kind]
    if record.keys() != fields and not fields <= record.keys() <= fields | more:
        raise Rejected(f"line {number}: {kind} has fields {', '.join(sorted(record)):.200}")


# The instance: nodes, jobs, and what their speeds depend on.


class LeastWork(NamedTuple):
    """Work that every schedule of the class has to do, in columns of the jobs.

    A job needs ``shortest`` ticks at its best speed and ``area`` of the cluster, which gives ``capacity`` of it a
    tick, ``scale`` for a GPU. With ``gangs``, whoever runs holds all of ``gang`` GPUs, and nobody else does.
    Where schedules were stopped ``until`` is when, and a job that is not complete counts until then.
    """

    arrival: list[int]
    weight: list[Fraction]
    shortest: list[int]
    area: list[int]
    gang: list[int]
    gpus: int
    capacity: int
    scale: int
    gangs: bool
    until: int | None = None


class GivenInstance:
    """The instance, record by record: each method takes one of its kind."""

    def __init__(self) -> None:
        self.header: Record = {}
        self.copies: Record = {}
        self.checkpoints: Record = {}
        self.network: Record = {}
        self.size: list[int] = []
        self.type_of: list[int] = []
        self.types: dict[str, int] = {}
        self.amounts: dict[tuple[int, str], int] = {}
        self.faults: dict[int, tuple[list[int], list[int]]] = {}
        self.quotas: list[tuple[list[int], list[int]]] = []
        self.quota_of: list[int] = []
        self.speeds: list[list[float]] = []
        self.cells: list[list[tuple[int, int, float]]] = []
        self.graphs: list[Graph] = []
        self.ids: set[str] = set()
        self.arrival: list[int] = []
        self.gang: list[int] = []
        self.weight: list[Fraction] = []
        self.weights: dict[int | str, Fraction] = {}
        self.worth: list[Fraction] = []
        self.deadline: list[int] = []
        self.times: list[tuple[int, ...]] = []
        self.known_times: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.shortest: list[int] = []
        self.area: list[int] = []
        self.more: dict[int, Record] = {}
        self.shares: dict[tuple[str, int, int], Fraction] = {}
        self.largest: list[int] = []

    def take_header(self, header: Record) -> None:
        """Policy and charges."""
        name(header["policy"], "policy")
        for field in ("start", "migration"):
            whole(header[field], field)
        gangs = [whole(gang, "gang of a restart", 1) for gang, _ in header["restart"]]
        need(
            gangs and gangs == sorted(set(gangs)), f"gangs of restarts are {gangs}, not increasing"
        )
        for _, ticks in header["restart"]:
            whole(ticks, "restart")
        if "window" in header:
            first, last = (whole(job, "job of the window") for job in header["window"])
            fine = first < last and "stopped" not in header
            need(fine, "the window has no jobs, or ends what was stopped")
        if "stopped" in header:
            whole(header["stopped"], "time at which it was stopped")
        fine = header.get("preemption", "restart") == "restart"
        need(fine, f"preemption is {header.get('preemption')!r:.80}, not restart")
        fine = header.get("placement", "consolidated") == "consolidated"
        need(fine, f"placement is {header.get('placement')!r:.80}, not consolidated")
        fields = {"utility", "round"} if header["objective"] == UTILITY else set()
        need(header.keys() & {"utility", "round"} == fields, "a utility is no objective, or lacks")
        if fields:
            known = (*OVER_TIME, BY_DEADLINE)
            fine = type(header["utility"]) is str and header["utility"] in known
            need(fine, f"utility is {header['utility']!r:.80}, not one of {', '.join(known)}")
            whole(header["round"], "round of utilities", 1)
        self.header = header

    def take_copies(self, rules: Record) -> None:
        """Rounds of copies."""
        charges = sum(whole(rules[field], field) for field in ("restart", "aggregation"))
        whole(rules["round"], "round", charges + 1)
        whole(rules["most"], "most copies", 1)
        free = not self.header["start"] + self.header["migration"]
        need("placement" not in self.header, "copies are on whole nodes, and never consolidated")
        need(free and not any(t for _, t in self.header["restart"]), "copies have other charges")
        other = self.header.keys() & {"window", "stopped", "preemption"}
        need(not other, "copies do not run to the end, or restart")
        self.copies = rules

    def take_checkpoints(self, rule: Record) -> None:
        """Checkpoints, by which a run that is cut short has saved something."""
        need(not self.copies, "copies run on nodes that do not fail")
        need("preemption" not in self.header, "who restarts saves nothing")
        whole(rule["interval"], "interval of checkpoints", 1)
        whole(rule["cost"], "cost of a checkpoint")
        whole(rule["until"], "time until which faults are known")
        self.checkpoints = rule

    def take_network(self, network: Record) -> None:
        """Bandwidths."""
        need(not self.copies, "copies have no network")
        fine = network["sharing"] in ("per-job", "per-gpu")
        need(fine, f"sharing of the network is {network['sharing']!r:.80}")
        rates = {field: rational(network[field], field) for field in ("intra", "nic")}
        need(all(rates.values()), "a bandwidth is 0")
        self.network = {**network, **rates, "gpus": whole(network["gpus"], "GPUs of a node", 1)}

    def take_node(self, node: Record) -> None:
        """A node."""
        k = len(self.size)
        need(whole(node["node"], f"node {k}") == k, f"node {k} is out of order")
        self.size.append(whole(node["gpus"], f"GPUs of node {k}", 1))
        kind = name(node["type"], f"type of node {k}")
        self.type_of.append(self.types.setdefault(kind, len(self.types)))
        for field in ("cpus", "memory"):
            if field in node:
                self.amounts[k, field] = whole(node[field], f"{field} of node {k}")

    def take_fault(self, fault: Record) -> None:
        """A node that is down for a while."""
        need(self.checkpoints, "nodes fail, and nothing says what is saved")
        node, down = whole(fault["node"], "node of a fault"), whole(fault["down"], "fault")
        up = whole(fault["up"], "end of a fault", down + 1)
        need(node < len(self.size), f"node {node} fails, which there is not")
        downs, ups = self.faults.setdefault(node, ([], []))
        need(not downs or downs[-1] <= down, f"faults of node {node} are out of order")
        downs.append(down)
        ups.append(max([up, *ups[-1:]]))

    def take_quota(self, quota: Record) -> None:
        """GPUs that the jobs of a tenant may hold, from the beginnings of periods on."""
        need(not self.copies, "copies run within no quotas")
        need(whole(quota["quota"], "quota") == len(self.quotas), "a quota is out of order")
        starts = [whole(start, "start of a period") for start, _ in quota["periods"]]
        gpus = [whole(most, "GPUs of a quota") for _, most in quota["periods"]]
        fine = starts[0] == 0 and all(a < b for a, b in pairwise(starts))
        need(fine, "periods of a quota are out of order, or the first does not begin at 0")
        self.quotas.append((starts, gpus))

    def take_widths(self, row: Record) -> None:
        """Speeds of gangs that hold more than theirs."""
        need(whole(row["widths"], "widths") == len(self.speeds), "widths are out of order")
        found = [double(speed, "speed of a width") for speed in row["speeds"]]
        need(found[0] == 1 and all(found), "a gang's own speed is not 1, or one is 0")
        self.speeds.append(found)

    def take_profile(self, profile: Record) -> None:
        """Speeds by thousandths of CPUs and memory a GPU."""
        need(whole(profile["profile"], "profile") == len(self.cells), "a profile is out of order")
        cells = [
            (whole(cpus, "CPUs"), whole(memory, "memory"), double(speed, "speed of a profile"))
            for cpus, memory, speed in profile["cells"]
        ]
        need(cells and all(speed for _, _, speed in cells), "a profile has no speeds, or one of 0")
        self.cells.append(cells)

    def take_graph(self, graph: Record) -> None:
        """A graph of stages."""
        need(whole(graph["graph"], "graph") == len(self.graphs), "a graph is out of order")
        need(self.network, "there are graphs and no network")
        self.graphs.append(Graph(graph, self.network))

    def take_job(self, job: Record) -> None:
        """A job: its columns, and of some instances more."""
        j = len(self.arrival)
        need(whole(job["job"], f"job {j}") == j, f"job {j} is out of order")
        self.ids.add(name(job["id"], f"id of job {j}"))
        need(len(self.ids) == j + 1, f"job {j} has the id of another")
        self.gang.append(whole(job["gpus"], f"gang of job {j}", 1))
        self.arrival.append(whole(job["arrival"], f"arrival of job {j}"))
        raw = job["weight"]
        if type(raw) not in (int, str) or raw not in self.weights:
            self.weights[raw] = rational(raw, f"weight of job {j}")
        self.weight.append(self.weights[raw])
        self.take_worth(j, job)
        run = job["run"]
        need(type(run) is dict, f"job {j} can run nowhere")
        need(
            run.keys() <= self.types.keys(), f"job {j} has a run time on a type that no node is of"
        )
        for ticks in run.values():
            whole(ticks, f"run time of job {j}", 1)
        times = tuple(run.get(kind, 0) for kind in self.types)
        self.times.append(self.known_times.setdefault(times, times))
        need(
            ("quota" in job) == bool(self.quotas), f"job {j} has a quota that is not there, or none"
        )
        if self.quotas:
            quota = whole(job["quota"], f"quota of job {j}")
            need(quota < len(self.quotas), f"job {j} has a quota that is not there")
            self.quota_of.append(quota)
        more = {field: job[field] for field in (FIELDS["job"][1] - OF_ALL_JOBS) & job.keys()}
        if more:
            self.more[j] = self.checked(j, more)
        shortest, area = self.least(j)
        self.shortest.append(shortest)
        self.area.append(area)

    def take_worth(self, j: int, job: Record) -> None:
        """Numerator of a job's utility, and its deadline."""
        utility = self.header.get("utility")
        fields = {"worth"} if utility in OVER_TIME else {"worth", "deadline"} if utility else set()
        fine = job.keys() & {"worth", "deadline"} == fields
        need(fine, f"job {j} has a worth or a deadline that no utility asks for, or lacks one")
        if "worth" in fields:
            self.worth.append(rational(job["worth"], f"worth of job {j}"))
        if "deadline" in fields:
            self.deadline.append(whole(job["deadline"], f"deadline of job {j}"))

    def checked(self, j: int, more: Record) -> Record:
        """Fields of a job that some instances add, after their form."""
        which = f"job {j}"
        if "part" in more:
            part = whole(more["part"], f"part of {which}", 1)
            fine = self.gang[j] == 1 and part < WHOLE_GPU and len(more) == 1
            need(fine, f"{which} holds a part of something else than a GPU")
        if "spread" in more:
            more["spread"] = double(more["spread"], f"speed of {which}")
            need(0 < more["spread"] <= 1, f"{which} is faster when spread")
        for field, table in (
            ("widths", self.speeds),
            ("profile", self.cells),
            ("graph", self.graphs),
        ):
            if field in more:
                known = whole(more[field], field) < len(table)
                need(known, f"{which} has a {field} that is not there")
        if "sort" in more or "beside" in more:
            whole(more["sort"], f"sort of {which}")
            for kind, times in more["beside"].items():
                need(kind in self.types, f"{which} shares GPUs of no node")
                for other, ticks in times.items():
                    need(str(int(other)) == other, f"{which} runs beside {other!r:.80}")
                    whole(ticks, f"run time of {which}", 1)
        need(
            ("graph" in more) == ("work" in more), f"{which} has a graph or work without the other"
        )
        if "graph" in more:
            more["work"] = double(more["work"], f"work of {which}")
            fine = more.keys() == {"graph", "work"} and not any(self.times[j])
            need(fine, f"{which} has a graph and other speeds")
        if self.copies or "steps" in more or "rate" in more:
            whole(more["steps"], f"steps of {which}", 1)
            rate = {kind: rational(r, f"rate of {which}") for kind, r in more["rate"].items()}
            able = rate and all(rate.values()) and rate.keys() <= self.types.keys()
            need(able and self.copies, f"{which} has rates of copies that cannot be")
            need(more.keys() == {"steps", "rate"}, f"{which} runs as copies and has other speeds")
            more["rate"] = {self.types[kind]: r for kind, r in rate.items()}
        return more

    def widest(self, j: int) -> int:
        """Most GPUs of a job that may grow."""
        return self.gang[j] + len(self.speeds[self.more[j]["widths"]]) - 1

    def fewest(self, width: int) -> int:
        """Fewest nodes that hold so many GPUs."""
        if not self.largest:
            self.largest = list(accumulate(sorted(self.size, reverse=True)))
        return bisect_left(self.largest, width) + 1

    def cut_short(self, j: int, run: Record) -> bool:
        """True if a run ends when one of its nodes goes down; none may be down before."""
        short = False
        for node, *_ in run["pieces"]:
            downs, ups = self.faults.get(node, ([], []))
            k = bisect_left(downs, run["end"])
            fine = not k or ups[k - 1] <= run["start"]
            need(fine, f"job {j} at tick {run['start']} runs on node {node}, which is down")
            short |= downs[k : k + 1] == [run["end"]]
        return short

    # Shortest times and smallest areas.

    def least(self, j: int) -> tuple[int, int]:
        """Ticks of a job at its best speed, and GPU ticks that it takes at least."""
        more, gang, times = self.more.get(j), self.gang[j], self.times[j]
        if more is None or "part" in more:
            need(any(times), f"job {j} can run nowhere")
            shortest = min(ticks for ticks in times if ticks)
            return shortest, gang * shortest
        if "graph" in more:
            shortest = self.graphs[more["graph"]].ticks(more["work"], ())
            return shortest, gang * shortest
        if "steps" in more:
            return self.least_of_copies(more)
        need(any(times), f"job {j} can run nowhere")
        plain = min(ticks for ticks in times if ticks)
        area = self.area_of(j, plain)
        beside = [ticks for row in more.get("beside", {}).values() for ticks in row.values()]
        for kind, row in more.get("beside", {}).items():
            for other, ticks in row.items():
                share = max(Fraction(area, w * t) for w, t in self.by_width(j, ticks))
                key = (kind, more["sort"], int(other))
                self.shares[key] = max(self.shares.get(key, share), share)
        return min(t for _, t in self.by_width(j, min([plain, *beside]))), area

    def by_width(self, j: int, ticks: int) -> Iterator[tuple[int, int]]:
        """Widths that a job may have, and ticks of all of it on so many GPUs under the best of conditions."""
        more = self.more[j]
        speeds = self.speeds[more["widths"]] if "widths" in more else [1.0]
        best = max(s for _, _, s in self.cells[more["profile"]]) if "profile" in more else 1.0
        for width, speed in enumerate(speeds, self.gang[j]):
            yield width, slower(ticks, best, speed)

    def least_of_copies(self, more: Record) -> tuple[int, int]:
        """Of a job that runs as copies: on the fastest nodes of all, and on the fastest GPU."""
        rates = [
            size * more["rate"].get(t, 0) for size, t in zip(self.size, self.type_of, strict=True)
        ]
        fastest = sum(sorted(rates, reverse=True)[: self.copies["most"]])
        return (
            max(int(more["steps"] / fastest), 1),
            max(int(more["steps"] / max(more["rate"].values())), 1),
        )

    def relaxed(self) -> LeastWork:
        """Work that the bounds are about; after all jobs."""
        gain = Fraction(1)
        for (kind, one, other), share in self.shares.items():
            gain = max(gain, share + self.shares.get((kind, other, one), -share))
        above = Fraction(ceil(gain * PRICE_UNIT), PRICE_UNIT)
        parts = {j: more["part"] for j, more in self.more.items() if "part" in more}
        scale = above.denominator * (WHOLE_GPU if parts else 1)
        area = self.area
        if scale > 1:
            area = [each * scale for each in area]
        for j, part in parts.items():
            area[j] = self.area[j] * part * scale // WHOLE_GPU
        gpus = sum(self.size)
        gangs = not (parts or self.shares or self.copies)
        capacity = int(gpus * scale * above)
        weight, columns = self.weight, (self.shortest, area, self.gang)
        until = self.header.get("stopped")
        return LeastWork(self.arrival, weight, *columns, gpus, capacity, scale, gangs, until)

    def rows(self) -> list[int]:
        """Jobs that the cost counts: all, those of the window, or those that arrived before it was stopped."""
        every, header = range(len(self.arrival)), self.header
        if "window" in header:
            first, last = header["window"]
            need(last <= len(every), "the window has jobs that there are not")
            return list(every[first:last])
        if "stopped" in header:
            found = [j for j in every if self.arrival[j] < header["stopped"]]
            need(found, "it was stopped before a job arrived")
            return found
        return list(every)

    def counted(self) -> GivenInstance:
        """Jobs that count, as bounds know them. Others may be their partners, and else only stand in their way."""
        if not self.header.keys() & {"window", "stopped"}:
            return self
        rows, found = self.rows(), copy(self)
        found.arrival, found.gang = [self.arrival[j] for j in rows], [self.gang[j] for j in rows]
        found.weight, found.times = [self.weight[j] for j in rows], [self.times[j] for j in rows]
        found.shortest, found.area = [self.shortest[j] for j in rows], [self.area[j] for j in rows]
        found.more = {k: self.more[j] for k, j in enumerate(rows) if j in self.more}
        found.worth = [self.worth[j] for j in rows] if self.worth else []
        found.deadline = [self.deadline[j] for j in rows] if self.deadline else []
        return found

    def at_prices(self, jobs: LeastWork, prices: list[Any]) -> LeastWork:
        """Work on one machine, at prices of GPUs by type in order of appearance: LB-price."""
        found = [whole(price, "price", 1) for price in prices]
        area = [self.least_rent(jobs, j, found, 0) for j in range(len(jobs.area))]
        return jobs._replace(area=area, capacity=self.rent(found))

    def span_at_prices(self, jobs: LeastWork, prices: list[Any]) -> Fraction:
        """Lower bound on the last end, at prices of GPUs by type and of each job's own time: LB-span."""
        by_type, own = ([whole(price, "price") for price in row] for row in prices)
        rent, worth, best = self.rent(by_type), 0, Fraction(0)
        need(rent and len(own) == len(jobs.area), "there are no prices of GPUs or of jobs' time")
        for j in sorted(range(len(own)), key=lambda j: -jobs.arrival[j]):
            worth, rent = worth + self.least_rent(jobs, j, by_type, own[j]), rent + own[j]
            best = max(
                best, jobs.arrival[j] + max(Fraction(worth, rent), Fraction(jobs.shortest[j]))
            )
        return best

    def rent(self, prices: list[int]) -> int:
        """Rent of all GPUs for a tick."""
        need(len(prices) == len(self.types), f"there are no prices for {len(self.types)} types")
        return sum(prices[kind] * gpus for kind, gpus in zip(self.type_of, self.size, strict=True))

    def least_rent(self, jobs: LeastWork, j: int, prices: list[int], own: int) -> int:
        """Least that a job costs on one of the types, its own time included."""
        fine = jobs.gangs and any(self.times[j])
        need(fine, "prices by type: a job shares GPUs, has a graph or runs as copies")
        rows = zip(prices, self.times[j], strict=True)
        return min(price * self.area_of(j, t) + own * self.fastest(j, t) for price, t in rows if t)

    def fastest(self, j: int, ticks: int) -> int:
        """Least ticks of a job that takes so many on its gang."""
        return ticks if j not in self.more else min(t for _, t in self.by_width(j, ticks))

    def area_of(self, j: int, ticks: int) -> int:
        """Least GPU ticks of a job that takes so many on its gang."""
        if j not in self.more:
            return self.gang[j] * ticks
        return min(width * each for width, each in self.by_width(j, ticks))

    def of_class(self) -> str:
        """Schedules that the claim is about."""
        if self.copies:
            most = self.copies["most"]
            return f"schedules in which a job is at most {most} copies on whole nodes"
        more = {field for each in self.more.values() for field in each}
        if "beside" in more:
            share = "at most two jobs share a GPU"
        elif "part" in more:
            share = "no GPU is held by more than all of it"
        else:
            share = "no two jobs share a GPU"
        grow = " and gangs may grow" if "widths" in more else ""
        fail = " on nodes that fail" if self.checkpoints else ""
        quota = " within quotas of tenants" if self.quotas else ""
        few = ", on as few nodes as gangs fit on" if "placement" in self.header else ""
        lose = ", jobs restart when preempted" if "preemption" in self.header else ""
        counts = self.what_counts()
        return f"preemptive schedules{fail}{quota} in which {share}{grow}{lose}{counts}{few}"

    def what_counts(self) -> str:
        """Jobs or time that the cost is of, where it is not of all."""
        if "window" in self.header:
            first, last = self.header["window"]
            return f", counting jobs {first} to {last - 1} alone"
        if "stopped" in self.header:
            return f", counting time until {self.header['stopped'] / TICKS_PER_S!r} s alone"
        return ""


def slower(ticks: int, *speeds: float) -> int:
    """Ticks of a whole job at the product of some speeds, in doubles, rounded up."""
    speed = 1.0
    for each in speeds:
        speed *= each
    return max(ceil(ticks / speed), 1)


class Graph:
    """Stages of a job, of which each GPU has a replica of one."""

    def __init__(self, record: Record, network: Record) -> None:
        self.network, q = network, whole(record["microbatches"], "microbatches")
        self.replicas: list[int] = []
        self.times: list[tuple[Fraction, Fraction]] = []  # of computing, and bytes of a ring
        for replicas, *rest in record["stages"]:
            forward, backward, size = (rational(each, "a stage") for each in rest)
            self.replicas.append(whole(replicas, "replicas", 1))
            self.times.append((forward + backward, Fraction(2 * (replicas - 1), replicas) * size))
        self.traffic: list[list[tuple[int, Fraction]]] = [[] for _ in self.times]
        depth = self.link(record["links"])
        self.factor = Fraction(q + depth - 1, q) if q else Fraction(1)
        self.known: dict[Any, float] = {}

    def link(self, links: list[list[Any]]) -> int:
        """Take the links; returns the stages on the longest path of those that are no exchanges."""
        after: list[set[int]] = [set() for _ in self.times]
        for source, target, sent, exchange in links:
            ends = [whole(end, "stage of a link") for end in (source, target)]
            need(source != target and max(ends) < len(after), "a link is of no stages")
            need(type(exchange) is bool, "a link is neither an exchange nor none")
            each = rational(sent, "bytes")
            self.traffic[source].append((target, each))
            each *= Fraction(self.replicas[source], self.replicas[target])
            self.traffic[target].append((source, each))
            if not exchange:
                after[source].add(target)
        depth, layer = 0, set(range(len(after)))
        while layer:
            depth, layer = depth + 1, {t for s in layer for t in after[s]}
            need(depth <= len(after), "links go round")
        return depth

    def ticks(self, work: float, nodes: tuple[tuple[int, ...], ...]) -> int:
        """Ticks of so many iterations on nodes with these replicas of every stage; at least, on no nodes."""
        if nodes not in self.known:
            slowest = self.slowest(nodes) if nodes else self.unhindered()
            self.known[nodes] = float(slowest * self.factor)
        return max(ceil(work * self.known[nodes] * TICKS_PER_S), 1)

    def unhindered(self) -> Fraction:
        """Least time of an iteration: all traffic goes at the greatest bandwidth, and disturbs none."""
        intra, nic = self.network["intra"], self.network["nic"]
        fast, slowest = max(intra, nic), Fraction(0)
        for s, (compute, ring) in enumerate(self.times):
            near = self.replicas[s] <= self.network["gpus"]
            sent = sum((each for _, each in self.traffic[s]), Fraction(0))
            slowest = max(slowest, compute + ring / (fast if near else nic) + 2 * sent / fast)
        return slowest

    def spread_ticks(self, work: float) -> int:
        """Ticks of so many iterations on two nodes or more, at least."""
        if "spread" not in self.known:
            self.known["spread"] = float(self.spread() * self.factor)
        return max(ceil(work * self.known["spread"] * TICKS_PER_S), 1)

    def spread(self) -> Fraction:
        """Least time of an iteration on two nodes or more: a stage is on several, or two that exchange are apart."""
        intra, nic = self.network["intra"], self.network["nic"]
        away = nic / self.network["gpus"] if self.network["sharing"] == "per-gpu" else nic
        sent: list[dict[int, Fraction]] = [{} for _ in self.times]
        for s, links in enumerate(self.traffic):
            for t, each in links:
                sent[s][t] = sent[s].get(t, Fraction(0)) + each
        together, layer = {0}, {0}
        while layer:
            layer = {t for s in layer for t in sent[s]} - together
            together |= layer
        near = [
            compute + 2 * sum(each.values(), Fraction(0)) / max(intra, away)
            for (compute, _), each in zip(self.times, sent, strict=True)
        ]
        more = 2 * max(1 / away - 1 / intra, Fraction(0))
        cases = [
            near[s] + ring / nic for s, (_, ring) in enumerate(self.times) if self.replicas[s] > 1
        ]
        for s, peers in enumerate(sent):
            cases += [
                max(near[s] + amount * more, near[t] + sent[t][s] * more)
                for t, amount in peers.items()
            ]
        known = len(together) == len(sent) and bool(cases)
        return max(self.unhindered(), min(cases)) if known else self.unhindered()

    def slowest(self, nodes: tuple[tuple[int, ...], ...]) -> Fraction:
        """Time of the slowest replica of an iteration."""
        most = max(sum(here) for here in nodes)
        need(most <= self.network["gpus"], f"{most} replicas are on one node")
        for s, found in enumerate(map(sum, zip(*nodes, strict=True))):
            say = f"there are {found} replicas of stage {s}, not {self.replicas[s]}"
            need(found == self.replicas[s], say)
        return max(self.of_node(here) for here in nodes)

    def of_node(self, here: tuple[int, ...]) -> Fraction:
        """Time of the slowest replica of a node."""
        intra, nic, users = self.network["intra"], self.network["nic"], self.network["gpus"]
        if self.network["sharing"] == "per-job":
            users = 0
            for s, links in enumerate(self.traffic):
                away = any(here[t] < self.replicas[t] and sent for t, sent in links)
                users += here[s] if away else 0
        slowest = Fraction(0)
        for s, (time, ring) in enumerate(self.times):
            if here[s]:
                time += ring / (intra if here[s] == self.replicas[s] else nic)
                for t, sent in self.traffic[s]:
                    near = Fraction(here[t], self.replicas[t])
                    time += 2 * sent * (near / intra + (1 - near) * (users or 1) / nic)
                slowest = max(slowest, time)
        return slowest


# The schedule: runs in order of their starts. Kept are runs that hold GPUs, and jobs that are begun and not complete.


class Begun:
    """A job that is begun: its last run, what it owes, and its progress at every pace."""

    def __init__(self) -> None:
        self.end, self.owed = 0, 0
        self.held: Held = ()
        self.changes = False
        self.done: dict[int, int] = {}
        self.pace = 1

    def left(self) -> Fraction | int:
        """Ticks that the job lacks at the pace of its last run; negative if they are too many."""
        if len(self.done) == 1:
            return self.pace - self.done[self.pace]
        return (1 - sum(Fraction(ran, pace) for pace, ran in self.done.items())) * self.pace


class Amounts:
    """Amounts held of all that there is so much of, at the start of the last run."""

    def __init__(self, given: GivenInstance) -> None:
        self.given = given
        self.held: dict[Any, int] = {}
        self.ends: list[tuple[int, int, list[tuple[Any, int]]]] = []
        self.count = 0

    def until(self, start: int) -> None:
        """Give back what was held by runs that end by then."""
        while self.ends and self.ends[0][0] <= start:
            for what, amount in heapq.heappop(self.ends)[2]:
                self.move(what, -amount)

    def take(self, end: int, amounts: list[tuple[Any, int]]) -> None:
        """Hold something until an end."""
        for what, amount in amounts:
            self.move(what, amount)
        self.count += 1
        heapq.heappush(self.ends, (end, self.count, amounts))

    def move(self, what: Any, amount: int) -> None:
        """Hold more or less of a node's GPUs (its number), of a GPU (node, number), or of (node, name)."""
        before = self.held.get(what, 0)
        now = self.held[what] = before + amount
        if type(what) is int:
            most = self.given.size[what]
            if now > most:
                raise Rejected(f"node {what}: {now} GPUs held, it has {most}")
        elif type(what[1]) is int:
            need(now <= WHOLE_GPU, f"GPU {what[1]} of node {what[0]}: {now} thousandths held")
            if not (before and now):  # Whoever holds a part, the GPU counts once.
                self.move(what[0], 1 if now else -1)
        else:
            most = self.given.amounts.get(what, 0)
            need(now <= most, f"node {what[0]}: {now} thousandths of {what[1]} held, it has {most}")


class QuotaUse:
    """Thousandths of GPUs that are held of each quota, at the start of the last run."""

    def __init__(self, given: GivenInstance) -> None:
        self.given, self.held = given, [0] * len(given.quotas)
        self.ends: list[tuple[int, int, int]] = []

    def begin(self, j: int, run: Record, amount: int) -> None:
        """Hold more until the run ends; no run begins beyond the quota of that moment."""
        start, quota = run["start"], self.given.quota_of[j]
        while self.ends and self.ends[0][0] <= start:
            _, other, before = heapq.heappop(self.ends)
            self.held[other] -= before
        self.held[quota] += amount
        heapq.heappush(self.ends, (run["end"], quota, amount))
        starts, gpus = self.given.quotas[quota]
        held, most = self.held[quota], WHOLE_GPU * gpus[bisect_right(starts, start) - 1]
        need(held <= most, f"quota {quota}: {held} thousandths held at tick {start}, it has {most}")


class GangSchedule:
    """Schedule of jobs that run as one gang each."""

    def __init__(self, given: GivenInstance) -> None:
        self.given, self.amounts, self.quotas = given, Amounts(given), QuotaUse(given)
        self.stopped, self.latest = given.header.get("stopped", LARGEST), 0
        self.consolidated = "placement" in given.header
        self.restarts = "preemption" in given.header
        self.begun: dict[int, Begun] = {}
        self.ends = [0] * len(given.arrival)
        self.start = 0
        self.waiting: dict[tuple[int, int], tuple[int, int, Held]] = {}

    def run(self, run: Record) -> None:
        """Take the next run."""
        given, j = self.given, run["job"]
        if type(j) is not int or not 0 <= j < len(self.ends):
            raise Rejected(f"a run is of job {j!r:.80}, which there is not")
        start, which = whole(run["start"], f"start of job {j}"), f"job {j} at tick {run['start']}"
        end = whole(run["end"], f"end of {which}", start + 1)
        overhead = whole(run["overhead"], "overhead")
        if start != self.start:
            self.advance(start)
        need(overhead <= end - start, f"{which} is shorter than its overhead")
        need(start >= given.arrival[j], f"{which} starts before the job arrives")
        need("copy" not in run and "steps" not in run, f"{which} is a copy")
        more = given.more.get(j)
        held = self.pieces(j, which, run["pieces"], more)
        need(end <= self.stopped, f"{which} goes on after it was stopped")
        self.latest = max(self.latest, end)
        if given.quotas:
            part = WHOLE_GPU if more is None else more.get("part", WHOLE_GPU)
            self.quotas.begin(j, run, part * sum(gpus for _, gpus in held))
        if more is None:
            self.amounts.take(end, run["pieces"])
            need("partner" not in run, f"{which} has a partner")
        else:
            self.hold(run, held, more)
        need(not self.ends[j], f"job {j} holds GPUs after the end of its work")
        job = self.begun.setdefault(j, Begun())
        self.charge(j, job, run, held)
        job.pace = self.pace(j, run, more)
        self.progress(j, job, run)

    def advance(self, start: int) -> None:
        """Go on to a later start."""
        need(start > self.start, f"a run from tick {start} is out of order")
        self.alone()
        self.amounts.until(start)
        self.start = start

    def alone(self) -> None:
        """Nobody waits for a partner."""
        for job, partner in self.waiting:
            raise Rejected(f"job {partner} does not share what its partner, job {job}, holds")

    def pieces(self, j: int, which: str, pieces: list[list[Any]], more: Record | None) -> Held:
        """Nodes and GPUs of a run, which are the job's."""
        size = 2 if more is None or not more.keys() & {"part", "profile", "graph"} else 3
        last, width = -1, 0
        for piece in pieces:
            need(len(piece) == size, f"{which}: a piece has {len(piece)} entries, not {size}")
            node = whole(piece[0], f"node of {which}", last + 1)
            need(node < len(self.given.size), f"{which}: node {node} is not there")
            last, width = node, width + whole(piece[1], f"GPUs of {which}", 1)
        gang = self.given.gang[j]
        widest = gang if more is None or "widths" not in more else self.given.widest(j)
        need(gang <= width <= widest, f"{which} holds {width} GPUs, not its gang")
        if self.consolidated and len(pieces) > self.given.fewest(width):
            raise Rejected(f"{which} is on {len(pieces)} nodes, which are more than need be")
        return tuple((piece[0], piece[1]) for piece in pieces)

    def hold(self, run: Record, held: Held, more: Record) -> None:
        """Count what a run holds, beyond plain gangs."""
        j, end, pieces = run["job"], run["end"], run["pieces"]
        if "partner" in run:
            alone = "beside" not in more or "profile" in more
            need(not alone, f"job {j} has a partner, and no speed beside one")
            here, other = (run["start"], end, held), whole(run["partner"], "partner")
            if (other, j) in self.waiting:
                same = self.waiting.pop((other, j)) == here
                need(same, f"jobs {j} and {other} do not hold the same")
                return
            need(other != j, f"job {j} is its own partner")
            self.waiting[j, other] = here
        taken: list[tuple[Any, int]] = list(held)
        if "part" in more:
            number = whole(pieces[0][2], "GPU")
            need(number < self.given.size[pieces[0][0]], f"job {j} holds GPU {number} of a node")
            taken = [((pieces[0][0], number), more["part"])]
        if "profile" in more:
            cells = self.given.cells[more["profile"]]
            for node, gpus, cell in pieces:
                cpus, memory, _ = cells[whole(cell, "row of a profile")]
                taken += [((node, "cpus"), gpus * cpus), ((node, "memory"), gpus * memory)]
        self.amounts.take(end, taken)

    def charge(self, j: int, job: Begun, run: Record, held: Held) -> None:
        """One run at a time, whose overhead is paid first."""
        header, start = self.given.header, run["start"]
        changes = "partner" in run or "profile" in self.given.more.get(j, ())
        if job.end and start < job.end:
            raise Rejected(f"job {j} runs twice at tick {start}")
        stays = start == job.end and held == job.held and (changes or job.changes)
        if not stays:
            job.owed += header["start"]
            if job.end:
                gang = self.given.gang[j]
                restart = [ticks for most, ticks in header["restart"] if gang <= most]
                job.owed += (restart or header["restart"][-1][1:])[0]
                job.owed += header["migration"] * (held != job.held)
        job.owed -= run["overhead"]
        fine = not job.owed or (job.owed > 0 and run["end"] - start == run["overhead"])
        need(fine, f"job {j} owes {job.owed} ticks of overhead")
        job.end, job.held, job.changes = run["end"], held, changes

    def pace(self, j: int, run: Record, more: Record | None) -> int:
        """Ticks that all of the job would take as a run goes."""
        given, pieces = self.given, run["pieces"]
        if more is not None and "graph" in more:
            rows = tuple(sorted(tuple(whole(n, "replicas") for n in piece[2]) for piece in pieces))
            fine = all(sum(piece[2]) == piece[1] for piece in pieces)
            need(fine, f"job {j} has not a replica on each of its GPUs")
            return given.graphs[more["graph"]].ticks(more["work"], rows)
        kinds = {given.type_of[piece[0]] for piece in pieces}
        times: list[int] = [given.times[j][kind] for kind in kinds]
        need(all(times), f"job {j} cannot run on node {pieces[0][0]} or another of its nodes")
        if more is None:
            return max(times)
        if "partner" in run:
            times = self.beside(j, run["partner"], kinds)
        if not more.keys() & {"profile", "spread", "widths"}:
            return max(times)
        width = sum(piece[1] for piece in pieces)
        speeds = [1.0, 1.0, 1.0]
        if "profile" in more:
            cells = given.cells[more["profile"]]
            speeds[0] = min(cells[piece[2]][2] for piece in pieces)
        if "spread" in more and len(pieces) > given.fewest(width):
            speeds[1] = more["spread"]
        if "widths" in more:
            speeds[2] = given.speeds[more["widths"]][width - given.gang[j]]
        return slower(max(times), *speeds)

    def beside(self, j: int, partner: int, kinds: set[int]) -> list[int]:
        """Ticks of a job beside another, on types of GPUs."""
        given, found = self.given, []
        need(partner < len(self.ends), f"job {j} is beside job {partner}, which there is not")
        need(given.gang[j] == given.gang[partner], f"job {j} is beside another gang")
        names = list(given.types)
        for one, other in ((partner, j), (j, partner)):
            mine, theirs = given.more.get(one, {}), given.more.get(other, {})
            rows = [mine.get("beside", {}).get(names[kind], {}) for kind in kinds]
            found = [row.get(str(theirs.get("sort")), 0) for row in rows]
            fine = all(found) and all(given.times[one][kind] for kind in kinds)
            need(fine, f"jobs {j} and {partner} cannot share these GPUs")
        return found

    def progress(self, j: int, job: Begun, run: Record) -> None:
        """Count a run, which completes its job with the tick that completes its work."""
        start, end, rule = run["start"] + run["overhead"], run["end"], self.given.checkpoints
        ran, idle = end - start, end == start
        saved = ran
        if rule:
            need(end < rule["until"], f"job {j} runs when nobody knows which nodes are down")
            need("partner" not in run, f"job {j} has a partner on nodes that fail")
            cycles, rest = divmod(ran, rule["interval"] + rule["cost"])
            saved = cycles * rule["interval"]
            ran = saved + min(rest, rule["interval"])
            idle |= bool(rule["cost"]) and (rest == 0 or rest > rule["interval"])
            if not self.given.cut_short(j, run):
                saved = ran
        if self.restarts:  # What was done before is lost.
            need("partner" not in run, f"job {j} has a partner and restarts when preempted")
            job.done.clear()
        job.done[job.pace] = job.done.get(job.pace, 0) + ran
        left = job.left()
        if left > 0:
            job.done[job.pace] += saved - ran
            return
        need(left > -1 and not idle, f"job {j} holds GPUs after the end of its work")
        self.ends[j] = end
        del self.begun[j]

    def finish(self) -> list[int]:
        """Completion of every job, after the last run."""
        self.alone()
        if "stopped" in self.given.header:
            return self.ends
        rows = self.given.rows()
        for j in rows:
            if not self.ends[j]:
                need(j in self.begun, f"job {j} is lost: it never runs")
                short = ceil(self.begun[j].left())
                raise Rejected(f"job {j} is {short} ticks short of its work")
        over = max(self.ends[j] for j in rows)
        need(
            self.latest <= over,
            f"a run goes on after tick {over}, when all that count are complete",
        )
        return self.ends


class CopySchedule:
    """Schedule of jobs that run as several copies, each on a whole node, round by round."""

    def __init__(self, given: GivenInstance) -> None:
        self.given, self.rules = given, given.copies
        self.ends, self.steps = [0] * len(given.arrival), [0] * len(given.arrival)
        self.last: dict[int, int] = {}
        self.start = -1
        self.round: list[Record] = []

    def run(self, run: Record) -> None:
        """Take the next run, which is a copy for a round."""
        j, start = run["job"], whole(run["start"], "start of a run")
        fine = type(j) is int and 0 <= j < len(self.ends)
        need(fine, f"a run is of job {j!r:.80}, which there is not")
        if start != self.start:
            self.over()
            early = self.start >= 0 and start < self.start + self.rules["round"]
            need(not early, f"a run from tick {start} is out of order, or rounds are too near")
            self.start = start
        need(start >= self.given.arrival[j], f"job {j} starts before the job arrives")
        need("partner" not in run, f"job {j} has a partner and runs as copies")
        self.round.append(run)

    def over(self) -> None:
        """A round is over: one copy a node, numbers below the most, charges, steps."""
        rules, given = self.rules, self.given
        count: dict[int, set[int]] = {}
        nodes: set[int] = set()
        for run in self.round:
            j, copy, ((node, gpus),) = run["job"], whole(run["copy"], "copy"), run["pieces"]
            mine = count.setdefault(j, set())
            need(
                copy < rules["most"] and copy not in mine, f"job {j} has copy {copy} twice or more"
            )
            mine.add(copy)
            need(
                whole(node, "node") < len(given.size) and node not in nodes, f"node {node} has two"
            )
            nodes.add(node)
            need(
                whole(gpus, "GPUs of a copy", 1) <= given.size[node],
                f"node {node}: {gpus} GPUs held",
            )
        for run in self.round:
            j, ((node, gpus),) = run["job"], run["pieces"]
            rate = gpus * given.more[j]["rate"].get(given.type_of[node], Fraction(0))
            need(rate, f"job {j} cannot run on node {node}")
            owed = rules["aggregation"] if len(count[j]) > 1 else 0
            owed += rules["restart"] if self.last.get(node, j) != j else 0
            need(run["overhead"] == owed, f"job {j} owes another overhead than {run['overhead']}")
            takes = ceil(whole(run["steps"], "steps", 1) / rate)
            end = whole(run["end"], "end of a run")
            fine = end - self.start - owed == takes and end <= self.start + rules["round"]
            need(fine, f"job {j} ends neither with its steps nor with the round")
            self.last[node] = j
            self.steps[j] += run["steps"]
            self.ends[j] = max(self.ends[j], end)
        self.round = []

    def finish(self) -> list[int]:
        """Completion of every job, after the last run."""
        self.over()
        for j, steps in enumerate(self.steps):
            need(steps, f"job {j} is lost: it never runs")
            whole_job = self.given.more[j]["steps"]
            need(steps == whole_job, f"job {j} does {steps} steps of its work, {whole_job}")
        return self.ends


# The cost and its bounds.


def weighted(weight: list[Fraction], values: Iterable[int]) -> Fraction:
    """Sum of weights times whole numbers; weights that are one object are added up first."""
    sums: dict[int, tuple[Fraction, int]] = {}
    for each, value in zip(weight, values, strict=True):
        _, before = sums.get(id(each), (each, 0))
        sums[id(each)] = (each, before + value)
    return sum((each * value for each, value in sums.values()), Fraction(0))


def cost_of(objective: Any, jobs: LeastWork, ends: list[int]) -> tuple[Fraction, Fraction]:
    """Cost of completions in ticks, and what it subtracts from them."""
    known = ("completion", "flow", "makespan")
    fine = type(objective) is str and objective in known
    need(fine, f"objective is {objective!r:.80}, not one of {', '.join(known)}")
    if objective == "makespan":
        offset = Fraction(min(jobs.arrival))
        return max(ends) - offset, offset
    offset = weighted(jobs.weight, jobs.arrival) if objective == "flow" else Fraction(0)
    return weighted(jobs.weight, ends) - offset, offset


def alike(weight: list[Fraction]) -> bool:
    """True if all weights are equal."""
    return all(each is weight[0] or each == weight[0] for each in weight)


def one_machine(
    arrival: list[int], area: list[int], capacity: int, rank: list[int]
) -> Iterator[tuple[int, int, int, bool]]:
    """Pieces (job, begin, end, last) of preemptive service by rank, then work left; time in 1 / capacity ticks."""
    order = sorted(range(len(area)), key=arrival.__getitem__)
    left = list(area)
    never = max(arrival) * capacity + sum(left) + 1  # after all is done
    queue: list[tuple[int, int, int]] = []
    now = k = 0
    comes = arrival[order[0]] * capacity
    while queue or k < len(order):
        now = now if queue else max(now, comes)
        while comes <= now:
            j = order[k]
            heapq.heappush(queue, (rank[j], left[j], j))
            k += 1
            comes = arrival[order[k]] * capacity if k < len(order) else never
        _, _, j = heapq.heappop(queue)
        until = min(now + left[j], comes)
        left[j] -= until - now
        yield j, now, until, not left[j]
        if left[j]:
            heapq.heappush(queue, (rank[j], left[j], j))
        now = until


def bound_fluid(jobs: LeastWork, bound: Record) -> Fraction:
    """SRPT on one machine, which at every moment has the fewest jobs that are not complete."""
    need(alike(jobs.weight), "fluid: weights differ")
    service = one_machine(jobs.arrival, jobs.area, jobs.capacity, [0] * len(jobs.area))
    until = LARGEST**2 if jobs.until is None else jobs.until * jobs.capacity
    ends = sum(min(end, until) for _, _, end, last in service if last)
    return jobs.weight[0] * Fraction(ends, jobs.capacity)


def bound_mean_busy_time(jobs: LeastWork, bound: Record) -> Fraction:
    """Mean busy times of preemptive WSPT on one machine; of each job rounded down to 2^-64 ticks."""
    area, capacity, n = jobs.area, jobs.capacity, len(jobs.area)
    rank = area
    if not alike(jobs.weight):
        ratio = [-weight / each for weight, each in zip(jobs.weight, area, strict=True)]
        rank = [0] * n
        for place, j in enumerate(sorted(range(n), key=ratio.__getitem__)):
            rank[j] = place
    twice = [each * capacity * ticks for each, ticks in zip(area, jobs.shortest, strict=True)]
    for j, begin, end, _ in one_machine(jobs.arrival, area, capacity, rank):
        twice[j] += end * end - begin * begin
    means = ((t << 64) // (2 * each * capacity) for t, each in zip(twice, area, strict=True))
    return weighted(jobs.weight, means) / 2**64


def some(jobs: LeastWork, which: list[int], machines: int) -> LeastWork:
    """Some jobs, as if each needed a whole one of so many machines."""
    arrival, shortest, gang = (
        [column[j] for j in which] for column in (jobs.arrival, jobs.shortest, jobs.gang)
    )
    weight = [jobs.weight[j] for j in which]
    return LeastWork(arrival, weight, shortest, shortest, gang, machines, machines, 1, False)


def bound_wide_gangs(jobs: LeastWork, bound: Record) -> Fraction:
    """GangSchedule of which at most q fit on a machine of speed q, all others as if alone; the largest for q to 8."""
    need(jobs.gangs, "wide-gangs: jobs share GPUs, hold parts of them or run as copies")
    alone = [r + p for r, p in zip(jobs.arrival, jobs.shortest, strict=True)]
    every, best = weighted(jobs.weight, alone), Fraction(0)
    for most in range(1, 9):
        which = [j for j, gang in enumerate(jobs.gang) if gang * (most + 1) > jobs.gpus]
        if which:
            wide = some(jobs, which, most)
            found = bound_mean_busy_time(wide, bound)
            if alike(wide.weight):
                found = max(found, bound_fluid(wide, bound))
            best = max(best, every - weighted(wide.weight, [alone[j] for j in which]) + found)
    return best


def bound_interval_lp(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job takes its time where time and GPUs cost least."""
    grid, prices = cells_of(bound["grid"], bound["prices"])
    need(grid[0] <= min(jobs.arrival), "the grid begins too late")
    last = max(jobs.arrival) + sum(jobs.shortest)
    need(grid[-1] >= last, "the grid ends too early")
    spent = sum(p * (b - a) for p, (a, b) in zip(prices, pairwise(grid), strict=True))
    paid = Fraction(-jobs.capacity * spent, jobs.scale * PRICE_UNIT)
    return total([paid, *(least_price(jobs, j, grid, prices) for j in range(len(jobs.area)))])


def least_price(jobs: LeastWork, j: int, grid: list[int], prices: list[int]) -> Fraction:
    """Least price of a job: w (begin / p) + g beta a unit of time, in halves of intervals."""
    work, weight, arrival = jobs.shortest[j], jobs.weight[j], jobs.arrival[j]
    unit = PRICE_UNIT * jobs.scale
    q = lcm(weight.denominator, unit)  # costs are whole in units of 1 / (p q)
    time_cost, rent = int(weight * q), jobs.area[j] * (q // unit)
    offers = []
    for (a, b), price in zip(pairwise(grid), prices, strict=True):
        begin = max(a, arrival)
        most = min(b - begin, work)
        if most > 0:
            offers.append((time_cost * begin + rent * price, most - most // 2))
            offers.append((time_cost * (begin + most) + rent * price, most // 2))
    left, cost = work, 0
    for price, room in sorted(offers):
        take = min(left, room)
        cost += take * price
        left -= take
    least = Fraction(cost, work * q) + weight * Fraction(work, 2)
    return least if jobs.until is None else min(least, weight * jobs.until)


def bound_priced_plans(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of a GPU, in units of the largest weight."""
    grid, prices = cells_of(bound["grid"], bound["prices"])
    columns = zip(jobs.area, jobs.shortest, strict=True)
    rows = [(prices, Fraction(area, jobs.scale * ticks)) for area, ticks in columns]
    gpus = Fraction(jobs.capacity, jobs.scale)
    return plans(jobs, grid, rows, [gpus * price for price in prices])


def bound_configurations(jobs: LeastWork, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of gangs, a list a width; each cell has the dearest gangs that fit."""
    need(jobs.gangs, "configurations: jobs share GPUs, hold parts of them or run as copies")
    widths, capacity = sorted(set(jobs.gang)), jobs.gpus
    need(len(bound["prices"]) == len(widths), f"there are no prices for gangs of {widths}")
    found = [cells_of(bound["grid"], row) for row in bound["prices"]]
    grid, rows = found[0][0], dict(zip(widths, (row for _, row in found), strict=True))
    release: dict[int, list[int]] = {g: [] for g in widths}
    for arrival, gang in sorted(zip(jobs.arrival, jobs.gang, strict=True)):
        release[gang].append(arrival)
    most: list[int] = []
    for k, end in enumerate(grid[1:]):
        best = [0] * (capacity + 1)
        for g in widths:
            left, lot = min(bisect_left(release[g], end), capacity // g), 1
            while left and rows[g][k]:
                size, value = min(lot, left) * g, min(lot, left) * rows[g][k]
                more = [worth + value for worth in best[: capacity + 1 - size]]
                best[size:] = map(max, best[size:], more)
                left, lot = left - min(lot, left), 2 * lot
        most.append(best[capacity])
    return plans(jobs, grid, [(rows[gang], Fraction(1)) for gang in jobs.gang], most)


def cells_of(grid: Any, prices: Any) -> tuple[list[int], list[int]]:
    """A grid and prices of its cells."""
    need(type(prices) is list, "prices are no lists")
    bounds, found = [whole(b, "grid") for b in grid], [whole(p, "price") for p in prices]
    fine = len(bounds) == len(found) + 1 and all(a < b for a, b in pairwise(bounds))
    need(fine, "the grid does not increase")
    return bounds, found


def plans(
    jobs: LeastWork,
    grid: list[int],
    rows: list[tuple[list[int], Fraction]],
    most: Sequence[int | Fraction],
) -> Fraction:
    """Cheapest plans, from prices and their multiples by job, less what each cell is worth at most."""
    unit = max(jobs.weight) / PRICE_UNIT
    spent = (worth * (b - a) for worth, (a, b) in zip(most, pairwise(grid), strict=True))
    paid = sum(spent, Fraction(0))
    costs = (cheapest_plan(jobs, j, grid, *row, unit) for j, row in enumerate(rows))
    return total(chain([-paid * unit], costs))


def cheapest_plan(
    jobs: LeastWork, j: int, grid: list[int], prices: list[int], multiple: Fraction, unit: Fraction
) -> Fraction:
    """Least of w x (end - arrival) + price of the cheapest time that suffices before the end, and w x arrival."""
    arrival, left, weight = jobs.arrival[j], jobs.shortest[j], jobs.weight[j]
    if not weight:
        return weight
    # Costs are whole in units of unit / scale.
    delay, scale = (weight * multiple.denominator / unit).as_integer_ratio()
    scale *= multiple.denominator
    gang, paid, best = int(scale * multiple), 0, None
    if jobs.until is not None:  # It need not be complete before.
        best = delay * (jobs.until - arrival)
    taken: list[tuple[int, int]] = []  # (-price, length)
    first = bisect_right(grid, arrival)
    cells = zip(
        [arrival, *grid[first:]], [*grid[first:], max(arrival, grid[-1]) + left], strict=True
    )
    for (now, end), price in zip(cells, [0, *prices, 0][first:], strict=True):
        if best is not None and delay * (now - arrival) >= best:
            break
        begin = now
        while now < end and (left or (taken and -taken[0][0] > price)):
            if left:
                length = min(left, end - now)
                left -= length
            else:  # time of this cell for the dearest time taken
                dear, most = heapq.heappop(taken)
                length = min(most, end - now)
                paid += gang * length * dear
                if length < most:
                    heapq.heappush(taken, (dear, most - length))
            paid += gang * length * price
            now += length
            cost = delay * (now - arrival) + paid
            best = cost if not left and (best is None or cost < best) else best
        if now > begin:
            heapq.heappush(taken, (-price, now - begin))
    return unit * Fraction(best or 0, scale) + weight * arrival


def bound_area(jobs: LeastWork, bound: Record) -> Fraction:
    """Lower bound on the end of the last of the jobs."""
    area = lone = best = 0
    for j in sorted(range(len(jobs.area)), key=lambda j: -jobs.arrival[j]):
        area += jobs.area[j]
        lone += jobs.shortest[j] if jobs.gangs and 2 * jobs.gang[j] > jobs.gpus else 0
        rest = max(-(-area // jobs.capacity), lone, jobs.shortest[j])
        best = max(best, jobs.arrival[j] + rest)
    return Fraction(best)


# Windows of completions: LB-windows.

WINDOWS = "completion-windows"
Window = tuple[Fraction, Fraction]


class WindowTree:
    """Parts of all schedules by windows of completions, as they come: cuts in two, and parts with prices."""

    def __init__(self, jobs: LeastWork, bound: Record) -> None:
        need(jobs.gangs, f"{WINDOWS}: jobs share GPUs, hold parts of them or run as copies")
        self.jobs, self.unit = jobs, rational(bound["unit"], "unit of prices")
        self.of = [whole(j, "job of the windows") for j in bound["jobs"]]
        fine = self.of == sorted(set(self.of)) and self.of[-1] < len(jobs.arrival)
        need(fine and self.unit, "windows are of jobs that there are not, or prices have no unit")
        last = Fraction(max(jobs.arrival) + sum(jobs.shortest))
        first = (Fraction(jobs.arrival[j] + jobs.shortest[j]) for j in self.of)
        self.open: list[dict[int, Window]] = [
            {j: (e, last) for j, e in zip(self.of, first, strict=True)}
        ]
        self.grid: list[Fraction] = []
        self.rows: list[list[int]] = []
        self.least: Fraction | None = None

    def take(self, part: Record) -> None:
        """Take the next part, which is of the windows that were opened last."""
        need(self.open, "a part comes after all windows have prices")
        windows = self.open.pop()
        if part.keys() == {"cut", "at", "first"}:
            self.cut(part, windows)
            return
        need(part.keys() == {"grid", "prices"}, "a part is neither a cut nor has prices")
        if part["grid"] or part["prices"]:
            self.grid, self.rows = self.priced(part)
        need(self.grid, "there are no prices before these windows")
        found = self.cheapest(windows)
        if found is not None:
            self.least = found if self.least is None else min(self.least, found)

    def cut(self, part: Record, windows: dict[int, Window]) -> None:
        """A job completes up to a moment, or from it on."""
        j, at = whole(part["cut"], "job of a cut"), rational(part["at"], "moment of a cut")
        need(j in windows, f"job {j} is cut, which has no windows")
        need(
            part["first"] in ("early", "late"), "the first part of a cut is neither early nor late"
        )
        begin, end = windows[j]
        halves = [{**windows, j: (begin, min(end, at))}, {**windows, j: (max(begin, at), end)}]
        self.open += halves if part["first"] == "late" else halves[::-1]

    def priced(self, part: Record) -> tuple[list[Fraction], list[list[int]]]:
        """A grid, and a price of each job in each cell."""
        grid = [rational(at, "grid of windows") for at in part["grid"]]
        rows = [[whole(price, "price") for price in row] for row in part["prices"]]
        fine = len(grid) > 1 and all(a < b for a, b in pairwise(grid))
        need(fine, "the grid of windows does not increase")
        fine = len(rows) == len(self.of) and all(len(row) == len(grid) - 1 for row in rows)
        need(fine, "there is not a price of each job in each cell")
        return grid, rows

    def cheapest(self, windows: dict[int, Window]) -> Fraction | None:
        """Least cost within windows at the prices at hand; None if nothing can be done within them."""
        found = -self.rent(windows) * self.unit
        for j, prices in zip(self.of, self.rows, strict=True):
            cost = self.cheapest_end(j, windows[j], prices)
            if cost is None:
                return None
            found += cost
        return found

    def rent(self, windows: dict[int, Window]) -> Fraction:
        """Most that jobs which fit together are worth in each cell where they may run, over all time."""
        paid = Fraction(0)
        for k, (begin, end) in enumerate(pairwise(self.grid)):
            best = {0: 0}  # Most worth, by GPUs.
            for j, prices in zip(self.of, self.rows, strict=True):
                if prices[k] and self.jobs.arrival[j] < end and begin < windows[j][1]:
                    for gpus, worth in sorted(best.items(), reverse=True):
                        more = gpus + self.jobs.gang[j]
                        if more <= self.jobs.gpus:
                            best[more] = max(best.get(more, 0), worth + prices[k])
            paid += max(best.values()) * (end - begin)
        return paid

    def cheapest_end(self, j: int, window: Window, prices: list[int]) -> Fraction | None:
        """Least of w x end + price of the cheapest time that suffices before it, over ends within a window."""
        scale = lcm(*(at.denominator for at in (*window, *self.grid)))
        earliest, latest, *grid = (int(at * scale) for at in (*window, *self.grid))
        arrival, left = self.jobs.arrival[j] * scale, self.jobs.shortest[j] * scale
        if earliest > latest:
            return None
        # Costs are whole in units of unit / (rent x scale).
        delay, rent = (self.jobs.weight[j] / self.unit).as_integer_ratio()
        ends = sorted({min(max(at, arrival), latest) for at in (arrival, earliest, latest, *grid)})
        paid, best = 0, None
        taken: list[tuple[int, int]] = []  # (-price, length)
        for now, end in pairwise([*ends, latest]):
            cell = bisect_right(grid, now) - 1
            price = prices[cell] if 0 <= cell < len(prices) else 0
            begin = now
            while True:
                if not left and now >= earliest:
                    cost = delay * now + rent * paid
                    best = cost if best is None else min(best, cost)
                if now == end or not (left or (taken and -taken[0][0] > price)):
                    break
                if left:
                    length = min(left, end - now)
                    left -= length
                else:  # time of this cell for the dearest time taken
                    dear, most = heapq.heappop(taken)
                    length = min(most, end - now)
                    paid += length * dear
                    if length < most:
                        heapq.heappush(taken, (dear, most - length))
                paid += length * price
                now += length
            if now > begin:
                heapq.heappush(taken, (-price, now - begin))
        return None if best is None else self.unit * Fraction(best, rent * scale)

    def bound(self) -> Fraction:
        """The least of all parts, and jobs without windows as if alone."""
        need(not self.open, "some windows have no prices")
        jobs, mine = self.jobs, set(self.of)
        if self.least is None:
            raise Rejected("nothing can be done within any windows")
        others = [j for j in range(len(jobs.arrival)) if j not in mine]
        alone = (jobs.arrival[j] + jobs.shortest[j] for j in others)
        return self.least + weighted([jobs.weight[j] for j in others], alone)


# Modes of running: LB-mode. Each builder says why shares of modes use no more than there is.


class RunModes(NamedTuple):
    """Ways in which jobs can run, and what these use of resources.

    ``time`` has ticks of all of a job in each mode, 0 for none; ``use`` of jobs of a kind in each mode, pairs of a
    resource and how much of it, in units of 1 / PRICE_UNIT; ``capacity`` what there is of each resource.
    """

    kind: list[int]
    time: list[tuple[int, ...]]
    use: list[list[list[tuple[int, int]]]]
    capacity: list[Fraction]

    def shortest(self, j: int) -> int:
        """Ticks of the fastest mode."""
        return min(ticks for ticks in self.time[j] if ticks)

    def rent(self, prices: list[int]) -> Fraction:
        """Price of all resources for a tick."""
        need(
            len(prices) == len(self.capacity),
            f"there are no prices for {len(self.capacity)} resources",
        )
        pairs = zip(self.capacity, prices, strict=True)
        return sum((units * price for units, price in pairs), Fraction(0))

    def rents(self, prices: list[int]) -> list[list[int]]:
        """Price of a tick of each kind of job in each mode, times PRICE_UNIT."""
        return [[sum(amount * prices[q] for q, amount in uses) for uses in row] for row in self.use]

    def least(self, prices: list[int], own: list[int]) -> list[int]:
        """Least that each job costs in one of its modes, at a price of its own time besides; times PRICE_UNIT."""
        rents = self.rents(prices)
        rows = zip(self.kind, self.time, own, strict=True)
        return [
            min(
                t * (rent + mine * PRICE_UNIT) for t, rent in zip(times, rents[k], strict=True) if t
            )
            for k, times, mine in rows
        ]


def numbered(keys: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """Different keys in order of appearance, and the place of each."""
    every = list(keys)
    place = {key: k for k, key in enumerate(dict.fromkeys(every))}
    return list(place), [place[key] for key in every]


def gpus_by_type(given: GivenInstance) -> list[Fraction]:
    """GPUs of each type."""
    found = [Fraction(0)] * len(given.types)
    for size, kind in zip(given.size, given.type_of, strict=True):
        found[kind] += size
    return found


def type_modes(given: GivenInstance, jobs: LeastWork, bound: Record) -> RunModes:
    """A mode for each GPU type, which uses the gang."""
    need(jobs.gangs, "prices by type: jobs share GPUs, hold parts of them or run as copies")
    time = [tuple(t and given.fastest(j, t) for t in times) for j, times in enumerate(given.times)]
    need(all(map(any, time)), "prices by type: a job has a graph")
    gangs, kind = numbered(jobs.gang)
    use = [[[(q, g * PRICE_UNIT)] for q in range(len(given.types))] for g in gangs]
    return RunModes(kind, time, use, gpus_by_type(given))


def node_modes(given: GivenInstance, jobs: LeastWork, bound: Record) -> RunModes:
    """Modes within a node of each type and size, and across nodes of each type: LB-node.

    A row has a type and a size of nodes, how much of one such node a gang of each size uses, and a GPU of a gang
    across nodes: gangs and GPUs that fit on the node use no more than all of it.
    """
    need(jobs.gangs and not given.speeds, "nodes: jobs share GPUs, may grow, or hold parts of them")
    most = max(given.size)
    nodes, place = numbered(zip(given.type_of, given.size, strict=True))
    gangs, kind = numbered(jobs.gang)
    types, capacity = len(given.types), gpus_by_type(given)
    on = [*(t for t, _ in nodes), *range(types)]
    use = [[[(t, g * PRICE_UNIT)] for t in on] for g in gangs]
    for q, (t, size, weights, of_one) in enumerate(bound["rows"], types):
        there = (whole(t, "type of a row"), whole(size, "nodes of a row")) in nodes
        need(there, "a row is of no nodes")
        fit = [g for g in sorted(gangs) if g <= size]
        need(len(weights) == len(fit), f"a row is not of gangs of {fit}")
        weight = {g: whole(each, "use of a node") for g, each in zip(fit, weights, strict=True)}
        one = whole(of_one, "use of a node")
        only = all(size == other for k, other in nodes if k == t)
        need(
            only or not one, "nodes of a type are of several sizes, and a gang across them uses one"
        )
        need(
            fullest(size, {**weight, 1: max(one, weight.get(1, 0))}) <= PRICE_UNIT,
            "a node is used twice",
        )
        m = nodes.index((t, size))
        capacity.append(Fraction(place.count(m)))
        for k, g in enumerate(gangs):
            use[k][m].append((q, weight.get(g, 0)))
            use[k][len(nodes) + t].append((q, g * one))
    time = [(*within(given, j, nodes), *across(given, j, most)) for j in range(len(jobs.gang))]
    need(all(map(any, time)), "a job can run nowhere")
    return RunModes(kind, time, use, capacity)


def within(given: GivenInstance, j: int, nodes: list[tuple[int, int]]) -> Iterator[int]:
    """Ticks of a job on one node of each type and size; 0 where it does not fit."""
    more, gang = given.more.get(j, {}), given.gang[j]
    for kind, size in nodes:
        if gang > size:
            yield 0
        elif "graph" in more:
            graph = given.graphs[more["graph"]]
            fits = gang <= graph.network["gpus"]
            yield graph.ticks(more["work"], (tuple(graph.replicas),)) if fits else 0
        else:
            ticks = given.times[j][kind]
            yield ticks and given.fastest(j, ticks)


def across(given: GivenInstance, j: int, most: int) -> Iterator[int]:
    """Ticks of a job across nodes of each type, at least; 0 where it is on one."""
    more, gang = given.more.get(j, {}), given.gang[j]
    for ticks in given.times[j]:
        if gang == 1 or (gang <= most and "placement" in given.header):
            yield 0
        elif "graph" in more:
            yield given.graphs[more["graph"]].spread_ticks(more["work"])
        elif ticks and gang <= most and "spread" in more:
            best = max(s for _, _, s in given.cells[more["profile"]]) if "profile" in more else 1.0
            yield slower(ticks, best, more["spread"])
        else:
            yield ticks and given.fastest(j, ticks)


def fullest(size: int, weight: dict[int, int]) -> int:
    """Most that gangs which fit on a node weigh together."""
    best = [0] * (size + 1)
    for room in range(1, size + 1):
        found = (best[room - g] + w for g, w in weight.items() if g <= room)
        best[room] = max(best[room - 1], *found)
    return best[size]


def pair_modes(given: GivenInstance, jobs: LeastWork, bound: Record) -> RunModes:
    """A mode for each GPU type, of which sorts of jobs use parts of the gang: LB-pair.

    A row has a type and the part of every sort: no two that may share do more of these than a GPU.
    """
    alike = all("sort" in given.more.get(j, ()) for j in range(len(jobs.gang)))
    need(alike, "pairs: no two jobs may share GPUs")
    names, shares, time = list(given.types), PairShares(), []
    for j, times in enumerate(given.times):
        beside = given.more[j]["beside"]
        rows = [beside.get(name, {}) for name in names]
        time.append(
            tuple(
                shares.add(given, j, t, *each)
                for t, each in enumerate(zip(times, rows, strict=True))
            )
        )
    keys, kind = numbered((given.more[j]["sort"], g) for j, g in enumerate(jobs.gang))
    use: list[list[list[tuple[int, int]]]] = [[[] for _ in names] for _ in keys]
    capacity, by_type = [], gpus_by_type(given)
    for q, (t, parts) in enumerate(bound["rows"]):
        need(whole(t, "type of a row") < len(names), "a row is of no GPU type")
        found = [whole(part, "part") for part in parts]
        need(len(found) > max(sort for sort, _ in keys), "a sort has no part")
        need(max(found) <= PRICE_UNIT, "a part is more than all")
        shares.fit(t, found)
        capacity.append(by_type[t])
        for k, (sort, g) in enumerate(keys):
            use[k][t].append((q, g * found[sort]))
    return RunModes(kind, time, use, capacity)


class PairShares:
    """Most that sorts of jobs do beside others, of their fastest."""

    def __init__(self) -> None:
        self.most: dict[tuple[int, int, int], Fraction] = {}

    def add(
        self, given: GivenInstance, j: int, kind: int, alone: int, beside: dict[str, int]
    ) -> int:
        """Ticks of a job's fastest on a GPU type, alone or beside another; 0 where it cannot run."""
        if not alone:
            return 0
        by_sort = {int(other): given.fastest(j, ticks) for other, ticks in beside.items()}
        fastest = min([given.fastest(j, alone), *by_sort.values()])
        for other, ticks in by_sort.items():
            key = kind, given.more[j]["sort"], other
            self.most[key] = max(self.most.get(key, Fraction(0)), Fraction(fastest, ticks))
        return fastest

    def fit(self, kind: int, parts: list[int]) -> None:
        """Two that share on a type do no more of their parts than one GPU has."""
        for (on, one, other), share in self.most.items():
            back = self.most.get((on, other, one))
            if on == kind and back is not None:
                fine = parts[one] * share + parts[other] * back <= PRICE_UNIT
                need(fine, f"sorts {one} and {other} do more together than a GPU has")


def amount_modes(given: GivenInstance, jobs: LeastWork, bound: Record) -> RunModes:
    """A mode for each GPU type, width and row of the profile, which uses GPUs, CPUs and memory: LB-amount."""
    need(jobs.gangs and (given.speeds or given.cells), "amounts: no job may grow or has a profile")
    rows = [given.more.get(j, {}) for j in range(len(jobs.gang))]
    columns = zip(
        jobs.gang, (r.get("widths") for r in rows), (r.get("profile") for r in rows), strict=True
    )
    keys, kind = numbered(columns)
    points = [points_of(given, *key) for key in keys]
    types, width = len(given.types), max(map(len, points))
    capacity, asked = gpus_by_type(given), []
    for k, field in enumerate(("cpus", "memory"), 2):
        if any(point[k] for mine in points for point in mine):
            thousandths = sum(given.amounts[node, field] for node in range(len(given.size)))
            capacity.append(Fraction(thousandths, WHOLE_GPU))
            asked.append(k)
    use: list[list[list[tuple[int, int]]]] = []
    for mine in points:
        uses: list[list[tuple[int, int]]] = []
        for t in range(types):
            for point in mine:
                more = (int(point[k]) * PRICE_UNIT // WHOLE_GPU for k in asked)
                uses.append([(t, point[1] * PRICE_UNIT), *enumerate(more, types)])
            uses += [[]] * (width - len(mine))
        use.append(uses)
    time = []
    for times, k in zip(given.times, kind, strict=True):
        none = [0] * (width - len(points[k]))
        each = [[t and slower(t, s) for s, *_ in points[k]] + none for t in times]
        time.append(tuple(chain.from_iterable(each)))
    need(all(map(any, time)), "amounts: a job has a graph")
    return RunModes(kind, time, use, capacity)


def points_of(
    given: GivenInstance, gang: int, widths: int | None, profile: int | None
) -> list[tuple[float, int, int, int]]:
    """Speed, GPUs, and thousandths of CPUs and memory of a job, less those that others are as good as."""
    speeds = [1.0] if widths is None else given.speeds[widths]
    cells = [(0, 0, 1.0)] if profile is None else given.cells[profile]
    every = [
        (speed * more, w, w * cpus, w * memory)
        for w, more in enumerate(speeds, gang)
        for cpus, memory, speed in cells
    ]
    kept: list[tuple[float, int, int, int]] = []
    for point in sorted(set(every), key=lambda p: (-p[0], *p[1:])):
        if not any(all(a <= b for a, b in zip(k[1:], point[1:], strict=True)) for k in kept):
            kept.append(point)
    return kept


def on_one_machine(jobs: LeastWork, modes: RunModes, prices: list[Any]) -> LeastWork:
    """Work at prices of the resources, and a machine that does what all of them cost: LB-mode (a)."""
    found = [whole(price, "price", 1) for price in prices]
    rent = modes.rent(found) * PRICE_UNIT
    area = modes.least(found, [0] * len(jobs.area))
    shortest = [modes.shortest(j) for j in range(len(jobs.area))]
    area = [each * rent.denominator for each in area]
    return jobs._replace(area=area, shortest=shortest, capacity=rent.numerator)


def fluid_of_modes(jobs: LeastWork, modes: RunModes, bound: Record) -> Fraction:
    """SRPT on a machine at prices of resources."""
    return bound_fluid(on_one_machine(jobs, modes, bound["prices"]), bound)


def busy_of_modes(jobs: LeastWork, modes: RunModes, bound: Record) -> Fraction:
    """Mean busy times on a machine at prices of resources."""
    return bound_mean_busy_time(on_one_machine(jobs, modes, bound["prices"]), bound)


def span_of_modes(jobs: LeastWork, modes: RunModes, bound: Record) -> Fraction:
    """Lower bound on the last end, at prices of resources and of each job's own time: LB-mode (b)."""
    prices, own = ([whole(price, "price") for price in row] for row in bound["prices"])
    rent, worth, best = modes.rent(prices) * PRICE_UNIT, 0, Fraction(0)
    need(rent and len(own) == len(jobs.area), "there are no prices of resources or of jobs' time")
    least = modes.least(prices, own)
    for j in sorted(range(len(own)), key=lambda j: -jobs.arrival[j]):
        worth, rent = worth + least[j], rent + own[j] * PRICE_UNIT
        best = max(best, jobs.arrival[j] + max(worth / rent, Fraction(modes.shortest(j))))
    return best


def interval_of_modes(jobs: LeastWork, modes: RunModes, bound: Record) -> Fraction:
    """Every job's value of its work, less what it gains where time and resources cost less: LB-mode (c)."""
    grid = [whole(at, "grid") for at in bound["grid"]]
    prices = [[whole(price, "price") for price in row] for row in bound["prices"]]
    fine = len(grid) == len(prices) + 1 and all(a < b for a, b in pairwise(grid))
    need(fine, "the grid does not increase")
    need(grid[0] <= min(jobs.arrival), "the grid begins too late")
    lengths = [b - a for a, b in pairwise(grid)]
    spent = sum((modes.rent(row) * n for row, n in zip(prices, lengths, strict=True)), Fraction(0))
    rents = [modes.rents(row) for row in prices]
    need(len(bound["values"]) == len(jobs.area), "there are no values of all jobs' work")
    terms = [-spent / PRICE_UNIT]
    for j, value in enumerate(bound["values"]):
        weight = jobs.weight[j]
        alpha = min(rational(value, "value of a job"), weight * grid[-1])
        gained = gain(
            jobs.arrival[j], weight, alpha, modes.time[j], grid, [r[modes.kind[j]] for r in rents]
        )
        terms.append(
            alpha + weight * Fraction(modes.shortest(j), 2) - Fraction(gained, PRICE_UNIT**2)
        )
    return total(terms)


def gain(
    arrival: int,
    weight: Fraction,
    alpha: Fraction,
    times: tuple[int, ...],
    grid: list[int],
    rents: list[list[int]],
) -> int:
    """Most that a job gains in all pieces of intervals over the value of its work, in units of 1 / PRICE_UNIT^2."""
    shortest, longest = min(t for t in times if t), max(times)
    common = weight.denominator * alpha.denominator
    value, delay = int(alpha * common), int(weight * common)
    gained = 0
    for (a, b), rent in zip(pairwise(grid), rents, strict=True):
        begin = max(a, arrival)
        if b <= begin:
            continue
        if delay * begin >= value:
            break
        u, v = min(b - begin, shortest), min(b - begin, longest)
        cuts = 0, (u + 1) // 2, (u + v + 1) // 2, v
        for (early, late), charge in zip(pairwise(cuts), (0, u, v), strict=True):
            left = value - delay * (begin + charge)
            if late > early and left > 0:
                offers = (
                    -((-left * PRICE_UNIT**2) // (t * common)) - r
                    for t, r in zip(times, rent, strict=True)
                    if t
                )
                gained += (late - early) * max(0, *offers)
    return gained


# Total utility: HADAR-any.


class Utilities(NamedTuple):
    """Utilities of jobs by the round in which they complete, in columns of the jobs; they do not increase.

    Round k ends with tick (k + 1) ``length``. Where there are deadlines a job earns its worth if it completes in a
    round that ends by its deadline, else its worth over the seconds from its arrival to the end of that round, and
    over those of a round if they are fewer. What does not complete earns nothing, and neither does what
    completes in rounds that begin when the run was stopped or later.
    """

    arrival: list[int]
    worth: list[Fraction]
    deadline: list[int]
    length: int
    until: int | None

    def of(self, j: int, k: int) -> Fraction:
        """Utility of a job that completes in a round."""
        end = (k + 1) * self.length
        if self.until is not None and k * self.length >= self.until:
            return Fraction(0)
        if self.deadline:
            return self.worth[j] if end <= self.deadline[j] else Fraction(0)
        return self.worth[j] * TICKS_PER_S / max(end - self.arrival[j], self.length)

    def earned(self, ends: list[int]) -> Fraction:
        """Total utility of completions, 0 for none, rounded down."""
        last = ((j, (end - 1) // self.length) for j, end in enumerate(ends) if end)
        return summed(self.of(j, k) for j, k in last)

    def most(self, offers: Iterable[PricedSpeeds], rounds: int, unit: Fraction) -> Fraction:
        """Most that all jobs earn over the least price of their time in so many rounds, rounded up."""
        return -summed(-self.payoff(j, offer, rounds, unit) for j, offer in enumerate(offers))

    def payoff(self, j: int, offer: PricedSpeeds, rounds: int, unit: Fraction) -> Fraction:
        """Most that a job earns over the least price of its time; whoever completes after the rounds pays nothing."""
        first = self.arrival[j] // self.length
        best = self.of(j, max(first, rounds))
        each = unit * offer.multiple / self.length
        for k, cost in enumerate(offer.least(self.arrival[j], self.length, rounds), first):
            worth = self.of(j, k)
            if worth <= best:
                break
            if cost is not None:
                best = max(best, worth - cost * each)
        return best


def summed(terms: Iterable[Fraction]) -> Fraction:
    """Their sum; where its denominator would have more than 900 digits, in units of 2^-1200, of each rounded down."""
    numerator, denominator, exact = 0, 1, True
    for term in terms:
        more = lcm(denominator, term.denominator) if exact else denominator
        if exact and more >= 10**900:
            numerator, exact = numerator * FINE // denominator, False
            more = denominator = FINE
        if exact:
            numerator *= more // denominator
            numerator += term.numerator * (more // term.denominator)
        else:
            numerator += term.numerator * FINE // term.denominator
        denominator = more
    return Fraction(numerator, denominator)


class PricedSpeeds(NamedTuple):
    """Speeds of a job and what they cost.

    ``ticks`` are those of the whole job, fewest first; ``columns`` has of each speed the price of a round, by
    round, in units of ``multiple``.
    """

    ticks: list[int]
    columns: list[list[int]]
    multiple: Fraction

    def least(self, arrival: int, length: int, rounds: int) -> Iterator[Fraction | None]:
        """Least price of all of the job's work by the end of each round from its arrival on, None if it cannot be.

        In units of multiple / length. It buys the pieces of work that cost least, of each round those
        of the lower convex hull of its speeds and their prices.
        """
        work = lcm(*self.ticks)
        speeds = [work // ticks for ticks in self.ticks]
        common = lcm(*{a - b for a in speeds for b in (0, *speeds) if a > b})
        taken: list[tuple[int, int]] = []  # (-price of a unit, units)
        units = paid = 0
        for k in range(arrival // length, rounds):
            left = min((k + 1) * length - arrival, length)
            costs = [column[k] for column in self.columns]
            speed = cost = 0
            while any(faster > speed for faster in speeds):
                price, faster, dearer = min(
                    ((other - cost) * (common // (each - speed)), each, other)
                    for each, other in zip(speeds, costs, strict=True)
                    if each > speed
                )
                piece = (faster - speed) * left
                heapq.heappush(taken, (-price, piece))
                units, paid = units + piece, paid + price * piece
                speed, cost = faster, dearer
            while taken and units - taken[0][1] >= work:
                price, most = heapq.heappop(taken)
                units, paid = units - most, paid + price * most
            if units < work:
                yield None
            else:
                spare = units - work
                yield Fraction(paid + (spare * taken[0][0] if taken else 0), common)


def bound_utility(
    given: GivenInstance, utilities: Utilities, jobs: LeastWork, bound: Record
) -> Fraction:
    """Upper bound of the total utility: the price of all GPUs, and what jobs earn over that of their time."""
    kind = bound["bound"]
    known = type(kind) is str and kind in OFFERS
    need(known, f"the bound is {kind!r:.80}, and not one of {', '.join(OFFERS)}")
    fine = bound.keys() - FIELDS["bound"][0] == {"unit"} and bound["grid"] == []
    need(fine, f"{kind} has a unit of prices by round, and no grid")
    unit = rational(bound["unit"], "unit of prices")
    rows = [[whole(price, "price") for price in row] for row in bound["prices"]]
    need(rows and len(set(map(len, rows))) == 1, "there are no prices, or not as many in all rows")
    types = len(given.types) if kind == "typed-round-prices" else 1
    need(len(rows) == types, f"there are no prices for {types} types")
    capacity, offers = OFFERS[kind](given, jobs, rows)
    paid = sum((gpus * sum(row) for gpus, row in zip(capacity, rows, strict=True)), Fraction(0))
    return paid * unit + utilities.most(offers, len(rows[0]), unit)


def by_area(
    given: GivenInstance, jobs: LeastWork, rows: list[list[int]]
) -> tuple[list[Fraction], Iterator[PricedSpeeds]]:
    """Every job at its best speed, of which it uses as much of all GPUs as its least area asks for."""
    columns = zip(jobs.area, jobs.shortest, strict=True)
    offers = (
        PricedSpeeds([ticks], rows[:1], Fraction(area, jobs.scale * ticks))
        for area, ticks in columns
    )
    return [Fraction(jobs.capacity, jobs.scale)], offers


def by_type(
    given: GivenInstance, jobs: LeastWork, rows: list[list[int]]
) -> tuple[list[Fraction], Iterator[PricedSpeeds]]:
    """Every gang at the speed of its slowest type, at the price of GPUs of the cheapest type that is as fast."""
    fine = jobs.gangs and not given.speeds and all(map(any, given.times))
    need(fine, "typed-round-prices: jobs share GPUs, may grow, have graphs or run as copies")
    known: dict[tuple[int, ...], list[int]] = {}

    def offer(j: int) -> PricedSpeeds:
        times = [ticks and given.fastest(j, ticks) for ticks in given.times[j]]
        ticks, columns = sorted(set(times) - {0}), []
        for most in ticks:
            able = tuple(kind for kind, each in enumerate(times) if 0 < each <= most)
            if able not in known:
                prices = zip(*(rows[kind] for kind in able), strict=True)
                known[able] = [min(each) for each in prices]
            columns.append(known[able])
        return PricedSpeeds(ticks, columns, Fraction(jobs.gang[j]))

    return gpus_by_type(given), map(offer, range(len(jobs.gang)))


OFFERS = {"round-prices": by_area, "typed-round-prices": by_type}
"""Bounds of the total utility, and what they take a job's time to cost."""
BOUNDS = {"fluid": bound_fluid, "mean-busy-time": bound_mean_busy_time, "area": bound_area}
BOUNDS["wide-gangs"] = bound_wide_gangs
PRICED = {"interval-lp": bound_interval_lp, "priced-plans": bound_priced_plans}
PRICED["configurations"] = bound_configurations
BOUNDS.update(PRICED)
BY_TYPE = {f"priced-{kind}": BOUNDS[kind] for kind in ("fluid", "mean-busy-time")}
SPAN = "priced-span"
Evaluation = Callable[[LeastWork, RunModes, Record], Fraction]
Builder = Callable[[GivenInstance, LeastWork, Record], RunModes]


class OfModes(NamedTuple):
    """A bound of modes: its value, its modes, fields that it has, and whether it is of the last end."""

    evaluate: Evaluation
    modes: Builder
    fields: set[str]
    last: bool


IN_MODES: list[tuple[str, Evaluation, set[str], bool]] = [
    ("priced-fluid", fluid_of_modes, set(), False),
    ("priced-mean-busy-time", busy_of_modes, set(), False),
    ("priced-span", span_of_modes, set(), True),
    ("interval-lp", interval_of_modes, {"values"}, False),
]
SUBJECTS: list[tuple[str, Builder, set[str]]] = [
    ("nodes", node_modes, {"rows"}),
    ("pairs", pair_modes, {"rows"}),
    ("amounts", amount_modes, set()),
]
OF_MODES = {
    f"{kind}-of-{subject}": OfModes(evaluate, modes, mine | theirs, last)
    for kind, evaluate, mine, last in IN_MODES
    for subject, modes, theirs in SUBJECTS
}
OF_MODES["typed-interval-lp"] = OfModes(interval_of_modes, type_modes, {"values"}, False)
MORE_OF = {WINDOWS: {"jobs", "unit"}} | {kind: each.fields for kind, each in OF_MODES.items()}
"""Fields of bounds beyond grid and prices."""
OF_STOPPED = {"fluid", "interval-lp", "priced-plans"}
"""Bounds of schedules that were stopped."""
TAKE = {
    "header": GivenInstance.take_header,
    "copies": GivenInstance.take_copies,
    "checkpoints": GivenInstance.take_checkpoints,
    "network": GivenInstance.take_network,
    "node": GivenInstance.take_node,
    "fault": GivenInstance.take_fault,
    "quota": GivenInstance.take_quota,
    "widths": GivenInstance.take_widths,
    "profile": GivenInstance.take_profile,
    "graph": GivenInstance.take_graph,
    "job": GivenInstance.take_job,
}


def check(text: str) -> Record:
    """The claim of a certificate, if the certificate proves it; else :class:`Rejected` is raised."""
    return check_lines(io.StringIO(text, newline="\n"))


def check_lines(lines: Iterable[str]) -> Record:
    """As :func:`check`, of lines that come one by one, with their line breaks."""
    try:
        return prove(read(lines))
    except MALFORMED as error:
        raise Rejected(f"a record is malformed: {error!r:.200}") from None


def prove(records: Iterator[tuple[str, Record]]) -> Record:
    """The claim of these records; what is malformed raises some error."""
    given = GivenInstance()
    schedule: GangSchedule | CopySchedule | None = None
    bound: Record = {}
    claim: Record = {}
    tree: WindowTree | None = None
    for kind, record in records:
        if kind in TAKE:
            TAKE[kind](given, record)
        elif kind == "run":
            if schedule is None:
                schedule = scheduled(given)
            schedule.run(record)
        elif kind == "bound":
            bound = record
            if bound["bound"] == WINDOWS:
                need(given.arrival and given.size, "there are no jobs or no nodes")
                tree = WindowTree(given.counted().relaxed(), bound)
        elif kind == "part":
            need(tree, "parts are of windows of completions, and there are none")
            if tree is not None:
                tree.take(record)
        else:
            claim = record
    ends = (schedule or scheduled(given)).finish()
    return proven(given, ends, bound, tree, claim)


def scheduled(given: GivenInstance) -> GangSchedule | CopySchedule:
    """The schedule of an instance that is complete, without runs."""
    need(given.arrival and given.size, "there are no jobs or no nodes")
    given.ids.clear()
    return CopySchedule(given) if given.copies else GangSchedule(given)


def proven(
    given: GivenInstance, ends: list[int], bound: Record, tree: WindowTree | None, claim: Record
) -> Record:
    """The claim, after cost, bound and ratio."""
    header, counted = given.header, given.counted()
    jobs, mine = counted.relaxed(), [ends[j] for j in given.rows()]
    by_utility = header["objective"] == UTILITY
    fine = claim.keys() & {"cost", "earned"} == {"earned" if by_utility else "cost"}
    need(fine, "the claim is of what the objective is not")
    if by_utility:
        within_utility(counted, jobs, mine, bound, claim)
    else:
        within_cost(counted, jobs, mine, (bound, tree), claim)
    about = given.of_class()
    need(claim["class"] == about, f"the class is {claim['class']!r:.80}, not {about!r}")
    return {
        **claim,
        "policy": header["policy"],
        "objective": header["objective"],
        "kind": bound["bound"],
        "jobs": len(ends),
        "gpus": jobs.gpus,
        "nodes": len(given.size),
        "quotas": len(given.quotas),
        "window": header.get("window", []),
        **{field: header[field] for field in ("utility", "round") if by_utility},
    }


def within_cost(
    given: GivenInstance,
    jobs: LeastWork,
    ends: list[int],
    bound: tuple[Record, WindowTree | None],
    claim: Record,
) -> None:
    """The schedule costs what is claimed, and at most so much more than any."""
    until = given.header.get("stopped", 0)
    cost, offset = cost_of(given.header["objective"], jobs, [end or until for end in ends])
    need(cost == rational(claim["cost"], "cost"), f"the schedule costs {cost}, not {claim['cost']}")
    value = max(bound_of(given, jobs, *bound) - offset, Fraction(0))
    least = rational(claim["bound"], "bound")
    need(least <= value, f"the bound is {shown(value)}, not {shown(least)}")
    need(value <= cost, f"the schedule costs {shown(cost)}, less than any can ({shown(value)})")
    ratio = rational(claim["ratio"], "ratio")
    need(ratio >= 1, f"the ratio is {claim['ratio']}, no schedule costs less than the optimum")
    need(cost <= ratio * least, f"the cost {shown(cost)} is not {shown(ratio)} x {shown(least)}")


def within_utility(
    given: GivenInstance, jobs: LeastWork, ends: list[int], bound: Record, claim: Record
) -> None:
    """The schedule earns what is claimed, and at most so much less than any could."""
    each = given.worth, given.deadline
    utilities = Utilities(jobs.arrival, *each, given.header["round"], jobs.until)
    earned, said = utilities.earned(ends), rational(claim["earned"], "utility earned")
    need(said <= earned, f"the schedule earns {shown(earned)}, not {shown(said)}")
    most, limit = bound_utility(given, utilities, jobs, bound), rational(claim["bound"], "bound")
    need(limit >= most, f"the bound is {shown(most)}, not {shown(limit)}")
    need(earned <= most, f"the schedule earns {shown(earned)}, more than any can ({shown(most)})")
    ratio = rational(claim["ratio"], "ratio")
    need(ratio >= 1, f"the ratio is {claim['ratio']}, no schedule earns more than the best")
    need(limit <= ratio * said, f"the bound {shown(limit)} is not {shown(ratio)} x {shown(said)}")


def bound_of(
    given: GivenInstance, jobs: LeastWork, bound: Record, tree: WindowTree | None
) -> Fraction:
    """Lower bound on completions, or on the last one, in ticks."""
    kind, prices = bound["bound"], bound["prices"]
    known = type(kind) is str and kind in {*BOUNDS, *BY_TYPE, *OF_MODES, SPAN, WINDOWS}
    need(known, f"the bound is {kind!r:.80}, which is unknown")
    more = bound.keys() - FIELDS["bound"][0]
    need(more == MORE_OF.get(kind, set()), f"{kind} has fields {', '.join(sorted(more))}")
    last = given.header["objective"] == "makespan"
    mine = OF_MODES.get(kind)
    of_last = kind in ("area", SPAN) if mine is None else mine.last
    need(of_last == last, f"{kind!r} is no bound of that")
    need(jobs.until is None or kind in OF_STOPPED, f"{kind!r} is no bound of what was stopped")
    need(type(bound["grid"]) is list and type(prices) is list, "prices are no lists")
    if mine is not None:
        need("values" in more or not bound["grid"], f"{kind} takes no prices over time")
        return mine.evaluate(jobs, mine.modes(given, jobs, bound), bound)
    need(kind in PRICED or not bound["grid"], f"{kind} takes no prices over time")
    if kind in BY_TYPE:
        return BY_TYPE[kind](given.at_prices(jobs, prices), bound)
    if kind == SPAN:
        return given.span_at_prices(jobs, prices)
    need(kind in PRICED or not prices, f"{kind} takes no prices")
    if tree is not None:
        return tree.bound()
    return BOUNDS[kind](jobs, bound)


def shown(number: Fraction) -> str:
    """A number for a message: exact if short, else some digits of it."""
    exact = str(number)
    return exact if len(exact) <= 40 else f"about {quotient(number, 12)}"


def quotient(number: Fraction, digits: int) -> Decimal:
    """A number >= 0 in decimal digits, rounded up; numbers beyond the range of floats are none here."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))


def at_most(ratio: Fraction) -> str:
    """A ratio that is an upper limit in four digits, rounded up; from 1,000 on without decimals."""
    if ratio.denominator == 1 and ratio < 1_000_000:
        return f"{ratio.numerator}x"
    return f"{ceil(ratio)}x" if 1_000 < ratio < 1_000_000 else f"{quotient(ratio, 4)}x"


def sentences(claim: Record) -> tuple[str, str]:
    """A checked claim in words: what was proven, and of what."""
    policy = claim["policy"] if " " not in claim["policy"] else repr(claim["policy"])
    ratio = at_most(Fraction(claim["ratio"]))
    proven = f"{policy} costs at most {ratio} the offline optimum of {claim['class']}"
    what = claim["objective"]
    if what == UTILITY:
        proven = f"the best total utility of {claim['class']} is at most {ratio} that of {policy}"
        what = f"{claim['utility']} in rounds of {claim['round'] / TICKS_PER_S!r} s"
    return (
        f"proven: {proven} ({what}, by {claim['kind']})",
        f"instance: {claim['jobs']} jobs, {claim['gpus']} GPUs on {claim['nodes']} nodes, "
        f"SHA-256 {claim['instance']}",
    )


def main() -> int:
    """Check the file named on the command line; exit code 0 if it proves its claim, else 1."""
    try:
        with open(sys.argv[1], encoding="ascii", newline="\n") as file:
            claim = check_lines(file)
        asked = sys.argv[2:3] or [claim["instance"]]
        need([claim["instance"]] == asked, f"the instance is {claim['instance']}, not {asked[0]}")
    except (IndexError, OSError, UnicodeDecodeError, Rejected) as error:
        print(f"rejected: {error} (usage: python checker.py FILE [DIGEST])", file=sys.stderr)
        return 1
    print(*sentences(claim), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
