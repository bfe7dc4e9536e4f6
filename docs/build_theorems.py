"""The gallery of theorems: one page from the theorem files and the stored hard instances.

``python docs/build_theorems.py docs/theorems.md`` writes it; without a file it is printed. What uses a
theorem is read from the sources.
"""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import ModuleType

import shadowprice.proofs
from shadowprice.analysis.adversary.tightest.catalogue import NO_FACTOR
from shadowprice.errors import InputError
from shadowprice.instances.documents.loose_bounds import LooseBound, loose_bounds
from shadowprice.instances.features import Feature
from shadowprice.instances.hard_instances import HardInstance, hard_instances
from shadowprice.instances.objective import Objective
from shadowprice.instances.tight_instances import TightInstance, tight_instances
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.registry import policy
from shadowprice.solvers.tiresias.las2d import Las2d
from theorem_values import typical_value

ROOT = Path(__file__).resolve().parents[1]
_PACKAGE = "shadowprice.proofs"
_FOLDERS = ("shadowprice", "tests", "benchmarks", "paper_figs")
_PICTURES = "pictures"

INTRODUCTION = """\
# Theorems

Made by `make theorems` from the files of [`proofs/`](../shadowprice/proofs), where each has its hypotheses, its
proof, a function `bound` and a function `check`; tests try to break all of them. Do not edit this page.

*Knows of an instance*: what it may have beyond nodes and jobs; `bound` and `check` refuse one that has more. *Status*
says whose a theorem is: the paper's, classic, ours, or open. *Recalled* and *derived* are defined in
[semantics](semantics.md). *Tightest instance*: the stored instance that comes closest to what the theorem allows there,
which stands behind "of". It is one of the [tight instances](#tight-instances); or of the theorem's policy one of the
[hard instances](#hard-instances), and then the number is the policy's cost over that of the schedule stored with it,
hence at most its ratio to the optimum. Of a lower bound it is the optimum over the bound, on the stored instance where
that is largest: its integrality gap is at least that. A factor that is *attained* cannot be smaller; of another it is
not known whether it can, and how close it was approached is said.

*Typical value on our families*: the median of a theorem's factor, and the least and largest, over those instances of
the [ratio study](../paper_figs/ratio_study.py) that meet its hypotheses; then the median ratio that
is certified for the stored runs of its policy on the same instances, and their number. A factor is *vacuous* on an
instance where one job after another, in any order, costs no more than it allows; that of a utility where it is no
less than the number of jobs. Of a lower bound: for how many of the stored instances it was the largest that was
tried.
"""


@dataclass(frozen=True)
class Theorem:
    """A theorem file.

    Parameters
    ----------
    module : str
        Its name in :mod:`shadowprice.proofs`, as in ``asrpt.ratio``.
    identifier, title : str
        Before and after the colon of its first line.
    statement : str
        From there to the paragraph on its status, in reStructuredText.
    status : str
        In a few words.
    origin : str
        The paragraph on its status, in reStructuredText.
    hypotheses : str
        What an instance may have, and what beside it not; empty for one that reads no instances.
    """

    module: str
    identifier: str
    title: str
    statement: str
    status: str
    origin: str
    hypotheses: str = ""


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


def theorems() -> tuple[Theorem, ...]:
    """All theorem files, in order of their names: those with a status."""
    found = []
    for info in pkgutil.walk_packages(shadowprice.proofs.__path__, f"{_PACKAGE}."):
        module = importlib.import_module(info.name)
        if hasattr(module, "STATUS"):
            name = info.name.removeprefix(f"{_PACKAGE}.")
            read = read_theorem(name, module.__doc__ or "", module.STATUS)
            found.append(replace(read, hypotheses=hypotheses(module)))
    return tuple(found)


def hypotheses(module: ModuleType) -> str:
    """What an instance may have beyond nodes and jobs, from ``KNOWS``, and what not, from predicates."""
    knows = getattr(module, "KNOWS", None)
    if knows is None:
        return ""
    words = "; ".join(each.phrase for each in Feature if each in knows) or "nothing more"
    supposed = getattr(module, "HYPOTHESES", None)
    others = [] if supposed is None else [_first_line(each) for each in supposed.predicates]
    return f"{words}" + (f". *But not*: {'; '.join(others)}" if others else "")


def _first_line(predicate: Callable[..., object]) -> str:
    line = (predicate.__doc__ or "").partition("\n")[0].rstrip(".")
    return line[:1].lower() + line[1:]


def read_theorem(module: str, text: str, status: str) -> Theorem:
    """Take a theorem file's docstring apart.

    Raises
    ------
    InputError
        If it lacks a title or the paragraph on its status.
    """
    first, *rest = [part.rstrip() for part in re.split(r"\n\s*\n", text.strip("\n"))]
    identifier, colon, title = first.partition(": ")
    ends = [k for k, part in enumerate(rest) if part.startswith("Status.")]
    if not colon or not ends:
        raise InputError(
            f"{module}: docstring begins {first!r:.80}, expected 'ID: title.' there, and a paragraph "
            "'Status.' after the statement"
        )
    origin = rest[ends[0]].removeprefix("Status.").partition(" Proof:")[0].strip()
    statement = "\n\n".join(rest[: ends[0]])
    return Theorem(module, identifier, title.rstrip("."), statement, status, origin)


def markdown(text: str) -> str:
    """Markdown from the reStructuredText of docstrings: formulas, literals, roles."""
    return "\n\n".join(_block(part) for part in re.split(r"\n\s*\n", text))


def _block(part: str) -> str:
    """A paragraph; a displayed formula may follow one or stand alone."""
    before, directive, formula = part.partition(".. math::")
    if directive:
        lines = "\n".join(line.strip() for line in formula.strip().splitlines())
        shown = f"```math\n{lines}\n```"
        return f"{_inline(before).rstrip()}\n\n{shown}" if before.strip() else shown
    return _inline(part)


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]+)`", lambda found: f"$`{_one_line(found[1])}`$", text)
    text = re.sub(r":\w+:`([^`]+)`", r"`\1`", text)
    return text.replace("``", "`")


def _one_line(text: str) -> str:
    return " ".join(text.split())


@cache
def users(root: Path) -> dict[str, list[str]]:
    """Files of a checkout that import each theorem file, by its name; theorem files of their own left out."""
    found: dict[str, list[str]] = {}
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            for module in sorted(set(_imported(path))):
                found.setdefault(module, []).append(name)
    return found


def _imported(path: Path) -> Iterator[str]:
    """Modules of the proofs that a file imports."""
    text = path.read_text(encoding="utf-8")
    if f"{_PACKAGE}." not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_PACKAGE}."):
            module = str(node.module).removeprefix(f"{_PACKAGE}.")
            # The module itself, or one of a system's theorems.
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


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
        A checkout, of which the sources and pictures are looked up.
    """
    all_of_them, stored, used = theorems(), hard_instances(), users(root)
    rows = [
        "| theorem | says | status | tightest instance | typical value on our families |",
        "|---|---|---|---|---|",
    ]
    for theorem in all_of_them:
        hard = tightest(theorem.module, stored)
        cells = (
            f"[{theorem.identifier}](#{_anchor(theorem)})",
            _inline(theorem.title),
            theorem.status,
        )
        typical = typical_value(theorem.module, ROOT)
        rows.append(f"| {' | '.join(cells)} | {_ratio(theorem.module, hard)} | {typical} |")
    sections = [_section(each, tightest(each.module, stored), used, root) for each in all_of_them]
    return "\n".join(
        [
            INTRODUCTION,
            *rows,
            "",
            *sections,
            _table("Hard instances", HARD_WORDS, HARD_COLUMNS, map(_hard_row, stored)),
            _table("Loose bounds", LOOSE_WORDS, LOOSE_COLUMNS, map(_loose_row, loose_bounds())),
            _table(
                "Tight instances", TIGHT_WORDS, TIGHT_COLUMNS, map(_tight_row, tight_instances())
            ),
        ]
    )


def _section(
    theorem: Theorem, hard: HardInstance | None, used: Mapping[str, list[str]], root: Path
) -> str:
    file = f"shadowprice/proofs/{theorem.module.replace('.', '/')}.py"
    files = [f"[`{name}`](../{name})" for name in used.get(theorem.module, [])]
    lines = [
        f"## {theorem.identifier}",
        f"**{_inline(theorem.title)}.** Proof, `bound` and `check`: [`{file}`](../{file}).",
        markdown(theorem.statement),
        *([f"*Knows of an instance*: {theorem.hypotheses}."] if theorem.hypotheses else []),
        f"*Status*: {markdown(theorem.origin)}",
        f"*Used in*: {', '.join(files) or 'nothing yet'}.",
        f"*Tightest instance*: {_ratio(theorem.module, hard)}{_picture(hard, root)}.",
        f"*Typical value on our families*: {typical_value(theorem.module, ROOT)}.",
    ]
    return "\n\n".join(lines) + "\n"


def _anchor(theorem: Theorem) -> str:
    return theorem.identifier.lower().replace(" ", "-")


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


def _picture(hard: HardInstance | None, root: Path) -> str:
    """A link to the picture of an instance, where there is one."""
    if hard is None or not (root / "docs" / _PICTURES / f"{hard.name}.png").is_file():
        return ""
    return f", [picture]({_PICTURES}/{hard.name}.png)"


def _table(title: str, words: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A section of a title, some words and a table; none where there are no rows."""
    body = [f"| {' | '.join(map(str, row))} |" for row in rows]
    head = [words, "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([f"## {title}", "", *(head if body else ["None stored."]), *body]) + "\n"


HARD_WORDS = """\
All that are stored in [`instances/hard/`](../shadowprice/instances/hard), also of policies and
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
[`instances/loose/`](../shadowprice/instances/loose) with an optimal preemptive schedule. The optimum
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
[`instances/tight/`](../shadowprice/instances/tight) as tables of whole numbers. What is attained and what
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
