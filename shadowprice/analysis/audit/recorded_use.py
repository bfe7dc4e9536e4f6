"""Recorded use of a trace that tells starts and ends: what an audit would look at, in a few lines."""

from __future__ import annotations

from pathlib import Path

from shadowprice.analysis.audit.reading import read_records
from shadowprice.analysis.audit.recorded_run import recorded_run
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.recorded.assembly import NO_LIMITS

NOT_RECORDED = "what was run: the file has no starts and ends that could be audited"


def recorded_use(path: str | Path, cluster: Cluster) -> tuple[list[str], list[str]]:
    """Sentences on what was run, and questions that the record cannot answer; see :func:`shadowprice.audit`."""
    try:
        records = read_records(path)
    except InputError:
        return [], [NOT_RECORDED]
    lines: list[str] = []
    for record in records[:1]:
        result = recorded_run(record, cluster)
        for each in result.contradictions:
            first = f"row {each.row[0]}, job {each.job[0]}: {each.detail[0]}"
            lines.append(f"{each.kind}: {len(each):,} rows, {each.remedy} (first: {first})")
        if result.outcome is not None:
            summary = result.outcome.summary()
            lines.insert(
                0,
                f"recorded: {int(result.sound.sum()):,} jobs verified, use {summary['utilization']:.1%}, mean JCT "
                f"{summary['avg_jct_s']:,.0f} s; `audit` says what was possible",
            )
    return lines, [each for each in records[0].unanswered if each != NO_LIMITS]
