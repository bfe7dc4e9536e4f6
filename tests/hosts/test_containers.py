"""Jobs in containers: the command line of the runtime, and a run with a runtime that only says what it got."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shadowprice.errors import InputError
from shadowprice.hosts.containers import Container
from shadowprice.hosts.live.driver import execute
from shadowprice.hosts.live.job_file import entry_of, jobs_of, load_job_file
from shadowprice.hosts.live.limits import Limits
from shadowprice.hosts.live.settings import Settings
from support.driver_process import kill_left_over, write_jobs

RUNTIME = """#!{python} -ISs
import json, os, sys
words = sys.argv[1:]
assert words.pop(0) == "exec"
said = {{"binds": [], "nv": False}}
while words[0].startswith("--"):
    option = words.pop(0)
    if option == "--nv":
        said["nv"] = True
    elif option == "--bind":
        said["binds"].append(words.pop(0))
    elif option == "--pwd":
        said["pwd"] = words.pop(0)
    else:
        sys.exit(f"unknown option {{option}}")
said["image"] = words.pop(0)
said["command"] = words
with open({log!r}, "w") as file:
    json.dump(said, file)
os.chdir(said["pwd"])
os.execvp(words[0], words)
"""
JOB = """
import os, sys
open(os.path.join(sys.argv[1], "saved"), "w").write(os.environ["SECRET"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="supervisors need Linux")
def test_a_job_runs_in_its_image_and_saves_where_it_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, log = tmp_path / "bin", tmp_path / "said.json"
    programs.mkdir()
    runtime = programs / "apptainer"
    runtime.write_text(RUNTIME.format(python=sys.executable, log=str(log)))
    runtime.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    (tmp_path / "image.sif").write_bytes(b"")
    state = tmp_path / "state"
    job = {
        "name": "a",
        "command": ["{python}", "-I", "-S", "-c", JOB, "{checkpoint_dir}"],
        "iterations": 1,
        "env": {"SECRET": "swordfish-9"},
        "container": {"image": "image.sif", "binds": ["/usr:/opt/usr:ro"]},
    }
    file = write_jobs(tmp_path / "jobs.yaml", [job])
    limits = Limits(poll_s=0.02, grace_s=2.0)
    try:
        done = execute(Settings(file, "fifo", "local:1", state, round_s=0.0, limits=limits))
    finally:
        kill_left_over(state)
    assert done.all_finished
    said = json.loads(log.read_text())
    assert said["image"] == str(tmp_path / "image.sif")
    assert said["binds"] == [str(tmp_path), str(state / "jobs" / "a"), "/usr:/opt/usr:ro"]
    assert said["pwd"] == str(tmp_path)
    assert not said["nv"]  # slots of a CPU
    assert said["command"][0] == "python3"
    saved = list((state / "jobs" / "a").rglob("saved"))
    assert [path.read_text() for path in saved] == ["swordfish-9"]
    assert "swordfish" not in log.read_text()


@pytest.mark.parametrize(
    ("container", "said"),
    [
        ({"image": "none.sif"}, "image is 'none.sif', expected a file or folder that exists"),
        ({"image": "http://x/y"}, "expected a path, or docker://"),
        ({"image": "docker://--nv"}, "expected a path, or docker://"),
        ({"image": "docker://a b"}, "expected a path, or docker://"),
        ({"image": ""}, "image is ''"),
        ({"image": "docker://a", "binds": ["data"]}, "binds has 'data'"),
        ({"image": "docker://a", "binds": ["/a:/b:rw,/etc"]}, "binds has '/a:/b:rw,/etc'"),
        ({"image": "docker://a", "gpus": 1}, "gpus"),
        ("docker://a", "container"),
    ],
)
def test_a_wrong_container_is_refused_in_a_line(
    tmp_path: Path, container: object, said: str
) -> None:
    job = {"name": "a", "command": ["x"], "iterations": 1, "container": container}
    with pytest.raises(InputError, match=said) as caught:
        load_job_file(write_jobs(tmp_path / "jobs.yaml", [job]))
    assert "job 1 (a)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_that_cannot_be_bound_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    job = {"name": "a", "command": ["x"], "iterations": 1, "container": {"image": "docker://a"}}
    with pytest.raises(InputError, match="expected no ':' and ',' in the path"):
        load_job_file(write_jobs(folder / "jobs.yaml", [job]))


WORDS = st.text(st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1)


@settings(max_examples=15)
@given(st.lists(WORDS, min_size=1, max_size=4), st.booleans())
def test_what_follows_the_image_is_the_command_and_nothing_else(
    command: list[str], gpus: bool
) -> None:
    image = Container("-x.sif", ("/data:/in:ro",))
    line = image.argv(command, Path("/d"), Path("/s/j"), gpus=gpus)
    at = line.index("/d/-x.sif")  # never an option
    assert list(line[at + 1 :]) == command
    assert line[:2] == ("apptainer", "exec")
    assert ("--nv" in line[:at]) == gpus


def test_a_container_is_kept_in_an_entry(tmp_path: Path) -> None:
    job = {"name": "a", "command": ["x"], "iterations": 1}
    container = {"image": "docker://pytorch/pytorch:2.5", "binds": ["/data"]}
    read = jobs_of({"jobs": [job | {"container": container, "job_class": "batch"}]}, "x", tmp_path)
    assert read[0].container == Container("docker://pytorch/pytorch:2.5", ("/data",))
    assert read[0].job_class == "batch"
    assert jobs_of({"jobs": [entry_of(read[0])]}, "x", tmp_path) == read
