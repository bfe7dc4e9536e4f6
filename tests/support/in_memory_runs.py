"""Parts that tests of runs on hosts in memory have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from shadowprice.hosts.log.execution_log import verify_ledger
from support.fake_run import FakeRun, log

OVER = {"finished", "failed", "cancelled"}
"""States of jobs that are over."""


@pytest.fixture(scope="module")
def no_power_cuts() -> Iterator[None]:
    """Runs in memory flush no disk; by ``pytest.mark.usefixtures``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def job(name: str, iterations: int = 100, gpus: int = 1, **more: Any) -> dict[str, Any]:
    """An entry of a job file, of ten iterations a second."""
    return {"name": name, "iterations": iterations, "gpus": gpus, "throughput": 10.0, **more}


def check(run: FakeRun) -> list[dict[str, Any]]:
    """Events of a run, whose jobs are all over, and whose log the verifier accepts."""
    ledger = run.execute()
    assert {row["state"] for row in ledger.jobs()} <= OVER, log(ledger)
    told = list(ledger.events())
    ledger.close()
    verify_ledger(run.state / "run.db")
    return told
