"""Gavel (OSDI'20), Figure 11: finish-time fairness, multi-GPU trace: mean JCT by rate, distribution of rho.

rho of a job is its JCT over what it would have been in an isolated share: its steps over the mean
throughput it would have had with 1/n of every GPU type, n being the mean number of jobs present
while it was there (the paper divides by the time in isolation of Themis' definition). Published:
mean JCT 3x and mean rho 2.8x better than the agnostic policy at 2.6 jobs per hour. Run:
``python paper_figs/gavel_finish_time_fairness.py --throughputs FILE`` (minutes), ``--quick`` (a
minute), ``--full``; writes paper_figs/out/gavel_finish_time_fairness.{csv,png}.
"""

import numpy as np
import pandas as pd
from _gavel import COLOURS, Scale, arguments, cluster, lines, published, save, table
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.analysis.run_metrics import finish_time_fairness

POLICIES = {
    "FTF, agnostic": "gavel:finish_time_fairness",
    "FTF, Gavel": "gavel:finish_time_fairness_perf",
}
SCALES = {
    Scale.QUICK: (80, 8, (0,), (2.6,)),
    Scale.USUAL: (1000, 36, (0,), (1.5, 2.0, 2.6)),
    Scale.FULL: (5000, 36, (0, 1, 2), (1.0, 1.5, 2.0, 2.4, 2.6, 2.8)),
}
"""Jobs, GPUs of each type, seeds, jobs per hour on 108 GPUs."""


def rho(outcome: sp.Outcome) -> np.ndarray:
    """Finish-time fairness of every job, shape (jobs,)."""
    return finish_time_fairness(outcome.instance, outcome.jct_s)


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    count, per_type, seeds, by_hour = SCALES[given.scale]
    rows, last = [], {}
    for hourly in by_hour:
        for seed in seeds:
            trace = sp.generate(
                "gavel",
                jobs=count,
                seed=seed,
                throughputs=rates,
                jobs_per_hour=hourly * per_type / 36,
            )
            for label, policy in POLICIES.items():
                outcome = sp.simulate(
                    trace, cluster(per_type), policy, sp.Semantics(pair_throughputs=rates)
                )
                window = slice(count * 4 // 5, None)
                fairness = rho(outcome)[window]
                if hourly == 2.6:
                    last.setdefault(label, []).append(fairness)
                rows.append(
                    {
                        "policy": label,
                        "jobs_per_hour": hourly,
                        "seed": seed,
                        "jct_h": outcome.jct_s[window].mean() / 3600,
                        "rho": fairness.mean(),
                    }
                )
    frame = pd.DataFrame(rows)
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    lines(left, frame, "jobs_per_hour", "jct_h", list(POLICIES))
    left.set(xlabel="jobs per hour (on 108 GPUs)", ylabel="mean JCT [h]", ylim=(0, None))
    for colour, (label, parts) in zip(COLOURS, last.items(), strict=False):
        values = np.sort(np.concatenate(parts))
        right.plot(values, (np.arange(len(values)) + 1) / len(values), color=colour, label=label)
    right.set(xlabel="rho at 2.6 jobs per hour", ylabel="share of jobs", xlim=(0, None))
    right.spines[["top", "right"]].set_visible(False)
    mean = frame[frame["jobs_per_hour"] == 2.6].groupby("policy")[["jct_h", "rho"]].mean()
    factor = mean.loc["FTF, agnostic"] / mean.loc["FTF, Gavel"]
    published(
        left, "finish-time fairness", f"JCT at 2.6/h: {factor['jct_h']:.2f}x here, published 3x"
    )
    published(right, "its distribution", f"mean rho: {factor['rho']:.2f}x here, published 2.8x")
    save(frame, figure, "gavel_finish_time_fairness")
