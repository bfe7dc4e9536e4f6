"""Profiles: files, families, and what the jobs of a workload get."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.execution.engine import run
from shadowprice.instances.cluster import Cluster
from shadowprice.instances.generators import generate
from shadowprice.instances.generators.synergy import LONGEST_S, SHORTEST_S
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.profiles import (
    ANY_GANG,
    DEMANDS,
    ModelFamily,
    Profiles,
    models_of,
    table_entry,
)
from shadowprice.instances.speeds.sensitivity import Profile
from shadowprice.instances.workload import Workload
from shadowprice.proofs.certificate import verify
from shadowprice.solvers.registry import policy
from support.peers import PEERS, needs_peers

SERVER = Cluster.parse("2x8+24cpu+500gb")
PEER_NAMES = {
    "alexnet": "alexnet",
    "res18": "resnet-18",
    "res50": "resnet-50",
    "mobilenet": "mobilenet",
    "shufflenet": "shufflenet",
    "gnmt": "gnmt",
    "lstm": "lstm",
    "transformer": "transformer-xl",
    "m5": "m5",
    "deepspeech": "deepspeech",
}


def jobs_of(*kinds: tuple[str, int]) -> Workload:
    return Workload.from_columns(
        arrival_s=[0.0] * len(kinds),
        work=[3600.0] * len(kinds),
        model=[model for model, _ in kinds],
        gpus=[gpus for _, gpus in kinds],
    )


@st.composite
def tables(draw: st.DrawFn) -> Profile:
    """Any table that does not fall."""
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    axes = [np.cumsum(draw(st.lists(st.floats(0.1, 9.0), min_size=k, max_size=k))) for k in shape]
    steps = draw(
        st.lists(st.floats(0.0, 2.0), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])
    )
    speed = np.cumsum(np.cumsum(np.reshape(steps, shape), axis=0), axis=1) + 0.125
    return Profile(axes[0], axes[1], speed)


KEYS = st.tuples(st.sampled_from(["a", "b", "resnet-50"]), st.integers(0, 8))


@given(st.dictionaries(KEYS, tables(), min_size=1, max_size=5))
def test_a_file_gives_the_tables_back(
    tmp_path_factory: pytest.TempPathFactory, given_tables: dict[tuple[str, int], Profile]
) -> None:
    path = tmp_path_factory.mktemp("profiles") / "p.json"
    entries = [table_entry(*key, table) for key, table in given_tables.items()]
    path.write_text(json.dumps({"profiles": entries}))
    found = Profiles.load(path)
    assert found.tables.keys() == given_tables.keys()
    for key, table in given_tables.items():
        for name in ("cpus_per_gpu", "memory_gb_per_gpu", "speed"):
            assert np.array_equal(getattr(found.tables[key], name), getattr(table, name))


GOOD: dict[str, Any] = {
    "model": "m",
    "gpus": 2,
    "cpus_per_gpu": [1, 3],
    "memory_gb_per_gpu": [20, 62.5],
    "speed": [[0.1, 0.5], [0.2, 1.0]],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"speed": [[0.1, None], [0.2, 1.0]]},
            r"speed\[0\]\[1\] is None, expected a number > 0; leave out amounts",
        ),
        ({"speed": [[0.1, 0.5], [0.2]]}, r"with 3 CPUs has 1 cells, expected 2"),
        ({"speed": [[0.1, 0.5]]}, r"speed has 1 rows, expected one row for each of 2 CPUs"),
        ({"speed": 7}, r"speed is 7, expected a list"),
        ({"speed": [[0.1, 0.5], 7]}, r"speed\[1\] is 7, expected a list"),
        (
            {"speed": [[0.0, 0.5], [0.2, 1.0]]},
            r"speed\[0\]\[0\] is 0\.0, expected a number > 0",
        ),
        ({"speed": [[-0.1, 0.5], [0.2, 1.0]]}, r"speed\[0\]\[0\] is -0\.1, expected a number > 0"),
        ({"speed": [["x", 0.5], [0.2, 1.0]]}, r"speed\[0\]\[0\] is 'x', expected a number > 0"),
        ({"speed": [[True, 1], [1, 1]]}, r"speed\[0\]\[0\] is True, expected a number > 0"),
        ({"speed": [[10**400, 1], [1, 1]]}, r"speed\[0\]\[0\] is 1000.*, expected a number > 0"),
        (
            {"speed": [[0.1, 0.5], [0.2, 0.4]]},
            r"3 CPUs and 62\.5 GB for each GPU is 0\.4, expected no less",
        ),
        (
            {"speed": [[0.3, 0.2], [0.4, 1.0]]},
            r"1 CPUs and 62\.5 GB for each GPU is 0\.2, expected no less",
        ),
        ({"cpus_per_gpu": [3, 1]}, r"cpus_per_gpu is \[3\.0, 1\.0\], expected increasing"),
        ({"cpus_per_gpu": []}, r"cpus_per_gpu is \[\], expected a list of numbers"),
        (
            {"memory_gb_per_gpu": [20, "x"]},
            r"memory_gb_per_gpu\[1\] is 'x', expected a number",
        ),
    ],
)
def test_a_bad_table_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"profiles": [GOOD | change]}))
    with pytest.raises(InputError, match=message) as caught:
        Profiles.load(path)
    assert str(path) in str(caught.value)
    assert re.search(r"model 'm' on 2 GPUs|profiles\[0\] \('m'\): ", str(caught.value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object with profiles"),
        ({"profiles": [GOOD | {"speed": [[float("nan"), 1], [1, 1]]}]}, "NaN is no number of it"),
        ({"profiles": []}, "non-empty"),
        ({"profiles": [5]}, r"profiles\[0\]: is 5, expected a mapping with model"),
        (
            {"profiles": [GOOD, {**GOOD, "gpu": 1}]},
            r"profiles\[1\] \('m'\): unknown key 'gpu'; did you mean 'gpus'",
        ),
        (
            {"profiles": [{k: v for k, v in GOOD.items() if k != "speed"}]},
            r"profiles\[0\] \('m'\): has no speed, expected model",
        ),
        ({"profiles": [{**GOOD, "model": ""}]}, "model is ''"),
        ({"profiles": [{**GOOD, "gpus": 0}]}, "gpus is 0, expected an integer >= 1"),
        ({"profiles": [{**GOOD, "gpus": True}]}, "gpus is True"),
        ({"profiles": [GOOD, GOOD]}, "model 'm' on 2 GPUs: is there twice"),
        ({"profiles": {"m": {"1": {}}}}, "profile_axes"),
        (
            {
                "profiles": {"m": {"one": {"tput": [[1]]}}},
                "profile_axes": {"cpu_rows": [1], "mem_cols_gb": [1]},
            },
            r"profiles\['m'\]: a key is 'one', expected a gang size",
        ),
        (
            {"profiles": {"m": 5}, "profile_axes": {"cpu_rows": [1], "mem_cols_gb": [1]}},
            r"profiles\['m'\] is 5, expected a mapping",
        ),
        (
            {"profiles": {"m": {"1": {}}}, "profile_axes": {"cpu_rows": [1], "mem_cols_gb": [1]}},
            r"profiles\['m'\]\['1'\]: has no tput",
        ),
    ],
)
def test_a_file_of_another_form(tmp_path: Path, data: Any, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(data))
    with pytest.raises(InputError, match=message) as caught:
        Profiles.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "no"])
def test_a_file_that_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(InputError, match="is not JSON"):
        Profiles.load(path)


@pytest.mark.parametrize("model", list(DEMANDS))
def test_families_have_the_published_points(model: str) -> None:
    profile = Profiles.synthetic().table(model, 4)
    assert profile is not None
    demand = DEMANDS[model]
    assert profile.demand() == (demand.cpus_per_gpu, demand.memory_gb_per_gpu)
    assert profile.best == demand.speedup
    assert profile.at(3.0, 62.5) == pytest.approx(1.0)


@needs_peers
@pytest.mark.parametrize("peer", list(PEER_NAMES))
def test_families_are_near_the_published_tables(peer: str) -> None:
    published = Profiles.load(PEERS / "synergy_static32.json")
    theirs, ours = published.table(peer, 1), Profiles.synthetic().table(PEER_NAMES[peer], 1)
    assert theirs is not None
    assert ours is not None
    assert theirs.cpus_per_gpu.tolist() == ours.cpus_per_gpu.tolist()
    assert theirs.best == ours.best
    assert np.abs(np.log(ours.speed / theirs.speed)).max() < np.log(1.4)
    assert np.median(np.abs(np.log(ours.speed / theirs.speed))) < np.log(1.03)


@given(table=tables(), factor=st.sampled_from([0.25, 2.0, 8.0]))
def test_the_unit_of_a_table_does_not_matter(table: Profile, factor: float) -> None:
    where = Cluster.parse("1x4+200cpu+200gb")
    jobs = jobs_of(("m", 1))
    scaled = Profile(table.cpus_per_gpu, table.memory_gb_per_gpu, table.speed * factor)
    found = [Profiles({("m", ANY_GANG): each}).of(jobs, where) for each in (table, scaled)]
    assert found[0].profiles[0].speed.tolist() == found[1].profiles[0].speed.tolist()
    assert found[0].profiles[0].at(50.0, 50.0) == 1.0


def test_the_table_of_the_gang_comes_first() -> None:
    def table(best: float) -> Profile:
        return Profile(np.array([3.0, 6.0]), np.array([62.5]), np.array([[1.0], [best]]))

    known = Profiles({("m", ANY_GANG): table(2.0), ("m", 4): table(3.0)})
    found = known.of(jobs_of(("m", 1), ("m", 4), ("m", 8), ("m", 4)), SERVER)
    assert found.best.tolist() == [2.0, 3.0, 2.0, 3.0]
    assert len(found.profiles) == 2


def test_unknown_models_need_their_share() -> None:
    jobs = jobs_of(("alexnet", 1), ("mystery", 2), ("", 1))
    known = Profiles.synthetic()
    assert known.without(jobs) == (("", 1), ("mystery", 2))
    found = known.of(jobs, SERVER)
    for job in (1, 2):
        profile = found.profile_of(job)
        assert profile.at(3.0, 62.5) == profile.at(9.0, 300.0) == 1.0
        assert profile.at(2.9, 62.5) == profile.at(3.0, 62.0) == 0.0


def test_work_is_counted_where_it_is_said() -> None:
    jobs, rich = jobs_of(("alexnet", 1), ("m5", 1)), Cluster.parse("1x8+48cpu+500gb")
    known = Profiles.synthetic()
    by_share, as_published = known.of(jobs, rich), known.of(jobs, rich, (3.0, 62.5))
    for job in (0, 1):
        assert by_share.profile_of(job).at(6.0, 62.5) == 1.0
        assert as_published.profile_of(job).at(3.0, 62.5) == 1.0
    assert as_published.best.tolist() == [2.94, 2.5]
    assert by_share.best[0] == pytest.approx(2.94 / as_published.profile_of(0).at(6.0, 62.5))


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ("2x8", "CPUs and memory for each GPU"),
        ("1x8+24cpu+500gb,1x4+24cpu+500gb", "the same on all nodes"),
        ("1x8+4cpu+500gb", "alexnet: has no speed with 0.5 CPUs and 62.5 GB for each GPU"),
        ("1x8+24cpu+80gb", "alexnet: has no speed with 3 CPUs and 10 GB"),
    ],
)
def test_clusters_that_profiles_say_nothing_about(cluster: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Profiles.synthetic().of(jobs_of(("alexnet", 1)), Cluster.parse(cluster))


@needs_peers
def test_recorded_tables_run() -> None:
    known = Profiles.load(PEERS / "synergy_static32.json")
    jobs = jobs_of(*[(model, gpus) for model in PEER_NAMES for gpus in (1, 2, 4)])
    assert known.without(jobs) == ()
    instance = Instance(SERVER, jobs, sensitivity=known.of(jobs, SERVER))
    done = run(instance, policy("srtf"))
    verify(instance, done.schedule)
    # Everybody has a proportional share, with which work is counted: an hour takes an hour.
    rows = done.schedule
    runs = {
        (job, start_s): end_s
        for job, start_s, end_s in zip(rows.job.tolist(), rows.start_s, rows.end_s, strict=True)
    }
    for job in range(len(jobs)):
        lengths_s = [end_s - start_s for (mine, start_s), end_s in runs.items() if mine == job]
        assert sum(lengths_s) == pytest.approx(3600.0, abs=1e-3)


def test_the_generator_draws_its_law() -> None:
    jobs = generate("synergy", jobs=40_000, seed=1, jobs_per_hour=9.0)
    family = np.array([DEMANDS[model].family for model in jobs.model])
    for each, share in zip(
        (ModelFamily.IMAGE, ModelFamily.LANGUAGE, ModelFamily.SPEECH), (0.2, 0.7, 0.1), strict=True
    ):
        assert np.mean(family == each) == pytest.approx(share, abs=0.012)
        for model in models_of(each):
            assert np.mean(jobs.model[family == each] == model) == pytest.approx(
                1 / len(models_of(each)), abs=0.03
            )
    assert {
        gang: round(float(np.mean(jobs.gpus == gang)), 2) for gang in (1, 2, 4, 8)
    } == pytest.approx({1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}, abs=0.011)
    assert np.mean(np.diff(jobs.arrival_s)) == pytest.approx(400.0, rel=0.03)
    assert np.mean(jobs.work > 60_000) == pytest.approx(0.2, abs=0.01)
    assert np.percentile(jobs.work[jobs.work < 60_000], 50) == pytest.approx(
        60 * 10**2.25, rel=0.03
    )


def test_philly_durations_and_samples() -> None:
    jobs = generate("synergy", jobs=200_000, durations="philly", jobs_per_hour=9.0, single_gpu=True)
    assert set(jobs.gpus.tolist()) == {1}
    assert jobs.work.min() >= SHORTEST_S - 1
    assert jobs.work.max() <= LONGEST_S + 1
    log = np.log(np.random.default_rng(0).lognormal(6.791, 2.156, 500_000))
    cut = log[(log > np.log(SHORTEST_S)) & (log < np.log(LONGEST_S))]
    assert np.percentile(np.log(jobs.work), [10, 50, 90]) == pytest.approx(
        np.percentile(cut, [10, 50, 90]), abs=0.05
    )
    drawn = generate("synergy", jobs=2_000, sample_s=[60, 61, 3600.4], jobs_per_hour=9.0)
    assert set(drawn.work.tolist()) == {60.0, 61.0, 3600.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"durations": "x"}, "durations is 'x', expected one of decades, philly"),
        ({"sample_s": []}, "at least one duration"),
        ({"sample_s": [1, -1]}, "duration 1 is -1"),
        ({"sample_s": [1, float("nan")]}, "duration 1 is nan"),
        ({"sample_s": ["x"]}, "expected durations in seconds"),
        ({"class_shares": (1, 2)}, "expected one each of image, language, speech"),
        ({"class_shares": (0, 0, 0)}, "expected one share > 0"),
        ({"class_shares": (1, -1, 0)}, "share of language models is -1"),
        ({"jobs": 0}, "jobs is 0"),
        ({"load": 0.5, "jobs_per_hour": 3.0}, "expected one of them"),
    ],
)
def test_what_the_generator_refuses(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate("synergy", **{"jobs": 10, **change})
