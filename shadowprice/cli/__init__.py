"""The command line; ``shadowprice --help`` lists the commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from shadowprice.analysis.semantics import OF_THE_ENGINE, OF_THE_POLICY
from shadowprice.cli.adversary import adversary_command
from shadowprice.cli.allocate import allocate_command
from shadowprice.cli.certificates import certify_command, check_command
from shadowprice.cli.joint import joint_command
from shadowprice.cli.models import models_command
from shadowprice.cli.options import OPTION_OF, JsonOption, PresetOption, SeedOption
from shadowprice.cli.place import place_command
from shadowprice.cli.profile import profile_command
from shadowprice.cli.real.commands import cancel_command, report_command, status_command
from shadowprice.cli.real.execute import execute_command
from shadowprice.cli.runs import compare_command, simulate_command
from shadowprice.cli.servers import servers_command
from shadowprice.cli.show import (
    console,
    print_comparison,
    print_summary,
    progress_line,
    stderr,
    write,
)
from shadowprice.errors import ShadowpriceError
from shadowprice.instances.fetch import DATASETS, fetch
from shadowprice.solvers.about import about, first_clause

if TYPE_CHECKING:
    from shadowprice.execution.own_loop import RunsItself
    from shadowprice.solvers.policy import Policy

# Commands import what they need when they need it, and read their input before that: help and the
# message about a missing file are there at once.
app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__
)


app.command("allocate")(allocate_command)


app.command("simulate")(simulate_command)
app.command("compare")(compare_command)
app.command("place")(place_command)
app.command("joint")(joint_command)
app.command("models")(models_command)
app.command("servers")(servers_command)
app.command("certify")(certify_command)
app.command("check")(check_command)
app.command("profile")(profile_command)
app.command("adversary")(adversary_command)
app.command("execute")(execute_command)
app.command("status")(status_command)
app.command("cancel")(cancel_command)
app.command("report")(report_command)


@app.command()
def demo(
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also write the picture there.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare four policies with what was possible, on a generated trace of some hundred jobs."""
    from shadowprice.analysis.compare import compare
    from shadowprice.instances.generators import generate as generate_workload

    workload = generate_workload("lognormal", jobs=300, seed=1, load=1.3, gpus_total=64)
    names = ("fifo", "srtf", "las2d", "gittins2d")
    with progress_line() as say:
        result = compare(workload, "8x8", names, "flow", budget_s=30.0, progress=say)
    if not as_json:
        console.print(
            f"{len(workload)} generated jobs on 8 nodes of 8 GPUs, load 1.3, total flow time\n"
        )
    print_comparison(result, as_json)
    if plot is not None:
        write(plot, lambda: result.plot().savefig(plot, dpi=150))


@app.command()
def verify(
    run_directory: Annotated[
        Path, typer.Argument(help="Written by `simulate -o`, or the --state of `execute`.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Check a run directory again: its schedule and metrics, or the log of a real run."""
    from shadowprice.analysis.real_runs.results import is_state_directory
    from shadowprice.analysis.run_directory.directory import load as load_run
    from shadowprice.cli.real.commands import print_verified

    if is_state_directory(run_directory):
        print_verified(run_directory, as_json)
        return
    print_summary(load_run(run_directory), as_json)


@app.command()
def generate(
    name: Annotated[str, typer.Argument(help="Generator; `policies` lists them.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="CSV or Parquet file to write.")],
    jobs: Annotated[int | None, typer.Option("--jobs", help="Number of jobs.")] = None,
    load: Annotated[float | None, typer.Option("--load", help="Offered load.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="GPUs the load is offered to.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Write a generated trace."""
    from shadowprice.instances.generators import generate as generate_workload
    from shadowprice.instances.workload_files import write_workload

    given = {"jobs": jobs, "load": load, "gpus_total": gpus}
    chosen = {key: value for key, value in given.items() if value is not None}
    workload = generate_workload(name, seed=seed, **chosen)
    write(output, lambda: write_workload(workload, output))
    console.print(f"{len(workload)} jobs to {output}")


@app.command()
def policies(preset: PresetOption = None, as_json: JsonOption = False) -> None:
    """List policies: what they know, whether they preempt, what is proven of them, and where they are from."""
    from shadowprice.execution.presets.registry import preset as find_preset
    from shadowprice.execution.presets.registry import presets
    from shadowprice.instances.generators import generators
    from shadowprice.solvers.registry import allocations as all_allocations

    if preset is not None:
        found = find_preset(preset)
        console.print(f"{found.name}: {found.source}")
        console.print("policies: " + ", ".join(found.policies))
        console.print("placements: " + ", ".join(found.placements))
        return
    listed = _listed()
    if as_json:
        print(json.dumps(listed))
        return
    table = Table("policy", "knows", "preempts", "what it does; guarantee; source", show_lines=True)
    table.columns[0].no_wrap = True
    for row in listed:
        preempts = "yes" if row["preempts"] else "no"
        told = (row["does"], row["guarantee"], row["source"])
        clauses = [*map(_clause, told), *_switch_lines(row)]
        table.add_row(str(row["policy"]), str(row["knows"]), preempts, "\n".join(clauses))
    console.print(table)
    console.print(
        f"The engine's switches go with every policy that does not refuse them here: "
        f"{', '.join(_named(OF_THE_ENGINE))}. Others only with those that take them here: "
        f"{', '.join(_named(OF_THE_POLICY))}.",
        highlight=False,
    )
    console.print("allocation policies: " + ", ".join(sorted(all_allocations())))
    console.print(
        "generators: "
        + ", ".join(sorted(generators()))
        + "; presets: "
        + ", ".join(sorted(presets()))
    )


def _listed() -> list[dict[str, object]]:
    """One record a policy, by name."""
    from shadowprice.analysis.settle import switches_of
    from shadowprice.execution.own_loop import schedulers
    from shadowprice.solvers.registry import policies as all_policies

    known: dict[str, Policy | RunsItself] = {**all_policies(), **schedulers()}
    return [
        {
            "policy": name,
            "knows": ", ".join(sorted(thing.knows)) or "nothing",
            "preempts": thing.preemptive,
            "does": (type(thing).__doc__ or "").strip().splitlines()[0],
            "guarantee": about(thing).guarantee,
            "source": about(thing).source,
            **asdict(switches_of(thing)),
        }
        for name, thing in sorted(known.items())
    ]


def _clause(text: object) -> str:
    return first_clause(str(text))


def _switch_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Differences of a policy from the others in the switches of a run that it takes."""
    more = [name for name in row["takes"] if name not in OF_THE_ENGINE]
    less = [name for name in row["refuses"] if name in OF_THE_ENGINE]
    if more:
        yield f"takes {', '.join(_named(more))}"
    if less:
        yield f"refuses {', '.join(_named(less))}"


def _named(switches: Iterable[str]) -> list[str]:
    """Options that set some switches; some only a program can set."""
    return [OPTION_OF[name] for name in switches if name in OPTION_OF]


data = typer.Typer(no_args_is_help=True, help="Public traces and tables.")
app.add_typer(data, name="data")


@data.command("fetch")
def fetch_command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(sorted(DATASETS))}.")],
) -> None:
    """Download a public data set, checked against its SHA-256, and print its path."""
    print(fetch(name))


def main() -> None:
    """Entry point: errors a user can act on go to stderr with exit code 2, without a traceback."""
    try:
        app()
    except ShadowpriceError as error:
        stderr.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
