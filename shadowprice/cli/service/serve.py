"""``shadowprice serve``: a queue for the users of one pool."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shadowprice.cli.options import POLICY_HELP, ThroughputsOption
from shadowprice.cli.real.commands import (
    GraceOption,
    HealthCheckOption,
    HostsOption,
    NodePlacementOption,
    RetriesOption,
    RoundOption,
    ShareOption,
    words_of,
)
from shadowprice.cli.show import console
from shadowprice.errors import InputError
from shadowprice.execution.real.limits import Limits

if TYPE_CHECKING:
    from shadowprice.execution.real.ledger import RunLedger

_LIMITS = Limits()
STOPPED = 0
"""Exit code after Ctrl-C or SIGTERM: a service does not end otherwise."""


def serve_command(
    state: Annotated[
        Path, typer.Argument(help="State directory; the same command goes on.", metavar="DIR")
    ],
    policy: Annotated[str, typer.Option("--policy", help=POLICY_HELP)],
    hosts: HostsOption = "local",
    round_s: RoundOption = 60.0,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--user",
            help="Let a user in whose jobs have this weight; again for each.",
            metavar="NAME[:WEIGHT]",
        ),
    ] = None,
    socket: Annotated[
        Path | None, typer.Option("--socket", help="Unix socket to make; DIR/service.sock if none.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option("--http", help="Also listen on this port of 127.0.0.1, for who has a token."),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option("--webhook", help="Address that events are posted to.")
    ] = None,
    placement: NodePlacementOption = "count",
    throughputs: ThroughputsOption = None,
    share: ShareOption = None,
    grace_s: GraceOption = _LIMITS.grace_s,
    ttl_s: Annotated[
        float, typer.Option("--ttl", help="Seconds jobs go on after the service died.")
    ] = _LIMITS.ttl_s,
    retries: RetriesOption = _LIMITS.retries,
    health_check: HealthCheckOption = None,
) -> None:
    """Run the jobs that users submit, until Ctrl-C; killed or stopped, the same command goes on.

    `shadowprice queue` submits, lists and cancels. Jobs run as the user of the service.
    """
    from shadowprice.execution.real.settings import Settings
    from shadowprice.execution.service.client import SOCKET
    from shadowprice.execution.service.service import serve
    from shadowprice.execution.service.users import Access

    if http is not None and not 0 <= http < 65536:
        raise InputError(f"--http is {http}, expected a port from 0 to 65535")
    access, at = Access.parse(users or ()), state / SOCKET if socket is None else socket
    if access.shared and socket is None:
        raise InputError(
            "--user: others cannot reach a socket in the state directory; expected --socket, in a directory "
            "that they may enter"
        )
    settings = Settings(
        jobs=state,
        policy=policy,
        hosts=hosts,
        round_s=round_s,
        state=state,
        placement=placement,
        throughputs=throughputs,
        share=share,
        limits=replace(_LIMITS, grace_s=grace_s, ttl_s=ttl_s, retries=retries),
        health_check=words_of(health_check),
    )
    server, hook = _face()

    @contextmanager
    def beside(ledger: RunLedger) -> Iterator[None]:
        with ExitStack() as stack:
            if webhook is not None:
                stack.enter_context(hook(state, webhook))
            listening = stack.enter_context(server(state, access, at, http))
            also = "" if listening.port is None else f" and http://127.0.0.1:{listening.port}"
            _say(
                f"listens at {at}{also}; `shadowprice queue submit {at} JOBS` submits, Ctrl-C stops"
            )
            yield

    if webhook is not None:
        from shadowprice.analysis.service.webhook import checked_url

        checked_url(webhook)
    summary = serve(settings, beside)
    waiting = sum(
        state not in ("finished", "failed", "cancelled") for state in summary.jobs.values()
    )
    _say(f"stopped with {waiting} jobs queued; the same command goes on with them")
    raise typer.Exit(STOPPED)


def _face() -> tuple[type[ServiceServer], type[Webhook]]:
    """The server and the webhook, where what they need is installed.

    Raises
    ------
    InputError
        If it is not.
    """
    try:
        from shadowprice.analysis.service.http_server import ServiceServer
        from shadowprice.analysis.service.webhook import Webhook
    except ModuleNotFoundError as error:
        raise InputError(
            f"serve: {error.name} is not installed: pip install 'shadowprice[serve]'"
        ) from error
    return ServiceServer, Webhook


def _say(text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


if TYPE_CHECKING:
    from shadowprice.analysis.service.http_server import ServiceServer
    from shadowprice.analysis.service.webhook import Webhook
