"""Differences between two studies: settings, versions, runs that one has, and numbers of the same runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from shadowprice.analysis.statistics.estimates import shown
from shadowprice.brief import Brief
from shadowprice.studies.comparisons import MEAN_JCT, places, settings_of
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_rows import ALL
from shadowprice.studies.statistics.paired import PairedDifference, paired_difference
from shadowprice.studies.study_file import SETTING
from shadowprice.studies.term_axes import TermAxis

_NOTHING = "(not there)"


@dataclass(frozen=True)
class ChangedEntry:
    """An entry of the study, a version or a file that is another in the second study."""

    where: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where}: {self.before} -> {self.after}"


@dataclass(frozen=True, repr=False)
class ChangedPolicy(Brief):
    """Mean JCT of a policy in a setting, second study minus first on the same seeds.

    Parameters
    ----------
    difference : PairedDifference
        In seconds.
    before_s : float
        Mean of the first study, over the seeds of both [s].
    same : bool
        True if every run that both have is the same to the last bit.
    """

    setting: str
    policy: str
    difference: PairedDifference
    before_s: float
    same: bool

    def __str__(self) -> str:
        if self.same:
            return f"{self.setting}, {self.policy}: the same"
        found = self.difference.estimate
        clear = "" if self.difference.clear else ", not clear of 0"
        return (
            f"{self.setting}, {self.policy}: mean JCT {shown(self.before_s)} s -> "
            f"{shown(self.before_s + found.mean)} s, by {found.text()} s on {found.count} seeds{clear}"
        )


@dataclass(frozen=True, repr=False)
class StudyDifference(Brief):
    """Differences of two studies.

    Parameters
    ----------
    entries : tuple of ChangedEntry
        Of the settings, versions and files.
    policies : tuple of ChangedPolicy
        Of the settings and policies that both have.
    places : tuple of str
        Settings in which places of policies changed, in words.
    only_first, only_second : int
        Runs that the other does not have.
    """

    entries: tuple[ChangedEntry, ...]
    policies: tuple[ChangedPolicy, ...]
    places: tuple[str, ...]
    only_first: int
    only_second: int

    @property
    def same(self) -> bool:
        """True if both have the same runs, and the same rows of each; versions may differ."""
        return not (
            self.places
            or self.only_first
            or self.only_second
            or any(not each.same for each in self.policies)
        )

    def lines(self) -> Iterator[str]:
        """The differences in words, a line each."""
        yield from map(str, self.entries)
        if self.only_first or self.only_second:
            yield f"runs: {self.only_first} only in the first, {self.only_second} only in the second"
        yield from (str(each) for each in self.policies if not each.same)
        yield from self.places
        same = sum(each.same for each in self.policies)
        yield f"{same} of {len(self.policies)} policies in settings that both have: the same to the last bit"


def difference(first: StudyResults, second: StudyResults) -> StudyDifference:
    """Compare two studies, runs by the names of their axes."""
    swept = {axis.name: axis for each in (first, second) for axis in each.study.axes}
    one, other = _keyed(first, swept), _keyed(second, swept)
    both = one.index.intersection(other.index)
    return StudyDifference(
        tuple(_entries(first, second)),
        tuple(_policies(one.loc[both], other.loc[both])),
        tuple(_places(first, second)),
        len(one.index.difference(other.index)),
        len(other.index.difference(one.index)),
    )


def _keyed(results: StudyResults, swept: Mapping[str, TermAxis]) -> pd.DataFrame:
    """All statistics of all jobs, by run; entries of axes over terms in words, empty where a study has no such axis."""
    groups = results.groups[results.groups["by"] == ALL].copy()
    groups["load"] = groups["load"].map(lambda load: "" if pd.isna(load) else f"load {load:g}")
    for name, axis in swept.items():
        groups[name] = groups[name].map(axis.words) if name in groups else ""
    return groups.set_index([*SETTING, *swept, "policy", "seed"])


def _entries(first: StudyResults, second: StudyResults) -> Iterator[ChangedEntry]:
    before, after = dict(_flat(_described(first))), dict(_flat(_described(second)))
    for where in dict.fromkeys([*before, *after]):
        old, new = before.get(where, _NOTHING), after.get(where, _NOTHING)
        if old != new:
            yield ChangedEntry(where, old, new)


def _described(results: StudyResults) -> dict[str, Any]:
    record = results.record
    versions = {"shadowprice": record.shadowprice, "python": record.python, "code": record.code}
    return {
        **record.study,
        "versions": {**versions, **record.libraries},
        "files": {path.rpartition("/")[2]: digest for path, digest in record.files.items()},
    }


def _flat(value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _flat(each, f"{where}: {key}" if where else str(key))
    else:
        yield where, str(value)


def _policies(one: pd.DataFrame, other: pd.DataFrame) -> Iterator[ChangedPolicy]:
    columns = [name for name in one.columns if name in other.columns]
    levels = [str(name) for name in one.index.names if name != "seed"]
    for labels, rows in one.groupby(level=levels, sort=False):
        theirs = other.loc[rows.index]
        *words, policy = (str(each) for each in labels)
        yield ChangedPolicy(
            ", ".join(each for each in words if each and each != "plain"),
            policy,
            paired_difference(theirs[MEAN_JCT].to_list(), rows[MEAN_JCT].to_list()),
            float(rows[MEAN_JCT].mean()),
            rows[columns].equals(theirs[columns]),
        )


def _places(first: StudyResults, second: StudyResults) -> Iterator[str]:
    theirs = {str(each): each for each in settings_of(second)}
    for setting in settings_of(first):
        if str(setting) not in theirs:
            continue
        before, after = (
            {name: each.text for name, each in places(where).items() if each.place is not None}
            for where in (setting, theirs[str(setting)])
        )
        if before != after:
            yield f"{setting}: places were {_listed(before)} and are {_listed(after)}"


def _listed(placed: Mapping[str, str]) -> str:
    found = ", ".join(f"{policy} {text}" for policy, text in placed.items())
    return found or "(no policy serves every class)"
