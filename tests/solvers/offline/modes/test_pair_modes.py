"""Bounds in which two jobs that share GPUs count by what they gain: below all schedules, exact where they should be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.analysis.bounds import bounds_of, certified_bounds
from shadowprice.analysis.certificates.effort import BoundEffort
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.grid import TICKS_PER_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.objective import Objective
from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.workload import Workload
from shadowprice.proofs.lower_bounds import pairs as lb_pair
from shadowprice.solvers.offline.modes.pairs import allowed_parts, pair_modes, raised
from support.gandiva_runs import pair_table
from support.mode_bounds import never_above
from support.mode_instances import sharing
from support.slotted_placements import least_placed_costs


def instance_of(
    cluster: str,
    models: str,
    gpus: list[int],
    work: list[float],
    pairs: Throughputs,
    **more: object,
) -> Instance:
    columns = {"arrival_s": [0.0] * len(gpus), **more}
    jobs = Workload.from_columns(gpus=gpus, work=work, model=list(models), **columns)
    return Instance(Cluster.parse(cluster), jobs, sharing_rates=pairs)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_never_above_exhaustive_search(data: st.DataObject) -> None:
    instance = data.draw(sharing(2))
    start = data.draw(st.integers(0, 1))
    _compare(instance, least_slots=7, start=start, data=data)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_three_jobs_never_above_exhaustive_search(data: st.DataObject) -> None:
    _compare(data.draw(sharing(3)), least_slots=9, start=0, data=data)


def _compare(instance: Instance, *, least_slots: int, start: int, data: st.DataObject) -> None:
    least = least_placed_costs(instance, least_slots, start_slots=start)
    jobs = pair_modes(instance)
    if jobs is not None:
        never_above(jobs, least, data)


def test_jobs_that_gain_little_count_nearly_in_full() -> None:
    """Two small jobs gain by sharing; the work is nearly all of kinds that do not, and the bound knows it."""
    pairs = pair_table({("a", "a"): (1.0, 1.0), ("b", "b"): (0.5, 0.5), ("a", "b"): (0.5, 0.5)})
    models, work = "aa" + "b" * 8, [2.0, 2.0, *[10.0] * 8]
    instance = instance_of("1x2", models, [1] * 10, work, pairs)
    found = {
        bound.kind: bound.value_s
        for bound in bounds_of(instance, Objective.MAKESPAN, BoundEffort(0))
    }
    # Two a on one GPU take 2 s together, eight b 40 s on each of two: 82 s of two GPUs.
    assert found["priced-span-of-pairs"] == pytest.approx(41, rel=1e-4)
    assert found["priced-span-of-pairs"] <= 41
    assert found["area"] == pytest.approx(84 / 4, rel=1e-4)
    again = certified_bounds(instance, (Objective.FLOW,), BoundEffort.of_size(2000))[Objective.FLOW]
    assert again.kind.endswith("-of-pairs")
    assert (
        again
        == certified_bounds(instance, (Objective.FLOW,), BoundEffort.of_size(2000))[Objective.FLOW]
    )


def test_partners_that_gain_unequally() -> None:
    """Beside b, a keeps all of its speed and b half: the pair brings in 1.5, and ten of each take 20 / 1.5 or more."""
    pairs = pair_table({("a", "b"): (1.0, 0.5)})
    instance = instance_of("1x1", "ab" * 10, [1] * 20, [1.0] * 20, pairs)
    found = {
        bound.kind: bound.value_s
        for bound in bounds_of(instance, Objective.MAKESPAN, BoundEffort(0))
    }
    # Ten seconds of all pairs leave five of b to do alone.
    assert found["priced-span-of-pairs"] == pytest.approx(15, rel=1e-4)
    assert found["area"] == pytest.approx(20 / 1.5, rel=1e-4)


@given(data=st.data())
def test_raised_parts_are_allowed_and_no_smaller_than_allowed_ones(data: st.DataObject) -> None:
    kinds = data.draw(st.integers(1, 4))
    share = st.fractions(Fraction(1, 8), 1, max_denominator=8)
    shares = {
        (c, d): (data.draw(share), data.draw(share))
        for c in range(kinds)
        for d in range(c, kinds)
        if data.draw(st.booleans())
    }
    parts = [data.draw(st.fractions(0, 1, max_denominator=8)) for _ in range(kinds)]
    found = raised(parts, shares, data.draw(st.permutations(range(kinds))))
    assert allowed_parts(found, shares)
    if allowed_parts(parts, shares):
        assert all(a >= b for a, b in zip(found, parts, strict=True))
    for c in range(kinds):
        more = [part + Fraction(1, 1000) * (k == c) for k, part in enumerate(found)]
        assert found[c] == 1 or not allowed_parts(more, shares)


def test_no_bound_of_pairs_where_nobody_shares() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 1], work=[1, 1])
    instance = Instance(Cluster.parse("1x2"), jobs)
    assert pair_modes(instance) is None
    with pytest.raises(ValueError, match="no two jobs may share"):
        lb_pair.bound(instance, (1,))


def test_work_of_less_than_a_tick_takes_a_tick_beside_another_too() -> None:
    pairs = pair_table({("a", "a"): (0.5, 0.5)})
    work, alone = [0.2 / TICKS_PER_S] * 2, {"throughput": [[1.0]] * 2, "gpu_types": ("gpu",)}
    instance = instance_of("1x1:gpu", "aa", [1, 1], work, pairs, **alone)
    jobs = pair_modes(instance)
    assert jobs is not None
    assert np.asarray(jobs.use, dtype=float).max() <= 2**19
    assert lb_pair.check(instance, Fraction(2, TICKS_PER_S), (1,) * len(jobs.capacity))
