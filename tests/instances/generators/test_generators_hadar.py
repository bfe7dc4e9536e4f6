"""Hadar's workload: classes of GPU-hours, their models, and a trace's busiest hours."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shadowprice.analysis.decision_time import first_decisions_s
from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators.hadar import CLASSES, FAMILIES, generate, sampled
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Kind, Throughputs
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy

RATES: dict[Kind, tuple[float, ...]] = {
    (f"{family} (batch size {batch})", gang): (float(batch * gang), batch * gang / 7.0)
    for family in ("ResNet-18", "LM", "Transformer", "ResNet-50")
    for batch in (16, 32)
    for gang in (1, 2, 4, 8)
}
TABLE = Throughputs(("v100", "k80"), {**RATES, ("CycleGAN", 1): (4.0, 0.5)})


def gpu_hours(jobs: Workload) -> NDArray[np.float64]:
    """GPU-hours on a V100."""
    assert jobs.throughput is not None
    return np.asarray(jobs.gpus * jobs.work / jobs.throughput[:, 0] / 3600.0)


def test_classes_have_their_gpu_hours_and_their_models() -> None:
    jobs = generate(jobs=4000, seed=3, throughputs=TABLE)
    hours = gpu_hours(jobs)
    assert (jobs.arrival_s == 0).all()
    for name, (low, high) in CLASSES.items():
        mine = np.isin([model.split(" (")[0] for model in jobs.model], FAMILIES[name])
        assert low - 0.01 <= hours[mine].min()
        assert hours[mine].max() <= high
        assert mine.mean() == pytest.approx(0.25, abs=0.03)
        assert hours[mine].mean() == pytest.approx((low + high) / 2, rel=0.1)
    assert set(jobs.gpus.tolist()) == {1, 2, 4, 8}


def test_a_model_measured_on_one_gpu_only_keeps_its_gpu_hours_there() -> None:
    jobs = generate(jobs=2000, seed=0, throughputs=TABLE)
    assert (jobs.gpus[jobs.model == "CycleGAN"] == 1).all()
    plain = generate(jobs=2000, seed=0)
    mine = jobs.model == "CycleGAN"
    drawn = plain.gpus * plain.work / 3600.0
    assert gpu_hours(jobs)[mine] == pytest.approx(drawn[mine], rel=0.01)
    assert (plain.gpus[mine] > 1).any()


def trace() -> Workload:
    """Two jobs an hour for a day, and sixty in hours 10 to 17, of gangs and lengths of all kinds."""
    arrival = np.concatenate((np.repeat(np.arange(24.0), 2), np.repeat(np.arange(10.0, 18.0), 8)))
    order = np.argsort(arrival, kind="stable")
    busy = np.concatenate((np.zeros(48), np.ones(64)))[order]
    gpus = np.where(np.arange(112) % 16 == 0, 3, 2)
    hours = np.where(np.arange(112) % 16 == 1, 101.0, 10.0 + 20.0 * busy)
    return Workload.from_columns(
        arrival_s=3600.0 * arrival[order], gpus=gpus, work=3600.0 * hours / gpus, source="a day"
    )


def test_sampled_jobs_are_those_of_the_busiest_eight_hours() -> None:
    whole = trace()
    hours = whole.gpus * whole.work / 3600.0
    inside = (whole.arrival_s >= 36_000) & (whole.arrival_s < 64_800)
    usable = inside & (whole.gpus != 3) & (hours <= 100)
    jobs = sampled(whole, jobs=int(usable.sum()), seed=1)
    assert (jobs.arrival_s == 0).all()
    assert sorted(jobs.work.tolist()) == sorted(whole.work[usable].tolist())
    assert sampled(whole, jobs=20, seed=1) == sampled(whole, jobs=20, seed=1)
    assert sampled(whole, jobs=20, seed=1) != sampled(whole, jobs=20, seed=2)
    with pytest.raises(InputError, match=r"a day: \d+ jobs .* expected at least 500"):
        sampled(whole, jobs=500)


def test_sampled_jobs_between_the_classes_are_extra_large() -> None:
    whole = Workload.from_columns(
        arrival_s=np.zeros(5),
        gpus=np.ones(5, dtype=np.int64),
        work=3600.0 * np.array([1.0, 5, 55, 100, 10]),
    )
    jobs = sampled(whole, jobs=5, throughputs=TABLE)
    by_hours = {
        round(hours): str(model).split(" (")[0]
        for hours, model in zip(gpu_hours(jobs), jobs.model, strict=True)
    }
    assert by_hours[1] == "ResNet-18"
    assert by_hours[5] == by_hours[10] == "CycleGAN"
    assert by_hours[55] == by_hours[100] == "ResNet-50"


def test_tables_without_what_is_needed_are_refused() -> None:
    with pytest.raises(InputError, match="no GPU type 'v100', found k80"):
        generate(jobs=5, throughputs=Throughputs(("k80",), {("CycleGAN", 1): (1.0,)}))
    with pytest.raises(InputError, match=r"no \S+ on at most \d GPUs of v100"):
        generate(jobs=50, throughputs=Throughputs(("v100",), {("CycleGAN", 1): (1.0,)}))
    with pytest.raises(InputError, match="jobs is 0"):
        generate(jobs=0)


def test_decisions_are_timed_and_no_more_are_made_than_asked_for() -> None:
    instance = Instance(Cluster.parse("1x8"), generate(jobs=6))
    assert len(first_decisions_s(instance, policy("hadar"), 3)) == 3
    assert all(took > 0 for took in first_decisions_s(instance, policy("hadar"), 2))
    short = Workload.from_columns(arrival_s=[0.0], gpus=[1], work=[1.0])
    assert len(first_decisions_s(Instance(Cluster.parse("1x2"), short), policy("fifo"), 9)) < 9
    with pytest.raises(InputError, match="decisions is 0"):
        first_decisions_s(instance, policy("fifo"), 0)
