"""Outputs are looked at before the work, written whole, and never replaced unasked."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from shadowprice.cli.app import main
from shadowprice.cli.outputs import expect_outputs, expect_run_directory, write_whole
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.version import __version__
from support.paths import ROOT


@pytest.fixture
def shadowprice(monkeypatch, capsys):
    def run(*words: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["shadowprice", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return code, " ".join((printed.out + printed.err).split())

    return run


def generate(shadowprice, path: Path, *words: object) -> tuple[int, str]:
    return shadowprice("generate", "lognormal", "--jobs", 20, "--gpus", 16, "-o", path, *words)


def test_a_file_that_exists_is_replaced_only_by_force(shadowprice, tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("mine")
    code, said = generate(shadowprice, path)
    assert code == 2
    assert f"{path}: exists, expected a new file, or --force to replace it" in said
    assert path.read_text() == "mine"
    code, said = generate(shadowprice, path, "--force")
    assert code == 0, said
    assert path.read_text().startswith("id,arrival_s")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "jobs.csv",
        "jobs.csv-metadata.json",
    ]
    path.unlink()
    code, said = generate(shadowprice, path)
    assert code == 2
    assert f"{path}-metadata.json: exists" in said


def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("mine")

    def half(partial: Path) -> None:
        partial.write_text("id,arr")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ShadowpriceError, match=r"jobs.csv: cannot be written: No space left"):
        write_whole(path, half)
    assert path.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["jobs.csv"]


def test_errors_name_the_file_that_was_asked_for(shadowprice, tmp_path):
    code, said = generate(shadowprice, tmp_path / "jobs.txt")
    assert code == 2
    assert f"error: {tmp_path / 'jobs.txt'}: expected a name that ends with" in said


def test_simulate_looks_at_its_outputs_first(shadowprice, tmp_path):
    """Before even the trace is read: there is none here."""
    words = ("simulate", tmp_path / "no.csv", "--cluster", "2x4", "--policy", "fifo")
    code, said = shadowprice(*words, "--jobs-out", tmp_path / "nowhere" / "x.csv")
    assert code == 2
    assert f"there is no directory {tmp_path / 'nowhere'}" in said
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes").write_text("mine")
    code, said = shadowprice(*words, "-o", tmp_path / "run")
    assert code == 2
    assert (
        "run: is not empty, expected a new directory, or --force to replace the run in it" in said
    )


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    write_whole(link, lambda partial: partial.write_text("new"))
    assert link.is_symlink()
    assert real.read_text() == "new"
    expect_outputs(False, Path(os.devnull))
    write_whole(Path(os.devnull), lambda partial: partial.write_text("gone"))
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("name", ["", "file/x.csv"])
def test_places_that_are_none(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"expected a file to write|is no directory"):
        expect_outputs(True, tmp_path / name)


def test_two_outputs_are_two_files(tmp_path):
    path = tmp_path / "x.csv"
    with pytest.raises(InputError, match="is to be written twice"):
        expect_outputs(False, path, None, path)


def test_a_new_run_directory_may_be_deep_and_an_empty_one_is_new(tmp_path):
    expect_run_directory(False, tmp_path / "a" / "b")
    expect_run_directory(False, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, expected a directory"):
        expect_run_directory(True, tmp_path / "file")


PROFILE = (
    *("profile", "-o", "OUT.json", "--model", "mine", "--storage", "dataset_gb=1,disk_gb_per_s=1"),
    *("--units-per-epoch", 1, "--work-per-run", 1, "--", "false"),
)


@pytest.mark.parametrize(
    "words",
    [
        ("trace", "jobs.csv", "--page", "OUT.html"),
        ("trace", "jobs.csv", "--fit", "OUT.json"),
        ("trace", "jobs.csv", "--shuffle", "-o", "OUT.csv"),
        ("models", "synergy", "-o", "OUT.lp"),
        ("place", "graph.yaml", "--cluster", "2x4", "--plot", "OUT.png"),
        PROFILE,
        ("status", "state", "--page", "OUT.html"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_writer_looks_at_its_output_first(words, shadowprice, tmp_path):
    """Before inputs, which are not there, are read; those are the error with --force."""
    name = next(word for word in words if str(word).startswith("OUT."))
    kept = tmp_path / name
    kept.write_text("mine")
    given = [kept if word == name else word for word in words]
    code, said = shadowprice(*given)
    assert code == 2
    assert f"{name}: exists, expected a new file, or --force" in said
    absent = [tmp_path / "none" / name if word == name else word for word in words]
    assert "cannot be written: there is no directory" in shadowprice(*absent)[1]
    assert kept.read_text() == "mine"
    at = given.index("--") if "--" in given else len(given)
    code, said = shadowprice(*given[:at], "--force", *given[at:])
    assert "expected a new file" not in said
    assert (code == 0) == (kept.read_text() != "mine")


def test_a_parquet_file_says_what_made_it(shadowprice, tmp_path):
    csv, one, two = (tmp_path / name for name in ("a.csv", "one.parquet", "two.parquet"))
    generate(shadowprice, csv)
    for path in (one, two):
        code, said = shadowprice("trace", csv, "--shuffle", "--seed", 3, "-o", path)
        assert code == 0, said
    assert one.read_bytes() == two.read_bytes()
    told = json.loads(pq.read_schema(one).metadata[b"shadowprice"])
    assert told["version"] == __version__
    assert told["command"] == "trace"
    assert told["options"] == {"file": str(csv), "shuffle": True, "seed": 3}
    digest = hashlib.sha256(csv.read_bytes()).hexdigest()
    assert told["inputs_sha256"] == {str(csv): digest}


def test_a_run_directory_says_which_version_made_it(shadowprice, tmp_path):
    jobs, run = tmp_path / "jobs.csv", tmp_path / "run"
    generate(shadowprice, jobs)
    code, said = shadowprice(
        "simulate", jobs, "--cluster", "4x4", "--policy", "fifo", "-o", run, "--json"
    )
    assert code == 0, said
    assert json.loads((run / "run.json").read_text())["version"] == __version__
    assert shadowprice("verify", run)[0] == 0


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_kind_of_output_says_what_made_it(shadowprice, tmp_path, monkeypatch):
    """Version, command, options, digests of the files it read; the same inputs give the same bytes."""
    monkeypatch.chdir(tmp_path)
    code, said = generate(shadowprice, Path("jobs.csv"))
    assert code == 0, said
    before: list[str] = []
    words = ("simulate", "jobs.csv", "--cluster", "2x8", "--policy", "srtf")
    for again in ((), ("--force",)):
        outputs = ("--jobs-out", "out.csv", "-o", "run", *again)
        assert shadowprice(*words, *outputs)[0] == 0
        plot = ("--plot", "cdf.png", *again)
        compare = ("compare", *words[1:4], "--policies", "fifo,srtf", "--budget", 0)
        assert shadowprice(*compare, *plot)[0] == 0
        assert shadowprice("trace", "jobs.csv", "--page", "page.html", *again)[0] == 0
        digests = [sha256(Path(name)) for name in ("out.csv-metadata.json", "cdf.png", "page.html")]
        assert not again or digests == before
        before = digests
    records = {
        "simulate": json.loads(Path("out.csv-metadata.json").read_text())["notes"][0]["made_by"],
        "run": json.loads(Path("run/run.json").read_text())["made_by"],
        "compare": json.loads(Image.open("cdf.png").text["Description"]),
        "printed": json.loads(shadowprice(*words, "--json")[1])["made_by"],
    }
    for each in records.values():
        assert each["version"] == __version__
        assert each["inputs_sha256"] == {"jobs.csv": sha256(Path("jobs.csv"))}
    assert records["compare"]["command"] == "compare"
    assert records["compare"]["options"]["policies"] == "fifo,srtf"
    assert records["run"]["options"]["policy"] == "srtf"
    page = Path("page.html").read_text()
    assert f"Made by shadowprice {__version__}: trace file=" in page
    assert sha256(Path("jobs.csv")) in page


WRITERS = {
    "certify run -o OUT.jsonl --budget 0": {"run/run.json"},
    "models synergy -o OUT.lp": set(),
    "models synergy -o OUT.mps": set(),
    "adversary --policy fifo --family jobs=2,gpus=2 --evaluations 5 -o OUT.json --plot OUT.eps": set(),
    "trace jobs.csv --fit OUT.json": {"jobs.csv"},
    "trace jobs.csv --shuffle -o OUT.parquet": {"jobs.csv"},
    "trace jobs.csv --shuffle -o OUT.csv": {"jobs.csv"},
    "simulate jobs.csv --cluster 2x8 --policy srtf --jobs-out OUT.parquet": {"jobs.csv"},
    "simulate jobs.csv --cluster 2x8 --policy hadar --prices OUT.parquet": {"jobs.csv"},
    "simulate jobs.csv --cluster 2x8 --policy hadar --prices OUT.csv": {"jobs.csv"},
}


@pytest.mark.parametrize("command", WRITERS)
def test_files_of_every_format_have_their_origin_inside_or_beside(
    shadowprice, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    assert generate(shadowprice, Path("jobs.csv"))[0] == 0
    simulate = ("simulate", "jobs.csv", "--cluster", "2x8", "--policy", "srtf", "-o", "run")
    assert shadowprice(*simulate)[0] == 0
    before = set(Path().iterdir())
    code, said = shadowprice(*command.split())
    assert code == 0, said
    written = {each for each in set(Path().iterdir()) - before if "metadata" not in each.name}
    assert {each.name for each in written} == {
        word for word in command.split() if word.startswith("OUT.")
    }
    for each in written:
        if each.suffix == ".parquet":
            made_by = json.loads(pq.read_schema(each).metadata[b"shadowprice"])
        else:
            beside = json.loads(Path(f"{each}-metadata.json").read_text())
            assert beside["url"] == each.name
            assert ("@context" in beside) == (each.suffix == ".csv")
            (note,) = beside["notes"]
            made_by = note["made_by"]
        assert made_by["version"] == __version__
        assert command.startswith(made_by["command"])
        assert "OUT" not in str(made_by["options"])
        assert made_by["inputs_sha256"] == {name: sha256(Path(name)) for name in WRITERS[command]}


def test_commands_write_by_the_functions_that_keep_the_origin():
    """No command writes by itself."""
    for file in (ROOT / "shadowprice/cli").rglob("*.py"):
        text = file.read_text()
        assert "write_text(" not in text or "write_file(" in text, file
        assert file.name == "outputs.py" or "write_whole" not in text, file


def test_a_policy_of_a_file_is_an_input(shadowprice, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert generate(shadowprice, Path("jobs.csv"))[0] == 0
    own = tmp_path / "own.py"
    own.write_text((ROOT / "examples/policies/narrowest_first.py").read_text())
    words = ("jobs.csv", "--cluster", "2x8", "--policy", "own.py:NarrowestFirst", "--json")
    code, said = shadowprice("simulate", *words)
    assert code == 0, said
    assert json.loads(said)["made_by"]["inputs_sha256"] == {
        "jobs.csv": sha256(Path("jobs.csv")),
        "own.py": sha256(own),
    }
