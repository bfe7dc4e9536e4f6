"""Many short runs of real jobs, each with a few faults, all drawn from one seed."""

from __future__ import annotations

import os
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.cluster_faults import RAY_KINDS, SLURM_KINDS
from support.driver_process import wait_until
from support.fault_campaign import Campaign, Outcome, run_campaign
from support.fault_kinds import KINDS
from support.ray_cluster import running_cluster
from support.slurm_cluster import NODES, slurm_cluster

HOSTS = ("local", "ray", "slurm")
POLICIES = ("las:quantum_s=1.5", "las2d:thresholds_gpu_s=3", "srtf", "fifo")
WITHIN_S = 240.0
"""A run that takes longer hangs."""
_OF_HOST = {"local": {}, "ray": RAY_KINDS, "slurm": SLURM_KINDS}


def drawn(seed: int, number: int, host: str, *, mounted: bool) -> Campaign:
    """One run: policy, jobs, rounds and one to three faults."""
    draw = random.Random(f"{seed} {number}")
    table = KINDS | _OF_HOST[host]
    kinds = [kind for kind in table if mounted or kind != "full disk"]
    faults = draw.choice([1, 1, 2, 2, 3])
    weights = [table[kind][1] for kind in kinds]
    chosen = sorted(set(draw.choices(kinds, weights, k=faults)))
    return Campaign(
        jobs=draw.randint(2, 4),
        faults=len(chosen),
        seed=draw.randrange(10**6),
        iterations=150,
        slots=3,
        round_s=draw.choice([1.0, 2.0]),
        every_s=0.8,
        policy=draw.choice(POLICIES),
        mounted=mounted,
        kinds=tuple(chosen),
        hang_s=3.0,
        grace_s=2.0,
        ttl_s=5.0,
    )


@dataclass
class RunResult:
    """One run of a series; ``broken`` says which promise was, empty if none."""

    number: int
    campaign: Campaign
    outcome: Outcome
    broken: str = ""

    def line(self) -> str:
        """What was done to it, and what it cost."""
        what, counts = self.outcome, self.outcome.counts
        head = f"{self.number:4} {self.campaign.policy:26} {self.campaign.jobs} jobs"
        faults = ", ".join(what.faults) or "no fault"
        if what.unthrown:
            faults += f" (not thrown: {', '.join(what.unthrown)})"
        if self.broken:
            kinds = ", ".join(self.campaign.kinds)
            return f"{head}  {what.wall_s:5.1f} s  BROKEN by {kinds}: {self.broken}"
        lost = max(self.campaign.allowed_loss.values())
        return (
            f"{head}  {what.wall_s:5.1f} s  {counts['leases']:2} leases  "
            f"lost {counts['most_lost']:3} steps at once, allowed {lost}: {faults}"
        )


@dataclass
class Series:
    """What all runs came to."""

    results: list[RunResult] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def broken(self) -> list[RunResult]:
        return [result for result in self.results if result.broken]

    def faults(self) -> Counter[str]:
        """How often each fault was thrown."""
        return sum((result.outcome.faults for result in self.results), Counter[str]())

    def total(self, count: str) -> int:
        """Sum of a count of the verifier over all runs that broke no promise."""
        return sum(result.outcome.counts.get(count, 0) for result in self.results)

    def most_lost_s(self) -> float:
        """Most time of work lost at once, against the length of a round."""
        rounds = [
            result.outcome.counts.get("most_lost", 0)
            * result.campaign.step_ms
            / 1e3
            / result.campaign.round_s
            for result in self.results
        ]
        return max(rounds, default=0.0)


def run_one(
    seed: int,
    number: int,
    host: str,
    folder: Path,
    mounted: bool,
    hosts: str = "",
    cluster: Any = None,
) -> RunResult:
    """One run of a series, in a folder that is removed unless a promise was broken."""
    campaign = drawn(seed, number, host, mounted=mounted)
    if hosts:
        campaign = replace(campaign, hosts=hosts)
    outcome, broken = Outcome(), ""
    began_s = time.monotonic()
    with TemporaryDirectory(dir=folder, prefix=f"run-{number}-") as place:
        try:
            outcome = run_campaign(campaign, Path(place), WITHIN_S, cluster=cluster)
        except Exception as error:  # whatever it is, the other runs are told of
            broken = f"{type(error).__name__}: {error}"
            broken += "".join(traceback.format_tb(error.__traceback__)[-2:])
    outcome.wall_s = outcome.wall_s or time.monotonic() - began_s
    return RunResult(number, campaign, outcome, broken)


def run_series(
    seed: int,
    numbers: range,
    host: str,
    folder: Path,
    *,
    mounted: bool,
    parallel: int,
    tell: Callable[[RunResult], None],
) -> Series:
    """All runs of a series; on a cluster one after another, since each takes all of its devices."""
    series, began_s = Series(), time.monotonic()

    def keep(result: RunResult) -> None:
        series.results.append(result)
        series.wall_s = time.monotonic() - began_s
        tell(result)

    if host == "local":
        with ProcessPoolExecutor(parallel, get_context("spawn")) as pool:
            waiting = [pool.submit(run_one, seed, k, host, folder, mounted) for k in numbers]
            for future in waiting:
                keep(future.result())
        return series
    with ExitStack() as stack:
        hosts, cluster = _cluster(host, folder, stack)
        for k in numbers:
            keep(run_one(seed, k, host, folder, mounted, hosts, cluster))
            _mend(host, cluster)
    return series


def _cluster(host: str, folder: Path, stack: ExitStack) -> tuple[str, Any]:
    """A cluster for all runs, and what ``--hosts`` is on it."""
    if host == "ray":
        cluster = stack.enter_context(running_cluster())
        return f"ray:{cluster.address}", cluster
    root = folder / "slurm"
    root.mkdir()
    slurm = stack.enter_context(slurm_cluster(root))
    stack.enter_context(_environment(slurm.environment))
    return "slurm:first", slurm


def _mend(host: str, cluster: Any) -> None:
    """Bring the nodes of a cluster up for the next run."""
    if host == "ray":
        cluster.connect()
        cluster.restore()
        return
    cluster.cancel_all()
    cluster.resume()
    wait_until(lambda: cluster.idle() == len(NODES), 60.0, every_s=0.1)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
