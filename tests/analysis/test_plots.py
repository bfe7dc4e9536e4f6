"""Pictures: what is drawn is what was scheduled."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.plots import gantt as gantt_module
from shadowprice.analysis.plots.distributions import jct_cdf, plot_comparison, ratio_bars
from shadowprice.analysis.plots.job_colours import colours_of_gangs, colours_of_jobs
from shadowprice.analysis.plots.style import time_unit
from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy

BLACK = "#222222"


def outcome_of(instance: Instance, name: str = "srtf") -> Outcome:
    return Outcome.verified(instance, run(instance, policy(name)).schedule, policy=name)


def example(jobs: int = 20, overheads: Overheads | None = None) -> Outcome:
    """Jobs of 1 to 4 GPUs that arrive faster than they are done."""
    k = np.arange(jobs)
    workload = Workload.from_columns(
        arrival_s=10 * k, gpus=1 + k % 4, work=30 + (37 * k) % 200, id=[f"j{i}" for i in k]
    )
    return outcome_of(Instance(Cluster.parse("2x4"), workload, overheads or Overheads()))


def nothing() -> Outcome:
    workload = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    return outcome_of(Instance(Cluster.parse("2x4"), workload))


def boxes(axes: Axes) -> tuple[NDArray[np.float64], list[str]]:
    """(left, right, low, high) of every box, and its colour."""
    (drawn,) = [child for child in axes.collections if isinstance(child, PolyCollection)]
    corners = np.array([path.vertices[:4] for path in drawn.get_paths()]).reshape(-1, 4, 2)
    x, y = corners[:, :, 0], corners[:, :, 1]
    limits = np.stack((x.min(axis=1), x.max(axis=1), y.min(axis=1), y.max(axis=1)), axis=1)
    return limits, [to_hex(colour) for colour in drawn.get_facecolor()]


def areas(limits: NDArray[np.float64]) -> NDArray[np.float64]:
    return (limits[:, 1] - limits[:, 0]) * (limits[:, 3] - limits[:, 2])


def rendered(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=50)
    return buffer.getvalue()


@given(instances(max_work_s=10))
def test_gantt_draws_every_gpu_second_once(instance: Instance) -> None:
    outcome = outcome_of(instance, "las:quantum_s=3")
    schedule = outcome.schedule
    limits, _ = boxes(outcome.plot_gantt())
    held = float(np.dot(schedule.gpus, schedule.end_s - schedule.start_s))
    assert areas(limits).sum() == pytest.approx(held)
    lanes = np.zeros((instance.cluster.total_gpus, int(schedule.end_s.max())), dtype=int)
    for left, right, low, high in np.round(limits).astype(int):
        lanes[low:high, left:right] += 1
    assert lanes.max() == 1


def test_gantt_draws_overhead_in_black_and_says_so() -> None:
    outcome = example(overheads=Overheads(start_s=5.0, restart_s=7.0))
    axes = outcome.plot_gantt()
    limits, colours = boxes(axes)
    _, unit = time_unit(float(outcome.schedule.end_s.max()))
    assert unit == "minutes"
    black = np.array([colour == BLACK for colour in colours])
    paid = float(np.dot(outcome.schedule.gpus, outcome.schedule.overhead_s))
    assert areas(limits[black]).sum() * 60 == pytest.approx(paid)
    assert "black: overhead" in axes.get_title(loc="left")


def test_gantt_of_a_few_jobs_names_them_and_labels_units() -> None:
    axes = example(8).plot_gantt()
    assert {text.get_text() for text in axes.texts} >= {"j0", "j1", "j2"}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time [minutes]", "GPU, 2 nodes")


def test_colours_of_a_few_jobs_tell_them_apart_and_of_many_their_gangs() -> None:
    few = example(8).plot_gantt()
    assert few.get_legend() is None
    outcome = example()
    assert len(outcome.instance.workload) > 8
    axes = outcome.plot_gantt()
    legend = axes.get_legend()
    assert legend.get_title().get_text() == "gang [GPUs]"
    shade = {
        text.get_text(): to_hex(patch.get_facecolor())
        for text, patch in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    _, colours = boxes(axes)
    assert set(colours) == set(shade.values())
    by_job = colours_of_jobs(outcome.instance.workload).of
    for gang, colour in zip(outcome.instance.workload.gpus.tolist(), by_job, strict=True):
        assert shade[str(gang)] == colour


@given(st.lists(st.integers(1, 4096), min_size=9, max_size=60))
def test_gangs_grow_darker(gpus: list[int]) -> None:
    found = colours_of_gangs(gpus)
    assert len(found.meaning) <= 13
    light = {gang: sum(to_rgb(colour)) for gang, colour in zip(gpus, found.of, strict=True)}
    by_gang = [light[gang] for gang in sorted(light)]
    assert by_gang == sorted(by_gang, reverse=True)
    assert set(found.of) == {colour for _, colour in found.meaning}


def test_colours_may_stand_for_tenants_and_refuse_what_is_unknown() -> None:
    jobs = Workload.from_columns(
        arrival_s=np.zeros(10), gpus=np.ones(10), work=np.ones(10), tenant=[*"aaaabbbccd"]
    )
    found = colours_of_jobs(jobs, "tenant")
    assert [label for label, _ in found.meaning] == ["a", "b", "c", "d"]
    assert found.of[0] == found.of[3] != found.of[4]
    with pytest.raises(InputError, match="expected one of job, gang, tenant"):
        colours_of_jobs(jobs, "weight")


def test_gantt_of_many_rows_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gantt_module, "MAX_ROWS", 10)
    outcome = example()
    axes = outcome.plot_gantt()
    assert f"the earliest 10 of {len(outcome.schedule)} rows" in axes.get_title(loc="left")
    # Nothing that is left out may look like an idle GPU.
    starts = np.sort(outcome.schedule.start_s)
    unit, _ = time_unit(float(starts[10]))
    assert axes.get_xlim()[1] * unit == pytest.approx(starts[10])


def test_cdf_is_the_share_of_jobs_done_by_then() -> None:
    axes = jct_cdf({"p": np.array([30.0, 10.0, 10.0, 20.0])})
    (line,) = axes.get_lines()
    assert line.get_xdata().tolist() == [10, 10, 10, 10, 20, 20, 30, 30]
    assert line.get_ydata().tolist() == [0, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 1]
    assert axes.get_xlabel() == "job completion time [seconds]"


def test_axes_that_are_given_are_drawn_on_and_returned() -> None:
    for draw in (example().plot_gantt, example().plot_jct_cdf):
        axes = Figure().add_subplot()
        assert draw(axes) is axes
        assert draw() is not axes
        assert axes.has_data()


def test_ratio_bars_have_their_heights_labels_and_hatches() -> None:
    ratios = {"a": 1.5, "b": 1.0, "c": math.inf}
    axes = ratio_bars(ratios, objective="flow", exact={"b": True})
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[:2] == [1.5, 1.0]
    assert math.isfinite(heights[2])
    assert heights[2] > 1.5
    assert [bool(bar.get_hatch()) for bar in axes.patches] == [True, False, True]
    assert [text.get_text() for text in axes.texts] == ["1.5x", "1x", "no bound"]
    assert axes.get_ylabel() == "cost / bound, flow"
    assert "lower bound" in axes.get_title(loc="left")
    assert "lower bound" not in ratio_bars({"b": 1.0}, exact={"b": True}).get_title(loc="left")


def test_a_comparison_has_a_line_and_a_bar_for_each_policy() -> None:
    outcomes = {"srtf": example(), "fifo": outcome_of(example().instance, "fifo")}
    ratios = {"srtf": 1.0, "fifo": 2.0}
    jct_s = {name: outcome.jct_s for name, outcome in outcomes.items()}
    figure = plot_comparison(jct_s, ratios, objective="flow", certified={"srtf": True})
    left, right = figure.axes
    assert [line.get_label() for line in left.get_lines()] == ["srtf", "fifo"]
    lines = [line.get_color() for line in left.get_lines()]
    assert lines == [to_hex(bar.get_facecolor()).upper() for bar in right.patches]
    assert rendered(figure).startswith(b"\x89PNG")


def test_policies_of_files_have_their_own_names_in_pictures() -> None:
    names = ["fifo", "some/folder/mine.py:Own:window_s=60"]
    left = jct_cdf({name: np.array([1.0, 2.0]) for name in names})
    right = ratio_bars(dict.fromkeys(names, 1.5))
    legend = left.get_legend()
    assert legend is not None
    shown = ["fifo", "Own:window_s=60"]
    assert [text.get_text() for text in legend.get_texts()] == shown
    assert [text.get_text() for text in right.get_xticklabels()] == shown
    two = ["a.py:Own", "b.py:Own"]
    alike = ratio_bars(dict.fromkeys(two, 1.5))
    assert [text.get_text() for text in alike.get_xticklabels()] == two


def test_no_jobs_and_many_policies_can_be_drawn() -> None:
    empty = nothing()
    rendered(empty.plot_gantt().figure)
    rendered(empty.plot_jct_cdf().figure)
    names = [f"a policy with a long name {k}" for k in range(12)]
    rendered(ratio_bars(dict.fromkeys(names, 1.5)).figure)
    rendered(jct_cdf({name: np.array([1.0, 2.0]) for name in names}).figure)
    rendered(jct_cdf({}).figure)
