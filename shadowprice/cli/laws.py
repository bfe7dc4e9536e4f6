"""``shadowprice laws``: the battery of laws for a policy."""

from __future__ import annotations

from typing import Annotated

import typer

from shadowprice.cli.options import POLICY_HELP, with_options
from shadowprice.cli.progress import progress_line
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_rows
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.user_code import sentence

BROKEN = 1
"""Exit code where a law is broken."""


@with_options
def laws_command(
    policy: Annotated[str, typer.Argument(help=POLICY_HELP)],
    waits: Annotated[
        bool, typer.Option("--waits", help="It lets GPUs idle on purpose although a job fits.")
    ] = False,
    times: Annotated[
        str, typer.Option("--times", help="Its parameters that are times, comma-separated.")
    ] = "",
    scaling: Annotated[
        str,
        typer.Option("--scaling", help="Schedules scale with all times: exact, rounded or none."),
    ] = "exact",
    commits: Annotated[
        bool,
        typer.Option("--commits", help="It gives GPUs away for times to come: no nodes that fail."),
    ] = False,
    examples: Annotated[
        int, typer.Option("--examples", min=1, help="Examples tried for each law.")
    ] = 100,
    *,
    form: ResultForm,
) -> None:
    """Search examples on which a policy breaks a law; the exit code is 1 if one is found."""
    from shadowprice.solvers.registry import policy as policy_by_name

    chosen = policy_by_name(policy)
    try:
        from shadowprice.proofs.testing.battery import verdicts
        from shadowprice.proofs.testing.subject import PolicyUnderTest, Scaling
    except ImportError as missing:
        raise InputError(str(missing)) from missing

    kinds = {kind.value: kind for kind in Scaling}
    if scaling not in kinds:
        raise InputError(f"scaling {scaling!r}: expected one of {', '.join(kinds)}")
    named = tuple(name.strip() for name in times.split(",") if name.strip())
    subject = PolicyUnderTest(chosen, waits, named, kinds[scaling], commits, policy)
    rows: list[tuple[str, str]] = []
    with progress_line() as say:
        say("trying the first law")
        for law, error in verdicts(subject, examples):
            rows.append((law.title, "" if error is None else _message(error)))
            say(f"trying laws, {len(rows)} tried")
    print_result(
        form,
        lambda: _show(policy, rows),
        lambda: [{"law": law, "holds": not broken, "broken": broken} for law, broken in rows],
    )
    if any(broken for _, broken in rows):
        raise typer.Exit(BROKEN)


def _message(error: Exception) -> str:
    """The message of an error on purpose; another one is told with its place."""
    on_purpose = isinstance(error, AssertionError | ShadowpriceError)
    return str(error) if on_purpose else sentence(error)


def _show(policy: str, rows: list[tuple[str, str]]) -> None:
    cells = ((law, "broken" if broken else "no example breaks it") for law, broken in rows)
    print_rows(("law", ""), cells, title=policy)
    print_lines(*(f"\n{law}:\n{broken}" for law, broken in rows if broken))
