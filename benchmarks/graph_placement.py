"""Placements of job graphs: time of Heavy-Edge, and what greedy rules lose against the best.

Random graphs: a number of stages from 1 to 16, uniform; replicas spread over them at random; a
chain of links and each other pair with probability p; bytes log-uniform over two decades. Times
are CPU times, one core.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np

from shadowprice.instances.graphs.iteration_time import Network, iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage, StageMapping
from shadowprice.models.asrpt import cut_bytes
from shadowprice.solvers.graph_placement.protocol import GraphPlacement, graph_placement

NETWORK = Network(300e9, 25e9, 8)
GREEDY = ("heavy-edge", "heavy-edge-swaps", "communities", "first-fit")


def large(stages: int, replicas: int) -> JobGraph:
    """A pipeline with as many replicas in every stage."""
    own = tuple(Stage(f"s{k}", replicas, 0.01, 0.02, 1e9) for k in range(stages))
    links = tuple(Link(k, k + 1, 1e8 * (1 + k % 3)) for k in range(stages - 1))
    return JobGraph(f"{stages} stages", own, links)


def random_graph(rng: np.random.Generator, replicas: int, density: float) -> JobGraph:
    count = int(rng.integers(1, replicas + 1))
    k = 1 + rng.multinomial(replicas - count, np.full(count, 1 / count))

    def amount() -> float:
        return float(10 ** rng.uniform(7, 9))

    stages = tuple(Stage(f"s{s}", int(k[s]), 0.01, 0.02, amount()) for s in range(count))
    pairs = itertools.combinations(range(count), 2)
    links = [(s, t) for s, t in pairs if t == s + 1 or rng.random() < density]
    return JobGraph("random", stages, tuple(Link(s, t, amount()) for s, t in links))


def timed(
    placement: GraphPlacement, graph: JobGraph, free: list[int]
) -> tuple[float, StageMapping | None]:
    began = time.process_time()
    mapping = placement.place(graph, free, NETWORK)
    return time.process_time() - began, mapping


def speed() -> None:
    print("CPU time of one placement, median of 9 [ms]")
    for stages, replicas in ((1, 1024), (4, 256), (16, 64), (64, 16), (256, 4), (1024, 1)):
        graph, free = large(stages, replicas), [8] * 128
        took = [timed(graph_placement("heavy-edge"), graph, free)[0] for _ in range(9)]
        print(
            f"  1,024 GPUs, 128 nodes of 8, {stages:>4} stages: {1e3 * statistics.median(took):7.2f}"
        )
    for gpus, nodes in ((8, 512), (16, 512), (64, 512)):
        graph = large(4, gpus // 4)
        took = [timed(graph_placement("heavy-edge"), graph, [8] * nodes)[0] for _ in range(99)]
        print(f"  {gpus} GPUs, {nodes} nodes of 8, 4 stages: {1e3 * statistics.median(took):.3f}")


Value = Callable[[JobGraph, StageMapping], float]


def quality(
    what: str, exact: str, value: Value, graphs: list[JobGraph], frees: list[list[int]]
) -> None:
    ratios: dict[str, list[float]] = {name: [] for name in GREEDY}
    took = []
    for graph, free in zip(graphs, frees, strict=True):
        seconds, best = timed(graph_placement(exact), graph, free)
        took.append(seconds)
        for name in GREEDY:
            mapping = graph_placement(name).place(graph, free, NETWORK)
            if best is None or mapping is None:
                raise SystemExit(f"{graph} does not fit {free}")
            least = value(graph, best)
            ratios[name].append(value(graph, mapping) / least if least else 1.0)
    print(
        f"{what}, over the least, {len(graphs)} graphs; exact in {statistics.mean(took):.2f} s "
        f"on average, {max(took):.2f} s at most"
    )
    for name, found in ratios.items():
        print(
            f"  {name:<16} mean {statistics.mean(found):.4f}, median {statistics.median(found):.4f}, "
            f"95 % {np.quantile(found, 0.95):.3f}, worst {max(found):.3f}, "
            f"best possible in {np.mean(np.array(found) < 1 + 1e-6):.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=60, help="random graphs of each kind")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    speed()
    for density in (0.1, 0.5):
        rng = np.random.default_rng(arguments.seed)
        sizes = rng.integers(2, 17, arguments.graphs).tolist()
        graphs = [random_graph(rng, size, density) for size in sizes]
        # Four nodes of 4 GPUs, some of them taken, but enough free and not all on one node.
        frees = []
        for size in sizes:
            free = [4, 4, 4, 4]
            for _ in range(int(rng.integers(0, 17 - size))):
                free[rng.choice(np.flatnonzero(free))] -= 1
            frees.append(free)
        print(f"\n2 to 16 replicas on 4 nodes of 4 GPUs, other links with probability {density}")
        quality("bytes cut", "exact-cut", cut_bytes, graphs, frees)
        quality("iteration", "exact", lambda g, m: iteration_s(g, m, NETWORK), graphs, frees)


if __name__ == "__main__":
    main()
