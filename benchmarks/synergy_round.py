"""How long Synergy takes for a round: TUNE on many servers, and both stages of OPT.

Run: ``python benchmarks/synergy_round.py [--repeat 5]``. Prints CPU seconds. ``decision`` is the whole first
decision of ``synergy-tune:srtf`` in a run: demands of jobs never seen, order, TUNE, moves. ``alike``: ten families of
profiles; ``distinct``: a profile of its own for every job, a grid of 10 CPU x 8 memory points. Gangs
of 1, 2, 4, 8 GPUs (.7, .1, .15, .05) until the GPUs are used up, then of 1.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.sensitivity import Profile, Sensitivity
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy
from shadowprice.solvers.synergy.opt import choose, place_chosen
from shadowprice.solvers.synergy.servers import Demands, ResourceRequest, Servers
from shadowprice.solvers.synergy.tune import Tune

SHARE = (3.0, 62.5)
GPUS = 8
FAMILIES = 10


def profile(rng: np.random.Generator) -> Profile:
    """Linear up to a demand in each resource, 1 with the share."""
    cpus = np.arange(1, 11, dtype=np.float64) * 1.5
    memory = np.arange(1, 9, dtype=np.float64) * 25.0 - 12.5
    need = rng.uniform(0.5, 12), rng.uniform(10, 180)
    speed = np.minimum(
        np.minimum(cpus / need[0], 1.0)[:, None], np.minimum(memory / need[1], 1.0)[None, :]
    ) ** rng.uniform(0.3, 1.0)
    plain = Profile(cpus, memory, speed)
    return Profile(cpus, memory, np.round(speed / plain.at(*SHARE), 3))


def jobs_on(
    jobs: int, servers: int, seed: int, *, distinct: bool
) -> tuple[list[ResourceRequest], Demands]:
    """Jobs that fill the servers' GPUs, and their best-case demands."""
    rng = np.random.default_rng(seed)
    profiles = tuple(profile(rng) for _ in range(jobs if distinct else FAMILIES))
    gpus = rng.choice([1, 2, 4, 8], jobs, p=[0.7, 0.1, 0.15, 0.05])
    while gpus.sum() > servers * GPUS:
        gpus[gpus.argmax()] = 1
    demands = Demands(
        Sensitivity(profiles, np.arange(jobs) % len(profiles)),
        np.full(servers, GPUS, dtype=np.int64),
        SHARE,
    )
    return [demands.ask(job, int(g)) for job, g in enumerate(gpus)], demands


def tune_s(asks: list[ResourceRequest], demands: Demands) -> float:
    """CPU seconds of a round of TUNE."""
    began = time.process_time()
    Tune().place(asks, Servers(demands.size, demands.share), demands)
    return time.process_time() - began


def decision_s(asks: list[ResourceRequest], demands: Demands) -> float:
    """CPU seconds of the first decision of a run, all jobs there."""
    rng = np.random.default_rng(0)
    workload = Workload.from_columns(
        arrival_s=np.zeros(len(asks)),
        gpus=[ask.gpus for ask in asks],
        work=rng.integers(1, 10, len(asks)) * 60.0,
    )
    cluster = Cluster(
        (Node(GPUS, cpus=GPUS * SHARE[0], memory_gb=GPUS * SHARE[1]),) * len(demands.size)
    )
    profiles = tuple(demands.profile_of(ask.job) for ask in asks)
    sensitivity = Sensitivity(profiles, np.arange(len(asks)))
    instance = Instance(cluster, workload, sensitivity=sensitivity)
    return first_decisions_s(instance, policy("synergy-tune:srtf"))[0]


def main() -> None:
    """Print a line a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    for distinct in (False, True):
        kind = "distinct" if distinct else "alike"
        taken = [tune_s(*jobs_on(1000, 128, seed, distinct=distinct)) for seed in range(repeat)]
        print(
            f"TUNE {kind:8} 1000 jobs 128 servers: median {1e3 * np.median(taken):6.1f} ms, "
            f"most {1e3 * max(taken):6.1f} ms; decision "
            f"{1e3 * decision_s(*jobs_on(1000, 128, 0, distinct=distinct)):6.1f} ms",
            flush=True,
        )
    for distinct in (False, True):
        kind = "distinct" if distinct else "alike"
        for seed in range(repeat):
            asks, demands = jobs_on(512, 64, seed, distinct=distinct)
            servers = Servers(demands.size, demands.share)
            began = time.process_time()
            chosen = choose(asks, servers, demands)
            first_s = time.process_time() - began
            left = place_chosen(chosen.asks, servers)
            second_s = time.process_time() - began - first_s
            print(
                f"OPT  {kind:8}  512 jobs  64 servers: stage 1 {first_s:5.2f} s, gap {chosen.gap:.1e}, "
                f"{chosen.kept} of {chosen.points} points kept; stage 2 {second_s:5.2f} s, "
                f"{len(left)} jobs to round (limit {3 * len(demands.size)})",
                flush=True,
            )


if __name__ == "__main__":
    main()
