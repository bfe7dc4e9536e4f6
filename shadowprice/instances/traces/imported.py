"""Result of an importer: the workload, and the rows dropped or repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shadowprice.instances.entries import on_one_line

if TYPE_CHECKING:
    from shadowprice.instances.workload import Workload


@dataclass(frozen=True)
class Finding:
    """Rows an importer did not take as they were.

    Parameters
    ----------
    action : str
        ``dropped`` or ``repaired``.
    count : int
        How many rows.
    why : str
        What was wrong with them, or what was done.
    example : str
        The first of them.
    """

    action: str
    count: int
    why: str
    example: str

    def __str__(self) -> str:
        # The example is of the file, and may hold line ends within quotes.
        first = self.example if on_one_line(self.example) else repr(self.example)
        return f"{self.action} {self.count} rows: {self.why} (first: {first})"


@dataclass(frozen=True)
class Imported:
    """A workload and the report of its import."""

    workload: Workload
    report: tuple[Finding, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{len(self.workload)} jobs", *map(str, self.report)])
