"""HadarE (arXiv 2503.10918): CRU, TTD and JCT on two clusters of five nodes, by workload mix.

Mixes M-1 to M-12 have as many jobs as their name says, all there at 0. Published: CRU 1.45x, TTD
-50 % on AWS and -80 % in the lab (abstract; beside which scheduler, and in which mix, is not recalled).
Run: ``python paper_figs/hadare_clusters.py [--throughputs FILE]`` (a minute), ``--quick`` (seconds),
``--full`` (20 draws of the jobs); writes paper_figs/out/hadare_clusters.{csv,png}.

Assumed by us: one GPU a node; the lab's types are recalled with low confidence, of AWS' only V100 and
T4 are. Rates: V100 and K80 as measured by Gavel, the others in proportion to a GPU's peak FP32
beside a V100's. Jobs take turns at five models and are 0.5 to 4 h long on a V100, log-uniform; the
published mixes' weather model was not measured on any of these GPUs and is left out. Averaging
the copies of a job costs 10 s a round.
"""

import numpy as np
import pandas as pd
from _hadar import COLOUR_OF, Scale, arguments, note, save, table
from _hadare import AGGREGATION_S, CLUSTERS, MIXES, mix, systems_on
from matplotlib.axes import Axes
from matplotlib.figure import Figure

SYSTEMS = ("Gavel", "Hadar", "HadarE")
PUBLISHED_TTD = {"AWS": "-50 %", "lab": "-80 %"}
SCALES = {Scale.QUICK: (MIXES[:3], 1), Scale.USUAL: (MIXES, 8), Scale.FULL: (MIXES, 20)}
"""Mixes, draws of each."""
PANELS = {"cru": "CRU [share of node time]", "ttd_h": "TTD [h]", "mean_jct_h": "mean JCT [h]"}


def grouped(axes: Axes, mean: pd.DataFrame) -> None:
    """Bars of the systems, side by side for every mix."""
    places = np.arange(len(mean))
    for number, name in enumerate(SYSTEMS):
        axes.bar(places + 0.27 * (number - 1), mean[name], 0.25, color=COLOUR_OF[name], label=name)
    axes.set_xticks(places, [f"M-{jobs}" for jobs in mean.index])


def said(column: str, where: str, mean: pd.DataFrame) -> str:
    """What a panel shows beside the published factor."""
    by_mix = {name: mean["HadarE"] / mean[name] for name in ("Gavel", "Hadar")}
    if column == "cru":
        parts = [f"{ratio.mean():.2f}x {name}'s" for name, ratio in by_mix.items()]
        return f"HadarE: {', '.join(parts)}, mean of mixes; published 1.45x"
    parts = [
        f"{100 * (ratio.min() - 1):+.0f} to {100 * (ratio.max() - 1):+.0f} % beside {name}"
        for name, ratio in by_mix.items()
    ]
    published = f"; published {PUBLISHED_TTD[where]}" if column == "ttd_h" else ""
    return f"HadarE: {', '.join(parts)}{published}"


def most(where: str) -> str:
    """The largest cut of the TTD there can be, where one job alone runs."""
    speeds = np.array([speed for _, speed in CLUSTERS[where]])
    return f"{100 * (speeds.max() / speeds.sum() - 1):.0f} %"


def draw(frame: pd.DataFrame) -> Figure:
    """A row a cluster, a column a metric."""
    figure = Figure(figsize=(15, 8), layout="constrained")
    for axes_row, (where, mine) in zip(
        figure.subplots(len(CLUSTERS), len(PANELS)),
        frame.groupby("cluster", sort=False),
        strict=True,
    ):
        for axes, (column, label) in zip(axes_row, PANELS.items(), strict=True):
            mean = mine.pivot_table(index="jobs", columns="system", values=column)
            grouped(axes, mean)
            note(axes, f"{where}: {label.split(' [')[0]}", said(column, str(where), mean))
            axes.set(xlabel="mix (number of jobs)", ylabel=label)
    figure.axes[1].legend(frameon=False, fontsize=9, loc="upper left")
    limits = ", ".join(f"about {most(where)} ({where})" for where in CLUSTERS)
    figure.supxlabel(
        "Five nodes of one GPU; GPU types and rates partly assumed, see the head of the script.\n"
        f"The most a job alone can gain, all nodes beside the fastest one, is {limits} of TTD.\n"
        "With more jobs than nodes hardly a node is idle until the last "
        "jobs, and HadarE gains the tail only.",
        fontsize=8.5,
    )
    return figure


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    mixes, seeds = SCALES[given.scale]
    results = pd.DataFrame(
        [
            each
            for where in CLUSTERS
            for jobs in mixes
            for seed in range(seeds)
            for each in systems_on(
                where,
                mix(jobs, seed, where, rates),
                SYSTEMS,
                {"jobs": jobs, "seed": seed},
                aggregation_s=AGGREGATION_S,
            )
        ]
    )
    save(results, draw(results), "hadare_clusters")
