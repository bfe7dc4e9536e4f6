"""Synergy (OSDI'22), TUNE against OPT: how much of what is possible TUNE gets.

Mean JCT under FIFO on 4 nodes of 8 GPUs, 3 CPUs for each, where OPT solves an integer programme a round; single-GPU and
multi-GPU jobs, classes (20, 70, 10), the artifact's, and (33, 33, 33). Beside that single rounds: 16 nodes filled with
random jobs, sum of speeds over the bound of OPT's stage 1, which forgets that there are several servers. Which jobs and
cluster the paper compared them on is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from _synergy import (
    FULL_GPUS,
    MULTI,
    SINGLE,
    cluster,
    instance,
    jobs_of,
    outcome,
    split_name,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

import shadowprice as sp
from shadowprice.instances.clusters.cpu_memory import proportional_share
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.solvers.synergy.opt import choose
from shadowprice.solvers.synergy.servers import Demands, Servers
from shadowprice.solvers.synergy.synergy import MECHANISMS
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Figure,
    Others,
    Page,
    Published,
    Relation,
    Row,
    Size,
    Sized,
    main,
    ratio_by_seed,
    setting,
)

POLICIES = ("proportional", "tune", "opt")
ROUNDS, LOADS = "single round", "JCT"
JOBS_A_ROUND = 200
"""Jobs drawn for a round, of which those that fill the cluster are taken."""


@dataclass(frozen=True)
class Settings:
    """Loads, and single rounds."""

    splits: tuple[str, ...] = setting(
        ("20/70/10", "33/33/33"), "shares of image, language and speech models"
    )
    single_rates: tuple[float, ...] = setting(
        (6.0, 8.0, 9.0), "single-GPU jobs per hour on 128 GPUs"
    )
    multi_rates: tuple[float, ...] = setting((3.0, 4.0, 4.5), "multi-GPU jobs per hour on 128 GPUs")
    jobs: int = setting(320, "jobs of a run")
    gpus: int = setting(32, "GPUs of a run, in nodes of 8")
    seeds: int = setting(3, "number of seeds of runs, from 0")
    round_seeds: int = setting(20, "number of single rounds, from seed 0")


@dataclass(frozen=True)
class Point:
    """All three policies, in a run or in a single round."""

    part: str
    split: str
    trace: str
    jobs_per_hour: float
    jobs: int
    gpus: int
    seed: int


def points(settings: Settings) -> Iterator[Point]:
    """Single rounds first."""
    for split in settings.splits:
        for seed in range(settings.round_seeds):
            yield Point(ROUNDS, split, MULTI, 1.0, JOBS_A_ROUND, FULL_GPUS, seed)
    for split in settings.splits:
        for trace, rates in ((SINGLE, settings.single_rates), (MULTI, settings.multi_rates)):
            for rate in rates:
                for seed in range(settings.seeds):
                    yield Point(LOADS, split, trace, rate, settings.jobs, settings.gpus, seed)


def run(point: Point) -> list[Row]:
    """One row for each policy."""
    jobs = jobs_of(
        point.trace,
        point.split,
        point.jobs_per_hour,
        gpus=point.gpus,
        jobs=point.jobs,
        seed=point.seed,
    )
    found = _round(jobs, point.gpus) if point.part == ROUNDS else _jct_h(jobs, point.gpus)
    return [
        {
            "part": point.part,
            "split": point.split,
            "trace": point.trace,
            "jobs_per_hour": point.jobs_per_hour,
            "seed": point.seed,
            "policy": name,
            "value": value,
        }
        for name, value in found.items()
    ]


def _jct_h(jobs: sp.Workload, gpus: int) -> dict[str, float]:
    """Mean JCT of all jobs [h]."""
    given = instance(jobs, cluster(gpus))
    return {
        name: float(outcome(given, f"synergy-{name}:fifo").jct_s.mean()) / 3600.0
        for name in POLICIES
    }


def _round(drawn: sp.Workload, gpus: int) -> dict[str, float]:
    """Sum of speeds in a cluster filled with the first jobs, over the bound of stage 1."""
    where = cluster(gpus)
    full = int(np.searchsorted(np.cumsum(drawn.gpus), gpus, "right"))
    jobs = drawn.select(np.arange(full))
    profiles = Profiles.synthetic().of(jobs, where)
    demands = Demands(profiles, where.gpus_per_node, proportional_share(where))
    bound, found = 0.0, {}
    for name in POLICIES:
        servers = Servers(demands.size, demands.share)
        ask = demands.proportional if MECHANISMS[name].fair else demands.ask
        asks = [ask(job, gang) for job, gang in enumerate(jobs.gpus.tolist())]
        bound = bound or choose(asks, servers, demands).bound
        MECHANISMS[name].place(asks, servers, demands)
        speeds = (
            demands.profile_of(job).at(grant.cpus, grant.memory_gb)
            for job, grant in servers.held.items()
        )
        found[name] = float(sum(speeds)) / bound
    return found


def losses(table: pd.DataFrame, split: str, trace: str) -> dict[float, Estimate]:
    """Mean JCT with TUNE over that with OPT, by rate."""
    rows = table[(table["part"] == LOADS) & (table["split"] == split) & (table["trace"] == trace)]
    found = {}
    for rate, mine in rows.groupby("jobs_per_hour"):
        ratio = ratio_by_seed(mine, better="opt", than="tune", column="value")
        if ratio is not None:
            found[float(rate)] = ratio
    return found


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """TUNE over OPT by load, a panel for each trace; single rounds."""
    picture, every = page.grid(1, 3, 3.2)
    traces = {SINGLE: settings.single_rates, MULTI: settings.multi_rates}
    loads = table[table["part"] == LOADS]
    wide = loads.pivot_table(
        index=["split", "trace", "jobs_per_hour", "seed"],
        columns="policy",
        values="value",
        sort=False,
    ).reset_index()
    wide["ratio"] = wide["tune"] / wide["opt"]
    wide["name"] = wide["split"].map(split_name)
    names = [split_name(split) for split in settings.splits]
    for axes, trace in zip(every, traces, strict=False):
        mine = wide[wide["trace"] == trace]
        page.lines(axes, mine, x="jobs_per_hour", y="ratio", by="name", order=names)
        page.published_line(axes, 1.1, "published: within 10 %")
        axes.axhline(1.0, color="#555555", linewidth=0.6)
        axes.set(xlabel="jobs per hour on 128 GPUs", title=f"{trace}, FIFO")
    every[0].set_ylabel("mean JCT, TUNE / OPT")
    _draw_rounds(every[2], table[table["part"] == ROUNDS], settings)
    handles, labels = every[0].get_legend_handles_labels()
    more, names = every[2].get_legend_handles_labels()
    columns = 3 if page.width_in > 4 else 2
    picture.legend([*handles, *more], [*labels, *names], loc="outside lower center", ncols=columns)
    return picture


def _draw_rounds(axes: Axes, table: pd.DataFrame, settings: Settings) -> None:
    """Every round as a point, by split and policy."""
    for place, split in enumerate(settings.splits):
        for k, name in enumerate(POLICIES):
            rows = table[(table["split"] == split) & (table["policy"] == name)]["value"]
            at = place + 0.25 * (k - 1) + 0.15 * (np.arange(len(rows)) / max(len(rows), 1) - 0.5)
            colour = ("#0072B2", "#D55E00", "#009E73")[k]
            axes.plot(at, rows, ".", color=colour, markersize=4, label=name if not place else None)
    axes.set_xticks(range(len(settings.splits)), [split_name(split) for split in settings.splits])
    axes.set(ylabel="sum of speeds / bound of stage 1", title="single rounds", ylim=(None, 1.02))


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """TUNE over OPT in mean JCT by trace and split, and in single rounds."""
    said = []
    for trace in (SINGLE, MULTI):
        for split in settings.splits:
            found = losses(table, split, trace)
            values = ", ".join(f"{each.text()} at {rate:g}" for rate, each in found.items())
            said.append(f"{trace} {split_name(split)}: {values}")
    rounds = table[table["part"] == ROUNDS].pivot_table(
        index=["split", "seed"], columns="policy", values="value"
    )
    ratio = rounds["tune"] / rounds["opt"]
    return (
        f"Mean JCT with TUNE over that with OPT, FIFO, {settings.jobs} jobs on {settings.gpus} GPUs, {settings.seeds} "
        f"seeds, by jobs an hour on 128 GPUs. {'; '.join(said)}. Sum of speeds in {len(ratio)} single rounds, TUNE / "
        f"OPT: median {ratio.median():.3f}, least {ratio.min():.3f}."
    )


def largest_loss(split: str, trace: str) -> Callable[[pd.DataFrame], Estimate | None]:
    """Largest TUNE / OPT over the rates."""

    def found(table: pd.DataFrame) -> Estimate | None:
        by_rate = losses(table, split, trace)
        return max(by_rate.values(), key=lambda each: each.mean) if by_rate else None

    return found


PUBLISHED = tuple(
    Published(
        system="Synergy",
        place="OSDI'22, comparison with OPT",
        what=f"TUNE / OPT, mean JCT, {trace} FIFO, {split_name(split)}",
        value=1.1,
        unit="x",
        ours=largest_loss(split, trace),
        settings="320 jobs, 32 GPUs, the rate where it is largest",
        cause=Cause.NOT_PUBLIC,
        why="On which jobs and cluster TUNE was compared with OPT is not known.",
        claim="TUNE / OPT, mean JCT",
        relation=Relation.AT_MOST,
        others=lambda table, split=split, trace=trace: Others.over(
            losses(table, split, trace).values(), "loads"
        ),
    )
    for split in ("20/70/10", "33/33/33")
    for trace in (SINGLE, MULTI)
)

FIGURE = Figure(
    name="synergy_tune_vs_opt",
    paper="Synergy (OSDI'22), TUNE against OPT",
    sizes={
        Size.QUICK: Sized(
            Settings(single_rates=(9.0,), multi_rates=(4.5,), jobs=40, seeds=1, round_seeds=2),
            minutes=0.1,
        ),
        Size.DEFAULT: Sized(Settings(), minutes=8.0),
        Size.FULL: Sized(Settings(seeds=10, round_seeds=100), minutes=30.0),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=PUBLISHED,
)

if __name__ == "__main__":
    main(FIGURE)
