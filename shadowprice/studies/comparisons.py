"""Comparisons of policies on the same seeds: intervals, paired differences, classes that a policy does not serve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from shadowprice.analysis.statistics.estimates import (
    Estimate,
    estimate,
    shown,
    signed_estimate,
)
from shadowprice.brief import Brief
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_rows import ALL
from shadowprice.studies.statistics.paired import (
    PairedDifference,
    paired_difference,
    ratio_of_means,
)
from shadowprice.studies.statistics.ranking import RankingAgreement, ranking_agreement
from shadowprice.studies.study_file import StudyFile
from shadowprice.studies.term_axes import TermAxis

WIDTH = 0.01
"""Half width of an interval, as a share of the baseline's mean, for which seeds are counted."""

MEAN_JCT = "jct_s_mean"


@dataclass(frozen=True, eq=False, repr=False)
class StudySetting(Brief):
    """One entry of every axis but policies and seeds, and what its runs gave.

    Parameters
    ----------
    labels : mapping of str to entry
        By the columns of results that are the same for all policies that are compared; no load is None.
    results : StudyResults
        Of the whole study.
    """

    labels: Mapping[str, Any]
    results: StudyResults

    def __str__(self) -> str:
        return in_words(self.labels, self.results.study.axes)

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Its rows of the frame of runs."""
        return rows_of(self.results.runs, self.labels)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """Its rows of the frame of groups."""
        return rows_of(self.results.groups, self.labels)

    @cached_property
    def all_jobs(self) -> pd.DataFrame:
        """Those of the groups of all jobs."""
        return self.groups[self.groups["by"] == ALL]

    @cached_property
    def mean_jct_s(self) -> pd.DataFrame:
        """Mean JCT of all jobs, a row a seed, a column a policy [s]."""
        return self.all_jobs.pivot(index="seed", columns="policy", values=MEAN_JCT)


def settings_of(results: StudyResults) -> list[StudySetting]:
    """Settings that have runs, in the order of the study."""
    columns = list(results.study.setting_columns)
    rows = results.runs[columns].drop_duplicates().itertuples(index=False, name=None)
    return [
        StudySetting(
            {
                name: None if pd.isna(label) else label
                for name, label in zip(columns, each, strict=True)
            },
            results,
        )
        for each in rows
    ]


def rows_of(table: pd.DataFrame, labels: Mapping[str, Any]) -> pd.DataFrame:
    """Rows of a frame with these entries of its columns."""
    for name, label in labels.items():
        table = table[table[name].isna() if label is None else table[name] == label]
    return table


def in_words(labels: Mapping[str, Any], axes: Iterable[TermAxis]) -> str:
    """Entries of columns in words; no load, and conditions that are plain, need none."""
    swept = {axis.name: axis for axis in axes}
    words = []
    for name, label in labels.items():
        if name in swept:
            words.append(swept[name].words(label))
        elif name == "load":
            words.append("" if pd.isna(label) else f"load {label:g}")
        elif (name, label) != ("conditions", "plain"):
            words.append(str(label))
    return ", ".join(filter(None, words))


def policies_of(rows: pd.DataFrame) -> list[str]:
    """Policies that have rows, in the order of the study."""
    return list(dict.fromkeys(rows["policy"]))


@dataclass(frozen=True, repr=False)
class PolicyRow(Brief):
    """One policy in one setting; estimates are over seeds.

    Parameters
    ----------
    values : mapping of str to Estimate or None
        By column of the study's frames; None where a run has none.
    against : PairedDifference or None
        Mean JCT minus the baseline's, seed by seed [s]; None of the baseline itself.
    relative : Estimate or None
        The same over the baseline's mean, cut off at -1, below which no mean can fall.
    seeds_needed : int or None
        Seeds for an interval of that difference of 1 % of the baseline's mean to each side.
    """

    policy: str
    values: dict[str, Estimate | None]
    against: PairedDifference | None
    relative: Estimate | None
    seeds_needed: int | None


def policy_rows(setting: StudySetting) -> list[PolicyRow]:
    """All policies of a setting, in the order of the study."""
    study, groups, runs = setting.results.study, setting.all_jobs, setting.runs
    ratios = [name for name in runs.columns if name.startswith("ratio_")]
    skipped = {*study.columns, "by", "group", "jobs", "gpu_s", "growth"}
    columns = [name for name in groups.columns if name not in skipped]
    slowdowns = [name for name in columns if name.startswith("slowdown_")]
    rows = []
    for policy in policies_of(groups):
        mine = groups[groups["policy"] == policy]
        of_runs = runs[runs["policy"] == policy]
        values = {name: maybe_estimate(mine[name]) for name in columns}
        copies = "mean_copies" in of_runs and bool(of_runs["mean_copies"].notna().any())
        if not copies:
            values |= {name: _of_gangs(mine[name]) for name in slowdowns}
        values |= {name: maybe_estimate(of_runs[name], least=1.0) for name in ratios}
        against = _against(setting.mean_jct_s, policy, study.baseline)
        rows.append(PolicyRow(policy, values, *against))
    return rows


def maybe_estimate(values: pd.Series, *, least: float = 0.0) -> Estimate | None:
    """Estimate of values that are at least so large; None if one is missing, or there are none."""
    numbers = _whole(values)
    return None if numbers is None else estimate(numbers, least=least)


def _of_gangs(slowdowns: pd.Series) -> Estimate | None:
    """Estimate of slowdowns of jobs that run as one gang each: not below 1, or below the least where one is."""
    numbers = _whole(slowdowns)
    if numbers is None:
        return None
    # Rounding makes a job faster than alone, and so may a partner on its GPUs.
    return estimate(numbers, least=min(1.0, float(numbers.min())))


def _whole(values: pd.Series) -> NDArray[np.float64] | None:
    numbers = pd.to_numeric(values).to_numpy(dtype=np.float64)
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _against(
    wide: pd.DataFrame, policy: str, baseline: str
) -> tuple[PairedDifference | None, Estimate | None, int | None]:
    if policy == baseline or baseline not in wide:
        return None, None, None
    both = wide[[policy, baseline]].dropna()
    if both.empty:
        return None, None, None
    mean_s = float(both[baseline].mean())
    found = paired_difference(both[policy].to_list(), both[baseline].to_list())
    part = found.estimate
    relative = Estimate(
        part.mean / mean_s, max(part.low / mean_s, -1.0), part.high / mean_s, part.count
    )
    return found, relative, found.seeds_needed(WIDTH * mean_s)


@dataclass(frozen=True, repr=False)
class UnservedClass(Brief):
    """A class of jobs that a policy does not serve as others do, or not as fast as it comes.

    Parameters
    ----------
    by, group : str
        Column and entry of the class; ``all`` of all jobs.
    jobs : float
        Jobs of the class, on average over runs.
    mean_s : Estimate
        Mean JCT of the class under the policy [s].
    best : str
        Policy with the smallest mean JCT of the class.
    best_s : Estimate
        That mean [s].
    times : Estimate or None
        Mean JCT over that of ``best``; None of ``best`` itself.
    growth : Estimate or None
        Share of the class's arrivals that pile up.
    starved, behind : bool
        Whether ``times`` and ``growth`` are above the limits of the study, with their intervals.
    """

    setting: StudySetting
    policy: str
    by: str
    group: str
    jobs: float
    mean_s: Estimate
    best: str
    best_s: Estimate
    times: Estimate | None
    growth: Estimate | None
    starved: bool
    behind: bool

    @property
    def name(self) -> str:
        """The class in words."""
        if self.by == ALL:
            return "all jobs"
        return f"gangs of {self.group}" if self.by == "gang" else f"{self.by} {self.group}"

    def sentence(self) -> str:
        """The finding in words."""
        words = f"{self.policy} on {self.setting}: {self.name} ({self.jobs:,.0f} jobs a run) "
        parts = []
        if self.starved and self.times is not None:
            parts.append(
                f"take {shown(self.mean_s.mean)} s on average against {shown(self.best_s.mean)} s under {self.best}, "
                f"{self.times.text()} times as long"
            )
        if self.behind and self.growth is not None:
            parts.append(f"complete more slowly than they come: {_share(self.growth)} pile up")
        return words + " and ".join(parts)


def _share(growth: Estimate) -> str:
    if growth.count < 2:
        return f"{growth.mean:.0%}"
    return f"{growth.mean:.0%} [{growth.low:.0%}, {growth.high:.0%}]"


def unserved_classes(setting: StudySetting) -> list[UnservedClass]:
    """Classes of a setting that policies starve or do not keep up with, by policy.

    A class is *starved* if its mean JCT is more than ``starved_ratio`` times that under the policy that serves it
    best, and as much more than the same number of all jobs if that is above 1: a policy that is slow for all starves
    no class. It is *behind* if more than ``growth_share`` of its arrivals pile up
    (:mod:`shadowprice.studies.statistics.stability`). Over several seeds the interval of 95 % must leave the limit,
    and for growth 0, out as well (derived). Where all jobs are behind, classes are not named one by one for it.
    """
    limits = setting.results.study.statistics
    slow: dict[str, float] = {}
    unstable: set[str] = set()
    unserved = []
    for (by, group), each in setting.groups.groupby(["by", "group"], sort=False):
        wide = each.pivot(index="seed", columns="policy", values=MEAN_JCT).dropna()
        if wide.empty:
            continue
        means = wide.mean()
        best = str(means.idxmin())
        if by == ALL:
            slow = (means / means[best]).to_dict()
        for policy in policies_of(each):
            mine = each[each["policy"] == policy]
            grown = _whole(mine["growth"])
            # Fewer may be there at the end than before: a share of arrivals has any sign.
            growth = None if grown is None else signed_estimate(grown)
            times = _times(wide, policy, best)
            limit = limits.starved_ratio * max(slow.get(policy, 1.0), 1.0)
            starved = by != ALL and times is not None and times.low > limit
            behind = growth is not None and growth.low > 0 and growth.mean > limits.growth_share
            if behind and by == ALL:
                unstable.add(policy)
            elif policy in unstable:
                behind = False
            if starved or behind:
                unserved.append(
                    UnservedClass(
                        setting,
                        policy,
                        str(by),
                        str(group),
                        float(mine["jobs"].mean()),
                        estimate(wide[policy]),
                        best,
                        estimate(wide[best]),
                        times,
                        growth,
                        starved,
                        behind,
                    )
                )
    return unserved


def _times(wide: pd.DataFrame, policy: str, best: str) -> Estimate | None:
    """Mean under a policy over the mean under the best one; None of that one itself."""
    if policy == best:
        return None
    return ratio_of_means(wide[policy].to_list(), wide[best].to_list())


@dataclass(frozen=True, repr=False)
class Placed(Brief):
    """Places by mean JCT that a policy may have.

    Parameters
    ----------
    place : int or None
        The first: after all policies whose mean is clearly smaller, seed by seed. None if the policy leaves a class
        unserved, which a mean does not show.
    last : int or None
        The last: before all policies whose mean is clearly larger. Policies whose places overlap are ties.
    unserved : tuple of UnservedClass
    """

    policy: str
    place: int | None
    last: int | None
    unserved: tuple[UnservedClass, ...] = ()

    @property
    def text(self) -> str:
        """Places in words: ``2``, or ``1 to 3``; empty of a policy without a place."""
        if self.place is None:
            return ""
        return f"{self.place}" if self.place == self.last else f"{self.place} to {self.last}"


def places(setting: StudySetting) -> dict[str, Placed]:
    """Policies in order of place and mean JCT, those that leave a class unserved last and without a place.

    A mean is clearly smaller than another if the interval of 95 % of the difference on the same seeds leaves 0 out,
    each pair by itself; of a single seed no mean is.
    """
    unserved: dict[str, list[UnservedClass]] = {}
    for each in unserved_classes(setting):
        unserved.setdefault(each.policy, []).append(each)
    means = setting.all_jobs.groupby("policy", sort=False)[MEAN_JCT].mean()
    means = means.sort_values(kind="stable")
    fair = [str(name) for name in means.index if name not in unserved]
    wide = setting.mean_jct_s
    ahead = {
        name: sum(clearly_smaller(wide, each, name) for each in fair if each != name)
        for name in fair
    }
    found = {}
    # Where runs are missing, a policy that is clearly behind may have the smaller mean, over fewer seeds.
    for name in sorted(fair, key=ahead.__getitem__):
        behind = sum(clearly_smaller(wide, name, each) for each in fair if each != name)
        found[name] = Placed(name, 1 + ahead[name], len(fair) - behind)
    for name in means.index:
        if name in unserved:
            found[str(name)] = Placed(str(name), None, None, tuple(unserved[name]))
    return found


def clearly_smaller(wide: pd.DataFrame, one: str, other: str) -> bool:
    """True if one policy's number is smaller than another's by an interval of the difference that leaves 0 out.

    Parameters
    ----------
    wide : DataFrame
        A row a seed, a column a policy.
    """
    both = wide[[one, other]].dropna()
    if both.empty:
        return False
    found = paired_difference(both[one].to_list(), both[other].to_list())
    return found.clear and found.estimate.mean < 0


@dataclass(frozen=True, repr=False)
class RankingComparison(Brief):
    """Agreement of rankings by mean JCT or ratio.

    Parameters
    ----------
    where : str
        StudySetting, or what settings have in common.
    what : str
        Blocks: ``seeds``, ``workloads`` ...
    """

    where: str
    what: str
    agreement: RankingAgreement

    def sentence(self) -> str:
        """The agreement in words."""
        return f"{self.where}: {self.agreement.sentence(self.what)}"


def rankings(results: StudyResults) -> Iterator[RankingComparison]:
    """Agreement across seeds in every setting, across the entries of each axis, and across yardsticks.

    Of policies that have a place (:func:`places`) wherever they are compared.
    """
    placed = [(setting, _placed_rows(setting)) for setting in settings_of(results)]
    for setting, rows in placed:
        yield from _compared(rows, ["seed"], str(setting), "seeds")
    groups = pd.concat([rows for _, rows in placed] or [results.groups])
    blocks = {**_PLURAL, **{axis.name: f"values of {axis.title}" for axis in results.study.axes}}
    for column in results.study.setting_columns:
        if groups[column].nunique(dropna=False) < 2:
            continue
        for where, rows in without(results.study, groups, column):
            yield from _compared(rows, [column], where, blocks[column])
    for setting, rows in placed:
        yield from _across_yardsticks(setting, rows)


def _placed_rows(setting: StudySetting) -> pd.DataFrame:
    """Rows of all jobs of a setting, without those of policies that have no place."""
    have = [name for name, each in places(setting).items() if each.place is not None]
    return setting.all_jobs[setting.all_jobs["policy"].isin(have)]


_PLURAL = {
    "workload": "workloads",
    "load": "loads",
    "cluster": "clusters",
    "conditions": "conditions",
}


def without(
    study: StudyFile, rows: pd.DataFrame, column: str
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Rows that differ in one column of a setting alone, policies and seeds aside, with what they have in common."""
    others = [name for name in study.setting_columns if name != column]
    for labels, each in rows.groupby(others, sort=False, dropna=False):
        yield in_words(dict(zip(others, labels, strict=True)), study.axes), each


def _compared(
    rows: pd.DataFrame, blocks: Sequence[str], where: str, what: str
) -> Iterator[RankingComparison]:
    wide = rows.pivot_table(
        index=list(blocks), columns="policy", values=MEAN_JCT, sort=False, dropna=False
    ).dropna(axis="columns")
    agreement = ranking_agreement(wide) if wide.shape[1] > 1 and len(wide) > 1 else None
    if agreement is not None:
        yield RankingComparison(where, what, agreement)


def _across_yardsticks(setting: StudySetting, rows: pd.DataFrame) -> Iterator[RankingComparison]:
    """Rankings of a setting by mean JCT and by the mean ratio to each bound."""
    runs = setting.runs[setting.runs["policy"].isin(rows["policy"])]
    blocks = {"mean JCT": rows.groupby("policy")[MEAN_JCT].mean()}
    for name in runs.columns:
        if name.startswith("ratio_"):
            blocks[name] = pd.to_numeric(runs[name]).groupby(runs["policy"]).mean()
    wide = pd.DataFrame(blocks).T[policies_of(runs)]
    agreement = ranking_agreement(wide) if wide.shape[1] > 1 else None
    if agreement is not None and agreement.blocks > 1:
        words = "yardsticks (mean JCT, and mean ratios to the bounds)"
        yield RankingComparison(str(setting), words, agreement)
