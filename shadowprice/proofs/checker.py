"""Check a certificate: ``python checker.py FILE [DIGEST]``. Standard library only; imports nothing else.

A certificate claims that a schedule costs at most r times what any schedule of its instance costs that
may preempt and in which no two jobs share a GPU; docs/certificates.md has its format. Checked are form and
digests; the schedule (every job runs, after its arrival, on its gang, one run at a time, on types it can
use, all of its work, overheads charged and paid first, no node over its GPUs); the cost; the bound, from its
multipliers by weak duality, which must be as large as claimed; and cost <= r x bound, r >= 1. Numbers are
whole or fractions; nothing is rounded in favour of the claim.

With DIGEST, which `shadowprice certify` prints, the instance must be the one of this digest.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, lcm
from typing import Any

Record = dict[str, Any]
Records = list[Record]
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

FORMAT = 2
CLASS = "preemptive schedules in which no two jobs share a GPU"
LARGEST = 2**100
MOST = 10**1000
PRICE_UNIT = 2**20
RATIONAL = re.compile(r"[0-9]{1,1000}/[0-9]{1,1000}", re.ASCII)


class Rejected(Exception):
    """The certificate does not prove its claim; the message says where it fails."""


def need(fine: object, message: str) -> None:
    """Reject unless a condition holds."""
    if not fine:
        raise Rejected(message)


def whole(value: Any, what: str, least: int = 0) -> int:
    """A whole number from ``least`` on."""
    fine = type(value) is int and least <= value <= LARGEST
    need(fine, f"{what} is {value!r:.80}, not an integer from {least} to 2^100")
    return int(value)


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


def name(value: Any, what: str) -> str:
    """A name that prints on one line as what it is."""
    fine = type(value) is str and 0 < len(value) <= 1000 and value.isprintable()
    need(fine, f"{what} is {value!r:.80}, not a printable name of 1 to 1,000 characters")
    return str(value)


def total(terms: Iterable[Fraction]) -> Fraction:
    """Their sum, rounded down to a multiple of 2^-1200; pairwise, for denominators are all different."""
    sums = [(term.numerator, term.denominator) for term in terms]
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=False)
        sums = [*((a * d + c * b, b * d) for (a, b), (c, d) in pairs), *sums[len(sums) & ~1 :]]
    return Fraction((sums[0][0] << 1200) // sums[0][1], 1 << 1200)


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
    "claim": {"class", "cost", "bound", "ratio", "instance", "file"},
}


def read(text: str) -> dict[str, Records]:
    """Records by kind, after form, order and digests were checked."""
    lines = text.split("\n")
    need(len(lines) > 1 and lines.pop() == "", "the file does not end with a line break")
    need(text.isascii(), "the file is not ASCII")
    found: dict[str, Records] = {kind: [] for kind in FIELDS}
    order = list(FIELDS)
    for number, line in enumerate(lines, 1):
        record = json.loads(line)
        need(type(record) is dict, f"line {number} is not an object")
        kind = record.pop("kind", None)
        need(kind in order, f"line {number}: kind is {kind!r:.80}, not one of {', '.join(order)}")
        if kind == "header":
            made = record.get("format")
            fine = type(made) is int and made == FORMAT
            need(fine, f"format is {made!r:.80}, this program checks format {FORMAT}")
        fields = ", ".join(sorted(record))
        need(set(record) == FIELDS[kind], f"line {number}: {kind} has fields {fields:.200}")
        need(canonical({"kind": kind, **record}) == line, f"line {number} is not in canonical form")
        later = order[order.index(kind) + 1 :]
        need(not any(found[other] for other in later), f"line {number}: {kind} comes too late")
        found[kind].append(record)
    for kind in ("header", "bound", "claim"):
        need(len(found[kind]) == 1, f"{len(found[kind])} lines are of kind {kind}, not one")
    given = lines[1 : 1 + len(found["node"]) + len(found["job"])]
    claim = {"kind": "claim", **found["claim"][0]}
    need(claim["instance"] == digest(given), "the digest of the instance is another")
    signature = claim.pop("file")
    need(signature == digest([*lines[:-1], canonical(claim)]), "the digest of the file is another")
    return found


def check_instance(header: Record, nodes: Records, jobs: Records) -> None:
    """The nodes, jobs and charges make sense."""
    need(jobs and nodes, "there are no jobs or no nodes")
    name(header["policy"], "policy")
    for field in ("start", "migration"):
        whole(header[field], field)
    gangs = [whole(gang, "gang of a restart", 1) for gang, _ in header["restart"]]
    need(gangs and gangs == sorted(set(gangs)), f"gangs of restarts are {gangs}, not increasing")
    for _, ticks in header["restart"]:
        whole(ticks, "restart")
    for k, node in enumerate(nodes):
        need(whole(node["node"], f"node {k}") == k, f"node {k} is out of order")
        whole(node["gpus"], f"GPUs of node {k}", 1)
        name(node["type"], f"type of node {k}")
    types, ids = {node["type"] for node in nodes}, set()
    for k, job in enumerate(jobs):
        need(whole(job["job"], f"job {k}") == k, f"job {k} is out of order")
        whole(job["gpus"], f"gang of job {k}", 1)
        ids.add(name(job["id"], f"id of job {k}"))
        need(len(ids) == k + 1, f"job {k} has the id of another")
        whole(job["arrival"], f"arrival of job {k}")
        job["weight"] = rational(job["weight"], f"weight of job {k}")
        need(type(job["run"]) is dict and job["run"], f"job {k} can run nowhere")
        need(set(job["run"]) <= types, f"job {k} has a run time on a type that no node is of")
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
    which = f"job {job['job']}"
    need(runs, f"{which} is lost: it never runs")
    restart = [t for g, t in header["restart"] if job["gpus"] <= g] or [header["restart"][-1][1]]
    owed, done = 0, Fraction(0)
    for number, run in enumerate(runs):
        owed += header["start"]
        if number:
            before = runs[number - 1]
            need(run["start"] >= before["end"], f"{which} runs twice at tick {run['start']}")
            owed += restart[0] + header["migration"] * (run["pieces"] != before["pieces"])
        owed -= run["overhead"]
        progress = run["end"] - run["start"] - run["overhead"]
        need(owed == 0 or (owed > 0 and not progress), f"{which} owes {owed} ticks of overhead")
        pace = max(job["run"][nodes[n]["type"]] for n, _ in run["pieces"])
        done += Fraction(progress, pace)
    # All of the work, and no tick more than it takes: the last one completes it.
    short, over = ceil((1 - done) * pace), (done - 1) * pace
    need(short <= 0, f"{which} is {short} ticks short of its work")
    need(progress and over < 1, f"{which} holds GPUs after the end of its work")
    return int(runs[-1]["end"])


def cost_of(objective: str, jobs: Records, ends: list[int]) -> tuple[Fraction, Fraction]:
    """Cost of completions in ticks, and what it subtracts from them."""
    known = ("completion", "flow", "makespan")
    need(objective in known, f"objective is {objective!r:.80}, not one of {', '.join(known)}")
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
    twice = [area[k] * capacity * job["shortest"] for k, job in enumerate(jobs)]
    for j, begin, end, _ in one_machine(
        jobs, capacity, lambda j, left: -jobs[j]["weight"] / area[j]
    ):
        twice[j] += end * end - begin * begin
    return total(
        job["weight"] * Fraction(twice[k], 2 * area[k] * capacity) for k, job in enumerate(jobs)
    )


def bound_wide_gangs(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Gangs of which at most q fit on a machine of speed q, all others as if alone; the largest for q to 8."""
    best = Fraction(0)
    for most in range(1, 9):
        wide = [{**job, "gpus": 1} for job in jobs if job["gpus"] * (most + 1) > capacity]
        if wide:
            rest = [job for job in jobs if job["gpus"] * (most + 1) <= capacity]
            found = bound_mean_busy_time(wide, most, bound)
            if len({job["weight"] for job in wide}) == 1:
                found = max(found, bound_fluid(wide, most, bound))
            alone = (job["weight"] * (job["arrival"] + job["shortest"]) for job in rest)
            best = max(best, sum(alone, found))
    return best


def bound_interval_lp(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Every job takes its time where time and GPUs cost least."""
    grid = [whole(b, "grid") for b in bound["grid"]]
    prices = [whole(p, "price") for p in bound["prices"]]
    need(len(grid) == len(prices) + 1 and grid == sorted(set(grid)), "the grid does not increase")
    need(grid[0] <= min(job["arrival"] for job in jobs), "the grid begins too late")
    last = max(job["arrival"] for job in jobs) + sum(job["shortest"] for job in jobs)
    need(grid[-1] >= last, "the grid ends too early")
    paid = capacity * sum(p * (b - a) for p, (a, b) in zip(prices, pairwise(grid), strict=True))
    return total([Fraction(-paid, PRICE_UNIT), *(least_price(job, grid, prices) for job in jobs)])


def least_price(job: Record, grid: list[int], prices: list[int]) -> Fraction:
    """Least price of a job: w (begin / p) + g beta a unit of time, in halves of intervals."""
    work, weight = int(job["shortest"]), Fraction(job["weight"])
    q = lcm(weight.denominator, PRICE_UNIT)  # costs are whole in units of 1 / (p q)
    time_cost, rent = int(weight * q), work * job["gpus"] * (q // PRICE_UNIT)
    offers = []
    for (a, b), price in zip(pairwise(grid), prices, strict=True):
        begin = max(a, job["arrival"])
        most = min(b - begin, work)
        if most > 0:
            offers.append((time_cost * begin + rent * price, most - most // 2))
            offers.append((time_cost * (begin + most) + rent * price, most // 2))
    left, cost = work, 0
    for price, room in sorted(offers):
        take = min(left, room)
        cost += take * price
        left -= take
    return Fraction(cost, work * q) + weight * Fraction(work, 2)


def bound_priced_plans(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of a GPU, in units of the largest weight."""
    grid, prices = cells_of(bound["grid"], bound["prices"])
    rows = {job["gpus"]: (prices, job["gpus"]) for job in jobs}
    return plans(jobs, grid, rows, [capacity * price for price in prices])


def bound_configurations(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Every job's cheapest plan at prices of gangs, a list a width; each cell has the dearest gangs that fit."""
    widths = sorted({job["gpus"] for job in jobs})
    need(len(bound["prices"]) == len(widths), f"there are no prices for gangs of {widths}")
    found = [cells_of(bound["grid"], row) for row in bound["prices"]]
    grid, rows = found[0][0], dict(zip(widths, ((row, 1) for _, row in found), strict=True))
    release = {g: sorted(job["arrival"] for job in jobs if job["gpus"] == g) for g in widths}
    most = []
    for k, end in enumerate(grid[1:]):
        best = [0] * (capacity + 1)
        for g in widths:
            left, lot = min(bisect_left(release[g], end), capacity // g), 1
            while left and rows[g][0][k]:
                size, value = min(lot, left) * g, min(lot, left) * rows[g][0][k]
                more = [worth + value for worth in best[: capacity + 1 - size]]
                best[size:] = map(max, best[size:], more)
                left, lot = left - min(lot, left), 2 * lot
        most.append(best[capacity])
    return plans(jobs, grid, rows, most)


def cells_of(grid: Any, prices: Any) -> tuple[list[int], list[int]]:
    """A grid and prices of its cells."""
    need(type(prices) is list, "prices are no lists")
    bounds, found = [whole(b, "grid") for b in grid], [whole(p, "price") for p in prices]
    fine = len(bounds) == len(found) + 1 and bounds == sorted(set(bounds))
    need(fine, "the grid does not increase")
    return bounds, found


def plans(
    jobs: Records, grid: list[int], rows: dict[int, tuple[list[int], int]], most: list[int]
) -> Fraction:
    """Cheapest plans, from prices and their multiples by width, less what each cell is worth at most."""
    unit = max(Fraction(job["weight"]) for job in jobs) / PRICE_UNIT
    paid = sum(worth * (b - a) for worth, (a, b) in zip(most, pairwise(grid), strict=True))
    costs = (cheapest_plan(job, grid, *rows[job["gpus"]], unit) for job in jobs)
    return total([-paid * unit, *costs])


def cheapest_plan(
    job: Record, grid: list[int], prices: list[int], multiple: int, unit: Fraction
) -> Fraction:
    """Least of w x (end - arrival) + price of the cheapest time that suffices before the end, and w x arrival."""
    arrival, left, weight = int(job["arrival"]), int(job["shortest"]), Fraction(job["weight"])
    if not weight:
        return weight
    delay, scale = (weight / unit).as_integer_ratio()  # costs are whole in units of unit / scale
    gang, paid, best = scale * multiple, 0, None
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


def bound_area(jobs: Records, capacity: int, bound: Record) -> Fraction:
    """Lower bound on the end of the last of the jobs."""
    area = lone = best = 0
    for job in sorted(jobs, key=lambda job: -job["arrival"]):
        area += job["gpus"] * job["shortest"]
        lone += job["shortest"] if 2 * job["gpus"] > capacity else 0
        best = max(best, job["arrival"] + max(-(-area // capacity), lone, job["shortest"]))
    return Fraction(best)


BOUNDS = {"fluid": bound_fluid, "mean-busy-time": bound_mean_busy_time, "area": bound_area}
BOUNDS["wide-gangs"] = bound_wide_gangs
PRICED = {"interval-lp": bound_interval_lp, "priced-plans": bound_priced_plans}
PRICED["configurations"] = bound_configurations
BOUNDS.update(PRICED)


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
    need(type(kind) is str and kind in BOUNDS, f"the bound is {kind!r:.80}, which is unknown")
    need((kind == "area") == (header["objective"] == "makespan"), f"{kind!r} is no bound of that")
    need(type(bound["grid"]) is list and type(bound["prices"]) is list, "prices are no lists")
    need(kind in PRICED or not bound["grid"] + bound["prices"], f"{kind} takes no prices")
    capacity = sum(node["gpus"] for node in nodes)
    value = max(BOUNDS[kind](jobs, capacity, bound) - offset, Fraction(0))
    least = rational(claim["bound"], "bound")
    need(least <= value, f"the bound is {shown(value)}, not {shown(least)}")
    need(value <= cost, f"the schedule costs {shown(cost)}, less than any can ({shown(value)})")
    ratio = rational(claim["ratio"], "ratio")
    need(ratio >= 1, f"the ratio is {claim['ratio']}, no schedule costs less than the optimum")
    need(cost <= ratio * least, f"the cost {shown(cost)} is not {shown(ratio)} x {shown(least)}")
    need(claim["class"] == CLASS, f"the class is {claim['class']!r:.80}, not {CLASS!r}")
    return {
        **claim,
        "policy": header["policy"],
        "objective": header["objective"],
        "kind": kind,
        "jobs": len(jobs),
        "gpus": capacity,
        "nodes": len(nodes),
    }


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
    return (
        f"proven: {policy} costs at most {ratio} the offline optimum of {claim['class']} "
        f"({claim['objective']}, by {claim['kind']})",
        f"instance: {claim['jobs']} jobs, {claim['gpus']} GPUs on {claim['nodes']} nodes, "
        f"SHA-256 {claim['instance']}",
    )


def main() -> int:
    """Check the file named on the command line; exit code 0 if it proves its claim, else 1."""
    try:
        with open(sys.argv[1], encoding="ascii", newline="") as file:
            claim = check(file.read())
        asked = sys.argv[2:3] or [claim["instance"]]
        need([claim["instance"]] == asked, f"the instance is {claim['instance']}, not {asked[0]}")
    except (IndexError, OSError, UnicodeDecodeError, Rejected) as error:
        print(f"rejected: {error} (usage: python checker.py FILE [DIGEST])", file=sys.stderr)
        return 1
    print(*sentences(claim), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
