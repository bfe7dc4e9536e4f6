"""One thread for linear algebra that is too small to share.

OpenBLAS starts its threads for a product of a vector and a table of some ten thousand numbers, and
threads that wait for the next one spin: an interior-point method over 8,192 jobs then costs two to
ten times the CPU time, and is no faster. Who works on small tables many times over says so::

    @one_blas_thread
    def solve(...): ...

Elsewhere the number of threads is the user's, and it is again when the last such function ends.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache
from threading import Lock, get_ident
from types import TracebackType
from typing import Any


class OneBlasThread(ContextDecorator):
    """Context, or decorator, in which the libraries of linear algebra use one thread.

    Most libraries have one number of threads for the whole process, which may be set and restored
    by one Python thread only, or the last to leave could restore what another had set. So the
    first one in sets it and restores it; contexts inside its own change nothing, nor do those that
    others enter meanwhile. Entering and leaving takes some 15 microseconds.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner: int | None = None
        self._depth = 0
        self._limits: AbstractContextManager[object] = nullcontext()

    def __enter__(self) -> None:
        with self._lock:
            if self._owner is None:
                self._limits = _libraries().limit(limits=1)
                self._limits.__enter__()
                self._owner = get_ident()
            if self._owner == get_ident():
                self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        with self._lock:
            if self._owner != get_ident():
                return
            self._depth -= 1
            if self._depth == 0:
                self._owner = None
                self._limits.__exit__(kind, error, where)


one_blas_thread = OneBlasThread()
"""The one context of the process."""


@cache
def _libraries() -> Any:
    """The libraries of linear algebra that are loaded, NumPy's among them; found once, in 2 ms."""
    import numpy as np  # noqa: F401 -- loads its library
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
