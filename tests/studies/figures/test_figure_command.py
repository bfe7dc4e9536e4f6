"""A figure's command: runs what is missing, keeps it, draws, and says what it shows."""

from __future__ import annotations

import errno
import json
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shadowprice.studies.figures import command, crossed, results
from shadowprice.studies.figures.results import read_table
from shadowprice.studies.points.point_rows import PointStore

FILE = """
from __future__ import annotations
from dataclasses import dataclass, field
from pathlib import Path
from shadowprice.studies.figures import Cause, Figure, Published, Size, Sized, estimate, main
from shadowprice.errors import InputError

@dataclass(frozen=True)
class Settings:
    rates: tuple[float, ...] = field(default=(1.0, 2.0), metadata={"help": "per hour"})
    seeds: int = 3
    trace: Path | None = None

@dataclass(frozen=True)
class Point:
    rate: float
    seed: int
    trace: Path | None

def points(settings):
    for rate in settings.rates:
        for seed in range(settings.seeds):
            yield Point(rate, seed, settings.trace)

def run(point):
    with open(Path(__file__).parent / "ran.log", "a") as log:
        log.write(f"{point.rate} {point.seed}\\n")
    if point.rate == 13.0:
        raise RuntimeError("no such rate")
    if point.rate == 14.0:
        raise InputError("rate 14: expected another")
    return [{"rate": point.rate, "seed": point.seed, "policy": "a", "jct_h": point.rate * 10 + point.seed}]

def draw(table, settings, page):
    picture, (axes,) = page.grid(1, 1, 2.0)
    page.lines(axes, table, x="rate", y="jct_h", by="policy", order=["a", "b"])
    page.published_line(axes, 11.0, "published")
    axes.set(xlabel="rate", ylabel="JCT [h]")
    axes.legend()
    axes.set_title("title", fontsize=SIZE)
    return picture

def caption(table, settings):
    return f"{len(table)} runs."

PUBLISHED = (Published("A", "Figure 1", "mean JCT", 11.0, "h",
    lambda table: estimate(table[table.rate == 1.0].jct_h) if (table.rate == 1.0).any() else None, "toy",
    Cause.NOT_PUBLIC, "The jobs are not public."),)
FIGURE = Figure("toy", "A paper, Figure 1",
    {Size.QUICK: Sized(Settings(seeds=1), 0.1), Size.DEFAULT: Sized(Settings(), 0.1)},
    points, run, draw, caption, PUBLISHED)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(FILE.replace("SIZE", "9"))
    return tmp_path


def made(folder: Path, *arguments: str) -> int:
    return command.run_folder(folder, ["--processes", "1", *arguments])


def one(folder: Path, *arguments: str) -> int:
    """As the file's own command."""
    figure = command.load_figure(folder / "toy.py")
    return command._reported(
        lambda: command._one(figure, folder / "toy.py", ["--processes", "1", *arguments])
    )


def ran(folder: Path) -> list[str]:
    log = folder / "ran.log"
    found = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return found


def test_writes_data_pictures_and_a_computed_caption(folder: Path) -> None:
    assert made(folder) == 0
    out = folder / "out"
    assert (out / "toy.png").read_bytes()[:4] == b"\x89PNG"
    assert (out / "toy.pdf").read_bytes()[:4] == b"%PDF"
    text = (out / "toy.txt").read_text()
    assert "6 runs." in text
    assert "published 11 h, ours 11 [8.78, 13.8] (n = 3): open (not public)." in text
    # Default settings: the table that is kept in the repository, with what made it.
    stored = (folder / "data" / "toy.csv").read_text()
    assert "# code " in stored
    assert "numpy" in stored
    assert "size default" in stored
    assert stored == (out / "toy.csv").read_text()
    assert len(read_table(folder / "data" / "toy.csv")) == 6


def test_a_run_that_was_stopped_goes_on_and_gives_the_same_bytes(folder: Path) -> None:
    assert made(folder) == 0
    assert len(ran(folder)) == 6
    whole = [(folder / "out" / f"toy.{kind}").read_bytes() for kind in ("csv", "pdf", "txt")]
    kept = folder / "out" / "points" / "toy.jsonl"
    lines = kept.read_text().splitlines()
    # Killed while the third line was written, the others in another order.
    kept.write_text("\n".join([lines[4], lines[0], lines[2][:20]]))
    assert made(folder) == 0
    assert len(ran(folder)) == 4
    csv, *others = [(folder / "out" / f"toy.{kind}").read_bytes() for kind in ("csv", "pdf", "txt")]
    assert others == whole[1:]
    without_time = [line for line in csv.splitlines() if b"minutes of CPU" not in line]
    assert without_time == [line for line in whole[0].splitlines() if b"minutes of CPU" not in line]
    assert made(folder) == 0
    assert ran(folder) == []


def test_changed_code_runs_anew_unless_older_results_are_asked_for(folder: Path) -> None:
    assert one(folder, "--size", "quick") == 0
    ran(folder)
    (folder / "_shared.py").write_text("X = 1\n")
    assert one(folder, "--size", "quick", "--older") == 0
    assert ran(folder) == []
    assert "2 points were run before the code was changed" in (folder / "out/toy.txt").read_text()
    assert one(folder, "--size", "quick") == 0
    assert len(ran(folder)) == 2


def test_options_are_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert one(folder, "--rates", "3,4.5", "--seeds", "1") == 0
    assert ran(folder) == ["3.0 0", "4.5 0"]
    # No row at the published rate: nothing is said of it; the repository's table is not touched.
    assert "published" not in (folder / "out" / "toy.txt").read_text()
    assert not (folder / "data").exists()
    assert one(folder, "--seeds", "many") == 2
    assert "--seeds 'many'" in capsys.readouterr().err
    assert one(folder, "--trace", str(folder / "none.csv")) == 2
    assert "none.csv" in capsys.readouterr().err
    assert made(folder, "other") == 2
    assert "figure 'other' is not one of toy" in capsys.readouterr().err


def seeds_of(folder: Path) -> set[int]:
    """Seeds of the table that was written last, whether it is kept or not."""
    return set(read_table(folder / "out" / "toy.csv").seed)


@pytest.mark.parametrize("command_of", [made, one])
def test_other_seeds_can_be_run(
    folder: Path, command_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """They are moved as they are, and the kept table is of the figure's own."""
    assert command_of(folder) == 0
    stored = (folder / "data" / "toy.csv").read_text()
    ran(folder)
    assert command_of(folder, "--first-seed", "100") == 0
    assert seeds_of(folder) == {100, 101, 102}
    assert sorted(ran(folder)) == [
        f"{rate} {seed}" for rate in ("1.0", "2.0") for seed in (100, 101, 102)
    ]
    assert "size default; seeds from 100" in (folder / "out" / "toy.csv").read_text()
    assert (folder / "data" / "toy.csv").read_text() == stored
    # The figure's own least seed is no other one, and their rows are still there.
    assert command_of(folder, "--first-seed", "0") == 0
    assert seeds_of(folder) == {0, 1, 2}
    assert ran(folder) == []
    assert (folder / "data" / "toy.csv").read_text() == stored
    assert command_of(folder, "--first-seed", "-1") == 2
    assert "--first-seed -1: expected 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize("moved", [(), ("--first-seed", "4")])
def test_settings_without_a_point_are_refused(
    folder: Path, moved: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert one(folder, "--seeds", "0", *moved) == 2
    assert "error: figure toy: nothing to run with these settings" in capsys.readouterr().err


def test_where_nothing_is_drawn_no_seed_can_be_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        FILE.replace("SIZE", "9")
        .replace("    seed: int\n", "")
        .replace(", seed, settings", ", settings")
    )
    (tmp_path / "toy.py").write_text(text)
    assert made(tmp_path, "--first-seed", "7") == 2
    assert "--first-seed 7: figure toy has no seeds" in capsys.readouterr().err


def test_contents_of_a_file_are_part_of_a_point(folder: Path) -> None:
    trace = folder / "jobs.csv"
    for text, runs in (("a", 2), ("b", 2), ("a", 0)):
        trace.write_text(text)
        results.file_digest.cache_clear()
        assert one(folder, "--size", "quick", "--trace", str(trace)) == 0
        assert len(ran(folder)) == runs


def test_a_quick_run_compares_with_nothing(folder: Path) -> None:
    assert made(folder, "--size", "quick") == 0
    text = (folder / "out" / "toy.txt").read_text()
    assert "too small to be compared" in text
    assert "ours" not in text
    assert not (folder / "data").exists()


def test_a_point_that_fails_takes_no_other_with_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert one(folder, "--rates", "1,13,2", "--seeds", "1") == 1
    assert len(ran(folder)) == 3
    assert "toy: not drawn, point" in capsys.readouterr().err
    kept = (folder / "out" / "points" / "toy.jsonl").read_text().splitlines()
    assert [json.loads(line)["rows"][0]["rate"] for line in kept] == [1.0, 2.0]


def test_what_a_user_made_fail_is_said_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert one(folder, "--rates", "14", "--seeds", "1") == 1
    point = '{"rate": 14.0, "seed": 0, "trace": null}'
    assert capsys.readouterr().err.splitlines() == [
        f"toy {point} failed",
        "rate 14: expected another",
        f"toy: not drawn, point {point} failed: rate 14: expected another",
    ]


def test_a_figure_that_is_named_twice_is_made_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(folder, "toy", "toy", "--size", "quick") == 0
    assert len(ran(folder)) == 2
    assert capsys.readouterr().out.count("toy.pdf") == 1


def test_where_rows_cannot_be_stored_the_same_command_goes_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = PointStore._append

    def full(store: PointStore, path: Path, line: str) -> None:
        if path.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(store, path, line)

    with monkeypatch.context() as patched:
        patched.setattr(PointStore, "_append", full)
        assert one(folder, "--size", "quick") == 2
    assert "points: cannot be written: No space left on device" in capsys.readouterr().err
    assert ran(folder) == ["1.0 0", "2.0 0"]
    assert one(folder, "--size", "quick") == 0
    assert ran(folder) == ["2.0 0"]


def test_redraw_runs_nothing(folder: Path) -> None:
    assert made(folder) == 0
    ran(folder)
    (folder / "out" / "points" / "toy.jsonl").unlink()
    (folder / "out" / "toy.png").unlink()
    assert made(folder, "--redraw") == 0
    assert ran(folder) == []
    assert (folder / "out" / "toy.png").exists()


def test_small_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(FILE.replace("SIZE", "7"))
    with pytest.raises(ValueError, match="'title' is 7"):
        made(tmp_path, "--size", "quick")


def test_a_file_without_figure_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain.py").write_text(textwrap.dedent("X = 1\n"))
    assert made(tmp_path) == 2
    assert "needs FIGURE = Figure(name='plain'" in capsys.readouterr().err


@dataclass(frozen=True)
class Axes:
    """Settings of which a point has one as it is."""

    rates: tuple[float, ...] = (0.5, 2.0)
    jobs: int = 7


@dataclass(frozen=True)
class Crossed:
    seed: int
    jobs: int
    rate: float


def test_points_are_all_combinations_in_order() -> None:
    """The last axis fastest; what is no axis is as the settings have it."""
    points = list(crossed(Crossed, Axes(), rate=Axes.rates, seed=range(2)))
    assert points == [Crossed(seed, 7, rate) for rate in (0.5, 2.0) for seed in (0, 1)]
    assert list(crossed(Crossed, Axes(), rate=(), seed=range(2))) == []
    with pytest.raises(AttributeError, match="seed"):
        list(crossed(Crossed, Axes(), rate=(1.0,)))


def test_several_processes_give_the_same_table(folder: Path) -> None:
    assert command.run_folder(folder, ["--processes", "2"]) == 0
    parallel = read_table(folder / "out" / "toy.csv")
    (folder / "out" / "points" / "toy.jsonl").unlink()
    assert made(folder) == 0
    assert read_table(folder / "out" / "toy.csv").equals(parallel)
