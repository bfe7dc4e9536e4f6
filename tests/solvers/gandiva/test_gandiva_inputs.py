"""What Gandiva's tables say of interference, and the workloads of its experiments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.automl import QUALIFIED, STOPPED, TRAINING_S
from shadowprice.instances.generators.gandiva import WIDE
from shadowprice.instances.speeds.interference import (
    PUBLISHED,
    UTILISATION,
    Interference,
    capacity,
    locality_of,
    share,
)
from shadowprice.instances.workload import Workload


def test_the_capacity_that_table_1_implies() -> None:
    """Least squares by hand over the six models that saturate a GPU."""
    busy = [row for row in PUBLISHED if row.utilisation > 0.5]
    assert len(busy) == 6
    upper = sum((1 + row.gain) / row.utilisation for row in busy)
    lower = sum(row.utilisation**-2 for row in busy)
    assert capacity() == pytest.approx(upper / lower, rel=1e-12)
    for row in busy:
        found = capacity() / row.utilisation
        assert found == pytest.approx(1 + row.gain, abs=0.16)
        # Whether packing helps is what the policy needs to find out.
        assert (found > 1) == (row.gain > 0)
    with pytest.raises(InputError, match="above 1/2"):
        capacity(PUBLISHED[:2])


@given(
    st.floats(0.01, 1.0),
    st.floats(0.01, 1.0),
    st.floats(0.1, 1.0),
)
def test_a_pair_beats_turns_if_it_asks_for_less_than_twice_the_capacity(
    one: float, other: float, phi: float
) -> None:
    both = 2 * share(one, other, phi)
    assert both <= 2
    if abs(one + other - 2 * phi) > 1e-9:
        assert (both > 1) == (one + other < 2 * phi)


def test_interference_becomes_rates_of_pairs() -> None:
    cluster = Cluster.parse("1x2:p100,1x2:p40")
    workload = Workload.from_columns(
        arrival_s=[0, 0, 0],
        gpus=[1, 1, 2],
        work=[9, 9, 9],
        model=["VAE", "RHN", "VAE"],
        throughput=[[3.0, 6.0], [1.0, 2.0], [5.0, 9.0]],
        gpu_types=("p40", "p100"),
    )
    table = Interference(phi=0.5).of(workload, cluster)
    s = 0.5 / (UTILISATION["VAE"] + UTILISATION["RHN"])
    assert table.pair("p100", ("VAE", 1), ("RHN", 1)) == pytest.approx((6 * s, 2 * s))
    assert table.pair("p40", ("RHN", 1), ("VAE", 1)) == pytest.approx((1 * s, 3 * s))
    assert table.pair("p40", ("VAE", 2), ("VAE", 1)) is None


def test_what_interference_cannot_know_is_reported() -> None:
    cluster = Cluster.parse("1x2")
    workload = Workload.from_columns(arrival_s=[0], gpus=[1], work=[9], model=["GPT"])
    with pytest.raises(InputError, match="model 'GPT', which the table of utilisations does not"):
        Interference().of(workload, cluster)
    for wrong in ({"utilisation": {"a": 0.0}}, {"phi": 1.5}):
        with pytest.raises(InputError, match="interference: "):
            Interference(**wrong)


def test_published_losses_of_spread_gangs() -> None:
    workload = Workload.from_columns(
        arrival_s=[0, 0, 0], gpus=2, work=9, model=["ResNet-50", "DeepSpeech", "VAE"]
    )
    assert sorted(locality_of(workload).spread_speed.tolist()) == [0.53, 0.95, 1.0]


def test_the_packing_mix() -> None:
    jobs = generate("gandiva", jobs=4000, seed=1)
    low = np.isin(jobs.model, ("VAE", "SuperRes")).mean()
    high = np.isin(jobs.model, ("LSTM", *WIDE)).mean()
    assert (low, high) == (pytest.approx(0.30, abs=0.03), pytest.approx(0.45, abs=0.03))
    assert jobs.arrival_s.max() < 7200
    assert set(jobs.gpus[np.isin(jobs.model, WIDE)].tolist()) == {2, 4}
    minutes = jobs.gpus * jobs.work / 60
    assert minutes.min() >= 30
    assert minutes.max() <= 45.1


def test_early_stopping_of_a_search() -> None:
    jobs = generate("automl", seed=3, qualified=10)
    assert np.flatnonzero(jobs.name == QUALIFIED).tolist() == [9]
    stopped = jobs.name == STOPPED
    assert jobs.work[stopped].max() <= 0.1 * 1.5 * TRAINING_S + 1
    assert jobs.work[~stopped].min() >= 0.5 * TRAINING_S
    never = generate("automl", seed=3, judged_at=1.0)
    assert not np.any(never.name == STOPPED)
    assert never.work.mean() == pytest.approx(TRAINING_S, rel=0.05)
    later = generate("automl", seed=3, judged_at=0.5)
    # Who is judged later is judged better.
    assert (later.name == STOPPED).sum() >= stopped.sum()
    with pytest.raises(InputError, match="qualified is 375"):
        generate("automl", qualified=375)
