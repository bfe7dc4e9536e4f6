"""What each model costs next to arrays written by hand: building, compiling, and with the solve.

Run: ``python benchmarks/models.py [--quick] [--repeats 5] [--only NAME ...]``. One row a model: its
size; CPU time of building and compiling it, and of the same arrays written with NumPy (the programmes
are checked to be equal, row by row); the ratio of these, at most 6; CPU time of HiGHS on the arrays;
and the ratio of building, compiling, solving and reading through the model to arrays and HiGHS, at
most 1.1. Medians of alternating runs on one thread. Mixed-integer programmes are solved without their
integrality on both sides, which is the sharpest comparison: their own solves take longer.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import highspy
import numpy as np
import pyomo.environ as pyo
from model_arrays import PROBLEMS, Problem
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shadowprice.solvers.programs.compile import SolverOptions, compile_model
from shadowprice.solvers.programs.linear_program import LinearProgram

Numbers = NDArray[np.float64]
FRONT_LIMIT, TOTAL_LIMIT = 6.0, 1.1


@contextmanager
def clock() -> Iterator[list[float]]:
    """CPU seconds of what is done inside."""
    gc.collect()
    gc.disable()
    spent: list[float] = []
    began = time.process_time()
    try:
        yield spent
    finally:
        spent.append(time.process_time() - began)
        gc.enable()


def differences(ours: LinearProgram, theirs: LinearProgram) -> str:
    """What differs between two programmes, in words; nothing if they are equal."""
    for name in ("cost", "lower", "upper", "row_lower", "row_upper"):
        one, two = getattr(ours, name), getattr(theirs, name)
        if one.shape != two.shape:
            return f"{name}: {one.shape} and {two.shape}"
        if not np.allclose(one, two, rtol=1e-9, atol=1e-12):
            k = int(np.flatnonzero(~np.isclose(one, two, rtol=1e-9, atol=1e-12))[0])
            return f"{name}[{k}]: {one[k]} and {two[k]}"
    if not np.array_equal(ours.integer, theirs.integer) or ours.maximise != theirs.maximise:
        return "integer columns or sense"
    shape = (ours.rows, ours.columns)
    one, two = (csr_array((p.value, p.index, p.start), shape=shape) for p in (ours, theirs))
    apart = abs(one - two)
    if apart.nnz and apart.max() > 1e-9 * abs(two).max():
        row, column = (int(each[apart.tocoo().data.argmax()]) for each in apart.tocoo().coords)
        return f"row {row}, column {column}: {one[row, column]} and {two[row, column]}"
    return ""


def highs_on(program: LinearProgram, crossover: bool) -> tuple[float, Numbers]:
    """Objective and point of HiGHS on the relaxation of a programme, by its own interface."""
    highs = highspy.Highs()
    for name, option in (
        ("output_flag", False),
        ("threads", 1),
        ("solver", "ipm"),
        ("run_crossover", "on" if crossover else "off"),
    ):
        highs.setOptionValue(name, option)
    sense = highspy.ObjSense.kMaximize if program.maximise else highspy.ObjSense.kMinimize
    highs.passModel(
        program.columns,
        program.rows,
        len(program.value),
        highspy.MatrixFormat.kRowwise,
        sense,
        program.offset,
        program.cost,
        program.lower,
        program.upper,
        program.row_lower,
        program.row_upper,
        program.start,
        program.index,
        program.value,
        np.zeros(program.columns, dtype=np.int32),
    )
    highs.run()
    return highs.getInfo().objective_function_value, np.array(highs.getSolution().col_value)


@dataclass
class Times:
    """CPU seconds of one run of each part."""

    build: list[float] = field(default_factory=list)
    compile: list[float] = field(default_factory=list)
    hand: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)


def through_model(problem: Problem, times: Times) -> None:
    """Build, compile, solve and read, with the time of each."""
    with clock() as build:
        model = problem.build()
    with clock() as compiling:
        compiled = compile_model(model, problem.data)
    compiled.program.integer[:] = False
    with clock() as solving:
        solution = compiled.solve(
            SolverOptions(method="highs-ipx", crossover=problem.crossover, time_limit_s=600)
        )
        compiled.value(solution, next(iter(model.component_objects(pyo.Var))))
    times.build += build
    times.compile += compiling
    times.total.append(build[0] + compiling[0] + solving[0])


def with_arrays(problem: Problem, times: Times) -> None:
    """The same with arrays by hand and HiGHS."""
    with clock() as hand:
        program = problem.by_hand()
    with clock() as highs:
        highs_on(program, problem.crossover)
    times.hand += hand
    times.highs += highs


def measure(name: str, quick: bool, repeats: int) -> bool:
    """Print the row of a model; whether both limits are kept."""
    make, small, large = PROBLEMS[name]
    times, problem = Times(), make(small, 0)
    apart = differences(compile_model(problem.build(), problem.data).program, problem.by_hand())
    if apart:
        raise SystemExit(f"{name}: the model and the arrays by hand differ, {apart}")
    for seed in range(repeats):
        problem = make(small if quick else large, seed)
        for side in (through_model, with_arrays) if seed % 2 else (with_arrays, through_model):
            side(problem, times)
    program = problem.by_hand()
    build, compiling, hand, highs = (
        statistics.median(part) for part in (times.build, times.compile, times.hand, times.highs)
    )
    front = statistics.median(
        (b + c) / h for b, c, h in zip(times.build, times.compile, times.hand, strict=True)
    )
    total = statistics.median(
        t / (h + s) for t, h, s in zip(times.total, times.hand, times.highs, strict=True)
    )
    kept = front <= FRONT_LIMIT and (quick or total <= TOTAL_LIMIT)
    print(
        f"{name:18} {problem.size:32} {program.columns:8,} {program.rows:8,} "
        f"{len(program.value):10,} {1e3 * build:8.1f} {1e3 * compiling:8.1f} {1e3 * hand:8.1f} "
        f"{front:6.2f} {highs:8.2f} {total:6.2f}  {'kept' if kept else 'missed'}",
        flush=True,
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small sizes; only the front end counts"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=sorted(PROBLEMS), metavar="NAME")
    arguments = parser.parse_args()
    print(
        "model              instance                          columns     rows    entries "
        "build ms  comp ms  hand ms  <= 6  HiGHS s  <= 1.1"
    )
    kept = [
        measure(name, arguments.quick, arguments.repeats) for name in arguments.only or PROBLEMS
    ]
    raise SystemExit(0 if all(kept) else 1)


if __name__ == "__main__":
    main()
