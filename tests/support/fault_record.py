"""The page that tells of a series of runs with faults: what was done, where, and what it cost."""

from __future__ import annotations

import os
import sys

from support.fault_series import RunResult, Series

NAMES = {"local": "one machine", "ray": "Ray", "slurm": "Slurm"}


def totals(series: Series, host: str, seed: int) -> str:
    """A sentence on all runs."""
    return (
        f"{len(series.results)} runs on {host}, {series.faults().total()} faults, seed {seed}: "
        f"{series.wall_s:.0f} s; {series.total('leases')} leases of {series.total('jobs')} jobs, "
        f"{series.total('drivers')} drivers, {series.total('steps_lost')} steps lost, at most "
        f"{series.most_lost():.2f} rounds at once, {series.most_lost_with_room():.2f} where no disk was "
        f"full; {len(series.broken)} runs broke a promise"
    )


def machine(series: Series) -> str:
    """The machine, and how busy it was while the runs went on."""
    loads = [result.load for result in series.results] or [0.0]
    return (
        f"{os.cpu_count()} cores, load {min(loads):.1f} to {max(loads):.1f}, Python "
        f"{sys.version.split()[0]}"
    )


def page(series: Series, host: str, seed: int, command: str) -> str:
    """The page, in Markdown."""
    slowest = max((result.outcome.wall_s for result in series.results), default=0.0)
    mean = sum(result.outcome.wall_s for result in series.results) / max(len(series.results), 1)
    lines = [
        f"# {len(series.results)} runs with faults on {NAMES[host]}",
        "",
        f"Written by `{command}`. {machine(series)}, the campaign's own processes among the load.",
        "",
        f"{totals(series, host, seed)}. A run took {mean:.1f} s on average and {slowest:.1f} s at most,",
        "several at once, each on devices of its own. Allowed are the steps of a round, and of the time for",
        "which a disk was full. Of each fault the table says at what it struck, and how long after the start.",
        "",
        "| fault | thrown | most rounds lost at once in a run with it |",
        "| --- | ---: | ---: |",
    ]
    for kind, count in sorted(series.faults().items()):
        lines.append(f"| {kind} | {count} | {series.most_lost(kind):.2f} |")
    lines += [
        "",
        "| run | policy | round [s] | jobs | leases | steps lost at once | allowed | rounds | faults |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        *map(_row, series.results),
        "",
    ]
    return "\n".join(lines)


def _row(result: RunResult) -> str:
    campaign, counts = result.campaign, result.outcome.counts
    faults = "; ".join(map(str, result.outcome.strikes)) or "none"
    if result.outcome.unthrown:
        faults += f"; no target came for: {', '.join(result.outcome.unthrown)}"
    if result.broken:
        faults += f"; BROKEN: {result.broken.partition('  File ')[0].partition(chr(10))[0].replace('|', '/')}"
    cells = (
        str(result.number),
        f"`{campaign.policy}`",
        f"{campaign.round_s:g}",
        str(campaign.jobs),
        str(counts.get("leases", "-")),
        str(counts.get("most_lost", "-")),
        str(max(campaign.allowed_loss.values())),
        f"{result.lost_rounds:.2f}",
        faults,
    )
    return f"| {' | '.join(cells)} |"
