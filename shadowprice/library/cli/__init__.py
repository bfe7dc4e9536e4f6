"""Commands about the library: its table, its instances, and submissions to it."""

from __future__ import annotations

from shadowprice.cli.commands import Commands, Example
from shadowprice.library.cli.library import library

COMMANDS = Commands(
    panels={"Library": ("library",)},
    run={"library": library},
    examples={
        "library list": (
            Example("library list", "Instances, the best known values, and the gaps."),
            Example("library list --family gangs --json", "Those of a family, for programs."),
        ),
        "library get": (
            Example(
                "library get gangs-10-lognormal-1",
                "Write the instance, its jobs and its nodes as files.",
            ),
        ),
        "library show": (
            Example("library show gangs-10-lognormal-1", "What it is, and who found what is best."),
        ),
        "library submit": (
            Example(
                "library submit schedule.csv --by Ada --method 'list schedule'",
                "Verify a schedule, and write it as the entry if it is better.",
            ),
            Example(
                "library submit run.jsonl --by Ada --method 'longer search' -o entries",
                "Check a certificate; what is better is written to a folder of your own.",
            ),
        ),
    },
)
