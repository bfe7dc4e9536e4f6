"""Small models that broke solvers, through the gate: right, or said not to be proven.

Run: ``python tests/solvers/programs/solver_corpus/run.py`` with the solvers to be examined; exit code 1 if an answer is
wrong. Prints what HiGHS says by itself, with and without presolve, beside what comes through the gate.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from shadowprice.errors import SolverError
from shadowprice.models.slotted import Slotted
from shadowprice.solvers.offline import constraint_programming as cp_sat
from shadowprice.solvers.offline.list_search import total
from shadowprice.solvers.programs import gate
from shadowprice.solvers.programs.highs import Highs
from shadowprice.solvers.programs.linear_program import LinearProgram
from shadowprice.solvers.programs.solution import SolverOptions

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A model of the corpus, and its optimum."""

    name: str
    source: str
    why: str
    program: LinearProgram
    optimum: float


def program_of(data: Mapping[str, Any]) -> LinearProgram:
    """The arrays of a stored model; null stands for no bound."""
    columns, rows = len(data["cost"]), data["rows"]
    table = np.zeros((len(rows), columns))
    for k, row in enumerate(rows):
        for column, value in row["terms"].items():
            table[k, int(column)] = value
    program = LinearProgram.of(
        np.array(data["cost"], dtype=np.float64),
        _bounds(data["lower"], -math.inf),
        _bounds(data["upper"], math.inf),
        table,
        _bounds([row["low"] for row in rows], -math.inf),
        _bounds([row["high"] for row in rows], math.inf),
        maximise=data["sense"] == "max",
    )
    program.integer[data["integer"]] = True
    program.offset = float(data["offset"])
    return program


@dataclass(frozen=True)
class Runs:
    """Jobs of the corpus that run once each on one pool, to be done by constraint programming."""

    name: str
    jobs: Slotted
    hint: Any
    optimum: int

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Runs:
        """The jobs as stored."""
        columns = [np.array(data[name]) for name in ("release", "duration", "gpus")]
        jobs = Slotted(*columns, np.ones(len(columns[0])), data["capacity"], 1, True)
        return cls(data["name"], jobs, np.array(data["hint"]), data["optimum"])


def _bounds(values: list[float | None], missing: float) -> Any:
    return np.array([missing if v is None else v for v in values], dtype=np.float64)


def corpus() -> tuple[list[Case], list[Runs]]:
    """All stored programmes, and all stored jobs."""
    found = [json.loads(path.read_text()) for path in sorted(HERE.glob("*.json"))]
    programs = [
        Case(data["name"], data["source"], data["why"], program_of(data), data["optimum"])
        for data in found
        if data.get("kind") != "runs"
    ]
    return programs, [Runs.of(data) for data in found if data.get("kind") == "runs"]


def close(one: float, other: float) -> bool:
    """Whether two values are the same to a solver's tolerance."""
    return abs(one - other) <= 1e-6 * (1 + abs(other))


def alone(case: Case, *, presolve: bool) -> str:
    """What HiGHS says by itself, marked where it is wrong."""
    try:
        solution = Highs().solve(case.program, SolverOptions(), presolve=presolve)
    except SolverError as error:
        return f"WRONG ({type(error).__name__})"
    said = f"{solution.objective:g}"
    return said if close(solution.objective, case.optimum) else f"WRONG ({said})"


def through(case: Case) -> tuple[str, bool]:
    """What comes through the gate, and whether that is so: right, or not said to be optimal."""
    try:
        solution = gate.solve(case.program)
    except SolverError as error:
        return type(error).__name__, False
    right = close(solution.objective, case.optimum)
    text = f"{solution.objective:g} ({solution.evidence})"
    return (text if right else f"WRONG {text}"), right or not solution.evidence.optimal


def main() -> int:
    """Print the table; the number of wrong answers is the exit code, at most 1."""
    print(f"highspy {version('highspy')}, ortools {version('ortools')}")
    wrong = 0
    print(f"{'model':14} {'optimum':>10}  {'presolve':22} {'no presolve':22} gate")
    programs, jobs = corpus()
    for case in programs:
        text, fine = through(case)
        wrong += not fine
        on, off = alone(case, presolve=True), alone(case, presolve=False)
        print(f"{case.name:14} {case.optimum:10g}  {on:22} {off:22} {text}")
    for one in jobs:
        proof = cp_sat.solve(one.jobs, span=False, budget_s=10.0, hint=one.hint)
        said = "no answer" if proof.starts is None else f"{total(one.jobs, proof.starts):g}"
        fine = not proof.proven or said == f"{one.optimum:g}"
        wrong += not fine
        print(f"{one.name:14} {one.optimum:10g}  {'':22} {'':22} {'' if fine else 'WRONG '}{said}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
