"""Synergy (OSDI'22), Figure 2: speed of models by CPUs for each GPU, with all memory.

As the simulator of the artifact has it in its tables for one GPU, and as the profiles made here from the best point
of each model have it (:mod:`shadowprice.instances.speeds.profiles`). Speed 1 is that with 3 CPUs and 62.5 GB, a GPU's
share of a node. The published factors are known from notes of others on the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
from _synergy import PROFILES
from matplotlib.figure import Figure as Picture

from shadowprice.analysis.plots.style import colour_of
from shadowprice.instances.speeds.profiles import family_profile, read_profiles
from shadowprice.studies.figures import (
    Cause,
    Estimate,
    Evidence,
    Figure,
    Page,
    Published,
    Row,
    Sampling,
    Size,
    Sized,
    crossed,
    estimate,
    main,
    require_known,
    setting,
)

ALL_MEMORY_GB = 250.0
ARTIFACT, MADE = "artifact's table", "made profile"
MODELS = {
    "alexnet": "alexnet",
    "shufflenet": "shufflenet",
    "resnet-18": "res18",
    "m5": "m5",
    "mobilenet": "mobilenet",
    "resnet-50": "res50",
    "gnmt": "gnmt",
}
"""Names here and in the artifact, most sensitive first."""

FACTORS = {"alexnet": (12.0, 3.1), "resnet-18": (9.0, 2.3)}
"""CPUs for each GPU, and published speed with them over that with 3."""


@dataclass(frozen=True)
class Settings:
    """Models and CPUs."""

    models: tuple[str, ...] = setting(tuple(MODELS), f"of {', '.join(MODELS)}")
    cpus: tuple[float, ...] = setting(
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0), "CPUs for each GPU"
    )


@dataclass(frozen=True)
class Point:
    """Both profiles of a model."""

    model: str
    cpus: tuple[float, ...]


def points(settings: Settings) -> Iterator[Point]:
    """All models."""
    require_known("model", settings.models, MODELS)
    return crossed(Point, settings, model=settings.models)


def run(point: Point) -> list[Row]:
    """Speed with each number of CPUs."""
    tables = {
        ARTIFACT: read_profiles(PROFILES)[MODELS[point.model], 1],
        MADE: family_profile(point.model),
    }
    return [
        {
            "model": point.model,
            "profile": name,
            "cpus": cpus,
            "speed": float(table.at(cpus, ALL_MEMORY_GB)),
        }
        for name, table in tables.items()
        for cpus in point.cpus
    ]


def draw(table: pd.DataFrame, settings: Settings, page: Page) -> Picture:
    """One line for each model: marks from the artifact's table, lines from the made profile."""
    picture, (axes,) = page.grid(1, 1, 3.0)
    for place, model in enumerate(settings.models):
        mine = table[table["model"] == model]
        made, recorded = (mine[mine["profile"] == name] for name in (MADE, ARTIFACT))
        axes.plot(made["cpus"], made["speed"], color=colour_of(place), label=model)
        axes.plot(recorded["cpus"], recorded["speed"], "o", color=colour_of(place))
    axes.set(
        xlabel="CPUs for each GPU",
        ylabel="speed over that with 3 CPUs",
        title="dots: artifact's tables; lines: made profiles",
    )
    for place, (model, (cpus, value)) in enumerate(FACTORS.items()):
        if model in settings.models:
            colour = colour_of(settings.models.index(model))
            mark = {"linestyle": "none", "marker": "x", "markersize": 8}
            label = "_" if place else "published"
            page.published_curve(axes, [cpus], [value], label, colour=colour, **mark)
    columns = 4 if page.width_in > 4 else 2
    handles, labels = axes.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=columns)
    return picture


def gain(table: pd.DataFrame, model: str, profile: str, cpus: float) -> float | None:
    """Speed with so many CPUs over that with 3; None without rows."""
    mine = table[(table["model"] == model) & (table["profile"] == profile)]
    speed = mine.set_index("cpus")["speed"]
    return float(speed[cpus] / speed[3.0]) if {cpus, 3.0} <= set(speed.index) else None


def caption(table: pd.DataFrame, settings: Settings) -> str:
    """Largest difference of the two profiles."""
    wide = table.pivot_table(index=["model", "cpus"], columns="profile", values="speed")
    off = (wide[MADE] / wide[ARTIFACT] - 1.0).abs()
    model, cpus = off.idxmax()
    return (
        f"Speed with {ALL_MEMORY_GB:g} GB for each GPU. The made profiles differ from the artifact's tables by "
        f"{off.mean():.1%} in the mean, and by {off.max():.0%} at most, {model} with {cpus:g} CPUs."
    )


def published(model: str, cpus: float, value: float) -> Published:
    """A factor of the paper's figure beside that of the artifact's table."""

    def ours(table: pd.DataFrame) -> Estimate | None:
        found = gain(table, model, ARTIFACT, cpus)
        return None if found is None else estimate([found])

    return Published(
        system="Synergy",
        place="OSDI'22, Figure 2, from notes of others",
        what=f"speed of {model} with {cpus:g} CPUs for each GPU over that with 3",
        value=value,
        unit="x",
        ours=ours,
        settings="the artifact's tables",
        evidence=Evidence.RECALLED,
        cause=Cause.TESTBED,
        why="The figure was measured; the number is that of the artifact's simulator.",
        sampling=Sampling.NOTHING,
    )


FIGURE = Figure(
    name="synergy_sensitivity",
    paper="Synergy (OSDI'22), Figure 2",
    sizes={
        Size.QUICK: Sized(Settings(), minutes=0.02),
        Size.DEFAULT: Sized(Settings(), minutes=0.02),
    },
    points=points,
    run=run,
    draw=draw,
    caption=caption,
    published=tuple(published(model, cpus, value) for model, (cpus, value) in FACTORS.items()),
)

if __name__ == "__main__":
    main(FIGURE)
