"""A-SRPT, the idea of its Figure 2: where Heavy-Edge, first fit and the optimum put one job.

A pipeline of four stages with four replicas each, heavy parameters in the last, on three nodes with
5, 5 and 6 free GPUs: what has to leave a node is the black lines. Run:
``python paper_figs/asrpt_placement.py`` (seconds); writes paper_figs/out/asrpt_placement.{csv,png}.
"""

import pandas as pd
from _asrpt import arguments, network, save
from matplotlib.figure import Figure

from shadowprice.analysis.plots.placement import plot_placement
from shadowprice.instances.graphs.iteration_time import iteration_s
from shadowprice.instances.graphs.job_graph import JobGraph, Link, Stage
from shadowprice.solvers.graph_placement.protocol import graph_placement

FREE = (5, 5, 6)
JOB = JobGraph(
    "four stages of four",
    tuple(
        Stage(f"stage {k + 1}", 4, 0.02, 0.04, size)
        for k, size in enumerate((5e7, 5e7, 2e8, 1.2e9))
    ),
    tuple(Link(k, k + 1, size) for k, size in enumerate((4e8, 2e8, 1e8))),
)

if __name__ == "__main__":
    arguments(__doc__ or "")
    names = ("heavy-edge", "first-fit", "exact")
    figure = Figure(figsize=(14, 4.5), layout="constrained")
    rows = []
    for axes, name in zip(figure.subplots(1, len(names)), names, strict=True):
        mapping = graph_placement(name).place(JOB, FREE, network())
        assert mapping is not None
        alpha = iteration_s(JOB, mapping, network())
        plot_placement(JOB, mapping, axes, note=f"\n{name}: {1000 * alpha:.0f} ms an iteration")
        rows.append({"algorithm": name, "iteration_s": alpha, "mapping": str(mapping)})
    save(pd.DataFrame(rows), figure, "asrpt_placement")
