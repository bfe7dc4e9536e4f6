"""Schedules as CSV that any language writes: one row for each node of each run."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import InputError
from shadowprice.instances.schedule import ALONE, Schedule

REQUIRED = ("job", "node", "gpus", "start_s", "end_s")
"""Columns of every schedule."""
OPTIONAL = (
    "overhead_s",
    "partner",
    "cpus",
    "memory_gb",
    "shared_gpu",
    "stages",
    "goes_on",
)
"""Columns of instances that have such a thing."""
_USUAL: Mapping[str, float] = {"overhead_s": 0.0, "partner": ALONE}
"""Columns that are left out where all rows have this."""
_COMMENT = "#"


@dataclass(frozen=True, eq=False)
class ScheduleText:
    """A file of a schedule.

    Parameters
    ----------
    schedule : Schedule
        Its rows, in the order of the file.
    about : mapping of str to str
        What its first lines say, ``# KEY: VALUE`` each.
    """

    schedule: Schedule
    about: Mapping[str, str]


def text_of_schedule(schedule: Schedule, about: Mapping[str, str]) -> str:
    """CSV of a schedule, by start, job and node, after a line for each thing that it is about."""
    frame = schedule.to_frame()
    frame = frame.iloc[np.lexsort((schedule.node, schedule.job, schedule.start_s))]
    columns: dict[str, list[str]] = {}
    for name in (*REQUIRED, *OPTIONAL):
        if name in frame and not (name in _USUAL and bool((frame[name] == _USUAL[name]).all())):
            write = _stages_text if name == "stages" else _number_text
            columns[name] = [write(each) for each in frame[name].tolist()]
    lines = [f"{_COMMENT} {key}: {value}" for key, value in about.items()]
    lines.append(",".join(columns))
    lines += [",".join(row) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def _number_text(value: float) -> str:
    """Shortest text from which the number is read again."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _stages_text(stages: tuple[int, ...]) -> str:
    return " ".join(str(each) for each in stages)


def schedule_of_text(text: str, where: str) -> ScheduleText:
    """Inverse of :func:`text_of_schedule`, of columns in any order.

    Raises
    ------
    InputError
        Naming the line, the column, the value and what was expected.
    """
    about: dict[str, str] = {}
    lines = list(_lines(text, about))
    if not lines:
        raise InputError(f"{where}: is empty, expected columns {', '.join(REQUIRED)}")
    header = [name.strip() for name in lines[0][1].split(",")]
    _check_header(header, where)
    rows = [line.rstrip("\r\n").split(",") for _, line in lines[1:]]
    for (number, _), row in zip(lines[1:], rows, strict=True):
        if len(row) != len(header):
            raise InputError(
                f"{where}: line {number}: has {len(row)} values, expected {len(header)}"
            )
    numbers = [number for number, _ in lines[1:]]
    columns = {
        name: _column(name, [row[k] for row in rows], numbers, where)
        for k, name in enumerate(header)
    }
    import pandas as pd

    columns.setdefault("overhead_s", np.zeros(len(rows)))
    return ScheduleText(Schedule.from_frame(pd.DataFrame(columns), source=where), about)


def _lines(text: str, about: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Lines of the table with their numbers from 1; those before it are taken apart."""
    for number, line in enumerate(io.StringIO(text), 1):
        if line.startswith(_COMMENT):
            key, colon, value = line[len(_COMMENT) :].partition(":")
            if colon:
                about[key.strip()] = value.strip()
        elif line.strip():
            yield number, line


def _check_header(header: list[str], where: str) -> None:
    known = (*REQUIRED, *OPTIONAL)
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        raise InputError(
            f"{where}: column {missing[0]!r} is missing, expected {', '.join(REQUIRED)}"
        )
    for name in header:
        if name not in known or header.count(name) > 1:
            raise InputError(f"{where}: column {name!r}, expected each once of {', '.join(known)}")


def _column(name: str, cells: list[str], numbers: list[int], where: str) -> NDArray[Any]:
    read: Callable[[str], Any] = _stages if name == "stages" else float
    values = np.empty(len(cells), dtype=object if name == "stages" else np.float64)
    for row, cell in enumerate(cells):
        try:
            values[row] = read(cell)
        except ValueError:
            raise InputError(
                f"{where}: line {numbers[row]}, column {name!r}: got {cell!r:.80}, expected "
                f"{'whole numbers with spaces between them' if name == 'stages' else 'a number'}"
            ) from None
    return values


def _stages(cell: str) -> tuple[int, ...]:
    return tuple(int(each) for each in cell.split())
