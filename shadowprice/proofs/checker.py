r"""Check a certificate: ``python checker.py FILE``. Standard library only; imports nothing else.

A certificate claims that a schedule costs r times what no schedule of its instance is below; docs/certificates.md
has its format. Checked are digests; the schedule (every job runs, after its arrival, on its gang, one run at
a time, on types it can use, exactly its work, overheads charged and paid first, no node over its GPUs); the
cost; the bound, from its multipliers by weak duality; and cost = r x bound.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import Any

Record = dict[str, Any]
Records = list[Record]
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def need(fine: object, message: str) -> None:
    """Reject unless a condition holds."""
    if not fine:
        raise Rejected(message)


def whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number from ``least`` on."""
    need(type(value) is int and value >= least, f"{what} is {value!r}, not an integer >= {least}")
    return int(value)


def rational(value: Any, what: str) -> Fraction:
    """A number >= 0 as an integer or "p/q" in lowest terms."""
    if type(value) is str:
        number = Fraction(value)
        need(number >= 0 and str(number) == value, f"{what} is {value!r}, not p/q >= 0, reduced")
        return number
    return Fraction(whole(value, what))


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of lines of text."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def canonical(record: Record) -> str:
    """The one way to write a record."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


FIELDS = {
    "header": {"format", "policy", "objective", "start", "restart", "migration"},
    "node": {"node", "gpus", "type"},
    "job": {"job", "id", "arrival", "gpus", "weight", "run"},
    "run": {"job", "start", "end", "overhead", "pieces"},
    "bound": {"bound", "grid", "prices"},
    "claim": {"cost", "bound", "ratio", "instance", "file"},
}  # fmt: skip


def read(text: str) -> dict[str, Records]:
    """Records by kind, after form, order and digests were checked."""
    lines = text.split("\n")
    need(len(lines) > 1 and lines.pop() == "", "the file does not end with a line break")
    found: dict[str, Records] = {kind: [] for kind in FIELDS}
    for number, line in enumerate(lines, 1):
        record = json.loads(line)
        kind = record.pop("kind")
        need(set(record) == FIELDS[kind], f"line {number}: {kind} has fields {sorted(record)}")
        need(canonical({"kind": kind, **record}) == line, f"line {number} is not in canonical form")
        later = list(FIELDS)[list(FIELDS).index(kind) + 1 :]
        need(not any(found[other] for other in later), f"line {number}: {kind} comes too late")
        found[kind].append(record)
    (header,), (claim,), (_,) = (found[kind] for kind in ("header", "claim", "bound"))
    need(header["format"] == 1, "format is not 1")
    given = lines[1 : 1 + len(found["node"]) + len(found["job"])]
    claim = {"kind": "claim", **claim}
    need(claim["instance"] == digest(given), "the digest of the instance is another")
    signature = claim.pop("file")
    need(signature == digest([*lines[:-1], canonical(claim)]), "the digest of the file is another")
    return found


def check_instance(header: Record, nodes: Records, jobs: Records) -> None:
    """The nodes, jobs and charges make sense."""
    need(jobs and nodes, "there are no jobs or no nodes")
    charges = [header["start"], header["migration"], *(ticks for _, ticks in header["restart"])]
    need(all(whole(ticks, "charge") >= 0 for ticks in charges), "a charge is negative")
    gangs = [whole(gang, "gang of a restart", 1) for gang, _ in header["restart"]]
    need(gangs and gangs == sorted(set(gangs)), f"gangs of restarts are {gangs}, not increasing")
    for k, node in enumerate(nodes):
        need(node["node"] == k and whole(node["gpus"], "GPUs", 1), f"node {k} is out of order")
    for k, job in enumerate(jobs):
        need(job["job"] == k and whole(job["gpus"], "gang", 1), f"job {k} is out of order")
        whole(job["arrival"], f"arrival of job {k}")
        job["weight"] = rational(job["weight"], f"weight of job {k}")
        job["shortest"] = min(whole(t, f"run time of job {k}", 1) for t in job["run"].values())


def check_schedule(header: Record, nodes: Records, jobs: Records, runs: Records) -> list[int]:
    """Completion of every job; rejects a schedule that breaks a rule of the instance."""
    of: list[Records] = [[] for _ in jobs]
    changes: list[list[tuple[int, int]]] = [[] for _ in nodes]
    for k, run in enumerate(sorted(runs, key=lambda run: int(run["start"]))):
        need(type(run["job"]) is int and 0 <= run["job"] < len(jobs), f"run {k} is of no job")
        where = f"run {k} by start (job {run['job']})"
        job, start = jobs[run["job"]], whole(run["start"], f"start of {where}")
        end = whole(run["end"], f"end of {where}", start + 1)
        need(
            whole(run["overhead"], "overhead") <= end - start,
            f"{where} is shorter than its overhead",
        )
        need(start >= job["arrival"], f"{where} starts before the job arrives")
        places = [whole(node, f"node of {where}") for node, _ in run["pieces"]]
        held = sum(whole(gpus, f"GPUs of {where}", 1) for _, gpus in run["pieces"])
        need(held == job["gpus"], f"{where} holds {held} GPUs, not its gang")
        need(places == sorted(set(places)) and places[-1] < len(nodes), f"{where}: nodes {places}")
        for node, gpus in run["pieces"]:
            need(nodes[node]["type"] in job["run"], f"{where}: the job cannot run on node {node}")
            changes[node] += [(end, -gpus), (start, gpus)]
        of[run["job"]].append(run)
    for node, events in zip(nodes, changes, strict=True):
        held = max(accumulate(change for _, change in sorted(events)), default=0)
        need(held <= node["gpus"], f"node {node['node']}: {held} GPUs held, it has {node['gpus']}")
    return [check_job(header, nodes, job, mine) for job, mine in zip(jobs, of, strict=True)]


def check_job(header: Record, nodes: Records, job: Record, runs: Records) -> int:
    """Completion of a job from its runs in order."""
    name, times = f"job {job['job']}", job["run"].values()
    need(runs, f"{name} is lost: it never runs")
    restart = [t for g, t in header["restart"] if job["gpus"] <= g] or [header["restart"][-1][1]]
    owed, done = 0, Fraction(0)
    for number, run in enumerate(runs):
        owed += header["start"]
        if number:
            before = runs[number - 1]
            need(run["start"] >= before["end"], f"{name} runs twice at tick {run['start']}")
            owed += restart[0] + header["migration"] * (run["pieces"] != before["pieces"])
        owed -= run["overhead"]
        progress = run["end"] - run["start"] - run["overhead"]
        need(owed == 0 or (owed > 0 and not progress), f"{name} owes {owed} ticks of overhead")
        done += Fraction(progress, max(job["run"][nodes[n]["type"]] for n, _ in run["pieces"]))
    # Where speeds differ the end of a run is rounded up: two ticks.
    allowed = Fraction(2 * len(runs), min(times)) if len(set(times)) > 1 else 0
    need(abs(done - 1) <= allowed, f"{name} does {float(done):.9f} of its work")
    return int(runs[-1]["end"])


def cost_of(objective: str, jobs: Records, ends: list[int]) -> tuple[Fraction, Fraction]:
    """Cost of completions in ticks, and what it subtracts from them."""
    need(objective in ("completion", "flow", "makespan"), f"objective is {objective!r}")
    if objective == "makespan":
        offset = Fraction(min(job["arrival"] for job in jobs))
        return max(ends) - offset, offset
    flow = objective == "flow"
    offset = sum((job["weight"] * job["arrival"] for job in jobs if flow), Fraction(0))
    total = sum((job["weight"] * end for job, end in zip(jobs, ends, strict=True)), Fraction(0))
    return total - offset, offset


def one_machine(jobs: Records, capacity: int, rank: Any) -> Iterator[tuple[int, int, int, bool]]:
    """Pieces (job, begin, end) of preemptive service by rank; time in 1 / capacity ticks."""
    order = sorted(range(len(jobs)), key=lambda j: jobs[j]["arrival"])
    left = [job["gpus"] * job["shortest"] for job in jobs]
    comes = [jobs[j]["arrival"] * capacity for j in order]
    comes.append(comes[-1] + sum(left) + 1)  # nobody: after all is done
    queue: list[tuple[Fraction | int, int]] = []
    now = k = 0
    while queue or k < len(order):
        now = now if queue else max(now, comes[k])
        while comes[k] <= now:
            heapq.heappush(queue, (rank(order[k], left[order[k]]), order[k]))
            k += 1
        _, j = heapq.heappop(queue)
        until = min(now + left[j], comes[k])
        yield j, now, until, until - now == left[j]
        left[j] -= until - now
        if left[j]:
            heapq.heappush(queue, (rank(j, left[j]), j))
        now = until


def bound_fluid(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """SRPT on one machine."""
    need(len({job["weight"] for job in jobs}) == 1, "fluid: weights differ")
    ends = sum(end for _, _, end, last in one_machine(jobs, capacity, lambda j, left: left) if last)
    return Fraction(jobs[0]["weight"]) * Fraction(ends, capacity)


def bound_mean_busy_time(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Mean busy times of preemptive WSPT on one machine."""
    area = [job["gpus"] * job["shortest"] for job in jobs]
    total = sum((job["weight"] * Fraction(job["shortest"], 2) for job in jobs), Fraction(0))
    pieces = one_machine(jobs, capacity, lambda j, left: -jobs[j]["weight"] / area[j])
    for j, begin, end, _ in pieces:
        total += jobs[j]["weight"] * Fraction(end * end - begin * begin, 2 * area[j] * capacity)
    return total


def bound_interval_lp(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Every job takes its time where time and GPUs cost least."""
    grid = [whole(b, "grid") for b in bound["grid"]]
    prices = [rational(p, "price") for p in bound["prices"]]
    need(len(grid) == len(prices) + 1 and grid == sorted(set(grid)), "the grid does not increase")
    need(grid[0] <= min(job["arrival"] for job in jobs), "the grid begins too late")
    last = max(job["arrival"] for job in jobs) + sum(job["shortest"] for job in jobs)
    need(grid[-1] >= last, "the grid ends too early")
    total = -capacity * sum(p * (b - a) for p, (a, b) in zip(prices, pairwise(grid), strict=True))
    common = lcm(*(price.denominator for price in prices))
    return total + sum((least_price(job, grid, prices, common) for job in jobs), Fraction(0))


def least_price(job: Record, grid: list[int], prices: list[Fraction], common: int) -> Fraction:
    """What a job pays at least: w (begin / p) + g beta a unit of time, in halves of intervals."""
    work, weight = int(job["shortest"]), Fraction(job["weight"])
    q = lcm(weight.denominator, common)  # costs are whole in units of 1 / (p q)
    time_cost, rent = int(weight * q), work * job["gpus"]
    offers = []
    for (a, b), price in zip(pairwise(grid), prices, strict=True):
        begin = max(a, job["arrival"])
        most = min(b - begin, work)
        if most > 0:
            rented = rent * int(price * q)
            offers.append((time_cost * begin + rented, most - most // 2))
            offers.append((time_cost * (begin + most) + rented, most // 2))
    left, cost = work, 0
    for price, room in sorted(offers):
        take = min(left, room)
        cost += take * price
        left -= take
    return Fraction(cost, work * q) + weight * Fraction(work, 2)


def bound_area(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """When the last of the jobs can end at the earliest."""
    area = lone = best = 0
    for job in sorted(jobs, key=lambda job: -job["arrival"]):
        area += job["gpus"] * job["shortest"]
        lone += job["shortest"] if 2 * job["gpus"] > capacity else 0
        best = max(best, job["arrival"] + max(-(-area // capacity), lone, job["shortest"]))
    return Fraction(best)


BOUNDS = {"fluid": bound_fluid, "mean-busy-time": bound_mean_busy_time, "area": bound_area}
BOUNDS["interval-lp"] = bound_interval_lp


def check(text: str) -> Record:
    """The claim of a certificate, if the certificate proves it; else :class:`Rejected` is raised."""
    try:
        return prove(read(text))
    except MALFORMED as error:
        raise Rejected(f"a record is malformed: {error!r}") from None


def prove(found: dict[str, Records]) -> Record:
    """The claim of these records; what is malformed raises some error."""
    header, bound, claim = found["header"][0], found["bound"][0], found["claim"][0]
    nodes, jobs = found["node"], found["job"]
    check_instance(header, nodes, jobs)
    ends = check_schedule(header, nodes, jobs, found["run"])
    cost, offset = cost_of(header["objective"], jobs, ends)
    need(cost == rational(claim["cost"], "cost"), f"the schedule costs {cost}, not {claim['cost']}")
    kind = bound["bound"]
    need((kind == "area") == (header["objective"] == "makespan"), f"{kind!r} is no bound of that")
    need(kind == "interval-lp" or not bound["grid"] + bound["prices"], f"{kind} takes no prices")
    value = BOUNDS[kind](jobs, sum(node["gpus"] for node in nodes), bound)
    least = max(value - offset, Fraction(0))
    need(least == rational(claim["bound"], "bound"), f"the bound is {least}, not {claim['bound']}")
    fine = cost == rational(claim["ratio"], "ratio") * least and (claim["ratio"] == 1 or cost)
    need(fine, f"{cost} is not {claim['ratio']} x {least}")
    return {**claim, "policy": header["policy"], "objective": header["objective"], "kind": kind}


def main() -> int:
    """Check the file named on the command line; exit code 0 if it proves its claim, else 1."""
    try:
        with open(sys.argv[1], encoding="ascii") as file:
            claim = check(file.read())
    except (IndexError, OSError, UnicodeDecodeError, Rejected) as error:
        print(f"rejected: {error} (usage: python checker.py FILE)", file=sys.stderr)
        return 1
    costs = f"{claim['policy']} costs at most {float(Fraction(claim['ratio'])):.6f} times"
    print(f"proven: {costs} the offline optimum ({claim['objective']}, by {claim['kind']})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
