"""Windows of jobs as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import UNSET, Meta, UnsetType

from shadowprice.analysis.terms.written_term import PositiveSeconds, WrittenRun, WrittenTerm
from shadowprice.errors import InputError
from shadowprice.instances.entries import MAX_WHOLE
from shadowprice.instances.features import Feature
from shadowprice.instances.steady_state.job_window import JobWindow

_Row = Annotated[int, Meta(ge=0, le=MAX_WHOLE, description="a whole number >= 0")]


@dataclass(frozen=True)
class WindowSettings(WrittenTerm):
    """The run ends when some jobs are complete, counted from 0 in order of arrival, and measures them alone.

    Parameters
    ----------
    last : int
        Job before which the window ends: jobs first to last - 1 are in it.
    first : int
        First job of the window.
    latest_s : float
        Time at which the run is given up with an error; never if left out.
    """

    feature: ClassVar[Feature] = Feature.WINDOW
    sets: ClassVar[tuple[str, ...]] = ("until_complete",)
    example: ClassVar[str] = (
        "simulate --endless gavel-published:seed=1 --cluster 4x8 --policy srtf --with window:first=100,last=200"
    )

    last: _Row
    first: _Row = 0
    latest_s: PositiveSeconds | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.first >= self.last:
            raise InputError(f"first is {self.first} and last {self.last}, expected first < last")
        self._window()

    def on(self, run: WrittenRun) -> WrittenRun:
        """The run that ends with the window."""
        return run.switched(until_complete=self._window())

    def _window(self) -> JobWindow:
        if self.latest_s is UNSET:
            return JobWindow(self.first, self.last)
        return JobWindow(self.first, self.last, self.latest_s)
