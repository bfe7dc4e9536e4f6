"""Online scheduling of deep-learning clusters, measured against what was possible.

>>> import shadowprice as sp
>>> jobs = sp.generate("lognormal", jobs=50, seed=1, gpus_total=16)
>>> outcome = sp.simulate(jobs, "4x4", "srtf")
>>> outcome.summary()["verified"]
True
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.version import __version__ as __version__

if TYPE_CHECKING:
    import pandas as pd

    from shadowprice.analysis.audit.audit import Audit, audit
    from shadowprice.analysis.bounds import strongest_bound
    from shadowprice.analysis.compare import Comparison, compare
    from shadowprice.analysis.optimum import (
        copies_optimum,
        optimum,
        preemptive_optimum,
        slotted_preemptive_optimum,
    )
    from shadowprice.analysis.outcome import Outcome
    from shadowprice.analysis.plots.prices import plot_prices, prices_frame
    from shadowprice.analysis.run_options import RunOptions
    from shadowprice.analysis.simulate import simulate
    from shadowprice.analysis.utility.compare import UtilityComparison, compare_utility
    from shadowprice.errors import ShadowpriceError
    from shadowprice.execution.copies.hadare import HadarE
    from shadowprice.instances.allocation_problem import AllocationProblem
    from shadowprice.instances.cluster import Cluster, Node
    from shadowprice.instances.failures.failures import Failures
    from shadowprice.instances.failures.preemption import Preemption
    from shadowprice.instances.generators import endless, generate
    from shadowprice.instances.instance import Instance
    from shadowprice.instances.objective import Objective
    from shadowprice.instances.schedule import Schedule
    from shadowprice.instances.speeds.throughputs import Throughputs, load_throughputs
    from shadowprice.instances.steady_state.endless import EndlessWorkload
    from shadowprice.instances.terms.charges import Overheads
    from shadowprice.instances.terms.window import JobWindow
    from shadowprice.instances.workload import Workload
    from shadowprice.proofs.certificate import verify
    from shadowprice.solvers.gavel.allocate import allocate
    from shadowprice.studies.results import StudyResults
    from shadowprice.studies.run_study import study


__all__ = [
    "AllocationProblem",
    "Audit",
    "Cluster",
    "Comparison",
    "EndlessWorkload",
    "Failures",
    "HadarE",
    "Instance",
    "JobWindow",
    "Node",
    "Objective",
    "Outcome",
    "Overheads",
    "Preemption",
    "RunOptions",
    "Schedule",
    "ShadowpriceError",
    "StudyResults",
    "Throughputs",
    "UtilityComparison",
    "Workload",
    "allocate",
    "audit",
    "compare",
    "compare_utility",
    "copies_optimum",
    "endless",
    "generate",
    "load",
    "load_throughputs",
    "optimum",
    "plot_prices",
    "preemptive_optimum",
    "prices_frame",
    "simulate",
    "slotted_preemptive_optimum",
    "strongest_bound",
    "study",
    "verify",
]

_HOME = {
    "AllocationProblem": "instances.allocation_problem",
    "Audit": "analysis.audit.audit",
    "Cluster": "instances.cluster",
    "Comparison": "analysis.compare",
    "EndlessWorkload": "instances.steady_state.endless",
    "Failures": "instances.failures.failures",
    "HadarE": "execution.copies.hadare",
    "Instance": "instances.instance",
    "JobWindow": "instances.terms.window",
    "Node": "instances.cluster",
    "Objective": "instances.objective",
    "Outcome": "analysis.outcome",
    "Overheads": "instances.terms.charges",
    "Preemption": "instances.failures.preemption",
    "Schedule": "instances.schedule",
    "RunOptions": "analysis.run_options",
    "ShadowpriceError": "errors",
    "StudyResults": "studies.results",
    "Throughputs": "instances.speeds.throughputs",
    "UtilityComparison": "analysis.utility.compare",
    "Workload": "instances.workload",
    "allocate": "solvers.gavel.allocate",
    "audit": "analysis.audit.audit",
    "compare": "analysis.compare",
    "compare_utility": "analysis.utility.compare",
    "copies_optimum": "analysis.optimum",
    "endless": "instances.generators",
    "generate": "instances.generators",
    "load_throughputs": "instances.speeds.throughputs",
    "optimum": "analysis.optimum",
    "plot_prices": "analysis.plots.prices",
    "preemptive_optimum": "analysis.optimum",
    "prices_frame": "analysis.plots.prices",
    "simulate": "analysis.simulate",
    "slotted_preemptive_optimum": "analysis.optimum",
    "strongest_bound": "analysis.bounds",
    "study": "studies.run_study",
    "verify": "proofs.certificate",
}
"""Where each public name is from: a training job that imports a part does not wait for the whole."""


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load(
    path: str | Path | pd.DataFrame,
    *,
    format: str | None = None,
    throughputs: str | Path | None = None,
) -> Workload:
    """Read a trace: CSV, Parquet, Philly or Gavel, plain or compressed, or a data frame.

    Parameters
    ----------
    path : str or Path or DataFrame
        A file; or a table in memory, whose columns have names that a CSV of jobs may have.
    format : str, optional
        Name of the importer; sniffed if not given.
    throughputs : path, optional
        Throughput table, for traces that count work in steps.

    Raises
    ------
    InputError
        If the file or table is not as expected, naming file, row, column and value, or a table is given with the name
        of an importer of files.

    See Also
    --------
    shadowprice.instances.traces.load_trace : also reports what was dropped or repaired.
    """
    from shadowprice.instances.speeds.throughputs import load_throughputs
    from shadowprice.instances.traces import load_trace
    from shadowprice.instances.traces.csv_table import load_frame

    table = None if throughputs is None else load_throughputs(throughputs)
    if isinstance(path, str | Path):
        return load_trace(path, format=format, throughputs=table).workload
    if format is not None:
        raise InputError(f"format {format!r}: is of files, expected none beside a data frame")
    return load_frame(path, table).workload
