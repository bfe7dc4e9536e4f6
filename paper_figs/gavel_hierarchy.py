"""Gavel (OSDI'20), Figures 12 and 13: two storeys of fairness over time.

3 GPUs of each type; 18 jobs, one more every 4 time steps, in three entities with weights 1, 2, 3;
inside the entities fairness (Figure 12) or FIFO (Figure 13). The picture shows the share of total
effective throughput each entity has, stacked, every job's normalised by its speed on the reference
type. Published for fairness inside entities: the agnostic policy's total throughput is about 17 %
lower; no number is for FIFO. Run:
``python paper_figs/gavel_hierarchy.py [--throughputs FILE]`` (seconds; ``--quick`` the same); writes
paper_figs/out/gavel_hierarchy.{csv,png}.
"""

import numpy as np
import pandas as pd
from _gavel import COLOURS, TYPES, arguments, published, save, table
from matplotlib.figure import Figure

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.workspace import Workspace

PUBLISHED = {"fairness": ", published about -17 %", "fifo": ""}
WEIGHTS = {"entity 1": 1.0, "entity 2": 2.0, "entity 3": 3.0}
EVERY, JOBS = 4, 18


def problem(throughput: np.ndarray) -> AllocationProblem:
    """The first jobs, six of each entity in turn."""
    n = len(throughput)
    return AllocationProblem.from_columns(
        gpu_types=TYPES,
        capacity=[3, 3, 3],
        throughput=throughput,
        entity=[list(WEIGHTS)[k // (JOBS // 3)] for k in range(n)],
    )


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    kinds = sorted(
        model for model, gang in rates.alone if gang == 1 and rates.alone[model, 1][0] > 0
    )
    drawn = np.random.default_rng(0).integers(len(kinds), size=JOBS)
    speed = np.array([rates.alone[kinds[k], 1] for k in drawn])
    rows = []
    for inside in ("fairness", "fifo"):
        for aware in (True, False):
            policy = WaterFilling(
                "hierarchy",
                aware=aware,
                entity_weights=WEIGHTS,
                inside=dict.fromkeys(WEIGHTS, inside),
            )
            for step in range(EVERY * JOBS):
                now = problem(speed[: 1 + step // EVERY])
                found = policy.allocate(now, Workspace())
                normalised = found.effective_throughput / now.throughput[:, 0]
                for name in WEIGHTS:
                    mine = now.entity == name
                    rows.append(
                        {
                            "inside": inside,
                            "aware": aware,
                            "step": step,
                            "entity": name,
                            "throughput": float(normalised[mine].sum()),
                        }
                    )
    frame = pd.DataFrame(rows)
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, inside in zip(figure.subplots(1, 2, sharey=True), ("fairness", "fifo"), strict=True):
        mine = frame[(frame["inside"] == inside) & frame["aware"]]
        by_entity = mine.pivot_table(index="step", columns="entity", values="throughput")
        axes.stackplot(
            by_entity.index,
            by_entity.T.to_numpy(),
            labels=list(by_entity),
            colors=COLOURS,
            alpha=0.8,
        )
        total = {
            aware: frame[(frame["inside"] == inside) & (frame["aware"] == aware)]
            .groupby("step")["throughput"]
            .sum()
            for aware in (True, False)
        }
        axes.plot(total[False], color="black", lw=1, label="total, agnostic")
        lower = 1.0 - total[False].iloc[-1] / total[True].iloc[-1]
        published(
            axes,
            f"{inside} inside entities",
            f"agnostic total {-100 * lower:+.0f} %" + PUBLISHED[inside],
        )
        axes.set(xlabel="time step", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    figure.axes[0].set_ylabel("effective throughput, in V100s")
    save(frame, figure, "gavel_hierarchy")
