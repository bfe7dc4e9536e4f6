"""What examining an answer costs beside finding it: CPU time, medians, one thread.

Run: ``python benchmarks/check_price.py [--quick]``. Max-min programmes of jobs that are all different,
by the block-arrow method and by HiGHS. The check is scaling, evaluating the point and the multipliers
in all rows, and the bound with rounding errors counted; finding is everything else that the gate does
with the compiled arrays.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from gavel_front_end import generate

from shadowprice.instances.names import Names
from shadowprice.models import gavel
from shadowprice.solvers.programs import linear_gate
from shadowprice.solvers.programs.compile import SolverOptions, compile_model

REPEATS = 5


class Watch:
    """CPU time inside some functions of the gate."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return function(*given, **named)
            finally:
                self.spent_s += time.process_time() - began

        return timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    sizes = (64, 512) if parser.parse_args().quick else (64, 512, 2048, 8192, 32768)
    watch = Watch()
    holds, bound = linear_gate.LinearGate._holds, linear_gate.evaluated_bound
    linear_gate.LinearGate._holds = watch.around(holds)  # type: ignore[method-assign]
    linear_gate.evaluated_bound = watch.around(bound)
    print(
        f"{'jobs':>6} {'solver':14} {'found by':12} {'finding ms':>11} {'check ms':>9} {'share':>6}"
    )
    for jobs in sizes:
        for method in ("auto", "highs-simplex", "highs-ipx"):
            if method != "auto" and jobs > 8192:
                continue
            case = generate(jobs, 0)
            found, check, by = [], [], ""
            for _ in range(REPEATS if jobs <= 2048 else 3):
                model = gavel.max_min(
                    gavel.Shape(Names.numbered("job", jobs), ("v100", "p100", "k80"))
                )
                compiled = compile_model(model, case.data)
                watch.spent_s, began = 0.0, time.process_time()
                solution = compiled.solve(SolverOptions(method=method))
                total = time.process_time() - began
                found.append(total - watch.spent_s)
                check.append(watch.spent_s)
                by = solution.method
            one, other = (1e3 * statistics.median(times) for times in (found, check))
            print(f"{jobs:6} {method:14} {by:12} {one:11.2f} {other:9.2f} {other / one:6.1%}")


if __name__ == "__main__":
    main()
