"""Fixtures of tests of scores."""

from __future__ import annotations

from functools import cache

import pytest

from shadowprice.library.score.suites import DrawnLaw

_draw = cache(DrawnLaw.draw)


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each instance is drawn once in a process, for tests of something else: its bound takes half a second."""
    monkeypatch.setattr(DrawnLaw, "draw", _draw)
