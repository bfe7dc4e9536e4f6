"""What hosts answered to the engine, so that a new driver can bring a policy back to where it was.

A policy keeps notes, and its notes follow from what it was told. So everything that comes from
outside passes through here: time, ends, failures, measurements, which devices a start got. A driver
that takes a run over lets the same policy decide again on the recorded answers, checks that it
decides the same, and goes on with real ones where the record ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shadowprice.errors import PolicyError
from shadowprice.execution.real.ledger import Ledger


class Journal:
    """Recorded answers first, then new ones.

    Parameters
    ----------
    ledger : Ledger
        Where answers are kept.
    on_read : callable
        Called before every recorded answer is given: a long record takes long.
    """

    def __init__(self, ledger: Ledger, on_read: Callable[[], None] = lambda: None) -> None:
        self._ledger = ledger
        self._on_read = on_read
        self._recorded = ledger.answers()
        self._ahead = next(self._recorded, None)

    @property
    def replaying(self) -> bool:
        """Whether there are recorded answers left."""
        return self._ahead is not None

    def next(self, call: str) -> Any:
        """The recorded answer to a call.

        Raises
        ------
        PolicyError
            If another call was recorded: the policy does not decide as it did.
        """
        assert self._ahead is not None
        self._on_read()
        recorded, data = self._ahead
        self._ahead = next(self._recorded, None)
        if recorded != call:
            raise PolicyError(
                f"{self._ledger.path}: the record says {recorded!r}, but the policy now leads to {call!r}; "
                "resume with the program and parameters that began the run"
            )
        return data

    def record(self, call: str, data: object) -> None:
        """Keep an answer."""
        self._ledger.answer(call, data)
