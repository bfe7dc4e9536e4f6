"""Certified ratios of Pollux' workloads: a line a workload, what each policy costs over what is possible at least.

    python benchmarks/pollux_ratios.py SIMULATOR [--policies tiresias,optimus] [--columns 0] [-o TABLE.md]

SIMULATOR is a copy of the folder ``simulator`` of github.com/petuum/adaptdl, branch osdi21-artifact, with ``traces``,
``workloads-0.5`` and ``workloads``, whose files are CSVs. Every schedule is verified. Bounds are of all schedules in
which jobs keep the batch of the workload, and of all in which they may have any; both were evaluated by the program
that checks certificates, on the least times of LB-goodput. A policy that changes batches has the second bound alone.
With columns interval LPs of so many are tried as well, minutes a workload.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import shadowprice as sp
from shadowprice.analysis.bounds import certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.analysis.preparation import PreparedRun, prepare_run
from shadowprice.analysis.simulate import execute
from shadowprice.instances.goodput.tables import load_applications
from shadowprice.instances.objective import Objective
from shadowprice.instances.terms.goodput import Goodput
from shadowprice.instances.traces import load_trace

LOADS = {"0.5": "workloads-0.5", "1.0": "workloads"}


def main() -> int:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("simulator", type=Path)
    parser.add_argument("--policies", default="tiresias,optimus")
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    lines = []
    for line in table(asked.simulator, asked.policies.split(","), asked.columns):
        print(line, flush=True)
        lines.append(line)
    if asked.output is not None:
        asked.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def table(simulator: Path, policies: list[str], columns: int) -> Iterator[str]:
    """Lines of Markdown."""
    term = Goodput(load_applications(simulator / "traces"))
    switches = sp.RunOptions(preset="pollux", declared=(term,))
    head = [f"{name}: mean JCT [h], over kept batch, over any" for name in policies]
    yield (
        "| load, workload | least mean JCT [h] and its proof, kept batch | any batch | "
        + " | ".join(head)
        + " |"
    )
    yield "|---|" + "---|" * (2 + len(policies))
    for load, folder in LOADS.items():
        for path in sorted((simulator / folder).glob("workload-*.csv")):
            jobs = load_trace(path).workload
            runs = {name: prepare_run(jobs, "16x4", name, switches) for name in policies}
            first = next(iter(runs.values())).instance
            fixed = replace(first, workload=jobs)
            free = replace(jobs, batch_size=np.zeros_like(jobs.batch_size))
            bounds = [bound_of(one, columns) for one in (fixed, replace(first, workload=free))]
            cells = [f"{load}, {path.stem.rpartition('-')[2]}"]
            cells += [f"{least_s / 3600:.3f}, {kind}" for least_s, kind in bounds]
            (kept_s, _), (any_s, _) = bounds
            cells += [cell(run, jobs, kept_s, any_s) for run in runs.values()]
            yield "| " + " | ".join(cells) + " |"


def bound_of(instance: sp.Instance, columns: int) -> tuple[float, str]:
    """Least mean JCT of all schedules [s], certified, and the kind of bound that says so."""
    result = certified_bounds(instance, [Objective.FLOW], BoundEffort.of_size(columns))
    best = result[Objective.FLOW]
    return best.value_s / len(instance.workload), best.kind


def cell(run: PreparedRun, jobs: sp.Workload, kept_s: float, any_s: float) -> str:
    """Mean JCT of a verified run, and its ratios."""
    mean_s = float(execute(run).summary()["avg_jct_s"])  # type: ignore[arg-type]
    keeps = bool((run.instance.workload.batch_size == jobs.batch_size).all())
    ratio = f"{mean_s / kept_s:.2f}" if keeps else "-"
    return f"{mean_s / 3600:.3f}, {ratio}, {mean_s / any_s:.2f}"


if __name__ == "__main__":
    sys.exit(main())
