"""Windows of jobs: a run goes on until these are complete, and they alone are measured.

Jobs before the window warm the cluster up, jobs after it keep it loaded: "new jobs continue to be added
until jobs of interest complete" (Gavel, OSDI'20, section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from msgspec import UNSET, Meta, UnsetType

from shadowprice.errors import EarlyEndError, InputError
from shadowprice.instances.documents.schema import Line
from shadowprice.instances.entries import MAX_WHOLE
from shadowprice.instances.features import Feature
from shadowprice.instances.grid import MAX_TIME_S
from shadowprice.instances.terms.settings import PositiveSeconds, TermContext, TermSettings
from shadowprice.instances.terms.term import InstanceFields, SeenInstance, Term

EXPECTED = "FIRST:LAST or FIRST:LAST:LATEST_S with 0 <= FIRST < LAST, such as 4000:5000"


@dataclass(frozen=True)
class JobWindow:
    """Jobs ``first`` to ``last - 1`` in order of arrival, counted from 0.

    Parameters
    ----------
    first, last : int
        0 <= first < last.
    latest_s : float
        Time at which a run is given up if they are not complete by then [s].

    Raises
    ------
    InputError
        If the window is empty or the time is not positive.
    """

    first: int
    last: int
    latest_s: float = math.inf

    def __post_init__(self) -> None:
        if not 0 <= self.first < self.last:
            raise InputError(f"job window {self}: expected {EXPECTED}")
        if not (0 < self.latest_s <= MAX_TIME_S or self.latest_s == math.inf):
            raise InputError(
                f"job window {self}: given up at {self.latest_s!r} s, expected a number of seconds > 0, "
                f"at most {MAX_TIME_S:.10g}"
            )

    @classmethod
    def parse(cls, text: str) -> JobWindow:
        """Read a window as it is written: ``4000:5000``.

        Raises
        ------
        InputError
            If the text has another form or the window is empty.

        Examples
        --------
        >>> JobWindow.parse("4000:5000"), str(JobWindow.parse("0:10:3600"))
        (JobWindow(first=4000, last=5000, latest_s=inf), '0:10:3600')
        """
        words = text.split(":")
        if len(words) not in (2, 3) or not all(word.isdecimal() for word in words[:2]):
            raise InputError(f"job window {text!r}: expected {EXPECTED}")
        try:
            latest_s = float(words[2]) if len(words) == 3 else math.inf
        except ValueError as error:
            raise InputError(f"job window {text!r}: expected {EXPECTED}") from error
        return cls(int(words[0]), int(words[1]), latest_s)

    @property
    def rows(self) -> slice:
        """The jobs as rows of a workload."""
        return slice(self.first, self.last)

    def __str__(self) -> str:
        told = f"{self.first}:{self.last}"
        return told if self.latest_s == math.inf else f"{told}:{self.latest_s:.10g}"


_Row = Annotated[int, Meta(ge=0, le=MAX_WHOLE, description="a whole number >= 0")]


@dataclass(frozen=True)
class WindowSettings(TermSettings):
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

    def on(self, run: TermContext) -> TermContext:
        """The run that ends with the window."""
        return run.with_options(until_complete=self._window())

    def _window(self) -> JobWindow:
        if self.latest_s is UNSET:
            return JobWindow(self.first, self.last)
        return JobWindow(self.first, self.last, self.latest_s)


class WindowTerm(Term[JobWindow]):
    """Jobs whose completion ends the run."""

    feature: ClassVar[Feature] = Feature.WINDOW
    entry: ClassVar[str] = "until_complete"
    record: ClassVar[Any] = Line
    settings: ClassVar[type[TermSettings] | None] = WindowSettings

    def check(self, value: JobWindow, instance: SeenInstance) -> None:
        """Refuse windows of jobs that there are not."""
        jobs = instance.workload
        if value.last > len(jobs):
            raise EarlyEndError(
                f"{jobs.source}: has {len(jobs)} jobs, jobs {value.first} to {value.last - 1} are to be "
                "complete; expected a longer trace, or an endless one"
            )

    def lifted(self, instance: SeenInstance) -> InstanceFields:
        """No window: who counts is for the caller to say."""
        return {"until_complete": None}

    def written(self, value: JobWindow) -> Any:
        """The window as text: ``4000:5000``."""
        return str(value)

    def read(self, record: Any, so_far: Mapping[str, Any]) -> InstanceFields:
        """The window."""
        return {**so_far, "until_complete": JobWindow.parse(record)}
