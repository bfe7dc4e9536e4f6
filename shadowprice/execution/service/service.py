"""Service: a driver whose jobs come from its users while it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from shadowprice.errors import InputError
from shadowprice.execution.first_instance import why_not_counted
from shadowprice.execution.real.copies.policy import copies_policy
from shadowprice.execution.real.driver import Summary, Surroundings, drive
from shadowprice.execution.real.job_file import JobFile
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.settings import Settings
from shadowprice.execution.service.queue import NOT_COUNTED, SHARED, QueuedArrivals
from shadowprice.instances.speeds.throughputs import load_throughputs
from shadowprice.solvers.policy import Knowledge
from shadowprice.solvers.price_log import KeepsPrices, PriceLog
from shadowprice.solvers.registry import placement as find_placement

SERVICE = "service"
"""In the place of a job file's SHA-256: the jobs of a service are in its ledger."""


def serve(
    settings: Settings,
    beside: Callable[[RunLedger], AbstractContextManager[object]] = nullcontext,
    on_tick: Callable[[RunLedger], None] = lambda ledger: None,
) -> Summary:
    """Execute the jobs that users submit until somebody stops it; go on if the directory has a service.

    Parameters
    ----------
    settings : Settings
        Of the run; the job file is not read.
    beside : callable
        Makes a context from the ledger, in which the driver runs; jobs may be submitted in it.
    on_tick : callable
        Called with the ledger whenever the driver has looked at its leases.

    Raises
    ------
    InputError
        If a name or setting is wrong, the policy needs to know jobs before they come, or the state
        directory is of another run.
    HostError, PolicyError
        See :func:`.driver.execute`.
    """
    if copies_policy(settings) is not None:
        raise InputError(
            f"policy {settings.policy_name}: runs jobs of a job file as copies, expected one that runs gangs"
        )
    policy = settings.acting_policy()
    if Knowledge.DISTRIBUTION in policy.knows:
        raise InputError(
            f"policy {settings.policy_name}: is told the services of all jobs, which a service does not "
            "know; expected a policy that is not told"
        )
    find_placement(settings.placement)
    prices = PriceLog()
    if isinstance(policy, KeepsPrices):
        settings = replace(settings, policy=policy.keeping(prices))

    def tick(ledger: RunLedger) -> None:
        _note_prices(ledger, prices)
        on_tick(ledger)

    return drive(
        settings,
        JobFile(Path(SERVICE), (), SERVICE),
        Surroundings(tick, lambda ledger: _arrivals(ledger, settings), beside),
    )


def _arrivals(ledger: RunLedger, settings: Settings) -> QueuedArrivals:
    """Jobs of the queue; those who submit them learn what cannot be asked for."""
    table = None if settings.throughputs is None else load_throughputs(settings.throughputs)
    ledger.set(NOT_COUNTED, why_not_counted(settings))
    ledger.set(SHARED, settings.share is not None or bool(table is not None and table.pairs))
    return QueuedArrivals(ledger, settings)


def _note_prices(ledger: RunLedger, prices: PriceLog) -> None:
    """Write the last prices down for people who look, and keep no others."""
    if not prices.time_s:
        return
    time_s, by_node = prices.time_s[-1], prices.prices[-1].tolist()
    prices.time_s.clear()
    prices.prices.clear()
    names = [node.name for node in ledger.nodes()]
    ledger.set("prices", {"time_s": time_s, "by_node": dict(zip(names, by_node, strict=True))})
