"""Gavel (OSDI'20), Figure 14: run time of policies against the number of active jobs.

A cluster of a quarter as many GPUs of each type as there are jobs. Published, in minutes: hierarchical
fairness without space sharing handles 2,048 jobs in under 10, with it 512 in under 10. Run:
``python paper_figs/gavel_policy_run_time.py [--throughputs FILE]`` (a minute), ``--quick`` (seconds);
writes paper_figs/out/gavel_policy_run_time.{csv,png}. CPU seconds of one allocation from scratch.
"""

import time

import numpy as np
import pandas as pd
from _gavel import TYPES, Scale, arguments, lines, published, save, table
from matplotlib.figure import Figure

from shadowprice.instances.allocation_file import looked_up_pairs
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.policies.max_min_fairness import MaxMinFairness
from shadowprice.solvers.gavel.policies.water_filling import WaterFilling
from shadowprice.solvers.gavel.workspace import Workspace

ENTITIES = {f"entity {k}": float(k) for k in (1, 2, 3)}
POLICIES: dict[str, AllocationPolicy] = {
    "max-min fairness": MaxMinFairness("las"),
    "hierarchical": WaterFilling("hierarchical", entity_weights=ENTITIES),
    "max-min fairness + sharing": MaxMinFairness("las", packed=True),
    "hierarchical + sharing": WaterFilling("hierarchical", packed=True, entity_weights=ENTITIES),
}
SIZES = {
    Scale.QUICK: (32, 64),
    Scale.USUAL: (32, 128, 512, 2048),
    Scale.FULL: (32, 64, 128, 256, 512, 1024, 2048),
}
LARGEST = {"hierarchical + sharing": 512}


def problem(rates: object, jobs: int, *, pairs: bool) -> AllocationProblem:
    """Single-GPU jobs of random types with throughputs that differ by up to 10 %."""
    draw = np.random.default_rng(jobs)
    kinds = sorted(kind for kind in rates.alone if kind[1] == 1 and rates.alone[kind][0] > 0)
    chosen = [kinds[k] for k in draw.integers(len(kinds), size=jobs)]
    noise = 1.0 if pairs else draw.uniform(0.9, 1.1, (jobs, 1))
    given = AllocationProblem.from_columns(
        gpu_types=TYPES,
        capacity=[jobs // 4] * 3,
        entity=[f"entity {1 + k % 3}" for k in range(jobs)],
        throughput=np.array([rates.alone[kind] for kind in chosen]) * noise,
    )
    models = [model for model, _ in chosen]
    return given.with_pairs(looked_up_pairs(given, models, rates)) if pairs else given


if __name__ == "__main__":
    given = arguments(__doc__ or "")
    rates = table(given.throughputs)
    rows = []
    for label, policy in POLICIES.items():
        for jobs in SIZES[given.scale]:
            if jobs > LARGEST.get(label, jobs):
                continue
            one = problem(rates, jobs, pairs=policy.packed)
            began = time.process_time()
            policy.allocate(one, Workspace()).verify()
            rows.append(
                {"policy": label, "jobs": jobs, "seed": 0, "cpu_s": time.process_time() - began}
            )
    frame = pd.DataFrame(rows)
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    lines(axes, frame, "jobs", "cpu_s", list(POLICIES))
    axes.axhline(600, color="#444444", ls=":", lw=1)
    axes.set(xlabel="active jobs", ylabel="CPU seconds", xscale="log", yscale="log")
    published(
        axes,
        "run time of policies",
        "dotted: 10 minutes; published below it: hierarchical up to 2,048 jobs, with sharing 512",
    )
    axes.legend(frameon=False, fontsize=8, loc="center", ncols=2)
    save(frame, figure, "gavel_policy_run_time")
