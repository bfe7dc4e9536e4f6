"""Sentences about a study, each computed from its runs: the page and the paper's captions print them."""

from __future__ import annotations

from collections.abc import Iterator

from shadowprice.analysis.statistics.estimates import shown
from shadowprice.analysis.wording import counted
from shadowprice.studies.comparisons import (
    MEAN_JCT,
    PolicyRow,
    StudySetting,
    clearly_smaller,
    places,
    policy_rows,
    settings_of,
)
from shadowprice.studies.results import StudyResults
from shadowprice.studies.run_rows import ALL
from shadowprice.studies.study_file import WarmUpRule, named


def headline(results: StudyResults) -> str:
    """Size of the study, and that its schedules are verified."""
    runs, study = results.runs, results.study
    verified = int(runs["verified"].sum())
    seeds = len(study.every_seed)
    missing = results.record.runs - len(runs)
    return (
        f"{counted(len(runs), 'run')} of {counted(len(named(study.policies)), 'policy', 'policies')} in "
        f"{counted(len(settings_of(results)), 'setting')}, up to {counted(seeds, 'seed')} each; "
        f"{counted(verified, 'schedule')} passed the verifier"
        + (f"; {missing:,} runs have no row" if missing else "")
        + "."
    )


def findings(results: StudyResults) -> Iterator[str]:
    """First policy of every setting, how clear that is, and classes that policies leave unserved."""
    for setting in settings_of(results):
        yield f"{setting}: {_first(setting)}"
        for placed in places(setting).values():
            for each in placed.unserved:
                yield each.sentence() + "."
    yield from short_runs(results)


def _first(setting: StudySetting) -> str:
    """The policy with the smallest mean JCT of those that serve all classes, or those that may be it."""
    order = places(setting)
    ranked = [name for name, each in order.items() if each.place is not None]
    if not ranked:
        return "every policy leaves a class of jobs unserved."
    rows = {row.policy: row for row in policy_rows(setting)}
    best = rows[ranked[0]].values[MEAN_JCT]
    assert best is not None
    groups = setting.groups
    wide = groups[groups["by"] == ALL].pivot(index="seed", columns="policy", values=MEAN_JCT)
    ties = [name for name in ranked[1:] if not clearly_smaller(wide, ranked[0], name)]
    unserved = [name for name in order if name not in ranked]
    among = ", of the policies that serve every class" if unserved and len(ranked) > 1 else ""
    if ties:
        told = (
            f"{name}, {found.text()} s" for name in ties if (found := rows[name].values[MEAN_JCT])
        )
        words = (
            f"{ranked[0]}, with a mean JCT of {best.text()} s, cannot be told apart from {'; '.join(told)}{among}"
            + ("; one seed has no interval" if best.count < 2 else "")
        )
    elif len(ranked) > 1:
        words = f"{ranked[0]} has the smallest mean JCT, {best.text()} s{among}"
    elif len(order) > 1:
        words = f"{ranked[0]} alone serves every class, with a mean JCT of {best.text()} s"
    else:
        words = f"{ranked[0]} has a mean JCT of {best.text()} s, with nothing beside it"
    if len({each.count for name in ranked if (each := rows[name].values[MEAN_JCT])}) > 1:
        words += "; each mean is over the seeds that the policy has, and two are compared on those of both"
    faster = [
        name for name in unserved if (mean := rows[name].values[MEAN_JCT]) and mean.mean < best.mean
    ]
    if faster:
        words += (
            f"; on these seeds {', '.join(faster)} {'has' if len(faster) == 1 else 'have'} a smaller one and "
            f"{'leaves' if len(faster) == 1 else 'leave'} a class unserved"
        )
    return words + "."


def short_runs(results: StudyResults) -> Iterator[str]:
    """Say of how many runs a warm-up or independent batches could not be found."""
    runs = results.runs
    if results.study.statistics.warm_up is WarmUpRule.MSER5:
        short = int((~runs["warm_up_found"].astype(bool)).sum())
        if short:
            yield (
                f"MSER-5 found no warm-up in {short:,} of {len(runs):,} runs, which are too short for it: half of "
                "each was left out, or nothing of fewer than 20 jobs."
            )


def against_baseline(row: PolicyRow, baseline: str) -> str:
    """Difference from the baseline in words; empty of the baseline itself."""
    if row.relative is None:
        return ""
    found = row.relative
    if found.count < 2:
        return f"{found.mean:+.1%}"
    return f"{found.mean:+.1%} [{found.low:+.1%}, {found.high:+.1%}]"


def ranked_as(setting: StudySetting) -> dict[str, str]:
    """Places that every policy may have, or the classes that it leaves unserved."""
    found = {}
    for name, each in places(setting).items():
        if each.place is not None:
            found[name] = each.text
        else:
            found[name] = "not ranked: " + ", ".join(unserved.name for unserved in each.unserved)
    return found


def rules(results: StudyResults) -> Iterator[str]:
    """Say how the numbers are made: intervals, warm-up, pairs, classes, bounds."""
    study = results.study
    limits = study.statistics
    yield (
        "Intervals are of 95 % by Student's t over seeds, each seed one number, of the logarithm of the mean by the "
        "delta method: what is never negative has no interval below 0. They suppose that means of runs are normal. One "
        "seed gives no interval."
    )
    yield (
        f"Policies meet the same jobs seed by seed; differences from {study.baseline} are of pairs, by Student's t, "
        "and cut off at -100 %, and the seeds needed are those for an interval of 1 % of its mean to each side."
    )
    yield (
        "A policy is placed after those whose mean JCT is clearly smaller and before those whose is clearly larger: "
        "the interval of the difference on the same seeds leaves 0 out, each pair by itself. Policies whose places "
        "overlap are ties; one seed tells none apart."
    )
    if limits.warm_up is WarmUpRule.MSER5:
        yield "The first jobs of each run are left out by MSER-5 on JCT in order of arrival (White, Cobb, Spratt 2000)."
    elif limits.warm_up is not WarmUpRule.NONE:
        yield f"The first {limits.warm_up} jobs of each run are left out."
    else:
        yield "All jobs of each run count; no warm-up is left out."
    yield (
        f"A class is unserved if its mean JCT is more than {shown(limits.starved_ratio)} times that under the policy "
        f"that serves it best, beyond what all jobs are slower, or if more than {limits.growth_share:.0%} of its "
        "arrivals pile up between the second and the last quarter of the time of arrivals. Over several seeds the "
        "interval must lie above that ratio, or leave out that nothing piles up. A policy with such a class has no "
        "place, whatever its mean."
    )
    for name in results.runs.columns:
        if not name.startswith("ratio_"):
            continue
        goal = name.removeprefix("ratio_")
        classes = results.runs[f"bound_{goal}_class"].dropna().unique()
        kinds = results.runs[f"bound_{goal}_kind"].dropna().unique()
        if len(classes):
            yield (
                f"Ratios in total {goal} time are over a lower bound on the cost of all "
                f"{', or of all '.join(classes)} of the instance, in exact arithmetic "
                f"({', '.join(sorted(kinds))}), and rounded up: what the policy lost, "
                "and what the bound misses. They are upper bounds of the ratio to the optimum; over seeds their mean "
                "has an interval, which is cut off at 1."
            )
