"""Gandiva's programmes, their oracles, GAN-match, and what its tables say of interference."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError, SolverError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.interference import (
    Interference,
)
from shadowprice.instances.workload import Workload
from shadowprice.models.gandiva import Homes, Packings, packing
from shadowprice.proofs.certificate import verify
from shadowprice.proofs.gandiva import matching as gandiva_matching
from shadowprice.solvers.gandiva.exact import (
    best_packing,
    best_pairs,
    fewest_migrations,
    greedy_pairs,
    total,
)
from shadowprice.solvers.policy import Decision, State
from shadowprice.solvers.programs.compile import compile_model
from shadowprice.solvers.registry import policy

JOBS = 7


def gains() -> st.SearchStrategy[dict[tuple[int, int], float]]:
    """Gains of some pairs, in sixteenths so that sums are exact."""
    pairs = st.sampled_from(list(combinations(range(JOBS), 2)))
    return st.dictionaries(pairs, st.integers(-4, 16).map(lambda k: k / 16), max_size=21)


def best_by_hand(members: Sequence[tuple[int, ...]], gain: list[float]) -> float:
    """Largest gain of disjoint sets, by trying all."""
    if not members:
        return 0.0
    first, *rest = members
    skipped = best_by_hand(rest, gain[1:])
    free = [k for k, other in enumerate(rest) if set(first).isdisjoint(other)]
    taken = gain[0] + best_by_hand([rest[k] for k in free], [gain[1 + k] for k in free])
    return max(skipped, taken)


@settings(max_examples=35)
@given(gains())
def test_matching_and_programme_agree_and_greedy_has_half(
    values: dict[tuple[int, int], float],
) -> None:
    members, gain = list(values), list(values.values())
    by_matching = total(values, best_pairs(values))
    chosen = best_packing(Packings(JOBS, tuple(members), tuple(gain)))
    by_programme = sum(values[one, other] for one, other in chosen)
    assert by_matching == by_programme == best_by_hand(members, gain)
    assert gandiva_matching.check(values, greedy_pairs(values))
    assert total(values, greedy_pairs(values)) >= gandiva_matching.bound(values)
    for pairs in (best_pairs(values), chosen, greedy_pairs(values)):
        used = [job for pair in pairs for job in pair]
        assert len(used) == len(set(used))


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.sets(st.integers(0, 5), min_size=2, max_size=4).map(lambda s: tuple(sorted(s))),
        st.integers(-2, 9),
        max_size=9,
    )
)
def test_sets_of_more_than_two(values: dict[tuple[int, ...], int]) -> None:
    members, gain = list(values), [float(v) for v in values.values()]
    packings = Packings(6, tuple(members), tuple(gain))
    chosen = best_packing(packings)
    assert sum(values[one] for one in chosen) == best_by_hand(members, gain)
    if members:
        relaxed = compile_model(packing(packings, relaxed=True)).solve()
        assert relaxed.objective >= best_by_hand(members, gain) - 1e-9


@pytest.mark.parametrize("paths", [1, 5])
def test_half_is_tight(paths: int) -> None:
    family = gandiva_matching.tight_family(paths, 2.0**-20)
    ratio = total(family, greedy_pairs(family)) / total(family, best_pairs(family))
    assert ratio == (1 + 2.0**-20) / 2


def test_wrong_packings_are_reported() -> None:
    for members, gain, what in (
        (((0, 0),), (1.0,), "two or more different"),
        (((0, 3),), (1.0,), "of 0 to 2"),
        (((0, 1),), (), "expected as many"),
        (((0, 1),), (float("nan"),), "expected a number"),
    ):
        with pytest.raises(InputError, match=what):
            Packings(3, members, gain)
    with pytest.raises(InputError, match="hold 5 GPUs, expected at most 4"):
        Homes((4,), (2, 3), (0, 0))
    with pytest.raises(InputError, match="job 0 has 2 GPUs on server 1"):
        Homes((4,), (2,), (1,))
    with pytest.raises(InputError, match="expected as many"):
        Homes((4,), (2,), ())


def fewest_by_hand(homes: Homes, fragmented: Fraction | None) -> int | None:
    """Fewest migrations, by trying all placements."""
    best = None
    for node in product(range(len(homes.size)), repeat=len(homes.gang)):
        load = [0] * len(homes.size)
        for gang, where in zip(homes.gang, node, strict=True):
            load[where] += gang
        if any(used > size for used, size in zip(load, homes.size, strict=True)):
            continue
        if fragmented is not None and any(
            used and size - used >= fragmented * size
            for used, size in zip(load, homes.size, strict=True)
        ):
            continue
        moved = sum(
            before not in (-1, after) for before, after in zip(homes.node, node, strict=True)
        )
        best = moved if best is None else min(best, moved)
    return best


@st.composite
def homes(draw: st.DrawFn) -> Homes:
    """Up to six gangs on up to three servers, some waiting."""
    size = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    gang = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    left, node = list(size), []
    for gpus in gang:
        where = draw(st.integers(-1, len(size) - 1))
        where = where if where >= 0 and left[where] >= gpus else -1
        if where >= 0:
            left[where] -= gpus
        node.append(where)
    return Homes(tuple(size), tuple(gang), tuple(node))


@settings(max_examples=35)
@given(homes(), st.sampled_from([None, Fraction(3, 4), Fraction(1, 2), Fraction(1, 3)]))
def test_fewest_migrations(given_homes: Homes, fragmented: Fraction | None) -> None:
    best = fewest_by_hand(given_homes, fragmented)
    if best is None:
        with pytest.raises(SolverError):
            fewest_migrations(given_homes, fragmented=fragmented)
        return
    node = fewest_migrations(given_homes, fragmented=fragmented)
    pairs = zip(given_homes.node, node, strict=True)
    assert sum(before not in (-1, after) for before, after in pairs) == best


def test_the_policy_clears_a_server_with_as_few_migrations() -> None:
    """One job on each of three servers of 4: two moves make two of them idle."""
    work = [2000.0, 2000.0, 2000.0, 90.0, 90.0, 90.0]
    gang = [1, 1, 1, 3, 3, 3]
    order = [0, 3, 1, 4, 2, 5]
    workload = Workload.from_columns(
        arrival_s=[0.0] * 6, gpus=[gang[k] for k in order], work=[work[k] for k in order]
    )
    instance = Instance(Cluster.parse("3x4"), workload)
    schedule = run(instance, policy("gandiva:idle_quanta=0")).schedule
    verify(instance, schedule)
    runs = {
        job: schedule.node[schedule.job == job].tolist()
        for job in range(6)
        if workload.gpus[job] == 1
    }
    start = tuple(nodes[0] for nodes in runs.values())
    best = fewest_migrations(Homes((4, 4, 4), (1, 1, 1), start), fragmented=Fraction(3, 4))
    fewest = sum(a != b for a, b in zip(start, best, strict=True))
    moves = sum(len(nodes) - 1 for nodes in runs.values())
    assert moves == fewest


class Careless:
    """Lets every job that waits share GPUs, whatever that does."""

    name = "careless"
    knows = frozenset()  # type: ignore[var-annotated]
    preemptive = False

    def decide(self, state: State) -> Decision:
        decision = Decision(state)
        for job in list(state.waiting):
            if not any(decision.join(job, host) for host in list(state.running)):
                decision.start(job)
        return decision


def test_the_check_of_introspection_finds_a_pair_that_hurts() -> None:
    workload = Workload.from_columns(
        arrival_s=[0.0, 1.0], gpus=1, work=[500.0, 500.0], model=["ResNeXt-50", "ResNet-50"]
    )
    cluster = Cluster.parse("1x1")
    instance = Instance(cluster, workload, sharing_rates=Interference().of(workload, cluster))
    careless = run(instance, Careless()).schedule
    verify(instance, careless)
    assert not gandiva_matching.check_introspection(instance, careless, 60.0)
    careful = run(instance, policy("gandiva")).schedule
    assert gandiva_matching.check_introspection(instance, careful, 60.0)
