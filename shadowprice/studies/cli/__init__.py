"""Commands about many runs: studies, and the public data that they read."""

from __future__ import annotations

from shadowprice.cli.commands import Commands, Example
from shadowprice.studies.cli.data import data
from shadowprice.studies.cli.study import study

COMMANDS = Commands(
    panels={"Simulate and compare": ("study",), "Data": ("data",)},
    run={"study": study, "data": data},
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
        "study bundle": (
            Example(
                "study bundle study.yaml -o artifact.zip", "An archive for artifact evaluation."
            ),
        ),
        "data list": (Example("data list", "What there is, its licence, whom to cite."),),
        "data path": (
            Example("data path gavel-simulation-throughputs", "Where it is, checked again."),
        ),
        "data fetch": (
            Example(
                "data fetch gavel-simulation-throughputs", "Download a table, checked by SHA-256."
            ),
        ),
    },
)
