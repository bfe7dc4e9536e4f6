"""Values of theorems on the families of the ratio study, beside what stored runs certify.

Factors are computed anew from the instances, which a seed tells; ratios are those of ``paper_figs/data``.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np

from shadowprice.analysis.guarantees.any_order import any_order_ticks
from shadowprice.errors import InputError
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.proofs.asrpt import early as asrpt_early
from shadowprice.proofs.asrpt import prediction as asrpt_prediction
from shadowprice.proofs.asrpt import ratio as asrpt_ratio
from shadowprice.proofs.asrpt import sharper as asrpt_sharper
from shadowprice.proofs.classic import relevant_work
from shadowprice.proofs.hadar import competitive as hadar_competitive
from shadowprice.proofs.tiresias import las as tiresias_las
from shadowprice.solvers.hadar.prices import (
    ExponentialPrices,
    guaranteed_bounds,
    reserved_full_at,
)
from shadowprice.solvers.offline.bounds import simple_bounds
from shadowprice.solvers.tiresias.las2d import Las2d

# The families are those of a figure, and lie beside it.
sys.path.append(str(Path(__file__).resolve().parents[1] / "paper_figs"))

from _ratio_families import Cell

STORED = Path("paper_figs") / "data" / "ratio_study.csv"


@dataclass(frozen=True)
class FactorTheorem:
    """A theorem that bounds a policy's cost by a factor, which an instance says.

    Parameters
    ----------
    policy : str
        As stored runs name it.
    objective : Objective
    factor : callable
        For an instance; raises ``InputError`` where a hypothesis fails.
    """

    policy: str
    objective: Objective
    factor: Callable[[Instance], Fraction]


def _of_queues(instance: Instance) -> Fraction:
    """TIR-las bounds a total, which is divided by the best simple bound of the optimum's."""
    least = max(bound.value_s for bound in simple_bounds(instance, Objective.COMPLETION))
    return tiresias_las.bound(instance, Las2d().thresholds_gpu_s) / Fraction(least)


def _of_filling(instance: Instance) -> Fraction:
    return relevant_work.bound(instance) / relevant_work.least_flow(instance)


FACTORS: Mapping[str, FactorTheorem] = {
    "asrpt.early": FactorTheorem("asrpt-guarded", Objective.COMPLETION, asrpt_early.bound),
    "asrpt.prediction": FactorTheorem("asrpt", Objective.COMPLETION, asrpt_prediction.bound),
    "asrpt.ratio": FactorTheorem("asrpt", Objective.COMPLETION, asrpt_ratio.bound),
    "asrpt.sharper": FactorTheorem("asrpt", Objective.COMPLETION, asrpt_sharper.bound),
    "classic.relevant_work": FactorTheorem("server-filling-srpt", Objective.FLOW, _of_filling),
    "tiresias.las": FactorTheorem("las2d", Objective.COMPLETION, _of_queues),
}

CONSTANTS: Mapping[str, str] = {
    "gavel.proportional_fairness": "27, whatever the instance",
    "lower_bounds.srpt_one_machine": "1, attained",
}

BOUNDS: Mapping[str, tuple[str, ...]] = {
    "lower_bounds.configurations": ("configurations",),
    "lower_bounds.fluid": ("fluid",),
    "lower_bounds.job": ("job",),
    "lower_bounds.lp": ("interval-lp", "typed-interval-lp"),
    "lower_bounds.mbt": ("mean-busy-time",),
    "lower_bounds.priced_machine": ("priced-fluid", "priced-mean-busy-time"),
    "lower_bounds.priced_plans": ("priced-plans",),
    "lower_bounds.wide_gangs": ("wide-gangs",),
}
"""Methods of bounds, as stored runs name them, by the theorem that they rest on."""


@dataclass(frozen=True)
class StoredRow:
    """A line of the table of the ratio study."""

    cell: Cell
    policy: str
    objective: str
    bound_s: float
    bound_kind: str
    ratio: float
    seed: int


@cache
def stored(root: Path) -> tuple[StoredRow, ...]:
    """All lines of the stored table."""
    text = (root / STORED).read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        StoredRow(
            Cell(row["family"], int(row["jobs"]), int(row["draw"])),
            row["policy"],
            row["objective"],
            float(row["bound_s"]),
            row["bound_kind"],
            float(row["ratio"]),
            int(row["seed"]),
        )
        for row in csv.DictReader(io.StringIO(lines))
    )


@cache
def _instance(cell: Cell, seed: int) -> Instance:
    return cell.instance(seed)


@cache
def typical_value(module: str, root: Path) -> str:
    """The typical value of a theorem on the families, in words; a dash where it has none."""
    if module in FACTORS:
        return _typical_factor(FACTORS[module], root)
    if module in BOUNDS:
        return _typical_bound(BOUNDS[module], root)
    if module == "hadar.competitive":
        return _typical_utility(root)
    return CONSTANTS.get(module, "-")


def _typical_factor(theorem: FactorTheorem, root: Path) -> str:
    factors, ratios, trivial = [], [], []
    for row in stored(root):
        if row.policy != theorem.policy or row.objective != theorem.objective:
            continue
        instance = _instance(row.cell, row.seed)
        try:
            factors.append(theorem.factor(instance))
        except InputError:
            continue
        ratios.append(row.ratio)
        most = any_order_ticks(instance, theorem.objective)
        if most is not None:
            trivial.append(float(most / TICKS_PER_S) / row.bound_s)
    if not factors:
        return "speaks of none"
    middle = float(median(factors))
    words = f"{middle:.3g} ({float(min(factors)):.3g} to {float(max(factors)):.3g}), {median(ratios):.3g} certified"
    over = sum(f >= most for f, most in zip(factors, trivial, strict=False))
    vacuous = f"; vacuous on {over}" if over else ""
    return f"{words}, on {len(factors)}{vacuous}"


def _typical_bound(kinds: tuple[str, ...], root: Path) -> str:
    kept = {
        row.cell: row.bound_kind for row in stored(root) if row.objective == Objective.COMPLETION
    }
    largest = sum(kind in kinds for kind in kept.values())
    return (
        f"largest bound of {largest} of {len(kept)}"
        if largest
        else f"largest bound of none of {len(kept)}"
    )


def _typical_utility(root: Path) -> str:
    """HADAR-2a with equal utilities of all jobs, and one round; to serve one job is within their number."""
    factors, over = [], 0
    for cell, seed in _cells(root):
        instance = _instance(cell, seed)
        cluster, gang = instance.cluster, int(instance.workload.gpus.max())
        capacity = cluster.gpus_per_node
        bounds = guaranteed_bounds(
            np.ones(len(instance.workload)), 1, cluster.total_gpus, len(cluster.gpu_types)
        )
        full_at = reserved_full_at(capacity, gang)
        prices = ExponentialPrices.of(bounds, cluster.type_of_node, full_at)
        factors.append(2 * hadar_competitive.factor(prices, capacity, gang))
        over += factors[-1] >= len(instance.workload)
    words = f"{median(factors):.3g} ({min(factors):.3g} to {max(factors):.3g}) for equal utilities and one round"
    return f"{words}, on {len(factors)}; vacuous on {over}"


def _cells(root: Path) -> Iterator[tuple[Cell, int]]:
    return iter(dict.fromkeys((row.cell, row.seed) for row in stored(root)))
