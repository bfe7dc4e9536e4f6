"""Profile tables: files that are read, the JSON of our own, and each mistake in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.instances.goodput.application import Application, Batching, ScaledStep
from shadowprice.instances.goodput.tables import applications_text, load_applications
from support.goodput_tables import small, write_tables


def test_a_folder_and_a_file_say_the_same(tmp_path: Path) -> None:
    write_tables(tmp_path / "tables", small("m"))
    write_tables(tmp_path / "tables", small("n"))
    found = load_applications(tmp_path / "tables")
    assert found == (small("m"), small("n"))
    file = tmp_path / "tables.json"
    file.write_text(applications_text(found))
    assert load_applications(file) == found


def test_placements_of_wide_nodes_have_dashes_and_a_limit_has_its_file(tmp_path: Path) -> None:
    place = write_tables(tmp_path, small("m"))
    with (place / "placements.csv").open("a") as file:
        file.write("12-16,4,1,0\n")
    (place / "application.toml").write_text("most_local = 4\n")
    (found,) = load_applications(tmp_path)
    assert found.placed[-1].placement == (12, 16)
    assert found.largest_local == 4
    assert found.batching(16, 2) == Batching(4, 1)


def change(name: str, before: str, after: str) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        file = place / name
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after, 1))

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("placements.csv", "step_time", "step"), "column 'step_time' is missing, found"),
        (
            change("placements.csv", "12,", "1x,"),
            "row 7, column 'placement': got '1x', expected replicas",
        ),
        (
            change("placements.csv", "12,", "10,"),
            "row 7, column 'placement': got '10', expected replicas",
        ),
        (
            change("placements.csv", "1,4,1.0", "1,4,-1"),
            "row 1, column 'step_time': got '-1', expected",
        ),
        (change("placements.csv", "1,4,", "1,0,"), "row 1, column 'local_bsz': got '0', expected"),
        (change("validation-8.csv", "progress", "done"), "column 'progress' is missing, found"),
        (
            change("validation-8.csv", "8.0,8.0", "8.0,x"),
            "row 1, column 'iteration': got 'x', expected",
        ),
        (lambda place: (place / "placements.csv").unlink(), "has no folder with a file placements"),
        (
            lambda place: [each.unlink() for each in place.glob("validation-*")],
            "has no validation-BATCH.csv, expected one for each batch",
        ),
        (
            lambda place: (place / "application.toml").write_text("local = 3\n"),
            "application.toml: unknown key 'local'",
        ),
    ],
)
def test_each_mistake_is_one_line(
    tmp_path: Path, edit: Callable[[Path], object], message: str
) -> None:
    edit(write_tables(tmp_path, small("m")))
    with pytest.raises(InputError, match=message) as caught:
        load_applications(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ('{"applications": []}', "applications is"),
        ('{"application": []}', "unknown key 'application'"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "tables.json"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_applications(file)
    record = json.loads(applications_text((small("m"),)))
    record["applications"][0]["placed"][0][2] = -1.0
    file.write_text(json.dumps(record))
    with pytest.raises(
        InputError, match="expected replicas of each node, local batch, and seconds"
    ):
        load_applications(file)


def test_what_was_not_measured_lies_between_what_was() -> None:
    """Linear in the local batch; between nodes, replicas and local batch where a placement was not measured."""
    base = small("m")
    scaled = tuple(
        ScaledStep(n, r, b, 4.0 + n + r + b, 1.0) for n in (3, 4) for r in (4, 6) for b in (4, 8)
    )
    app = Application("m", base.placed, scaled, base.records)
    assert app.step_s((1,), 6) == (1.5, 0.0)
    assert app.step_s((2, 1), 4) == app.step_s((1, 2), 4) == (2.0, 1.0)
    assert app.step_s((1,), 9) is None
    assert app.step_s((2, 2, 1), 6) == pytest.approx((18.0, 1.0))
    assert app.step_s((1,) * 9, 4) is None
    assert base.step_s((1, 1, 1), 4) is None
