"""Score as data: what is the same on every machine, and apart from it what this machine took."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import Any

from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.library.score.evaluation import AdversaryScore, InstanceScore, Score
from shadowprice.library.score.measures import ScoreMeasures
from shadowprice.library.score.ratios import decimal_text
from shadowprice.library.score.suites import OBJECTIVE

Record = dict[str, Any]

_DIGITS = 6
"""Significant digits of measures."""


def score_record(score: Score) -> Record:
    """Everything that a score says, for ``--json``.

    Under ``score`` is what the same policy gets on every machine that keeps the limits of time. ``sha256`` is of it,
    but for feedback, laws and adversary, whose texts and draws are also those of installed packages; under
    ``ratio_to_best_known`` what depends on the entries that the library has by now, and under ``machine`` what depends
    on this one.
    """
    mine = _score(score)
    return {
        "score": mine,
        "sha256": record_digest(_costs_and_bounds(mine)),
        "ratio_to_best_known": {each.scored.name: _to_best(each) for each in score.results},
        "machine": _machine(score),
    }


def _to_best(result: InstanceScore) -> str | None:
    return None if result.to_best is None else decimal_text(result.to_best)


def score_rows(score: Score) -> list[Record]:
    """A row an instance, for ``--csv``."""
    rows = [{**_instance(each), "ratio_to_best_known": _to_best(each)} for each in score.results]
    for row in rows:
        measures = row.pop("measures") or {}
        row |= {name: value for name, value in measures.items() if name != "longest"}
    return rows


def record_digest(record: Record) -> str:
    """SHA-256 of a record as sorted JSON without spaces."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _costs_and_bounds(record: Record) -> Record:
    """Costs, bounds and what follows from them."""
    settled = {key: value for key, value in record.items() if key not in ("adversary", "laws")}
    rows = record["instances"]
    settled["instances"] = [{k: v for k, v in row.items() if k != "feedback"} for row in rows]
    return settled


def _score(score: Score) -> Record:
    worst = score.worst
    return {
        "suite": score.suite.name,
        "seed": score.seed,
        "objective": str(OBJECTIVE),
        "policy": {
            "name": score.policy,
            "knows": list(score.knows),
            "preemptive": score.preemptive,
        },
        "combined_score": decimal_text(score.combined),
        "geometric_mean": decimal_text(score.geometric_mean),
        "worst": {"instance": worst.scored.name, "ratio": _ratio_text(worst)},
        "lost": [each.scored.name for each in score.lost],
        "instances": [_instance(each) for each in score.results],
        "adversary": None if score.adversary is None else _adversary(score.adversary),
        "laws": None
        if score.laws is None
        else {
            "tried": [each.title for each in score.laws],
            "broken": {each.title: each.broken for each in score.laws if each.broken},
        },
    }


def _ratio_text(result: InstanceScore) -> str | None:
    return None if result.ratio is None else decimal_text(result.ratio)


def _instance(result: InstanceScore) -> Record:
    scored = result.scored
    return {
        "name": scored.name,
        "drawn": scored.drawn,
        "jobs": len(scored.instance.workload),
        "gpus": scored.instance.cluster.physical_gpus,
        "cost_s": None if result.cost is None else float(result.cost / TICKS_PER_S),
        "bound_s": float(scored.bound / TICKS_PER_S),
        "bound_kind": scored.certificate.kind,
        "ratio": _ratio_text(result),
        "measures": None if result.measures is None else _measures(result.measures),
        "feedback": result.feedback,
    }


def _measures(measures: ScoreMeasures) -> Record:
    """Numbers in six significant digits, which IEEE arithmetic settles."""
    return {name: _rounded(value) for name, value in asdict(measures).items()}


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, tuple) else value


def _adversary(result: AdversaryScore) -> Record:
    worst = result.worst
    return {
        "evaluations": result.evaluations,
        "ratio": None if worst is None else str(worst.ratio),
        "sentence": result.sentence,
        "instance": None if worst is None else json.loads(worst.hard.to_json()),
    }


def _machine(score: Score) -> Record:
    spent = score.spent
    return {
        "decisions": spent.decisions,
        "decisions_per_s": _rounded(spent.decisions_per_s),
        "runs_s": _rounded(spent.runs_s),
        "wall_s": _rounded(spent.wall_s),
        "seal": None
        if score.seal is None
        else {
            "enforced": [str(each) for each in score.seal.enforced],
            "missing": [str(each) for each in score.seal.missing],
        },
    }
