"""Our own: the measured ratio of A-SRPT against its theorem, over lambda = mu and over rho.

Total completion time of the strict algorithm (no early starts, no delays) over the larger of two exact
lower bounds of the optimum, and the factor of ASRPT-pred with the instance's own rho and
predictions within [n / mu, lambda n] (``proofs/asrpt/prediction.py``). Run:
``python paper_figs/asrpt_bound.py`` (a minute), ``--quick``; writes paper_figs/out/asrpt_bound.{csv,png}.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
from _asrpt import arguments, save, titled
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shadowprice.proofs.asrpt.conversion import Gangs, completions
from shadowprice.proofs.asrpt.prediction import optimum_at_least, ratio

CAPACITY = 16


def measured(jobs: int, off: float, rho: float, seed: int) -> tuple[float, float]:
    """Measured ratio and the theorem's factor on one random instance."""
    draw = np.random.default_rng(seed)
    release = np.cumsum(draw.exponential(40.0, jobs)).astype(int)
    gang = draw.choice([1, 2, 4, 8], jobs, p=[0.4, 0.3, 0.2, 0.1])
    shortest = np.maximum(np.round(60 * draw.lognormal(1.0, 1.0, jobs)), 1).astype(int)
    longest = np.maximum((shortest * draw.uniform(1.0, rho, jobs)).astype(int), shortest)
    virtual = np.maximum((shortest * off ** draw.uniform(-1.0, 1.0, jobs)).astype(int), 1)
    columns = (
        tuple(int(v) for v in column) for column in (release, gang, shortest, longest, virtual)
    )
    gangs = Gangs(CAPACITY, *columns)
    total = sum(completions(gangs, list(gangs.longest)), Fraction(0))
    factor = ratio(gangs.rho, gangs.virtual_over, gangs.kappa, gangs.crowding)
    return float(total / optimum_at_least(gangs)), float(factor)


def draw(axes: Axes, frame: pd.DataFrame, x: str, label: str) -> None:
    """Measured ratios as points, the factor as a line."""
    axes.plot(frame[x], frame["ratio"], ".", color="#0072B2", alpha=0.5, label="measured")
    factor = frame.groupby(x)["factor"].mean()
    axes.plot(factor.index, factor, color="#D55E00", label="theorem, mean over instances")
    titled(axes, f"over {label}", f"largest measured {frame['ratio'].max():.2f}")
    axes.set(xlabel=label, ylabel="total completion time / bound", xscale="log", yscale="log")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    jobs, seeds = (60, range(3)) if given.quick else (400, range(20))
    rows = []
    for sweep, values in (("off", (1, 1.5, 2, 4, 8, 16)), ("rho", (1, 2, 5, 10, 30, 100))):
        for value in values:
            for seed in seeds:
                at = {
                    "off": 2.0 if sweep == "rho" else value,
                    "rho": value if sweep == "rho" else 2.0,
                }
                ratio_, factor = measured(jobs, at["off"], at["rho"], seed)
                rows.append(
                    {
                        "sweep": sweep,
                        "value": value,
                        "seed": seed,
                        "ratio": ratio_,
                        "factor": factor,
                    }
                )
    frame = pd.DataFrame(rows)
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, (sweep, label) in zip(
        figure.subplots(1, 2), {"off": "lambda = mu", "rho": "rho"}.items(), strict=True
    ):
        draw(axes, frame[frame["sweep"] == sweep], "value", label)
    save(frame, figure, "asrpt_bound")
