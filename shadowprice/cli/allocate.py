"""``shadowprice allocate``: one allocation problem, one policy, the result and the reasons."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from shadowprice.cli.options import RUNS_IT, with_options
from shadowprice.cli.outputs import with_origin
from shadowprice.cli.results import ResultForm, print_result
from shadowprice.cli.show import print_lines, print_table, stderr, table_of
from shadowprice.errors import VerificationError

if TYPE_CHECKING:
    from shadowprice.solvers.gavel.allocation import Allocation
    from shadowprice.solvers.gavel.rates import FloatArray


UNPROVEN = 1
"""Exit code where the allocation is not proven to be the best."""

SHOWN = 1e-9
"""Shares of pairs up to this are left out."""


@with_options
def allocate_command(
    policy: Annotated[
        str, typer.Argument(help=f"Allocation policy; `policies` lists them; {RUNS_IT}.")
    ],
    problem: Annotated[Path, typer.Argument(help="Cluster and jobs (JSON, may be gzip or xz).")],
    throughputs: Annotated[
        Path | None, typer.Option("--throughputs", help="Table with rates of pairs (JSON).")
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            "--solver",
            help="auto, highs, highs-simplex, highs-ipx, highs-pdlp, scip, gurobi, cuopt, xpress, "
            "mosek, cplex, or pyomo:NAME.",
        ),
    ] = "auto",
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="The programme instead of the policy's own: a name that an installed package offers, "
            f"{RUNS_IT}.",
        ),
    ] = None,
    reasons: Annotated[
        bool, typer.Option("--explain", help="Say what bounds each job, with its price.")
    ] = False,
    *,
    form: ResultForm,
) -> None:
    """Say which share of each GPU type every job should get.

    The exit code is 1 if the allocation is printed and its objective is not proven to be the best.
    """
    from shadowprice.instances.allocation_file import load_allocation_problem
    from shadowprice.instances.speeds.throughputs import load_throughputs

    table = None if throughputs is None else load_throughputs(throughputs)
    loaded = load_allocation_problem(problem, table)
    from shadowprice.solvers.gavel.allocate import allocate
    from shadowprice.solvers.programs.compile import SolverWarning
    from shadowprice.solvers.programs.solution import SolverOptions

    with warnings.catch_warnings():
        # What they say is among the notes.
        warnings.simplefilter("ignore", SolverWarning)
        options = SolverOptions(method=solver, time_limit_s=600.0)
        allocation = allocate(loaded, policy, options, model)
    verified = _verified(allocation)
    print_result(
        form,
        lambda: _show(allocation, verified, reasons),
        lambda: with_origin(_report(allocation, verified, reasons)),
        lambda: _share_rows(allocation),
        ("jobs", *(f"share.{each}" for each in allocation.problem.gpu_types), "throughput"),
    )
    if not allocation.proven:
        raise typer.Exit(UNPROVEN)


def _verified(allocation: Allocation) -> bool:
    try:
        allocation.verify()
    except VerificationError:
        return False
    return True


def _report(allocation: Allocation, verified: bool, reasons: bool) -> dict[str, Any]:
    """Data that ``--json`` prints; jobs by position where the input did not name them."""
    from shadowprice.solvers.gavel.explain import explain

    names: dict[str, Any] = {
        name: k if name == str(k) else name for k, name in enumerate(allocation.problem.id.tolist())
    }
    rows = [
        [names[jobs[0]] if len(jobs) == 1 else [names[job] for job in jobs], shares.tolist()]
        for jobs, shares in allocation.rows(SHOWN)
    ]
    report = {
        "policy": allocation.policy,
        "objective": _finite(allocation.objective),
        "bound": _finite(allocation.bound),
        "status": _status(allocation),
        "gpu_types": list(allocation.problem.gpu_types),
        "allocation": rows,
        "effective_throughput": allocation.effective_throughput.tolist(),
        "notes": list(allocation.notes),
        "solve_s": allocation.solver_s,
        "total_s": allocation.total_s,
        "verified": verified,
    }
    if reasons:
        report["explanation"] = explain(allocation)
        if allocation.prices is not None:
            report["prices"] = {
                "workers": allocation.prices.worker.tolist(),
                "jobs": allocation.prices.job.tolist(),
                "time": allocation.prices.time.tolist(),
            }
    return report


def _status(allocation: Allocation) -> str:
    from shadowprice.solvers.gavel.allocation import NOT_PROVEN

    if allocation.objective is None:
        return "rule"
    if not allocation.proven:
        return NOT_PROVEN
    # Without a bound nothing says that no allocation is better: POP's parts are optimal, the whole is not.
    return "optimal" if allocation.certified and allocation.bound is not None else "found"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _share_rows(allocation: Allocation) -> Iterator[dict[str, object]]:
    """A row for a job's shares of the types, or for those of a pair, which has no throughput of its own."""
    rate = dict(
        zip(allocation.problem.id.tolist(), allocation.effective_throughput.tolist(), strict=True)
    )
    for jobs, shares in allocation.rows(SHOWN):
        yield {
            "jobs": " + ".join(jobs),
            "share": dict(zip(allocation.problem.gpu_types, shares.tolist(), strict=True)),
            "throughput": rate[jobs[0]] if len(jobs) == 1 else None,
        }


def _show(allocation: Allocation, verified: bool, reasons: bool) -> None:
    from shadowprice.solvers.gavel.explain import explain

    worth = "" if allocation.objective is None else f", objective {allocation.objective:.9g}"
    heads = ("job", *allocation.problem.gpu_types, "steps/s")
    table = table_of(heads, range(1, len(heads)), title=f"{allocation.policy}{worth}")
    rate = dict(
        zip(allocation.problem.id.tolist(), allocation.effective_throughput.tolist(), strict=True)
    )

    def cells(row: tuple[tuple[str, ...], FloatArray]) -> Iterator[str]:
        jobs, shares = row
        yield escape(" + ".join(jobs))
        yield from (f"{share:.6f}" for share in shares)
        yield f"{rate[jobs[0]]:.6g}" if len(jobs) == 1 else ""

    print_table(table, list(allocation.rows(SHOWN)), cells)
    if reasons:
        print_lines(*explain(allocation), broken=True)
    for note in allocation.notes:
        stderr.print(note, style="yellow", markup=False, highlight=False)
    if not verified:
        stderr.print("not a feasible allocation", style="red")
