"""Windows of jobs: a run goes on until these are complete, and they alone are measured.

Jobs before the window warm the cluster up, jobs after it keep it loaded: "new jobs continue to be added
until jobs of interest complete" (Gavel, OSDI'20, section 7.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from shadowprice.errors import InputError
from shadowprice.instances.grid import MAX_TIME_S

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
