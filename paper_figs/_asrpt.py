"""The setting of A-SRPT's experiments, for the figures beside this file.

The paper's own settings are not known (its body could not be read): recurrent jobs in the manner
of Alibaba's PAI that train published models, on nodes of 8 GPUs with 300 GB/s inside and a NIC of
12.5 GB/s, V100-like GPUs at 40 % of 15.7 TFLOP/s. Work is in iterations; how long one takes depends on
where its replicas are.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

import shadowprice as sp
from shadowprice.analysis.plots.style import COLOURS, GREY
from shadowprice.instances.graphs.generated_graphs import workload_graphs
from shadowprice.instances.graphs.network import Network

OUT = Path(__file__).parent / "out"
MODELS = ("resnet-50", "vgg-19", "bert-large", "gpt-2-medium", "gpt-2-xl", "t5-base")
GANGS = (1, 2, 4, 8, 16)
GPUS_PER_NODE = 8


def arguments(description: str) -> argparse.Namespace:
    """What every figure takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="few jobs, few points")
    return parser.parse_args()


def network(nic_gb_per_s: float = 12.5) -> Network:
    """The network of the setting, with another NIC if wanted."""
    return Network(300e9, nic_gb_per_s * 1e9, GPUS_PER_NODE)


@cache
def seconds_per_iteration(of: Network) -> dict[tuple[str, int], float]:
    """Shortest time of an iteration of every kind of job [s]."""
    pairs = [(model, gang) for model in MODELS for gang in GANGS]
    every = sp.Workload.from_columns(
        arrival_s=[0.0] * len(pairs),
        gpus=[g for _, g in pairs],
        work=[1.0] * len(pairs),
        model=[m for m, _ in pairs],
    )
    graphs = workload_graphs(every, of)
    shortest = graphs.shortest_iteration_s[graphs.of].tolist()
    return dict(zip(pairs, shortest, strict=True))


def trace(jobs: int, load: float, gpus: int, seed: int, of: Network) -> sp.Workload:
    """Recurrent jobs that ask for a share of the cluster's time, counted in their best placements."""
    return sp.generate(
        "recurrent",
        jobs=jobs,
        seed=seed,
        load=load,
        gpus_total=gpus,
        kinds=seconds_per_iteration(of),
    )


def run(jobs: sp.Workload, gpus: int, policy: str, of: Network, **settings: str) -> sp.Outcome:
    """One verified run on nodes of 8 GPUs."""
    semantics = sp.Semantics(network=of, **settings)
    return sp.simulate(jobs, f"{gpus // GPUS_PER_NODE}x{GPUS_PER_NODE}", policy, semantics)


def lines(axes: Axes, frame: pd.DataFrame, x: str, y: str) -> None:
    """Mean over seeds for every policy."""
    for colour, (name, mine) in zip(COLOURS, frame.groupby("policy", sort=False), strict=False):
        mean = mine.groupby(x)[y].mean()
        axes.plot(mean.index, mean, marker="o", ms=3, lw=1.4, color=colour, label=name)
    axes.spines[["top", "right"]].set_visible(False)


def titled(axes: Axes, title: str, text: str) -> None:
    """Title a picture, and say below it what it shows."""
    axes.set_title(title, loc="left", pad=16, fontsize=10)
    axes.text(0.0, 1.02, text, transform=axes.transAxes, fontsize=7.5, color=GREY)


def save(frame: pd.DataFrame, figure: object, name: str) -> None:
    """Write the numbers and the picture to ``paper_figs/out``."""
    OUT.mkdir(exist_ok=True)
    frame.to_csv(OUT / f"{name}.csv", index=False)
    figure.savefig(OUT / f"{name}.png", dpi=150)  # type: ignore[attr-defined]
    print(frame.to_string(index=False, max_rows=60))
