"""HadarE (arXiv 2503.10918), slot-time sweep: CRU, TTD and JCT against the length of a round.

The lab cluster of ``hadare_clusters.py`` with mix M-8. The paper's numbers are not known; it reports
that short rounds lose time to aggregation and long ones leave the tail unbalanced (recalled). Here a
restart costs 10 s and averaging copies, an assumption, 10 s for each round with several copies of a
job. Time spent on either counts as busy in CRU, hence 'useful' beside it: without overheads. Run:
``python paper_figs/hadar_round_length.py [--throughputs FILE]`` (a minute), ``--quick`` (seconds);
writes paper_figs/out/hadar_round_length.{csv,png}.
"""

import numpy as np
import pandas as pd
from _hadar import COLOUR_OF, RESTART_S, Scale, arguments, note, save, table
from _hadare import AGGREGATION_S, mix, systems_on
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

SYSTEMS = ("Hadar", "HadarE")
WHERE, JOBS = "lab", 8
SCALES = {
    Scale.QUICK: ((90.0, 360.0, 1440.0), 1),
    Scale.USUAL: ((45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 2880.0), 8),
    Scale.FULL: ((30.0, 45.0, 90.0, 180.0, 360.0, 720.0, 1440.0, 2880.0, 5760.0), 20),
}
"""Lengths of a round [s], draws of the jobs."""
PANELS = {"cru": "CRU [share of node time]", "ttd_h": "TTD [h]", "mean_jct_h": "mean JCT [h]"}


def draw(frame: pd.DataFrame) -> Figure:
    """Mean and 95 % intervals over the draws."""
    figure = Figure(figsize=(15, 4.4), layout="constrained")
    best = {}
    for axes, (column, label) in zip(figure.subplots(1, 3), PANELS.items(), strict=True):
        for name in SYSTEMS:
            mine = frame[frame["system"] == name].groupby("round_s")[column]
            mean, error = mine.mean(), 1.96 * mine.sem().fillna(0.0)
            axes.errorbar(
                mean.index,
                mean,
                yerr=error,
                marker="o",
                ms=3,
                lw=1.4,
                capsize=2,
                color=COLOUR_OF[name],
                label=name,
            )
            if column == "cru":
                useful = frame[frame["system"] == name].groupby("round_s")["useful"].mean()
                axes.plot(
                    useful,
                    ls="--",
                    lw=1.2,
                    color=COLOUR_OF[name],
                    label=f"{name}, without overheads",
                )
            best[name] = mean.idxmax() if column == "cru" else mean.idxmin()
        found = ", ".join(f"{name} {length:.0f} s" for name, length in best.items())
        note(axes, label.split(" [")[0], f"best here: {found}; the paper's numbers are not known")
        lengths = np.unique(frame["round_s"])
        axes.set(xlabel="length of a round [s]", ylabel=label, xscale="log")
        axes.set_ylim(0, 1.05 if column == "cru" else None)
        axes.xaxis.set_major_locator(FixedLocator(lengths.tolist()))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:.0f}"))
        axes.legend(frameon=False, fontsize=9, loc="lower left")
    figure.supxlabel(
        f"Lab cluster, mix M-{JOBS}, {frame['seed'].nunique()} draws of the jobs; a restart costs "
        f"{RESTART_S:.0f} s, averaging the copies of a job {AGGREGATION_S:.0f} s a round (assumed).",
        fontsize=8.5,
    )
    return figure


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    lengths, seeds = SCALES[given.scale]
    results = pd.DataFrame(
        [
            each
            for seed in range(seeds)
            for length in lengths
            for each in systems_on(
                WHERE,
                mix(JOBS, seed, WHERE, rates),
                SYSTEMS,
                {"seed": seed},
                aggregation_s=AGGREGATION_S,
                round_s=length,
            )
        ]
    )
    save(results, draw(results), "hadar_round_length")
