"""Jobs per CPU-second, verification included, of policies with an index, on a crowded cluster.

Run: ``python benchmarks/index_policies.py [--philly FILE] [--peers FOLDER] [--jobs 82247]``. Without a trace
the jobs are generated: Gavel's law at load 0.95, on clusters of the same size. ``--peers`` is a folder of
recorded runs of public simulators, JSON with their CPU times, beside which the same jobs are run here under
the preset of that simulator. Loading compiled code, or compiling it the first time, is reported apart.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.execution.kernel.run import run_fastest as run
from shadowprice.solvers.asrpt.asrpt import Asrpt
from shadowprice.solvers.policy import Policy
from shadowprice.solvers.registry import placement, policy

TARGETS = {
    "fifo": 250_000,
    "sjf": 250_000,
    "srtf": 250_000,
    "srsf": 250_000,
    "server-filling-srpt": 250_000,
    "las": 150_000,
    "las2d": 150_000,
    "gittins2d": 150_000,
    "easy": 100_000,
    "asrpt": 50_000,
    "asrpt, forest": 15_000,
}
SETTINGS = (("75x8", "count"), ("64x8", "consolidate"))
PRESETS = ("tiresias", "helios", "pai")


class Cost(NamedTuple):
    """CPU time of a run and of its verification [s]."""

    engine_s: float
    verifier_s: float

    @property
    def both_s(self) -> float:
        return self.engine_s + self.verifier_s


def policy_of(name: str) -> Policy:
    """Policy by name, with a predictor behind a comma."""
    name, _, predictor = name.partition(", ")
    return Asrpt(predictor=predictor) if predictor else policy(name)


def measure(instance: sp.Instance, name: str, where: str) -> Cost:
    """Cost of a policy's run, the least of two."""
    costs = []
    for _ in range(2):
        result = run(instance, policy_of(name), placement=placement(where), least_jobs=0)
        began = time.process_time()
        sp.verify(instance, result.schedule)
        costs.append(Cost(result.cpu_s, time.process_time() - began))
    return min(costs, key=lambda cost: cost.both_s)


def print_targets(jobs: sp.Workload) -> None:
    """A line for each cluster and policy."""
    print("cluster  placement    policy               jobs/CPU-s    target  of it  verification")
    for cluster, where in SETTINGS:
        instance, _ = sp.Instance.feasible(sp.Cluster.parse(cluster), jobs)
        for name, target in TARGETS.items():
            cost = measure(instance, name, where)
            speed = len(instance.workload) / cost.both_s
            print(
                f"{cluster:8} {where:12} {name:19} {speed:11,.0f} {target:9,} {speed / target:5.1f}x "
                f"{cost.verifier_s / cost.both_s:12.0%}",
                flush=True,
            )


def print_peers(folder: Path) -> None:
    """A line for each recorded run that a preset repeats."""
    print("recorded run                               theirs      ours  jobs/CPU-s, and ratio")
    for preset in PRESETS:
        for path in sorted(folder.glob(f"{preset}_W*.json")):
            recorded = json.loads(path.read_text())
            for name, their in recorded["runs"].items():
                if not their.get("cpu_s"):
                    continue
                ours = repeat(recorded, preset, name)
                if ours is not None:
                    count = len(recorded["jobs"])
                    theirs, here = count / their["cpu_s"], count / ours
                    label = f"{path.stem} {name}"
                    print(f"{label:38} {theirs:10,.1f} {here:9,.0f} {here / theirs:9,.0f}x")


def repeat(recorded: dict[str, Any], preset: str, run_name: str) -> float | None:
    """CPU time of the same run here [s]; None if the preset does not have it."""
    name, _, where = run_name.removeprefix(f"{preset}/").replace("/", "@").partition("@")
    ids, gpus, submit, duration = zip(*recorded["jobs"], strict=True)
    jobs = sp.Workload.from_columns(
        id=[str(each) for each in ids], gpus=gpus, arrival_s=submit, work=duration
    )
    size = recorded["cluster"]
    nodes = size.get("nodes", size.get("servers", 1))
    cluster = f"{nodes}x{size['gpus'] // nodes}"
    options = sp.RunOptions(preset=preset, placement=where or None)
    try:
        outcome = sp.simulate(jobs, cluster, name, options)
    except InputError:
        return None
    return outcome.cpu_s + outcome.verify_cpu_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--philly", type=Path, help="philly_flat.csv, plain or compressed")
    parser.add_argument("--peers", type=Path, help="folder of recorded runs")
    parser.add_argument("--jobs", type=int, default=82_247, help="first jobs of the trace")
    arguments = parser.parse_args()
    if arguments.philly:
        jobs = sp.load(arguments.philly)
        jobs = jobs.select(np.arange(min(arguments.jobs, len(jobs))))
    else:
        jobs = sp.generate("gavel", jobs=arguments.jobs, seed=0, load=0.95, gpus_total=600)
    began = time.process_time()
    measure(sp.Instance(sp.Cluster.parse("8x8"), jobs.select(np.arange(1))), "fifo", "count")
    print(f"loading compiled code: {time.process_time() - began:.2f} CPU-s; {len(jobs):,} jobs")
    print_targets(jobs)
    if arguments.peers:
        print_peers(arguments.peers)


if __name__ == "__main__":
    main()
