"""Sia (``sia``): a configuration for every job by an integer programme, GPUs in powers of two or whole nodes.

Source: Jayaram Subramanya et al., Sia: Heterogeneity-aware, Goodput-optimized ML-cluster Scheduling, SOSP 2023
(recalled); its artifact (github.com/siasosp23/artifacts, ``sia-simulator/sia.py``; read).
In each round the goodput of each job in each configuration that it may have, by Pollux' model fitted to what it has
seen, is divided by its least, multiplied by the factor of a restart unless the job runs on as many GPUs now, and raised
to p; ``models/sia.py`` chooses. A job begins on one GPU and may double what it has run on. Whoever keeps its number of
GPUs keeps its nodes, unless others do not fit beside it.

Guarantee: what the programme chooses can be placed where all nodes have the same power of two of GPUs: largest first,
powers of two fill nodes without gaps. Elsewhere who finds no place waits. None on completion times is known.
Complexity: a programme of jobs x configurations columns a round.
Knows: nothing of durations, and of speeds what was measured. Preempts. The term ``goodput`` has one GPU type, which is
then the only one of the programme. Jobs with run times instead of goodput keep their gangs; whoever fits starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError, SolverError
from shadowprice.solvers.goodput_jobs import GoodputJobs
from shadowprice.solvers.knowledge import Knowledge
from shadowprice.solvers.placement.protocol import Pieces
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.pollux.agents import Agents
from shadowprice.solvers.pollux.pollux import decided
from shadowprice.solvers.pollux.speed_model import best_batch
from shadowprice.solvers.pollux.speed_ups import ElasticJob, restart_factor

if TYPE_CHECKING:
    from shadowprice.models.sia import JobConfigurations

LARGEST_LOSS = 3000.0
"""No configuration counts as worse."""


@dataclass(frozen=True)
class Sia:
    """Sia's scheduler.

    Parameters
    ----------
    power : float
        p, below 0: the lower, the fairer.
    waits : float
        lambda, the loss of a job that waits; that of a job at its least goodput is 1.
    round_s : float
        Time after which it decides again [s].
    restart_s : float
        Time without progress that it counts for a start [s].
    time_limit_s : float
        Wall time of a round's programme [s].
    """

    power: float = -0.5
    waits: float = 1.1
    round_s: float = 60.0
    restart_s: float = 30.0
    time_limit_s: float = 10.0
    name: ClassVar[str] = "sia"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not (-10 <= self.power < 0 and self.waits >= 1 and self.round_s > 0 <= self.restart_s):
            raise InputError(
                f"{self.name}: power {self.power!r}, waits {self.waits!r}, round_s {self.round_s!r}, restart_s "
                f"{self.restart_s!r}; expected a power of -10 to below 0, waits >= 1, and seconds, the first > 0"
            )

    def decide(self, state: State) -> Decision:
        """Choose a configuration for every job, and place all."""
        return decided(state, Agents, self._pieces, self.round_s)

    def _pieces(
        self, state: State, goodput: GoodputJobs, agents: Agents, jobs: list[int]
    ) -> Mapping[int, Pieces]:
        return places(state, self._chosen(state, goodput, agents, jobs))

    def _chosen(
        self, state: State, goodput: GoodputJobs, agents: Agents, jobs: list[int]
    ) -> dict[int, int]:
        """GPUs of each job by the programme, 0 for those that wait."""
        from shadowprice.models import sia
        from shadowprice.solvers.programs.compile import compile_model
        from shadowprice.solvers.programs.solution import SolverOptions

        data = self._configurations(state, goodput, agents, jobs)
        model = sia.build(data)
        compiled = compile_model(model)
        options = SolverOptions(time_limit_s=self.time_limit_s, relative_gap=1e-4, confirm=False)
        found = compiled.solve(options)
        if not len(found.primal):
            raise SolverError("Sia: no configurations of the round were found in time")
        taken = np.rint(compiled.value(found, model.component("x"))).astype(bool)
        width = dict.fromkeys(jobs, 0)
        for row, gpus in zip(data.job[taken].tolist(), data.gpus[taken].tolist(), strict=True):
            width[jobs[row]] = gpus
        return width

    def _configurations(
        self, state: State, goodput: GoodputJobs, agents: Agents, jobs: list[int]
    ) -> JobConfigurations:
        from shadowprice.models.sia import JobConfigurations

        job: list[int] = []
        gpus: list[int] = []
        loss: list[float] = []
        for row, each in enumerate(jobs):
            elastic = agents.job(state, goodput, each, state.up_gpus)
            widths = np.array(
                [w for w in configurations(goodput.node_gpus, state.up_gpus) if w <= elastic.most]
            )
            value = _goodput(elastic, widths, goodput.node_gpus)
            held = sum(count for _, count in state.running.get(each, ()))
            factor = restart_factor(elastic, self.restart_s) if held else 1.0
            scale = np.where(widths == held, 1.0, factor) * value / value.min()
            with np.errstate(divide="ignore"):
                lost = np.minimum(scale**self.power, LARGEST_LOSS)
            job += [row] * len(widths)
            gpus += widths.tolist()
            loss += lost.tolist()
        pool = np.zeros(len(job), dtype=np.int64)
        capacity = np.array([state.up_gpus])
        return JobConfigurations(
            np.array(job), pool, np.array(gpus), np.array(loss), capacity, len(jobs), self.waits
        )


def configurations(node_gpus: int, gpus: int) -> list[int]:
    """Widths that jobs may have on some GPUs: powers of two within a node, and whole nodes."""
    powers = [1 << k for k in range(node_gpus.bit_length()) if 1 << k < node_gpus]
    return [width for width in powers if width <= gpus] + list(
        range(node_gpus, gpus + 1, node_gpus)
    )


def _goodput(job: ElasticJob, widths: NDArray[np.int64], node_gpus: int) -> NDArray[np.float64]:
    """Goodput that a job expects at some widths; 1 each before its first run, the least positive one where it is 0."""
    if job.theta is None:
        return np.ones(len(widths))
    found = best_batch(job.theta, job.noise, job.limits, widths > node_gpus, widths).goodput
    least = found[found > 0].min(initial=np.inf)
    return np.asarray(np.where(found > 0, found, least if np.isfinite(least) else 1.0))


def places(state: State, width: dict[int, int]) -> dict[int, Pieces]:
    """Nodes of jobs with these widths on the nodes that are up; see :func:`spread_out`."""
    free = state.free_gpus_by_node()
    for pieces in state.running.values():
        for node, gpus in pieces:
            free[node] += gpus
    return spread_out(width, free, state.running)


def spread_out(
    width: dict[int, int], free: list[int], held: Mapping[int, Pieces]
) -> dict[int, Pieces]:
    """Nodes of jobs: as before where the width is, the others largest first; all anew if one finds no place so.

    O(jobs x nodes). A job that does not fit is left out.

    Parameters
    ----------
    free : list of int
        GPUs of each node.
    held : mapping of int to pieces
        Nodes that jobs hold now.
    """
    same = {
        job: held[job] for job in width if sum(n for _, n in held.get(job, ())) == width[job] > 0
    }
    order = sorted((job for job in width if width[job]), key=lambda job: (-width[job], job))
    for keeps in (same, {}):
        room, rows = list(free), dict(keeps)
        for pieces in keeps.values():
            for node, gpus in pieces:
                room[node] -= gpus
        for job in order:
            if job not in rows:
                found = _place(room, width[job], max(free))
                if found:
                    rows[job] = found
        if len(rows) == len(order):
            break
    return rows


def _place(room: list[int], gpus: int, node_gpus: int) -> Pieces:
    """Whole nodes, or the fullest node with room; taken from ``room``. Empty if there is none."""
    whole, rest = divmod(gpus, node_gpus)
    if whole:
        nodes = [node for node, free in enumerate(room) if free == node_gpus][:whole]
        if rest or len(nodes) < whole:
            return ()
    else:
        fits = [node for node, free in enumerate(room) if free >= gpus]
        nodes = [min(fits, key=lambda node: (room[node], node))] if fits else []
    taken = node_gpus if whole else gpus
    for node in nodes:
        room[node] -= taken
    return tuple((node, taken) for node in nodes)


POLICIES = (Sia(),)
