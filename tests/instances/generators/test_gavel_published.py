"""Gavel's published generator: its draws, checked by hand, and the laws of what is drawn job after job."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.generators import endless, endless_named, generate
from shadowprice.instances.generators.gavel_published import (
    DISTRIBUTED_TYPES,
    JOB_TYPES,
    hierarchy_jobs,
)
from shadowprice.instances.speeds.throughputs import Throughputs

TABLE = Throughputs(
    ("k80", "v100"),
    {
        (model, gang): (1.0 + k, 3.0 * gang + k)
        for k, model in enumerate(JOB_TYPES)
        for gang in ((1, 2, 4, 8) if model in DISTRIBUTED_TYPES else (1,))
    },
)

# Of random.Random(2): 0.956 (a gang of 8), 0.948 (long), 0.0566 (x = 3.0566); of random.Random(3):
# 0.238, so that the second job comes after -ln(1 - 0.238) x 3600 / 5.6 s.
HEAD = [
    (0.0, 8, 60 * 10**3.056551367726809, "ResNet-18 (batch size 64)"),
    (
        -math.log(1 - 0.23796462709189137) * 3600 / 5.6,
        1,
        31016.60914593223,
        "Transformer (batch size 16)",
    ),
    (679.8391625207828, 1, 2146.6088374387864, "Recommendation (batch size 2048)"),
    (976.8162111831339, 1, 7386.674819745945, "Recommendation (batch size 8192)"),
    (1572.1913889238363, 4, 6858.69820697011, "LM (batch size 5)"),
]


def test_the_first_jobs_of_seed_0() -> None:
    jobs = generate("gavel-published", jobs=5, seed=0)
    arrival_s, gpus, duration_s, model = zip(*HEAD, strict=True)
    np.testing.assert_allclose(jobs.arrival_s, arrival_s, atol=1e-6)
    assert jobs.gpus.tolist() == list(gpus)
    np.testing.assert_allclose(jobs.work, duration_s, atol=1e-6)
    assert jobs.model.tolist() == list(model)
    assert (random.Random(2).random(), random.Random(3).random()) == (
        0.9560342718892494,
        0.23796462709189137,
    )


def test_gangs_are_drawn_also_where_all_are_of_one_gpu() -> None:
    """Where the gang is not drawn everything after it is another job."""
    single = generate("gavel-published", jobs=5, seed=0, single_gpu=True)
    assert single.gpus.tolist() == [1] * 5
    np.testing.assert_allclose(single.work, [job[2] for job in HEAD], atol=1e-6)
    assert single.model.tolist() == [job[3] for job in HEAD]


def test_steps_are_the_duration_at_the_rate_of_v100s() -> None:
    jobs = generate("gavel-published", jobs=50, seed=1, throughputs=TABLE)
    seconds = generate("gavel-published", jobs=50, seed=1)
    for k in range(50):
        rate = TABLE.alone[jobs.model[k], int(jobs.gpus[k])]
        assert jobs.throughput is not None
        assert jobs.throughput[k].tolist() == list(rate)
        # In seconds work is rounded to a tick.
        assert jobs.work[k] == pytest.approx(seconds.work[k] * rate[1], rel=1e-6)


@settings(max_examples=15)
@given(
    seed=st.integers(0, 10**6),
    few=st.integers(1, 40),
    more=st.integers(0, 40),
    single_gpu=st.booleans(),
)
def test_the_first_jobs_are_the_same_however_many_are_drawn(
    seed: int, few: int, more: int, single_gpu: bool
) -> None:
    jobs = endless("gavel-published", seed=seed, single_gpu=single_gpu, throughputs=TABLE)
    assert jobs.first(few) == jobs.first(few + more).select(np.arange(few))
    assert jobs.first(few) == generate(
        "gavel-published", jobs=few, seed=seed, single_gpu=single_gpu, throughputs=TABLE
    )


def test_shares_and_ranges_are_those_of_the_paper() -> None:
    jobs = generate("gavel-published", jobs=4000, seed=0, jobs_per_hour=2.0)
    for gang, share in {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}.items():
        assert np.mean(jobs.gpus == gang) == pytest.approx(share, abs=0.03)
    x = np.log10(jobs.work / 60)
    assert x.min() >= 1.5 - 1e-6
    assert x.max() <= 4.0 + 1e-6
    assert np.mean(x >= 3) == pytest.approx(0.2, abs=0.03)
    assert np.diff(jobs.arrival_s).mean() == pytest.approx(1800.0, rel=0.05)
    assert {*jobs.model.tolist()} == {*JOB_TYPES}
    assert {*jobs.model[jobs.gpus > 1].tolist()} <= {*DISTRIBUTED_TYPES}


def test_all_jobs_at_once() -> None:
    batch = generate("gavel-published", jobs=30, seed=0, jobs_per_hour=math.inf)
    assert not batch.arrival_s.any()
    assert batch.model.tolist() == generate("gavel-published", jobs=30, seed=0).model.tolist()


def test_jobs_of_the_hierarchy() -> None:
    jobs = hierarchy_jobs(TABLE)
    draw = random.Random(0)
    assert jobs.model.tolist() == [JOB_TYPES[draw.choice(range(26))] for _ in range(18)]
    # random.seed(0) chooses 12, 24, 13, 1, 8 of 26.
    assert [JOB_TYPES.index(model) for model in jobs.model[:5]] == [12, 24, 13, 1, 8]
    assert jobs.model[:2].tolist() == ["Transformer (batch size 128)", "A3C"]
    assert jobs.weight.tolist() == [1.0, 2.0] * 9
    assert jobs.tenant.tolist() == ["entity 1"] * 6 + ["entity 2"] * 6 + ["entity 3"] * 6
    with pytest.raises(InputError, match="multiple of 3"):
        hierarchy_jobs(TABLE, jobs=10)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: endless("gavel"),
            "draws all its jobs together and cannot be endless, expected one of",
        ),
        (lambda: endless("nothing"), "generator 'nothing': expected one of"),
        (lambda: endless("gavel-published", jobs=3), "unknown key 'jobs'"),
        (
            lambda: endless("gavel-published", jobs_per_hour=0),
            "jobs_per_hour is 0, expected a number > 0",
        ),
        (lambda: endless("gavel-published", seed=-1), "seed is -1"),
        (lambda: endless_named("gavel-published:jobs_per_hour"), "is no key=value"),
        (lambda: endless_named("gavel-published:single_gpu=yes"), "expected a value like false"),
        (lambda: endless_named("gavel-published:rate=3"), "unknown key 'rate'"),
        (lambda: endless_named("gavel-published:throughputs=x"), "throughputs is 'x'"),
        (
            lambda: generate("gavel-published", throughputs=Throughputs(("p100",), {})),
            "no GPU type 'v100'",
        ),
        (
            lambda: generate("gavel-published", throughputs=Throughputs(("v100",), {})),
            "expected all 26 types of the published generator",
        ),
    ],
)
def test_what_cannot_be_generated_is_said(make: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told.replace("(", r"\(")) as found:
        make()
    assert "\n" not in str(found.value)


def test_parameters_after_a_colon() -> None:
    written = endless_named("gavel-published:seed=3,jobs_per_hour=2.5,single_gpu=true")
    made = endless("gavel-published", seed=3, jobs_per_hour=2.5, single_gpu=True)
    assert written.first(9) == made.first(9)
