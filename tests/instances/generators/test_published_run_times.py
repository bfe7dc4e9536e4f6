"""Workloads whose run times or services are read off published curves and samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shadowprice as sp
from shadowprice.errors import InputError
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.gandiva_trace import MODEL_SHARES, RUN_TIMES_MIN
from shadowprice.instances.generators.gpu_time_sample import LONGEST_S, PUBLIC_GPU_S, SHORTEST_S
from shadowprice.instances.generators.quantiles import QuantileLaw
from shadowprice.instances.generators.tiresias import GANGS
from shadowprice.instances.generators.tiresias_published import power_law
from shadowprice.instances.generators.tiresias_trace import DURATIONS_H, GANG_SHARES
from support.peers import needs_peers, recorded

points = st.lists(
    st.tuples(st.integers(0, 1000), st.floats(0, 1e6)),
    min_size=2,
    max_size=8,
    unique_by=lambda p: p[0],
).map(
    lambda drawn: list(
        zip(
            sorted(share / 1000 for share, _ in drawn),
            sorted(value for _, value in drawn),
            strict=True,
        )
    )
)


@given(points)
def test_a_law_by_quantiles(drawn: list[tuple[float, float]]) -> None:
    law = QuantileLaw(*zip(*drawn, strict=True))
    for share, value in drawn:
        assert law.quantile(np.array([share]))[0] == pytest.approx(value)
    shares = np.linspace(0, 1, 20_001)
    values = law.quantile(shares)
    assert np.all(np.diff(values) >= 0)
    assert law.mean == pytest.approx(values.mean(), rel=2e-3, abs=1e-3 * values[-1])


@pytest.mark.parametrize(
    "wrong",
    [
        ((0.5,), (1.0,)),
        ((0.0, 1.0), (2.0, 1.0)),
        ((0.5, 0.5), (1.0, 2.0)),
        ((0.0, 1.5), (1.0, 2.0)),
    ],
)
def test_points_out_of_order_are_refused(
    wrong: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    with pytest.raises(InputError, match="quantiles: expected"):
        QuantileLaw(*wrong)


@given(st.floats(0, 1), st.floats(0, 6))
@example(0.5, 1.0 + 1e-9)
@example(0.5, 1.0)
def test_the_power_law_is_the_inverse_of_its_integral(share: float, exponent: float) -> None:
    t = float(power_law(np.array([share]), 800.0, 7200.0, exponent)[0])
    assert 799.9 < t < 7200.1

    def integral(x: float) -> float:
        """Of t^-p from 800 to x, but for a factor; in logarithms, since near p = 1 powers cancel."""
        power = 1.0 - exponent
        return float(np.expm1(power * np.log(x / 800)) / power if power else np.log(x / 800))

    assert integral(t) / integral(7200) == pytest.approx(share, abs=1e-6)


def test_the_testbed_with_published_run_times() -> None:
    jobs = generate("tiresias-published", seed=0)
    assert dict(zip(*np.unique(jobs.gpus, return_counts=True), strict=True)) == GANGS
    short, small = jobs.work < 800, jobs.gpus <= 4
    counts = [(short & small), (~short & small), (short & ~small), (~short & ~small)]
    assert [int(c.sum()) for c in counts] == [300, 60, 84, 36]
    assert (jobs.work.min(), jobs.work.max()) == (
        pytest.approx(120, abs=40),
        pytest.approx(6500, abs=700),
    )
    # Figure 10a: the middle of the short ones, share 0.36 of all, ends within 234 s.
    drawn = np.concatenate([generate("tiresias-published", seed=seed).work for seed in range(10)])
    assert np.median(drawn[drawn < 800]) == pytest.approx(234, rel=0.05)
    long = generate("tiresias-published", seed=0, small_exponent=0.0, large_exponent=20.0)
    small, large = long.gpus <= 4, long.gpus > 4
    assert long.work[small & (long.work >= 800)].mean() == pytest.approx(4000, rel=0.15)
    assert long.work[large].max() < 1300
    with pytest.raises(InputError, match="tiresias-published: jobs is 100, expected 480"):
        generate("tiresias-published", jobs=100)
    with pytest.raises(InputError, match="large_exponent is -2"):
        generate("tiresias-published", large_exponent=-2)


def test_its_makespans_are_near_the_published() -> None:
    ends = []
    for seed in range(10):
        jobs = generate("tiresias-published", seed=seed)
        ends.append(
            [
                sp.simulate(
                    jobs, "15x4", policy, sp.RunOptions(preset="tiresias", placement=place)
                ).end_s.max()
                for policy, place in (("fifo", "yarn"), ("dlas-gpu", "count"))
            ]
        )
    fifo, tiresias = np.mean(ends, axis=0)
    assert fifo == pytest.approx(33_270, rel=0.03)
    assert tiresias == pytest.approx(27_400, rel=0.16)


def test_the_curve_of_the_large_trace() -> None:
    assert DURATIONS_H.mean == pytest.approx(11.3, rel=0.02)
    assert DURATIONS_H.quantile(np.array([0.5, 0.95])) == pytest.approx([0.52, 45], rel=0.05)
    jobs = generate("tiresias-trace", seed=1, load=1.0, gpus_total=512)
    assert jobs.work.mean() / 3600 == pytest.approx(11.3, rel=0.1)
    assert np.median(jobs.work) / 3600 == pytest.approx(0.52, rel=0.05)
    for gang, share in GANG_SHARES.items():
        assert np.mean(jobs.gpus == gang) == pytest.approx(share, abs=0.012)
    span_s = jobs.arrival_s.max() * 512
    assert (jobs.gpus * jobs.work).sum() / span_s == pytest.approx(1.0, rel=0.03)


def test_services_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "yarn-gput.csv"
    file.write_text("duration\n120\n6400\n1000000\n")
    jobs = generate("gpu-time-sample", jobs=400, seed=2, samples=file)
    plain = jobs.work[jobs.gpus == 1]
    assert set(plain.tolist()) == {120.0, 6400.0, 1_000_000.0}
    for gang in (2, 8, 32):
        ran = jobs.work[jobs.gpus == gang]
        assert set(ran.tolist()) <= {round(s / gang) for s in (120, 6400, 1_000_000)}
        assert ran.min() >= SHORTEST_S
    file.write_text("duration\n120\nnone\n")
    with pytest.raises(InputError, match="sample 2: got 'none'"):
        generate("gpu-time-sample", samples=file)
    file.write_text("duration\n10\n20\n")
    with pytest.raises(InputError, match="expected a GPU time that 1 to 32 GPUs do in 60 to"):
        generate("gpu-time-sample", samples=file)
    file.write_text("duration\n")
    with pytest.raises(InputError, match="has no samples"):
        generate("gpu-time-sample", samples=file)


def test_services_of_the_public_sample() -> None:
    jobs = generate("gpu-time-sample", seed=0)
    assert (jobs.work.min(), jobs.work.max()) >= (SHORTEST_S, 0)
    assert jobs.work.max() <= LONGEST_S
    gpu_h = jobs.gpus * jobs.work / 3600
    # Read off the files: 63 % below a GPU-hour; a mean of 33 to 42 GPU-hours, which a few jobs decide.
    assert np.mean(gpu_h < 1) == pytest.approx(0.63, abs=0.03)
    assert 25 < gpu_h.mean() < 45


@needs_peers
def test_its_quantiles_are_those_of_the_file() -> None:
    samples = np.array(recorded("tiresias_gittins_samples.json")["samples"], float)
    shares = np.arange(len(samples)) / (len(samples) - 1)
    np.testing.assert_allclose(PUBLIC_GPU_S.quantile(shares), samples, rtol=0.05)


def test_the_nine_day_stand_in() -> None:
    assert RUN_TIMES_MIN.mean == pytest.approx(339, rel=0.01)
    assert RUN_TIMES_MIN.quantile(np.array([0.5, 0.95])) == pytest.approx([42, 1135], rel=0.01)
    jobs = generate("gandiva-trace", seed=2)
    assert len(jobs) == 1500
    assert jobs.work.mean() / 60 == pytest.approx(339, rel=0.02)
    assert jobs.arrival_s.max() < 60 * 8000
    for model, share in MODEL_SHARES.items():
        assert np.mean(jobs.model == model) == pytest.approx(share, abs=0.04)
    for gang, share in {1: 0.70, 2: 0.15, 4: 0.15}.items():
        assert np.mean(jobs.gpus == gang) == pytest.approx(share, abs=0.04)
    assert generate("gandiva-trace", jobs=50, hours=2.0).arrival_s.max() < 7200
