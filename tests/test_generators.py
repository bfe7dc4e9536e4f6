"""Generated workloads follow their laws, and the seed alone decides them."""

from __future__ import annotations

import numpy as np
import pytest

from shadowprice.errors import InputError
from shadowprice.instances.generators import generate, generators
from shadowprice.instances.generators.tiresias import GANGS


@pytest.mark.parametrize("name", sorted(generators()))
def test_same_seed_same_jobs(name: str) -> None:
    assert generate(name, seed=4) == generate(name, seed=4)
    assert generate(name, seed=4) != generate(name, seed=5)


def test_the_tiresias_mix() -> None:
    jobs = generate("tiresias", seed=0)
    assert dict(zip(*np.unique(jobs.gpus, return_counts=True), strict=True)) == GANGS
    assert np.unique(jobs.model, return_counts=True)[1].tolist() == [48] * 10
    short, small = jobs.work < 800, jobs.gpus <= 4
    counts = [
        np.sum(short & small),
        np.sum(~short & small),
        np.sum(short & ~small),
        np.sum(~short & ~small),
    ]
    assert [int(c) for c in counts] == [301, 59, 82, 38]
    assert jobs.work.min() >= 120
    assert jobs.work.max() <= 7200


def test_gavels_law() -> None:
    jobs = generate("gavel", jobs=20_000, seed=1, load=0.8, gpus_total=108)
    exponent = np.log10(jobs.work / 60)
    assert exponent.min() >= 1.5
    assert exponent.max() <= 4
    assert np.mean(exponent > 3) == pytest.approx(0.2, abs=0.01)
    for gpus, share in ((1, 0.70), (2, 0.10), (4, 0.15), (8, 0.05)):
        assert np.mean(jobs.gpus == gpus) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("name", ["gavel", "lognormal"])
def test_the_load_is_what_was_asked_for(name: str) -> None:
    jobs = generate(name, jobs=30_000, seed=2, load=0.7, gpus_total=200)
    offered = float(np.dot(jobs.gpus, jobs.work)) / (200 * jobs.arrival_s[-1])
    assert offered == pytest.approx(0.7, rel=0.02)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("poisson", {}, "expected one of gavel"),
        ("gavel", {"rate": 3}, "parameter 'rate'"),
        ("gavel", {"jobs": 0}, "expected an integer from 1"),
        ("gavel", {"load": -1.0}, "expected a number > 0"),
        ("lognormal", {"gpus_total": 0}, "expected an integer from 1"),
        ("lognormal", {"median_s": 1.0}, "shortest_s <= median_s"),
        ("tiresias", {"jobs": 100}, "expected 480"),
    ],
)
def test_wrong_parameters_are_named(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(name, **parameters)
