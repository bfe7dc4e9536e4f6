"""Setting of Synergy's experiments (OSDI'22), for the figures beside this file.

Source: Mohan et al., OSDI'22, by its public artifact (github.com/msr-fiddle/synergy, ``ae-readme.md`` and the
simulator; read). Nodes of 8 GPUs, 24 CPUs and 500 GB; rounds of 300 s; work is run time with a GPU-proportional
share; JCT is that of the jobs 4,000 to 4,999, and jobs arrive until these are complete. Stopping and moving are free.

Single-GPU jobs are the artifact's own, run as its simulator runs them with its tables of speeds
(``generate synergy-published``, preset ``synergy``, published/synergy_profiles.json). Its gangs of several GPUs
come from Microsoft's log and are not drawn: here they are of the same law
(:mod:`shadowprice.instances.generators.synergy`), with profiles made from what is published of the models.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.execution.engine import Rounds, run
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.profiles import Profiles
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.registry import policy
from shadowprice.studies.figures import Estimate, Page, ratio_by_seed

ROUND_S = 300.0
GPUS_PER_NODE = 8
MEMORY_GB = 500
FULL_GPUS = 128
"""Rates of arrivals are given for a cluster of so many."""

ANY = "any scheduler"
"""Name of the certified lower bound among the policies."""

UP_TO = 3.4
"""Largest factor over proportional shares, published in the abstract."""

UP_TO_CLAIM = "proportional / TUNE, mean JCT, up to"
"""Claim that Figures 8 and 9 are both measurements of."""

COLOUR = {"proportional": "#D55E00", "tune": "#0072B2", ANY: "#AA0000"}

PROFILES = Path(__file__).parent / "published" / "synergy_profiles.json"
"""The artifact's tables of speeds for one GPU."""

FIRST, LAST = 4_000, 5_000
"""Jobs that the artifact measures, the last not among them."""

PRESET_POLICIES = {"proportional": "FIFO+fair", "tune": "FIFO+tune"}
"""Names of the artifact's policies."""

SINGLE, MULTI = "single-GPU", "multi-GPU"
"""Gangs of one GPU; gangs of 1, 2, 4 and 8 GPUs, 70, 10, 15 and 5 %."""


def cluster(gpus: int, cpus_per_gpu: int = 3) -> sp.Cluster:
    """Nodes of the setting.

    Raises
    ------
    InputError
        If they are no whole nodes.
    """
    if gpus < GPUS_PER_NODE or gpus % GPUS_PER_NODE:
        raise InputError(f"gpus is {gpus}, expected whole nodes of {GPUS_PER_NODE} GPUs")
    cpus = GPUS_PER_NODE * cpus_per_gpu
    return sp.Cluster.parse(f"{gpus // GPUS_PER_NODE}x{GPUS_PER_NODE}+{cpus}cpu+{MEMORY_GB}gb")


def class_shares(split: str) -> tuple[float, float, float]:
    """Shares of image, language and speech models, from their text as in ``20/70/10``.

    Raises
    ------
    InputError
        If these are not three numbers.
    """
    try:
        image, language, speech = (float(part) for part in split.split("/"))
    except ValueError:
        raise InputError(
            f"split is {split!r}, expected shares of image, language and speech as in 20/70/10"
        ) from None
    return image, language, speech


def split_name(split: str) -> str:
    """``20/70/10`` as the paper writes it, (20, 70, 10)."""
    return f"({split.replace('/', ', ')})"


def jobs_of(
    trace: str, split: str, jobs_per_hour: float, *, gpus: int, jobs: int, seed: int
) -> sp.Workload:
    """Jobs of the setting; the rate is that on 128 GPUs.

    Parameters
    ----------
    trace : {"single-GPU", "multi-GPU"}
    split : str
        As :func:`class_shares` reads it.

    Raises
    ------
    InputError
        If the trace has another name, or a number is out of range.
    """
    if trace not in (SINGLE, MULTI):
        raise InputError(f"trace is {trace!r}, expected {SINGLE} or {MULTI}")
    return sp.generate(
        "synergy",
        jobs=jobs,
        seed=seed,
        single_gpu=trace == SINGLE,
        jobs_per_hour=jobs_per_hour * gpus / FULL_GPUS,
        class_shares=class_shares(split),
    )


@cache
def published_profiles() -> Profiles:
    """The artifact's tables."""
    return Profiles.load(PROFILES)


def artifact_jobs(split: str, jobs_per_hour: float, *, jobs: int, seed: int) -> sp.Workload:
    """The artifact's jobs of one GPU; those behind its numbers have seed 42."""
    return sp.generate(
        "synergy-published",
        jobs=jobs,
        seed=seed,
        jobs_per_hour=jobs_per_hour,
        class_shares=class_shares(split),
    )


def artifact_outcome(jobs: sp.Workload, gpus: int, mechanism: str) -> sp.Outcome:
    """One verified run as the artifact's simulator runs it, under FIFO."""
    options = sp.RunOptions(preset="synergy", profiles=published_profiles())
    return sp.simulate(jobs, cluster(gpus), PRESET_POLICIES[mechanism], options)


def instance(jobs: sp.Workload, where: sp.Cluster, profiles: Profiles | None = None) -> Instance:
    """Jobs with the profiles of their models; by default those made from what is published of them."""
    chosen = Profiles.synthetic() if profiles is None else profiles
    return Instance(where, jobs, sensitivity=chosen.of(jobs, where))


def outcome(given: Instance, name: str) -> sp.Outcome:
    """One verified run."""
    done = run(given, policy(name), rounds=Rounds(ROUND_S))
    return sp.Outcome.verified(
        given,
        done.schedule,
        policy=name,
        settings={"round_s": ROUND_S, "preemptive": True},
        decisions=done.decisions,
        cpu_s=done.cpu_s,
    )


def measured(jobs: int) -> slice:
    """Jobs whose JCT counts: the artifact's, or of a shorter trace those from 2/3 to 5/6."""
    if jobs >= LAST:
        return slice(FIRST, LAST)
    return slice(2 * jobs // 3, max(5 * jobs // 6, 2 * jobs // 3 + 1))


def jct_h(of: sp.Outcome, jobs: slice) -> dict[str, float]:
    """Mean and percentiles of the JCT of some jobs [h]."""
    hours: NDArray[np.float64] = of.jct_s[jobs] / 3600.0
    p99, p999 = np.percentile(hours, (99.0, 99.9))
    return {"jct_h": float(hours.mean()), "p99_h": float(p99), "p999_h": float(p999)}


def least_jct_h(
    jobs: sp.Workload, where: sp.Cluster, rows: slice, profiles: Profiles | None = None
) -> float:
    """Certified lower bound of the mean JCT of some jobs under any scheduler [h].

    It is that of the cluster with these jobs alone: their part of a schedule of all jobs is a schedule of them.
    """
    few = np.arange(len(jobs))[rows]
    alone = instance(jobs.select(few), where, profiles)
    least_s = max(bound.value_s for bound in simple_bounds(alone, Objective.FLOW))
    return least_s / len(few) / 3600.0


def factors_by(table: pd.DataFrame, by: str) -> dict[Any, Estimate]:
    """Mean JCT with proportional shares over that with TUNE, by the entries of a column."""
    found = {}
    for at, rows in table.groupby(by, sort=False):
        factor = ratio_by_seed(rows, better="tune", than="proportional", column="jct_h")
        if factor is not None:
            found[at] = factor
    return found


def most_possible(table: pd.DataFrame) -> float:
    """Largest factor that any scheduler could have over proportional shares; mean over the runs."""
    rows = table[table["policy"] == "proportional"]
    return float((rows["jct_h"] / rows["least_h"]).mean())


def draw_lines(page: Page, axes: Axes, table: pd.DataFrame, x: str) -> None:
    """Mean JCT of both mechanisms, and its bound dotted."""
    names = ("proportional", "tune", ANY)
    mine = with_bound(table)
    page.lines(axes, mine, x=x, y="jct_h", by="policy", order=names, colours=COLOUR)
    line, caps, bars = axes.containers[-1].lines
    axes.containers[-1].has_yerr = False
    line.set(linestyle=":", marker="")
    for part in (*caps, *bars):
        part.set_visible(False)


def with_bound(table: pd.DataFrame) -> pd.DataFrame:
    """The table, and the bound of each run as a row of one more policy."""
    rows = table[table["policy"] == table["policy"].iloc[0]]
    return pd.concat([table, rows.assign(policy=ANY, jct_h=rows["least_h"])], ignore_index=True)
