"""Output of ``shadowprice execute --dry-run``."""

from __future__ import annotations

import json
import shlex

from rich.table import Table
from rich.text import Text

from shadowprice.analysis.real_runs.plan import ExecutionPlan, bar
from shadowprice.analysis.real_runs.status import printable
from shadowprice.cli.show import console

_CELLS, _FEWEST_CELLS = 40, 12
_FRAME = 19
"""Characters of a row of six columns that are its frame."""


def print_plan(plan: ExecutionPlan, as_json: bool) -> None:
    """Print nodes, commands, assumptions, the first decision and what simulation predicts."""
    if as_json:
        print(json.dumps(plan.to_dict()))
        return
    console.print(_nodes(plan))
    console.print(_commands(plan))
    for note in plan.notes:
        console.print(Text(printable(note), style="yellow"), soft_wrap=True)
    starts = ", ".join(
        f"{job} on {node} ({gpus} GPU{'s' if gpus > 1 else ''})" for job, node, gpus in plan.first()
    )
    if starts:
        console.print(Text(f"\nfirst decision: {starts}"), soft_wrap=True)
    console.print(_predicted(plan))
    summary = plan.outcome.summary()
    console.print(
        f"predicted by simulation: mean JCT {summary['avg_jct_s']:,.1f} s, "
        f"makespan {summary['makespan_s']:,.1f} s; nothing was started",
        highlight=False,
        soft_wrap=True,
    )


def _nodes(plan: ExecutionPlan) -> Table:
    table = Table(
        "node", "type", "devices", "CPUs", "memory [GB]", title=printable(plan.settings.hosts)
    )
    for node in plan.nodes:
        names = " ".join(device.uuid for device in node.devices)
        memory = f"{node.memory_gb:,.0f}" if node.memory_gb else ""
        table.add_row(*map(Text, (node.name, node.gpu_type, names, f"{node.cpus:g}", memory)))
    return table


def _commands(plan: ExecutionPlan) -> Table:
    table = Table("job", "GPUs", "iterations", "command, and names of variables")
    for job in plan.job_file.jobs:
        command = printable(shlex.join(plan.argv(job)))
        if job.env:
            command += f"\nwith {printable(', '.join(sorted(job.env)))}"
        table.add_row(Text(job.name), str(job.gpus), f"{job.iterations:,}", Text(command))
    return table


def _predicted(plan: ExecutionPlan) -> Table:
    """A row a job: when it would run, in text, and how long it would take."""
    jobs, runs = plan.outcome.jobs, plan.runs()
    until_s = max((end_s for end_s in jobs["end_s"].tolist()), default=0.0)
    table = Table(
        "job", "arrival [s]", "start [s]", "end [s]", "JCT [s]", title=plan.settings.policy_name
    )
    for column in table.columns[1:]:
        column.justify = "right"
    table.add_column(f"0 to {until_s:,.0f} s", no_wrap=True)
    rows = jobs.to_dict(orient="records")
    # Names and numbers are worth more than a long bar.
    taken = max(len(str(row["id"])) for row in rows) + 4 * len("arrival [s]") + _FRAME
    cells = min(max(console.width - taken, _FEWEST_CELLS), _CELLS)
    for row in rows:
        numbers = (row[key] for key in ("arrival_s", "first_start_s", "end_s", "jct_s"))
        drawn = Text(bar(runs[str(row["id"])], until_s, cells))
        table.add_row(Text(str(row["id"])), *(f"{value:,.1f}" for value in numbers), drawn)
    return table
