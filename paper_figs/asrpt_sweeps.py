"""A-SRPT against the baselines over load, cluster size, noise, bandwidth and theta.

The published sweeps (Figures 6 to 9) could not be read; these are of the same kind. Mean JCT over
that of the best baseline, below 1 is better. ``asrpt`` is the algorithm of the theorem: no job starts
before its virtual completion, which costs it at every load; ``asrpt-early`` may start jobs before,
``+ overtake`` lets them pass those that do not fit, as the WCS baselines do, and gives up the
guarantee. Run: ``python paper_figs/asrpt_sweeps.py`` (minutes), ``--quick``; writes
paper_figs/out/asrpt_sweeps.{csv,png}.
"""

from collections.abc import Iterator

import pandas as pd
from _asrpt import arguments, lines, network, run, save, titled, trace
from matplotlib.figure import Figure

POLICIES = {
    "asrpt": "asrpt",
    "asrpt-early": "asrpt-early",
    "asrpt-early + overtake": "asrpt-early:overtake=true",
    "spjf": "spjf",
    "spwf": "spwf",
    "wcs-duration": "wcs-duration",
    "wcs-workload": "wcs-workload",
    "wcs-subtime": "wcs-subtime",
}
OURS = ("asrpt", "asrpt-early", "asrpt-early + overtake")
USUAL = {"load": 0.9, "gpus": 64, "noise": 0.0, "nic": 12.5, "theta": 1.5}
SWEEPS = {
    "load": (0.6, 0.7, 0.8, 0.9, 1.0),
    "gpus": (32, 64, 128, 256),
    "noise": (1.0, 1.5, 2.0, 4.0, 8.0),
    "nic": (3.125, 6.25, 12.5, 25.0),
    "theta": (1.0, 1.25, 1.5, 2.0),
}
WHY = (
    "The best baseline is chosen for each instance. asrpt waits for its virtual\n"
    "machine, which outruns the cluster: its queue then is first come, first served."
)
LABELS = {
    "load": "load",
    "gpus": "GPUs",
    "noise": "predictions off by up to this factor",
    "nic": "NIC [GB/s]",
    "theta": "theta",
}


def point(sweep: str, value: float, jobs: int, seeds: range) -> Iterator[dict[str, object]]:
    """All policies at one value of one parameter, the others as usual."""
    at = USUAL | {sweep: value}
    of = network(at["nic"])
    guess = f"noisy:{at['noise']:g}" if at["noise"] else "forest"
    for seed in seeds:
        work = trace(jobs, at["load"], int(at["gpus"]), seed, of)
        for label, name in POLICIES.items():
            joint = "," if ":" in name else ":"
            policy = f"{name}{joint}theta={at['theta']}" if label in OURS else name
            settings = {"predictor": guess, "placement": "heavy-edge"}
            mean_s = run(work, int(at["gpus"]), policy, of, **settings).jct_s.mean()
            yield {"sweep": sweep, "value": value, "seed": seed, "policy": label, "jct_s": mean_s}


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    jobs, seeds = (150, range(1)) if given.quick else (2_000, range(3))
    frame = pd.DataFrame(
        row
        for sweep, values in SWEEPS.items()
        for value in (values[::3] if given.quick else values)
        for row in point(sweep, value, jobs, seeds)
    )
    where = ["sweep", "value", "seed"]
    baselines = frame[~frame["policy"].isin(OURS)].groupby(where)["jct_s"].min()
    frame["relative"] = frame["jct_s"] / frame.set_index(where).index.map(baselines)
    figure = Figure(figsize=(15, 7), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for axes, sweep in zip(panels, SWEEPS, strict=False):
        mine = frame[frame["sweep"] == sweep]
        lines(axes, mine, "value", "relative")
        best = mine[mine["policy"] == OURS[2]].groupby("value")["relative"].mean()
        text = f"asrpt-early + overtake: {best.min():.2f} to {best.max():.2f} of the best baseline"
        titled(axes, f"over {LABELS[sweep]}", text)
        axes.axhline(1.0, color="#444444", lw=0.8, ls=":")
        axes.set(xlabel=LABELS[sweep], ylabel="mean JCT / best baseline", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
    panels[-1].set_axis_off()
    panels[-1].legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="center")
    panels[-1].text(
        0.5, 0.0, WHY, ha="center", va="bottom", fontsize=8, transform=panels[-1].transAxes
    )
    save(frame, figure, "asrpt_sweeps")
