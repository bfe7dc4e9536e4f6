"""``shadowprice verify``: runs, certificates and hard instances, checked again from their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from shadowprice.cli.adversary import print_rechecked
from shadowprice.cli.certificates import CertificateInputs, print_checked
from shadowprice.cli.commands import offered_commands
from shadowprice.cli.options import (
    DropOption,
    FormatOption,
    TermsOption,
    ThroughputsOption,
    with_options,
)
from shadowprice.cli.outputs import ForceOption, expect_outputs
from shadowprice.cli.progress import progress_line
from shadowprice.cli.results import ResultForm
from shadowprice.cli.show import print_summary
from shadowprice.errors import InputError

_FIRST_LINE = 1 << 20
"""Characters of a file that are looked at for its kind."""


@with_options
def verify_command(
    path: Annotated[
        Path,
        typer.Argument(
            help="Run directory (`simulate -o`), state directory (`execute`), certificate (`certify`) or hard "
            "instance (`adversary`)."
        ),
    ],
    trace: Annotated[
        Path | None,
        typer.Argument(help="Trace that a certificate must be about, with --cluster."),
    ] = None,
    *,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="Cluster that a certificate must be about, with TRACE."),
    ] = None,
    trace_format: FormatOption = None,
    throughputs: ThroughputsOption = None,
    terms: TermsOption = None,
    drop_infeasible: DropOption = False,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="Policy of a hard instance where it is of a file, which is run then."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Draw both schedules of a hard instance (PNG, PDF, SVG)."),
    ] = None,
    force: ForceOption = False,
    form: ResultForm,
) -> None:
    """Check a run, a certificate or a hard instance again, from its files.

    Of a run its schedule and metrics, or the log of a real run; a certificate
    with nothing but exact arithmetic, and that it is about a trace on a
    cluster; of a hard instance both schedules and their ratio.
    """
    expect_outputs(force, plot)
    of_certificate = CertificateInputs(
        trace, cluster, trace_format, throughputs, terms, drop_infeasible
    )
    of_hard_instance = {"--policy": policy, "--plot": plot}
    if not path.exists():
        raise InputError(f"{path}: no such file or directory")
    if path.is_dir():
        _refuse(path, "a run", {**of_certificate.options(), **of_hard_instance})
        _print_run(path, form)
    elif _is_hard_instance(path):
        _refuse(path, "a hard instance", of_certificate.options())
        print_rechecked(path, policy, plot, form)
    else:
        _refuse(path, "a certificate", of_hard_instance)
        print_checked(path, of_certificate, form)


def _refuse(path: Path, kind: str, options: Mapping[str, object]) -> None:
    """Refuse options that are about another kind of file.

    Raises
    ------
    InputError
        Naming the first.
    """
    for option, value in options.items():
        if value:
            raise InputError(f"{path}: is {kind}, which {option} is not about")


def _print_run(directory: Path, form: ResultForm) -> None:
    from shadowprice.analysis.run_directory.directory import check

    for commands in offered_commands():
        for verifier in commands.verifiers:
            if verifier.recognises(directory):
                verifier.print_verified(directory, form)
                return
    with progress_line() as say:
        say(f"verifying {directory}")
        outcome = check(directory, say)
    print_summary(outcome, form)


def _is_hard_instance(path: Path) -> bool:
    """True if a file is one JSON document with a witness; certificates are a document a line."""
    try:
        with path.open(encoding="utf-8") as file:
            start = file.read(_FIRST_LINE)
    except (OSError, UnicodeDecodeError):
        return False
    first = start.partition("\n")[0].strip()
    try:
        return "witness" in json.loads(first)
    except (ValueError, TypeError):
        return first == "{" and '"witness"' in start
