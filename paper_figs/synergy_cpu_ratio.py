"""Synergy (OSDI'22), the CPU:GPU ratio: what TUNE gains with 3 to 6 CPUs for each GPU.

128 GPUs, multi-GPU jobs under SRTF and FIFO. As in the public simulator, a job's work is its run time with the
share of the cluster it runs on: with 6 CPUs as long as with 3, and less to gain. Published: the
gain shrinks with the ratio (recalled; no numbers known). Run: ``python paper_figs/synergy_cpu_ratio.py``
(minutes), ``--quick`` (seconds: 160 jobs on 32 GPUs); writes paper_figs/out/synergy_cpu_ratio.{csv,png}.
"""

from collections.abc import Iterator

import pandas as pd
from _synergy import (
    FULL_GPUS,
    arguments,
    cluster,
    gains,
    instance,
    lines,
    measured_jct_h,
    outcome,
    save,
    titled,
)
from matplotlib.figure import Figure

import shadowprice as sp

RATIOS = (3, 4, 5, 6)
ORDERS = ("fifo", "srtf")
POLICIES = ("proportional", "tune")
JOBS_PER_HOUR = 4.0


def runs(jobs: int, gpus: int) -> Iterator[dict[str, object]]:
    """One row for every ratio, order and policy."""
    work = sp.generate("synergy", jobs=jobs, jobs_per_hour=JOBS_PER_HOUR * gpus / FULL_GPUS)
    for ratio in RATIOS:
        given = instance(work, cluster(gpus, ratio))
        for order in ORDERS:
            for policy in POLICIES:
                jct_h = measured_jct_h(outcome(given, f"synergy-{policy}:{order}")).mean()
                yield {"cpus_per_gpu": ratio, "order": order, "policy": policy, "jct_h": jct_h}


def draw(frame: pd.DataFrame, what: str) -> Figure:
    """JCT under each order."""
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    for axes, order in zip(figure.subplots(1, len(ORDERS)), ORDERS, strict=True):
        mine = frame[frame["order"] == order]
        lines(axes, mine, "cpus_per_gpu", "jct_h", POLICIES)
        found = gains(mine, ["cpus_per_gpu"])
        said = ", ".join(f"{row.gain:.2f}x" for row in found.itertuples())
        titled(
            axes, order.upper(), f"proportional / tune: {said}\npublished: shrinks with the ratio"
        )
        axes.set(xlabel="CPUs per GPU", ylabel="mean JCT [h]", xticks=RATIOS)
    figure.suptitle(
        f"{what}; work is run time with the share of each cluster", fontsize=8.5, x=0.01, ha="left"
    )
    return figure


if __name__ == "__main__":
    quick = arguments(__doc__ or "").quick
    jobs, gpus = (160, 32) if quick else (1_500, FULL_GPUS)
    table = pd.DataFrame(runs(jobs, gpus))
    text = (
        f"{jobs:,} multi-GPU jobs on {gpus} GPUs, at the rate of {JOBS_PER_HOUR:g} an hour on 128"
    )
    save(table, draw(table, text), "synergy_cpu_ratio")
