"""Stored loose bounds: what they claim holds, and a search finds such instances."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from loose_bounds import EVALUATIONS, bound_ticks, loosest, recheck

from shadowprice.analysis.adversary.family import InstanceFamily
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.hard_instances import LooseBound, loose_bounds
from shadowprice.instances.objective import Objective
from shadowprice.instances.schedule import Schedule

STORED = {each.bound: each for each in loose_bounds()}


def test_every_bound_has_one() -> None:
    assert list(STORED) == sorted(EVALUATIONS)


@pytest.mark.parametrize("kind", list(STORED))
def test_what_is_stored_holds(kind: str) -> None:
    loose = STORED[kind]
    assert recheck(loose) >= 1
    assert Fraction(loose.optimum_s) / Fraction(loose.bound_s) == pytest.approx(
        float(loose.ratio), rel=1e-9
    )
    assert LooseBound.from_json(loose.to_json(), kind).to_json() == loose.to_json()


def later(loose: LooseBound) -> Schedule:
    """The schedule with everything a second later."""
    runs = loose.witness
    return replace(runs, start_s=runs.start_s + 1, end_s=runs.end_s + 1)


def test_what_does_not_hold_is_found() -> None:
    loose = STORED["fluid"]
    with pytest.raises(VerificationError, match="not optimal"):
        recheck(replace(loose, witness=later(loose)))
    with pytest.raises(VerificationError, match="stored is"):
        recheck(replace(loose, ratio=loose.ratio * 2))
    with pytest.raises(InputError, match="bound 'none': expected one of job, fluid"):
        bound_ticks("none", loose.instance, Objective.FLOW)
    with pytest.raises(InputError, match="expected"):
        LooseBound.from_json(loose.to_json().replace('"bound"', '"what"'), "x.json")


def test_a_search_finds_the_known_gap_of_jobs_alone() -> None:
    """Of three equal gangs that need all GPUs flow times are 1, 2 and 3 times the work: 2 on average."""
    family = InstanceFamily(jobs=3, gpus=2, max_arrival=0, max_work=1)
    found = loosest("job", family, evaluations=40)
    assert found.ratio == 2
    assert found.to_json() == loosest("job", family, evaluations=40).to_json()
