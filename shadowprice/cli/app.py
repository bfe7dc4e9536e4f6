"""Schedulers of deep-learning clusters, measured against what was possible, with certified bounds.

Begin with ``shadowprice demo``; ``shadowprice COMMAND --help`` has the options of a command and examples.
With SHADOWPRICE_DEBUG=1 in the environment an error comes with its traceback, that of your own code too.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NoReturn

import typer

from shadowprice.cli.adversary import adversary_command
from shadowprice.cli.allocate import allocate_command
from shadowprice.cli.audit.command import audit_command
from shadowprice.cli.certificates import certify_command, check_command
from shadowprice.cli.commands import offered_commands
from shadowprice.cli.doctor import doctor_command
from shadowprice.cli.laws import laws_command
from shadowprice.cli.listed import (
    GENERATORS,
    generators_command,
    policies_command,
    terms_command,
    traces_command,
)
from shadowprice.cli.models import models_command
from shadowprice.cli.options import JsonOption, SeedOption
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_picture, write_table
from shadowprice.cli.panels import PanelGroup, register, shown
from shadowprice.cli.placement.joint import joint_command
from shadowprice.cli.placement.place import place_command
from shadowprice.cli.placement.servers import servers_command
from shadowprice.cli.progress import INTERRUPTED, progress_line
from shadowprice.cli.runs import compare_command, simulate_command
from shadowprice.cli.show import (
    console,
    print_comparison,
    print_summary,
    stderr,
)
from shadowprice.cli.trace import trace
from shadowprice.errors import ShadowpriceError
from shadowprice.user_code import in_user_code
from shadowprice.version import __version__

DEBUG = "SHADOWPRICE_DEBUG"
"""Environment variable: not empty, it shows the tracebacks of errors."""

# Commands import what they need when they need it, and read their input before that: help and the
# message about a missing file are there at once.
# Typer brings a command-line library of its own or not, by its version; its classes are the same.
UsageError: Any = typer.BadParameter.__mro__[1]

app = typer.Typer(
    cls=PanelGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"shadowprice {__version__}")
        raise typer.Exit


@app.callback(help=__doc__)
def everything(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the command line itself."""


app.command("allocate", **shown("allocate"))(allocate_command)


app.command("simulate", **shown("simulate"))(simulate_command)
app.command("compare", **shown("compare"))(compare_command)
app.command("audit", **shown("audit"))(audit_command)
app.command("place", **shown("place"))(place_command)
app.command("joint", **shown("joint"))(joint_command)
app.command("models", **shown("models"))(models_command)
app.command("servers", **shown("servers"))(servers_command)
app.command("certify", **shown("certify"))(certify_command)
app.command("check", **shown("check"))(check_command)
app.command("adversary", **shown("adversary"))(adversary_command)
app.command("laws", **shown("laws"))(laws_command)
app.command("policies", **shown("policies"))(policies_command)
app.command("terms", **shown("terms"))(terms_command)
app.command("doctor", **shown("doctor"))(doctor_command)
app.command("generators", **shown("generators"))(generators_command)
app.command("traces", **shown("traces"))(traces_command)


DEMO_POLICIES = ("fifo", "easy", "las2d", "srtf")
"""Policies of the demo: on its trace they cost differently, the first the most."""
DEMO_TRACE: Mapping[str, Any] = MappingProxyType(
    {"name": "lognormal", "jobs": 300, "seed": 1, "load": 1.3, "gpus_total": 64}
)


@app.command(**shown("demo"))
def demo(
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also write the picture there.")
    ] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare four policies with what was possible, on a generated trace of some hundred jobs."""
    expect_outputs(force, plot)
    from shadowprice.analysis.compare import compare
    from shadowprice.instances.generators import generate as generate_workload

    workload = generate_workload(**DEMO_TRACE)
    with progress_line() as say:
        result = compare(
            workload, "8x8", DEMO_POLICIES, "flow", budget_s=30.0, progress=say, watch=say
        )
    if not as_json:
        console.print(
            f"{len(workload)} generated jobs on 8 nodes of 8 GPUs, load 1.3, total flow time\n"
        )
    print_comparison(result, as_json)
    if not as_json:
        best = min(result.rows, key=lambda row: row.cost_ticks)
        console.print(best.sentence(), markup=False, highlight=False, soft_wrap=True)
    if plot is not None:
        write_picture(plot, result.plot())


@app.command(**shown("verify"))
def verify(
    run_directory: Annotated[
        Path, typer.Argument(help="Written by `simulate -o`, or the --state of `execute`.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check a run directory again: its schedule and metrics, or the log of a real run."""
    from shadowprice.analysis.run_directory.directory import check as check_run

    for commands in offered_commands():
        for verifier in commands.verifiers:
            if verifier.recognises(run_directory):
                verifier.print_verified(run_directory, as_json)
                return
    with progress_line() as say:
        say(f"verifying {run_directory}")
        outcome = check_run(run_directory, say)
    print_summary(outcome, as_json)


@app.command(**shown("generate"))
def generate(
    name: Annotated[str, typer.Argument(help=f"{GENERATORS}; `generators` says more of them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV or Parquet file to write.")],
    jobs: Annotated[int | None, typer.Option("--jobs", help="Number of jobs.")] = None,
    load: Annotated[float | None, typer.Option("--load", help="Offered load.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="GPUs the load is offered to.")] = None,
    samples: Annotated[
        Path | None,
        typer.Option("--service-samples", help="GPU times to draw services from, one a line."),
    ] = None,
    parameters: Annotated[
        Path | None,
        typer.Option("--parameters", help="Parameters that `trace fit` wrote; options go before."),
    ] = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
) -> None:
    """Write a generated trace."""
    expect_outputs(force, output)
    from shadowprice.instances.generators import generate as generate_workload

    given = {"jobs": jobs, "load": load, "gpus_total": gpus, "samples": samples}
    chosen = {key: value for key, value in given.items() if value is not None}
    if parameters is not None:
        from shadowprice.analysis.trace.fit import parameters_for

        chosen = parameters_for(name, parameters, chosen)
    workload = generate_workload(name, seed=seed, **chosen)
    write_table(output, workload.to_frame())
    console.print(f"{len(workload)} jobs to {output}")


app.add_typer(trace, name="trace", rich_help_panel="Data")
for _commands in offered_commands():
    register(app, _commands)


def main() -> None:
    """Entry point: errors a user can act on go to stderr in one line with exit code 2, without a traceback."""
    try:
        # Usage errors are told by this function: of themselves they take five lines and a frame.
        code = app(standalone_mode=False)
    except ShadowpriceError as error:
        debugging = bool(os.environ.get(DEBUG))
        if debugging:
            traceback.print_exception(error)
        hint = f" ({DEBUG}=1 shows the traceback)" if in_user_code(error) and not debugging else ""
        _end(f"error: {error}{hint}", 2)
    except UsageError as error:
        if error.__class__.__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(2)
        context = error.ctx
        message = " ".join(error.format_message().split()).removesuffix(".")
        where = "" if context is None else f"`{context.command_path} --help` shows what it takes"
        between = " " if message.endswith("?") else "; "
        _end(f"error: {message}{between}{where}", 2)
    except typer.Abort:
        _end("Aborted.", 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _end(message: str, code: int) -> NoReturn:
    stderr.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)
