"""The setting of Gavel's experiments (OSDI'20, section 7.1), for the figures beside this file.

Clusters of V100, P100 and K80 GPUs; jobs of the published generator, run by the published simulator's
semantics (preset ``gavel``). Rates are those of the published table (``shadowprice data
gavel-simulation-throughputs``). Where a figure is only tried out, a made-up table stands for it: rates that
the paper's repository prints of one job type for each family, gangs 0.9 times as fast a GPU each time they
double, and two jobs that share GPUs at 65 % of their own speed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

import shadowprice as sp
from shadowprice.analysis.plots.style import GREY, colour_of
from shadowprice.errors import AbandonedRunError, EarlyEndError, InputError
from shadowprice.execution.job_window import cut_schedule, window_end_s
from shadowprice.instances.generators.gavel_published import JOB_TYPES
from shadowprice.instances.speeds.throughputs import Kind
from shadowprice.studies.figures import Page
from shadowprice.studies.figures.results import read_table
from shadowprice.studies.presets.gavel.record import GavelSimulation
from shadowprice.studies.presets.gavel.simulator import simulate_gavel

TYPES = ("v100", "p100", "k80")
PAPER_SEEDS = (0, 1, 2)
"""Seeds of the authors' runs (recalled)."""

FAMILIES = {
    "ResNet-18": (17.995, 11.675, 1.807),
    "ResNet-50": (2.497, 1.584, 0.347),
    "Transformer": (8.618, 5.092, 1.752),
    "LM": (64.74, 58.17, 17.14),
    "Recommendation": (7.176, 5.681, 3.439),
    "A3C": (7.176, 5.681, 3.439),
    "CycleGAN": (4.426, 2.403, 0.505),
}
"""Steps per second of a job of each family on one V100, P100, K80; Recommendation's are A3C's."""

GANGS = (1, 2, 4, 8)
PUBLISHED = Path(__file__).parent / "published"


def table(path: Path | None) -> sp.Throughputs:
    """The published table, its types in a fixed order, or the made-up one if no file is given."""
    return _made_up() if path is None else _read(path)


def rates(path: Path | None, *, made_up: bool) -> sp.Throughputs:
    """As :func:`table`, but the made-up one only if that is asked for.

    Raises
    ------
    InputError
        If the published one is needed and not given.
    """
    if path is None and not made_up:
        raise InputError(
            "this figure needs --throughputs FILE, Gavel's simulation_throughputs.json: "
            "`shadowprice data gavel-simulation-throughputs` gets it and prints its path"
        )
    return table(path)


@cache
def _read(path: Path) -> sp.Throughputs:
    full = sp.load_throughputs(path)
    columns = [full.gpu_types.index(name) for name in TYPES]
    alone = {kind: tuple(found[c] for c in columns) for kind, found in full.alone.items()}
    together = {key: found for key, found in full.pairs.items() if key[0] in TYPES}
    return sp.Throughputs(TYPES, alone, together, full.source)


@cache
def _made_up() -> sp.Throughputs:
    alone: dict[Kind, tuple[float, ...]] = {
        (model, gang): tuple(
            rate * gang * 0.9 ** (gang.bit_length() - 1)
            for rate in FAMILIES[model.partition(" (")[0]]
        )
        for model in JOB_TYPES
        for gang in GANGS
    }
    together = {
        (name, one, other): (0.65 * alone[one][k], 0.65 * alone[other][k])
        for k, name in enumerate(TYPES)
        for one in alone
        for other in alone
        if one[1] == other[1]
    }
    return sp.Throughputs(TYPES, alone, together, "a made-up table of rates")


def cluster(per_type: int) -> str:
    """Nodes of 4 GPUs, ``per_type`` GPUs of each type."""
    return ",".join(f"{per_type // 4}x4:{name}" for name in TYPES)


def servers(gpus_per_type: int) -> str:
    """A cluster of servers with one GPU, as the published simulator has them by default."""
    return ",".join(f"{gpus_per_type}x1:{name}" for name in TYPES)


class WindowPoint(Protocol):
    """Fields of a point that is measured over a window of jobs, while others go on to arrive."""

    @property
    def rate(self) -> float:
        """Jobs per hour."""

    @property
    def seed(self) -> int:
        """Seed of the published generator and simulator."""

    @property
    def first_job(self) -> int:
        """First job of the window."""

    @property
    def last_job(self) -> int:
        """First job after the window."""

    @property
    def gpus_per_type(self) -> int:
        """GPUs of each type."""

    @property
    def give_up_h(self) -> float:
        """Time at which a run ends in any case [h]."""

    @property
    def throughputs(self) -> Path | None:
        """Published table."""

    @property
    def made_up(self) -> bool:
        """True if a made-up table may stand for it."""


@dataclass(frozen=True, eq=False)
class WindowRun:
    """A run that ended when a window of jobs was complete, or dropped by the published simulator.

    Parameters
    ----------
    instance : Instance
        Jobs that had arrived by then.
    jct_s : ndarray, shape (n,)
        Completion minus arrival [s]; infinity of jobs that were not complete.
    rows : slice
        The window.
    arrived : int
        Jobs that had arrived.
    end_s : float
        When the window was complete [s].
    """

    instance: sp.Instance
    jct_s: NDArray[np.float64]
    rows: slice
    arrived: int
    end_s: float

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Jobs of the window that are complete; the others were dropped."""
        return np.isfinite(self.jct_s[self.rows])

    @property
    def mean_jct_h(self) -> float:
        """Mean JCT of the jobs of the window that are complete [h], as the published simulator has it."""
        return float(self.jct_s[self.rows][self.complete].mean()) / 3600.0


def published_jobs(point: WindowPoint, *, single_gpu: bool) -> sp.EndlessWorkload:
    """The published generator's jobs of a point, without end."""
    return sp.endless(
        "gavel-published",
        seed=point.seed,
        jobs_per_hour=point.rate,
        single_gpu=single_gpu,
        throughputs=rates(point.throughputs, made_up=point.made_up),
    )


def window_jobs(point: WindowPoint, *, single_gpu: bool) -> sp.Workload:
    """The jobs of a window alone."""
    first = published_jobs(point, single_gpu=single_gpu).first(point.last_job)
    return first.select(np.arange(point.first_job, point.last_job))


def over_window(point: WindowPoint, policy: str, *, single_gpu: bool) -> WindowRun | None:
    """Run a published policy until the jobs of a window are complete; None if it was given up before.

    The published simulator drops a gang that has fewer steps left than GPUs, after five tries. Where it
    drops one of the window, the schedule of the complete jobs is verified, else the whole.
    """
    jobs = published_jobs(point, single_gpu=single_gpu)
    window = sp.JobWindow(point.first_job, point.last_job, latest_s=3600.0 * point.give_up_h)
    where = sp.Cluster.parse(servers(point.gpus_per_type))
    count = 4 * window.last
    while True:
        instance = sp.Instance(where, jobs.first(count), until_complete=window)
        try:
            found = simulate_gavel(instance, policy, seed=point.seed)
            break
        except EarlyEndError:
            count *= 2
        except AbandonedRunError:
            return None
    end_s = np.array([found.end_s.get(job, np.inf) for job in instance.workload.id.tolist()])
    ends = end_s[window.rows][np.isfinite(end_s[window.rows])]
    there = instance.workload.arrival_s < ends.max()
    came = replace(instance, workload=instance.workload.select(there))
    if len(ends) == window.last - window.first:
        sp.verify(came, cut_schedule(found.schedule, window_end_s(found.schedule, window)))
    else:
        verify_completed(instance, found)
    jct_s = end_s[there] - came.workload.arrival_s
    return WindowRun(came, jct_s, window.rows, int(there.sum()), float(ends.max()))


def verify_completed(instance: sp.Instance, found: GavelSimulation) -> None:
    """Verify the schedule of the jobs that are complete."""
    keep = np.isin(instance.workload.id, list(found.end_s))
    row_of, schedule = np.cumsum(keep) - 1, found.schedule
    mine = keep[schedule.job]
    columns = ("node", "gpus", "start_s", "end_s", "overhead_s")
    rows = {name: getattr(schedule, name)[mine] for name in columns}
    completed = replace(instance, workload=instance.workload.select(keep), until_complete=None)
    sp.verify(completed, sp.Schedule(row_of[schedule.job[mine]], **rows))


def published_curves(page: Page, axes: Axes, points: pd.DataFrame, policies: Sequence[str]) -> None:
    """Draw published points of policies in the policies' colours, with one entry in the legend."""
    for place, name in enumerate(policies):
        drawn = points[points.policy == name]
        if len(drawn):
            style = {"colour": colour_of(place), "marker": "x"}
            page.published_curve(axes, drawn.x, drawn.y, "_published", **style)
    page.published_curve(axes, [], [], "published", colour=GREY, marker="x")


def curves(name: str) -> pd.DataFrame:
    """Points of a published picture: columns ``curve``, ``x``, ``y``."""
    return read_table(PUBLISHED / f"{name}.csv")
