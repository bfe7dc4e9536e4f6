"""Speeds of runs: job graphs, and ticks at a product of speeds."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, lcm
from typing import Any

from .form import MOST, TICKS_PER_S, Record, need, rational, whole
from .limits import MOST_GPUS, MOST_LINKS, MOST_STAGES, Effort


def slower(ticks: int, *speeds: float) -> int:
    """Ticks of a whole job at the product of some speeds, in doubles, rounded up."""
    speed = 1.0
    for each in speeds:
        speed *= each
    if speed == 1.0:
        return ticks
    need(
        ticks <= 2**53, f"a run time of {ticks} is divided by a speed, and is no double up to 2^53"
    )
    return max(ceil(ticks / speed), 1)


class Graph:
    """Stages of a job, of which each GPU has a replica of one."""

    def __init__(self, record: Record, network: Record, effort: Effort) -> None:
        self.network, q = network, whole(record["microbatches"], "microbatches")
        self.effort, self.common = effort, 1
        stages, links = (len(record[field]) for field in ("stages", "links"))
        need(stages <= MOST_STAGES, f"a graph has more than {MOST_STAGES} stages")
        need(links <= MOST_LINKS, f"a graph has more than {MOST_LINKS} links")
        self.size = stages + links
        self.replicas: list[int] = []
        self.times: list[tuple[Fraction, Fraction]] = []  # of computing, and bytes of a ring
        for replicas, *rest in record["stages"]:
            forward, backward, size = (self.number(each, "a stage") for each in rest)
            self.replicas.append(whole(replicas, "replicas", 1))
            need(sum(self.replicas) <= MOST_GPUS, f"a graph is on more than {MOST_GPUS} GPUs")
            self.times.append((forward + backward, Fraction(2 * (replicas - 1), replicas) * size))
        self.traffic: list[list[tuple[int, Fraction]]] = [[] for _ in self.times]
        depth = self.link(record["links"])
        self.factor = Fraction(q + depth - 1, q) if q else Fraction(1)
        self.known: dict[Any, float] = {}

    def number(self, value: Any, what: str) -> Fraction:
        """A number of the graph, all of which have a denominator in common."""
        exact = rational(value, what)
        self.common = lcm(self.common, exact.denominator)
        need(
            self.common < MOST,
            "a graph's numbers have no common denominator of at most 1,000 digits",
        )
        return exact

    def link(self, links: list[list[Any]]) -> int:
        """Take the links; returns the stages on the longest path of those that are no exchanges."""
        after: list[set[int]] = [set() for _ in self.times]
        for source, target, sent, exchange in links:
            ends = [whole(end, "stage of a link") for end in (source, target)]
            need(source != target and max(ends) < len(after), "a link is of no stages")
            need(type(exchange) is bool, "a link is neither an exchange nor none")
            each = self.number(sent, "bytes")
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
            self.effort.spend(10 * self.size * (len(nodes) + 1))
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
        for s, count in enumerate(map(sum, zip(*nodes, strict=True))):
            say = f"there are {count} replicas of stage {s}, not {self.replicas[s]}"
            need(count == self.replicas[s], say)
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
