"""Ways to read a log that can be read in several, as the format's name has them: ``helios:keep=completed``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from shadowprice.errors import InputError
from shadowprice.instances.documents.named_settings import read_settings
from shadowprice.instances.entries import known_keys


class Keep(StrEnum):
    """Jobs of a log that are replayed."""

    ALL = "all"
    """All that ran, however they ended."""

    COMPLETED = "completed"
    """Those that ended well."""


class Attempts(StrEnum):
    """Run time of a job that was started several times."""

    SUM = "sum"
    """Time of all attempts, without the gaps between them."""

    SPAN = "span"
    """From the first start to the last end, gaps included."""

    LAST = "last"
    """The last attempt alone."""


class Fractions(StrEnum):
    """Jobs that ask for parts of a GPU."""

    KEEP = "keep"
    """As they are, in thousandths of one GPU; parts of several are rounded up to whole ones."""

    DROP = "drop"
    ROUND_UP = "round-up"


class CpuJobs(StrEnum):
    """Jobs that ask for CPUs and no GPU."""

    DROP = "drop"
    KEEP = "keep"
    """As jobs that hold cores, on nodes that have cores and no GPUs; those of GPU nodes are nobody's."""


@dataclass(frozen=True)
class LogReading:
    """Reading of a log that can be read in several ways.

    Parameters
    ----------
    keep : Keep
    attempts : Attempts
    fractions : Fractions, optional
        Must be given for a log with jobs that ask for parts of a GPU.
    cpu_jobs : CpuJobs
    window_s : tuple of two float, optional
        Jobs that arrive from the one time, before the other; counted from the first arrival [s].
    longest_s : float, optional
        Longer work is cut to it [s]; for workloads whose work is time.
    zone : str, optional
        Zone of dates without one (``Europe/Paris``), for logs whose site is not known.
    recorded : bool
        Read when and where each job ran as well; no choice of a text.
    """

    keep: Keep = Keep.ALL
    attempts: Attempts = Attempts.SUM
    fractions: Fractions | None = None
    cpu_jobs: CpuJobs = CpuJobs.DROP
    window_s: tuple[float, float] | None = None
    longest_s: float | None = None
    zone: str | None = None
    recorded: bool = False

    def __post_init__(self) -> None:
        if self.window_s is not None and not 0 <= self.window_s[0] < self.window_s[1]:
            raise InputError("window: expected START-END in seconds, START before END")
        if self.longest_s is not None and not self.longest_s > 0:
            raise InputError("longest_s: expected seconds above 0")

    @classmethod
    def read(cls, text: str) -> LogReading:
        """Read ``keep=completed,attempts=span,fractions=drop,cpu-jobs=keep,window=0-86400``; ``zone=Europe/Paris``.

        Raises
        ------
        InputError
            If a choice is unknown, given twice, or not one of its values.
        """
        chosen: dict[str, Any] = {}
        given = read_settings(text, "choices")
        for name, value in known_keys(given, "choices", tuple(_READERS)).items():
            field, reader = _READERS[name]
            try:
                chosen[field] = reader(value)
            except ValueError:
                raise InputError(
                    f"choice {name!r}: got {value!r}, expected {_EXPECTED[name]}"
                ) from None
        return cls(**chosen)

    @property
    def of_log(self) -> bool:
        """True if something is chosen that only an importer of logs knows."""
        return self != LogReading(window_s=self.window_s, longest_s=self.longest_s)


def _window(text: str) -> tuple[float, float]:
    start, _, end = text.partition("-")
    return float(start), float(end)


def _zone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (KeyError, OSError) as error:
        raise ValueError(text) from error
    return text


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "keep": ("keep", Keep),
    "attempts": ("attempts", Attempts),
    "fractions": ("fractions", Fractions),
    "cpu-jobs": ("cpu_jobs", CpuJobs),
    "window": ("window_s", _window),
    "longest_s": ("longest_s", float),
    "zone": ("zone", _zone),
}

_EXPECTED = {
    "keep": ", ".join(Keep),
    "attempts": ", ".join(Attempts),
    "fractions": ", ".join(Fractions),
    "cpu-jobs": ", ".join(CpuJobs),
    "window": "START-END in seconds from the first arrival",
    "longest_s": "a number of seconds",
    "zone": "a zone such as Europe/Paris",
}
