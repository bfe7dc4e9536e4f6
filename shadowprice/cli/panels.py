"""Groups of commands in the help, and examples below the help of each.

A command is shown with ``app.command("name", **shown("name"))``. Those of the core stand here, others come with their
part of the program (:mod:`shadowprice.cli.commands`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from shadowprice.cli.commands import Commands, Example, offered_commands
from shadowprice.cli.origin import running

_PANELS: Mapping[str, tuple[str, ...]] = {
    "Simulate and compare": ("demo", "simulate", "compare", "audit", "allocate", "place"),
    "Models and policies": ("models", "policies", "terms", "laws"),
    "Proofs": ("verify", "certify", "adversary"),
    "Data": ("generate", "trace"),
    "This installation": ("doctor",),
}
"""The core's commands by panel, both in the order of the help."""
_LAST = "This installation"
"""Panel that stays below those that other parts bring."""


_NETWORK = "graphs:intra_gb_per_s=300,nic_gb_per_s=12.5"
_EXAMPLES: Mapping[str, tuple[Example, ...]] = {
    "demo": (
        Example("demo", "Four policies beside a certified bound."),
        Example("demo --plot demo.png", "The same, with a picture."),
    ),
    "generate": (
        Example("generate", "All generators, and the law of each."),
        Example("generate lognormal", "Parameters of one."),
        Example("generate lognormal --jobs 200 --gpus 16 -o jobs.csv", "200 jobs for 16 GPUs."),
        Example("generate tiresias -o testbed.csv", "The job mix of the NSDI'19 testbed."),
        Example(
            "generate synergy --jobs 150 --gpus 32 --load 1 -o sensitive.csv",
            "Jobs that depend on CPUs and memory.",
        ),
    ),
    "simulate": (
        Example("simulate jobs.csv --cluster 4x4 --policy srtf", "Metrics of one verified run."),
        Example(
            "simulate jobs.csv --cluster 4x4 --policy las2d:thresholds_gpu_s=3600/36000 --placement consolidate -o run",
            "A policy with a parameter, gangs kept together; the run is written to a folder.",
        ),
        Example(
            "simulate jobs.csv --cluster 4x4 --policy dlas-gpu --preset tiresias",
            "A published simulator's policy and semantics.",
        ),
        Example(
            "simulate sensitive.csv --cluster 4x8+24cpu+500gb --policy synergy-tune:srtf --with profiles",
            "CPUs and memory handed out beside GPUs.",
        ),
    ),
    "compare": (
        Example(
            "compare jobs.csv --cluster 4x4 --policies fifo,srtf,las2d",
            "Costs beside a certified bound of the offline optimum.",
        ),
        Example(
            "compare jobs.csv --cluster 4x4 --policies fifo,srtf --plot gap.png --json",
            "A picture, and the rows as JSON.",
        ),
        Example(
            "compare jobs.csv --cluster 4x4 --objective utility --policies hadar,fifo",
            "Total utility beside an upper bound of it.",
        ),
    ),
    "audit": (
        Example(
            "audit sacct.txt --cluster 64x8 --zone Europe/Paris --contradictions wrong.csv",
            "What a cluster did, from its accounts, and what any scheduler could have gained.",
        ),
        Example(
            "audit jobs.csv --schedule ran.csv --cluster 4x4",
            "What another simulator did with a trace: job, node, gpus, start, end.",
        ),
        Example(
            "audit rounds.json.xz", "Recorded rounds of several runs, which name their cluster."
        ),
    ),
    "verify": (
        Example("verify run", "The schedule and metrics of a run directory, from disk."),
        Example("verify run.jsonl", "The arithmetic of a certificate, alone."),
        Example(
            "verify run.jsonl jobs.csv --cluster 4x4",
            "Also that it is about this trace and cluster.",
        ),
        Example("verify hard.json", "Both schedules of a hard instance, and their ratio."),
        Example("verify demo.state", "The event log of a real run (needs that of `execute`)."),
    ),
    "certify": (
        Example("certify run -o run.jsonl", "A certificate of a run that `simulate -o` wrote."),
        Example(
            "certify run -o utility.jsonl --objective utility --utility deadline",
            "By how much the best schedule has more weight in time at most.",
        ),
    ),
    "adversary": (
        Example(
            "adversary --policy srtf --family jobs=4,gpus=2 --budget 5 -o hard.json",
            "The worst instance of SRTF that 5 seconds find.",
        ),
        Example(
            "adversary --policy fifo --family jobs=3,gpus=2,max_work=3,max_arrival=1 --method bilevel",
            "The worst one of a small family, exactly.",
        ),
    ),
    "policies": (
        Example("policies", "All of them."),
        Example("policies las2d", "One of them, with its parameters."),
        Example("policies --json", "The same for programs."),
    ),
    "terms": (
        Example("terms", "What an instance may say beyond nodes and jobs."),
        Example("terms failures", "Settings of one, and what it does not go together with."),
        Example("terms --json", "The same for programs."),
    ),
    "laws": (
        Example("laws srtf", "All laws on one of ours."),
        Example(
            "laws mine.py:Own --waits", "On a policy of your own that lets GPUs idle on purpose."
        ),
    ),
    "models": (
        Example("models", "All programmes: paper, kind, what solves and tests them."),
        Example("models gavel", "Symbols and programme of one."),
        Example(
            "models interval_lp jobs.csv --cluster 4x4 -o model.mps",
            "One for an instance, written to a file.",
        ),
    ),
    "allocate": (
        Example(
            "allocate max_min_fairness:aware=true problem.json --explain",
            "Shares of GPU types, and what bounds each job.",
        ),
    ),
    "place graph": (
        Example(
            f"place graph.yaml --cluster 4x8 --with {_NETWORK} --placement exact",
            "The best placement of a job graph.",
        ),
    ),
    "place joint": (
        Example(
            f"place joint a.yaml b.yaml --cluster 2x2 --with {_NETWORK} --slot 60 --iterations 100,20",
            "Two job graphs, placed and timed at best.",
        ),
    ),
    "place servers": (
        Example(
            "place servers job.yaml",
            "Tiresias' placement by skew beside the best one, on the nodes that the file names.",
        ),
    ),
    "trace": (
        Example("trace", "Formats of traces, and where their importers are from."),
        Example("trace jobs.csv --cluster 4x4", "Arrivals, gangs, whose GPU time, load."),
        Example("trace jobs.csv --cluster 4x4 --page trace.html", "The same as a page."),
        Example("trace jobs.csv --fit law.json", "Also a law to generate similar jobs from."),
        Example("generate lognormal --parameters law.json -o like.csv", "Jobs of that law."),
        Example(
            "trace jobs.csv --cluster 4x4 --load 0.9 -o busy.csv",
            "The same jobs, arriving so that they ask for 0.9 of the cluster.",
        ),
    ),
    "doctor": (
        Example("doctor", "Solvers, hosts and devices: what is there and what is missing."),
        Example("doctor --json", "The same for programs."),
    ),
}
"""The core's examples by command. They can be run in this order, in an empty folder; those that need more say what."""


def panels() -> dict[str, tuple[str, ...]]:
    """All commands by panel, both in the order of the help: the core's, then those of other parts."""
    merged = dict(_PANELS)
    for commands in offered_commands():
        for title, names in commands.panels.items():
            merged[title] = (*merged.get(title, ()), *names)
    merged[_LAST] = merged.pop(_LAST)
    return merged


def examples() -> dict[str, tuple[Example, ...]]:
    """All examples by command."""
    merged = dict(_EXAMPLES)
    for commands in offered_commands():
        merged.update(commands.examples)
    return merged


class PanelGroup(TyperGroup):
    """Commands in the order of the panels."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the panels; others last."""
        order = [name for names in panels().values() for name in names]
        known = {name: place for place, name in enumerate(order)}
        return sorted(super().list_commands(ctx), key=lambda name: known.get(name, len(order)))


class ShownCommand(TyperCommand):
    """A command whose help ends with its examples, as they are typed: never wrapped; its outputs say what made them."""

    def invoke(self, ctx: Any) -> Any:
        """Run it."""
        with running(_words(ctx), ctx.params):
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, then the examples."""
        super().format_help(ctx, formatter)
        below = examples().get(_words(ctx), ())
        if below:
            typer.echo(" Examples\n" + "".join(example.text() for example in below))


def _words(context: Any) -> str:
    """Words of a command after the program's own: ``study run``."""
    # Not from its path, which begins with the program however it was started: `python -m shadowprice`.
    above = context.parent
    return "" if above is None else f"{_words(above)} {context.info_name}".strip()


def shown(name: str) -> dict[str, Any]:
    """Arguments of ``app.command``: examples below the help, and the panel of a command of the core."""
    panel = next((title for title, names in _PANELS.items() if name in names), None)
    return {"rich_help_panel": panel, "cls": ShownCommand}


def register(app: typer.Typer, commands: Commands) -> None:
    """Add the commands of another part to the program, each in its panel."""
    for panel, names in commands.panels.items():
        for name in names:
            run = commands.run[name]
            if isinstance(run, typer.Typer):
                app.add_typer(run, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel, cls=ShownCommand)(run)
