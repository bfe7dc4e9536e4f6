"""``shadowprice certify`` and ``check``: proofs of what runs are within, for others to check."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from shadowprice.cli.options import JsonOption
from shadowprice.cli.show import console, write
from shadowprice.errors import VerificationError


def certify_command(
    run_directory: Annotated[Path, typer.Argument(help="Written by `simulate -o`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Certificate (JSON lines).")],
    objective: Annotated[
        str, typer.Option("--objective", help="completion, flow or makespan.")
    ] = "completion",
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound.")
    ] = 20.0,
) -> None:
    """Write a certificate of how far a run is from the offline optimum at most."""
    from shadowprice.analysis.run_directory import load_gangs

    run = load_gangs(run_directory)
    from shadowprice.analysis.certify import certify

    found = certify(run, objective, budget_s=budget_s)
    write(output, lambda: output.write_text(found.text, encoding="ascii"))
    console.print(found.sentence(), markup=False, highlight=False)


def check_command(
    certificate: Annotated[Path, typer.Argument(help="Certificate (JSON lines).")],
    as_json: JsonOption = False,
) -> None:
    """Check a certificate with nothing but exact arithmetic."""
    from shadowprice.instances.files import read_text
    from shadowprice.proofs.checker import Rejected, check

    try:
        claim = check(read_text(certificate, keep_line_ends=True))
    except Rejected as error:
        raise VerificationError(f"{certificate}: {error}") from None
    ratio = Fraction(claim["ratio"])
    if as_json:
        print(json.dumps({**claim, "ratio_decimal": float(ratio)}))
        return
    console.print(
        f"proven: {claim['policy']} is within {100 * float(ratio - 1):.1f} % of the offline optimum "
        f"({claim['objective']}, by {claim['kind']})",
        markup=False,
        highlight=False,
    )
