"""Tight instances: what is stored of each theorem holds, what does not is found, and no theorem is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

import build_theorems as gallery
import build_values as values
from shadowprice.analysis.adversary.tightest.catalogue import NO_FACTOR, TIGHTNESS
from shadowprice.analysis.adversary.tightest.search import recheck, tightest
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.hard_instances import TightInstance, tight_instances

STORED = {each.theorem: each for each in tight_instances()}


def test_every_theorem_has_one_or_says_why_not() -> None:
    modules = {theorem.module for theorem in gallery.theorems()}
    of_bounds_and_policies = {*values.LOOSE, *values.TRIED}
    assert set(STORED) == set(TIGHTNESS)
    assert {*STORED, *NO_FACTOR, *of_bounds_and_policies} == modules
    assert not set(NO_FACTOR) & {*STORED, *of_bounds_and_policies}


@pytest.mark.parametrize("theorem", list(STORED))
def test_what_is_stored_holds(theorem: str) -> None:
    stored = STORED[theorem]
    found = recheck(stored)
    if found.allowed is not None:
        assert 0 < found.closeness <= 1 + TIGHTNESS[theorem].off
    else:
        # A relaxation is below the optimum, a dual above it.
        assert found.attained >= 1
    assert TightInstance.from_json(stored.to_json(), theorem).to_json() == stored.to_json()


def test_factors_that_are_known_to_be_tight_are_attained_or_approached() -> None:
    def closeness(theorem: str) -> Fraction:
        stored = STORED[theorem]
        assert stored.allowed is not None
        return stored.attained / stored.allowed

    attained = ("asrpt.conversion", "classic.saturation", "lower_bounds.srpt_one_machine")
    assert [closeness(each) for each in attained] == [1, 1, 1]
    # Jobs behind a narrow one, greedy pairs on a path, rounds of tiny fractions: their files have the families.
    assert closeness("asrpt.sharper") > Fraction(98, 100)
    assert closeness("gandiva.matching") > Fraction(999_999, 10**6)
    assert closeness("gavel.rounds") > Fraction(99_999, 10**5)


def test_what_does_not_hold_is_found() -> None:
    stored = STORED["classic.saturation"]
    assert stored.allowed is not None
    for wrong, told in (
        (replace(stored, attained=stored.attained + 1), "attained is 2, stored is 3"),
        (replace(stored, allowed=stored.allowed + 1), "allowed is 2, stored is 3"),
        (replace(stored, rows=(*stored.rows, stored.rows[0])), "stored is"),
        (replace(stored, allowed=None), "stored is None"),
    ):
        with pytest.raises(VerificationError, match=told):
            recheck(wrong)
    with pytest.raises(InputError, match="columns"):
        recheck(replace(stored, columns=("work_s", "narrow")))
    with pytest.raises(InputError, match=r"theorem 'none': expected one of asrpt\.sharper"):
        recheck(replace(stored, theorem="none"))
    backwards = replace(STORED["gandiva.matching"], rows=((1, 0, 5),))
    with pytest.raises(VerificationError, match="no instance of the theorem"):
        recheck(backwards)


def test_a_theorem_that_is_broken_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the bound of the widest first would be exceeded by its tight instance."""
    entry = TIGHTNESS["classic.saturation"]

    def half(rows: tuple[tuple[int, ...], ...]) -> object:
        found = entry.compare(rows)
        assert found is not None
        assert found.allowed is not None
        return replace(found, allowed=found.allowed / 2)

    changed = {**TIGHTNESS, entry.theorem: replace(entry, compare=half)}
    monkeypatch.setattr("shadowprice.analysis.adversary.tightest.search.TIGHTNESS", changed)
    with pytest.raises(VerificationError, match="attains 2, of 1 allowed"):
        recheck(replace(STORED[entry.theorem], allowed=Fraction(1)))


def test_a_file_of_another_form_is_refused() -> None:
    record = json.loads(STORED["gavel.rounds"].to_json())
    with pytest.raises(InputError, match="row 0 has 2 numbers, expected 1"):
        TightInstance.from_json(json.dumps({**record, "rows": [[1, 2]]}), "x.json")
    with pytest.raises(InputError, match="expected"):
        TightInstance.from_json(json.dumps({**record, "attained": "much"}), "x.json")


def test_the_same_seed_finds_the_same_instance() -> None:
    def found(seed: int) -> TightInstance:
        return tightest("classic.saturation", evaluations=60, seed=seed)

    assert found(1).to_json() == found(1).to_json()
    assert found(2).attained == found(2).allowed
