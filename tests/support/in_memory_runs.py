"""Parts that tests of runs on hosts in memory have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

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
