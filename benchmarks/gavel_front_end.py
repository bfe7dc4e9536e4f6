"""What the Pyomo front end costs next to arrays written by hand, on Gavel's max-min programme.

Run: ``python benchmarks/gavel_front_end.py [--quick] [--repeats 5]``. Jobs are all different: 26
templates with 10 % noise, gangs of 1, 2, 4, 8 at 70, 10, 15, 5 %, 2.5 times more GPUs wanted than
there are. Both sides give HiGHS the same arrays (checked) and the same options, so what differs is
CPU time outside the solver: building, compiling, loading and reading the solution back. Medians of
alternating runs on one thread; what a solver call takes is measured around ``Highs.run``.
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
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from shadowprice.instances.names import Names
from shadowprice.models.gavel import Shape, max_min
from shadowprice.solvers.programs.compile import CompiledModel, SolverOptions, compile_model
from shadowprice.solvers.programs.highs import SMALL_ROWS

Numbers = NDArray[np.float64]
TEMPLATES = 26
GANGS, GANG_SHARES = [1, 2, 4, 8], [0.7, 0.1, 0.15, 0.05]
OVERLOAD = 2.5


@dataclass(frozen=True)
class Case:
    """Numbers of a max-min programme: T (jobs, types), s and r (jobs,), W (types,)."""

    throughput: Numbers
    gang: Numbers
    need: Numbers
    workers: Numbers

    @property
    def data(self) -> dict[str, Numbers]:
        """Values of the Params of the model."""
        parts = (self.throughput, self.gang, self.workers, self.need)
        return dict(zip("TsWr", parts, strict=True))


def templates(rng: np.random.Generator, count: int = TEMPLATES) -> Numbers:
    """Steps per second of a GPU of three generations, shape (count, 3); some gain little."""
    newest = 10 ** rng.uniform(0.0, 2.0, count)
    return np.column_stack(
        [newest * rng.uniform(0.08, 0.6, count), newest * rng.uniform(0.4, 1.05, count), newest]
    )


def generate(jobs: int, seed: int) -> Case:
    """All-distinct jobs on equally many GPUs of three types."""
    rng = np.random.default_rng(seed)
    gang = rng.choice(GANGS, jobs, p=GANG_SHARES).astype(np.float64)
    alone = templates(rng)[rng.integers(0, TEMPLATES, jobs)]
    throughput = alone * (gang**0.85)[:, None] * rng.uniform(0.9, 1.1, alone.shape)
    workers = np.full(3, np.ceil(gang.sum() / OVERLOAD / 3))
    return Case(throughput, gang, needs(throughput, gang), workers)


def needs(throughput: Numbers, gang: Numbers) -> Numbers:
    """Throughput of an equal share, over the gang."""
    return np.asarray(throughput.mean(axis=1) / gang)


class Stopwatch:
    """CPU time inside ``Highs.run`` since the last reset, and when it began and ended."""

    def __init__(self) -> None:
        self.solver_s = self.began = self.ended = 0.0

    @contextmanager
    def installed(self) -> Iterator[Stopwatch]:
        original = highspy.Highs.run

        def run(highs: Any) -> Any:
            self.began = time.process_time()
            status = original(highs)
            self.ended = time.process_time()
            self.solver_s += self.ended - self.began
            return status

        highspy.Highs.run = run
        try:
            yield self
        finally:
            highspy.Highs.run = original


def by_hand(case: Case, method: str, crossover: bool) -> tuple[Numbers, float, tuple[Any, ...]]:
    """NumPy arrays of the programme, rows and columns in the model's order, solved by HiGHS."""
    jobs, types = case.throughput.shape
    columns, rows = jobs * types + 1, 2 * jobs + types
    x = np.arange(jobs * types, dtype=np.int32).reshape(jobs, types)
    lengths = np.concatenate(
        [np.full(jobs, types), np.full(types, jobs), np.full(jobs, types + 1)], dtype=np.int32
    )
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    fair = np.column_stack([x, np.full(jobs, columns - 1, dtype=np.int32)])
    index = np.concatenate([x.ravel(), x.T.ravel(), fair.ravel()])
    value = np.concatenate(
        [
            np.ones(x.size),
            np.tile(case.gang, types),
            np.column_stack([-case.throughput, case.need]).ravel(),
        ]
    )
    infinity = np.inf
    row_lower = np.full(rows, -infinity)
    row_upper = np.concatenate([np.ones(jobs), case.workers, np.zeros(jobs)])
    cost = np.zeros(columns)
    cost[-1] = 1.0
    highs = highspy.Highs()
    for name, option in (
        ("output_flag", False),
        ("threads", 1),
        ("solver", method),
        ("run_crossover", "on" if crossover else "off"),
    ):
        highs.setOptionValue(name, option)
    highs.passModel(
        columns,
        rows,
        len(value),
        highspy.MatrixFormat.kRowwise,
        highspy.ObjSense.kMaximize,
        0.0,
        cost,
        np.zeros(columns),
        np.full(columns, infinity),
        row_lower,
        row_upper,
        start,
        index,
        value,
        np.zeros(columns, dtype=np.int32),
    )
    highs.run()
    shares = np.array(highs.getSolution().col_value)[:-1].reshape(jobs, types)
    return shares, highs.getInfo().objective_function_value, (start, index, value)


def by_model(case: Case, options: SolverOptions) -> tuple[Numbers, float, CompiledModel]:
    """The same through Pyomo rules."""
    jobs, types = case.throughput.shape
    model = max_min(Shape(Names.numbered("job", jobs), tuple(f"type-{j}" for j in range(types))))
    compiled = compile_model(model, case.data)
    solution = compiled.solve(options)
    return compiled.value(solution, model.x), solution.objective, compiled


def same_programme(case: Case, options: SolverOptions) -> None:
    """Raise unless both sides hand HiGHS the same matrix and get the same value."""
    _, ours, compiled = by_model(case, options)
    _, theirs, (start, index, value) = by_hand(case, "simplex", True)
    program = compiled.program
    rows, columns = len(start) - 1, program.columns
    dense = np.zeros((2, rows, columns))
    for k, (begin, where, what) in enumerate(
        ((start, index, value), (program.start, program.index, program.value))
    ):
        for row in range(rows):
            part = slice(begin[row], begin[row + 1])
            dense[k, row, where[part]] = what[part]
    if not np.array_equal(dense[0], dense[1]) or abs(ours - theirs) > 1e-6 * theirs:
        raise SystemExit(f"the two programmes differ: {ours} and {theirs}")


def verdict(measured: float, target: float) -> str:
    return "met" if measured <= target else "missed"


def cold(jobs: int, repeats: int, watch: Stopwatch, crossover: bool) -> None:
    """Front end and total of both sides, alternating, a different instance every time."""
    options = SolverOptions(crossover=crossover)
    method = "simplex" if 2 * jobs + 3 <= SMALL_ROWS else "ipm"
    fronts: dict[str, list[float]] = {"model": [], "hand": []}
    totals: dict[str, list[float]] = {"model": [], "hand": []}
    for seed in range(repeats):
        case = generate(jobs, seed)
        values = {}
        for side in ("model", "hand") if seed % 2 else ("hand", "model"):
            gc.collect()
            watch.solver_s, began = 0.0, time.process_time()
            if side == "model":
                _, values[side], _ = by_model(case, options)
            else:
                _, values[side], _ = by_hand(case, method, crossover)
            totals[side].append(time.process_time() - began)
            fronts[side].append(totals[side][-1] - watch.solver_s)
        if abs(values["model"] - values["hand"]) > 1e-6 * values["hand"]:
            raise SystemExit(f"{jobs} jobs: objectives {values}")
    front = {side: statistics.median(times) for side, times in fronts.items()}
    total = {side: statistics.median(times) for side, times in totals.items()}
    label = f"{jobs:6,} {method} {'with' if crossover else 'no'} crossover"
    for what, part, target in (("front end", front, 6.0), ("build + solve", total, 1.1)):
        ratio = statistics.median(
            a / b
            for a, b in zip(
                *((fronts if part is front else totals)[k] for k in ("model", "hand")), strict=True
            )
        )
        print(
            f"{label:28} {what:14} {1e3 * part['model']:10.1f} ms {1e3 * part['hand']:10.1f} ms "
            f"{ratio:6.2f}  <= {target:<4} {verdict(ratio, target)}",
            flush=True,
        )


def changes(case: Case, kind: str, rng: np.random.Generator) -> Case:
    """The case after a change; ``capacity``, ``one job`` or ``all throughputs``."""
    if kind == "capacity":
        return replace(case, workers=case.workers * rng.uniform(0.9, 1.1, 3))
    throughput, gang = case.throughput.copy(), case.gang.copy()
    if kind == "one job":
        job = rng.integers(len(gang))
        other = generate(26, int(rng.integers(1 << 30)))
        throughput[job], gang[job] = other.throughput[0], other.gang[0]
    else:
        throughput *= rng.uniform(0.9, 1.1, throughput.shape)
    return replace(case, throughput=throughput, gang=gang, need=needs(throughput, gang))


def changed_params(case: Case, other: Case) -> dict[str, Numbers]:
    """What a caller who knows what changed would set."""
    return {
        name: values
        for name, values in other.data.items()
        if not np.array_equal(values, case.data[name])
    }


def again(jobs: int, repeats: int, watch: Stopwatch, limit_s: float) -> None:
    """Solving again after a change: what it takes to send it, and to solve from the last basis."""
    rng = np.random.default_rng(1)
    for kind in ("capacity", "one job", "all throughputs"):
        sent, read, solved, colds, stopped = [], [], [], [], 0
        for seed in range(repeats):
            case = generate(jobs, seed)
            _, _, compiled = by_model(case, SolverOptions())
            other = changes(case, kind, rng)
            data = changed_params(case, other)
            gc.collect()
            began = time.process_time()
            compiled.set(**data)
            warm = compiled.solve(SolverOptions(time_limit_s=limit_s))
            ended = time.process_time()
            sent.append(watch.began - began)
            read.append(ended - watch.ended)
            solved.append(watch.ended - watch.began)
            gc.collect()
            _, value, _ = by_model(other, SolverOptions())
            colds.append(watch.ended - watch.began)
            stopped += str(warm.status) != "optimal"
            if str(warm.status) == "optimal" and abs(warm.objective - value) > 1e-6 * value:
                raise SystemExit(f"{kind}: {warm.objective} warm, {value} cold")
        front, back, solve, fresh = (
            1e3 * statistics.median(times) for times in (sent, read, solved, colds)
        )
        late = f", {stopped} of {repeats} stopped at {limit_s:g} s" if stopped else ""
        print(
            f"{jobs:6,} {kind:16} front end {front:7.2f} ms  <= 5 ms {verdict(front, 5.0):6}  "
            f"reading back {back:6.2f} ms  solve {solve:8.1f} ms, cold {fresh:8.1f} ms{late}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, 20 s")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="wall time of a warm solve [s]")
    arguments = parser.parse_args()
    sizes = (256, 512) if arguments.quick else (512, 2048, 8192)
    same_programme(generate(96, 0), SolverOptions())
    by_model(generate(64, 0), SolverOptions())  # imports and caches, before anything is timed
    with Stopwatch().installed() as watch:
        print(
            "  jobs solver, part                          through rules      by hand   ratio  target"
        )
        for crossover in (True, False):
            for jobs in sizes:
                cold(jobs, arguments.repeats, watch, crossover)
        print("solving again after a change, from the last basis")
        again(sizes[-1], 3 if arguments.quick else arguments.repeats, watch, arguments.limit)


if __name__ == "__main__":
    main()
