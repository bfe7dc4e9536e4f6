"""``shadowprice place``: where the replicas of a job go; of a few jobs also when; workers beside parameter servers."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from shadowprice.cli.panels import shown
from shadowprice.cli.placement.graph import graph_command
from shadowprice.cli.placement.joint import joint_command
from shadowprice.cli.placement.servers import servers_command


class _FileOrCommand(TyperGroup):
    """Commands of which ``graph`` is the one that a first word is about which names none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        usual = ["graph"] if args and args[0] not in (*self.commands, "--help") else []
        return super().parse_args(ctx, [*usual, *args])


place = typer.Typer(
    cls=_FileOrCommand,
    no_args_is_help=True,
    help="Place one job graph (`place FILE`), a few of them at best, workers beside parameter servers.",
)
place.command("graph", **shown("place graph"))(graph_command)
place.command("joint", **shown("place joint"))(joint_command)
place.command("servers", **shown("place servers"))(servers_command)
