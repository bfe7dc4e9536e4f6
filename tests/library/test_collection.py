"""The collection: names, digests, and that every instance is one with contention."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from shadowprice.errors import InputError
from shadowprice.instances.features import Feature
from shadowprice.library.collection import FAMILIES, instances, library_instance
from shadowprice.library.library_instance import LibraryInstance, instance_of_text
from shadowprice.library.publication import digests_of
from shadowprice.library.recipes.generated import Generated

EVERY = instances()
MOST_TESTED = 1_000
"""Jobs up to which every run of the tests makes an instance anew."""


def here(which: LibraryInstance) -> LibraryInstance:
    if absent := which.absent():
        pytest.skip(f"data set {absent[0]} is not here")
    return which


def test_there_are_some_sixty_instances_of_seven_families_in_four_sizes() -> None:
    assert 55 <= len(EVERY) <= 70
    assert len(FAMILIES) == 7
    sizes = Counter(round(np.log10(each.jobs)) for each in EVERY)
    assert set(sizes) == {1, 2, 3, 4}
    for family in FAMILIES:
        mine = [each for each in EVERY if each.family == family.name]
        assert {round(np.log10(each.jobs)) for each in mine} == {1, 2, 3, 4}, family.name


def test_names_are_of_the_scheme_and_unique() -> None:
    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names)
    for each in EVERY:
        family, jobs, source, number = re.fullmatch(
            r"([a-z]+)-(\d+)-([a-z0-9-]+)-(\d+)", each.name
        ).groups()
        assert (family, int(jobs), source) == (each.family, each.jobs, each.recipe.source)
        assert int(number) >= 1


def test_every_instance_is_published_and_no_two_are_equal() -> None:
    assert all(re.fullmatch("[0-9a-f]{64}", each.digest) for each in EVERY)
    assert all(re.fullmatch("[0-9a-f]{64}", each.records_digest) for each in EVERY)
    assert len({each.digest for each in EVERY}) == len(EVERY)


def _sizes(large: bool) -> list[LibraryInstance]:
    return [each for each in EVERY if (each.jobs > MOST_TESTED) == large]


@pytest.mark.parametrize("which", _sizes(False), ids=lambda each: each.name)
def test_recipes_make_the_bytes_that_were_published(which: LibraryInstance) -> None:
    assert digests_of(here(which)) == {
        "written": which.digest,
        "records": which.records_digest,
    }


@pytest.mark.slow
@pytest.mark.parametrize("which", _sizes(True), ids=lambda each: each.name)
def test_recipes_of_large_instances_make_the_bytes_that_were_published(
    which: LibraryInstance,
) -> None:
    test_recipes_make_the_bytes_that_were_published(which)


def test_another_seed_is_another_instance_and_is_refused() -> None:
    which = library_instance("gangs-10-lognormal-1")
    assert isinstance(which.recipe, Generated)
    other = replace(which, recipe=replace(which.recipe, seed=which.recipe.seed + 1))
    with pytest.raises(InputError, match="its recipe makes an instance of SHA-256"):
        other.instance()


def test_an_instance_is_what_its_written_form_says() -> None:
    which = library_instance("amounts-10-lognormal-1")
    found = instance_of_text(which.text, "file")
    assert found.workload == which.instance().workload
    with pytest.raises(InputError, match="file: "):
        instance_of_text("{", "file")


def test_a_missing_data_set_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setenv("SHADOWPRICE_DATA", str(tmp_path))
    which = next(each for each in EVERY if each.recipe.source == "philly")
    fresh = replace(which)
    assert fresh.absent() == ("philly-flat",)
    with pytest.raises(InputError, match=r"data set 'philly-flat': is not at .*; fetch it"):
        fresh.instance()


def test_an_unknown_name_is_refused_with_those_like_it() -> None:
    with pytest.raises(InputError, match="did you mean 'gangs-10-lognormal-"):
        library_instance("gangs-10-lognormal-9")


@pytest.mark.parametrize("which", _sizes(False), ids=lambda each: each.name)
def test_jobs_have_to_wait_for_each_other(which: LibraryInstance) -> None:
    """At some moment more GPUs are asked for than there are, if everybody ran on arrival."""
    instance = here(which).instance()
    jobs = instance.workload
    assert (jobs.weight == np.floor(jobs.weight)).all(), "costs are whole ticks"
    run_s = instance.plain_processing_s.min(axis=1)
    if Feature.WIDTHS not in instance.features:
        run_s = instance.shortest_s
    times = np.concatenate([jobs.arrival_s, jobs.arrival_s + run_s])
    change = np.concatenate([jobs.held_gpus, -jobs.held_gpus])
    asked = np.cumsum(change[np.lexsort((change, times))])
    assert asked.max() > instance.cluster.total_gpus
