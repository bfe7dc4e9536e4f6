"""``shadowprice certify`` and ``check``: proofs of what runs are within, for others to check."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from shadowprice.analysis.wording import at_most
from shadowprice.cli.options import DropOption, FormatOption, JsonOption, ThroughputsOption
from shadowprice.cli.outputs import ForceOption, expect_outputs, print_record, write_file
from shadowprice.cli.show import console, tell_bounds, warnings_told
from shadowprice.errors import InputError, VerificationError


def certify_command(
    run_directory: Annotated[Path, typer.Argument(help="Written by `simulate -o`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Certificate (JSON lines).")],
    objective: Annotated[
        str, typer.Option("--objective", help="flow, completion or makespan.")
    ] = "flow",
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound.")
    ] = 20.0,
    force: ForceOption = False,
) -> None:
    """Write a certificate of how far a run is from the offline optimum at most."""
    expect_outputs(force, output)
    from shadowprice.analysis.run_directory.directory import check as check_run

    run = check_run(run_directory)
    # After the run directory, so that a wrong one is an error at once.
    from shadowprice.analysis.certify import Certified, certify_into

    made: list[Certified] = []
    write_file(
        output,
        lambda partial: made.append(certify_into(run, partial, objective, budget_s=budget_s)),
    )
    (found,) = made
    for line in (found.sentence(), f"instance: SHA-256 {found.instance}"):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    tell_bounds([found.history], [] if found.ratio == 1 else [found.history.warning()])


def check_command(
    certificate: Annotated[Path, typer.Argument(help="Certificate (JSON lines).")],
    trace: Annotated[
        Path | None, typer.Option("--instance", help="Trace that it must be about, with --cluster.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Cluster that it must be about.")
    ] = None,
    trace_format: FormatOption = None,
    throughputs: ThroughputsOption = None,
    drop_infeasible: DropOption = False,
    as_json: JsonOption = False,
) -> None:
    """Check a certificate with nothing but exact arithmetic, and that it is about a trace and a cluster."""
    from shadowprice.proofs.checker import Rejected, check_lines, sentences

    if (trace is None) != (cluster is None):
        raise InputError("check: --instance and --cluster go together, expected both or none")
    try:
        with certificate.open(encoding="ascii", newline="\n") as lines:
            claim = check_lines(lines)
    except (Rejected, UnicodeDecodeError) as error:
        raise VerificationError(f"{certificate}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{certificate}: cannot be read: {reason}") from error
    if trace is not None and cluster is not None:
        if claim["quotas"]:
            raise InputError(
                f"{certificate}: is about a cluster whose tenants have quotas, which --cluster does not say; compare "
                f"the digest of its instance, {claim['instance']}, with the one that `certify` printed"
            )
        first = claim["jobs"] if claim["window"] else None
        expected = _digest(trace, cluster, trace_format, throughputs, drop_infeasible, first)
        if claim["instance"] != expected:
            raise VerificationError(
                f"{certificate}: is about another instance (SHA-256 {claim['instance']}) than {trace} "
                f"on {cluster} ({expected})"
            )
    if as_json:
        print_record({**claim, "at_most": at_most(Fraction(claim["ratio"]))})
        return
    for line in sentences(claim):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _digest(
    trace: Path,
    cluster: str,
    trace_format: str | None,
    throughputs: Path | None,
    drop_infeasible: bool,
    first: int | None,
) -> str:
    """Digest of the instance that a trace, or its first so many jobs, and a cluster make."""
    import numpy as np

    from shadowprice.analysis.certify import instance_digest
    from shadowprice.analysis.settle import kept_jobs
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.speeds.throughputs import load_throughputs
    from shadowprice.instances.traces import BrokenImporter, load_trace

    table = None if throughputs is None else load_throughputs(throughputs)
    with warnings_told(BrokenImporter):
        jobs = load_trace(trace, format=trace_format, throughputs=table).workload
    where, jobs, _ = kept_jobs(jobs, cluster, drop_infeasible)
    return instance_digest(
        Instance(where, jobs if first is None else jobs.select(np.arange(min(first, len(jobs)))))
    )
