"""Commands about many runs: studies, and the public data that they read."""

from __future__ import annotations

from shadowprice.cli.commands import Commands, Example
from shadowprice.studies.cli.data import data_command
from shadowprice.studies.cli.study import study

COMMANDS = Commands(
    panels={"Simulate and compare": ("study",), "Data": ("data",)},
    run={"study": study, "data": data_command},
    examples={
        "study run": (
            Example("study run study.yaml --jobs 0", "What has no rows yet, on all cores."),
            Example(
                "study run study.yaml --on ray", "The same on the Ray cluster that is started."
            ),
        ),
        "study report": (
            Example("study report study.yaml", "Tables and pictures as one page."),
            Example("study report study.yaml --paper paper --style acm", "LaTeX and PDF, too."),
        ),
        "study compare": (
            Example(
                "study compare study.yaml older.yaml",
                "Settings, versions and numbers that changed.",
            ),
        ),
        "data": (
            Example("data", "What there is, its licence, whom to cite."),
            Example("data gavel-simulation-throughputs", "Download a table, checked by SHA-256."),
            Example("data gavel-simulation-throughputs --offline", "Where it is, checked again."),
        ),
    },
)
