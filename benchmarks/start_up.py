"""CPU time of commands from start to end, user and system, and what they are to take at most.

``python benchmarks/start_up.py`` on a quiet machine; installed with pip, so that modules are compiled.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SIMULATE = ("simulate", "{trace}", "--cluster", "2x4", "--policy")
COMMANDS: tuple[tuple[str, tuple[str, ...], float | None], ...] = (
    ("help", ("--help",), 0.4),
    ("a missing file", ("simulate", "no.csv", "--cluster", "2x4", "--policy", "fifo"), 0.4),
    ("a wrong cluster", ("simulate", "{trace}", "--cluster", "2x", "--policy", "fifo"), 0.4),
    ("an unknown policy", (*SIMULATE, "fifoo"), 0.4),
    ("simulate, 10 jobs, fifo", (*SIMULATE, "fifo"), 0.8),
    ("compare, 10 jobs", ("compare", "{trace}", "--cluster", "2x4"), None),
    ("policies", ("policies",), None),
    ("demo", ("demo",), None),
)


def cpu_s(command: list[str]) -> float:
    """CPU time of a program and its children [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each command; the median counts")
    runs: int = parser.parse_args().runs
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "ten.csv"
        rows = [f"job{k},{1 + k % 3},{7 * k},{60 + k}" for k in range(10)]
        trace.write_text("\n".join(["id,gpus,submit,duration", *rows]) + "\n")
        print(f"{'command':26} {'CPU [s]':>8} {'at most':>8}")
        floor = [sys.executable, "-c", "import numpy, typer, rich.console"]
        lines = [("numpy, typer and rich", floor, None)]
        for name, words, most in COMMANDS:
            given = [word.format(trace=trace) for word in words]
            lines.append((name, [sys.executable, "-m", "shadowprice", *given], most))
        for name, command, most in lines:
            cpu_s(command)
            took = statistics.median(cpu_s(command) for _ in range(runs))
            target = "" if most is None else f"{most:8.1f} {'met' if took < most else 'missed'}"
            print(f"{name:26} {took:8.2f} {target}", flush=True)


if __name__ == "__main__":
    main()
