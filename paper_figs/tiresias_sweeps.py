"""Tiresias (NSDI'19), Figures 14 and 15: thresholds, number of queues, and PROMOTEKNOB.

Mean, median and 95th percentile of Tiresias-L's JCT against K = 2 with a threshold of one hour and no
promotion. Published, on a large trace: K = 3 and 4 are only 1 % better, half an hour is slightly
worse, and from one hour on the threshold hardly matters. Here on the testbed's mix of 480 jobs,
or, with ``--philly FILE``, on the first 20,000 jobs of the Philly trace on 64 nodes of 8 GPUs.
Run: ``python paper_figs/tiresias_sweeps.py`` (a minute; ``--quick`` seconds); writes
paper_figs/out/tiresias_sweeps.{csv,png}.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from _tiresias import OUT, STATISTICS, arguments, note, outcome, panels, statistics
from matplotlib.figure import Figure

import shadowprice as sp

HOUR = 3600.0
HOURS = (0.25, 0.5, 1.0, 2.0, 4.0)
QUEUES = {"2: 1 h": (1.0,), "3: 1, 2 h": (1.0, 2.0), "4: 1, 2, 4 h": (1.0, 2.0, 4.0)}
KNOBS = (1.0, 2.0, 4.0, 8.0, 16.0, np.inf)
PHILLY_CLUSTER = "64x8"
COLOURS = dict(zip(STATISTICS, ("#0072B2", "#E69F00", "#009E73"), strict=True))


def settings() -> list[tuple[str, str, str]]:
    """Panel, value and policy of every run."""
    found = [("threshold", f"{h:g}", policy((h,))) for h in HOURS]
    found += [("queues", label, policy(limits)) for label, limits in QUEUES.items()]
    return found + [("knob", f"{knob:g}", policy((1.0,), knob)) for knob in KNOBS]


def policy(hours: tuple[float, ...], knob: float = np.inf) -> str:
    """2D-LAS with thresholds in hours of one GPU."""
    limits = "/".join(f"{h * HOUR:g}" for h in hours)
    return f"las2d:thresholds_gpu_s={limits},promote_knob={knob:g}"


def results(traces: Mapping[int, sp.Workload], cluster: str) -> pd.DataFrame:
    """JCTs of every setting on every trace."""
    rows = []
    for seed, jobs in traces.items():
        known: dict[str, tuple[float, float, float]] = {}
        for panel, value, chosen in settings():
            if chosen not in known:
                known[chosen] = statistics(outcome(jobs, cluster, chosen, "count").jct_s)
            values = dict(zip(STATISTICS, known[chosen], strict=True))
            rows.append({"seed": seed, "panel": panel, "value": value, **values})
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, what: str) -> Figure:
    """One panel a sweep."""
    figure, row = panels(3, 12, 4)
    base = table[(table["panel"] == "threshold") & (table["value"] == "1")].set_index("seed")
    names = {
        "threshold": "threshold of K = 2 [GPU-h]",
        "queues": "queues and thresholds [GPU-h]",
        "knob": "PROMOTEKNOB at K = 2, 1 GPU-h",
    }
    for axes, (panel, label) in zip(row, names.items(), strict=True):
        part = table[table["panel"] == panel]
        for statistic in STATISTICS:
            wide = part.pivot_table(index="seed", columns="value", values=statistic, sort=False)
            relative = wide.div(base[statistic], axis=0)
            axes.plot(
                relative.columns, relative.mean(), "o-", color=COLOURS[statistic], label=statistic
            )
        axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=0)
        axes.set_xlabel(label)
        axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
        axes.set_ylabel("JCT / that of K = 2, 1 GPU-h, no promotion")
    row[0].legend(frameon=False, loc="lower right")
    figure.suptitle(f"Thresholds, queues and promotion of Tiresias-L: {what}", x=0.01, ha="left")
    note(
        figure,
        "Published on a larger trace: K = 3, 4 within 1 % of K = 2; half an hour slightly worse; flat "
        "from one hour on. Small jobs decide the median, so it follows the threshold most.",
    )
    return figure


def main() -> None:
    given = arguments(__doc__, philly=True)
    if given.philly:
        jobs = sp.load(given.philly)
        most = 2000 if given.quick else given.first
        traces = {0: jobs.select(np.arange(len(jobs)) < most)}
        cluster, what = PHILLY_CLUSTER, f"first {most:,} Philly jobs, 512 GPUs"
    else:
        traces = {
            seed: sp.generate("tiresias", seed=seed) for seed in range(1 if given.quick else 10)
        }
        cluster, what = "15x4", f"480 jobs of the testbed's mix, 60 GPUs, seeds: {len(traces)}"
    OUT.mkdir(exist_ok=True)
    table = results(traces, cluster)
    table.to_csv(OUT / "tiresias_sweeps.csv", index=False, float_format="%.6g")
    draw(table, what).savefig(OUT / "tiresias_sweeps.png", dpi=150)
    print(table.groupby(["panel", "value"], sort=False)[list(STATISTICS)].mean().round(0))


if __name__ == "__main__":
    main()
