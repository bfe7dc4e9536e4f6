"""The record of values of theorems: how close to each stored instances come, and the stored instances.

``python docs/build_values.py benchmarks/records/theorems.md`` writes it; without a file it is printed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from build_theorems import Theorem, theorems
from shadowprice.analysis.adversary.tightest.catalogue import NO_FACTOR
from shadowprice.errors import InputError
from shadowprice.instances.hard_instances import (
    HardInstance,
    LooseBound,
    TightInstance,
    hard_instances,
    loose_bounds,
    tight_instances,
)
from shadowprice.instances.objective import Objective
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.registry import policy
from shadowprice.solvers.tiresias.las2d import Las2d
from theorem_values import typical_value

ROOT = Path(__file__).resolve().parents[1]

INTRODUCTION = """\
# Values of theorems

Made by `make theorems` from the theorem files and the stored instances. Do not edit this page. Statements are in
[the list of theorems](../../docs/theorems.md).

*Tightest instance*: the stored instance that comes closest to what the theorem allows there,
which stands behind "of". It is one of the [tight instances](#tight-instances); or of the theorem's policy one of the
[hard instances](#hard-instances), and then the number is the policy's cost over that of the schedule stored with it,
hence at most its ratio to the optimum. Of a lower bound it is the optimum over the bound, on the stored instance where
that is largest: its integrality gap is at least that. A factor that is *attained* cannot be smaller; of another it is
not known whether it can.

*Typical value on our families*: the median of a theorem's factor, and the least and largest, over those instances of
the [ratio study](../../paper_figs/ratio_study.py) that meet its hypotheses; then the median ratio that
is certified for the stored runs of its policy on the same instances, and their number. A factor is *vacuous* on an
instance where one job after another, in any order, costs no more than it allows; that of a utility where it is no
less than the number of jobs. Of a lower bound: for how many of the stored instances it was the largest that was
tried.
"""


@dataclass(frozen=True)
class Tried:
    """Stored instances that a theorem speaks about.

    Parameters
    ----------
    policy : str
        Name, before any parameters.
    factor : callable
        The theorem's factor for an instance.
    """

    policy: str
    factor: Callable[[HardInstance], Fraction]


def _of_ratio(hard: HardInstance) -> Fraction:
    return asrpt_ratio.bound(hard.instance)


def _of_sharper(hard: HardInstance) -> Fraction:
    return asrpt_sharper.bound(hard.instance)


def _of_queues(hard: HardInstance) -> Fraction:
    """TIR-las bounds a total, which is divided by the best simple bound of the optimum's."""
    found = policy(hard.policy)
    if not isinstance(found, Las2d):
        raise InputError(f"{hard.name}: policy is {hard.policy!r}, expected las2d")
    least = max(bound.value_s for bound in simple_bounds(hard.instance, Objective.COMPLETION))
    return tiresias_las.bound(hard.instance, found.thresholds_gpu_s) / Fraction(least)


TRIED: Mapping[str, Tried] = {
    "asrpt.ratio": Tried("asrpt", factor=_of_ratio),
    "asrpt.sharper": Tried("asrpt", factor=_of_sharper),
    "tiresias.las": Tried("las2d", factor=_of_queues),
}
"""Of theorems on total completion time."""

LOOSE: Mapping[str, str] = {
    "lower_bounds.job": "job",
    "lower_bounds.fluid": "fluid",
    "lower_bounds.lp": "interval-lp",
    "lower_bounds.mbt": "mean-busy-time",
    "lower_bounds.wide_gangs": "wide-gangs",
    "lower_bounds.priced_plans": "priced-plans",
    "lower_bounds.configurations": "configurations",
    "lower_bounds.completion_windows": "completion-windows",
}
"""Kinds of the bounds that theorems are about."""


def tightest(module: str, stored: Sequence[HardInstance]) -> HardInstance | None:
    """The hard instance with exact predictions whose ratio is closest to a theorem's factor; None if none is stored."""
    tried = TRIED.get(module)
    if tried is None:
        return None
    mine = [
        hard
        for hard in stored
        if hard.policy.partition(":")[0] == tried.policy
        and hard.objective is Objective.COMPLETION
        and hard.predictor is None
    ]
    return max(mine, key=lambda hard: (hard.ratio / tried.factor(hard), hard.name), default=None)


def page(root: Path = ROOT) -> str:
    """The whole page, in Markdown.

    Parameters
    ----------
    root : Path
        A checkout, of which the stored runs are looked up.
    """
    stored = hard_instances()
    rows = [
        _row(theorem, tightest(theorem.module, stored), typical_value(theorem.module, root))
        for theorem in theorems()
    ]
    return "\n".join(
        [
            INTRODUCTION,
            "| theorem | tightest instance | typical value on our families |",
            "|---|---|---|",
            *rows,
            "",
            _table("Hard instances", HARD_WORDS, HARD_COLUMNS, map(_hard_row, stored)),
            _table("Loose bounds", LOOSE_WORDS, LOOSE_COLUMNS, map(_loose_row, loose_bounds())),
            _table(
                "Tight instances", TIGHT_WORDS, TIGHT_COLUMNS, map(_tight_row, tight_instances())
            ),
        ]
    )


def _row(theorem: Theorem, hard: HardInstance | None, typical: str) -> str:
    link = f"[{theorem.identifier}](../../docs/theorems.md#{theorem.anchor})"
    return f"| {link} | {_ratio(theorem.module, hard)} | {typical} |"


def _ratio(module: str, hard: HardInstance | None) -> str:
    if module in LOOSE:
        mine = {loose.bound: loose for loose in loose_bounds()}.get(LOOSE[module])
        if mine is not None:
            return f"{float(mine.ratio):.4f} (loose bound `{mine.name}`)"
    found = []
    if hard is not None:
        found.append(f"{_closeness(hard.ratio, TRIED[module].factor(hard))} (`{hard.name}`)")
    found += [
        f"{_closeness(each.attained, each.allowed)} (tight instance `{each.name}`)"
        for each in tight_instances()
        if each.theorem == module
    ]
    return "; ".join(found) or NO_FACTOR.get(module, "none stored")


def _closeness(attained: Fraction, allowed: Fraction | None) -> str:
    """What is attained of what is allowed, in words."""
    if allowed is None:
        return f"{float(attained):.4f}"
    if attained == allowed:
        return f"{float(attained):.4f}, attained"
    percent = math.floor(100 * attained / allowed)
    return f"{float(attained):.4f} of {float(allowed):.4f}, approached to {percent} %"


def _table(title: str, words: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A section of a title, some words and a table; none where there are no rows."""
    body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    head = [words, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([f"## {title}", "", *(head if body else ["None stored."]), *body]) + "\n"


HARD_WORDS = """\
All that are stored in [`instances/hard/`](../../shadowprice/instances/hard), also of policies and
objectives about which no theorem speaks. `shadowprice adversary` finds more."""

HARD_COLUMNS = (
    "instance",
    "policy",
    "objective",
    "jobs",
    "cluster",
    "ratio at least",
    "schedule beside it",
)


def _hard_row(hard: HardInstance) -> tuple[object, ...]:
    return (
        f"`{hard.name}`",
        f"`{hard.policy}`",
        hard.objective,
        len(hard.instance.workload),
        hard.instance.cluster,
        f"{hard.ratio} = {float(hard.ratio):.4f}",
        hard.witness_is,
    )


LOOSE_WORDS = """\
How much each lower bound can lose: the loosest instance found, stored in
[`instances/loose/`](../../shadowprice/instances/loose) with an optimal preemptive schedule. The optimum
is that of `sp.preemptive_optimum`, exact; bounds are of a fixed effort, `completion-windows` before it
cuts any window.
`python benchmarks/loose_bounds.py FOLDER` looks for others."""

LOOSE_COLUMNS = (
    "bound",
    "objective",
    "jobs",
    "cluster",
    "optimum [s]",
    "bound [s]",
    "optimum over bound",
)


def _loose_row(loose: LooseBound) -> tuple[object, ...]:
    return (
        f"`{loose.bound}`",
        loose.objective,
        len(loose.instance.workload),
        loose.instance.cluster,
        f"{loose.optimum_s:g}",
        f"{loose.bound_s:.6g}",
        f"{float(loose.ratio):.4f}",
    )


TIGHT_WORDS = """\
How close theorems come to being tight: the closest instances found, stored in
[`instances/tight/`](../../shadowprice/instances/tight) as tables of whole numbers. What is attained and what
is allowed are exact fractions, but for numbers of a solver; tests compute them again.
`python benchmarks/tight_instances.py FOLDER` looks for others."""

TIGHT_COLUMNS = ("theorem", "attained, and allowed", "attained", "allowed", "columns", "rows")


def _tight_row(each: TightInstance) -> tuple[object, ...]:
    return (
        f"`{each.theorem}`",
        each.says,
        _number(each.attained),
        "-" if each.allowed is None else _number(each.allowed),
        ", ".join(each.columns),
        " ".join("(" + ", ".join(map(str, row)) + ")" for row in each.rows),
    )


def _number(value: Fraction) -> str:
    """A fraction as it is, or four digits of one with a long denominator."""
    return str(value) if value.denominator <= 10**4 else f"{float(value):.4f}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
