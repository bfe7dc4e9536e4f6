"""Many short runs of real jobs, each with a few faults, all drawn from one seed."""

from __future__ import annotations

import bisect
import os
import queue
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from support.cluster_faults import RAY_KINDS, SLURM_KINDS
from support.fault_campaign import Campaign, Outcome, run_campaign
from support.fault_kinds import KINDS
from support.run_clusters import RunClusters

POLICIES = ("las:quantum_s=1.5", "las2d:thresholds_gpu_s=3", "srtf", "fifo")
WITHIN_S = 240.0
"""A run that takes longer hangs."""
PARALLEL = {"local": 4, "ray": 3, "slurm": 4}
"""Runs at once: they mostly wait, and each has a cluster to itself. Ray's takes a GiB of memory."""
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
    """One run of a series; ``broken`` says which promise was, empty if none.

    Attributes
    ----------
    load : float
        Of the machine when it ended, over a minute.
    """

    number: int
    campaign: Campaign
    outcome: Outcome
    broken: str = ""
    load: float = 0.0

    @property
    def lost_rounds(self) -> float:
        """Most time of work lost at once, against the length of a round."""
        steps = self.outcome.counts.get("most_lost", 0)
        return steps * self.campaign.step_ms / 1e3 / self.campaign.round_s

    def line(self) -> str:
        """What was done to it, and what it cost."""
        what, counts = self.outcome, self.outcome.counts
        head = f"{self.number:4} {self.campaign.policy:26} {self.campaign.jobs} jobs  {what.wall_s:5.1f} s"
        faults = ", ".join(map(str, what.strikes)) or "no fault"
        if what.unthrown:
            faults += f" (not thrown: {', '.join(what.unthrown)})"
        if self.broken:
            return f"{head}  BROKEN by {faults}: {self.broken}"
        lost = max(self.campaign.allowed_loss.values())
        return (
            f"{head}  {counts['leases']:2} leases  lost {counts['most_lost']:3} of {lost} steps, "
            f"{self.lost_rounds:.2f} rounds: {faults}"
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

    def most_lost_with_room(self) -> float:
        """Most rounds of work lost at once in runs in which no disk was full."""
        return max(
            (
                result.lost_rounds
                for result in self.results
                if not any(kind.startswith("full") for kind in result.outcome.faults)
            ),
            default=0.0,
        )

    def most_lost(self, kind: str = "") -> float:
        """Most rounds of work lost at once, in any run or in those in which one fault was thrown."""
        return max(
            (
                result.lost_rounds
                for result in self.results
                if not kind or kind in result.outcome.faults
            ),
            default=0.0,
        )


def run_one(
    seed: int, number: int, host: str, folder: Path, mounted: bool, on: RunClusters | None = None
) -> RunResult:
    """One run of a series, in a folder that is removed at its end."""
    campaign = drawn(seed, number, host, mounted=mounted)
    cluster: Any = None
    if on is not None and on.hosts:
        campaign, cluster = replace(campaign, hosts=on.hosts), on.cluster
    outcome, broken = Outcome(), ""
    began_s = time.monotonic()
    with TemporaryDirectory(dir=folder, prefix=f"run-{number}-") as place:
        try:
            run_campaign(campaign, Path(place), WITHIN_S, cluster=cluster, outcome=outcome)
        except Exception as error:  # whatever it is, the other runs are told of
            broken = f"{type(error).__name__}: {error}"
            broken += "".join(traceback.format_tb(error.__traceback__)[-2:])
    outcome.wall_s = time.monotonic() - began_s
    return RunResult(number, campaign, outcome, broken, os.getloadavg()[0])


def run_series(
    seed: int,
    numbers: Iterable[int],
    host: str,
    folder: Path,
    *,
    mounted: bool,
    parallel: int,
    tell: Callable[[RunResult, Series], None],
) -> Series:
    """All runs of a series, several at once; each has a cluster to itself while it lasts.

    Parameters
    ----------
    tell
        Given each run as it ends, and all that ended.

    Raises
    ------
    RuntimeError
        If a process that carries out runs died.
    """
    series, began_s = Series(), time.monotonic()
    context = get_context("spawn")
    waiting, done = context.Queue(), context.Queue()
    count = 0
    for number in numbers:
        waiting.put(number)
        count += 1
    workers = [
        context.Process(target=_carry_out, args=(seed, host, folder, mounted, waiting, done))
        for _ in range(min(parallel, count))
    ]
    for worker in workers:
        waiting.put(None)
        worker.start()
    try:
        while len(series.results) < count:
            result = _next(done, workers)
            bisect.insort(series.results, result, key=lambda result: result.number)
            series.wall_s = time.monotonic() - began_s
            tell(result, series)
    except BaseException:
        for worker in workers:
            worker.terminate()
        raise
    finally:
        for worker in workers:
            worker.join()
    return series


def _next(done: Any, workers: list[BaseProcess]) -> RunResult:
    """The next result; no worker is waited for that died."""
    while True:
        try:
            result: RunResult = done.get(timeout=1.0)
        except queue.Empty:
            if died := [worker.exitcode for worker in workers if worker.exitcode]:
                raise RuntimeError(f"a process of the campaign ended with {died[0]}") from None
        else:
            return result


def _carry_out(seed: int, host: str, folder: Path, mounted: bool, waiting: Any, done: Any) -> None:
    """Carry out runs until there are no more: the main function of a worker."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and clean up
    with (
        TemporaryDirectory(dir=folder, prefix="cluster-") as place,
        RunClusters(host, Path(place)) as on,
    ):
        while (number := waiting.get()) is not None:
            on.prepare()
            done.put(run_one(seed, number, host, folder, mounted, on))
