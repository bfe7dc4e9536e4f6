"""A term as it is written: a record of settings, and what a run has with it.

The fields of the record are the settings: their annotations say what is expected and in which unit, their defaults
what is taken where nothing is said, the docstring what they mean. ``UNSET`` is the default of a setting that may be
left out and has no value of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias, get_args, get_type_hints

from msgspec import UNSET, Meta

from shadowprice.brief import Brief
from shadowprice.docstrings import described_parameters
from shadowprice.instances.documents.named_settings import joined_settings
from shadowprice.instances.documents.plain_data import settings_in
from shadowprice.instances.documents.schema import expectation
from shadowprice.instances.entries import LARGEST
from shadowprice.instances.features import Feature

if TYPE_CHECKING:
    from shadowprice.instances.cluster import Cluster

_S = {"unit": "s"}
_GB_PER_S = {"unit": "GB/s"}

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=LARGEST, description="seconds >= 0", extra=_S)]
PositiveSeconds: TypeAlias = Annotated[
    float, Meta(gt=0, le=LARGEST, description="seconds > 0", extra=_S)
]
Bandwidth: TypeAlias = Annotated[
    float, Meta(gt=0, le=LARGEST, description="GB/s > 0", extra=_GB_PER_S)
]


@dataclass(frozen=True, repr=False)
class TermContext(Brief):
    """Cluster of a run and the options that terms set, as far as they were read, and where its jobs are from.

    Parameters
    ----------
    cluster : Cluster
    jobs : str
        Trace or generator, for messages.
    origin_s : float or None
        Time 0 of the jobs, in seconds since 1970, if the trace says it.
    endless : bool
        Whether jobs come without end.
    seed : int
        Seed of draws that say no other.
    options : mapping
        Values of options of :class:`~shadowprice.analysis.run_options.RunOptions`, by name.
    """

    cluster: Cluster
    jobs: str
    origin_s: float | None = None
    endless: bool = False
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_options(self, **options: Any) -> TermContext:
        """The same run with other values of some of its options."""
        return replace(self, options={**self.options, **options})


class TermSettings(ABC):
    """Settings of a term: a frozen dataclass.

    Attributes
    ----------
    feature : Feature
        What it brings, and its name.
    sets : tuple of str
        Options of :class:`RunOptions` that it sets; none of a term of the cluster.
    example : str
        Command line that has it.
    """

    feature: ClassVar[Feature]
    sets: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[str]

    @abstractmethod
    def on(self, run: TermContext) -> TermContext:
        """The run with the term, files read.

        Raises
        ------
        InputError
            If a file is not as expected, or the term says nothing of such a cluster or such jobs.
        """

    @property
    def label(self) -> str:
        """Name by which it is written."""
        return self.feature.value

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that are not as usual, as plain data."""
        return settings_in(self)

    @property
    def files(self) -> dict[str, str]:
        """Paths of the files that it names, by setting."""
        given = self.settings
        return {name: given[name] for name in given if _extra(type(self), name).get("file")}

    def within(self, folder: Path) -> TermSettings:
        """The same term, whose paths are relative to a folder, with absolute ones."""
        found = {
            name: str((folder / Path(path).expanduser()).absolute())
            for name, path in self.files.items()
        }
        return replace(self, **found)  # type: ignore[type-var]

    def __str__(self) -> str:
        """The term as an option has it."""
        return joined_settings(self.label, self.settings)


@dataclass(frozen=True)
class TermSetting:
    """One setting of a term, as its page shows it.

    Parameters
    ----------
    name, expected : str
    default : object
        None where there is none.
    required : bool
    unit : str
        Empty of what has none.
    says : str
    """

    name: str
    expected: str
    default: object
    required: bool
    unit: str
    says: str


@cache
def settings_of(term: Any) -> tuple[TermSetting, ...]:
    """All settings of a term that is written by the fields of a record, in order."""
    told = described_parameters(term.__doc__)
    found = []
    for each in fields(term):
        default = None if each.default in (MISSING, UNSET) else each.default
        found.append(
            TermSetting(
                each.name,
                expectation(kinds_of(term)[each.name]),
                default,
                each.default is MISSING,
                str(_extra(term, each.name).get("unit", "")),
                told[each.name][1],
            )
        )
    return tuple(found)


@cache
def kinds_of(term: Any) -> dict[str, Any]:
    """Annotations of the settings of a term, by name."""
    hints = get_type_hints(term, include_extras=True)
    return {each.name: hints[each.name] for each in fields(term)}


def _extra(term: Any, setting: str) -> dict[str, Any]:
    """Notes of the annotation of a setting beside what is expected: its unit, whether it is a file."""
    kind = kinds_of(term)[setting]
    for each in (kind, *get_args(kind)):
        for note in getattr(each, "__metadata__", ()):
            if isinstance(note, Meta) and note.extra is not None:
                return dict(note.extra)
    return {}
