"""HadarE's loop: rounds in which a job runs as several copies whose models are then averaged.

Source: Sultana et al., HadarE (arXiv 2503.10918), recalled; precise version derived. Its own loop,
because the engine has one run of a job at a time. Before each round the tracker of a job splits its
remaining steps over its copies; after it, steps are added up, models are averaged with the steps as
weights, and all copies of the next round start from the average.

Rounds begin at multiples of their length; those without a job are skipped. Jobs are seen at the first
beginning at or after their arrival. A copy holds one node whole; it owes a restart when the node
ran another job last, and the averaging when the job has several copies in the round. All times
are whole ticks and all steps whole, so that nothing is lost. What is not simulated: that steps of
different copies are worth as much as those of one (see :mod:`shadowprice.execution.copies.local_sgd`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InfeasibleJobError, InputError, PolicyError
from shadowprice.execution.copies.outages import Outages
from shadowprice.execution.copies.round_nodes import RoundNodes
from shadowprice.execution.job_window import WindowProgress
from shadowprice.instances.features import Feature, require
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.terms.copies import CopyRules, total_steps
from shadowprice.solvers.hadar.copy_assignment import (
    ByArrival,
    CopyOrder,
    NodeGrant,
    RoundView,
    assign,
    preferred_nodes,
    split_steps,
)
from shadowprice.solvers.registry import COPIES

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.PROFILES,
        Feature.COPIES,
        Feature.FAILURES,
        Feature.QUOTAS,
        Feature.CPU_MEMORY,
        Feature.WINDOW,
        Feature.RESTART,
    }
)
"""Features of the instances that run as copies; a copy has all CPUs and memory of its node, and their speed."""

_BREAKS_A_JOB = 100
"""Times for each job that jobs lose their steps with none ending between, after which a run is given up."""

Width = Callable[[int, int], int]
"""GPUs that a copy uses, of the job's gang and those of its node; its rate is in proportion."""


def run_copies(instance: Instance, order: CopyOrder, width: Width) -> Schedule:
    """Schedule of the copies of an instance's jobs, under its rules.

    Raises
    ------
    InputError
        If the instance has no rules of copies.
    InfeasibleJobError
        If no step of a job fits a round on any node.
    PolicyError
        If the order returns no scores.
    """
    require(instance, KNOWS, "runs of copies")
    return _Loop(instance, _rules_of(instance), order, width).schedule()


Plan = Mapping[int, Mapping[int, Sequence[int]]]
"""Nodes of the jobs that have copies in a round, by the number of the round and the row of the job."""


def run_plan(instance: Instance, plan: Plan) -> Schedule:
    """Schedule of the copies of a plan, each on all GPUs of its node; rounds are counted from time 0.

    In every round a job does as many whole steps as its copies have time for. Who has steps left after its last
    planned round goes on, on the same nodes, as soon as they are free. A copy without room for a step is not made.

    Raises
    ------
    InputError, InfeasibleJobError
        As :func:`run_copies`; also of nodes that fail and other things that a plan does not know.
    PolicyError
        If the plan leaves a job where no step fits.
    """
    from shadowprice.models import hadare  # With Pyomo, which runs by an order do without.

    require(instance, hadare.KNOWS, "plans of copies")
    return _PlannedLoop(instance, _rules_of(instance), plan).schedule()


def _rules_of(instance: Instance) -> CopyRules:
    if instance.copies is None:
        raise InputError(
            f"{instance.workload.source}: the instance has no rules of copies, expected some"
        )
    return instance.copies


class _Loop:
    """State of one run; jobs are rows of the workload, times are ticks."""

    def __init__(
        self, instance: Instance, rules: CopyRules, order: CopyOrder, width: Width
    ) -> None:
        workload, cluster = instance.workload, instance.cluster
        self.instance, self.rules, self.order = instance, rules, order
        self.arrival_s = workload.arrival_s
        self.steps = total_steps(workload)
        self.left = self.steps.copy()
        self.ran_s = np.zeros(len(workload))
        self.length = int(rules.round_s * TICKS_PER_S)
        self.restart = int(rules.restart_s * TICKS_PER_S)
        self.aggregation = int(rules.aggregation_s * TICKS_PER_S)
        class_of = [(node.gpu_type, node.gpus) for node in cluster.nodes]
        self.classes = list(dict.fromkeys(class_of))
        index = {each: place for place, each in enumerate(self.classes)}
        self.class_of_node = np.array([index[each] for each in class_of], dtype=np.int64)
        self.class_number: list[int] = self.class_of_node.tolist()
        self.sensitivity = instance.sensitivity
        self.width = self._widths(width)
        self.rates = self._rates()
        self.exact: dict[tuple[int, int], Fraction] = {}
        self.last = [-1] * len(cluster.nodes)
        self.last_copy = [-1] * len(cluster.nodes)
        self.last_begin = [0] * len(cluster.nodes)
        self.breaks = 0
        self.outages = None if instance.failures is None else Outages(instance.failures)
        self.active = np.zeros(0, dtype=np.int64)
        self.admitted = 0
        self.had: set[tuple[int, int]] = set()
        self.rows: list[tuple[int, ...]] = []
        window = instance.until_complete
        self.window = None if window is None else WindowProgress(window, workload)

    def _widths(self, width: Width) -> NDArray[np.int64]:
        """GPUs a copy of each job uses on each class, shape (n, classes)."""
        gangs, which = np.unique(self.instance.workload.gpus, return_inverse=True)
        used = [[width(gang, room) for _, room in self.classes] for gang in gangs.tolist()]
        return np.array(used, dtype=np.int64).reshape(-1, len(self.classes))[which]

    def _rates(self) -> NDArray[np.float64]:
        """Steps per second, shape (n, classes), 0 where a round may have no room for a step."""
        workload = self.instance.workload
        if workload.throughput is None:
            whole = np.full((len(workload), len(self.classes)), float(TICKS_PER_S))
        else:
            columns = [workload.gpu_types.index(name) for name, _ in self.classes]
            whole = workload.throughput[:, columns]
        rates: NDArray[np.float64] = whole * self.width / workload.gpus[:, None]
        if self.sensitivity is not None:
            jobs, classes = range(len(workload)), range(len(self.classes))
            rates *= [[self._speed(job, each) for each in classes] for job in jobs]
        shortest_s = (self.length - self.restart - self.aggregation) / TICKS_PER_S
        # A margin above the rounding of the product, below which no exact count is 0.
        rates = np.where(rates * shortest_s >= 1.0 + 1e-9, rates, 0.0)
        bad = np.flatnonzero(~(rates > 0).any(axis=1))
        if len(bad):
            raise InfeasibleJobError(
                f"{workload.source}: job {workload.id[bad[0]]!r}: no step fits a round of "
                f"{self.rules.round_s} s on any node of {self.instance.cluster}"
            )
        return rates

    def schedule(self) -> Schedule:
        """Round after round until nobody is left, or the jobs of a window are complete."""
        now, jobs, window = 0, len(self.steps), self.window
        while self.admitted < jobs or len(self.active):
            if not len(self.active):
                arrival = int(self.arrival_s[self.admitted] * TICKS_PER_S)
                now = max(now, -(-arrival // self.length) * self.length)
            come = int(np.searchsorted(self.arrival_s, now / TICKS_PER_S, side="right"))
            self.active = np.append(self.active, np.arange(self.admitted, come))
            self.admitted = come
            if window is not None and window.over(now / TICKS_PER_S, come, COPIES):
                break
            now = self._after(now, served=self._round(now))
        return self._rows()

    def _after(self, now: int, *, served: bool) -> int:
        """Beginning of the next round; of one in which nobody got a node the first in which somebody might."""
        if served or not len(self.active):
            return now + self.length
        quotas, now_s = self.instance.cluster.quotas, now / TICKS_PER_S
        next_s = math.inf if quotas is None else quotas.next_change_s(now_s)
        if self.admitted < len(self.steps):
            next_s = min(next_s, float(self.arrival_s[self.admitted]))
        if self.outages is not None:
            down = {*range(len(self.last))} - self._up(now)
            ends = [self.outages.until(node, now) / TICKS_PER_S for node in down]
            next_s = min(next_s, *ends, math.inf)
        if next_s == math.inf:
            waiting = self.instance.workload.id[self.active[0]]
            raise PolicyError(
                f"{COPIES}: nobody runs at {now_s:.10g} s, and job {waiting!r} waits for a node within the quota of "
                "its tenant, which grows no more, or for one that stays down; expected larger quotas or other nodes"
            )
        return max(now + self.length, -(-int(next_s * TICKS_PER_S) // self.length) * self.length)

    def _round(self, now: int) -> bool:
        """Carry a round out; true if some job got a node."""
        jobs: list[int] = self.active.tolist()
        begun = len(self.rows)
        for grant in self._grants(now, jobs):
            self._train(now, jobs[grant.position], grant)
        if self.instance.restarts:
            self._lose(now, begun)
        # A copy without steps was struck, and has its node no more.
        self.had = {(row[0], row[1]) for row in self.rows[begun:] if row[-1]}
        over = self.left[self.active] == 0
        if self.window is not None:
            self.window.leave(self.active[over].tolist())
        self.active = self.active[~over]
        return len(self.rows) > begun

    def _grants(self, now: int, jobs: list[int]) -> list[NodeGrant]:
        """Nodes of the jobs that are there, in the order in which they are served."""
        active = set(jobs)

        def room(position: int, node: int, several: bool) -> int:
            job = jobs[position]
            ticks = self.length - self._owed(now, job, node, several)
            return int(self._rate(job, node) * ticks)

        def prefer(position: int) -> list[int]:
            return preferred_nodes(self.last, jobs[position], active)

        quotas, up = self.instance.cluster.quotas, self._up(now)
        limits = RoundNodes(self.instance, quotas, now / TICKS_PER_S, jobs, self.had, up)
        view, most = self._view(now / TICKS_PER_S), self.rules.max_copies
        return assign(view, self.order, self.class_of_node, prefer, room, lambda _: most, limits)

    def _lose(self, now: int, begun: int) -> None:
        """Take the steps of jobs that no copy went on with in this round, whose rows begin at a number."""
        going = {row[0] for row in self.rows[begun:] if row[-1]}
        lost = [job for job in self.active.tolist() if job not in going]
        broken = [job for job in lost if self.left[job] < self.steps[job]]
        self.left[broken] = self.steps[broken]
        self.breaks = self.breaks + len(broken) if self.left[self.active].all() else 0
        if self.breaks > _BREAKS_A_JOB * len(self.active):
            raise PolicyError(
                f"{COPIES} at {now / TICKS_PER_S} s: left jobs without a copy {self.breaks} times since one ended, of "
                f"{len(self.active)} that are there, and who is left starts from nothing; expected an order that lets "
                "jobs go on, such as shortest, or jobs that resume"
            )

    def _view(self, now_s: float) -> RoundView:
        jobs = self.active
        arrival_s = self.arrival_s[jobs]
        return RoundView(
            now_s,
            jobs,
            self.steps[jobs],
            self.left[jobs],
            self.rates[jobs],
            arrival_s,
            now_s - arrival_s - self.ran_s[jobs],
            np.zeros(len(self.classes)),
        )

    def _speed(self, job: int, node_class: int) -> float:
        """Speed of a copy with all CPUs and memory of its node."""
        if self.sensitivity is None:
            return 1.0
        node = self.instance.cluster.nodes[self.class_number.index(node_class)]
        pieces = ((0, int(self.width[job, node_class])),)
        return self.sensitivity.speed(job, pieces, ((node.cpus, node.memory_gb),))

    def _rate(self, job: int, node: int) -> Fraction:
        """Steps per tick of a copy, exactly."""
        node_class = self.class_number[node]
        found = self.exact.get((job, node_class))
        if found is None:
            workload = self.instance.workload
            found = Fraction(int(self.width[job, node_class]), int(workload.gpus[job]))
            if workload.throughput is not None:
                column = workload.gpu_types.index(self.classes[node_class][0])
                found *= Fraction(float(workload.throughput[job, column])) / TICKS_PER_S
            found *= Fraction(self._speed(job, node_class))
            self.exact[job, node_class] = found
        return found

    def _up(self, now: int) -> set[int]:
        """Nodes that are up."""
        nodes, outages = range(len(self.last)), self.outages
        if outages is None:
            return set(nodes)
        outages.know(now)
        return {node for node in nodes if outages.until(node, now) == now}

    def _owed(self, now: int, job: int, node: int, several: bool) -> int:
        """Charges of a copy: restart where the node ran another job last, or has been down since, and averaging."""
        restarts = self.last[node] not in (-1, job)
        if self.outages is not None and self.last[node] == job:
            restarts = self.outages.down_between(node, self.last_begin[node], now)
        return restarts * self.restart + several * self.aggregation

    def _train(self, now: int, job: int, grant: NodeGrant) -> None:
        """The tracker's part of a round: split, run, add up."""
        nodes, left = grant.nodes, int(self.left[job])
        while True:
            owed = [self._owed(now, job, node, len(nodes) > 1) for node in nodes]
            steps = split_steps(left, [self._rate(job, node) for node in nodes], owed, self.length)
            if all(steps):
                break
            # Copies without a step are not made, and one copy alone needs no averaging.
            some = [node for node, count in zip(nodes, steps, strict=True) if count]
            nodes = some if all(steps[: grant.needed]) else nodes[: grant.needed]
        busy = done = 0
        for node, copy, count, lost in zip(
            nodes, self._copy_numbers(job, nodes), steps, owed, strict=True
        ):
            ticks = lost + math.ceil(count / self._rate(job, node))
            width = int(self.width[job, self.class_number[node]])
            struck = self._struck(node, now, now + ticks)
            if struck is not None:
                ticks, lost, count = struck - now, min(lost, struck - now), 0
            self.rows.append((job, node, width, now, now + ticks, lost, copy, count))
            self.last[node], self.last_copy[node], self.last_begin[node] = job, copy, now
            busy, done = max(busy, ticks), done + count
        self.left[job] -= done
        self.ran_s[job] += (busy if self.left[job] == 0 else self.length) / TICKS_PER_S

    def _struck(self, node: int, begin: int, end: int) -> int | None:
        """Time at which a node goes down before the end of its copy."""
        if self.outages is None:
            return None
        down = self.outages.next_down(node, begin)
        if down >= end:
            self.outages.know(end)
            down = self.outages.next_down(node, begin)
        return int(down) if down < end else None

    def _copy_numbers(self, job: int, nodes: list[int]) -> list[int]:
        """Each node goes on with the copy it had, others take the lowest numbers left."""
        kept = {node: self.last_copy[node] for node in nodes if self.last[node] == job}
        if len(set(kept.values())) < len(kept):
            kept = {}
        others = (number for number in range(self.rules.max_copies) if number not in kept.values())
        return [kept[node] if node in kept else next(others) for node in nodes]

    def _rows(self) -> Schedule:
        table = np.array(self.rows, dtype=np.int64).reshape(-1, 8).T
        job, node, gpus, start, end, lost, copy, steps = table.copy()
        seconds = (start / TICKS_PER_S, end / TICKS_PER_S, lost / TICKS_PER_S)
        return Schedule(job, node, gpus, *seconds, copy=copy, steps=steps)


class _PlannedLoop(_Loop):
    """As a plan says, for whole nodes; the order serves nobody."""

    def __init__(self, instance: Instance, rules: CopyRules, plan: Plan) -> None:
        super().__init__(instance, rules, ByArrival(), lambda gang, room: room)
        self.plan = plan
        self.until = {job: number for number in sorted(plan) for job in plan[number]}

    def _grants(self, now: int, jobs: list[int]) -> list[NodeGrant]:
        number = now // self.length
        planned, free = self.plan.get(number, {}), set(range(len(self.last)))
        nodes = {job: list(planned[job]) for job in jobs if job in planned}
        free -= {node for some in nodes.values() for node in some}
        for job in jobs:
            last = self.until.get(job, number)
            if last < number and free.issuperset(self.plan[last][job]):
                nodes[job] = list(self.plan[last][job])
                free -= set(nodes[job])
        # None of them is needed more than others, so that those remain that do a step.
        return [
            NodeGrant(position, [node for node in nodes[job] if self._rate(job, node) > 0], 0)
            for position, job in enumerate(jobs)
            if job in nodes
        ]

    def _after(self, now: int, *, served: bool) -> int:
        if not served and len(self.active) and now // self.length > max(self.plan, default=-1):
            stuck = self.instance.workload.id[self.active[0]]
            raise PolicyError(
                f"a plan of copies: job {stuck!r} has steps left, and none fits a round on the nodes that it had last"
            )
        return now + self.length
