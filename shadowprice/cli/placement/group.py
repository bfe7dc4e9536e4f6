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
    """Commands, of which one is meant where the first word is none."""

    usual = "graph"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        if args and args[0] not in (*self.commands, "--help"):
            args = [self.usual, *args]
        return super().parse_args(ctx, args)


place = typer.Typer(
    cls=_FileOrCommand,
    no_args_is_help=True,
    help="Place one job graph (`place FILE`), a few of them at best, workers beside parameter servers.",
)
place.command("graph", **shown("place graph"))(graph_command)
place.command("joint", **shown("place joint"))(joint_command)
place.command("servers", **shown("place servers"))(servers_command)
