"""Journal of hosts' answers to the engine, so that a new driver can restore a policy's state.

A policy keeps notes, and its notes follow from what it saw. So everything that comes from
outside passes through here: time, ends, failures, measurements, which devices a start got. A driver
that takes a run over lets the same policy decide again on the recorded answers, checks that it
decides the same, and goes on with real ones where the record ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

import msgspec

from shadowprice.errors import InputError, PolicyError
from shadowprice.hosts.live.ledger import RunLedger

T = TypeVar("T")


class Journal:
    """Recorded answers first, then new ones.

    Parameters
    ----------
    ledger : RunLedger
        Where answers are kept.
    on_read : callable
        Called before every recorded answer is given: a long record takes long.
    on_end : callable
        Called once, where the record has ended, before anything new is done.
    """

    def __init__(
        self,
        ledger: RunLedger,
        on_read: Callable[[], None] = lambda: None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self._ledger = ledger
        self._on_read, self._on_end = on_read, on_end
        self._recorded = ledger.answers()
        self._ahead = next(self._recorded, None)
        self._ended = False

    def ask(
        self,
        call: str,
        kind: type[T],
        live: Callable[[], T],
        *,
        unless: T | None = None,
        with_next: bool = False,
    ) -> T:
        """The recorded answer to a call; a new one, which is kept, where the record has ended.

        Parameters
        ----------
        kind : type
            Of the answer, made of numbers, text, lists, dataclasses and structs.
        live : callable
            Makes a new answer, in the transaction in which it is kept: its events are written there.
        unless : T, optional
            An answer that is not kept: nothing follows from it that lasts.
        with_next : bool
            Whether the answer, made outside of any transaction, is kept when something is written next: nothing is
            done about it before.

        Raises
        ------
        PolicyError
            If another call was recorded: the policy does not decide as it did.
        InputError
            If what was recorded is no such answer.
        """
        if self._ahead is None:
            self._end()
            with nullcontext() if with_next else self._ledger.transaction():
                answer = live()
                if unless is None or answer != unless:
                    keep = self._ledger.answer_with_next if with_next else self._ledger.answer
                    keep(call, msgspec.to_builtins(answer))
            return answer
        self._on_read()
        recorded, data = self._ahead
        self._ahead = next(self._recorded, None)
        if recorded != call:
            raise PolicyError(
                f"{self._ledger.path}: the record says {recorded!r}, but the policy now leads to {call!r}; "
                "resume with the program and parameters that began the run"
            )
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError as error:
            raise InputError(
                f"{self._ledger.path}: the answer to {call!r} is none: {error}; resume with the program "
                "that began the run"
            ) from error

    def act(self, live: Callable[[], object]) -> None:
        """Do what needs no answer, unless another driver did, as the record shows."""
        if self._ahead is None:
            self._end()
            live()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._on_end()
