"""Job files: what they say is read exactly, and whatever is wrong with one is named."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import string
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InfeasibleJobError, InputError
from shadowprice.hosts.job_workload import workload
from shadowprice.hosts.live.job_file import Job, JobFile, cluster_of, load_job_file
from shadowprice.hosts.protocol import Device, DiscoveredNode
from shadowprice.instances.cluster import Cluster, Node
from shadowprice.instances.documents.plain_yaml import MAX_BYTES, parse
from shadowprice.instances.instance import Instance
from shadowprice.instances.speeds.throughputs import Throughputs

JOB = "{name: a, command: [run], iterations: 5}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def read(folder: Path, text: str | bytes) -> JobFile:
    path = folder / "jobs.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_job_file(path)


def jobs_of(folder: Path, text: str) -> tuple[Job, ...]:
    return read(folder, text).jobs


def test_a_job_says_everything(folder: Path) -> None:
    (folder / "code").mkdir()
    text = """
jobs:
  - name: resnet-a
    command: ["{python}", train.py, --lr, 0.10, --seed, 007, --shuffle, no, "--out={checkpoint_dir}"]
    env: {MODE: 0755, VERSION: 1.10, EMPTY: "", FLAG: yes}
    gpus: 2
    gpu_types: [v100, p100, v100]
    cpus: 8
    memory_gb: 1.5e1
    epochs: 3
    iterations_per_epoch: 1e3
    weight: 2.5
    arrival_s: .5
    deadline_s: 3600
    model: ResNet-18
    tenant: lab
    throughput: {v100: 40, p100: 2.5e1, k80: 0}
    directory: code
"""
    found = read(folder, text)
    assert found.path == folder / "jobs.yaml"
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()
    out = "--out={checkpoint_dir}"
    assert found.jobs == (
        Job(
            name="resnet-a",
            command=(
                "{python}",
                "train.py",
                "--lr",
                "0.10",
                "--seed",
                "007",
                "--shuffle",
                "no",
                out,
            ),
            env={"MODE": "0755", "VERSION": "1.10", "EMPTY": "", "FLAG": "yes"},
            gpus=2,
            iterations=3000,
            directory=folder / "code",
            gpu_types=("v100", "p100"),
            cpus=8.0,
            memory_gb=15.0,
            weight=2.5,
            arrival_s=0.5,
            deadline_s=3600.0,
            model="ResNet-18",
            tenant="lab",
            throughput={"v100": 40.0, "p100": 25.0, "k80": 0.0},
        ),
    )


def test_most_of_a_job_may_be_left_out(folder: Path) -> None:
    (job,) = jobs_of(folder, f"jobs: [{JOB}]")
    assert job == Job("a", ("run",), {}, 1, 5, folder)
    assert (job.deadline_s, job.weight, job.throughput, job.kind) == (math.inf, 1.0, None, "job:a")


def test_a_shell_reads_what_asks_for_it(folder: Path) -> None:
    (job,) = jobs_of(folder, "jobs: [{name: a, shell: 'echo $X | tee log', iterations: 1}]")
    assert job.command == ("/bin/sh", "-c", "echo $X | tee log")


def test_placeholders_are_replaced_once_and_others_are_left(folder: Path) -> None:
    (job,) = jobs_of(
        folder,
        "jobs: [{name: a, command: ['{python}', '{x}{directory}', '{{checkpoint_dir}}', '{}', '{0}'], iterations: 1}]",
    )
    assert job.keeps_checkpoints
    assert job.argv("/bin/{directory}", "/c/{python}") == (
        "/bin/{directory}",
        f"{{x}}{folder}",
        "{/c/{python}}",
        "{}",
        "{0}",
    )


def test_defaults_hold_where_a_job_says_nothing(folder: Path) -> None:
    one, two, three = jobs_of(
        folder,
        """
defaults: {command: [run], epochs: 2, iterations_per_epoch: 10, gpus: 2, env: {A: 1, B: 1}}
jobs:
  - {name: a}
  - {name: b, shell: x, iterations: 7, env: {B: 2}}
  - {name: c, iterations_per_epoch: 4, gpus: 1}
""",
    )
    assert (one.command, one.iterations, one.gpus, one.env) == (
        ("run",),
        20,
        2,
        {"A": "1", "B": "1"},
    )
    assert (two.command[0], two.iterations, two.env) == ("/bin/sh", 7, {"A": "1", "B": "2"})
    assert (three.iterations, three.gpus) == (8, 1)


def test_secrets_are_not_shown(folder: Path) -> None:
    found = read(folder, "jobs: [{name: a, command: [x], iterations: 1, env: {TOKEN: s3cret}}]")
    assert "s3cret" not in repr(found)
    for broken in (
        "jobs: [{name: a, env: {TOKEN: s3cret}, x: ]}",
        'jobs: [{name: a, env: {TOKEN: "s3cret\\0"}}]',
        "jobs: [{name: a, command: [x], iterations: 1, env: {TOKEN: [s3cret]}}]",
        "jobs: [{name: a, command: [x], iterations: 1, env: [s3cret]}]",
        "jobs: [{name: a, command: [x], iterations: 1, env: {A: s3cret, A: s3cret}}]",
    ):
        with pytest.raises(InputError) as caught:
            read(folder, broken)
        assert "s3cret" not in str(caught.value)


def job(**changes: str) -> str:
    keys = {"name": "a", "command": "[run]", "iterations": "5"} | changes
    inside = ", ".join(f"{key}: {value}" for key, value in keys.items() if value)
    return f"jobs: [{{{inside}}}]"


WRONG = [
    ("", "expected a mapping"),
    ("- a", "expected a mapping"),
    ("{}", "has no jobs, expected jobs"),
    ("jobs: []", "at least one job"),
    ("jobs: {a: b}", "expected a list"),
    ("jobs: [7]", "job 1: is '7'"),
    ("job: []", "did you mean 'jobs'"),
    (f"jobs: [{JOB}]\nversion: 2", "unknown key 'version'"),
    (f"jobs: [{JOB}]\ndefaults: {{name: x}}", "defaults: unknown key 'name'"),
    (f"jobs: [{JOB}]\ndefaults: {{env: 5}}", "defaults: env"),
    (f"jobs: [{JOB}]\ndefaults: {{gpu: 5}}", "defaults: unknown key 'gpu'; did you mean 'gpus'"),
    (
        f"jobs: [{JOB}, {{name: A, command: [x], iterations: 1}}]",
        r"job 2 \(A\): name is that of job 1",
    ),
    (f"jobs: [{JOB}]\njobs: []", "line 2: key 'jobs' is there twice"),
    (job(itertions="5"), "did you mean 'iterations'"),
    (job(name=""), "has no name"),
    (job(command=""), "has no command"),
    (job(shell="x"), "both command and shell"),
    (job(iterations=""), "has no iterations"),
    (job(epochs="5"), "both iterations and epochs"),
    (job(iterations="", epochs="5"), "has no iterations_per_epoch"),
    (job(iterations_per_epoch="5"), "iterations_per_epoch beside iterations"),
    (job(iterations="", epochs="1e7", iterations_per_epoch="1e7"), "epochs x iterations_per_epoch"),
    (job(command="python train.py"), r"job 1 \(a\): command is 'python train.py', expected a list"),
    (job(command="[]"), "command is"),
    (job(command="[[x]]"), r"command\[0\]"),
    (job(command="[x, ~]"), r"command\[1\] is None"),
    (job(command="['']"), r"command\[0\] is ''"),
    (job(command="", shell="' '"), "shell is ' '"),
    (job(command="", shell="[x]"), "shell is"),
    *[(job(gpus=value), "gpus is") for value in ("0", "-1", "1.5", "x", "~", "[1]", "1e9", "yes")],
    *[
        (job(iterations=value), "iterations is")
        for value in (
            "0",
            "-3",
            "0.5",
            "1e400",
            "1e13",
            ".nan",
            ".inf",
            "1_000",
            "0x10",
            "1:30",
            "9" * 5000,
        )
    ],
    *[(job(weight=value), "weight is") for value in ("-1", ".nan", ".inf", "1e19", "x")],
    *[(job(arrival_s=value), "arrival_s is") for value in ("-1", ".NaN", "1e10", "2026-01-01")],
    *[(job(deadline_s=value), "deadline_s is") for value in ("-1", ".inf", "''")],
    *[(job(cpus=value), "cpus is") for value in ("-1", "many", "1e99")],
    *[
        (job(throughput=value), "throughput")
        for value in ("0", "-1", "x", "{}", "{v: 0}", "{v: -1}", "[1]", "1e999")
    ],
    *[(job(gpu_types=value), "gpu_types is") for value in ("[]", "v100")],
    *[
        (job(gpu_types=value), rf"gpu_types\[1\] is {shown}, expected a name")
        for value, shown in (("[k, ~]", "None"), ("[k, '']", "''"), ("[k, [v]]", r"\['v'\]"))
    ],
    (job(model="[x]"), "model is"),
    (job(model="'job:b'"), "model is 'job:b'"),
    (job(directory="nowhere"), "directory is 'nowhere'"),
    (job(directory="''"), "directory is ''"),
    (job(directory="jobs.yaml"), "directory is 'jobs.yaml'"),
    (job(directory="'" + "x/" * 5000 + "'"), "directory is"),
    (job(env="{1A: x}"), "env: a key is '1A'"),
    (job(env="{'A B': x}"), "env: a key is 'A B'"),
    (job(env="{'': x}"), "env: a key is ''"),
    (job(env="{'É': x}"), "env: a key is 'É', expected letters, digits and '_'"),
    (job(env="{A: ~}"), r"env\['A'\] is not shown here, expected text or a number"),
    (job(env="{SHADOWPRICE_EPOCH: 1}"), "SHADOWPRICE_EPOCH"),
    (job(env="{CUDA_VISIBLE_DEVICES: 1}"), "CUDA_VISIBLE_DEVICES"),
    (job(env="[A]"), "env is not shown here, expected a mapping, NAME: value"),
]


@pytest.mark.parametrize(("text", "told"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named(folder: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        read(folder, text)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'jobs.yaml'}: ")
    assert len(message) < 700
    assert "\n" not in message


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "../x",
        "/etc/passwd",
        "a/b",
        "a\\\\b",
        ".hidden",
        "-x",
        "a b",
        "é",
        "x" * 65,
        "a\\n",
        "a\\0",
        "~",
        "[]",
        "{a: b}",
        "con/..",
        "a%2f",
        "$(x)",
    ],
)
def test_no_name_leaves_the_state_directory(folder: Path, name: str) -> None:
    text = name if name in ("~", "[]", "{a: b}") else f'"{name}"'
    with pytest.raises(InputError):
        read(folder, job(name=text))


@given(st.text(max_size=70) | st.text(alphabet="ab./-_~\\\0\n ", max_size=8))
def test_names_that_pass_are_safe_folders(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = yaml.safe_dump({"jobs": [{"name": name, "command": ["x"], "iterations": 1}]})
    try:
        (found,) = jobs_of(folder, text)
    except InputError:
        return
    assert set(found.name) <= set(string.ascii_letters + string.digits + "._-")
    assert 1 <= len(found.name) <= 64
    assert found.name[0].isalnum()


BOMB = "jobs:\n - &a [x,x]\n" + "".join(f" - &a{k} [{', '.join(['*a'] * 9)}]\n" for k in range(9))
HOSTILE = [
    (BOMB, "alias 'a'"),
    ("a: &a [*a]", "alias"),
    (f"x: &d {{gpus: 1}}\njobs: [{{<<: *d, {JOB[1:]}]", "alias 'd'"),
    (f"jobs: [{{<<: {{gpus: 1}}, {JOB[1:]}]", "unknown key '<<'"),
    (
        "jobs: [!!python/object/apply:os.system ['touch pwned']]",
        "tag 'tag:yaml.org,2002:python/object",
    ),
    ("!!python/object:__main__.X {}", "tag"),
    ("jobs: [{name: !!python/name:os.system x}]", "tag"),
    ("jobs: [{name: !!binary aGk=}]", "tag"),
    ("jobs: [{name: !secret x}]", "tag '!secret'"),
    ("jobs: !!set {a, b}", "tag"),
    ("jobs: !!omap [a: b]", "tag"),
    ("!!python/tuple x: 1", "key is no text"),
    ("[a, b]: 1", "key is no text"),
    ("jobs: " + "[" * 50_000, "nests deeper"),
    ("jobs: " + "{a: " * 50_000, "nests deeper"),
    ("- " * 5_000 + "x", "nests deeper"),
    ("jobs: [x", "is not YAML"),
    ("jobs: x\n---\njobs: y", "is not YAML"),
    ("%TAG ! tag:x\n---\njobs: !x y", "tag"),
    ("jobs: \x00", "is not YAML"),
    ('jobs: ["\\ud800"]', "half a character"),
    ('jobs: ["\\U00110000"]', "is not YAML"),
    ('jobs: ["a\\0"]', "null character"),
    ('"a\\0": 1', "null character"),
    ("jobs: !!int x", "line 1: tag 'int' of text that is no int"),
    ("jobs: !!timestamp 2026-13", "line 1: tag 'timestamp' of text that is no timestamp"),
    (b"jobs: [\xff\xfe]", "is not UTF-8"),
    (b"\xff\xfej\x00o\x00", "is not UTF-8"),
    (b"\x1f\x8b\x08", "is not UTF-8"),
    (b"\x00" * 100, "is not YAML"),
    ("#" * (MAX_BYTES + 1), "larger"),
]


@pytest.mark.parametrize(("text", "told"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_are_refused_fast(
    folder: Path, monkeypatch: pytest.MonkeyPatch, text: str | bytes, told: str
) -> None:
    monkeypatch.chdir(folder)
    began = time.process_time()
    with pytest.raises(InputError, match=told) as caught:
        read(folder, text)
    assert time.process_time() - began < 2.0
    assert len(str(caught.value)) < 500
    assert os.listdir(folder) == ["jobs.yaml"]


def test_only_regular_files_are_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    for path, told in [
        (folder, "is a directory"),
        (folder / "none", "no such file"),
        (folder / "pipe", "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        (folder / "loop", "cannot be read"),
        (folder / ("x" * 5000), "cannot be read"),
        (folder / "a\0b", "cannot be read"),
    ]:
        with pytest.raises(InputError, match=told):
            load_job_file(path)


def test_links_are_followed_and_paths_count_from_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    (folder / "other.yaml").write_text(job(directory="link"))
    (folder / "jobs.yaml").symlink_to("other.yaml")
    monkeypatch.chdir(folder)
    (found,) = load_job_file("jobs.yaml").jobs
    assert found.directory == folder / "link"
    (up,) = jobs_of(folder / "real", job(directory=".."))
    assert up.directory.samefile(folder)


@given(
    st.binary(max_size=60)
    | st.text(alphabet="{}[]:,-&*!|>'\"%@#\n\t ab01~?\\", max_size=60).map(str.encode)
)
def test_any_bytes_are_a_tree_or_an_input_error(data: bytes) -> None:
    # Anything but an InputError would come through.
    with contextlib.suppress(InputError):
        parse(data, "file")


LEAF = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@given(
    st.recursive(
        LEAF, lambda t: st.lists(t, max_size=3) | st.dictionaries(LEAF, t, max_size=3), max_leaves=9
    )
)
def test_trees_of_text_are_read_as_they_were_written(tree: object) -> None:
    text = yaml.safe_dump(tree, allow_unicode=False, default_style='"')
    assert parse(text.encode(), "file") == tree


def test_large_files_are_read_in_reasonable_time(folder: Path) -> None:
    lines = [
        f"  - {{name: job-{k}, command: [run, --seed, {k}], iterations: 5}}" for k in range(500)
    ]
    began = time.process_time()
    assert len(jobs_of(folder, "\n".join(["jobs:", *lines]))) == 500
    assert time.process_time() - began < 5.0


def nodes() -> list[DiscoveredNode]:
    def one(name: str, kind: str, count: int) -> DiscoveredNode:
        devices = tuple(Device(name, k, f"{name}-{k}") for k in range(count))
        return DiscoveredNode(name, kind, devices, cpus=4.0, memory_gb=16.0)

    return [one("n0", "v100", 2), one("n1", "k80", 1)]


def test_the_cluster_is_what_was_found() -> None:
    assert str(cluster_of(nodes())) == "1x2:v100+4cpu+16gb,1x1:k80+4cpu+16gb"
    with pytest.raises(InputError):
        cluster_of([])
    with pytest.raises(InputError):
        cluster_of([DiscoveredNode("n0", "v100", ())])


def test_rates_come_from_the_job_then_the_table_then_an_assumption(folder: Path) -> None:
    found = read(
        folder,
        """
defaults: {command: [x], iterations: 100}
jobs:
  - {name: own, throughput: 7, arrival_s: 9}
  - {name: types, throughput: {v100: 5, tpu: 1}}
  - {name: table, model: m}
  - {name: wide, model: m, gpus: 2}
  - {name: half, model: h, weight: 3}
  - {name: picky, model: m, gpu_types: [k80, tpu]}
  - {name: nameless}
""",
    )
    table = Throughputs(
        ("v100", "k80"),
        {("m", 1): (4.0, 2.0), ("h", 1): (3.0, 0.0), ("job:nameless", 1): (8.0, 1.0)},
    )
    made, notes = workload(found, Cluster.parse("1x2:v100,1x1:k80"), table)
    assert made.throughput is not None
    rates = dict(zip(made.id.tolist(), made.throughput.tolist(), strict=True))
    assert rates == {
        "types": [5.0, 0.0],
        "table": [4.0, 2.0],
        "wide": [1.0, 1.0],
        "half": [3.0, 0.0],
        "picky": [0.0, 2.0],
        "nameless": [8.0, 1.0],
        "own": [7.0, 7.0],
    }
    assert made.id.tolist()[-1] == "own"
    assert made.model.tolist()[:2] == ["job:types", "m"]
    assert made.weight.tolist()[3] == 3.0
    assert [note.split(":")[0] for note in notes] == ["job wide", "job half"]
    assert "1 iteration a second is assumed" in notes[0]
    assert "no rate on k80" in notes[1]
    without, notes = workload(found, Cluster.parse("1x2:v100,1x1:k80"))
    assert without.throughput is not None
    assert without.throughput[2].tolist() == [1.0, 1.0]
    assert len(notes) == 5


def test_a_job_that_fits_nowhere_is_named(folder: Path) -> None:
    cluster = Cluster.parse("1x2:v100")
    for text in (
        job(gpu_types="[k80]"),
        job(throughput="{k80: 5}"),
        job(gpus="3"),
        job(gpus="10000000"),
    ):
        found = read(folder, text)
        with pytest.raises(InfeasibleJobError, match="a"):
            Instance(cluster, workload(found, cluster)[0])


def test_deadlines_classes_and_tenants_are_columns_of_the_workload(tmp_path: Path) -> None:
    job = {"command": ["x"], "iterations": 1}
    told = {"deadline_s": 60, "job_class": "batch", "tenant": "vision", "weight": 3}
    (tmp_path / "jobs.yaml").write_text(
        json.dumps({"jobs": [job | {"name": "a"} | told, job | {"name": "b"}]})
    )
    jobs, _ = workload(load_job_file(tmp_path / "jobs.yaml"), Cluster((Node(1, "v100"),)))
    found = {name: getattr(jobs, name).tolist() for name in told}
    assert found == {
        "deadline_s": [60.0, math.inf],
        "job_class": ["batch", ""],
        "tenant": ["vision", ""],
        "weight": [3.0, 1.0],
    }


VALUES = st.text(st.sampled_from(list("ab /'\"\\$`*?;&|<>(){}#~!\n\téß")), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(VALUES)
def test_a_shell_reads_placeholders_as_they_are(value: str) -> None:
    """In no quotes, in both kinds, after a backslash, beside other text."""
    text = r"""printf '%s\0' {directory} "{directory}" '{directory}' x{directory}y "a \" {directory}" '\'{directory}"""
    job = Job("j", ("/bin/sh", "-c", text), {}, 1, 5, Path(value))
    values = {**{"directory": str(Path(value))}}
    found = str(values["directory"])
    done = subprocess.run(job.argv("p", "/c"), capture_output=True, check=True)
    read = done.stdout.decode().split("\0")[:-1]
    assert read == [found, found, found, f"x{found}y", f'a " {found}', f"\\{found}"]


def test_a_command_without_a_shell_has_placeholders_as_they_are() -> None:
    job = Job("j", ("x", "{checkpoint_dir}"), {}, 1, 5, Path("/d"))
    assert job.argv("p", "/a b") == ("x", "/a b")
