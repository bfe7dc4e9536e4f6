"""Suites: pinned bounds that the checker accepts, and draws that are the same everywhere."""

from __future__ import annotations

import dataclasses
import json
import lzma
from fractions import Fraction
from pathlib import Path

import pytest

import shadowprice as sp
from shadowprice.errors import InputError, VerificationError
from shadowprice.instances.features import missing
from shadowprice.library.collection import library_instance
from shadowprice.library.entries.stored_bound import StoredBound
from shadowprice.library.score import pinned
from shadowprice.library.score.measures import KNOWS
from shadowprice.library.score.pinned import pinned_bounds, stored_bound
from shadowprice.library.score.suites import OBJECTIVE, SUITES, ScoredInstance, suite_named
from support.tiny_suites import TINY, drawn

FIXED = sorted({name for suite in SUITES.values() for name in suite.fixed})


@pytest.mark.parametrize("name", FIXED)
def test_the_checker_accepts_the_pinned_bound_with_any_run(name: str) -> None:
    which, bound = library_instance(name), pinned_bounds()[name]
    assert (bound.instance, bound.digest) == (name, which.digest)
    assert which.preemptive
    assert OBJECTIVE in which.objectives
    assert not which.recipe.data_sets(), "suites need no data of others"
    instance = which.instance()
    assert not missing(instance, KNOWS)
    assert (instance.workload.weight == 1).all(), "sentences speak of jobs that count alike"
    stored = stored_bound(bound)
    assert (stored.ticks, stored.kind, stored.starts_once) == (bound.ticks, bound.kind, False)
    stored.check(sp.simulate(instance, policy="fifo"), OBJECTIVE, preemptive=True)


def test_a_larger_bound_is_not_accepted() -> None:
    name = "gangs-10-lognormal-1"
    instance, stored = library_instance(name).instance(), stored_bound(pinned_bounds()[name])
    wrong = dataclasses.replace(stored, ticks=stored.ticks + 1)
    with pytest.raises(VerificationError):
        wrong.check(sp.simulate(instance, policy="fifo"), OBJECTIVE, preemptive=True)


def test_a_file_that_was_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "gangs-10-lognormal-1"
    bound = pinned_bounds()[name]
    text = stored_bound(bound).text()
    monkeypatch.setattr(pinned, "FOLDER", tmp_path)
    path = tmp_path / f"{name}.jsonl.xz"
    path.write_bytes(lzma.compress(text.encode("ascii")))
    assert stored_bound(bound) == StoredBound.of_text(text, name)
    path.write_bytes(lzma.compress(text.replace("0", "1").encode("ascii")))
    with pytest.raises(InputError, match="SHA-256"):
        stored_bound(bound)
    path.write_bytes(b"\xfd7zXZ\x00 cut")
    with pytest.raises(InputError, match="cannot be read"):
        stored_bound(bound)


def test_what_has_a_bound_is_not_pinned_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned, "FOLDER", tmp_path)
    monkeypatch.setattr(pinned, "LIST", tmp_path / "bounds.json")
    monkeypatch.setattr(pinned, "SUITES", {"tiny": TINY})
    monkeypatch.setattr(pinned, "_SECONDS", 0.05)
    assert pinned.pin() == list(TINY.fixed)
    listed = (tmp_path / "bounds.json").read_text(encoding="ascii")
    assert pinned.pin() == []
    assert (tmp_path / "bounds.json").read_text(encoding="ascii") == listed
    (row,) = json.loads(listed).values()
    assert Fraction(row["ticks"]) > 0


def test_a_seed_draws_the_same_and_another_draws_others() -> None:
    one, again, other = (drawn(TINY, seed) for seed in (3, 3, 4))
    for mine, same, different in zip(one, again, other, strict=True):
        assert mine.name == same.name != different.name
        assert mine.certificate == same.certificate
        frames = [each.instance.workload.to_frame() for each in (mine, same, different)]
        assert frames[0].equals(frames[1])
        assert not frames[0].equals(frames[2])
        assert mine.drawn
        mine.certificate.check(
            sp.simulate(mine.instance, policy="fifo"), OBJECTIVE, preemptive=True
        )


def test_a_bound_of_nothing_and_an_unknown_suite_are_refused() -> None:
    (scored, _) = drawn(TINY, 0)
    nothing = dataclasses.replace(scored.certificate, ticks=Fraction(0))
    with pytest.raises(InputError, match="above 0"):
        ScoredInstance("none", scored.instance, True, nothing)
    with pytest.raises(InputError, match="did you mean 'v1-online'"):
        suite_named("v1-onlin")
