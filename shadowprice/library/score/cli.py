"""``shadowprice score``: a sealed evaluation of an online policy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.commands import Commands, Example
from shadowprice.cli.options import SeedOption, with_options
from shadowprice.cli.origin import origin
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_file
from shadowprice.cli.progress import progress_line
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_rows
from shadowprice.errors import InputError

if TYPE_CHECKING:
    from shadowprice.library.score.evaluation import Score

LOST = 1
"""Exit code where an instance was lost."""


@with_options
def score_command(
    policy: Annotated[
        str | None,
        typer.Argument(help="Name[:parameter=value,...], see `policies`, or FILE.py:NAME; sealed."),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            help="Instead, a program and its arguments that speaks JSON lines, see docs/score.md.",
        ),
    ] = None,
    suite: Annotated[
        str, typer.Option("--suite", help="v1-online, or v1-quick for programs that try many.")
    ] = "v1-online",
    seed: SeedOption = 0,
    page: Annotated[
        Path | None, typer.Option("--page", help="Write all of it as a page (HTML).")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Score an online policy: certified ratios on a fixed suite, and where it lost; exit code 1 if one was lost."""
    if (policy is None) == (command is None):
        raise InputError("score: expected either POLICY or --command")
    expect_outputs(force, page)
    words = policy if policy is not None else _words(command or "")
    from shadowprice.library.score.record import score_record, score_rows
    from shadowprice.library.score.scoring import score

    with progress_line() as say:
        result = score(words, suite, seed=seed, progress=say)
    if page is not None:
        from shadowprice.library.score.page import score_page

        text = score_page(result, made_by=origin().sentence())
        write_file(page, lambda partial: partial.write_text(text, encoding="utf-8"))
    print_result(
        form,
        lambda: _print(result),
        lambda: with_origin(score_record(result)),
        lambda: score_rows(result),
    )
    if result.lost:
        raise typer.Exit(LOST)


def _words(command: str) -> list[str]:
    """Program and arguments, as a shell would read them; no shell runs them."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--command {command!r}: {error}") from None
    if not words:
        raise InputError("--command is empty, expected a program and its arguments")
    return words


def _print(result: Score) -> None:
    from rich.markup import escape

    from shadowprice.library.score.page import headline
    from shadowprice.library.score.ratios import decimal_text

    rows = (
        (
            each.scored.name,
            f"{len(each.scored.instance.workload):,}",
            "lost" if each.ratio is None else decimal_text(each.ratio),
            "" if m is None else f"{m.mean_ftf:.3g}, worst {m.largest_ftf:.3g}",
            "" if m is None else f"{m.mean_slowdown:.3g}, worst {m.largest_slowdown:,.3g}",
        )
        for each in result.results
        for m in (each.measures,)
    )
    heads = ("instance", "jobs", "ratio at most", "fairness", "slowdown")
    print_rows(heads, rows, range(1, 5), title=escape(result.policy))
    print_lines(*(f"{each.scored.name}: {each.feedback}" for each in result.results))
    if result.adversary is not None:
        print_lines(f"adversary: {result.adversary.sentence}")
    for law in result.laws or ():
        if law.broken:
            print_lines(f"breaks a law: {law.title}: {law.broken}")
    if result.seal is not None and result.seal.missing:
        print_lines(str(result.seal))
    spent = result.spent
    print_lines(
        f"{spent.decisions:,} decisions, {spent.decisions_per_s:,.0f} a second on this machine"
    )
    print_lines(headline(result))


COMMANDS = Commands(
    panels={"Library": ("score",)},
    run={"score": score_command},
    examples={
        "score": (
            Example("score srtf --page srtf.html", "Of one of ours, and as a page."),
            Example("score mine.py:Own --seed 7 --json", "Of your own, for programs."),
            Example("score --command 'awk -f mine.awk'", "Of a program in any language."),
        ),
    },
)
