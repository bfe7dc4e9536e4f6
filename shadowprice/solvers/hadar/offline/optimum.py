r"""Hadar's offline optimum: the best plan of the model as it is.

Source: Hadar's offline problem (IPDPS'24, recalled), as ``models/hadar.py`` states it or as a model
states it that is given; who solves it is derived. The model is compiled, and compared with the published one,
which is what column generation knows (:mod:`.programme`):

1. It is the published programme, or has more rows that can be priced: branch and price
   (:mod:`.branch_and_price`) solves it. The plan is accepted if the compiled rows of the model hold.
2. It has every row of the published programme and more, not all of which can be priced: HiGHS solves
   the compiled rows. Should it not be done in :data:`PROGRAMME_SHARE` of the time, branch and price bounds
   the model by the part that it knows, and proposes plans.
3. It is another: HiGHS solves the compiled rows, and that is all.

In 2 and 3 a warning says why. The rows and the answer of HiGHS are examined as all are
(:mod:`shadowprice.solvers.programs.gate`).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from shadowprice.errors import SolverError
from shadowprice.instances.features import Feature, require
from shadowprice.instances.instance import Instance
from shadowprice.instances.utility import RoundPlan, UtilityTable
from shadowprice.models.hadar import time_indexed
from shadowprice.models.round_jobs import RoundJobs
from shadowprice.solvers.hadar.offline.acceptance import Acceptance, gpus_in
from shadowprice.solvers.hadar.offline.branch_and_price import Search, Searched
from shadowprice.solvers.hadar.offline.feasibility import plan_on_nodes, utility_of
from shadowprice.solvers.hadar.offline.linking import LinkingRows
from shadowprice.solvers.hadar.offline.programme import (
    ModelBuilder,
    PricedModel,
    TimeIndexed,
    read_model,
)
from shadowprice.solvers.programs.compile import SolverWarning
from shadowprice.solvers.programs.solution import Solution, SolverOptions, Status

KNOWS = frozenset(
    {
        Feature.RATES,
        Feature.TYPES,
        Feature.CHARGES,  # the plan pays none, and who does earns no more
        Feature.SHARING,  # of plans in which nobody does
        Feature.CORES,  # are GPUs of a type
        Feature.RESTART,  # the plan keeps all work, and who loses some earns no more
    }
)

PROGRAMME_SHARE = 0.6
"""Share of the time for the compiled rows where branch and price may help afterwards."""

_TOLERANCE = 1e-7
"""Relative to the value: a plan within this of the bound counts as optimal."""

_LEAST_S = 0.1
"""Least time for a programme [s]."""


@dataclass(frozen=True)
class OfflineOptimum:
    """The best plan found and a proof of how good it is.

    Parameters
    ----------
    value : float
        The model's objective at the plan: its utility, unless that was edited.
    utility : float
        Utility of the plan by the table, whatever the model's objective.
    bound : float
        No plan of the model has a better objective (float arithmetic, relative error 1e-7).
    proven : bool
        Whether the two agree, to 1e-7 relative. By branch and price the bound evaluates a solver's
        prices in floats; where completions that cannot be kept were cut off, it rests on CP-SAT's
        word that they cannot. So this is no certificate.
    plan : RoundPlan
        Where the compiled rows were solved, jobs may hold GPUs after their completion.
    relaxation : float
        Bound of the root: that of the schedule form's relaxation or better. Where branch and price
        was not used, the bound.
    nodes : int
        Nodes of branch and price that were solved.
    cpu_s : float
        Time taken [s].
    prices : ndarray, shape (rounds, types)
        Prices of GPUs near those of the root's relaxation [utility per GPU and round]; 0 if the
        time did not suffice. Any prices >= 0 bound the optimum (weak duality), so a certificate
        may start from these: it needs the best payoff of each job under them, nothing else.
    edits : str
        How the model differs from the published programme; empty if it does not.
    """

    value: float
    utility: float
    bound: float
    proven: bool
    plan: RoundPlan = field(repr=False)
    relaxation: float
    nodes: int
    cpu_s: float
    prices: NDArray[np.float64] = field(repr=False)
    edits: str = ""


def optimum(
    instance: Instance,
    utility: UtilityTable,
    *,
    model: ModelBuilder | str = time_indexed,
    time_limit_s: float = 60.0,
) -> OfflineOptimum:
    """Largest total utility of any plan, known from the start.

    Parameters
    ----------
    utility : UtilityTable
        Its rounds are the horizon.
    model : callable or str
        Builds the model from the jobs in rounds: :func:`shadowprice.models.hadar.time_indexed`, or a
        function that adds to it or changes it, or ``FILE.py:NAME`` of one. Its variables
        ``w[j, h, t]``, GPUs of job j of type h in round t, are the plan.
    time_limit_s : float
        Time after which the best plan and bound so far are returned [s]: CPU time in branch and
        price, wall time where the compiled rows are solved.

    Raises
    ------
    InputError
        If the instance has features that are not in ``KNOWS``, or the utilities are of other jobs.
    SolverError
        If the model is not linear, is infeasible or unbounded (naming constraints), has no whole
        GPUs ``w`` of each type, or no plan was found within the time.
    """
    require(instance, KNOWS, "plans of rounds")
    start = time.process_time()
    priced = read_model(model, RoundJobs.of(instance, utility))
    if priced.known is None:
        best = _by_rows(instance, priced, time_limit_s)
    else:
        best = _by_columns(instance, priced, priced.known, time_limit_s)
    return replace(best, cpu_s=time.process_time() - start, edits=priced.edits_in_words)


def _by_columns(
    instance: Instance, priced: PricedModel, known: TimeIndexed, time_limit_s: float
) -> OfflineOptimum:
    """Branch and price; before it the compiled rows, if it does not know them all."""
    by_rows = None
    if priced.unpriced:
        by_rows = _solved(priced, PROGRAMME_SHARE * time_limit_s)
        if by_rows.status is Status.OPTIMAL:
            return _of_rows(instance, priced, by_rows)
        time_limit_s *= 1.0 - PROGRAMME_SHARE
    acceptance = Acceptance(priced, LinkingRows(known, priced.more))
    searched = Search(acceptance, time_limit_s).run()
    if by_rows is not None:
        return _better(instance, acceptance, searched, by_rows)
    if searched.value == -np.inf and searched.bound == -np.inf:
        # No plan, says branch and price; if so, the compiled rows say why.
        return _of_rows(instance, priced, _solved(priced, time_limit_s))
    return _of_search(instance, acceptance, searched, time_limit_s)


def _by_rows(instance: Instance, priced: PricedModel, time_limit_s: float) -> OfflineOptimum:
    """The compiled rows alone."""
    return _of_rows(instance, priced, _solved(priced, time_limit_s))


def _solved(priced: PricedModel, time_limit_s: float) -> Solution:
    """HiGHS's answer to the compiled rows, examined; says why it is asked."""
    if priced.unpriced:
        warnings.warn(
            f"model {priced.model.name!r}: column generation is not used and the compiled rows are "
            f"solved, which is slower: {'; '.join(priced.unpriced)}",
            SolverWarning,
            stacklevel=5,
        )
    options = SolverOptions(time_limit_s=max(time_limit_s, _LEAST_S), relative_gap=_TOLERANCE)
    return priced.compiled.solve(options)


def _of_rows(instance: Instance, priced: PricedModel, solution: Solution) -> OfflineOptimum:
    """The plan of a solution of the compiled rows."""
    if not len(solution.primal):
        raise SolverError(
            f"model {priced.model.name!r}: no plan was found within the time limit; "
            f"no plan has an objective better than {solution.bound:g}"
        )
    jobs, gpus = priced.jobs, gpus_in(priced, solution.primal)
    return OfflineOptimum(
        solution.objective,
        utility_of(jobs, gpus),
        solution.bound,
        solution.status is Status.OPTIMAL,
        plan_on_nodes(instance, gpus),
        solution.bound,
        0,
        0.0,
        np.zeros((jobs.rounds, jobs.types)),
    )


def _of_search(
    instance: Instance, acceptance: Acceptance, searched: Searched, time_limit_s: float
) -> OfflineOptimum:
    """The plan of branch and price, accepted by the compiled rows."""
    priced = acceptance.model
    if searched.value == -np.inf:
        raise SolverError(
            f"model {priced.model.name!r}: no plan was found in {time_limit_s:g} s that holds its rows; "
            f"no plan is worth more than {searched.bound:g}"
        )
    point = acceptance.point(searched.schedules)
    if point is None or not np.isclose(acceptance.value(point), searched.value, rtol=1e-6):
        raise SolverError(
            f"model {priced.model.name!r}: the plan of branch and price does not hold its rows"
        )
    gpus = gpus_in(priced, point)
    return OfflineOptimum(
        searched.value,
        utility_of(priced.jobs, gpus),
        searched.bound,
        searched.proven,
        plan_on_nodes(instance, gpus),
        searched.relaxation,
        searched.nodes,
        0.0,
        searched.prices,
    )


def _better(
    instance: Instance, acceptance: Acceptance, searched: Searched, by_rows: Solution
) -> OfflineOptimum:
    """The better plan and the better bound of the two."""
    priced = acceptance.model
    bound = min(searched.bound, by_rows.bound)
    best = by_rows
    if not len(by_rows.primal) or searched.value > by_rows.objective:
        point = acceptance.point(searched.schedules) if searched.value > -np.inf else None
        best = replace(by_rows, primal=np.zeros(0), bound=bound)
        if point is not None:
            best = replace(best, primal=point, objective=searched.value)
    plan = _of_rows(instance, priced, best)
    proven = bound <= plan.value + _TOLERANCE * max(1.0, abs(plan.value))
    return replace(
        plan,
        bound=plan.value if proven else bound,
        proven=proven,
        relaxation=searched.relaxation,
        nodes=searched.nodes,
        prices=searched.prices,
    )
