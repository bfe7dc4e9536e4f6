"""Webhook: events of a service, each posted as JSON to an address, in order, at least once.

How far it came is in the ledger, so that a new driver goes on with the first event that nobody took.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests

from shadowprice.analysis.real_runs.run import RunReader
from shadowprice.analysis.real_runs.status import event_words
from shadowprice.errors import HostError, InputError
from shadowprice.execution.real.ledger import RunLedger
from shadowprice.execution.real.state_directory import LEDGER

KINDS = frozenset(
    {
        *("finished", "failed", "gave-up", "cancelled"),
        *("node-lost", "node-back", "quarantined", "unquarantined"),
    }
)
"""Kinds of events that are posted."""
TIMEOUT_S = 10.0
_CURSOR = "webhook"


def checked_url(url: str) -> str:
    """The same address, if it is one.

    Raises
    ------
    InputError
        If it is no http or https address.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        fine = False
    if not fine:
        raise InputError(f"--webhook {url!r}: expected an address, http:// or https://")
    return url


class Webhook:
    """Thread that posts events; a context.

    Parameters
    ----------
    state : Path
        State directory of the service.
    url : str
        Where to post.
    poll_s, longest_s : float
        Between two looks at the ledger, and longest wait after failures in a row [s].
    """

    def __init__(
        self, state: Path, url: str, *, poll_s: float = 0.5, longest_s: float = 60.0
    ) -> None:
        self._state, self._url = state, checked_url(url)
        self._poll_s, self._longest_s = poll_s, longest_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(TIMEOUT_S + 1.0)

    def _run(self) -> None:
        ledger = RunLedger.open(self._state / LEDGER)
        wait_s = self._poll_s
        try:
            with RunReader(self._state) as run:
                while not self._over.wait(wait_s):
                    delivered = self._deliver(ledger, run)
                    wait_s = self._poll_s if delivered else min(2 * wait_s, self._longest_s)
        finally:
            ledger.close()

    def _deliver(self, ledger: RunLedger, run: RunReader) -> bool:
        """Post what is new; whether all of it was taken."""
        try:
            run.refresh()
            since = int(ledger.value(_CURSOR, 0))
            run_id, owners = str(ledger.value("run_id")), ledger.owners()
            reached = since
            for event in ledger.events(since):
                if event["kind"] in KINDS:
                    told = {"run_id": run_id, "user": owners.get(event["job"], "")}
                    if not self._post(told | _message(run, event)):
                        return False
                    ledger.set(_CURSOR, event["seq"])
                reached = event["seq"]
                if self._over.is_set():
                    break
            if reached - since > 1000:  # few of many events are posted
                ledger.set(_CURSOR, reached)
        except (HostError, InputError):
            return False  # the disk is full, say: the driver says so
        return True

    def _post(self, message: Mapping[str, Any]) -> bool:
        try:
            answer = requests.post(
                self._url,
                data=json.dumps(message),
                headers={"Content-Type": "application/json"},
                timeout=TIMEOUT_S,
                allow_redirects=False,
            )
        except requests.RequestException:
            return False
        return 200 <= answer.status_code < 300


def _message(run: RunReader, event: Mapping[str, Any]) -> dict[str, Any]:
    """An event as it is posted; ``text`` is for people, and for chats that show it."""
    told = {key: event[key] for key in ("seq", "time_s", "kind", "job", "epoch")}
    return told | {"text": event_words(run, event), "data": event["data"]}
