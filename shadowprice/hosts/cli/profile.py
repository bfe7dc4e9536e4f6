"""``shadowprice profile``: how fast a command is by CPUs and memory, measured on this host."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.analysis.wording import counted
from shadowprice.cli.options import record_of_option, with_options
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_file
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import stderr
from shadowprice.hosts.cli.commands import print_rows, print_text

if TYPE_CHECKING:
    from shadowprice.hosts.profiling.profiler import Measurement, Storage


@with_options
def profile_command(
    command: Annotated[list[str], typer.Argument(help="Program and its arguments, after --.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="JSON file of profiles to write.")],
    model: Annotated[str, typer.Option("--model", help="Name of the model in traces.")],
    storage: Annotated[
        str,
        typer.Option(
            "--storage",
            metavar="key=value,...",
            help="Where its data come from: dataset_gb (read in an epoch), disk_gb_per_s; "
            "memory_gb_per_s_per_cpu (no limit), process_gb (0: needed beside cached data).",
        ),
    ],
    units_per_epoch: Annotated[
        float, typer.Option("--units-per-epoch", help="Units of work that read all data once.")
    ],
    work_per_run: Annotated[
        float | None,
        typer.Option(
            "--work-per-run",
            help="Units of work of one run, which is then timed; else the command prints "
            "throughput=UNITS_PER_SECOND on a line.",
        ),
    ] = None,
    max_cpus: Annotated[
        int | None, typer.Option("--max-cpus", help="CPUs to start with; by default all.")
    ] = None,
    gpus: Annotated[int, typer.Option("--gpus", help="GPUs that the command uses.")] = 1,
    timeout_s: Annotated[
        float, typer.Option("--timeout", help="Seconds that a run may take.")
    ] = 3600.0,
    force: ForceOption = False,
    *,
    form: ResultForm,
) -> None:
    """Measure a command along CPU counts with all its data cached, and compute the rest.

    Each run sees fewer of this host's CPUs; SHADOWPRICE_CPUS says how many. The file can be read by
    `simulate`.
    """
    expect_outputs(force, output)
    from shadowprice.hosts.profiling.limited_command import LimitedCommand, available_cpus
    from shadowprice.hosts.profiling.profiler import Storage, measure_profile
    from shadowprice.instances.speeds.profiles import table_entry

    limited = LimitedCommand(tuple(command), timeout_s, work_per_run)
    place = record_of_option("--storage", storage, Storage)

    def throughput(cpus: int) -> float:
        rate = limited.throughput(cpus)
        stderr.print(f"{cpus} CPUs: {rate:.6g} units/s", markup=False, highlight=False)
        return rate

    found = measure_profile(
        throughput,
        place,
        max_cpus=len(available_cpus()) if max_cpus is None else max_cpus,
        gpus=gpus,
        units_per_epoch=units_per_epoch,
        name=f"model {model!r}",
    )
    entry = table_entry(model, gpus, found.profile, _record(found, place, command))
    document = {"profiles": [entry]}
    text = json.dumps(document, indent=1) + "\n"
    write_file(output, lambda partial: partial.write_text(text, encoding="utf-8"))
    print_result(
        form,
        lambda: _show(found, model, gpus),
        lambda: with_origin(document),
        lambda: ({"cpus": cpus, "units_per_s": rate} for cpus, rate in found.points),
    )


def _record(measurement: Measurement, storage: Storage, command: list[str]) -> dict[str, object]:
    """Record of the measurement of a table: finite numbers only, for JSON has no others."""
    from shadowprice.hosts.profiling.limited_command import CPUS_VARIABLE

    bandwidth = storage.memory_gb_per_s_per_cpu
    return {
        "command": command,
        "units_per_s_by_cpus": {str(cpus): rate for cpus, rate in measurement.points},
        "dataset_gb": storage.dataset_gb,
        "disk_gb_per_s": storage.disk_gb_per_s,
        "memory_gb_per_s_per_cpu": bandwidth if math.isfinite(bandwidth) else None,
        "process_gb": storage.process_gb,
        "cpus_limited_by": f"affinity, {CPUS_VARIABLE}",
    }


def _show(measurement: Measurement, model: str, gpus: int) -> None:
    rows = [(str(cpus), f"{rate:.6g}") for cpus, rate in measurement.points]
    print_rows(("CPUs", "units/s"), rows, title=f"{model} on {counted(gpus, 'GPU')}", numbers=True)
    cpus_per_gpu, memory_gb = measurement.profile.demand()
    print_text(
        f"fastest with {cpus_per_gpu:g} CPUs and {memory_gb:g} GB for each GPU; "
        f"{len(measurement.points) + 1} runs instead of {measurement.cells}"
    )
