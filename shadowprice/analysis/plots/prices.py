"""Prices over time that a run leaves: a table with the load they answer to, and a picture."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots.style import COLOURS, GREY, styled, time_unit
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.schedule import Schedule

_NAMED_NODES = 8
"""Nodes of a type that get a line each; of more, their range is drawn."""


def prices_frame(outcome: Outcome) -> pd.DataFrame:
    """One row a round and node: time_s, node, gpu_type, price, load, gpus.

    ``price`` is utility for a GPU and round, ``load`` the GPUs of the node held after the decision at
    ``time_s``, ``gpus`` those it has. O((rounds + rows) log rows + rounds x nodes).

    Raises
    ------
    InputError
        If the run kept no prices.
    """
    if outcome.prices is None:
        raise InputError(
            f"policy {outcome.policy!r}: the run kept no prices, expected hadar, hadar-committed or "
            "oasis, simulated with RunOptions(prices=True)"
        )
    cluster = outcome.instance.cluster
    nodes = len(cluster.nodes)
    time_s = np.array(outcome.prices.time_s, dtype=np.float64)
    rounds = len(time_s)
    prices = np.array(outcome.prices.prices, dtype=np.float64).reshape(rounds, nodes)
    load = load_at(outcome.schedule, cluster, time_s)
    return pd.DataFrame(
        {
            "time_s": np.repeat(time_s, nodes),
            "node": np.tile(np.arange(nodes), rounds),
            "gpu_type": np.tile([node.gpu_type for node in cluster.nodes], rounds),
            "price": prices.ravel(),
            "load": load.ravel(),
            "gpus": np.tile(cluster.gpus_per_node, rounds),
        }
    )


def load_at(schedule: Schedule, cluster: Cluster, time_s: NDArray[np.float64]) -> NDArray[np.int64]:
    """GPUs held on every node just after some times [s], shape (times, nodes)."""
    load = np.zeros((len(time_s), len(cluster.nodes)), dtype=np.int64)
    # Of two jobs that share GPUs, one stands for both.
    counted = (schedule.partner < 0) | (schedule.partner > schedule.job)
    for node in range(len(cluster.nodes)):
        rows = np.flatnonzero((schedule.node == node) & counted)
        for times, sign in ((schedule.start_s, 1), (schedule.end_s, -1)):
            order = rows[np.argsort(times[rows], kind="stable")]
            total = np.concatenate(([0], np.cumsum(schedule.gpus[order])))
            load[:, node] += sign * total[np.searchsorted(times[order], time_s, side="right")]
    return load


def plot_prices(outcome: Outcome) -> Figure:
    """Draw prices per node over time, one panel a GPU type, on a log scale.

    A price holds from its round to the next. Of more than eight nodes of a type the range
    is drawn, with the median.

    Raises
    ------
    InputError
        If the run kept no prices.
    """
    frame = prices_frame(outcome)
    types = outcome.instance.cluster.gpu_types
    figure = Figure(figsize=(9.0, 1.2 + 2.1 * len(types)), layout="constrained")
    panels = figure.subplots(len(types), 1, sharex=True, squeeze=False)[:, 0]
    unit, name = time_unit(float(frame["time_s"].max()) if len(frame) else 0.0)
    for axes, gpu_type in zip(panels, types, strict=True):
        styled(axes)
        _panel(axes, frame[frame["gpu_type"] == gpu_type], unit)
        axes.set_title(gpu_type or "GPUs", loc="left", fontsize=10)
    panels[-1].set_xlabel(f"time [{name}]")
    figure.supylabel("price [utility per GPU and round]", fontsize=10)
    known = outcome.prices is not None and outcome.prices.known
    source = "given" if known else "estimated from the jobs seen"
    figure.suptitle(
        f"{outcome.policy}: price of a GPU by node; its bounds are {source}", fontsize=11
    )
    return figure


def _panel(axes: Axes, frame: pd.DataFrame, unit: float) -> None:
    if frame.empty:
        axes.text(0.5, 0.5, "no prices", transform=axes.transAxes, ha="center", color=GREY)
        return
    table = frame.pivot_table(index="time_s", columns="node", values="price", aggfunc="last")
    times = table.index.to_numpy(dtype=np.float64) / unit
    if (frame["price"] > 0).all():
        axes.set_yscale("log")
    if table.shape[1] > _NAMED_NODES:
        values = table.to_numpy()
        axes.fill_between(
            times,
            values.min(axis=1),
            values.max(axis=1),
            step="post",
            color=COLOURS[0],
            alpha=0.3,
            linewidth=0,
            label=f"range of {table.shape[1]} nodes",
        )
        axes.step(times, np.median(values, axis=1), where="post", color=COLOURS[0], label="median")
    else:
        for node, colour in zip(table.columns, cycle(COLOURS), strict=False):
            axes.step(
                times, table[node], where="post", color=colour, linewidth=1.1, label=f"node {node}"
            )
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
