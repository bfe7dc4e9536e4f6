"""One thread for small linear algebra, and the user's number everywhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from shadowprice.instances.allocation_problem import AllocationProblem
from shadowprice.solvers.gavel import crossing
from shadowprice.solvers.gavel.allocate import allocate
from shadowprice.solvers.gavel.allocation import Allocation
from shadowprice.solvers.gavel.workspace import Workspace
from shadowprice.solvers.programs.structure import block_arrow as newton
from shadowprice.solvers.threads import one_blas_thread

USERS = 2


def threads() -> set[int]:
    """Numbers of threads of the libraries of linear algebra."""
    return {each["num_threads"] for each in ThreadpoolController().select(user_api="blas").info()}


@pytest.fixture(autouse=True)
def of_the_user() -> Iterator[None]:
    """A user who set two threads."""
    with threadpool_limits(USERS, user_api="blas"):
        if threads() != {USERS}:
            pytest.skip("the library of linear algebra does not let its threads be set")
        yield


def problem(jobs: int) -> AllocationProblem:
    rng = np.random.default_rng(jobs)
    return AllocationProblem.from_columns(
        gpu_types=["v100", "p100", "k80"],
        capacity=[1 + jobs // 16] * 3,
        throughput=rng.uniform(1.0, 9.0, (jobs, 3)),
        steps=rng.uniform(1e3, 1e5, jobs),
    )


@dataclass
class Seen:
    """A function that notes how many threads there are when it is called."""

    function: Any
    numbers: list[set[int]] = field(default_factory=list)

    def __call__(self, *values: Any, **named: Any) -> Any:
        self.numbers.append(threads())
        return self.function(*values, **named)


def test_one_inside_and_the_users_number_after() -> None:
    with one_blas_thread:
        assert threads() == {1}
        with one_blas_thread:
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {USERS}


def test_a_failure_restores_it() -> None:
    @one_blas_thread
    def fails() -> None:
        assert threads() == {1}
        raise ValueError("singular")

    with pytest.raises(ValueError, match="singular"):
        fails()
    assert threads() == {USERS}


def test_contexts_that_overlap_in_threads() -> None:
    """Who came first restores the user's number on leaving, though another one is still inside."""
    entered, left = threading.Event(), threading.Event()

    def second() -> None:
        with one_blas_thread:
            entered.set()
            left.wait(10)

    other = threading.Thread(target=second)
    with one_blas_thread:
        other.start()
        assert entered.wait(10)
        assert threads() == {1}
    assert threads() == {USERS}
    left.set()
    other.join(10)
    assert threads() == {USERS}
    with one_blas_thread:
        assert threads() == {1}
    assert threads() == {USERS}


@pytest.mark.parametrize(
    ("module", "function", "policy"),
    [
        (newton.np.linalg, "solve", "max_min_fairness:aware=true"),
        (newton.np.linalg, "solve", "water_filling:aware=true"),
        (crossing, "brentq", "finish_time_fairness:aware=true"),
    ],
)
def test_kernels_have_one_thread(
    module: Any, function: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = problem(300)
    seen = Seen(getattr(module, function))
    monkeypatch.setattr(module, function, seen)
    allocate(given, policy)
    assert seen.numbers
    assert set.union(*seen.numbers) == {1}
    assert threads() == {USERS}


def test_a_policy_of_ones_own_keeps_the_users_threads() -> None:
    @dataclass(frozen=True)
    class Mine:
        name: str = "mine"
        needs_steps: bool = False

        def allocate(self, problem: AllocationProblem, workspace: Workspace) -> Allocation:
            numbers.append(threads())
            shares = np.zeros(problem.throughput.shape)
            return Allocation(self.name, problem, shares, np.zeros((0, shares.shape[1])))

    numbers: list[set[int]] = []
    allocate(problem(8), Mine())
    assert numbers == [{USERS}]


def test_the_solver_keeps_the_users_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(Workspace.solve)
    monkeypatch.setattr(Workspace, "solve", lambda *values, **named: seen(*values, **named))
    allocate(problem(20), "max_sum_throughput:aware=true")
    assert seen.numbers
    assert set.union(*seen.numbers) == {USERS}
