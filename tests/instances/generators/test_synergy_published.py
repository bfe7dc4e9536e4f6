"""Synergy's published jobs, draw for draw, and what the artifact prints of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.synergy_published import ITERATION_S, MODELS
from shadowprice.instances.speeds.profiles import Profiles
from support.paths import ROOT


def test_the_first_jobs_are_the_first_draws() -> None:
    """The draws of one job at a time, from a generator of our own for each."""
    workload = generate("synergy-published", jobs=200, jobs_per_hour=7.5)
    jobs, arrivals = random.Random(42), random.Random(42)
    arrival_s = 0
    for row in range(200):
        low = 3.0 if jobs.random() >= 0.8 else 1.5
        high = 4.0 if low == 3.0 else 3.0
        duration_s = 60 * 10 ** (low + (high - low) * jobs.random())
        arrival_s += math.ceil(-math.log(1.0 - arrivals.random()) / 7.5 * 3600)
        # A number below ten from four bits, drawn again while it is not.
        while arrivals.getrandbits(4) >= 10:
            pass
        assert workload.arrival_s[row] == arrival_s
        iteration_s = ITERATION_S[workload.model[row]]
        assert workload.work[row] == math.floor(duration_s / iteration_s)
        assert workload.throughput is not None
        assert workload.throughput[row, 0] == 1.0 / iteration_s


@settings(max_examples=15, deadline=None)
@given(
    shares=st.tuples(*[st.integers(0, 100)] * 3).filter(lambda shares: sum(shares) > 0),
    jobs=st.integers(1, 300),
)
def test_models_follow_the_shares_and_take_turns(shares: tuple[int, int, int], jobs: int) -> None:
    total = sum(shares)
    parts = [100 * share / total for share in shares]
    workload = generate("synergy-published", jobs=jobs, class_shares=tuple(parts))
    count = Counter(workload.model.tolist())
    for part, models in zip(parts, MODELS, strict=True):
        of = [count[name] for name in models]
        # Never more than one job ahead of its share, so never more than two behind, of three classes.
        assert -2.0 - 1e-6 <= sum(of) - jobs * part / 100 <= 1.0 + 1e-6
        assert max(of) - min(of) <= 1


def test_a_longer_trace_begins_with_the_same_jobs_and_rates_change_arrivals_alone() -> None:
    few, many = (generate("synergy-published", jobs=n) for n in (50, 80))
    assert many.select(np.arange(50)).work.tolist() == few.work.tolist()
    assert many.arrival_s[:50].tolist() == few.arrival_s.tolist()
    slow = generate("synergy-published", jobs=50, jobs_per_hour=4.5)
    assert slow.work.tolist() == few.work.tolist()
    assert slow.model.tolist() == few.model.tolist()
    assert slow.arrival_s[-1] == pytest.approx(2 * few.arrival_s[-1], rel=0.01)
    assert generate("synergy-published", jobs=50, seed=43) != few


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"jobs": 0}, "jobs is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"jobs_per_hour": 0}, "jobs_per_hour is 0"),
        ({"class_shares": (20, 80)}, "expected one each of image, language, speech"),
        ({"class_shares": (0, 0, 0)}, "expected one share > 0"),
        ({"class_shares": (-1, 50, 51)}, "share of image models is -1"),
        ({"load": 0.9}, "unknown key 'load'"),
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError) as caught:
        generate("synergy-published", **parameters)
    assert expected in str(caught.value)


@pytest.mark.slow
def test_the_artifact_prints_what_it_printed() -> None:
    """FIFO with TUNE at 9 jobs an hour: mean, p99 and p99.9 of ``ae-readme.md``, to the second."""
    profiles = Profiles.load(ROOT / "paper_figs" / "published" / "synergy_profiles.json")
    jobs = generate("synergy-published", jobs=6_700)
    options = sp.RunOptions(preset="synergy", profiles=profiles)
    jct_s = sp.simulate(jobs, "16x8+24cpu+500gb", "FIFO+tune", options).jct_s[4_000:5_000]
    assert jct_s.mean() == pytest.approx(3600 * 21.876600555555555, abs=1e-3)
    found = np.percentile(jct_s, [99, 99.9])
    assert found == pytest.approx([3600 * 156.93307777777775, 3600 * 170.61199750000023], abs=1e-2)
