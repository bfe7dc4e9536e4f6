"""The instance: nodes, jobs, and what their speeds depend on."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from copy import copy
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, lcm
from typing import Any

from .costs import LeastWork
from .form import (
    BY_DEADLINE,
    FIELDS,
    MOST,
    NEVER,
    OF_ALL_JOBS,
    OVER_TIME,
    PRICE_UNIT,
    TICKS_PER_S,
    UTILITY,
    WHOLE_GPU,
    Record,
    double,
    name,
    need,
    rational,
    rows_of_prices,
    whole,
)
from .limits import MOST_GPUS, MOST_JOBS, MOST_SPEEDS, MOST_TYPES, STEPS_OF_A_JOB, Effort
from .speeds import Graph, slower

CORES = "cores"
"""Type of nodes that have cores instead of GPUs, for jobs that run nowhere else."""
OF_WHOLE_TIMES = {"part", "graph", "work", "steps", "rate"}
"""Fields of jobs whose run times no speed divides."""


class CertificateInstance:
    """The instance, record by record: each method takes one of its kind."""

    def __init__(self) -> None:
        self.header: Record = {}
        self.copies: Record = {}
        self.checkpoints: Record = {}
        self.network: Record = {}
        self.size: list[int] = []
        self.type_of: list[int] = []
        self.gpus = 0
        self.alike: dict[tuple[int, int], int] = {}
        self.types: dict[str, int] = {}
        self.cpu_memory: dict[tuple[int, str], int] = {}
        self.faults: dict[int, tuple[list[int], list[int]]] = {}
        self.quotas: list[tuple[list[int], list[int]]] = []
        self.quota_of: dict[int, int] = {}
        self.speeds: list[list[float]] = []
        self.cells: list[list[tuple[int, int, float]]] = []
        self.best_of: list[float] = []
        self.graphs: list[Graph] = []
        self.ids: set[str] = set()
        self.arrival: list[int] = []
        self.gang: list[int] = []
        self.weight: list[Fraction] = []
        self.weights: dict[int | str, Fraction] = {}
        self.weight_unit = 1
        self.worth: list[Fraction] = []
        self.deadline: list[int] = []
        self.times: list[tuple[int, ...]] = []
        self.known_times: dict[tuple[int, ...], tuple[int, ...]] = {}
        self.shortest: list[int] = []
        self.area: list[int] = []
        self.more: dict[int, Record] = {}
        self.shares: dict[tuple[str, int, int], Fraction] = {}
        self.largest: dict[bool, list[int]] = {}
        self.effort, self.graph_effort = (
            Effort("speeds of jobs", 0, MOST_SPEEDS),
            Effort("runs of job graphs"),
        )

    def take_header(self, header: Record) -> None:
        """Policy and charges."""
        name(header["policy"], "policy")
        for field in ("start", "migration"):
            whole(header[field], field)
        gangs = [whole(gang, "gang of a restart", 1) for gang, _ in header["restart"]]
        fine = gangs and all(a < b for a, b in pairwise(gangs))
        need(fine, f"gangs of restarts are {gangs!r:.80}, not increasing")
        for _, ticks in header["restart"]:
            whole(ticks, "restart")
        if "window" in header:
            first, last = (whole(job, "job of the window") for job in header["window"])
            need(first < last, "the window has no jobs")
        if "stopped" in header:
            whole(header["stopped"], "time at which it was stopped")
        fine = header.get("preemption", "restart") == "restart"
        need(fine, f"preemption is {header.get('preemption')!r:.80}, not restart")
        fine = header.get("placement", "consolidated") == "consolidated"
        need(fine, f"placement is {header.get('placement')!r:.80}, not consolidated")
        fine = header.get("types", "ample") == "ample"
        need(fine, f"types are {header.get('types')!r:.80}, not ample")
        fine = header.get("starts", "once") == "once"
        need(fine, f"starts are {header.get('starts')!r:.80}, not once")
        fields = {"utility", "round"} if header["objective"] == UTILITY else set()
        need(header.keys() & {"utility", "round"} == fields, "a utility is no objective, or lacks")
        if fields:
            known = (*OVER_TIME, BY_DEADLINE)
            fine = type(header["utility"]) is str and header["utility"] in known
            need(fine, f"utility is {header['utility']!r:.80}, not one of {', '.join(known)}")
            whole(header["round"], "round of utilities", 1)
        fine = "rounds" not in header or (bool(fields) and header["rounds"] == "whole")
        need(fine, f"rounds are {header.get('rounds')!r:.80}, not whole, or of no utility")
        self.header = header

    def take_copies(self, rules: Record) -> None:
        """Rounds of copies."""
        charges = sum(whole(rules[field], field) for field in ("restart", "aggregation"))
        whole(rules["round"], "round", charges + 1)
        whole(rules["most"], "most copies", 1)
        free = not self.header["start"] + self.header["migration"]
        need("placement" not in self.header, "copies are on whole nodes, and never consolidated")
        need(free and not any(t for _, t in self.header["restart"]), "copies have other charges")
        need("starts" not in self.header, "copies begin again with every round")
        need(not self.header.keys() & {"rounds", "types"}, "copies are in whole rounds")
        self.copies = rules

    def take_checkpoints(self, rule: Record) -> None:
        """Checkpoints, by which a run that is cut short has saved something."""
        need("starts" not in self.header, "nodes fail, after which jobs begin again")
        # Copies save what is averaged, who restarts saves nothing: neither writes checkpoints.
        none = self.copies or "preemption" in self.header
        whole(rule["interval"], "interval of checkpoints", NEVER if none else 1)
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
        self.gpus += self.size[k]
        need(self.gpus <= MOST_GPUS, f"there are more than {MOST_GPUS} GPUs")
        need(len(self.types) <= MOST_TYPES, f"there are more than {MOST_TYPES} GPU types")
        sort = self.type_of[k], self.size[k]
        self.alike[sort] = self.alike.get(sort, 0) + 1
        for field in ("cpus", "memory"):
            if field in node:
                self.cpu_memory[k, field] = whole(node[field], f"{field} of node {k}")

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
        need(whole(quota["quota"], "quota") == len(self.quotas), "a quota is out of order")
        starts = [whole(start, "start of a period") for start, _ in quota["periods"]]
        gpus = [whole(most, "GPUs of a quota") for _, most in quota["periods"]]
        fine = starts[0] == 0 and all(a < b for a, b in pairwise(starts))
        need(fine, "periods of a quota are out of order, or the first does not begin at 0")
        self.quotas.append((starts, gpus))

    def take_widths(self, row: Record) -> None:
        """Speeds of gangs that hold more than theirs."""
        need(whole(row["widths"], "widths") == len(self.speeds), "widths are out of order")
        speeds = [double(speed, "speed of a width") for speed in row["speeds"]]
        need(speeds[0] == 1 and all(speeds), "a gang's own speed is not 1, or one is 0")
        self.speeds.append(speeds)

    def take_profile(self, profile: Record) -> None:
        """Speeds by thousandths of CPUs and memory a GPU."""
        need(whole(profile["profile"], "profile") == len(self.cells), "a profile is out of order")
        cells = [
            (whole(cpus, "CPUs"), whole(memory, "memory"), double(speed, "speed of a profile"))
            for cpus, memory, speed in profile["cells"]
        ]
        need(cells and all(speed for _, _, speed in cells), "a profile has no speeds, or one of 0")
        self.cells.append(cells)
        self.best_of.append(max(speed for _, _, speed in cells))

    def take_graph(self, graph: Record) -> None:
        """A graph of stages."""
        need(whole(graph["graph"], "graph") == len(self.graphs), "a graph is out of order")
        need(self.network, "there are graphs and no network")
        self.graphs.append(Graph(graph, self.network, self.graph_effort))

    def take_job(self, job: Record) -> None:
        """A job: its columns, and of some instances more."""
        j = len(self.arrival)
        need(whole(job["job"], f"job {j}") == j, f"job {j} is out of order")
        need(j < MOST_JOBS, f"there are more than {MOST_JOBS} jobs")
        self.effort.left += STEPS_OF_A_JOB
        self.ids.add(name(job["id"], f"id of job {j}"))
        need(len(self.ids) == j + 1, f"job {j} has the id of another")
        self.gang.append(whole(job["gpus"], f"gang of job {j}", 1))
        self.arrival.append(whole(job["arrival"], f"arrival of job {j}"))
        raw = job["weight"]
        if type(raw) not in (int, str) or raw not in self.weights:
            self.weights[raw] = rational(raw, f"weight of job {j}")
            self.weight_unit = lcm(self.weight_unit, self.weights[raw].denominator)
            fine = self.weight_unit < MOST
            need(fine, "weights have no common denominator of at most 1,000 digits")
        self.weight.append(self.weights[raw])
        self.take_worth(j, job)
        run = job["run"]
        need(
            run.keys() <= self.types.keys(), f"job {j} has a run time on a type that no node is of"
        )
        for ticks in run.values():
            whole(ticks, f"run time of job {j}", 1)
        times = tuple(run.get(kind, 0) for kind in self.types)
        self.times.append(self.known_times.setdefault(times, times))
        counts = bool(self.quotas) and not self.on_cores(j)
        need(("quota" in job) == counts, f"job {j} has a quota that is not there, or none")
        if counts:
            quota = whole(job["quota"], f"quota of job {j}")
            need(quota < len(self.quotas), f"job {j} has a quota that is not there")
            self.quota_of[j] = quota
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
        for ticks in self.times[j] if more.keys() - OF_WHOLE_TIMES else ():
            exact_run(ticks, which)
        if "part" in more:
            part = whole(more["part"], f"part of {which}", 1)
            alone = not more.get("beside") and not more.keys() & {"spread", "widths", "steps"}
            fine = self.gang[j] == 1 and part < WHOLE_GPU and alone
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
                    fine = str(whole(int(other), "sort of a partner")) == other
                    need(fine, f"{which} runs beside {other!r:.80}")
                    if "graph" in more:
                        times[other] = double(ticks, f"speed of {which} beside another")
                        need(times[other] > 0, f"{which} has no speed beside another")
                    else:
                        exact_run(whole(ticks, f"run time of {which}", 1), which)
        need(
            ("graph" in more) == ("work" in more), f"{which} has a graph or work without the other"
        )
        if "graph" in more:
            more["work"] = double(more["work"], f"work of {which}")
            with_graph = {"graph", "work", "profile", "part", "sort", "beside"}
            fine = more.keys() <= with_graph and not any(self.times[j])
            need(fine, f"{which} has a graph and other speeds")
        if self.copies or "steps" in more or "rate" in more:
            whole(more["steps"], f"steps of {which}", 1)
            rate = {kind: rational(r, f"rate of {which}") for kind, r in more["rate"].items()}
            able = rate and all(rate.values()) and rate.keys() <= self.types.keys()
            need(able and self.copies, f"{which} has rates of copies that cannot be")
            fine = more.keys() - {"profile"} == {"steps", "rate"}
            need(fine, f"{which} runs as copies and has other speeds")
            more["rate"] = {self.types[kind]: r for kind, r in rate.items()}
        return more

    def widest(self, j: int) -> int:
        """Most GPUs of a job that may grow."""
        return self.gang[j] + len(self.speeds[self.more[j]["widths"]]) - 1

    def on_cores(self, j: int) -> bool:
        """True if a job runs on cores alone."""
        cores, times = self.types.get(CORES), self.times[j]
        return cores is not None and times[cores] > 0 and sum(map(bool, times)) == 1

    def fewest(self, j: int, width: int) -> int:
        """Fewest nodes that hold so many GPUs, or so many cores for a job on these."""
        cores, which = self.types.get(CORES), self.on_cores(j)
        if which not in self.largest:
            sizes = zip(self.size, self.type_of, strict=True)
            mine = [size for size, kind in sizes if (kind == cores) == which]
            self.largest[which] = list(accumulate(sorted(mine, reverse=True)))
        return bisect_left(self.largest[which], width) + 1

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
        if more is None:
            need(any(times), f"job {j} can run nowhere")
            shortest = min(ticks for ticks in times if ticks)
            return shortest, gang * shortest
        if "steps" in more:
            return self.least_of_copies(more)
        if "graph" in more:
            plain = self.least_of_graph(j, more)
            shortest = self.fastest(j, plain)
            area = gang * shortest
        else:
            need(any(times), f"job {j} can run nowhere")
            plain = min(ticks for ticks in times if ticks)
            area, shortest = self.area_of(j, plain), self.fastest(j, plain)
        for kind, row in more.get("beside", {}).items():
            for other, each in row.items():
                both = (plain, each) if "graph" in more else (each, 1.0)
                ways = list(self.by_width(j, *both))
                shortest = min(shortest, *(t for _, t in ways))
                share = max(Fraction(area, w * t) for w, t in ways)
                key = (kind, more["sort"], int(other))
                self.shares[key] = max(self.shares.get(key, share), share)
        return shortest, area

    def least_of_graph(self, j: int, more: Record) -> int:
        """Ticks of a job with a graph, on one node where it fits or on several where there are."""
        need(self.size, "there are no jobs or no nodes")
        graph, ways = self.graphs[more["graph"]], []
        if self.gang[j] <= min(max(self.size), graph.network["gpus"]):
            ways.append(graph.ticks(more["work"], (tuple(graph.replicas),)))
        if self.gang[j] > 1 and len(self.size) > 1:
            ways.append(graph.spread_ticks(more["work"]))
        need(ways, f"job {j} can run nowhere")
        return min(ways)

    def by_width(self, j: int, ticks: int, speed: float = 1.0) -> Iterator[tuple[int, int]]:
        """Widths that a job may have, and ticks of all of it on so many GPUs under the best of conditions."""
        more = self.more[j]
        speeds = self.speeds[more["widths"]] if "widths" in more else [1.0]
        best = self.best_of[more["profile"]] if "profile" in more else 1.0
        self.effort.spend(len(speeds))
        for width, wider in enumerate(speeds, self.gang[j]):
            yield width, slower(ticks, speed, best, wider)

    def by_any_width(self, j: int) -> Iterable[tuple[int, int]]:
        """Widths of a gang, and ticks of all of it on so many GPUs of the best type under the best of conditions."""
        if j not in self.more or "graph" in self.more[j]:
            return [(self.gang[j], self.shortest[j])]
        return self.by_width(j, min(ticks for ticks in self.times[j] if ticks))

    def least_of_copies(self, more: Record) -> tuple[int, int]:
        """Of a job that runs as copies: on the fastest nodes of all, and on the fastest GPU; at its profile's best."""
        best = Fraction(self.best_of[more["profile"]] if "profile" in more else 1.0)
        self.effort.spend(len(self.alike))
        rates = [(size * more["rate"].get(t, 0), n) for (t, size), n in self.alike.items()]
        fastest, left = Fraction(0), self.copies["most"]
        for rate, nodes in sorted(rates, reverse=True):
            fastest, left = fastest + rate * min(nodes, left), left - min(nodes, left)
        return (
            max(int(more["steps"] / (fastest * best)), 1),
            max(int(more["steps"] / (max(more["rate"].values()) * best)), 1),
        )

    def relaxed(self, *, charged: bool = True) -> LeastWork:
        """Work that the bounds are about; after all jobs.

        A job whose area is more than the cluster does in its shortest time takes longer, for nobody gets more than
        all of the cluster. So it is where a job might hold more GPUs than there are, or is fast beside a sort that
        nobody is of. What is still more than the cluster does, by rounding, does not count.

        Before a job makes any progress it pays for a start, and holds its gang meanwhile. Let it be served then as at
        its best speed: it asks for no more than it holds if for its area over its time, and at most for its gang. Two
        that share GPUs may pay at once, and copies pay otherwise: theirs are left out.
        """
        gain = Fraction(1)
        for (kind, one, other), share in self.shares.items():
            gain = max(gain, share + self.shares.get((kind, other, one), -share))
        above = Fraction(ceil(gain * PRICE_UNIT), PRICE_UNIT)
        parts = {j: more["part"] for j, more in self.more.items() if "part" in more}
        scale = above.denominator * (WHOLE_GPU if parts else 1)
        area, shortest = self.area, self.shortest
        if scale > 1:
            area = [each * scale for each in area]
        for j, part in parts.items():
            area[j] = self.area[j] * part * scale // WHOLE_GPU
        gpus = self.gpus
        gangs = not (parts or self.shares or self.copies)
        capacity = int(gpus * scale * above)
        shortest = [max(p, a // capacity) for a, p in zip(area, shortest, strict=True)]
        start = self.counted_start() if charged else 0
        if start:
            held = [gang * scale for gang in self.gang]
            for j, part in parts.items():
                held[j] = part * scale // WHOLE_GPU
            rows = zip(area, shortest, held, strict=True)
            area = [min(a * (p + start) // p, g * (p + start)) for a, p, g in rows]
            shortest = [p + start for p in shortest]
        area = [min(a, capacity * p) for a, p in zip(area, shortest, strict=True)]
        weight, columns = self.weight, (shortest, area, self.gang)
        until = self.header.get("stopped")
        return LeastWork(self.arrival, weight, *columns, gpus, capacity, scale, gangs, until)

    def counted_start(self) -> int:
        """Ticks of a start that bounds count."""
        return 0 if self.shares or self.copies else int(self.header["start"])

    def rows(self) -> list[int]:
        """Jobs that the cost counts: all or those of the window, of these who arrived before it was stopped."""
        every, header = range(len(self.arrival)), self.header
        first, last = header.get("window", (0, len(every)))
        need(last <= len(every), "the window has jobs that there are not")
        counted = list(every[first:last])
        if "stopped" in header:
            counted = [j for j in counted if self.arrival[j] < header["stopped"]]
            need(counted, "it was stopped before a job that counts arrived")
        return counted

    def counted(self) -> CertificateInstance:
        """Jobs that count, as bounds know them. Others may be their partners, and else only stand in their way."""
        if not self.header.keys() & {"window", "stopped"}:
            return self
        rows, fewer = self.rows(), copy(self)
        fewer.arrival, fewer.gang = [self.arrival[j] for j in rows], [self.gang[j] for j in rows]
        fewer.weight, fewer.times = [self.weight[j] for j in rows], [self.times[j] for j in rows]
        fewer.shortest, fewer.area = [self.shortest[j] for j in rows], [self.area[j] for j in rows]
        fewer.more = {k: self.more[j] for k, j in enumerate(rows) if j in self.more}
        fewer.worth = [self.worth[j] for j in rows] if self.worth else []
        fewer.deadline = [self.deadline[j] for j in rows] if self.deadline else []
        return fewer

    def at_prices(self, jobs: LeastWork, prices: list[Any]) -> LeastWork:
        """Work on one machine, at prices of GPUs by type in order of appearance: LB-price."""
        whole_prices = [whole(price, "price", 1) for price in prices]
        area = [self.least_rent(jobs, j, whole_prices, 0) for j in range(len(jobs.area))]
        # Where a job pays for its start is its own choice, and may be where GPUs cost least.
        shortest = self.relaxed(charged=False).shortest
        return jobs._replace(area=area, shortest=shortest, capacity=self.rent(whole_prices))

    def span_at_prices(self, jobs: LeastWork, prices: list[Any]) -> Fraction:
        """Lower bound on the last end, at prices of GPUs by type and of each job's own time: LB-span."""
        by_type, own = rows_of_prices(prices)
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
            whose = f"a job is at most {self.copies['most']} copies on whole nodes"
            return f"schedules{self.where()} in which {whose}{self.restarts()}{self.what_counts()}"
        more = {field for each in self.more.values() for field in each}
        if "beside" in more:
            share = "at most two jobs share a GPU"
            if "part" in more:
                share += " or no more than all of it is held in parts"
        elif "part" in more:
            share = "no GPU is held by more than all of it"
        else:
            share = "no two jobs share a GPU"
        grow = " and gangs may grow" if "widths" in more else ""
        few = ", on as few nodes as gangs fit on" if "placement" in self.header else ""
        counts = self.what_counts()
        rounds = self.in_rounds()
        types = (
            ", no gang uses a GPU type with fewer GPUs than it" if "types" in self.header else ""
        )
        which = f"{share}{grow}{types}{self.starts()}{self.restarts()}{counts}{few}{rounds}"
        what = "non-preemptive" if "starts" in self.header else "preemptive"
        return f"{what} schedules{self.where()} in which {which}"

    def starts(self) -> str:
        """Words for what a start takes, where bounds count it."""
        ticks = self.counted_start()
        return f", a start takes {ticks / TICKS_PER_S!r} s" if ticks else ""

    def restarts(self) -> str:
        """Words for jobs that lose their work when preempted."""
        may = "preemption" in self.header and "starts" not in self.header
        return ", jobs restart when preempted" if may else ""

    def where(self) -> str:
        """Nodes and quotas that schedules are on and within, where they are of a kind."""
        fail = " on nodes that fail" if self.checkpoints else ""
        return fail + (" within quotas of tenants" if self.quotas else "")

    def in_rounds(self) -> str:
        """Length of the rounds that runs are in, where they are."""
        if "rounds" not in self.header:
            return ""
        return f", in whole rounds of {self.header['round'] / TICKS_PER_S!r} s"

    def what_counts(self) -> str:
        """Jobs or time that the cost is of, where it is not of all."""
        header, words = self.header, ""
        if "window" in header:
            first, last = header["window"]
            words = f", counting jobs {first} to {last - 1} alone"
        if "stopped" in header:
            words += f", counting time until {header['stopped'] / TICKS_PER_S!r} s alone"
        return words


def exact_run(ticks: int, which: str) -> None:
    """A run time that is divided by speeds in doubles is one: what takes no less at a slower speed is no rounding."""
    need(ticks <= 2**53, f"run time of {which} is {ticks}, and no double up to 2^53")


TAKE = {
    "header": CertificateInstance.take_header,
    "copies": CertificateInstance.take_copies,
    "checkpoints": CertificateInstance.take_checkpoints,
    "network": CertificateInstance.take_network,
    "node": CertificateInstance.take_node,
    "fault": CertificateInstance.take_fault,
    "quota": CertificateInstance.take_quota,
    "widths": CertificateInstance.take_widths,
    "profile": CertificateInstance.take_profile,
    "graph": CertificateInstance.take_graph,
    "job": CertificateInstance.take_job,
}
