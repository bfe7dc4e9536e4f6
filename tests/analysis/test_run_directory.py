"""Run directories: nothing is lost, and nothing that was touched gets through."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.analysis.outcome import Outcome
from shadowprice.analysis.run_directory.directory import (
    INSTANCE,
    RUN,
    SCHEDULE,
    WORKLOAD,
    load,
    save,
)
from shadowprice.analysis.run_directory.files import Provenance
from shadowprice.analysis.simulate import simulate
from shadowprice.errors import InputError, ShadowpriceError, VerificationError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.instance import Instance
from shadowprice.instances.strategies import instances
from shadowprice.instances.terms.charges import Overheads
from shadowprice.instances.traces import load_trace
from shadowprice.instances.workload import Workload
from shadowprice.solvers.registry import policy

FILES = [INSTANCE, RUN, SCHEDULE, WORKLOAD]
SETTINGS = {"preset": None, "placement": "count", "round_s": 0.0, "seed": 3, "dropped": ["x"]}


def outcome_of(instance: Instance, name: str = "srtf") -> Outcome:
    result = run(instance, policy(name))
    return Outcome.verified(
        instance,
        result.schedule,
        policy=name,
        settings=SETTINGS,
        decisions=result.decisions,
        cpu_s=result.cpu_s,
    )


@pytest.fixture
def outcome() -> Outcome:
    """A run with several node groups, throughputs, overheads and preemptions."""
    workload = Workload.from_columns(
        id=["a", "b", "ç"],
        arrival_s=[0.1, 2.0, 3.0],
        gpus=[2, 1, 2],
        work=[100.0, 20.0, 7.0],
        deadline_s=[np.inf, 50.0, np.inf],
        tenant=["", "t", "1"],
        throughput=[[3.0, 0.0], [3.0, 1.0], [1.0, 1.0]],
        gpu_types=["v100", "k80"],
    )
    cluster = Cluster(
        (Node(2, "v100", cpus=8.0), Node(1, "k80", price_per_hour=0.5), Node(1, "k80"))
    )
    overheads = Overheads(start_s=1.0, restart_by_gpus=((1, 2.0), (4, 3.5)))
    return outcome_of(Instance(cluster, workload, overheads))


@pytest.fixture
def saved(outcome: Outcome, tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    save(outcome, directory)
    return directory


def same(one: Outcome, other: Outcome) -> bool:
    return (
        one.instance == other.instance
        and one.schedule.to_frame().equals(other.schedule.to_frame())
        and one.summary() == other.summary()
        and (one.settings, one.decisions) == (other.settings, other.decisions)
    )


def rewrite_json(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))


def rewrite_parquet(path: Path, change: Callable[[pd.DataFrame], object]) -> None:
    frame = pd.read_parquet(path)
    change(frame)
    frame.to_parquet(path, index=False)


def test_what_is_loaded_is_what_was_saved(outcome: Outcome, saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == FILES
    assert same(load(saved), outcome)


@given(instances(min_jobs=0), st.sampled_from(["fifo", "las2d"]))
def test_any_run_survives(instance: Instance, name: str) -> None:
    made = outcome_of(instance, name)
    with tempfile.TemporaryDirectory() as directory:
        save(made, directory)
        assert same(load(directory), made)


def test_an_earlier_run_is_replaced(outcome: Outcome, saved: Path) -> None:
    other = outcome_of(outcome.instance, "fifo")
    save(other, saved)
    assert same(load(saved), other)


def test_a_crash_while_saving_leaves_a_directory_that_can_be_saved_to(
    outcome: Outcome, saved: Path
) -> None:
    for name in FILES:
        (saved / name).rename(saved / f".partial-{name}")
    with pytest.raises(InputError, match=r"run\.json: no such file"):
        load(saved)
    save(outcome, saved)
    assert same(load(saved), outcome)


def test_files_of_two_runs_do_not_mix(outcome: Outcome, saved: Path, tmp_path: Path) -> None:
    save(outcome_of(outcome.instance, "fifo"), tmp_path / "other")
    (tmp_path / "other" / RUN).replace(saved / RUN)
    with pytest.raises(VerificationError):
        load(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(InputError, match=f"{name}: no such file"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{", b"[1]", b'"text"', b"PAR1PAR1"])
@pytest.mark.parametrize("name", FILES)
def test_garbage_is_named(saved: Path, name: str, content: bytes) -> None:
    (saved / name).write_bytes(content)
    with pytest.raises(InputError, match=name):
        load(saved)


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_byte_gets_through(saved: Path, name: str) -> None:
    data = (saved / name).read_bytes()
    for position in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        (saved / name).write_bytes(damaged)
        with pytest.raises(ShadowpriceError):
            load(saved)
    (saved / name).write_bytes(data)
    load(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("policy", "fifo"),
        ("settings", {"seed": 4}),
        ("decisions", 1),
        ("cpu_s", 0.0),
        ("verify_cpu_s", 0.0),
        ("metrics", {}),
        ("sha256", {}),
    ],
)
def test_an_edited_description_is_refused(saved: Path, key: str, value: object) -> None:
    rewrite_json(saved / RUN, lambda described: described.update({key: value}))
    with pytest.raises(VerificationError, match=r"run"):
        load(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", 4),
        ("policy", None),
        ("settings", []),
        ("decisions", "many"),
        ("decisions", True),
    ],
)
def test_a_malformed_description_is_refused(saved: Path, key: str, value: object) -> None:
    rewrite_json(saved / RUN, lambda described: described.update({key: value}))
    with pytest.raises(InputError, match=r"run\.json"):
        load(saved)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cluster", [{"count": 9, "gpus": 2, "gpu_type": "v100"}]),
        ("overheads", {}),
        ("stopped_s", 1e9),
    ],
)
def test_another_instance_is_refused(saved: Path, key: str, value: object) -> None:
    rewrite_json(saved / INSTANCE, lambda described: described.update({key: value}))
    with pytest.raises((VerificationError, InputError), match=r"instance\.json|run"):
        load(saved)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cluster", {}, "a list of at least one group of nodes"),
        ("cluster", [], "a list of at least one group of nodes"),
        ("cluster", [1], "cluster"),
        ("cluster", [{"count": 1, "gpus": 0}], "gpus is 0"),
        ("cluster", [{"count": 1, "gpus": 1, "colour": "red"}], "unknown key 'colour'"),
        (
            "cluster",
            [{"count": 1.5, "gpus": 1}],
            r"cluster\[0\]: count is 1\.5, expected an integer",
        ),
        ("cluster", [{"count": 10**6, "gpus": 1}] * 2, "2000000 nodes, expected at most"),
        ("overheads", {"start_s": -1.0}, "overheads: start_s"),
        ("overheads", {"restart_by_gpus": [[1]]}, "restart_by_gpus"),
        ("copies", {}, "copies: has no round_s"),
        ("preemption", "never", "preemption is 'never'"),
        ("failures", {"source": "f"}, "failures: has no known_until_s"),
        ("declared", {"rocks": {}}, "declared: unknown key 'rocks'; did you mean 'racks'"),
        ("until_complete", "3", "3"),
    ],
)
def test_a_malformed_instance_is_refused(
    saved: Path, key: str, value: object, message: str
) -> None:
    rewrite_json(saved / INSTANCE, lambda described: described.update({key: value}))
    with pytest.raises(InputError, match=rf"instance\.json.*{message}"):
        load(saved)


def test_the_report_on_a_trace_is_kept_and_guarded(saved: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,gpus,submit,duration,mood\n1,1,50,10,-\n2,1,0,500,-\n3,1,90,5,-\n")
    imported = load_trace(log, format=":window=0-60,longest_s=90")
    outcome = simulate(imported.workload, "1x1", "fifo")
    save(outcome, saved, provenance=Provenance(cleaning=imported.document()))
    kept = json.loads((saved / "cleaning.json").read_text())
    assert kept["source"] == str(log)
    assert kept["notes"] == ["columns that are not used: mood"]
    assert kept["rows"] == {
        "read": 3,
        "kept": 2,
        "dropped": 1,
        "censored": 0,
        "repaired": 2,
        "derived": 0,
        "contradicted": 0,
    }
    assert [(each["action"], each["count"]) for each in kept["findings"]] == [
        ("repaired", 1),
        ("dropped", 1),
        ("repaired", 1),
    ]
    assert same(load(saved), outcome)
    rewrite_json(saved / "cleaning.json", lambda given: given.update(notes=[]))
    with pytest.raises(VerificationError, match=r"cleaning.json: is not what was saved"):
        load(saved)
    save(outcome, saved)
    assert not (saved / "cleaning.json").exists()


def test_a_schedule_that_breaks_a_rule_is_refused_by_the_rule(saved: Path) -> None:
    rewrite_parquet(saved / SCHEDULE, lambda frame: frame.update({"gpus": frame["gpus"] + 1}))
    with pytest.raises(VerificationError, match=r"schedule\.parquet: gang: row 0"):
        load(saved)


def test_a_wrong_metric_is_named(saved: Path) -> None:
    rewrite_json(saved / RUN, lambda described: described["metrics"].update({"avg_jct_s": 1.0}))
    with pytest.raises(VerificationError, match=r"run\.json: metric avg_jct_s is 1\.0"):
        load(saved)


def test_a_column_of_the_jobs_that_no_rule_reads_is_still_guarded(saved: Path) -> None:
    rewrite_parquet(saved / WORKLOAD, lambda frame: frame.update({"tenant": ["u"] * len(frame)}))
    with pytest.raises(VerificationError, match=r"workload\.parquet: is not what was saved"):
        load(saved)


def test_other_peoples_directories_are_left_alone(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(InputError, match=r"'thesis.tex' in it"):
        save(outcome, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (WORKLOAD, "mine", r"'workload.parquet' but no 'run.json'"),
        (RUN, '{"format": "mine"}', "format is 'mine'"),
    ],
)
def test_namesakes_of_other_origin_are_left_alone(
    outcome: Outcome, tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        save(outcome, tmp_path)
    assert (tmp_path / name).read_text() == content
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_in_the_way_is_refused(outcome: Outcome, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(InputError, match="is a file"):
        save(outcome, tmp_path / "run")
    with pytest.raises(InputError, match="cannot be written"):
        save(outcome, tmp_path / "run" / "below")
    with pytest.raises(InputError, match="no such directory"):
        load(tmp_path / "run")


def test_settings_that_are_not_json_are_refused(outcome: Outcome, tmp_path: Path) -> None:
    for value in (float("nan"), object()):
        odd = Outcome(outcome.instance, outcome.schedule, "srtf", {"odd": value})
        with pytest.raises(InputError, match="not JSON"):
            save(odd, tmp_path / "run")


# Directories that earlier versions wrote.

EARLIER = Path(__file__).parent / "run_directories" / "copies_of_old_version"


def test_a_run_of_an_earlier_format_is_refused_in_a_line_and_may_be_written_over(
    outcome: Outcome, tmp_path: Path
) -> None:
    directory = shutil.copytree(EARLIER, tmp_path / "earlier")
    expected = r"run\.json: is a run of format 1, written by version .*, expected one of format 3; simulate it again"
    with pytest.raises(InputError, match=expected) as refused:
        load(directory)
    assert "\n" not in str(refused.value)
    save(outcome, directory)
    assert sorted(path.name for path in directory.iterdir()) == FILES
    assert same(load(directory), outcome)
