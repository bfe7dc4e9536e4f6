"""Hypothesis: the same examples in every run, and a random search by HYPOTHESIS_PROFILE=nightly.

Each property draws from a generator seeded with its own name, so that the examples depend neither
on the order of the tests nor on other tests. The nightly search repeats each property with other
seeds, made from one that is printed at the top: SEED=that one repeats the search. A failure prints
the example and a ``@reproduce_failure`` that repeats it alone; it stays in the tests as an
``@example``.
"""

from __future__ import annotations

import gc
import inspect
import os
import secrets
import time
from collections.abc import Generator
from functools import cache
from pathlib import Path

import matplotlib as mpl
import pytest
import typer.main
import typer.testing
from hypothesis import HealthCheck, is_hypothesis_test, seed, settings

mpl.use("Agg")
# What helpers assert is explained as what tests assert.
pytest.register_assert_rewrite("support")
# The program's groups of commands are built once in a process, and not for each of hundreds of calls.
typer.main.get_command = cache(typer.main.get_command)
typer.testing._get_command = typer.main.get_command

settings.register_profile(
    "dev",
    max_examples=20,
    deadline=None,
    derandomize=True,
    print_blob=True,
    # Depends on what else the machine does.
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("dev"), derandomize=False)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
settings.load_profile(PROFILE)

SEARCHING = PROFILE == "nightly"
# How often the nightly search repeats a property, 2,400 examples for most, and how long at most:
# some 400 properties on 2 cores are then done within 75 minutes, and the slow tests in the others.
REPETITIONS = 120
SEARCH_S = 45.0


def pytest_configure(config: pytest.Config) -> None:
    if SEARCHING:  # here and in the processes that pytest-xdist starts
        os.environ.setdefault("SEED", str(secrets.randbelow(1 << 32)))


def pytest_report_header(config: pytest.Config) -> list[str]:
    repeat = f"`make nightly SEED={os.environ.get('SEED')}` repeats this search"
    return [repeat] if SEARCHING else []


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, and never again look at what is there from then on.

    Modules and thousands of tests are no garbage: looking at them took a tenth of all time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        # Tests leave little garbage, and what they leave is small: to look for it often costs more.
        gc.set_threshold(20_000, 20, 20)


def own_name(item: pytest.Function) -> str:
    """Name of a property, in which its folder does not count: files may move."""
    path, _, rest = item.nodeid.partition("::")
    return f"tests/{Path(path).name}::{rest}"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    test = pyfuncitem.obj
    if not is_hypothesis_test(test):
        return (yield)
    function = getattr(test, "__func__", test)
    first = os.environ["SEED"] if SEARCHING else ""
    began = time.monotonic()
    name = own_name(pyfuncitem)
    seed(f"{first} {name}")(function)
    result = yield
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    for repetition in range(1, REPETITIONS if SEARCHING else 1):
        if time.monotonic() - began > SEARCH_S:
            break
        seed(f"{first} {name} {repetition}")(function)
        test(**arguments)
    return result
