"""An answer that nothing but a solver calls optimal counts, until one in its place is shown to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shadowprice.errors import SolverError
from shadowprice.models import gavel
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.solution import Infeasible, Status

SIZED: dict[str, Any] = {"sizes": {}}


def workspace_of(monkeypatch: pytest.MonkeyPatch, answers: Sequence[Status | None]) -> Workspace:
    """A workspace whose models have these answers, one after the other; None where there is none."""
    left: Iterator[Status | None] = iter(answers)

    def solve(*_: Any, **__: Any) -> SimpleNamespace:
        status = next(left)
        if status is None:
            raise Infeasible("there is none", [])
        return SimpleNamespace(status=status, primal=np.zeros(1))

    program = SimpleNamespace(mixed=True, columns=1)
    compiled = SimpleNamespace(program=program, solve=solve, fallbacks=lambda _: ())
    monkeypatch.setattr(Workspace, "_compiled", lambda *_: (SimpleNamespace(name="m"), compiled))
    return Workspace()


def ask(workspace: Workspace, **how: Any) -> None:
    workspace.solve(gavel.max_total, SimpleNamespace(jobs=1, pairs=0), {}, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("again", [Status.OPTIMAL, Status.FEASIBLE])
def test_an_answer_asked_again_takes_the_place_of_the_last(
    monkeypatch: pytest.MonkeyPatch, again: Status
) -> None:
    workspace = workspace_of(monkeypatch, [Status.FEASIBLE, again])
    ask(workspace)
    ask(workspace, **SIZED)
    assert workspace.uncertified == (again is Status.FEASIBLE)


def test_it_takes_the_place_of_no_answer_to_another_programme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The search of SLOs is not certified; that the next programme is asked twice does not change it."""
    workspace = workspace_of(monkeypatch, [Status.FEASIBLE, None, Status.OPTIMAL])
    ask(workspace)
    with pytest.raises(SolverError):
        ask(workspace)
    ask(workspace, **SIZED)
    assert workspace.uncertified == 1


def test_vouching_is_for_the_last_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_of(monkeypatch, [Status.FEASIBLE, Status.OPTIMAL])
    ask(workspace)
    ask(workspace)
    workspace.vouch()
    assert workspace.uncertified == 1
