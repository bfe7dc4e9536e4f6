"""What Gandiva tries: kept if the measured rates say so, taken back if not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from shadowprice.instances.speeds.throughputs import Throughputs
from shadowprice.instances.terms.spread import Locality
from shadowprice.instances.terms.widths import Elasticity
from shadowprice.proofs.gandiva.matching import check_introspection, spells
from shadowprice.solvers.gandiva.gandiva import Gandiva
from shadowprice.solvers.gandiva.measured_rates import MeasuredRates
from shadowprice.solvers.gandiva.units import Unit
from support.gandiva_runs import (
    QUANTUM_S,
    REACTIVE,
    TYPES,
    done,
    ends,
    instance_of,
    pair_table,
    rows_of,
)


@pytest.mark.parametrize(("share", "kept"), [(0.4, False), (0.5, False), (0.51, True), (0.9, True)])
def test_a_packing_is_kept_if_it_beats_turns(share: float, kept: bool) -> None:
    together = pair_table({("a", "a"): (share, share)})
    jobs = [(0.0, 1, 1000.0), (0.0, 1, 1000.0)]
    schedule = done(instance_of("1x1", jobs, sharing_rates=together, model="a"))
    shared_s = [
        spell.end_s - spell.start_s
        for spell in spells(instance_of("1x1", jobs, sharing_rates=together, model="a"), schedule)
    ]
    if kept:
        assert sum(shared_s) > 10 * QUANTUM_S
        assert max(ends(schedule)) < 2000
    else:
        assert shared_s == [QUANTUM_S]


def test_a_kind_that_hurts_is_not_tried_again_by_others() -> None:
    together = pair_table({("a", "a"): (0.3, 0.3), ("a", "b"): (0.9, 0.9)})
    jobs = [(0.0, 1, 400.0)] * 4
    instance = instance_of("1x1", jobs, sharing_rates=together, model="a")
    assert len(list(spells(instance, done(instance)))) == 1
    mixed = instance_of("1x1", jobs, sharing_rates=together, model=["a", "a", "a", "b"])
    found = list(spells(mixed, done(mixed)))
    assert sum(spell.gain < 1 for spell in found) == 1
    assert any(spell.gain > 1 for spell in found)


def test_two_jobs_that_hurt_each_other_are_tried_once() -> None:
    """Also where others of their kind gain, on GPUs of a type that seems to be the same."""
    hurts = pair_table({("a", "a"): (0.3, 0.3)}, types=("slow",)).pairs
    gains = pair_table({("a", "a"): (0.9, 0.9)}, types=("fast",)).pairs
    for cluster in ("1x1:fast,1x1:slow", "1x1:slow,1x1:fast"):
        instance = instance_of(
            cluster,
            [(0.0, 1, 3000.0)] * 5,
            sharing_rates=Throughputs(TYPES, {}, {**hurts, **gains}),
            model="a",
        )
        bad = [spell.jobs for spell in spells(instance, done(instance)) if spell.gain < 1]
        assert len(bad) == len(set(bad)) > 0


def test_a_pair_that_moves_is_measured_again() -> None:
    """Kept on the fast GPU, it is driven from it at 360 s, and starts on the slow one at 401 s."""
    table = {
        **pair_table({("a", "a"): (0.9, 0.9)}, types=("fast",)).pairs,
        **pair_table({("a", "a"): (0.3, 0.3)}, types=("slow",)).pairs,
    }
    jobs = [(0.0, 1, 2000.0), (1.0, 1, 400.0), (2.0, 1, 2000.0), (300.0, 1, 1000.0)]
    instance = instance_of(
        "1x1:fast,1x1:slow",
        jobs,
        sharing_rates=Throughputs(TYPES, {}, table),
        model=["a", "b", "a", "b"],
        weight=[1.0, 2.0, 1.0, 2.0],
    )
    schedule = done(instance)
    found = [(spell.start_s, spell.end_s) for spell in spells(instance, schedule) if spell.gain < 1]
    assert found == [(401.0, 401.0 + QUANTUM_S)]
    assert check_introspection(instance, schedule, QUANTUM_S)


def test_what_unknown_pairs_promise_is_judged_by_what_others_kept() -> None:
    """Nothing known: 2. After a trial of a and b, both lend their shares to other pairs."""
    state = SimpleNamespace(
        gang=[1, 1, 1],
        columns=lambda jobs: SimpleNamespace(
            model=np.array([["a", "b", "c"][job] for job in jobs])
        ),
    )
    place = (0, 1, 1)
    measured = MeasuredRates({0: 0.9, 1: 0.3}, {0: {place: 1.0}, 1: {place: 1.0}})
    measured.admit(state, [0, 1, 2])  # type: ignore[arg-type]
    assert measured.promise(place, ("a", 1), ("c", 1)) == 2.0
    pair = Unit([0, 1], 1, [1.0, 1.0], 0.0, ((0, 1),))
    measured.learn(SimpleNamespace(pool=[0]), pair)  # type: ignore[arg-type]
    assert measured.promise(place, ("a", 1), ("c", 1)) == 1.9
    assert measured.promise(place, ("c", 1), ("b", 1)) == 1.3
    assert measured.promise(place, ("b", 1), ("a", 1)) == pytest.approx(1.2)
    assert not measured.hurts(place, ("a", 1), ("b", 1))


def test_a_pair_parts_when_there_are_gpus_for_both() -> None:
    together = pair_table({("a", "a"): (0.7, 0.7), ("b", "b"): (0.1, 0.1)})
    jobs = [(0.0, 1, 2000.0), (0.0, 1, 2000.0), (0.0, 1, 300.0)]
    instance = instance_of("1x2", jobs, sharing_rates=together, model=["a", "a", "b"])
    schedule = done(instance)
    last = max(spell.end_s for spell in spells(instance, schedule))
    assert last == ends(schedule)[2]


def test_a_spread_job_is_put_on_one_server_when_there_is_room() -> None:
    jobs = [(0.0, 3, 100.0), (0.0, 3, 1000.0), (1.0, 2, 600.0)]
    locality = Locality(np.array([1.0, 1.0, 0.5]))
    instance = instance_of("2x4", jobs, locality=locality)
    schedule = done(instance)
    assert [where for _, _, where in rows_of(schedule, 2)] == [((0, 1), (1, 1)), ((0, 2),)]
    assert rows_of(done(instance, REACTIVE), 2) == rows_of(schedule, 2)
    stays = done(instance, Gandiva(locality=False))
    assert ends(schedule)[2] < ends(stays)[2]


def test_a_move_to_slower_gpus_is_taken_back() -> None:
    """Two fast GPUs on two servers beat two slow ones on one: 3.6 against 1 work/s."""
    instance = instance_of(
        "2x1:fast,1x2:slow",
        [(0.0, 2, 90.0), (1.0, 2, 4000.0)],
        locality=Locality(np.array([1.0, 0.9])),
        throughput=[[0.0, 1.0], [4.0, 1.0]],
        gpu_types=TYPES,
    )
    apart, together = ((0, 1), (1, 1)), ((2, 2),)
    assert [(start, where) for start, _, where in rows_of(done(instance), 1)] == [
        (1.0, apart),
        (90.0, together),
        (90.0 + QUANTUM_S, apart),
    ]


def test_the_emptiest_server_is_cleared() -> None:
    jobs = [(0.0, 2, 2000.0), (0.0, 2, 90.0), (1.0, 1, 2000.0)]
    schedule = done(instance_of("2x4", jobs))
    assert [where for _, _, where in rows_of(schedule, 2)] == [((1, 1),), ((0, 1),)]
    stays = done(instance_of("2x4", jobs), Gandiva(defragmentation=False))
    assert len(rows_of(stays, 2)) == 1


def test_a_job_grows_onto_idle_gpus_and_shrinks_at_once() -> None:
    """Grown after two idle quanta, measured, kept, and back to its gang when another job comes."""
    wide = Elasticity(np.array([4, 4]), np.array([0.9, 0.9]))
    instance = instance_of("1x4", [(0.0, 1, 1000.0), (200.0, 4, 10.0)], elasticity=wide)
    widths = [(start, sum(g for _, g in where)) for start, _, where in rows_of(done(instance), 0)]
    assert widths[:2] == [(0.0, 1), (120.0, 4)]
    assert (200.0, 1) in widths


def test_a_job_that_gains_nothing_from_more_gpus_gives_them_back() -> None:
    wide = Elasticity(np.array([4]), np.array([0.501]))
    instance = instance_of("1x4", [(0.0, 1, 1000.0)], elasticity=wide)
    runs = rows_of(done(instance), 0)
    assert [(start, where) for start, _, where in runs] == [
        (0.0, ((0, 1),)),
        (120.0, ((0, 4),)),
        (180.0, ((0, 1),)),
    ]


def test_nobody_grows_who_did_not_opt_in() -> None:
    jobs = [(0.0, 1, 1000.0)]
    assert done(instance_of("1x4", jobs)).gpus.tolist() == [1]
    assert done(instance_of("1x4", jobs), Gandiva(growth=False)).gpus.tolist() == [1]
