"""The table of scores in docs/score.md: policies that one should know, and an agent that learned.

``python docs/build_scores.py docs/score.md`` scores them, each sealed, and writes the table and ``docs/scores.json``;
``--stored`` writes the table of the scores that are stored. Neither adversary nor laws are in it.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from shadowprice.library.score.ratios import combined_score, decimal_text
from shadowprice.library.score.record import score_record
from shadowprice.library.score.scoring import score
from shadowprice.library.score.suites import suite_named

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs" / "scores.json"
SEED = 0
AGENT = "examples/learning/linear_agent.py:Agent"
POLICIES = (
    "fifo",
    "easy",
    "sjf",
    "srtf",
    "srsf",
    "las2d",
    "asrpt",
    "gandiva",
    "hadar",
    "gavel:max_min_fairness",
    AGENT,
)
"""Ten of ours, and the agent of docs/rl.md."""
BEGIN, END = "<!-- scores: begin -->\n", "<!-- scores: end -->\n"


def runs_of(policy: str) -> dict[str, Any]:
    """Record of a policy on the instances of the suite, without what depends on the machine."""
    suite = replace(suite_named("v1-online"), families=(), law_examples=0)
    record: dict[str, Any] = score_record(score(policy, suite, seed=SEED))["score"]
    return record


def row(record: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a policy."""
    return {
        "policy": record["policy"],
        "score": record["combined_score"],
        "ratios": {each["name"]: each["ratio"] for each in record["instances"]},
        "fairness": {
            each["name"]: None if each["measures"] is None else each["measures"]["largest_ftf"]
            for each in record["instances"]
        },
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The table in Markdown, best first."""
    lines = [
        "| policy | knows | score | worst ratio | on | largest unfairness | instances lost |",
        "|---|---|---:|---:|---|---:|---:|",
    ]
    for name, each in sorted(rows.items(), key=lambda pair: (-Fraction(pair[1]["score"]), pair[0])):
        ratios = each["ratios"]
        lost = [instance for instance, ratio in ratios.items() if ratio is None]
        run = {instance: ratio for instance, ratio in ratios.items() if ratio is not None}
        worst = max(run, key=lambda instance: Fraction(run[instance]), default="")
        unfair = max((value for value in each["fairness"].values() if value), default=0.0)
        known = ", ".join(each["policy"]["knows"]) or "nothing"
        shown = f"[the agent](rl.md) `{each['policy']['name']}`" if name == AGENT else f"`{name}`"
        ratio = decimal_text(Fraction(run[worst]), 3) if worst else ""
        lines.append(
            f"| {shown} | {known} | {each['score']} | {ratio} | {worst} | {unfair:,.3g} | {len(lost)} |"
        )
    return "\n".join(lines) + "\n"


def scores_agree(each: dict[str, Any]) -> bool:
    """True if a stored score is that of its stored ratios, which are rounded up."""
    ratios = [None if ratio is None else Fraction(ratio) for ratio in each["ratios"].values()]
    return 0 <= Fraction(each["score"]) - combined_score(ratios) < Fraction(1, 10**4)


def main(page: Path, *, stored: bool) -> None:
    """Write the table into the page."""
    rows = json.loads(STORED.read_text(encoding="utf-8")) if stored else {}
    for policy in () if stored else POLICIES:
        print(policy, flush=True)
        rows[policy] = row(runs_of(policy))
        STORED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(before + BEGIN + table(rows) + END + after, encoding="utf-8")


if __name__ == "__main__":
    words = [each for each in sys.argv[1:] if each != "--stored"]
    main(Path(words[0]), stored="--stored" in sys.argv)
