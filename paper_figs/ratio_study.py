"""Our own: certified ratio of every policy, over families of instances and sizes. No paper has this.

The bounds hold for any preemptive schedule, so a ratio contains both what the policy lost and what
the bound misses. Where speeds differ by type ('mixed'), policies that do not look at types lose the
most. Rows already in ``out/ratio_study_rows.csv`` are kept: the study goes on where it was stopped.
``--quick`` draws 2 instances of 12 jobs and keeps no rows.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from _gavel import OUT, save

from shadowprice.analysis.study.ratios import Study, run_study
from shadowprice.analysis.study.report import plot_study, summary

QUICK = Study(sizes=(12,), draws=2, columns=3_000)
USUAL = Study(sizes=(30, 100), draws=10, columns=20_000)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows_file = (Path(folder) if given.quick else OUT) / "ratio_study_rows.csv"
        rows = run_study(
            QUICK if given.quick else USUAL, rows_file, processes=given.processes, progress=print
        )
    table = summary(rows)
    save(table, plot_study(table), "ratio_study")
