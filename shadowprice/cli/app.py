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
from shadowprice.cli.certificates import certify_command
from shadowprice.cli.commands import offered_commands
from shadowprice.cli.doctor import doctor_command
from shadowprice.cli.generate import generate_command
from shadowprice.cli.laws import laws_command
from shadowprice.cli.listed import policies_command, terms_command
from shadowprice.cli.models import models_command
from shadowprice.cli.options import with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, write_picture
from shadowprice.cli.panels import PanelGroup, register, shown
from shadowprice.cli.placement.group import place
from shadowprice.cli.progress import INTERRUPTED, progress_line
from shadowprice.cli.results import ResultForm
from shadowprice.cli.runs import compare_command, simulate_command
from shadowprice.cli.show import console, print_comparison, print_lines, stderr
from shadowprice.cli.trace import trace_command
from shadowprice.cli.verify import verify_command
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


for _name, _command in {
    "simulate": simulate_command,
    "compare": compare_command,
    "audit": audit_command,
    "allocate": allocate_command,
    "models": models_command,
    "policies": policies_command,
    "terms": terms_command,
    "laws": laws_command,
    "verify": verify_command,
    "certify": certify_command,
    "adversary": adversary_command,
    "generate": generate_command,
    "trace": trace_command,
    "doctor": doctor_command,
}.items():
    app.command(_name, **shown(_name))(_command)


DEMO_POLICIES = ("fifo", "easy", "las2d", "srtf")
"""Policies of the demo: on its trace they cost differently, the first the most."""
DEMO_TRACE: Mapping[str, Any] = MappingProxyType(
    {"name": "lognormal", "jobs": 300, "seed": 1, "load": 1.3, "gpus_total": 64}
)


@app.command(**shown("demo"))
@with_options
def demo(
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also write the picture there.")
    ] = None,
    force: ForceOption = False,
    *,
    form: ResultForm,
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
    if not form.option:
        console.print(
            f"{len(workload)} generated jobs on 8 nodes of 8 GPUs, load 1.3, total flow time\n"
        )
    print_comparison(result, form)
    if not form.option:
        best = min(result.rows, key=lambda row: row.cost_ticks)
        print_lines(best.sentence())
    if plot is not None:
        write_picture(plot, result.plot())


app.add_typer(place, name="place", rich_help_panel="Simulate and compare")
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
