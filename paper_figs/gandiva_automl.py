"""Gandiva (OSDI'18), section 6.3, Table 3: early feedback for a hyper-parameter search.

374 configurations, one of which qualifies; its position among them is 25, 50, 75 or 100 % of the way.
Published, on 4 GPUs: 691.5, 1,373, 2,067 and 2,726 minutes until it is found by a scheduler that runs
configurations to their end one after the other, 125.5, 213.8, 302.4 and 387.1 under Gandiva: 5.51 to
7.04 times sooner; on 16 GPUs 3.40 to 5.96 times. Run: ``python paper_figs/gandiva_automl.py``
(seconds); writes paper_figs/out/gandiva_automl.{csv,png}.

The early-stopping model is ours, see ``shadowprice.instances.generators.automl``: a configuration is
judged after a share of its training, not published, which the right panel varies; Table 4, by target
accuracy, depends on the learning curves of their jobs and is not drawn. The search submits a
configuration when those before it, shared evenly, would have left a GPU.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
from _gandiva import CHARGES, COLOURS, GREY, REACTIVE, Run, arguments, note, save, simulate
from matplotlib.figure import Figure

import shadowprice as sp
from shadowprice.instances.generators.automl import QUALIFIED

CONFIGURATIONS = 374
POSITIONS = (0.25, 0.5, 0.75, 1.0)
PUBLISHED_MIN = {
    "to their end, FIFO": (691.5, 1373.0, 2067.0, 2726.0),
    "stopped early, Gandiva": (125.5, 213.8, 302.4, 387.1),
}
PUBLISHED_FACTOR = {4: (5.51, 7.04), 16: (3.40, 5.96)}
JUDGED_AT = 0.1
COLOUR_OF = {
    "to their end, FIFO": GREY,
    "stopped early, FIFO": COLOURS[5],
    "stopped early, Gandiva": COLOURS[0],
}


def found_min(run: Run) -> float:
    """When the qualified configuration is trained [min]."""
    at = run.instance.workload.name == QUALIFIED
    return float(run.end_s[at][0]) / 60


def search(seed: int, position: int, judged_at: float, gpus: int, system: tuple[str, str]) -> float:
    """Time until the qualified configuration is found by one system [min]."""
    jobs = sp.generate(
        "automl", jobs=CONFIGURATIONS, seed=seed, judged_at=judged_at, qualified=position
    )
    before_s = np.floor(np.concatenate(([0.0], np.cumsum(jobs.work)[:-1])) / gpus)
    jobs = replace(jobs, arrival_s=before_s)
    return found_min(
        simulate(sp.Instance(sp.Cluster.parse(f"{gpus // 4}x4"), jobs, CHARGES), system)
    )


def rows(seeds: int, shares: tuple[float, ...]) -> pd.DataFrame:
    """All runs of the figure."""
    found = []
    for gpus in PUBLISHED_FACTOR:
        for share in POSITIONS:
            position = round(share * CONFIGURATIONS)
            for seed in range(seeds):
                key = {"gpus": gpus, "position": share, "seed": seed}
                found.append(
                    {
                        **key,
                        "system": "to their end, FIFO",
                        "judged_at": 1.0,
                        "minutes": search(seed, position, 1.0, gpus, ("fifo", "count")),
                    }
                )
                for judged in shares:
                    for label, system in (("FIFO", ("fifo", "count")), ("Gandiva", REACTIVE)):
                        minutes = search(seed, position, judged, gpus, system)
                        found.append(
                            {
                                **key,
                                "system": f"stopped early, {label}",
                                "judged_at": judged,
                                "minutes": minutes,
                            }
                        )
    return pd.DataFrame(found)


def factors(table: pd.DataFrame, gpus: int) -> pd.DataFrame:
    """How many times sooner Gandiva finds it, by position (rows) and share judged at (columns)."""
    mean = table[table.gpus == gpus].groupby(["system", "judged_at", "position"]).minutes.mean()
    ours = mean["stopped early, Gandiva"].unstack("judged_at")
    longest = mean["to their end, FIFO", 1.0].to_numpy()[:, None]
    return pd.DataFrame(longest / ours)


def draw(table: pd.DataFrame) -> Figure:
    """Time to the qualified configuration, and the factor against the share judged at."""
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown = table[(table.gpus == 4) & table.judged_at.isin([JUDGED_AT, 1.0])]
    for system, part in shown.groupby("system"):
        mean = part.groupby("position").minutes.mean()
        left.plot(
            100 * mean.index, mean, color=COLOUR_OF[str(system)], marker="o", ms=4, label=system
        )
    for system, minutes in PUBLISHED_MIN.items():
        left.plot(
            [100 * p for p in POSITIONS],
            minutes,
            ls="none",
            marker="x",
            ms=8,
            color=COLOUR_OF[system],
            label=f"published, {'baseline' if 'FIFO' in system else 'Gandiva'}",
        )
    left.set_xlabel("position of the qualified configuration [% of 374]")
    left.set_ylabel("time until it is trained [min]")
    left.set_xticks([100 * p for p in POSITIONS])
    left.legend(frameon=False, fontsize=8, loc="upper left")
    for gpus, colour in zip(PUBLISHED_FACTOR, (COLOURS[0], COLOURS[1]), strict=True):
        found = factors(table, gpus)
        right.fill_between(
            100 * found.columns,
            found.min(),
            found.max(),
            color=colour,
            alpha=0.3,
            lw=0,
            label=f"{gpus} GPUs, by position",
        )
        right.plot(100 * found.columns, found.mean(), color=colour, lw=1.5)
        low, high = PUBLISHED_FACTOR[gpus]
        for value in (low, high):
            right.axhline(
                value,
                color=colour,
                ls="--",
                lw=0.9,
                label=f"published, {low} to {high}" if value == low else "_",
            )
    right.set_xlabel("share of its training after which a configuration is judged [%]")
    right.set_ylabel("times sooner than to their end")
    right.set_ylim(0)
    right.legend(frameon=False, fontsize=8)
    ours = factors(table, 4)[JUDGED_AT]
    note(
        left,
        "Gandiva, Table 3: 374 configurations on 4 GPUs",
        f"judged after {JUDGED_AT:.0%} of the training: {ours.min():.1f} to {ours.max():.1f} times sooner; "
        "published 5.51 to 7.04.\n"
        "Stopping early is what gains; turns keep its time while letting others in.",
    )
    note(
        right,
        "Times sooner, by how early one can judge",
        "The published stopping model is not stated in full; the factor depends on it\n"
        "more than on the scheduler.",
    )
    return figure


if __name__ == "__main__":
    quick = arguments(__doc__).quick
    shares = (0.05, JUDGED_AT, 0.3) if quick else (0.05, 0.075, JUDGED_AT, 0.15, 0.2, 0.3, 0.5)
    results = rows(1 if quick else 5, shares)
    save(results, draw(results), "gandiva_automl")
