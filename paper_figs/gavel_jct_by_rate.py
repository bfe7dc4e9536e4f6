"""Gavel (OSDI'20), Figures 9 and 10: mean JCT against the rate of arrivals, single- and multi-GPU traces.

108 GPUs, 36 of each type; Poisson arrivals; mean JCT of the last fifth of the jobs, as the paper's
4,000 to 5,000. Published: Gavel's max-min fairness up to 3.5x better than heterogeneity-agnostic LAS
on continuous-single, 2.2x on continuous-multiple; space sharing 2.2x better than Gandiva's. Run:
``python paper_figs/gavel_jct_by_rate.py --throughputs FILE`` (minutes: 2,000 jobs, one seed, no space
sharing), ``--full`` (hours: 5,000 jobs, three seeds, space sharing), ``--quick`` (a minute: 24 GPUs
and their part of the rates, 120 jobs); writes paper_figs/out/gavel_jct_by_rate.{csv,png}.

What differs: other random jobs of the same law; allocations are computed at once, not 1,920 s late.
"""

from collections.abc import Iterator

import pandas as pd
from _gavel import Scale, arguments, cluster, lines, published, save, table
from matplotlib.figure import Figure

import shadowprice as sp

POLICIES = {
    "LAS": "gavel:max_min_fairness",
    "Gavel": "gavel:max_min_fairness_perf",
    "AlloX": "gavel:allox",
    "LAS + Gandiva sharing": "gavel:gandiva",
    "Gavel + sharing": "gavel:max_min_fairness_packed",
}
SHARING = ("LAS + Gandiva sharing", "Gavel + sharing")
SCALES = {
    Scale.QUICK: {"jobs": 120, "per_type": 8, "seeds": (0,), "rates": slice(-2, None)},
    Scale.USUAL: {"jobs": 2000, "per_type": 36, "seeds": (0,), "rates": slice(None)},
    Scale.FULL: {"jobs": 5000, "per_type": 36, "seeds": (0, 1, 2), "rates": slice(None)},
}
RATES = {"single": (2.0, 3.0, 4.0, 4.8, 5.6, 6.0), "multiple": (1.0, 1.5, 2.0, 2.4, 2.6, 2.8)}
"""Jobs per hour on 108 GPUs."""


def runs(scale: Scale, rates: sp.Throughputs) -> Iterator[dict[str, object]]:
    """One row for every trace, rate, seed and policy."""
    size = SCALES[scale]
    for trace, by_hour in RATES.items():
        for hourly in by_hour[size["rates"]]:
            for seed in size["seeds"]:
                jobs = sp.generate(
                    "gavel",
                    jobs=size["jobs"],
                    seed=seed,
                    single_gpu=trace == "single",
                    throughputs=rates,
                    jobs_per_hour=hourly * size["per_type"] / 36,
                )
                for label, policy in POLICIES.items():
                    if (label == "AlloX" and trace != "single") or (
                        label in SHARING and scale is Scale.USUAL
                    ):
                        continue
                    semantics = sp.Semantics(pair_throughputs=rates, seed=seed)
                    outcome = sp.simulate(jobs, cluster(size["per_type"]), policy, semantics)
                    mean_s = outcome.jct_s[len(jobs) * 4 // 5 :].mean()
                    yield {
                        "trace": trace,
                        "jobs_per_hour": hourly,
                        "seed": seed,
                        "policy": label,
                        "jct_h": mean_s / 3600,
                    }


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    frame = pd.DataFrame(runs(given.scale, table(given.throughputs)))
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, name, factor in zip(figure.subplots(1, 2), RATES, (3.5, 2.2), strict=True):
        mine = frame[frame["trace"] == name]
        lines(axes, mine, "jobs_per_hour", "jct_h", list(POLICIES))
        mean = mine.pivot_table(index="jobs_per_hour", columns="policy", values="jct_h")
        ours = (mean["LAS"] / mean["Gavel"]).max()
        published(
            axes, f"continuous-{name}", f"LAS / Gavel: up to {ours:.2f}x here, published {factor}x"
        )
        axes.set(xlabel="jobs per hour (on 108 GPUs)", ylabel="mean JCT [h]", ylim=(0, None))
    save(frame, figure, "gavel_jct_by_rate")
