"""The adversary that settles run times last: what it forces on policies that are not told them, and the theorem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from shadowprice.analysis.adversary.hidden_times import ForcedRatio, force_completion, force_flow
from shadowprice.analysis.adversary.search import SHORTEST, recheck
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.hard_instances import HardInstance
from shadowprice.proofs.classic import nonclairvoyant
from shadowprice.solvers.list_scheduling import serve_in_order
from shadowprice.solvers.policy import Decision, Knowledge, State

UNTOLD = ("las:quantum_s=60", "las2d", "fifo", "gandiva", "msf")
"""Of each kind: equal shares, queues, in order, time slicing, widest first."""


@pytest.mark.parametrize("policy", UNTOLD)
@pytest.mark.parametrize("force", [force_completion, force_flow])
def test_no_policy_escapes(force: Callable[..., ForcedRatio], policy: str) -> None:
    jobs = {"jobs": 5} if force is force_completion else {"first": 3}
    forced = force(policy, horizon_s=9_000.0, **jobs)
    hard = forced.worst.hard
    assert forced.ratio >= forced.proven > 0
    assert hard.witness_is == SHORTEST
    assert nonclairvoyant.check(hard.instance, hard.policy_cost_s, forced.ratio)
    assert not nonclairvoyant.check(
        hard.instance, hard.policy_cost_s, forced.ratio + Fraction(1, 10**9)
    )
    # It is a hard instance like others: from its file, without the adversary.
    again = recheck(HardInstance.from_json(hard.to_json(), "forced.json"))
    assert again.ratio == forced.ratio


def test_equal_shares_attain_what_is_proven() -> None:
    """TIR-las (a): with quanta that divide T their ratio is no more than the least there can be."""
    for jobs in (2, 4, 9):
        forced = force_completion("las:quantum_s=10", jobs, 360.0 * jobs)
        assert 2 - Fraction(2, jobs + 1) > forced.proven
        assert forced.proven <= forced.ratio < 2 - Fraction(2, jobs + 1)
        assert forced.proven > 2 - Fraction(2, jobs + 1) - Fraction(1, 10**6)


def test_flow_grows_with_the_number_of_jobs() -> None:
    ratios = [force_flow("las:quantum_s=60", first, 60.0 * 60).ratio for first in (3, 5)]
    assert ratios[1] > ratios[0] > Fraction(3, 2)
    # The theorem's own: about k / 3 of k^3 jobs.
    bounds = [
        nonclairvoyant.flow_bound(k, k**2 * (k - 1), Fraction(k * (k - 1)), Fraction(1))
        for k in (10, 100, 1000)
    ]
    assert [round(float(bound), 1) for bound in bounds] == [2.9, 32.9, 332.9]


@dataclass(frozen=True)
class Longest:
    """The longest first: it is told run times, and may say that it is not."""

    name: str = "longest"
    knows: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.DURATION})
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Serve by the work that is left, most first."""
        return serve_in_order(state, lambda jobs: (-jobs.remaining_s).argsort(kind="stable"))


@dataclass(frozen=True)
class Counting:
    """Serves the last job first in all runs but its first: what it does does not follow from the jobs."""

    runs: list[int]
    name: str = "counting"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = True

    def decide(self, state: State) -> Decision:
        """Serve in order of rows, from the first or from the last."""
        if state.now_s == 0:
            self.runs.append(0)
        sign = 1 if len(self.runs) == 1 else -1
        return serve_in_order(state, lambda jobs: np.arange(len(jobs.arrival_s))[::sign])


def test_policies_that_are_told_are_refused() -> None:
    for policy in ("srtf", "asrpt", "gittins2d", Longest()):
        with pytest.raises(InputError, match=r"knows .*, expected a nonclairvoyant policy"):
            force_completion(policy)
    with pytest.raises(VerificationError, match="does something else until 600 s"):
        force_completion(Counting([]), 3, 600.0)


def test_numbers_out_of_range_are_refused() -> None:
    for jobs in (1, 101):
        with pytest.raises(InputError, match=f"{jobs} jobs, expected 2 to 100"):
            force_completion("las", jobs)
    with pytest.raises(InputError, match="2 jobs, expected 3 to 100"):
        force_flow("las", 2)
    with pytest.raises(InputError, match="horizon_s"):
        force_flow("las", 3, -1.0)
    with pytest.raises(InputError, match="three jobs or more"):
        nonclairvoyant.flow_times([0, 1, 0])


def test_run_times_are_those_of_the_proof() -> None:
    """All but one of the first are complete by T when served shortest first, and k r of work is left for others."""
    for attained in product((0, 3, 8, 20), repeat=4):
        horizon = sum(attained)
        if max(attained) < 3:
            continue
        times, rest = nonclairvoyant.flow_times(attained)
        assert sum(times) - max(times) <= horizon
        assert sum(times) - horizon == 4 * rest
        assert nonclairvoyant.completion_times(attained, 2) == [each + 2 for each in attained]


def every_rule(samples: tuple[int, ...]) -> Fraction:
    """Least expected total of two jobs over all rules that decide at whole times, by trying all of them.

    A rule is where it goes after each history of what the jobs have attained and who is complete.
    """

    def worth(done: tuple[int | None, ...], alive: list[tuple[int, ...]]) -> Fraction:
        live = [k for k, each in enumerate(done) if each is not None]
        if not live:
            return Fraction(0)
        options = []
        for served in live:
            attained = done[served]
            assert attained is not None
            ends = [times for times in alive if times[served] == attained + 1]
            stays = [times for times in alive if times[served] > attained + 1]
            cost = Fraction(len(live))
            for chosen, then in ((ends, None), (stays, attained + 1)):
                if chosen:
                    after = (*done[:served], then, *done[served + 1 :])
                    cost += Fraction(len(chosen), len(alive)) * worth(after, chosen)
            options.append(cost)
        return min(options)

    return worth((0, 0), list(product(samples, repeat=2)))


@pytest.mark.parametrize("samples", [(1, 2), (1, 1, 4), (1, 2, 5)])
def test_the_least_of_random_run_times_is_that_of_all_rules(samples: tuple[int, ...]) -> None:
    pairs = list(product(samples, repeat=2))
    optimum = Fraction(sum(sum(pair) + min(pair) for pair in pairs), len(pairs))
    assert nonclairvoyant.random_bound(2, samples) == every_rule(samples) / optimum > 1


def test_random_run_times_like_the_exponential_come_close_to_its_bound() -> None:
    """Quantiles of the geometric distribution of mean 2, which forgets as the exponential does."""
    halves = (1, 1, 1, 1, 2, 2, 3, 4)
    found = [nonclairvoyant.random_bound(jobs, halves) for jobs in (2, 3, 4)]
    assert found == [Fraction(72, 65), Fraction(48, 41), Fraction(40, 33)]
    for jobs, ratio in zip((2, 3, 4), found, strict=True):
        assert 1 < ratio < nonclairvoyant.exponential_bound(jobs)
    assert nonclairvoyant.exponential_bound(1) == 1
    assert nonclairvoyant.exponential_bound(10**6) > Fraction(19999, 10**4)
