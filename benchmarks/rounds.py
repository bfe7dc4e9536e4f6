"""Decisions per CPU-second of policies that decide by an optimisation in every round, and their parts.

Run: ``python benchmarks/rounds.py [--throughputs FILE] [--jobs 2000] [--decisions 100]``. So many jobs
are there at time 0, on 1,024 GPUs, and more come at the rate at which these can serve them; the mean number
of jobs alive is shown. FILE is Gavel's simulation_throughputs.json; without it rates are made up. Jobs of one
model and gang have equal rates, of which solvers make one job; ``all different`` moves every rate by up to
10 %. Every function is charged with its own CPU time, less that of the functions below:

============  =================================================================================
solver        HiGHS, the block-arrow method, Hadar's dual subroutine, as often as they are asked
folding       scaling, folding and sifting of the programme: what makes it small for a solver
gate          the examination of the answer, in all rows of the programme as it is
front end     the jobs as arrays, the model, and its compilation
rounds        who runs in the round, and on which nodes
engine        everything else: events, checks of the decision, starting and stopping
============  =================================================================================

The last column is the share of solver and folding; the target is above half.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hadar_decisions import made_up, three_types

import shadowprice as sp
from shadowprice.execution.engine import Engine, Rounds, run
from shadowprice.solvers.gavel import gavel
from shadowprice.solvers.gavel.online import Snapshots
from shadowprice.solvers.hadar import hadar
from shadowprice.solvers.policy import Decision, Policy, State
from shadowprice.solvers.programs import linear_gate
from shadowprice.solvers.programs.compile import CompiledModel
from shadowprice.solvers.programs.structure.max_min import MaxMin
from shadowprice.solvers.registry import policy

TYPED, ALIKE = "86x4:v100,85x4:p100,85x4:k80", "128x8"
ROUND_S = 360.0
TARGET = 0.5
KINDS = (
    ("by model", TYPED, 0.0),
    ("all different", TYPED, 0.1),
    ("identical GPUs", ALIKE, 0.0),
)
"""Names of the kinds of jobs, clusters, and how far rates are moved."""
PARTS = ("solver", "folding", "gate", "front end", "rounds", "engine")
POLICIES = (
    "hadar",
    "gavel:max_min_fairness:aware=true",
    "gavel:finish_time_fairness:aware=true",
    "gavel:max_sum_throughput:aware=true",
)
FUNCTIONS: tuple[tuple[str, Any, str], ...] = (
    ("set-up", Engine, "__init__"),
    ("front end", hadar.Hadar, "decide"),
    ("solver", hadar, "dual_subroutine"),
    ("rounds", hadar, "assign_nodes"),
    ("rounds", hadar, "start_exactly"),
    ("rounds", gavel.Gavel, "decide"),
    ("front end", Snapshots, "problem"),
    ("gate", CompiledModel, "solve"),
    ("solver", linear_gate.Highs, "solve"),
    ("solver", MaxMin, "solve"),
    ("folding", linear_gate, "recognise"),
    ("folding", linear_gate, "fold"),
    ("folding", linear_gate, "first_columns"),
    ("folding", linear_gate, "sift"),
    ("folding", linear_gate.ScaledHighs, "scaled"),
)
"""Functions that are measured, by part; what none of them claims inside a run is the engine's."""


class PartTimes:
    """CPU time of parts [s], each without that of the parts which it calls."""

    def __init__(self) -> None:
        self.cpu_s: dict[str, float] = defaultdict(float)
        self._below_s = [0.0]

    def measured(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, which charges its part."""

        @wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            self._below_s.append(0.0)
            began = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                took_s = time.process_time() - began
                self.cpu_s[part] += took_s - self._below_s.pop()
                self._below_s[-1] += took_s

        return call

    @contextmanager
    def installed(self, functions: Iterable[tuple[str, Any, str]]) -> Iterator[None]:
        """Measure functions, given by part, owner and name."""
        before = [(owner, name, getattr(owner, name)) for _, owner, name in functions]
        for (part, owner, name), (_, _, function) in zip(functions, before, strict=True):
            setattr(owner, name, self.measured(part, function))
        try:
            yield
        finally:
            for owner, name, function in before:
                setattr(owner, name, function)


class Counted:
    """A policy that decides as another one, a number of times; counts the jobs that are alive."""

    def __init__(self, policy: Policy, decisions: int) -> None:
        self.policy, self.decisions = policy, decisions
        self.alive: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)

    def decide(self, state: State) -> Decision:
        self.alive.append(len(state.waiting) + len(state.running))
        return self.policy.decide(state)

    def begins(self, step: str) -> None:
        """Nothing to take note of."""

    def reaches(self, done: int, total: int) -> None:
        """Nothing to take note of."""

    def stops(self, done: int, total: int) -> bool:
        return len(self.alive) >= self.decisions


class Measured(NamedTuple):
    """Decisions, mean number of jobs alive, and CPU time by part [s]."""

    decisions: int
    alive: float
    cpu_s: dict[str, float]

    def share(self, *parts: str) -> float:
        """Share of some parts in the CPU time."""
        return sum(self.cpu_s[part] for part in parts) / sum(self.cpu_s.values())


def steady(
    jobs: int, decisions: int, rates: sp.Throughputs, cluster: str, noise: float
) -> sp.Instance:
    """Jobs at time 0, then as many a round as the cluster completes; rates moved by up to ``noise``."""
    drawn = sp.generate("hadar", jobs=jobs + 60 * decisions, throughputs=rates)
    rng = np.random.default_rng(0)
    gpus = sp.Cluster.parse(cluster)
    shape = (len(drawn), len(rates.gpu_types))
    throughput = drawn.throughput * rng.uniform(1 - noise, 1 + noise, shape)
    best_s = drawn.work / throughput.max(axis=1)
    gap_s = float((drawn.gpus * best_s).mean()) / gpus.total_gpus
    arrival_s = np.maximum(np.arange(len(drawn)) - jobs + 1, 0) * gap_s
    typed = {} if cluster == ALIKE else {"throughput": throughput, "gpu_types": rates.gpu_types}
    return sp.Instance(
        gpus,
        sp.Workload.from_columns(
            arrival_s=arrival_s,
            gpus=drawn.gpus,
            work=drawn.work if typed else best_s,
            model=drawn.model,
            **typed,
        ),
    )


def measure(instance: sp.Instance, name: str, decisions: int) -> Measured:
    """The first decisions of a policy, one a round."""
    times, chosen = PartTimes(), policy(name)
    counted = Counted(chosen, decisions)
    own = ()
    if isinstance(chosen, gavel.Gavel):
        own = (("front end", type(chosen.policy()), "allocate"),)
    with times.installed((*FUNCTIONS, *own)):
        whole = times.measured("engine", run)
        whole(instance, counted, rounds=Rounds(ROUND_S), watch=counted)
    # The table of all jobs is made once, before the first decision.
    cpu_s = {part: times.cpu_s[part] for part in PARTS}
    return Measured(len(counted.alive), float(np.mean(counted.alive)), cpu_s)


def print_rounds(jobs: int, decisions: int, rates: sp.Throughputs) -> None:
    """A line for each policy and kind of jobs."""
    columns = " ".join(f"{part:>9}" for part in PARTS)
    print(f"{'policy':32} {'jobs':14} alive  decisions/CPU-s {columns}  solver and folding")
    for name in POLICIES:
        for kind, cluster, noise in KINDS:
            found = measure(steady(jobs, decisions, rates, cluster, noise), name, decisions)
            speed = found.decisions / sum(found.cpu_s.values())
            parts = " ".join(f"{found.share(part):9.1%}" for part in PARTS)
            share = found.share("solver", "folding")
            verdict = "met" if share > TARGET else "missed"
            print(
                f"{name:32} {kind:14} {found.alive:5,.0f} {speed:16,.1f} {parts} {share:8.0%} {verdict}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--throughputs", type=Path, help="Gavel's throughput table")
    parser.add_argument("--jobs", type=int, default=2000, help="jobs at time 0")
    parser.add_argument("--decisions", type=int, default=100, help="rounds measured")
    given = parser.parse_args()
    rates = three_types(sp.load_throughputs(given.throughputs)) if given.throughputs else made_up()
    print_rounds(given.jobs, given.decisions, rates)


if __name__ == "__main__":
    main()
