"""Score of a policy by its name, file or command: sealed, on a suite by its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from shadowprice.errors import InputError
from shadowprice.execution.sealed.limits import ProcessLimits
from shadowprice.execution.sealed.policy import SealedPolicy
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.entry import read_about
from shadowprice.library.score.evaluation import Score, evaluate
from shadowprice.library.score.pinned import pinned_bounds, stored_bound
from shadowprice.library.score.suites import OBJECTIVE, ScoredInstance, Suite, suite_named

LIMITS = ProcessLimits(decision_s=10.0, start_s=60.0, cpu_s=900, memory_mb=8192)
"""Limits of a policy's process; what exceeds one is lost."""

SEARCH_LIMITS = replace(LIMITS, cpu_s=36_000)
"""Those of a process that serves the thousands of runs of laws and adversary."""

MOST_SEED = 2**31
"""Seeds are below it."""


def score(
    policy: str | Sequence[str],
    suite: str | Suite = "v1-online",
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Score:
    """Score a policy, whose code runs sealed in a process of its own.

    Parameters
    ----------
    policy : str or sequence of str
        A policy's name, ``mine.py:Own`` for one of a file, or a command that speaks the protocol of sealed policies.
    suite : str or Suite
    seed : int
        Of the instances that are drawn.
    progress : callable
        Told of each step.

    Raises
    ------
    InputError
        If there is no such policy or suite, or the seed is out of range.
    PolicyError
        If the policy's process does not start.
    """
    if not 0 <= seed < MOST_SEED:
        raise InputError(f"score: seed is {seed}, expected 0 to {MOST_SEED - 1}")
    chosen = suite_named(suite) if isinstance(suite, str) else suite
    progress("the policy's process")
    with ExitStack() as processes:
        acting = processes.enter_context(SealedPolicy(policy, LIMITS))
        searched = None
        if chosen.families or chosen.law_examples:
            searched = processes.enter_context(
                SealedPolicy(policy, SEARCH_LIMITS, fresh_runs=False)
            )
        progress("instances")
        instances = suite_instances(chosen, seed)
        return evaluate(acting, chosen, instances, seed, progress, searched=searched)


def suite_instances(suite: Suite, seed: int) -> tuple[ScoredInstance, ...]:
    """Instances of a suite, those that a seed draws last."""
    fixed = [fixed_instance(name) for name in suite.fixed]
    return (*fixed, *(law.draw(seed) for law in suite.drawn))


def fixed_instance(name: str) -> ScoredInstance:
    """An instance of the library with its pinned bound, and the best that is known now.

    Raises
    ------
    InputError
        If it has no pinned bound, or the bound is of another instance.
    """
    which, pinned = library_instance(name), pinned_bounds().get(name)
    if pinned is None or pinned.digest != which.digest:
        digest = "none" if pinned is None else pinned.digest
        raise InputError(
            f"instance {name!r}: its bound is of SHA-256 {digest}, expected {which.digest}"
        )
    about = read_about(name, OBJECTIVE)
    best = None if about is None else about.schedule.exact
    return ScoredInstance(name, which.instance(), False, stored_bound(pinned), best)
