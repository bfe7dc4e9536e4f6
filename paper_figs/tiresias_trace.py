"""Tiresias (NSDI'19), Table 5 and Figure 13: a large trace, JCTs normalised to Tiresias-L.

With ``--philly FILE`` the Philly trace, 82,247 jobs in 16 weeks, on 64 nodes of 8 GPUs: load 0.73
(its own cluster of some 300 nodes never has a queue when it is one pool; the published queues came
of its virtual clusters and of a trace of which a sample of GPU times is public). Without it a generated trace of
Gavel's law at load 0.8 on 64 GPUs. K = 2, threshold one GPU-hour.
Run: ``python paper_figs/tiresias_trace.py --philly philly_flat.csv.xz`` (minutes for the first
20,000 jobs, long for all with ``--first 82247``: Gandiva turns every minute; without a file, or with
``--quick``, seconds); writes paper_figs/out/tiresias_trace.{csv,png}.
"""

import numpy as np
import pandas as pd
from _tiresias import OUT, SCHEDULERS, STATISTICS, arguments, note, panels, scheduler_row
from matplotlib.figure import Figure

import shadowprice as sp

LIMIT_GPU_S = 3600
PUBLISHED = {
    "YARN-CS": (2.41, 30.85, 1.25),
    "Best-effort": (1.50, 9.03, 1.08),
    "SRTF": (1.00, 1.00, 0.84),
    "Gandiva": (2.00, 2.59, 2.08),
    "Tiresias-G": (0.97, 1.00, 0.85),
    "Tiresias-L": (1.0, 1.0, 1.0),
}
"""Mean, median, 95th percentile."""


def results(jobs: sp.Workload, cluster: str) -> pd.DataFrame:
    """JCTs of every scheduler, and against Tiresias-L."""
    table = pd.DataFrame(
        [scheduler_row(label, jobs, cluster, LIMIT_GPU_S) for label in SCHEDULERS]
    ).set_index("scheduler")
    for k, statistic in enumerate(STATISTICS):
        table[f"{statistic}_normalised"] = table[statistic] / table.loc["Tiresias-L", statistic]
        table[f"{statistic}_published"] = [PUBLISHED[label][k] for label in table.index]
    return table


def draw(table: pd.DataFrame, what: str) -> Figure:
    """Ours beside the published, one panel a statistic."""
    figure, row = panels(len(STATISTICS), 14, 4.2)
    for axes, statistic in zip(row, STATISTICS, strict=True):
        at = np.arange(len(table))
        for shift, kind, colour in ((-0.2, "normalised", "#0072B2"), (0.2, "published", "#D55E00")):
            values = table[f"{statistic}_{kind}"]
            axes.bar(at + shift, values, 0.4, color=colour, label="ours" if shift < 0 else kind)
            for x, value in zip(at + shift, values, strict=True):
                axes.annotate(f"{value:.2f}", (x, value), ha="center", va="bottom", fontsize=6)
        axes.set_xticks(at, table.index, rotation=30, ha="right", fontsize=8)
        if statistic == "median":  # Spans a factor of 30 as published.
            axes.set_yscale("log")
            axes.set_ylim(0.3, 2 * max(50.0, table["median_normalised"].max()))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.minorticks_off()
        axes.set_ylabel(f"{statistic} JCT / that of Tiresias-L")
    row[0].legend(frameon=False, loc="upper right")
    figure.suptitle(f"Large trace: {what}", x=0.01, ha="left")
    note(
        figure,
        "Of the published trace a sample of GPU times is public: ours has other loads and durations, "
        "so that its queues, and the factors with them, differ; preemption is free to all, as there.",
    )
    return figure


def main() -> None:
    given = arguments(__doc__, philly=True)
    if given.philly:
        jobs, cluster = sp.load(given.philly), "64x8"
        most = 2000 if given.quick else given.first
        jobs = jobs.select(np.arange(len(jobs)) < most)
        what = f"first {len(jobs):,} Philly jobs, 512 GPUs in one pool"
    else:
        jobs = sp.generate(
            "gavel", jobs=1000 if given.quick else 5000, seed=0, load=0.8, gpus_total=64
        )
        cluster, what = "8x8", f"{len(jobs):,} generated jobs (Gavel's law, load 0.8), 64 GPUs"
    OUT.mkdir(exist_ok=True)
    table = results(jobs, cluster)
    table.to_csv(OUT / "tiresias_trace.csv", float_format="%.6g")
    draw(table, what).savefig(OUT / "tiresias_trace.png", dpi=150)
    print(table[[f"{s}_{k}" for s in STATISTICS for k in ("normalised", "published")]].round(2).T)


if __name__ == "__main__":
    main()
