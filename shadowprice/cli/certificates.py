"""``shadowprice certify``, and certificates for ``verify``: proofs of what runs are within, for others to check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from shadowprice.analysis.wording import amount_at_most, at_most
from shadowprice.cli.options import (
    UTILITY,
    ExplainBoundsOption,
    ObjectiveOption,
    UtilityOption,
)
from shadowprice.cli.outputs import ForceOption, expect_outputs, with_origin, write_file
from shadowprice.cli.results import ResultForm, entries, print_result
from shadowprice.cli.run_inputs import asked_terms
from shadowprice.cli.show import note, print_lines, printed_warnings, stderr, tell_bounds
from shadowprice.errors import InputError, VerificationError

if TYPE_CHECKING:
    from shadowprice.analysis.certify import Certified
    from shadowprice.analysis.certify_utility import CertifiedUtility
    from shadowprice.analysis.outcome import VerifiedRun
    from shadowprice.instances.terms.settings import TermSettings

Claim = TypeVar("Claim", "Certified", "CertifiedUtility")


def certify_command(
    run_directory: Annotated[Path, typer.Argument(help="Written by `simulate -o`.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Certificate (JSON lines).")],
    objective: ObjectiveOption = "flow",
    utility: UtilityOption = None,
    round_s: Annotated[
        float | None,
        typer.Option(
            "--round",
            help="With --objective utility: seconds of its rounds, by whose ends jobs earn; 360 by default.",
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget", min=0.0, help="Seconds for the bound, at most.")
    ] = 20.0,
    explain: ExplainBoundsOption = False,
    non_preemptive: Annotated[
        bool,
        typer.Option(
            "--non-preemptive",
            help="Compare with schedules in which each job begins once, as it has to in the run.",
        ),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Write a certificate of how far a run is from the offline optimum at most."""
    expect_outputs(force, output)
    if non_preemptive and objective == UTILITY:
        raise InputError(f"--non-preemptive: is of costs, got --objective {UTILITY}")
    flags = {"--utility": utility, "--round": round_s}
    if objective != UTILITY and (utility is not None or round_s is not None):
        option, value = next((name, each) for name, each in flags.items() if each is not None)
        raise InputError(
            f"{option} {value}: goes with --objective {UTILITY}, got --objective {objective}"
        )
    from shadowprice.analysis.run_directory.directory import check as check_run

    run = check_run(run_directory)
    if objective == UTILITY:
        _certify_utility(run, output, utility or "effective_throughput", round_s, budget_s)
        return
    # After the run directory, so that a wrong one is an error at once.
    from shadowprice.analysis.certify import certify_into

    may_preempt = not non_preemptive
    certified = _written(
        output,
        lambda partial: certify_into(
            run, partial, objective, budget_s=budget_s, preemptive=may_preempt
        ),
    )
    warned_of = [] if certified.ratio == 1 else [certified.history.warning()]
    tell_bounds([certified.history], warned_of, explain=explain)


def _certify_utility(
    run: VerifiedRun, output: Path, utility: str, round_s: float | None, budget_s: float
) -> None:
    """Write a certificate of a run's total utility, and print it."""
    from shadowprice.analysis.certificates.job_utilities import ROUND_S
    from shadowprice.analysis.certify_utility import certify_utility_into

    length_s = ROUND_S if round_s is None else round_s
    certified = _written(
        output,
        lambda partial: certify_utility_into(run, partial, utility, length_s, budget_s=budget_s),
    )
    for origin, most in certified.tried:
        stderr.print(
            f"bound {origin}: at most {amount_at_most(most)}", markup=False, highlight=False
        )
    if (warning := certified.warning()) is not None:
        note(warning)


def _written(output: Path, make: Callable[[Path], Claim]) -> Claim:
    """The claim of a certificate that is made into a file, and printed."""
    made: list[Claim] = []
    write_file(output, lambda partial: made.append(make(partial)))
    (certified,) = made
    print_lines(certified.sentence(), f"instance: SHA-256 {certified.instance}")
    return certified


@dataclass(frozen=True)
class CertificateInputs:
    """Files and options of the instance that a certificate must be about, as they were written.

    Parameters
    ----------
    trace, cluster : Path and str, or None
        Both or none.
    trace_format, throughputs, terms, drop_infeasible
        As of ``simulate``.
    """

    trace: Path | None
    cluster: str | None
    trace_format: str | None
    throughputs: Path | None
    terms: list[str] | None
    drop_infeasible: bool

    def options(self) -> dict[str, object]:
        """All of them, by their words on the command line."""
        return {
            "TRACE": self.trace,
            "--cluster": self.cluster,
            "--format": self.trace_format,
            "--throughputs": self.throughputs,
            "--with": self.terms,
            "--drop-infeasible": self.drop_infeasible,
        }


def print_checked(certificate: Path, inputs: CertificateInputs, form: ResultForm) -> None:
    """Check a certificate with nothing but exact arithmetic, and that it is about an instance; print its claim.

    Raises
    ------
    InputError
        If it cannot be read, or the inputs do not go together.
    VerificationError
        If it does not prove what it claims, or is about another instance.
    """
    from shadowprice.proofs.checker import Rejected, check_lines, sentences

    if (inputs.trace is None) != (inputs.cluster is None):
        raise InputError("verify: TRACE and --cluster go together, expected both or none")
    of_cluster = _terms_of_cluster(inputs.terms)
    if of_cluster and inputs.trace is None:
        raise InputError(f"--with {of_cluster[0]}: goes with TRACE and --cluster")
    try:
        with certificate.open(encoding="ascii", newline="\n") as lines:
            claim = check_lines(lines)
    except (Rejected, UnicodeDecodeError) as error:
        raise VerificationError(f"{certificate}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{certificate}: cannot be read: {reason}") from error
    if inputs.trace is not None and inputs.cluster is not None:
        if claim["quotas"] and not of_cluster:
            raise InputError(
                f"{certificate}: is about a cluster whose tenants have quotas, which --cluster does not say, "
                "expected --with quotas"
            )
        expected = _digest(inputs.trace, inputs.cluster, inputs, of_cluster, claim)
        if claim["instance"] != expected:
            raise VerificationError(
                f"{certificate}: is about another instance (SHA-256 {claim['instance']}) than {inputs.trace} "
                f"on {inputs.cluster} ({expected})"
            )
    print_result(
        form,
        lambda: print_lines(*sentences(claim)),
        lambda: with_origin({**claim, "at_most": at_most(Fraction(claim["ratio"]))}),
        lambda: entries({**claim, "at_most": at_most(Fraction(claim["ratio"]))}),
    )


def _terms_of_cluster(texts: list[str] | None) -> tuple[TermSettings, ...]:
    """Terms that say something of the cluster, which a certificate has.

    Raises
    ------
    InputError
        If another one is given.
    """
    terms = asked_terms(texts)
    for term in terms:
        if term.sets:
            raise InputError(
                f"--with {term.label}: is about a run, and certificates are compared with a trace on a cluster, "
                "expected terms of the cluster alone, such as quotas"
            )
    return terms


def _digest(
    trace: Path,
    cluster: str,
    inputs: CertificateInputs,
    terms: tuple[TermSettings, ...],
    claim: dict[str, Any],
) -> str:
    """Digest of the instance that is given, as a certificate with this claim would have it."""
    import numpy as np

    from shadowprice.analysis.certificates.certificate_file import instance_digest
    from shadowprice.analysis.certificates.job_utilities import JobUtilities
    from shadowprice.analysis.preparation import runnable_jobs
    from shadowprice.analysis.written_options import WrittenOptions
    from shadowprice.instances.grid import TICKS_PER_S
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.speeds.throughputs import load_throughputs
    from shadowprice.instances.traces import BrokenImporter, load_trace

    table = None if inputs.throughputs is None else load_throughputs(inputs.throughputs)
    with printed_warnings(BrokenImporter):
        imported = load_trace(trace, format=inputs.trace_format, throughputs=table)
    written = WrittenOptions(with_={each.label: each.settings for each in terms})
    run = written.read(cluster, jobs=str(trace), origin_s=imported.origin_s)
    where, jobs, _ = runnable_jobs(imported.workload, run.cluster, inputs.drop_infeasible)
    if claim["window"]:
        jobs = jobs.select(np.arange(min(claim["jobs"], len(jobs))))
    instance, utilities = Instance(where, jobs), None
    if "utility" in claim:
        utilities = JobUtilities.of(instance, claim["utility"], claim["round"] / TICKS_PER_S)
    return instance_digest(instance, utilities)
