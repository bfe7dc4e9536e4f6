"""Setting of A-SRPT's experiments, for the figures beside this file.

Source: Luo, Liu, Lee, Shroff (INFOCOM'25, arXiv 2501.05563), whose body could not be read: settings and
numbers of its experiments are not known, the baselines are known by name. Ours: recurrent jobs in the manner
of Alibaba's PAI (:mod:`shadowprice.instances.generators.recurrent`) that train published models, on nodes of 8
GPUs with 300 GB/s inside and a NIC of 12.5 GB/s, V100-like GPUs at 40 % of 15.7 TFLOP/s. Work is in
iterations; how long one takes depends on where the replicas are.

The objective of the paper's Theorem 1 is total completion time, the sum of the times at which jobs end; mean JCT
leaves out the times of arrival, which no scheduler can change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.generators.recurrent import GANG_SHARES
from shadowprice.instances.graphs.generated_graphs import workload_graphs
from shadowprice.instances.graphs.network import Network
from shadowprice.instances.objective import Objective
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.studies.figures import Page, Row, require_known

MODELS = ("resnet-50", "vgg-19", "bert-large", "gpt-2-medium", "gpt-2-xl", "t5-base")
GANGS = (1, 2, 4, 8, 16)
GPUS_PER_NODE = 8

STRICT, STRETCHED = "A-SRPT", "A-SRPT stretched"
EARLY, OVERTAKING = "A-SRPT early", "A-SRPT early, overtaking"
OURS = {
    STRICT: "asrpt",
    STRETCHED: "asrpt:stretch=1.25",
    EARLY: "asrpt-early",
    OVERTAKING: "asrpt-early:overtake=true",
}
"""The algorithm of the theorem, and with options of ours: ``solvers/asrpt/asrpt.py``."""

BASELINES = {
    "SPJF": "spjf",
    "SPWF": "spwf",
    "WCS-Duration": "wcs-duration",
    "WCS-Workload": "wcs-workload",
    "WCS-SubTime": "wcs-subtime",
}
POLICIES = {**OURS, **BASELINES}
ANY = "any scheduler"
"""Name of the certified lower bound among the policies."""

COLOUR = dict(
    zip(
        (*POLICIES, ANY),
        (
            "#0072B2",
            "#56B4E9",
            "#009E73",
            "#000000",
            "#E69F00",
            "#CC79A7",
            "#882255",
            "#999999",
            "#D55E00",
            "#AA0000",
        ),
        strict=True,
    )
)


@dataclass(frozen=True)
class Scenario:
    """Network, jobs and knowledge under which all policies are compared.

    Parameters
    ----------
    title : str
    nic_gb_per_s : float
    placement : str
        Of the baselines; A-SRPT has its own, Heavy-Edge.
    predictor : str
        Of all policies.
    gang_shares : mapping, optional
        Shares of groups of jobs by gang size; by default all are equally frequent.
    """

    title: str
    nic_gb_per_s: float = 12.5
    placement: str = "heavy-edge"
    predictor: str = "oracle"
    gang_shares: Mapping[int, float] | None = None


SCENARIOS = {
    "fast-nic": Scenario("NIC of 12.5 GB/s"),
    "slow-nic": Scenario("NIC of 0.3 GB/s", nic_gb_per_s=0.3, placement="first-fit"),
    "pai-gangs": Scenario("PAI-like gangs", gang_shares=GANG_SHARES),
    "forest": Scenario("predicted by the forest", predictor="forest"),
}
"""With the slow NIC the baselines are placed first-fit."""


def scenario(name: str) -> Scenario:
    """A scenario by name.

    Raises
    ------
    InputError
        If there is none of this name.
    """
    require_known("scenario", (name,), SCENARIOS)
    return SCENARIOS[name]


def network(nic_gb_per_s: float = 12.5) -> Network:
    """The network of the setting, with another NIC if wanted."""
    return Network(300e9, nic_gb_per_s * 1e9, GPUS_PER_NODE)


@cache
def seconds_per_iteration(of: Network) -> dict[tuple[str, int], float]:
    """Shortest time of an iteration of every kind of job [s]."""
    pairs = [(model, gang) for model in MODELS for gang in GANGS]
    every = sp.Workload.from_columns(
        arrival_s=[0.0] * len(pairs),
        gpus=[g for _, g in pairs],
        work=[1.0] * len(pairs),
        model=[m for m, _ in pairs],
    )
    graphs = workload_graphs(every, of)
    shortest = graphs.shortest_iteration_s[graphs.of].tolist()
    return dict(zip(pairs, shortest, strict=True))


def trace(
    jobs: int,
    load: float,
    gpus: int,
    seed: int,
    of: Network,
    gang_shares: Mapping[int, float] | None = None,
) -> sp.Workload:
    """Recurrent jobs that ask for a share of the cluster's time, counted in their best placements."""
    return sp.generate(
        "recurrent",
        jobs=jobs,
        seed=seed,
        load=load,
        gpus_total=gpus,
        kinds=seconds_per_iteration(of),
        gang_shares=gang_shares,
    )


def outcome(jobs: sp.Workload, gpus: int, policy: str, of: Network, **settings: str) -> sp.Outcome:
    """One verified run on nodes of 8 GPUs."""
    if gpus < GPUS_PER_NODE or gpus % GPUS_PER_NODE:
        raise InputError(f"gpus is {gpus}, expected whole nodes of {GPUS_PER_NODE} GPUs")
    run_options = sp.RunOptions(network=of, **settings)
    return sp.simulate(jobs, f"{gpus // GPUS_PER_NODE}x{GPUS_PER_NODE}", policy, run_options)


def rows_of(
    under: Scenario, policies: Mapping[str, str], jobs: sp.Workload, gpus: int
) -> list[Row]:
    """Mean JCT and total completion time of each policy, and the least that any scheduler could have [s].

    Parameters
    ----------
    policies : mapping of str to str
        Label to policy; those in :data:`BASELINES` have the scenario's placement.
    """
    rows: list[Row] = []
    for label, name in policies.items():
        placement = under.placement if label in BASELINES else "heavy-edge"
        of = network(under.nic_gb_per_s)
        done = outcome(jobs, gpus, name, of, predictor=under.predictor, placement=placement)
        rows.append(_row(label, float(done.jct_s.mean()), float(done.end_s.sum())))
    least_s = {
        goal: max(bound.value_s for bound in simple_bounds(done.instance, goal))
        for goal in (Objective.FLOW, Objective.COMPLETION)
    }
    mean_s = least_s[Objective.FLOW] / len(jobs)
    return [*rows, _row(ANY, mean_s, least_s[Objective.COMPLETION])]


def _row(policy: str, jct_s: float, total_completion_s: float) -> Row:
    return {"policy": policy, "jct_s": jct_s, "total_completion_s": total_completion_s}


def relative(table: pd.DataFrame, column: str, by: list[str]) -> pd.DataFrame:
    """The table with ``ratio``: a column over its least among the baselines of the same instance.

    Parameters
    ----------
    by : list of str
        Columns that tell instances apart.
    """
    baselines = table[table["policy"].isin(list(BASELINES))]
    best = baselines.groupby(by)[column].min().rename("best").reset_index()
    joined = table.merge(best, on=by, how="left")
    return joined.assign(ratio=joined[column] / joined["best"])


def draw_ratios(page: Page, axes: Axes, table: pd.DataFrame, x: str) -> None:
    """Lines of ``ratio``: ours solid with intervals, baselines dashed, the bound dotted."""
    every = [name for name in (*BASELINES, *OURS, ANY) if name in set(table["policy"])]
    page.lines(axes, table, x=x, y="ratio", by="policy", order=every, colours=COLOUR)
    for name, container in zip(every, axes.containers, strict=True):
        line, caps, bars = container.lines
        if name not in OURS:
            # Ten intervals at a place would hide one another.
            container.has_yerr = False
            for part in (*caps, *bars):
                part.set_visible(False)
        if name in BASELINES:
            line.set(linestyle="--", linewidth=0.9, marker="s", markersize=2.5)
        elif name == ANY:
            line.set(linestyle=":", marker="")
    axes.axhline(1.0, color="#555555", linewidth=0.6, zorder=0)


def log_axis(axes: Axes, values: Iterable[float]) -> None:
    """A logarithmic y axis with round ticks around some values."""
    numbers = np.array([value for value in values if np.isfinite(value)])
    low, high = numbers.min() / 1.1, numbers.max() * 1.1
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    coarse = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0]
    shown = [step for step in coarse if low <= step <= high]
    fine = [step / 20 for step in range(2, 61)]
    axes.set_yticks(shown if len(shown) > 2 else [step for step in fine if low <= step <= high])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
