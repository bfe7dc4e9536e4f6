"""HadarE's loop: rounds in which a job runs as several copies whose models are then averaged.

Source: Sultana et al., HadarE (arXiv 2503.10918), recalled; precise version derived. Its own loop,
because the engine's schedules have one run of a job at a time. Before each round the tracker of a
job splits its remaining steps over its copies; after it, steps are added up, models are averaged
with the steps as weights, and all copies of the next round start from the average.

Rounds begin at multiples of ``round_s``; those without a job are skipped. Jobs are seen at the first
beginning at or after their arrival. A copy holds one node whole; it owes ``restart_s`` when the node
ran another job last, and ``aggregation_s`` when the job has several copies in the round. All times
are whole ticks and all steps whole, so that nothing is lost. What is not simulated: that steps of
different copies are worth as much as those of one (see :mod:`shadowprice.execution.copies.local_sgd`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.instances.forks import Forks, total_steps
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.solvers.hadar.copies import (
    CopyOrder,
    ForkView,
    NodeGrant,
    Payoff,
    assign,
    split_steps,
)

if TYPE_CHECKING:
    from shadowprice.execution.copies.local_sgd import Losses


class CopyWidth(Enum):
    """GPUs a copy uses of the node it holds; its rate is in proportion (derived)."""

    NODE = "node"
    """All of them, as the paper has it."""
    GANG = "gang"
    """At most as many as the job's gang: no job is faster on a node than it was submitted for."""


@dataclass(frozen=True)
class HadarE:
    """Switches of a run.

    Parameters
    ----------
    order : CopyOrder
        Which job is served first.
    round_s : float
        Length of a round [s].
    restart_s, aggregation_s : float
        Charges [s], together shorter than a round; the 10 s are recalled.
    max_copies : int, optional
        k; the number of nodes if not given.
    width : CopyWidth
        GPUs a copy uses.
    local_sgd : bool
        Whether a small model is trained for every job, in copies and in one piece.
    seed : int
        Seed of that training.

    Raises
    ------
    InputError
        If a time is off the grid, the charges fill the round, or ``max_copies`` is below 1.
    """

    order: CopyOrder = field(default_factory=Payoff)
    round_s: float = 360.0
    restart_s: float = 10.0
    aggregation_s: float = 0.0
    max_copies: int | None = None
    width: CopyWidth = CopyWidth.NODE
    local_sgd: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("round_s", "restart_s", "aggregation_s"):
            value = getattr(self, name)
            if not 0 <= value < 2**31 or value * TICKS_PER_S != int(value * TICKS_PER_S):
                raise InputError(
                    f"hadare: {name} is {value!r}, expected seconds >= 0, a multiple of 2**-20"
                )
        if not self.restart_s + self.aggregation_s < self.round_s:
            raise InputError(
                f"hadare: round_s is {self.round_s!r}, expected more than restart_s + aggregation_s, "
                f"{self.restart_s + self.aggregation_s!r}"
            )
        if self.max_copies is not None and self.max_copies < 1:
            raise InputError(f"hadare: max_copies is {self.max_copies!r}, expected at least 1")


@dataclass(frozen=True)
class ForkRun:
    """Result of a run: a record that nobody has verified yet, and losses if asked for."""

    instance: Instance
    record: Forks
    losses: Losses | None = None


def simulate_hadare(instance: Instance, options: HadarE | None = None) -> ForkRun:
    """Run HadarE over an instance.

    Raises
    ------
    InputError
        If jobs have graphs, the instance charges overheads of its own, or iterations are not whole.
    InfeasibleJobError
        If no step of a job fits a round on any node.
    PolicyError
        If the order returns no scores.
    """
    from shadowprice.execution.copies.local_sgd import LocalSgd

    options = options or HadarE()
    if instance.graphs is not None:
        raise InputError(
            f"hadare: {instance.workload.source} has job graphs, expected jobs whose copies each "
            "run on one node"
        )
    if not instance.overheads.free:
        raise InputError(
            f"hadare: the instance has {instance.overheads}, expected none; use restart_s and "
            "aggregation_s"
        )
    record = _Loop(instance, options).run()
    losses = LocalSgd(seed=options.seed).train(instance, record) if options.local_sgd else None
    return ForkRun(instance, record, losses)


class _Loop:
    """State of one run; jobs are rows of the workload, times are ticks."""

    def __init__(self, instance: Instance, options: HadarE) -> None:
        workload, cluster = instance.workload, instance.cluster
        self.instance, self.options = instance, options
        self.arrival_s = workload.arrival_s
        self.steps = total_steps(workload)
        self.left = self.steps.copy()
        self.ran_s = np.zeros(len(workload))
        self.length = int(options.round_s * TICKS_PER_S)
        self.restart = int(options.restart_s * TICKS_PER_S)
        self.aggregation = int(options.aggregation_s * TICKS_PER_S)
        self.copies = options.max_copies or len(cluster.nodes)
        kinds = [(node.gpu_type, node.gpus) for node in cluster.nodes]
        self.classes = list(dict.fromkeys(kinds))
        index = {kind: place for place, kind in enumerate(self.classes)}
        self.class_of_node = np.array([index[kind] for kind in kinds], dtype=np.int64)
        self.kinds: list[int] = self.class_of_node.tolist()
        self.width = self._widths()
        self.rates = self._rates()
        self.exact: dict[tuple[int, int], Fraction] = {}
        self.last = [-1] * len(cluster.nodes)
        self.last_copy = [0] * len(cluster.nodes)
        self.active = np.zeros(0, dtype=np.int64)
        self.admitted = 0
        self.rows: list[tuple[int, ...]] = []

    def _widths(self) -> NDArray[np.int64]:
        """GPUs a copy of each job uses on each class, shape (n, classes)."""
        gang = self.instance.workload.gpus[:, None]
        room = np.array([gpus for _, gpus in self.classes], dtype=np.int64)[None, :]
        if self.options.width is CopyWidth.GANG:
            return np.minimum(gang, room)
        return np.repeat(room, len(gang), axis=0)

    def _rates(self) -> NDArray[np.float64]:
        """Steps per second, shape (n, classes), 0 where a round may have no room for a step."""
        workload = self.instance.workload
        if workload.throughput is None:
            whole = np.full((len(workload), len(self.classes)), float(TICKS_PER_S))
        else:
            columns = [workload.gpu_types.index(name) for name, _ in self.classes]
            whole = workload.throughput[:, columns]
        rates: NDArray[np.float64] = whole * self.width / workload.gpus[:, None]
        shortest_s = (self.length - self.restart - self.aggregation) / TICKS_PER_S
        # A margin above the rounding of the product, below which no exact count is 0.
        rates = np.where(rates * shortest_s >= 1.0 + 1e-9, rates, 0.0)
        bad = np.flatnonzero(~(rates > 0).any(axis=1))
        if len(bad):
            raise InfeasibleJobError(
                f"{workload.source}: job {workload.id[bad[0]]!r}: no step fits a round of "
                f"{self.options.round_s} s on any node of {self.instance.cluster}"
            )
        return rates

    def run(self) -> Forks:
        """Round after round until nobody is left."""
        now, number, jobs = 0, 0, len(self.steps)
        while self.admitted < jobs or len(self.active):
            if not len(self.active):
                arrival = int(self.arrival_s[self.admitted] * TICKS_PER_S)
                now = max(now, -(-arrival // self.length) * self.length)
            come = int(np.searchsorted(self.arrival_s, now / TICKS_PER_S, side="right"))
            self.active = np.append(self.active, np.arange(self.admitted, come))
            self.admitted = come
            self._round(number, now)
            now, number = now + self.length, number + 1
        return self._record()

    def _round(self, number: int, now: int) -> None:
        view = self._view(now / TICKS_PER_S)
        jobs: list[int] = self.active.tolist()

        def room(position: int, node: int, several: bool) -> int:
            job = jobs[position]
            ticks = self.length - self._owed(job, node, several)
            return int(self._rate(job, node) * ticks)

        def prefer(position: int) -> list[int]:
            return self._preferred(jobs[position])

        for grant in assign(
            view, self.options.order, self.class_of_node, prefer, room, lambda _: self.copies
        ):
            self._train(number, now, jobs[grant.position], grant)
        self.active = self.active[self.left[self.active] > 0]

    def _view(self, now_s: float) -> ForkView:
        jobs = self.active
        arrival_s = self.arrival_s[jobs]
        return ForkView(
            now_s,
            jobs,
            self.steps[jobs],
            self.left[jobs],
            self.rates[jobs],
            arrival_s,
            now_s - arrival_s - self.ran_s[jobs],
            np.zeros(len(self.classes)),
        )

    def _preferred(self, job: int) -> list[int]:
        """Nodes that ran the job last, then those that no unfinished job ran on last."""
        left = self.left

        def reluctance(node: int) -> int:
            last = self.last[node]
            return 0 if last == job else 1 if last < 0 or left[last] == 0 else 2

        return sorted(range(len(self.last)), key=reluctance)

    def _rate(self, job: int, node: int) -> Fraction:
        """Steps per tick of a copy, exactly."""
        kind = self.kinds[node]
        found = self.exact.get((job, kind))
        if found is None:
            workload = self.instance.workload
            found = Fraction(int(self.width[job, kind]), int(workload.gpus[job]))
            if workload.throughput is not None:
                column = workload.gpu_types.index(self.classes[kind][0])
                found *= Fraction(float(workload.throughput[job, column])) / TICKS_PER_S
            self.exact[job, kind] = found
        return found

    def _owed(self, job: int, node: int, several: bool) -> int:
        restarts = self.last[node] not in (-1, job)
        return restarts * self.restart + several * self.aggregation

    def _train(self, number: int, now: int, job: int, grant: NodeGrant) -> None:
        """The tracker's part of a round: split, run, add up."""
        nodes, left = grant.nodes, int(self.left[job])
        while True:
            owed = [self._owed(job, node, len(nodes) > 1) for node in nodes]
            steps = split_steps(left, [self._rate(job, node) for node in nodes], owed, self.length)
            if all(steps):
                break
            # Copies without a step are not made, and one copy alone needs no averaging.
            some = [node for node, count in zip(nodes, steps, strict=True) if count]
            nodes = some if all(steps[: grant.needed]) else nodes[: grant.needed]
        busy = 0
        for node, copy, count, lost in zip(
            nodes, self._copy_numbers(job, nodes), steps, owed, strict=True
        ):
            ticks = lost + math.ceil(count / self._rate(job, node))
            width = int(self.width[job, self.kinds[node]])
            fork = copy * len(self.steps) + job
            self.rows.append((number, job, fork, node, width, now, now + ticks, lost, count))
            self.last[node], self.last_copy[node] = job, copy
            busy = max(busy, ticks)
        self.left[job] -= sum(steps)
        self.ran_s[job] += (busy if self.left[job] == 0 else self.length) / TICKS_PER_S

    def _copy_numbers(self, job: int, nodes: list[int]) -> list[int]:
        """Each node goes on with the copy it had, others take the lowest numbers left."""
        kept = {node: self.last_copy[node] for node in nodes if self.last[node] == job}
        if len(set(kept.values())) < len(kept):
            kept = {}
        others = (number for number in range(1, self.copies + 1) if number not in kept.values())
        return [kept[node] if node in kept else next(others) for node in nodes]

    def _record(self) -> Forks:
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 9).T
        round_, job, copy, node, gpus, start, end, lost, steps = table.copy()
        seconds = (start / TICKS_PER_S, end / TICKS_PER_S, lost / TICKS_PER_S)
        times = (self.options.round_s, self.options.restart_s, self.options.aggregation_s)
        return Forks(round_, job, copy, node, gpus, *seconds, steps, *times, self.copies)
