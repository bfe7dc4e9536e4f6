"""Decorators of compiled functions."""

from __future__ import annotations

from numba import njit

# The loop allocates nothing. Without reference counts of its arrays, which are passed to every function, it
# is ten times as fast.
OPTIONS = {"_nrt": False, "no_cfunc_wrapper": True}
# Python calls one function only; code that lets it call the others would double the time to compile.
_INNER = {**OPTIONS, "no_cpython_wrapper": True}

inlined = njit(**_INNER, forceinline=True)
"""Compiles a function into those that call it: a call hands over all arrays, more than a hundred words."""

apart = njit(**_INNER)
"""Compiles a function that is called at most once a decision, or seldom, by itself: that takes less time."""
