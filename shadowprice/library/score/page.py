"""Page of a score, in one HTML file."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.figure import Figure

from shadowprice.analysis.pages.figures import as_svg
from shadowprice.analysis.pages.page import Items, Note, PagePart, Section, Sheet, page
from shadowprice.analysis.plots.distributions import ratio_bars
from shadowprice.analysis.wording import at_most, counted
from shadowprice.library.score.evaluation import InstanceScore, Score
from shadowprice.library.score.ratios import decimal_text

RULES = (
    "A ratio is the cost of the verified schedule over a certified lower bound of what any preemptive schedule costs, "
    "all jobs known from the start: the policy is within that factor of the offline optimum.",
    "The score is one over the geometric mean of the ratios: 1 if every schedule costs its bound. What is lost counts "
    "as a ratio of 1,000.",
    "Ratios are computed in fractions and rounded up, the score down. Two machines print the same.",
)
"""How a score is made, in sentences."""


def score_page(score: Score, *, made_by: str = "") -> str:
    """The page as HTML: no script, nothing from the network.

    Parameters
    ----------
    made_by : str
        What made the page, for its foot.
    """
    sections = [
        Section("Instances", [Markup(as_svg(_bars(score))), _ratios(score)], _drawn_note(score)),
        Section("Where it was lost", [Items(_sentences(score))]),
        Section(
            "Fairness and starvation",
            [_fairness(score)],
            "Finish-time fairness is completion time over that in an isolated n-th of the cluster; a slowdown is over "
            "the run time at best. Of lost instances there is nothing to measure.",
        ),
        Section("The worst that an adversary came upon", _adversary(score)),
        Section("Laws", _laws(score)),
        Section(
            "This machine",
            [
                Items(
                    [
                        f"{counted(score.spent.decisions, 'decision')}, {score.spent.decisions_per_s:,.0f} a second; "
                        "this is no part of the score.",
                        "not sealed: the policy was trusted"
                        if score.seal is None
                        else str(score.seal),
                    ]
                )
            ],
        ),
        Section("How the score is made", [Items(RULES)]),
    ]
    return page(f"{score.policy} on {score.suite.name}", headline(score), sections, made_by=made_by)


def headline(score: Score) -> str:
    """The result in a sentence."""
    known = " and ".join(score.knows) or "nothing beyond the past"
    every = counted(len(score.results), "instance")
    if score.lost:
        of = f"{counted(len(score.lost), 'instance')} of {every} lost"
    else:
        of = f"at most {at_most(score.geometric_mean)} the offline optimum on the geometric mean of {every}"
    return f"Score {decimal_text(score.combined)}: {of}; the policy knows {known}."


def _drawn_note(score: Score) -> str:
    drawn = [each.scored.name for each in score.results if each.scored.drawn]
    return f"Drawn with seed {score.seed}: {', '.join(drawn)}." if drawn else ""


def _bars(score: Score) -> Figure:
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    ratio_bars(
        {each.scored.name: each.ratio for each in score.results if each.ratio is not None},
        figure.subplots(),
        objective="flow",
        name="cost / bound",
    )
    return figure


def _ratios(score: Score) -> Sheet:
    rows = [
        (
            each.scored.name,
            f"{len(each.scored.instance.workload):,}",
            f"{each.scored.instance.cluster.physical_gpus:,}",
            _shown(each),
            "" if each.to_best is None else decimal_text(each.to_best, 4),
            each.scored.certificate.kind,
        )
        for each in score.results
    ]
    heads = ("instance", "jobs", "GPUs", "ratio at most", "to the best known", "bound")
    return Sheet(heads, rows, words=1)


def _shown(result: InstanceScore) -> str:
    return "lost" if result.ratio is None else decimal_text(result.ratio)


def _sentences(score: Score) -> list[str]:
    return [f"{each.scored.name}: {each.feedback}" for each in score.results]


def _fairness(score: Score) -> Sheet:
    heads = (
        "instance",
        "fairness, mean",
        "worst",
        "slowdown, mean",
        "worst",
        "10-fold or more",
        "longest pause [h]",
        "preemptions",
    )
    rows = [
        (
            each.scored.name,
            f"{m.mean_ftf:.3g}",
            f"{m.largest_ftf:.3g}",
            f"{m.mean_slowdown:.3g}",
            f"{m.largest_slowdown:,.3g}",
            f"{m.slowed_tenfold:,}",
            f"{m.longest_pause_s / 3600:,.1f}",
            f"{m.preemptions:,}",
        )
        for each in score.results
        if (m := each.measures) is not None
    ]
    return Sheet(heads, rows, words=1)


def _adversary(score: Score) -> list[PagePart]:
    if score.adversary is None:
        return [Note("Not looked for: an instance was lost, or the suite has no adversary.")]
    sentences = Items([score.adversary.sentence])
    if score.adversary.worst is None:
        return [sentences]
    return [sentences, Markup(as_svg(score.adversary.worst.plot()))]


def _laws(score: Score) -> list[PagePart]:
    if score.laws is None:
        return [
            Note(
                "Not tried: an instance was lost, the suite has none, or hypothesis is not installed."
            )
        ]
    broken = [f"{each.title}: {each.broken}" for each in score.laws if each.broken]
    tried = counted(len(score.laws), "law")
    return [Items(broken or [f"No example breaks one of the {tried}."])]
