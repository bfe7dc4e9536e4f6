"""Changes of a state since a sealed policy was asked last: all that its process is sent at a decision.

O(changes + running jobs) a decision, and nothing for those who go on waiting.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.execution.sealed.protocol import (
    ArrivedJob,
    Down,
    Due,
    Ended,
    Epoch,
    Failed,
    Progress,
    StartedJob,
    Up,
    WrittenProfile,
)
from shadowprice.instances.clusters.cpu_memory import RunCpuMemory
from shadowprice.instances.goodput.application import Batching
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import ALONE
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.solvers.job_table import PROGRESS, TEXTS
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.policy import Decision
from shadowprice.solvers.state import State

_SPEED_BITS = 12
"""Bits of the speeds of runs that are sent where run times are not: the next ones tell how long a job runs, since
speeds are quotients of whole ticks."""

_NOTHING = np.zeros(1)


class Changes:
    """Record of what one sealed policy was sent of one run.

    Parameters
    ----------
    instance : Instance
        What is run; what a message says of a job is read from the state, and from here what a placement knows of it.
    knows : collection of Knowledge
        What the policy declares.
    """

    def __init__(self, instance: Instance, knows: Collection[Knowledge]) -> None:
        self._times = Knowledge.DURATION in knows
        self._speed_up = Knowledge.SPEED_UP in knows
        self._asked = instance.asked_cpu_memory
        self._graphs = instance.graphs
        self._sensitivity = instance.sensitivity
        # Numbers under which they were sent, in order of arrival: how many there are is not known before.
        self._sent_graphs: dict[int, int] = {}
        self._sent_profiles: dict[int, int] = {}
        self._jobs = 0
        self._columns: dict[str, NDArray[np.float64]] = dict.fromkeys(PROGRESS, _NOTHING)
        self._partners: dict[int, int] = {}
        self._cpu_memory: dict[int, RunCpuMemory] = {}
        self._epochs: dict[int, Epoch] = {}

    def since(self, state: State, last: Decision | None) -> Due:
        """Message that a decision is due, after the last one was carried out."""
        stopped = () if last is None else tuple(last.stops)
        starts = {} if last is None else last.starts
        touched = dict.fromkeys((*state.running, *stopped, *state.finished))
        arrived = tuple(self._arrivals(state))
        return Due(
            now_s=state.now_s,
            free_gpus=state.allocator.free_gpus,
            stopped=stopped,
            started=tuple(StartedJob(job, pieces) for job, pieces in starts.items()),
            events=tuple(self._events(state)) if state.finished or state.changed_nodes else (),
            arrived=arrived,
            progress=self._progress(state, touched),
            partners=self._new_partners(state) if state.sharing else (),
            cpu_memory=self._new_cpu_memory(state) if state.profiled else (),
            epochs=() if state.goodput is None else tuple(self._new_epochs(state, touched)),
        )

    def _arrivals(self, state: State) -> Iterable[ArrivedJob]:
        first, self._jobs = self._jobs, len(state.gang)
        if first == self._jobs:
            return
        table, room = state.rows, len(self._columns[PROGRESS[0]])
        for name in PROGRESS:
            if room < self._jobs:
                self._columns[name] = np.resize(self._columns[name], 2 * self._jobs)
            # The first values of a job are known: it has done nothing.
            self._columns[name][first : self._jobs] = table.column(name)[first : self._jobs]
        for job in range(first, self._jobs):
            yield self._arrival(state, job)

    def _arrival(self, state: State, job: int) -> ArrivedJob:
        table, environment = state.rows, state.environment
        row = table.numbers[job]
        texts: dict[str, Any] = dict(zip(TEXTS, table.texts[job], strict=True))
        limit_s, deadline_s = float(row["limit_s"]), float(row["deadline_s"])
        more: dict[str, Any] = {}
        if environment.typed:
            more["throughput"] = tuple(row["throughput"].tolist())
        if environment.elastic:
            more["widest"] = int(row["widest"])
            if self._speed_up:
                more["efficiency"] = float(row["efficiency"])
        if environment.pair_rates is not None:
            alone_s = row["alone_s"].tolist()
            more["kind"] = int(row["kind"])
            more["runs_on"] = tuple(k for k, each in enumerate(alone_s) if each < math.inf)
            if self._times:
                more["alone_s"] = tuple(_or_none(each) for each in alone_s)
        if environment.network is not None:
            more |= self._graph(job, table.graphs[job])
            more["alpha_s"] = float(row["alpha_min_s"]), float(row["alpha_max_s"])
        if environment.profiled:
            more |= self._profile(job, table.profiles[job])
        if self._asked is not None:
            more["asks"] = self._asked.demands[job]
        if self._times:
            more |= {"run_s": float(row["shortest_s"]), "work": float(row["work"])}
        return ArrivedJob(
            job=job,
            gpus=table.gang[job],
            arrival_s=float(row["arrival_s"]),
            weight=float(row["weight"]),
            deadline_s=_or_none(deadline_s),
            limit_s=_or_none(limit_s),
            nodes=int(row["nodes"]),
            gpu_milli=int(row["gpu_milli"]),
            batch_size=int(row["batch_size"]),
            pools=table.pools[job],
            **texts,
            **more,
        )

    def _graph(self, job: int, graph: object) -> dict[str, Any]:
        assert self._graphs is not None
        number = int(self._graphs.of[job])
        if number in self._sent_graphs:
            return {"graph": self._sent_graphs[number]}
        self._sent_graphs[number] = len(self._sent_graphs)
        return {"graph": self._sent_graphs[number], "graph_is": graph}

    def _profile(self, job: int, profile: Profile) -> dict[str, Any]:
        assert self._sensitivity is not None
        number = int(self._sensitivity.of[job])
        if number in self._sent_profiles:
            return {"profile": self._sent_profiles[number]}
        self._sent_profiles[number] = len(self._sent_profiles)
        written = WrittenProfile(
            name=profile.name,
            cpus_per_gpu=tuple(profile.cpus_per_gpu.tolist()),
            memory_gb_per_gpu=tuple(profile.memory_gb_per_gpu.tolist()),
            speed=tuple(map(tuple, profile.speed.tolist())),
        )
        return {"profile": self._sent_profiles[number], "profile_is": written}

    def _events(self, state: State) -> Iterable[Ended | Failed | Down | Up]:
        """Ends, failures and changes of nodes in their order."""
        down = set(state.down_nodes)
        for node, _ in reversed(state.changed_nodes):
            down ^= {node}  # As it was before.
        changes = iter([*state.changed_nodes, (-1, math.inf)])
        node, after = next(changes)
        failed = set(state.failed)
        work = state.rows.column("work")
        for place in range(len(state.finished) + 1):
            while after == place:
                yield Up(node) if node in down else Down(node)
                down ^= {node}
                node, after = next(changes)
            if place < len(state.finished):
                job = state.finished[place]
                yield Failed(job) if job in failed else Ended(job, float(work[job]))

    def _progress(self, state: State, touched: Collection[int]) -> tuple[Progress, ...]:
        jobs = np.fromiter(touched, dtype=np.int64, count=len(touched))
        now = {name: state.rows.column(name)[jobs] for name in PROGRESS}
        new = np.zeros(len(jobs), dtype=np.bool_)
        for name, column in now.items():
            new |= column != self._columns[name][jobs]
        if not new.any():
            return ()
        some = np.flatnonzero(new)
        for name, column in now.items():
            self._columns[name][jobs[some]] = column[some]
        rows = zip(
            jobs[some].tolist(), *(now[name][some].tolist() for name in PROGRESS), strict=True
        )
        return tuple(self._row(*row) for row in rows)

    def _row(
        self,
        job: int,
        left_s: float,
        attained_s: float,
        owed_s: float,
        speed: float,
        from_s: float,
        first_start_s: float,
        waiting_since_s: float,
    ) -> Progress:
        """Progress of a job, from the columns in their order."""
        return Progress(
            job=job,
            attained_s=attained_s,
            owed_s=owed_s,
            speed=speed if self._times else coarse(speed),
            from_s=from_s,
            first_start_s=_or_none(first_start_s),
            waiting_since_s=waiting_since_s,
            left_s=left_s if self._times else None,
        )

    def _new_partners(self, state: State) -> tuple[tuple[int, int], ...]:
        before, now = self._partners, state.partner_of
        self._partners = dict(now)
        gone = {job: ALONE for job in before if job not in now}
        return tuple(
            (job, partner)
            for job, partner in {**gone, **now}.items()
            if before.get(job, ALONE) != partner
        )

    def _new_cpu_memory(self, state: State) -> tuple[tuple[int, RunCpuMemory], ...]:
        before, now = self._cpu_memory, state.cpu_memory_of
        self._cpu_memory = dict(now)
        return tuple((job, held) for job, held in now.items() if before.get(job) != held)

    def _new_epochs(self, state: State, touched: Iterable[int]) -> Iterable[Epoch]:
        assert state.goodput is not None
        for job in touched:
            position, run = state.goodput.begun(job)
            now = Epoch(
                job=job,
                epoch=position.epoch,
                done=str(position.done),
                batching=None if run is None else _pair(run.field.batching),
                slowed=run is not None and run.field.slowed,
                from_s=0.0 if run is None else run.from_s,
            )
            if self._epochs.get(job) != now:
                self._epochs[job] = now
                yield now


def coarse(speed: float) -> float:
    """Speed to twelve bits.

    >>> coarse(1.0), coarse(1.0 - 2.0**-30), coarse(0.0)
    (1.0, 1.0, 0.0)
    """
    mantissa, exponent = math.frexp(speed)
    return math.ldexp(round(math.ldexp(mantissa, _SPEED_BITS)), exponent - _SPEED_BITS)


def _or_none(value: float) -> float | None:
    return None if value == math.inf else value


def _pair(batching: Batching) -> tuple[int, int]:
    return batching.local, batching.accumulated
