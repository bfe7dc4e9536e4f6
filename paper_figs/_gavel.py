"""The setting of Gavel's experiments (OSDI'20, section 7.1), for the figures beside this file.

With ``--throughputs FILE`` (Gavel's simulation_throughputs.json; ``shadowprice data fetch`` gets it)
jobs are drawn from all 26 measured job types. Without it a sample of six types on single GPUs is
used, whose rates the paper's repository publishes; gangs are then taken to be 0.9 times as fast a
GPU each time they double, and two jobs that share GPUs to make 65 % of their own speed each: two
assumptions of ours, for trying the figures out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

import shadowprice as sp
from shadowprice.analysis.plots.style import COLOURS, GREY
from shadowprice.instances.speeds.throughputs import Kind, Throughputs

OUT = Path(__file__).parent / "out"
TYPES = ("v100", "p100", "k80")
SAMPLE = {
    "ResNet-18 (batch size 128)": (17.995, 11.675, 1.807),
    "ResNet-50 (batch size 128)": (2.497, 1.584, 0.347),
    "LM (batch size 20)": (64.74, 58.17, 17.14),
    "CycleGAN": (4.426, 2.403, 0.505),
    "Transformer (batch size 64)": (8.618, 5.092, 1.752),
    "A3C": (7.176, 5.681, 3.439),
}
"""Steps per second on one V100, P100, K80."""

GANGS = (1, 2, 4, 8)


class Scale(StrEnum):
    """How much is run."""

    QUICK = "quick"
    USUAL = "usual"
    FULL = "full"


def arguments(description: str) -> argparse.Namespace:
    """What every figure takes."""
    parser = argparse.ArgumentParser(description=description)
    scale = parser.add_mutually_exclusive_group()
    for each in (Scale.QUICK, Scale.FULL):
        scale.add_argument(f"--{each}", dest="scale", action="store_const", const=each)
    parser.set_defaults(scale=Scale.USUAL)
    parser.add_argument(
        "--throughputs", type=Path, help="Gavel's throughput table (JSON, may be xz)"
    )
    return parser.parse_args()


def table(path: Path | None) -> Throughputs:
    """Gavel's table, its columns in a fixed order, or the sample."""
    if path is None:
        return _sample()
    full = sp.load_throughputs(path)
    columns = [full.gpu_types.index(name) for name in TYPES]
    alone = {kind: tuple(rates[c] for c in columns) for kind, rates in full.alone.items()}
    together = {key: rates for key, rates in full.pairs.items() if key[0] in TYPES}
    return Throughputs(TYPES, alone, together, full.source)


def _sample() -> Throughputs:
    alone: dict[Kind, tuple[float, ...]] = {
        (model, gang): tuple(rate * gang * 0.9 ** (gang.bit_length() - 1) for rate in rates)
        for model, rates in SAMPLE.items()
        for gang in GANGS
    }
    together = {
        (name, one, other): (0.65 * alone[one][k], 0.65 * alone[other][k])
        for k, name in enumerate(TYPES)
        for one in alone
        for other in alone
        if one[1] == other[1]
    }
    return Throughputs(TYPES, alone, together, "a sample of six job types")


def cluster(per_type: int) -> str:
    """Nodes of 4 GPUs, ``per_type`` GPUs of each type."""
    return ",".join(f"{per_type // 4}x4:{name}" for name in TYPES)


def published(axes: Axes, title: str, text: str) -> None:
    """Title a picture, and say below it what it shows beside what the paper reports."""
    axes.set_title(title, loc="left", pad=18)
    axes.text(0.0, 1.02, text, transform=axes.transAxes, fontsize=8, color=GREY)


def lines(axes: Axes, frame: pd.DataFrame, x: str, y: str, names: Sequence[str]) -> None:
    """Mean over seeds for every policy, and 95 % intervals where there are several seeds."""
    for colour, name in zip(COLOURS, names, strict=False):
        mine = frame[frame["policy"] == name].groupby(x)[y]
        if not mine.ngroups:
            continue
        mean, error = mine.mean(), 1.96 * mine.sem().fillna(0.0)
        axes.errorbar(
            mean.index,
            mean,
            yerr=error,
            marker="o",
            ms=3,
            lw=1.4,
            capsize=2,
            color=colour,
            label=name,
        )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def save(frame: pd.DataFrame, figure: object, name: str) -> None:
    """Write the numbers and the picture to ``paper_figs/out``."""
    OUT.mkdir(exist_ok=True)
    frame.to_csv(OUT / f"{name}.csv", index=False)
    figure.savefig(OUT / f"{name}.png", dpi=150)  # type: ignore[attr-defined]
    print(frame.to_string(index=False, max_rows=60))
