"""A model over the data of an allocation problem: what Gavel's policies solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shadowprice.entry_points import MODELS, named_object
from shadowprice.errors import InputError
from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.models.gavel import Shape
from shadowprice.solvers.gavel.allocation import AllocationPolicy
from shadowprice.solvers.gavel.rates import FloatArray, Rates
from shadowprice.solvers.gavel.workspace import Build, Solved, Workspace
from shadowprice.solvers.programs.solution import SolverOptions


@dataclass(frozen=True, eq=False)
class Programme:
    """A model, and the data that it may ask for.

    Parameters
    ----------
    build : callable
        The model.
    rates : Rates
        What every model of Gavel's is about.
    further : mapping of str to ndarray
        Data of the problem, by the name of a Param: see :func:`data_of`.
    workspace : Workspace
    """

    build: Build
    rates: Rates
    further: Mapping[str, FloatArray]
    workspace: Workspace

    @classmethod
    def of(
        cls,
        build: Build,
        problem: AllocationProblem,
        rates: Rates,
        workspace: Workspace,
        *,
        steps: bool = False,
    ) -> Programme:
        """The model over a problem.

        Parameters
        ----------
        steps : bool
            Whether the model may know the steps left, which only a clairvoyant scheduler does.
        """
        data = data_of(problem)
        if not steps:
            del data["steps"]
        return cls(build, rates, data, workspace)

    def solve(
        self,
        options: SolverOptions | None = None,
        sizes: Mapping[str, FloatArray] | None = None,
        /,
        **data: FloatArray,
    ) -> Solved:
        """Solve it; data given here come before the rates', and those before the problem's own.

        Parameters
        ----------
        sizes : mapping of str to ndarray, optional
            How large variables are, roughly: see :meth:`Workspace.solve`.

        Raises
        ------
        InputError
            If a Param has no data.
        SolverError
            If the model is infeasible, unbounded or not solved in time.
        """
        given = {**self.further, **self.rates.data(), **data}
        return self.workspace.solve(self.build, self._shape, given, options, self._left_out, sizes)

    @cached_property
    def _shape(self) -> Shape:
        return self.rates.shape()

    @cached_property
    def _left_out(self) -> Mapping[str, NDArray[np.bool_]]:
        """Pairs that need not share: they come in only where they pay."""
        return {"y": self.rates.no_better_than_turns()} if len(self.rates.pairs) else {}

    def allocation(self, solved: Solved) -> tuple[FloatArray, FloatArray]:
        """Fractions of time of jobs and pairs."""
        types = self.rates.alone.shape[1]
        x = np.maximum(solved.value("x"), 0.0)
        if not len(self.rates.pairs):
            return x, np.zeros((0, types))
        return x, np.maximum(solved.value("y"), 0.0)


def data_of(problem: AllocationProblem) -> dict[str, FloatArray]:
    """Data of a problem by name: its columns of numbers, and further data it has."""
    return {
        "weight": problem.weight,
        "steps": problem.steps,
        "elapsed_s": problem.elapsed_s,
        "isolated_s": problem.isolated_s,
        "slo_s": problem.slo_s,
        "price": problem.price,
        **problem.data,
        **problem.job_data,
    }


def with_model(policy: AllocationPolicy, model: str | Build) -> AllocationPolicy:
    """A policy that solves another model.

    Parameters
    ----------
    model : callable or str
        A function of a :class:`~shadowprice.models.gavel.Shape`, ``FILE.py:NAME`` of one, or the name
        of one that an installed package offers.

    Raises
    ------
    InputError
        If the policy solves none, or the file cannot be run.
    """
    if not is_dataclass(policy) or isinstance(policy, type) or not hasattr(policy, "model"):
        raise InputError(f"allocation policy {policy.name!r} solves no model that could be another")
    build: Any = named_object(model, MODELS) if isinstance(model, str) else model
    if not callable(build):
        raise InputError(f"model {model!r}: expected a function that builds a model of a Shape")
    changed: AllocationPolicy = replace(policy, model=build)
    return changed
