"""The verifier accepts what the engine makes and rejects every kind of corruption, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.instance import Instance
from shadowprice.instances.schedule import Schedule
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import Violation, verify
from shadowprice.proofs.verification.speeds import sorted_further
from shadowprice.solvers.registry import policies, policy

POLICIES = sorted(policies())
COSTLY = Overheads(start_s=1.0, restart_s=5.0, migration_s=2.0)


def frame_of(instance: Instance, name: str) -> pd.DataFrame:
    return run(instance, policy(name)).schedule.to_frame()


def rule_broken(instance: Instance, frame: pd.DataFrame) -> str | None:
    try:
        verify(instance, Schedule.from_frame(frame))
    except Violation as violation:
        return violation.rule
    return None


@pytest.mark.parametrize(("gang", "restart_s"), [(1, 4.0), (2, 6.0), (3, 7.0), (4, 7.0)])
def test_a_gang_restarts_at_the_charge_of_its_size(gang: int, restart_s: float) -> None:
    """The first step that is not below the gang, else the last."""
    steps = ((1, 4.0), (2, 6.0), (3, 7.0))
    workload = Workload.from_columns(arrival_s=[0], gpus=[gang], work=[20])
    instance = Instance(Cluster.parse("1x4"), workload, Overheads(1.0, 9.0, restart_by_gpus=steps))
    whole_s = instance.shortest_s[0]

    def paying(again_s: float) -> Schedule:
        ends_s = np.array([6.0, 10.0 + 1.0 + again_s + whole_s - 5.0])
        zero, gpus = np.zeros(2, dtype=np.int64), np.full(2, gang)
        overhead_s = np.array([1.0, 1.0 + again_s])
        return Schedule(zero, zero, gpus, np.array([0.0, 10.0]), ends_s, overhead_s)

    verify(instance, paying(restart_s))
    for other_s in {0.0, 4.0, 6.0, 7.0, 9.0} - {restart_s}:
        with pytest.raises(Violation, match="overhead"):
            verify(instance, paying(other_s))


@given(instance=instances(), name=st.sampled_from(POLICIES))
def test_accepts_every_policy(instance: Instance, name: str) -> None:
    verify(instance, run(instance, policy(name)).schedule)


@given(instance=instances(), name=st.sampled_from(POLICIES))
def test_accepts_every_policy_with_overheads(instance: Instance, name: str) -> None:
    costly = Instance(instance.cluster, instance.workload, COSTLY)
    verify(costly, run(costly, policy(name)).schedule)


WHOLE = st.integers(0, 3) | st.integers(65_530, 65_545) | st.integers(0, 2**40)


@given(columns=st.lists(st.tuples(WHOLE, WHOLE), max_size=12))
def test_rows_are_sorted_as_by_any_sort(columns: list[tuple[int, int]]) -> None:
    first, second = np.array(columns, dtype=np.int64).reshape(-1, 2).T
    order = sorted_further(np.arange(len(first)), second)
    assert sorted_further(order, first).tolist() == np.lexsort((second, first)).tolist()


def lose_a_job(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return frame[frame["job"] != frame["job"].iloc[k]]


def run_a_job_twice(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    again = frame[frame["job"] == frame["job"].iloc[k]].copy()
    shift = frame["end_s"].max() + 1.0
    again[["start_s", "end_s"]] += shift
    return pd.concat([frame, again], ignore_index=True)


def end_a_second_early(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "end_s", -0.5, whole_run=True)


def end_a_tick_late(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "end_s", 2.0**-20, whole_run=True)


def one_gpu_more(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "gpus", 1)


def no_gpus(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "gpus", -int(frame["gpus"].iloc[k]))


def before_arrival(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    moved = frame.copy()
    same = same_run(frame, k)
    moved.loc[same, ["start_s", "end_s"]] -= 1e6
    return moved


def unknown_node(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "node", 10**6)


def unknown_job(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "job", 10**6)


def backwards(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    swapped = frame.copy()
    row = swapped.index[k]
    swapped.loc[row, ["start_s", "end_s"]] = frame.loc[row, ["end_s", "start_s"]].to_numpy()
    return swapped


def overhead_for_nothing(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "overhead_s", 2.0**-20, whole_run=True)


def not_a_time(frame: pd.DataFrame, k: int) -> pd.DataFrame:
    return edit(frame, k, "end_s", float("nan"))


def same_run(frame: pd.DataFrame, k: int) -> pd.Series:
    row = frame.iloc[k]
    return (frame["job"] == row["job"]) & (frame["start_s"] == row["start_s"])


def edit(
    frame: pd.DataFrame, k: int, column: str, by: float, *, whole_run: bool = False
) -> pd.DataFrame:
    changed = frame.copy()
    rows = same_run(frame, k) if whole_run else changed.index[k]
    changed.loc[rows, column] += by
    return changed


CORRUPTIONS: dict[Callable[[pd.DataFrame, int], pd.DataFrame], set[str]] = {
    lose_a_job: {"lost"},
    run_a_job_twice: {"work"},
    end_a_second_early: {"work", "row"},
    end_a_tick_late: {"work", "overlap", "capacity"},
    one_gpu_more: {"gang"},
    no_gpus: {"row"},
    before_arrival: {"release", "row"},
    unknown_node: {"row"},
    unknown_job: {"row"},
    backwards: {"row"},
    overhead_for_nothing: {"overhead"},
    not_a_time: {"row"},
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda f: f.__name__)
@given(data=st.data(), instance=instances(), name=st.sampled_from(["fifo", "srtf", "las2d"]))
def test_rejects_corruption(
    corrupt: Callable, data: st.DataObject, instance: Instance, name: str
) -> None:
    frame = frame_of(instance, name)
    assume(len(frame))
    k = data.draw(st.integers(0, len(frame) - 1))
    assert rule_broken(instance, corrupt(frame, k)) in CORRUPTIONS[corrupt]


def two_jobs() -> Instance:
    jobs = Workload.from_columns(id=["a", "b"], arrival_s=[0, 0], gpus=[2, 2], work=[10, 10])
    return Instance(Cluster.parse("1x2"), jobs)


def rows(*values: tuple[float, ...]) -> pd.DataFrame:
    names = ["job", "node", "gpus", "start_s", "end_s", "overhead_s"]
    return pd.DataFrame(values, columns=names).astype({name: "int64" for name in names[:3]})


def test_names_the_first_row_over_capacity() -> None:
    with pytest.raises(
        Violation, match=r"capacity: row 1 \(job 'b', node 0, 9.0 to 19.0 s\): 4 GPUs held"
    ):
        verify(
            two_jobs(),
            Schedule.from_frame(rows((0, 0, 2, 0.0, 10.0, 0.0), (1, 0, 2, 9.0, 19.0, 0.0))),
        )


def test_one_gpu_too_many_is_too_many() -> None:
    jobs = Workload.from_columns(arrival_s=[0, 0], gpus=[1, 2], work=[10, 10])
    beside = rows((0, 0, 1, 0.0, 10.0, 0.0), (1, 0, 2, 0.0, 10.0, 0.0))
    assert rule_broken(Instance(Cluster.parse("1x2,1x1"), jobs), beside) == "capacity"
    assert rule_broken(Instance(Cluster.parse("1x3"), jobs), beside) is None


def test_back_to_back_is_allowed() -> None:
    verify(
        two_jobs(), Schedule.from_frame(rows((0, 0, 2, 0.0, 10.0, 0.0), (1, 0, 2, 10.0, 20.0, 0.0)))
    )


def test_a_gang_may_not_drift_apart() -> None:
    wide = Workload.from_columns(arrival_s=[0], gpus=[2], work=[10])
    instance = Instance(Cluster.parse("2x1"), wide)
    apart = rows((0, 0, 1, 0.0, 10.0, 0.0), (0, 1, 1, 0.0, 11.0, 0.0))
    assert rule_broken(instance, apart) == "gang"
    # A piece that ends before the first one: its GPU was not held to the end.
    before = rows((0, 0, 1, 0.0, 10.0, 0.0), (0, 1, 1, 0.0, 9.0, 0.0))
    assert rule_broken(instance, before) == "gang"
    # And one that pays less overhead than the first.
    charged = Instance(instance.cluster, wide, Overheads(start_s=1.0))
    unpaid = rows((0, 0, 1, 0.0, 11.0, 1.0), (0, 1, 1, 0.0, 11.0, 0.0))
    assert rule_broken(charged, unpaid) == "gang"
    one_node_twice = rows((0, 0, 1, 0.0, 10.0, 0.0), (0, 0, 1, 0.0, 10.0, 0.0))
    assert rule_broken(instance, one_node_twice) == "gang"


def test_a_job_may_not_run_beside_itself() -> None:
    one = Workload.from_columns(arrival_s=[0], gpus=[1], work=[10])
    beside = rows((0, 0, 1, 0.0, 5.0, 0.0), (0, 1, 1, 4.0, 9.0, 0.0))
    assert rule_broken(Instance(Cluster.parse("2x1"), one), beside) == "overlap"


def test_types_without_throughput_are_refused() -> None:
    job = Workload.from_columns(
        arrival_s=[0], gpus=[1], work=[10], throughput=[[1.0, 0.0]], gpu_types=("v100", "k80")
    )
    instance = Instance(Cluster.parse("1x1:v100,1x1:k80"), job)
    assert rule_broken(instance, rows((0, 1, 1, 0.0, 10.0, 0.0))) == "type"
    assert rule_broken(instance, rows((0, 0, 1, 0.0, 10.0, 0.0))) is None


def test_a_gang_on_a_type_with_fewer_gpus_is_refused_for_that() -> None:
    """The reason was that it had no throughput there, and it has one."""
    job = Workload.from_columns(
        arrival_s=[0], gpus=[2], work=[10], throughput=[[1.0, 1.0]], gpu_types=("v100", "k80")
    )
    instance = Instance(Cluster.parse("1x2:v100,1x1:k80"), job)
    mixed = rows((0, 0, 1, 0.0, 10.0, 0.0), (0, 1, 1, 0.0, 10.0, 0.0))
    with pytest.raises(
        Violation, match=r"its gang of 2 GPUs is larger than the 1 of this node's GPU type"
    ):
        verify(instance, Schedule.from_frame(mixed))
    assert rule_broken(instance, rows((0, 0, 2, 0.0, 10.0, 0.0))) is None


@pytest.mark.parametrize(
    ("frame", "rule"),
    [
        (rows((0, 0, 1, 0.0, 4.0, 1.0), (0, 0, 1, 6.0, 18.0, 5.0)), "overhead"),
        (rows((0, 0, 1, 0.0, 4.0, 1.0), (0, 0, 1, 6.0, 19.0, 6.0)), None),
        (rows((0, 0, 1, 0.0, 4.0, 1.0), (0, 1, 1, 6.0, 19.0, 6.0)), "overhead"),
        (rows((0, 0, 1, 0.0, 4.0, 1.0), (0, 1, 1, 6.0, 21.0, 8.0)), None),
        (rows((0, 0, 1, 0.0, 0.5, 0.5), (0, 0, 1, 6.0, 22.5, 6.5)), None),
        (rows((0, 0, 1, 0.0, 0.5, 0.5), (0, 0, 1, 6.0, 22.0, 6.0)), "overhead"),
    ],
)
def test_overheads_are_charged_exactly(frame: pd.DataFrame, rule: str | None) -> None:
    job = Workload.from_columns(arrival_s=[0], gpus=[1], work=[10])
    assert rule_broken(Instance(Cluster.parse("2x1"), job, COSTLY), frame) == rule


def test_an_empty_schedule_of_nothing() -> None:
    empty = Workload.from_columns(arrival_s=[], gpus=[], work=[])
    instance = Instance(Cluster.parse("1x1"), empty)
    verify(instance, run(instance, policy("fifo")).schedule)
    assert len(run(instance, policy("fifo")).schedule) == 0
    assert np.isfinite(run(instance, policy("srtf")).cpu_s)
