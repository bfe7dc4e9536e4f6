"""What a command loads: help, a mistake in the input and a small simulation load little."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.main import get_command

import shadowprice.hosts
import shadowprice.solvers
import shadowprice.solvers.gavel.policies
import shadowprice.solvers.graph_placement
import shadowprice.solvers.placement
import shadowprice.studies.presets
from shadowprice.analysis.adversary.search import METHODS
from shadowprice.cli.app import app
from shadowprice.errors import InputError
from shadowprice.execution.simulator import schedulers
from shadowprice.instances.offers import Offers, written_names
from shadowprice.solvers.registry import COPIES, policies, policy

HEAVY = {
    "highspy",
    "joblib",
    "matplotlib",
    "networkx",
    "ortools",
    "pandas",
    "plotly",
    "pyarrow",
    "pyomo",
    "scipy",
    "sklearn",
}
Loads = Callable[..., tuple[int, str, set[str]]]

LATER = HEAVY | {"numpy"}
"""What help, and the message about a file that is not there, do without."""

PLACES = (
    (shadowprice.solvers, "POLICIES"),
    (shadowprice.solvers.placement, "PLACEMENTS"),
    (shadowprice.solvers.gavel.policies, "ALLOCATIONS"),
    (shadowprice.solvers.graph_placement, "GRAPH_PLACEMENTS"),
    (shadowprice.studies.presets, "PRESET"),
    (shadowprice.hosts, "HOST"),
)


# A process that has imported the command line and nothing else, and forks for each command.
COMMANDS = """
import json, os, sys
from shadowprice.cli.app import main

for line in sys.stdin:
    modules, errors, words = json.loads(line)
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    sys.argv = ["shadowprice", *words]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stderr.flush()
        open(modules, "w").write("\\n".join(sys.modules))
        os._exit(code)
"""


@pytest.fixture(scope="module")
def commands() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    ) as process:
        yield process


@pytest.fixture
def loads(tmp_path: Path, commands: subprocess.Popen[str]) -> Loads:
    """Exit code of a command, what it said on stderr, and full names of what it had loaded."""

    def run(*words: str) -> tuple[int, str, set[str]]:
        modules, errors = tmp_path / "modules.txt", tmp_path / "errors.txt"
        assert commands.stdin is not None
        assert commands.stdout is not None
        print(json.dumps([str(modules), str(errors), words]), file=commands.stdin, flush=True)
        code = int(commands.stdout.readline())
        return code, errors.read_text().strip(), set(modules.read_text().split())

    return run


def tops(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "ten.csv"
    rows = [f"job{k},{1 + k % 3},{7 * k},{60 + k}" for k in range(10)]
    path.write_text("\n".join(["id,gpus,submit,duration", *rows]) + "\n")
    return path


def test_the_package_itself_loads_nothing() -> None:
    program = "import shadowprice, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert not tops(set(done.stdout.split())) & (LATER | {"typer", "rich"})


@pytest.mark.parametrize("command", [(), ("simulate",), ("compare",), ("execute",)])
def test_help(command: tuple[str, ...], loads: Loads) -> None:
    code, said, names = loads(*command, "--help")
    assert (code, said) == (0, "")
    assert not tops(names) & LATER


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_a_file_that_is_not_there(command: str, loads: Loads) -> None:
    wanted = ("--policy", "fifo") if command == "simulate" else ()
    code, said, names = loads(command, "no.csv", "--cluster", "2x4", *wanted)
    assert (code, said) == (2, "error: no.csv: no such file")
    assert not tops(names) & LATER


@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_an_unknown_policy(command: str, trace: Path, loads: Loads) -> None:
    option = "--policy" if command == "simulate" else "--policies"
    named = "fifoo:fast=1" if command == "simulate" else "fifo,fifoo"
    code, said, names = loads(command, str(trace), "--cluster", "2x4", option, named)
    assert code == 2
    assert said.startswith("error: policy 'fifoo': did you mean 'fifo'")
    assert not tops(names) & LATER
    assert "shadowprice.execution.engine" not in names


def test_names_of_a_preset_and_of_copies_are_no_mistakes(trace: Path, loads: Loads) -> None:
    assert set(schedulers()) == {COPIES}
    assert COPIES not in policies()
    for words in ((f"{COPIES}:round_s=60",), ("FIFO", "--preset", "pai")):
        code, said, _ = loads("simulate", str(trace), "--cluster", "2x4", "--policy", *words)
        assert (code, said) == (0, "")


@pytest.mark.parametrize(
    ("cluster", "named", "message"),
    [
        ("2x", "fifo", "cluster '2x'"),
        ("2x4", "fifo:fast=1", "policy 'fifo'"),
        ("1x1", "fifo", "job1"),
    ],
)
def test_mistakes(trace: Path, cluster: str, named: str, message: str, loads: Loads) -> None:
    code, said, names = loads("simulate", str(trace), "--cluster", cluster, "--policy", named)
    assert code == 2
    assert message in said
    assert not tops(names) & HEAVY


def test_a_wrong_value(trace: Path, loads: Loads) -> None:
    trace.write_text(trace.read_text().replace(",60\n", ",long\n"))
    code, said, names = loads("simulate", str(trace), "--cluster", "2x4", "--policy", "fifo")
    assert code == 2
    assert "row 1, column 'duration': got 'long'" in said
    assert not tops(names) & HEAVY


@pytest.mark.parametrize("named", ["fifo", "srtf", "las2d"])
def test_a_small_simulation(trace: Path, named: str, loads: Loads) -> None:
    code, said, names = loads(
        "simulate", str(trace), "--cluster", "2x4", "--policy", named, "--json"
    )
    assert (code, said) == (0, "")
    assert not tops(names) & HEAVY
    home = Path(shadowprice.solvers.__path__[0])
    files = [
        path.relative_to(home).with_suffix("")
        for path in files_with(shadowprice.solvers, "POLICIES")
    ]
    modules = {".".join(["shadowprice.solvers", *file.parts]) for file in files}
    assert {name.rpartition(".")[2] for name in modules & names} == {named}


def test_comparing_needs_no_drawing(trace: Path, loads: Loads) -> None:
    code, _, names = loads("compare", str(trace), "--cluster", "2x4", "--budget", "0.05", "--json")
    assert code == 0
    assert not tops(names) & {"matplotlib", "plotly", "networkx", "sklearn", "joblib"}


def files_with(package: ModuleType, constant: str) -> list[Path]:
    paths = [path for folder in package.__path__ for path in Path(folder).rglob("[!_]*.py")]
    paths.sort(key=lambda path: (path.stem, path))
    return [path for path in paths if f"\n{constant} = " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(("package", "constant"), PLACES)
def test_texts_say_what_the_files_offer(package: ModuleType, constant: str) -> None:
    """In the same order, and every file in words that can be read without importing it."""
    files = files_with(package, constant)
    assert files
    names: list[str] = []
    for path in files:
        parts = path.relative_to(package.__path__[0]).with_suffix("").parts
        found = getattr(importlib.import_module(".".join([package.__name__, *parts])), constant)
        objects = found if isinstance(found, tuple) else (found,)
        assert written_names(path.read_text(encoding="utf-8"), constant) == tuple(
            each.name for each in objects
        )
        names += [each.name for each in objects]
    offers: Offers[Any] = Offers(package, constant)
    assert list(offers) == names
    assert len(offers) == len(names)
    assert [offers[name].name for name in names] == names


def test_unknown_names() -> None:
    with pytest.raises(
        InputError,
        match=r"^policy 'fif': did you mean 'fifo'.* that `shadowprice policies --all` lists, or FILE",
    ):
        policy("fif")
    assert "" not in Offers(shadowprice.solvers, "POLICIES")
    assert None not in Offers(shadowprice.solvers, "POLICIES")


FIFO = "class Fifo:\n    name: str = 'fifo'\n    base: int = 2\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("POLICIES = (Fifo(), Fifo('lifo'), Fifo(base=3, name='wide'))", ("fifo", "lifo", "wide")),
        ("POLICIES: tuple[Fifo, ...] = (Fifo(base=1),)", ("fifo",)),
        ("POLICIES = Fifo()", ("fifo",)),
        ("POLICIES = ()", ()),
        # What the text does not say.
        ("POLICIES = tuple(map(Fifo, ('fifo', 'lifo')))", None),
        ("POLICIES = (Fifo(NAME),)", None),
        ("POLICIES = (Fifo(**given),)", None),
        ("POLICIES = (Fifo(*given),)", None),
        ("POLICIES = (Fifo(), *others)", None),
        ("POLICIES = (Fifo(), other)", None),
        ("POLICIES = (elsewhere.Fifo(),)", None),
        ("POLICIES = (Imported(),)", None),
        ("POLICIES = (Fifo(), Fifo())", None),
        ("POLICIES = ()\nPOLICIES = (Fifo(),)", None),
        ("POLICIES = (Fifo(),)\nPOLICIES += (Fifo('lifo'),)", None),
        # A first argument that is not the name, or may be a base's.
        ("class Late:\n    base: str = ''\n    name: str = 'late'\nPOLICIES = (Late('x'),)", None),
        ("class Late(Fifo):\n    name: str = 'late'\nPOLICIES = (Late('x'),)", None),
        ("class Late(Fifo):\n    name: str = 'late'\nPOLICIES = (Late(),)", ("late",)),
        ("class Late(Fifo):\n    more: int = 1\nPOLICIES = (Late(),)", None),
    ],
)
def test_what_a_text_says(text: str, names: tuple[str, ...] | None) -> None:
    assert written_names(FIFO + text, "POLICIES") == names


Package = Callable[..., ModuleType]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """Make a package of files."""

    def make(**texts: str) -> ModuleType:
        name = f"offers_{tmp_path.name.replace('-', '_')}"
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
        for stem, text in texts.items():
            (folder / f"{stem}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        return importlib.import_module(name)

    return make


CLASS = "from dataclasses import dataclass\n@dataclass\nclass Fifo:\n    name: str = 'fifo'\n"


def test_one_file_is_imported(package: Package) -> None:
    made = package(
        a=CLASS + "POLICIES = (Fifo(),)\n",
        b=CLASS + "POLICIES = (Fifo('lifo'),)\n",
        c="raise RuntimeError('imported')\nPOLICIES = ()\n",
        d="raise RuntimeError('imported')\n# POLICIES of its own it has none\n",
    )
    offers: Offers[Any] = Offers(made, "POLICIES")
    assert list(offers) == ["fifo", "lifo"]
    assert offers["lifo"].name == "lifo"
    assert f"{made.__name__}.b" in sys.modules
    assert f"{made.__name__}.a" not in sys.modules


def test_a_file_that_says_it_otherwise_is_imported(package: Package) -> None:
    made = package(
        a=CLASS + "POLICIES = (Fifo(),)\n", b=CLASS + "POLICIES = tuple(map(Fifo, 'xy'))\n"
    )
    offers: Offers[Any] = Offers(made, "POLICIES")
    assert offers["y"].name == "y"
    assert "z" not in offers
    assert list(offers) == ["fifo", "x", "y"]


def test_two_of_one_name(package: Package) -> None:
    made = package(a=CLASS + "POLICIES = (Fifo(),)\n", b=CLASS + "POLICIES = (Fifo(),)\n")
    with pytest.raises(InputError, match="two definitions are named 'fifo': in a and b of"):
        list(Offers(made, "POLICIES"))


def test_help_names_the_adversarys_methods() -> None:
    command = get_command(app).commands["adversary"]  # type: ignore[attr-defined]
    told = next(each.help for each in command.params if each.name == "method")
    assert all(method in told for method in METHODS)
