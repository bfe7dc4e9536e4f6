"""One call from an allocation problem to a checked allocation."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel.allocation import NOT_PROVEN, Allocation, AllocationPolicy
from shadowprice.solvers.gavel.programme import with_model
from shadowprice.solvers.gavel.workspace import Build, Workspace
from shadowprice.solvers.programs.solution import SolverOptions
from shadowprice.solvers.registry import allocation as find_allocation


def allocate(
    problem: AllocationProblem,
    policy: str | AllocationPolicy = "max_min_fairness:aware=true",
    options: SolverOptions | None = None,
    model: str | Build | None = None,
) -> Allocation:
    """Say which share of each GPU type every job should get.

    Parameters
    ----------
    policy : str or AllocationPolicy
        A policy's name, with parameters after a colon, or a policy of your own.
    options : SolverOptions, optional
        Solver and its limits.
    model : callable or str, optional
        The programme instead of the policy's own, as a function of a
        :class:`~shadowprice.models.gavel.Shape` or as ``mine.py:build``, which runs that file. What
        its Params ask for is found by name: see
        :func:`~shadowprice.solvers.gavel.programme.data_of`.

    Returns
    -------
    Allocation
        With notes on what could not be had, such as gangs larger than all the GPUs they can use;
        its ``verify()`` checks it against the problem alone.

    Raises
    ------
    InputError
        If the name is unknown, a job has no throughput anywhere, or the model asks for data that
        there are not.

    Examples
    --------
    >>> from shadowprice.instances.allocation_problem import AllocationProblem
    >>> two = AllocationProblem.from_columns(
    ...     gpu_types=["v100", "k80"], capacity=[1, 1], throughput=[[40.0, 10.0], [12.0, 4.0], [100.0, 50.0]]
    ... )
    >>> found = allocate(two)
    >>> round(found.objective, 4)
    0.7273
    """
    chosen = find_allocation(policy) if isinstance(policy, str) else policy
    if model is not None:
        chosen = with_model(chosen, model)
    workspace = Workspace(options) if options else Workspace()
    began = time.process_time()
    found = chosen.allocate(problem, workspace)
    total_s = time.process_time() - began
    too_wide = np.flatnonzero(~problem.placeable.any(axis=1)).tolist()
    notes = tuple(
        f"job {problem.id[job]!r}: its gang of {problem.gpus[job]} GPUs fits on no type it can use; "
        "shares are fluid, no schedule can give it any"
        for job in too_wide
    )
    notes += tuple(workspace.notes)
    certified = not workspace.uncertified
    if not found.proven:
        notes += (_not_proven(found),)
    if not certified:
        notes += (f"not certified: nothing but {workspace.options.method} says that it is optimal",)
    return replace(
        found,
        notes=found.notes + notes,
        certified=certified,
        solver_s=workspace.solver_s,
        total_s=total_s,
    )


def _not_proven(allocation: Allocation) -> str:
    """A note on an answer that misses what its prices allow."""
    if allocation.objective is None or allocation.bound is None or not allocation.reached:
        return f"{NOT_PROVEN}: jobs get less than the objective asks for"
    return (
        f"{NOT_PROVEN}: the objective is {allocation.objective:.6g}, and nothing shows that it cannot be "
        f"{allocation.bound:.6g}"
    )
