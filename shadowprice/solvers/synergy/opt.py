"""Synergy-OPT: the integer programme and the placement LP of ``models/synergy.py``, and their rounding.

Before stage 1, points that another of the same profile beats are dropped: with no more CPUs and no more
memory it is at least as fast, so putting it in its place in any solution keeps every constraint and
does not lower the objective. So are points below the speed at the proportional share, which the
floor forbids, and those of which no server can give a single GPU. Jobs with the same profile and
gang are one kind; any solution by kinds can be dealt out to the jobs and back.

Stage 2 is solved by simplex, so its solution is a vertex: at most as many positive x as rows, K + 3 s.
Whole jobs go where x puts them, and so do parts that are whole GPUs. What is left are at most 3 s
jobs: kind k with f_k > 0 fractional x has fewer than f_k jobs left, and the sum of f_k - 1 over these
kinds is at most (K + 3 s) - K.

Rounding differs from the published code. There a fractional job gets min(demand, share) where that
fits, and failing that 1 CPU and 25 GB a GPU that others may hold as well. Here sums of a server
are hard: such a job gets what stage 1 chose if that fits, else its share, and jobs that hold
more than theirs are cut down for it, as under TUNE. So nobody is below the share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.clusters.cpu_memory import CpuMemory
from shadowprice.instances.names import Names
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.models import synergy
from shadowprice.solvers.placement.protocol import Pieces, in_turn
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.programs.published import falls_back
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.solvers.synergy.servers import (
    ROUNDING,
    Demands,
    ResourceRequest,
    ServerGrant,
    Servers,
    share_speed,
)
from shadowprice.solvers.synergy.tune import Tune

INTEGRAL = 1e-6
"""How far from a whole number of jobs or GPUs counts as whole."""


@dataclass(frozen=True)
class ChosenRequests:
    """Result of stage 1: requests with the CPUs and memory that were chosen, their value and bound.

    Parameters
    ----------
    asks : tuple of ResourceRequest
        CPUs and memory of every job.
    value, bound : float
        Sum of speeds, and what no choice can beat.
    points, undominated : int
        Points of all jobs' profiles, and those left after dropping.
    """

    asks: tuple[ResourceRequest, ...]
    value: float
    bound: float
    points: int
    undominated: int

    @property
    def gap(self) -> float:
        """(bound - value) / value."""
        return (self.bound - self.value) / max(self.value, 1e-12)


Stage1: TypeAlias = Callable[[synergy.Choices], Any]
"""A model with the variable y of :func:`shadowprice.models.synergy.super_server`."""


@dataclass(frozen=True)
class Opt:
    """The mechanism: both stages for all jobs of a round.

    Jobs that come within a round are placed as under TUNE.

    Parameters
    ----------
    relative_gap : float
        When stage 1 may stop.
    time_limit_s : float
        Wall time of a solve [s].
    model : callable
        Stage 1; see :func:`choose`.
    """

    relative_gap: float = 1e-4
    time_limit_s: float = 60.0
    model: Stage1 = synergy.super_server
    fair: bool = field(default=False, init=False)
    skips: bool = field(default=False, init=False)

    def place(self, asks: Sequence[ResourceRequest], servers: Servers, demands: Demands) -> None:
        """Place all of some jobs; beside those that hold servers already, if there are any."""
        if servers.held or not asks:
            Tune().place(asks, servers, demands)
            return
        options = SolverOptions(time_limit_s=self.time_limit_s, relative_gap=self.relative_gap)
        chosen = choose(asks, servers, demands, options, self.model)
        left = place_chosen(chosen.asks, servers, self.time_limit_s)
        Tune().place(left, servers, demands)


def choose(
    asks: Iterable[ResourceRequest],
    servers: Servers,
    demands: Demands,
    options: SolverOptions | None = None,
    model: Stage1 = synergy.super_server,
) -> ChosenRequests:
    """Stage 1 for these jobs on all servers.

    Parameters
    ----------
    model : callable
        The programme. One that is not as published is given all points of the profiles, also
        those that others beat.

    Raises
    ------
    SolverError
        If nothing was found in time.
    """
    members: dict[tuple[Profile, int], list[int]] = defaultdict(list)
    for ask in asks:
        members[demands.profile_of(ask.job), ask.gpus].append(ask.job)
    kinds = list(members)
    largest = int(servers.size.max())
    every = falls_back(model, "it is given all points, not only those that none beats")
    points_of = all_points if every else undominated
    tables = [points_of(p, servers.share, largest) for p, _ in kinds]
    points, lengths = np.concatenate(tables), [len(table) for table in tables]
    kind = np.repeat(np.arange(len(kinds)), lengths)
    data = _choices(members, kind, points, servers, demands)
    built: Any = model(data)
    compiled = compile_model(built)
    found = compiled.solve(options or SolverOptions(relative_gap=1e-4))
    if not len(found.primal):
        raise SolverError("Synergy-OPT: stage 1 found no choice in time")
    counts = np.rint(compiled.value(found, built.y)).astype(np.int64)
    asked: list[ResourceRequest] = []
    for number, (_, gpus) in enumerate(kinds):
        rows = np.repeat(np.flatnonzero(kind == number), counts[kind == number])
        for job, row in zip(members[kinds[number]], rows.tolist(), strict=True):
            asked.append(ResourceRequest(job, gpus, float(points[row, 0]), float(points[row, 1])))
    sizes = [p.speed.size * len(members[p, g]) for p, g in kinds]
    kept = sum(length * len(members[each]) for length, each in zip(lengths, kinds, strict=True))
    return ChosenRequests(tuple(asked), found.objective, found.bound, sum(sizes), kept)


def _choices(
    members: Mapping[tuple[Profile, int], list[int]],
    kind: NDArray[np.int64],
    points: NDArray[np.float64],
    servers: Servers,
    demands: Demands,
) -> synergy.Choices:
    floor = [share_speed(profile, servers.share) for profile, _ in members]
    total = int(servers.size.sum())
    return synergy.Choices(
        jobs=np.array([len(jobs) for jobs in members.values()]),
        gpus=np.array([gpus for _, gpus in members]),
        floor=np.array(floor),
        kind=kind,
        cpus=points[:, 0],
        memory_gb=points[:, 1],
        speed=points[:, 2],
        total=(total * servers.share[0], total * servers.share[1]),
        kind_names=kind_names(members),
    )


def kind_names(kinds: Iterable[tuple[Profile, int]]) -> list[str]:
    """Names of kinds by profile and gang, such as ``resnet18-2gpu``; another of that name ends in ``.1``."""
    seen: Counter[str] = Counter()
    names = []
    for profile, gpus in kinds:
        name = f"{profile.name or 'profile'}-{gpus}gpu"
        names.append(f"{name}.{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def all_points(profile: Profile, share: CpuMemory, gpus: int) -> NDArray[np.float64]:
    """Points (CPUs, memory, speed) of a profile that the largest server can give one GPU."""
    cpus, memory = np.meshgrid(profile.cpus_per_gpu, profile.memory_gb_per_gpu, indexing="ij")
    fits = (cpus <= share[0] * gpus + ROUNDING) & (memory <= share[1] * gpus + ROUNDING)
    return np.stack([cpus[fits], memory[fits], profile.speed[fits]], axis=1)


def undominated(profile: Profile, share: CpuMemory, gpus: int) -> NDArray[np.float64]:
    """Points (CPUs, memory, speed) that no other of the profile beats, at least as fast as the share.

    Parameters
    ----------
    gpus : int
        GPUs of the largest server: what it cannot give one GPU is left out.

    Returns
    -------
    ndarray, shape (points, 3)
    """
    cpus, memory = np.meshgrid(profile.cpus_per_gpu, profile.memory_gb_per_gpu, indexing="ij")
    speed = profile.speed
    # Speeds do not fall along either axis: a point is beaten exactly if the one before on an axis
    # is as fast.
    beaten = np.zeros(speed.shape, dtype=bool)
    beaten[1:] |= speed[1:] <= speed[:-1]
    beaten[:, 1:] |= speed[:, 1:] <= speed[:, :-1]
    kept = ~beaten & (speed >= share_speed(profile, share))
    kept &= (cpus <= share[0] * gpus + ROUNDING) & (memory <= share[1] * gpus + ROUNDING)
    return np.stack([cpus[kept], memory[kept], speed[kept]], axis=1)


def place_chosen(
    asks: Sequence[ResourceRequest], servers: Servers, time_limit_s: float = 60.0
) -> list[ResourceRequest]:
    """Stage 2: hold what its vertex places whole; returns the at most 3 s jobs that it does not.

    Raises
    ------
    SolverError
        If no vertex was found in time.
    """
    members: dict[tuple[int, float, float], list[ResourceRequest]] = defaultdict(list)
    for ask in asks:
        members[ask.gpus, ask.cpus, ask.memory_gb].append(ask)
    kinds = list(members)
    x = _vertex(kinds, [len(members[each]) for each in kinds], servers, time_limit_s)
    left: list[ResourceRequest] = []
    for number, key in enumerate(kinds):
        left += _deal(members[key], x[:, number], servers)
    return left


def _vertex(
    kinds: list[tuple[int, float, float]], jobs: list[int], servers: Servers, time_limit_s: float
) -> NDArray[np.float64]:
    """x, shape (servers, kinds)."""
    gpus, cpus, memory = np.array(kinds).T
    model = synergy.placement(
        Names.numbered("server", len(servers.size)), Names.numbered("kind", len(kinds))
    )
    compiled = compile_model(
        model,
        {
            "g": gpus,
            "c": cpus * gpus,
            "w": memory * gpus,
            "n": np.array(jobs, dtype=np.float64),
            "G": servers.size.astype(np.float64),
            "C": servers.size * servers.share[0],
            "M": servers.size * servers.share[1],
        },
    )
    found = compiled.solve(SolverOptions(method="highs-simplex", time_limit_s=time_limit_s))
    if not len(found.primal):
        raise SolverError(f"Synergy-OPT: stage 2 found no placement in {time_limit_s} s")
    return np.clip(compiled.value(found, model.x), 0.0, None)


def _deal(
    asks: list[ResourceRequest], x: NDArray[np.float64], servers: Servers
) -> list[ResourceRequest]:
    """Hold jobs of one kind as x says where that is whole jobs or whole GPUs; returns the others.

    x is right to the solver's tolerance only: what would overstep a server by it is left out.
    """
    whole = np.floor(x + INTEGRAL).astype(np.int64)
    waiting = list(asks)
    for server in np.flatnonzero(whole).tolist():
        for _ in range(int(whole[server])):
            if waiting and _all_fit(servers, waiting[-1], ((server, waiting[-1].gpus),)):
                ask = waiting.pop()
                servers.hold(ask.job, ServerGrant(((server, ask.gpus),), ask.cpus, ask.memory_gb))
    if not waiting:
        return []
    slots = (x - whole) * waiting[0].gpus
    parts = np.rint(slots).astype(np.int64)
    if np.abs(slots - parts).max() > 10 * INTEGRAL or parts.sum() < len(waiting) * waiting[0].gpus:
        return waiting
    spare = {server: int(parts[server]) for server in np.flatnonzero(parts > 0).tolist()}
    left = []
    for ask in waiting:
        pieces = _from_spare(spare, ask.gpus)
        if _all_fit(servers, ask, pieces):
            servers.hold(ask.job, ServerGrant(pieces, ask.cpus, ask.memory_gb))
        else:
            left.append(ask)
    return left


def _from_spare(spare: dict[int, int], gpus: int) -> Pieces:
    """Take GPUs from servers in turn; what is taken is no longer spare."""
    pieces = in_turn(spare, spare, gpus)
    for server, part in pieces:
        spare[server] -= part
    return pieces


def _all_fit(servers: Servers, ask: ResourceRequest, pieces: Pieces) -> bool:
    return all(servers.slots(server, ask.cpus, ask.memory_gb) >= gpus for server, gpus in pieces)
