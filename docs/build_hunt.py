"""The page of hunts: the worst instance found of each policy, from the stored results.

``python docs/build_hunt.py benchmarks/records/hunt.md`` writes it; without a file it is printed.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from hunt import Spent

from shadowprice.analysis.adversary.search import ENUMERATED, FEASIBLE, SHORTEST, SLOTTED, rerun
from shadowprice.instances.hard_instances import HardInstance, hunted_instances
from shadowprice.solvers.registry import policies

INTRODUCTION = """\
# A hunt for each policy

Made by `make hunt-page` from [`instances/hunted/`](../../shadowprice/instances/hunted). Do not edit this page.

`make hunt MINUTES=10` gives every policy so many minutes of CPU time and goes on where the stored results stop: step
after step, each with one small family of instances, a seed of its own and a fixed number of evaluations
([`benchmarks/hunt.py`](../hunt.py)). Of each the worst instance is kept,
with a schedule that one could have made. [The adversary](../../docs/adversary.md) says what a ratio means: it is exact,
and the policy is off by no less. Minutes are those that a hunt really had; short ones say little, and no hunt says
what there is beyond its families of up to seven jobs on up to eight GPUs. Tests run all of them again. """

OUTRO = """\
*By a theorem*: what a proven bound allows on that very instance. *Beside it* stands the optimum of schedules without
preemption (by enumeration), of those that change at whole units (by CP-SAT), of all (SRPT, on one GPU), or a schedule
that is feasible. Rounds and quanta are of one unit of the families, a
second; thresholds of attained service are at 4 GPU-seconds. HadarE is not hunted: it runs copies of jobs, by rules that
these families do not have. The instances of [the hard set](adversary.md#the-set) were found by other families, and some
are worse.
"""


BESIDE = {
    FEASIBLE: "feasible",
    ENUMERATED: "no preemption",
    SLOTTED: "whole units",
    SHORTEST: "SRPT",
}
"""What is known of the schedule that a policy is compared with, in two words."""


def row(hard: HardInstance) -> str:
    """The line of a hunt."""
    spent, found = Spent.of(hard, hard.name), rerun(hard)
    proven = (
        "-" if found.bound is None else f"{float(found.bound.factor):.3f} ({found.bound.theorem})"
    )
    cells = (
        f"`{hard.policy}`" + (", wrong predictions" if hard.predictor is not None else ""),
        hard.objective,
        f"{spent.cpu_s / 60:.1f}",
        f"{spent.evaluations:,}",
        number(hard.ratio),
        len(hard.instance.workload),
        hard.instance.cluster,
        proven,
        BESIDE[hard.witness_is],
    )
    return f"| {' | '.join(map(str, cells))} |"


def number(ratio: Fraction) -> str:
    """A ratio as it is, and with three digits; these alone if its denominator is long."""
    digits = f"{float(ratio):.3f}"
    return f"{ratio} = {digits}" if ratio.denominator < 10**4 else digits


def page() -> str:
    """The whole page, in Markdown."""
    lines = [
        INTRODUCTION,
        "| policy | objective | CPU minutes | instances | ratio at least | jobs | cluster | by a theorem | "
        "beside it |",
        "|---|---|---|---|---|---|---|---|---|",
        *(
            row(hard)
            for hard in sorted(hunted_instances(), key=lambda hard: (-hard.ratio, hard.name))
        ),
        "",
        OUTRO,
    ]
    hunted = {hard.policy.partition(":")[0] for hard in hunted_instances()}
    rest = [f"`{name}`" for name in sorted(policies()) if name not in hunted]
    if rest:
        lines += [f"Not hunted yet: {', '.join(rest)}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
