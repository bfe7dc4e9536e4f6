"""A hunt for the worst instance of every policy: so many CPU minutes each, going on where it was stopped.

``python benchmarks/hunt.py FOLDER [--minutes N] [--policies NAME,...]`` keeps a file for each policy in the folder. The
files of the package in ``shadowprice/instances/hunted`` are such, and ``benchmarks/records/hunt.md`` is their table
(``make hunt``).

A hunt looks at one small family after another, see :func:`shadowprice.analysis.adversary.search.adversary`: step k has
the family k modulo their number, the seed k and a fixed number of evaluations, so that a hunt of so many steps is the
same on every machine. After each step the worst instance so far is written to a file of its own, in the format of
:mod:`shadowprice.instances.hard_instances`; its provenance says how many steps, evaluations and CPU seconds all of
it took. A hunt that finds its file goes on with the step after those.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shadowprice.analysis.adversary.family import FAMILIES
from shadowprice.analysis.adversary.judge import JudgeEffort
from shadowprice.analysis.adversary.search import adversary
from shadowprice.errors import InputError
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.instances.objective import Objective

EVALUATIONS = 2_000
"""Instances that a step looks at."""


@dataclass(frozen=True)
class Hunt:
    """A hunt for one policy.

    Parameters
    ----------
    policy : str
        As ``--policy`` takes it.
    objective : Objective
        What is compared.
    max_error : int
        Predictions are off by at most this power of two, either way.
    """

    policy: str
    objective: Objective = Objective.COMPLETION
    max_error: int = 0

    @property
    def name(self) -> str:
        """Name of its file, without the suffix."""
        parts = [self.policy.partition(":")[0], str(self.objective)]
        return "-".join([*parts, "predicted"] if self.max_error else parts)

    def step(self, number: int) -> HardInstance:
        """The worst instance that a step finds."""
        family = replace(FAMILIES[number % len(FAMILIES)], max_error=self.max_error)
        effort = JudgeEffort(EVALUATIONS, float("inf"), seed=number)
        return adversary(self.policy, family, self.objective, effort=effort).hard


@dataclass(frozen=True)
class Spent:
    """Effort of a hunt until now."""

    steps: int = 0
    evaluations: int = 0
    cpu_s: float = 0.0

    @classmethod
    def of(cls, hard: HardInstance, source: str) -> Spent:
        """The effort that a file tells.

        Raises
        ------
        InputError
            If the file is of no hunt.
        """
        told = hard.provenance.get("hunt")
        if not isinstance(told, dict) or set(told) != {"steps", "evaluations", "cpu_s"}:
            raise InputError(
                f"{source}: provenance has no hunt of steps, evaluations and cpu_s, expected the file of a hunt"
            )
        return cls(int(told["steps"]), int(told["evaluations"]), float(told["cpu_s"]))

    def record(self) -> dict[str, Any]:
        """For the provenance of a file; CPU time in tenths of a second."""
        return {
            "steps": self.steps,
            "evaluations": self.evaluations,
            "cpu_s": round(self.cpu_s, 1),
        }


def go_on(
    hunt: Hunt, folder: Path, cpu_s: float, progress: Callable[[str], None] = lambda told: None
) -> HardInstance:
    """Go on with a hunt until it has had so much CPU time, and keep the worst instance in its file.

    Parameters
    ----------
    folder : Path
        Where its file is, or will be.
    cpu_s : float
        CPU time of all steps together [s]; the step that exceeds it is finished.
    progress : callable, optional
        Told after each step.

    Raises
    ------
    InputError
        If its file is one of another policy or objective, or of no hunt.
    """
    path = folder / f"{hunt.name}.json"
    worst, spent = _best_so_far(hunt, path)
    while worst is None or spent.cpu_s < cpu_s:
        began = time.process_time()
        found = hunt.step(spent.steps)
        evaluations = spent.evaluations + int(found.provenance["evaluations"])
        spent = Spent(spent.steps + 1, evaluations, spent.cpu_s + time.process_time() - began)
        if worst is None or found.ratio > worst.ratio:
            worst = found
        worst = replace(
            worst, name=hunt.name, provenance={**worst.provenance, "hunt": spent.record()}
        )
        _write(path, worst.to_json())
        progress(f"{hunt.name}: {spent.steps} steps, {spent.cpu_s:.0f} CPU s, {worst.ratio}")
    return worst


def _best_so_far(hunt: Hunt, path: Path) -> tuple[HardInstance | None, Spent]:
    """The worst instance of the steps until now, and their effort."""
    if not path.is_file():
        return None, Spent()
    hard = HardInstance.read(path)
    if (hard.policy, hard.objective) != (hunt.policy, hunt.objective):
        raise InputError(
            f"{path}: is about {hard.policy} and {hard.objective}, expected {hunt.policy} and {hunt.objective}"
        )
    return hard, Spent.of(hard, str(path))


def _write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


HUNTS = (
    # Policies about which theorems state a factor, and those of the systems.
    Hunt("asrpt"),
    Hunt("asrpt", max_error=1),
    Hunt("las2d:thresholds_gpu_s=4"),
    Hunt("las:quantum_s=1"),
    Hunt("server-filling-srpt", Objective.FLOW),
    Hunt("hadar-committed:round_s=1"),
    Hunt("hadar:round_s=1"),
    Hunt("gandiva:quantum_s=1"),
    Hunt("gavel:round_s=1"),
    Hunt("synergy-tune:round_s=1"),
    Hunt("gittins2d:thresholds_gpu_s=4"),
    Hunt("asrpt-guarded"),
    Hunt("srtf"),
    # The others.
    Hunt("asrpt-early"),
    Hunt("fifo"),
    Hunt("sjf"),
    Hunt("easy"),
    Hunt("srsf"),
    Hunt("hesrpt"),
    Hunt("lpf"),
    Hunt("msf"),
    Hunt("oasis:round_s=1"),
    Hunt("server-filling-gittins", Objective.FLOW),
    Hunt("fifo-skip"),
    Hunt("quickswap"),
    Hunt("spjf"),
    Hunt("spwf"),
    Hunt("wcs-duration"),
    Hunt("wcs-subtime"),
    Hunt("wcs-workload"),
    Hunt("gandiva-reactive:quantum_s=1"),
    Hunt("drf:round_s=1"),
    Hunt("tetris:round_s=1"),
    Hunt("synergy-greedy:round_s=1"),
    Hunt("synergy-opt:round_s=1"),
    Hunt("synergy-proportional:round_s=1"),
    Hunt("b-scaling"),
    Hunt("asrpt-robust"),
)
"""In the order in which they have their minutes; rounds and quanta of one unit of the families.

HadarE is not among them: it runs copies of jobs by rules that these families do not have.
"""


def main() -> None:
    """Give every hunt its minutes, one after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0, help="CPU minutes a hunt")
    parser.add_argument("--policies", default="", help="names of hunts, by default all")
    given = parser.parse_args()
    known = {hunt.name: hunt for hunt in HUNTS}
    names = [name for name in given.policies.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            sys.exit(f"error: hunt {name!r}: expected some of {', '.join(known)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    try:
        for name in names:
            found = go_on(known[name], given.folder, 60 * given.minutes)
            print(f"{name}: {found.ratio} = {float(found.ratio):.4f}", flush=True)
    except InputError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
