"""The mutation run: which faults it makes, which it samples, and that it can tell killed from survived."""

from __future__ import annotations

import ast
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.paths import ROOT

SCRIPT = ROOT / "benchmarks" / "mutants.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module
    spec.loader.exec_module(module)
    return module


mutants = load()

SOURCE = '''"""Numbers like 1 + 1 in words are no code."""

LIMIT = 2e-6 if "a" == "b" else 0.5


def check(value: "int", limit: int = 3) -> bool:
    """Whether 1 < 2."""
    if value is None or not isinstance(value, int):
        raise TypeError(f"é {value + 1}" + "x" * 80)
    return value * 2 + 1 <= limit


def least(values: list[int]) -> int:
    found = []
    for value in values:
        if value > 0:
            found.append(-value)
    return min(found)
'''


def faults(source: str) -> dict[str, set[str]]:
    """Replacements by what they replace, without spaces and outer brackets."""
    made: dict[str, set[str]] = {}
    for each in mutants.mutants_of("file.py", source):
        made.setdefault(each.before, set()).add(each.after.removeprefix("(").removesuffix(")"))
    return made


def test_the_faults_of_a_file() -> None:
    made = faults(SOURCE)
    assert made["2e-6"] == {"0.002", "0.0"}
    assert made["0.5"] == {"1.5", "0.0"}
    assert made['"a" == "b"'] == {"'a' != 'b'"}
    assert made["value * 2 + 1 <= limit"] == {"value * 2 + 1 < limit"}
    assert made["value * 2 + 1"] == {"value * 2 - 1", "value * 2", "1"}
    assert made["value * 2"] == {"value", "2"}
    assert made["return value * 2 + 1 <= limit"] == {"return True", "return False"}
    assert made["value is None or not isinstance(value, int)"] == {
        "value is None and (not isinstance(value, int))",
        "not isinstance(value, int)",
        "value is None",
        "True",
        "False",
    }
    assert made["found.append(-value)"] == {"pass"}
    assert made["-value"] == {"value"}
    assert made["min"] == {"max"}
    assert made["return min(found)"] == {"return None"}
    assert made["3"] == {"4", "2"}
    # Messages, words and types are left alone; that an error is raised is not.
    assert [each for each in made if "é" in each] == [
        'raise TypeError(f"é {value + 1}" + "x" * 80)'
    ]
    assert not any(each == "80" or "Whether" in each or '"int"' in each for each in made)


def test_a_fault_is_made_where_it_is_said_and_nowhere_else() -> None:
    for each in mutants.mutants_of("file.py", SOURCE):
        data = SOURCE.encode()
        assert data[each.start : each.end].decode() == each.before
        changed = each.applied(data).decode()
        assert changed != SOURCE
        ast.parse(changed)
        before, after = SOURCE.splitlines()[: each.line - 1], changed.splitlines()[: each.line - 1]
        assert before == after


def test_a_sample_is_the_same_for_a_seed_and_has_all_kinds_first() -> None:
    made = mutants.mutants_of("file.py", SOURCE)
    kinds = {each.operator for each in made}
    few, more = (mutants.sampled(made, size, 1) for size in (len(kinds), 2 * len(kinds)))
    assert {each.operator for each in few} == kinds
    assert more[: len(few)] == few
    assert mutants.sampled(made, 5, 1) == few[:5]
    assert mutants.sampled(made, 5, 2) != few[:5]
    assert sorted(mutants.sampled(made, 10**6, 1), key=str) == sorted(made, key=str)
    assert mutants.sampled([], 3, 1) == []


def test_every_explanation_is_of_a_fault_that_can_be_made() -> None:
    """Where code has changed what was said about a survivor is said of nothing."""
    plan = mutants.Plan.read()
    by_file: dict[str, set[tuple[str, str, str, str]]] = {}
    for file, *_ in plan.explained:
        if file not in by_file:
            source = (ROOT / file).read_text(encoding="utf-8")
            made = ((mutants.key(vars(each)), each) for each in mutants.faults_of(file, source))
            by_file[file] = {
                key
                for key, each in made
                if key in plan.explained and mutants.compiles(each, source.encode())
            }
    stale = [key for key in plan.explained if key not in by_file[key[0]]]
    assert not stale
    assert all(reason.strip() for reason in plan.explained.values())


CLAIMS = ("instances", "solvers/offline", "proofs")
"""Folders of files of which a printed claim depends."""


def files_with_code(folder: str) -> set[str]:
    """Files of a folder; those that only say what is in one are none."""
    paths = (ROOT / "shadowprice" / folder).rglob("*.py")
    return {
        str(path.relative_to(ROOT))
        for path in paths
        if path.name != "__init__.py" or "def " in path.read_text(encoding="utf-8")
    }


@pytest.mark.parametrize("folder", CLAIMS)
def test_what_a_claim_depends_on_is_mutated(folder: str) -> None:
    """Every file has tests that must notice a fault, or a reason why not."""
    plan = mutants.Plan.read()
    assert files_with_code(folder) - set(plan.tests) - set(plan.exempt) == set()


def test_exempt_files_are_there_have_no_tests_and_a_reason() -> None:
    plan = mutants.Plan.read()
    for file, reason in plan.exempt.items():
        assert (ROOT / file).is_file()
        assert file not in plan.tests
        assert reason.strip()


def test_the_engine_and_what_is_printed_are_mutated() -> None:
    tests = mutants.Plan.read().tests
    files = ("execution/engine", "execution/simulated_hosts", "analysis/compare")
    assert {f"shadowprice/{name}.py" for name in files} <= set(tests)
    analysis = ROOT / "shadowprice" / "analysis"
    printed = [*analysis.glob("certif*.py"), analysis / "limits.py", analysis / "optimum.py"]
    for folder in ("certificates", "guarantees"):
        printed += (analysis / folder).glob("*.py")
    names = {str(path.relative_to(ROOT)) for path in printed if path.name != "__init__.py"}
    assert names <= set(tests)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A function, a test that misses its boundary, and the script beside them."""
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(SCRIPT, tmp_path / "benchmarks" / "mutants.py")
    (tmp_path / "benchmarks" / "mutants.toml").write_text(
        '[[target]]\nfiles = "small.py"\ntests = ["test_small.py"]\n'
    )
    (tmp_path / "small.py").write_text("def small(x: int) -> bool:\n    return x < 3\n")
    (tmp_path / "test_small.py").write_text(
        "from small import small\n\ndef test_small():\n    assert small(2) and not small(9)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  slow\n  gpu\n  ray\n  slurm\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def run(repository: Path, *options: str) -> tuple[int, list[str]]:
    command = [sys.executable, str(repository / "benchmarks" / "mutants.py"), "--jobs", "1"]
    done = subprocess.run(
        [*command, "--sample", "99", *options], capture_output=True, text=True, timeout=120
    )
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def test_a_run_tells_survivors_from_killed_ones_and_goes_on_where_it_was(repository: Path) -> None:
    code, said = run(repository)
    # True and False are noticed; x <= 3, x < 4 and x < 2 + 1 - 1 = 2 only at the boundary.
    assert code == 1
    assert said[-1] == "survived: small.py:2 small: 3  ->  (4)"
    assert sorted(line for line in said if line.startswith("survived")) == [
        "survived: small.py:2 small: 3  ->  (4)",
        "survived: small.py:2 small: x < 3  ->  (x <= 3)",
    ]
    assert "| small.py | 5 | 3 | 0 | 2 | 60% |" in said
    # The file is as it was, and nothing is run again.
    assert (repository / "small.py").read_text().endswith("return x < 3\n")
    results = repository / ".benchmarks" / "mutants.jsonl"
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert {row["by"] for row in rows if row["outcome"] == "killed"} == {
        "test_small.py::test_small"
    }
    assert run(repository) == (1, [line for line in said if "/5 " not in line])
    # What is explained is none of them.
    plan = repository / "benchmarks" / "mutants.toml"
    for before, after in (("3", "(4)"), ("x < 3", "(x <= 3)")):
        names = {"file": "small.py", "function": "small", "before": before, "after": after}
        lines = [f'{name} = "{value}"' for name, value in (names | {"because": "why"}).items()]
        plan.write_text("\n".join([plan.read_text(), "[[explained]]", *lines, ""]))
    code, explained = run(repository)
    assert code == 0
    assert "| small.py | 5 | 3 | 2 | 0 | 100% |" in explained
    # A better test is tried on the survivors alone.
    test = repository / "test_small.py"
    test.write_text(test.read_text() + "    assert not small(3)\n")
    code, said = run(repository)
    assert code == 0
    assert len([line for line in said if "/2 killed" in line]) == 2
    assert "| all | 5 | 5 | 0 | 0 | 100% |" in said


def test_tests_must_pass_without_a_fault(repository: Path) -> None:
    (repository / "test_small.py").write_text("def test_small():\n    assert False\n")
    failed = subprocess.run(
        [sys.executable, str(repository / "benchmarks" / "mutants.py"), "--jobs", "1"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert failed.returncode == 1
    assert "test_small.py: without a fault killed by test_small.py::test_small" in failed.stderr
