"""Files of the user's own: what is loaded, and one sentence for whatever is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shadowprice.errors import InputError
from shadowprice.instances.cluster import Cluster
from shadowprice.user_code import files_sha256, load, own_modules, runs_a_file, sentence

BROKEN = {
    "syntax.py": ("x = (\n", r"syntax.py, line 1: '\(' was never closed"),
    "raises.py": ("x = 1\ny = x / 0\n", r"raises.py, line 2: ZeroDivisionError: division by zero"),
    "exits.py": ("import sys\nsys.exit(3)\n", r"exits.py, line 2: SystemExit: 3"),
    "imports.py": (
        "import no_such_module\n",
        r"imports.py, line 1: ModuleNotFoundError: No module named 'no_such_module'",
    ),
    "empty.py": ("import math\n", r"empty.py has no 'Own'; it defines nothing"),
    "other.py": ("class Other: ...\n", r"other.py has no 'Own'; it defines Other"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    text, message = BROKEN[name]
    (tmp_path / name).write_text(text)
    before = set(sys.modules)
    with pytest.raises(InputError, match=message) as caught:
        load(f"{tmp_path / name}:Own", "policy")
    assert "\n" not in str(caught.value)
    left = {each for each in set(sys.modules) - before if each.startswith("user_code_")}
    assert all(hasattr(sys.modules[each], "__file__") for each in left)
    assert bool(left) == (name in {"empty.py", "other.py"})


def test_no_file_a_folder_and_no_name(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    for text, message in (
        (f"{tmp_path}/none.py:Own", "none.py: No such file or directory"),
        (f"{tmp_path}/folder.py:Own", "folder.py: is no file, expected one in Python"),
        (f"{tmp_path}/none.py", r"expected FILE\.py:NAME"),
        (f"{tmp_path}/none.py:", r"expected FILE\.py:NAME"),
        (f"{tmp_path}/none.py:1", r"expected FILE\.py:NAME"),
    ):
        with pytest.raises(InputError, match=message):
            load(text, "policy")


def test_a_file_is_run_once_and_again_when_it_changed(tmp_path: Path) -> None:
    file = tmp_path / "counted.py"
    file.write_text("Own = object()\n")
    first = load(f"{file}:Own", "policy")
    assert load(f"{file}:Own", "policy") is first
    file.write_text("Own = 'another'\n")
    assert load(f"{file}:Own", "policy") == "another"


def test_what_lies_beside_a_file_can_be_imported_and_two_versions_live_together(
    tmp_path: Path,
) -> None:
    for version in ("old", "new"):
        folder = tmp_path / version
        (folder / "parts").mkdir(parents=True)
        (folder / "beside.py").write_text(f"VERSION = {version!r}\n")
        (folder / "parts" / "__init__.py").write_text(f"VERSION = {version!r}\n")
        (folder / "mine.py").write_text(
            "import beside\nimport parts\nBOTH = (beside.VERSION, parts.VERSION)\n"
        )
    path = list(sys.path)
    found = [load(f"{tmp_path / version}/mine.py:BOTH", "policy") for version in ("old", "new")]
    assert found == [("old", "old"), ("new", "new")]
    assert sys.path == path
    for module in own_modules():
        if str(tmp_path) in str(module.__file__):
            sys.modules.pop(module.__name__, None)


def test_a_mistake_beside_a_file_names_the_file_it_is_in(tmp_path: Path) -> None:
    (tmp_path / "beside_broken.py").write_text("x = 1\ny = = 2\n")
    (tmp_path / "mine.py").write_text("import beside_broken\n")
    with pytest.raises(InputError, match=r"beside_broken\.py, line 2: invalid syntax"):
        load(f"{tmp_path}/mine.py:Own", "policy")


def test_a_name_that_an_object_of_ours_lacks_comes_with_those_it_has() -> None:
    cluster = Cluster.parse("1x2")
    every = ", ".join(name for name in dir(cluster) if not name.startswith("_"))
    for thing, name, said in (
        (cluster, "node", "; it has nodes"),
        (cluster, "zzz", f"; it has {every}"),
        (3, "nodes", "AttributeError: 'int' object has no attribute 'nodes'"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(thing, name)
        assert said in sentence(caught.value)
    assert "it has" not in sentence(caught.value)


def test_the_digest_is_of_all_files_that_are_named(tmp_path: Path) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("1")
    other.write_text("2")
    text = f"gavel:model={one}:build,round_s=3 {other}:Place"
    assert runs_a_file(text)
    digests = {files_sha256(text)}
    for file in (one, other):
        file.write_text(file.read_text() + " ")
        digests.add(files_sha256(text))
    assert len(digests) == 3
    one.unlink()
    with pytest.raises(InputError, match=r"one\.py: No such file"):
        files_sha256(text)
