"""Pictures of an audit: use and queue over time, waits by gang, GPUs on a day, and the gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shadowprice.analysis.audit.audit import AuditedRun
from shadowprice.analysis.audit.measures import DAY_S, Levels, held_gpus, waiting_gpus
from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots.distributions import ratio_bars
from shadowprice.analysis.plots.gantt import gantt
from shadowprice.analysis.plots.style import COLOURS, GREY, styled, time_unit
from shadowprice.errors import InputError
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule

_CELLS = 240
"""Spans over whose lengths use and queue are averaged."""


def best_counterfactual(audited: AuditedRun) -> str | None:
    """Policy with the least flow time among those that ran the jobs again; None where there is none."""
    result = audited.comparisons.get(Objective.FLOW)
    if result is None or len(result.rows) < 2:
        return None
    return min(result.rows[1:], key=lambda row: row.cost_ticks).policy


def _shown(audited: AuditedRun) -> Mapping[str, Outcome]:
    """The record, and the best that ran its jobs again."""
    assert audited.run.outcome is not None
    result = {"recorded": audited.run.outcome}
    best = best_counterfactual(audited)
    if best is not None:
        result[f"{best}, the best of those run again"] = audited.comparisons[
            Objective.FLOW
        ].outcomes[best]
    return result


def use_figure(audited: AuditedRun) -> Figure:
    """GPUs held over time, and GPUs for which jobs waited that had not begun, beside the best counterfactual."""
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    _draw_use(audited, upper, lower)
    return figure


def _draw_use(audited: AuditedRun, upper: Axes, lower: Axes) -> None:
    outcomes = _shown(audited)
    until_s = max(float(each.schedule.end_s.max()) for each in outcomes.values())
    edges = np.linspace(0.0, max(until_s, 1.0), _CELLS + 1)
    unit, name = time_unit(until_s)
    levels: tuple[tuple[Axes, str, Callable[[Outcome], Levels]], ...] = (
        (upper, "GPUs held", held_gpus),
        (lower, "GPUs waited for", waiting_gpus),
    )
    for axes, label, of in levels:
        styled(axes)
        for (who, outcome), colour in zip(outcomes.items(), COLOURS, strict=False):
            dash = "-" if who == "recorded" else "--"
            axes.stairs(
                of(outcome).means(edges),
                edges / unit,
                color=colour,
                label=who,
                linestyle=dash,
                linewidth=1.5,
            )
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
    gpus = audited.run.cluster.physical_gpus
    upper.axhline(gpus, color=GREY, linewidth=1.0, linestyle=":")
    upper.set_ylim(0, 1.12 * gpus)
    upper.set_title(f"dotted: the {gpus:,} GPUs of the cluster", fontsize=9, color=GREY, loc="left")
    upper.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    lower.set_xlabel(f"time since the first submission [{name}]")


def waits_figure(audited: AuditedRun) -> Figure:
    """Mean wait until the first start by gang, recorded and of the best counterfactual."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    _draw_waits(audited, figure.subplots())
    return figure


def _draw_waits(audited: AuditedRun, axes: Axes) -> None:
    styled(axes)
    outcomes = _shown(audited)
    jobs = next(iter(outcomes.values())).instance.workload
    sizes, labels = _sizes(jobs.gpus)
    means = {
        who: np.array([_mean_wait_s(outcome, mine) for mine in sizes])
        for who, outcome in outcomes.items()
    }
    unit, name = time_unit(max(float(each.max(initial=0.0)) for each in means.values()))
    width = 0.8 / len(means)
    for k, ((who, values), colour) in enumerate(zip(means.items(), COLOURS, strict=False)):
        place = np.arange(len(labels)) + (k - (len(means) - 1) / 2) * width
        axes.bar(place, values / unit, width, color=colour, label=who)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("GPUs of the gang")
    axes.set_ylabel(f"mean wait [{name}]")
    axes.grid(visible=False, axis="x")
    axes.legend(
        frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), borderaxespad=0.2
    )


def _mean_wait_s(outcome: Outcome, mine: NDArray[np.bool_]) -> float:
    wait = outcome.totals.first_start_s - outcome.instance.workload.arrival_s
    return float(wait[mine].mean())


def _sizes(gpus: NDArray[np.int64]) -> tuple[list[NDArray[np.bool_]], list[str]]:
    """Masks of the jobs of each gang, of many sizes those between powers of two together; and what they are called."""
    power = np.ceil(np.log2(gpus)).astype(np.int64)
    alone = len(np.unique(gpus)) <= 10
    keys = gpus if alone else power
    masks, labels = [], []
    for key in np.unique(keys).tolist():
        mine = keys == key
        low, high = int(gpus[mine].min()), int(gpus[mine].max())
        masks.append(mine)
        labels.append(f"{low}" if low == high else f"{low}-{high}")
    return masks, labels


def gap_figure(audited: AuditedRun) -> Figure:
    """Recorded and counterfactual flow times over the certified bound."""
    figure = Figure(figsize=(7.0, 3.6), layout="constrained")
    _draw_gap(audited, figure.subplots())
    return figure


def _draw_gap(audited: AuditedRun, axes: Axes) -> None:
    goal = next(iter(audited.comparisons))
    rows = audited.comparisons[goal].rows
    names = ["recorded", *(row.policy for row in rows[1:])]
    ratio_bars(
        {name: row.factor for name, row in zip(names, rows, strict=True)},
        axes,
        objective=str(goal),
        exact={name: row.attained for name, row in zip(names, rows, strict=True)},
        name=f"cost / bound of\n{rows[0].holds_for}",
    )


def day_figure(audited: AuditedRun, day: int) -> Figure:
    """GPUs and who held them on one day, counted from 0 at the first submission's day.

    Raises
    ------
    InputError
        If nothing ran on that day.
    """
    outcome, measured = audited.run.outcome, audited.measures
    assert outcome is not None
    assert measured is not None
    begin_s = measured.day_begin_s + day * DAY_S
    s = outcome.schedule
    mine = (s.start_s < begin_s + DAY_S) & (s.end_s > begin_s)
    if not mine.any():
        raise InputError(
            f"{audited.run.record.source}: nothing ran on day {day}, expected 0 to {len(measured.most_by_day) - 1}"
        )
    shown = Schedule(
        job=s.job[mine],
        node=s.node[mine],
        gpus=s.gpus[mine],
        start_s=np.maximum(s.start_s[mine] - begin_s, 0.0),
        end_s=np.minimum(s.end_s[mine] - begin_s, DAY_S),
        overhead_s=np.zeros(int(mine.sum())),
    )
    title = f"day {day}" + (
        "" if audited.run.record.places else ", GPUs by count: the record has no nodes"
    )
    height = min(max(2.8, 0.06 * outcome.instance.cluster.total_gpus + 1.4), 9.0)
    figure = Figure(figsize=(11.0, height), layout="constrained")
    gantt(outcome.instance, shown, figure.subplots(), title=title, until_s=DAY_S, colour_by="gang")
    return figure


def busiest_day(audited: AuditedRun) -> int:
    """Day on which most GPUs were held at once, the first of them."""
    assert audited.measures is not None
    return int(audited.measures.most_by_day.argmax())


def overview(audited: AuditedRun) -> Figure:
    """Use, queue, waits and the gap in one picture."""
    figure = Figure(figsize=(12.0, 7.6), layout="constrained")
    upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=[5, 4])).tolist()
    top, bottom = upper.subplots(2, 1, sharex=True)
    _draw_use(audited, top, bottom)
    left, right = lower.subplots(1, 2, width_ratios=[3, 2])
    _draw_waits(audited, left)
    _draw_gap(audited, right)
    return figure
