"""The house rules that a machine can check; import-linter checks the layers."""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib
import importlib.metadata
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import shadowprice
from support.paths import ROOT

PACKAGE = ROOT / "shadowprice"
LINKS = ["models", "solvers", "proofs", "instances", "analysis"]
SOURCES = sorted(PACKAGE.rglob("*.py"))
SHIPPED = [
    path
    for folder in ("shadowprice", "tests", "paper_figs", "benchmarks", "docs", "examples", ".ci")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and path.suffix in {".py", ".md", ".toml", ".ipynb", ".sh", ""}
] + sorted(path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")
# Import name where it differs from the name on the package index.
DISTRIBUTION = {"sklearn": "scikit-learn", "yaml": "pyyaml"}
OPTIONAL = {name: {"hypothesis"} for name in ("strategies.py", "battery.py", "cases.py")} | {
    "gym_environment.py": {"gymnasium"},
    "figures.py": {"plotly"},
}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def modules() -> Iterator[ModuleType]:
    yield shadowprice
    for found in pkgutil.walk_packages(shadowprice.__path__, "shadowprice."):
        if found.name.endswith(".__main__"):
            continue  # importing it runs the command line
        yield importlib.import_module(found.name)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, which most rules ask for."""
    return tuple(ast.walk(tree_of(path)))


DOCUMENTED = (ast.Module, ast.FunctionDef, ast.ClassDef)


@cache
def docstrings(path: Path) -> tuple[str, ...]:
    """Texts of a file, its classes and functions, those that have one."""
    owners = (node for node in nodes_of(path) if isinstance(node, DOCUMENTED))
    return tuple(text for node in owners if (text := ast.get_docstring(node)))


RUNS_ALONE = PACKAGE / "proofs" / "checker"
"""Folder that is a program of its own wherever it is copied; its files import one another by relative names."""


def imported_from(path: Path, node: ast.ImportFrom) -> str:
    """Full name of the module of an import."""
    if not node.level:
        return node.module or ""
    say = f"{name_of(path)}:{node.lineno}: relative import"
    assert (node.level, path.parent) == (1, RUNS_ALONE), say
    return ".".join([*RUNS_ALONE.relative_to(ROOT).parts, node.module or ""])


def imported(path: Path, *, inside_functions: bool = True) -> Iterator[str]:
    """Full names of the modules a file imports."""
    for node in nodes_of(path) if inside_functions else tree_of(path).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield imported_from(path, node)


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def name_in(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


@pytest.mark.parametrize("name", LINKS)
def test_top_level_folders_are_relative_links_into_the_package(name: str) -> None:
    link = ROOT / name
    assert link.is_symlink()
    assert os.readlink(link) == f"shadowprice/{name}"
    assert link.is_dir()


def test_modules_and_what_is_public_in_them_have_docstrings() -> None:
    assert {name_of(path): found for path in SOURCES if (found := list(undocumented(path)))} == {}


def undocumented(path: Path) -> Iterator[str]:
    """Names in a module that lack a docstring and should have one."""
    tree = tree_of(path)
    if not ast.get_docstring(tree):
        yield "the module"
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for owner in [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]:
        if isinstance(owner, ast.ClassDef) and owner.name.startswith("_"):
            continue
        for node in owner.body:
            public = isinstance(node, kinds) and not node.name.startswith("_")
            if public and not ast.get_docstring(node) and not is_overload(node):
                yield node.name


def is_overload(node: ast.AST) -> bool:
    decorators = getattr(node, "decorator_list", [])
    return any(ast.unparse(each) in {"overload", "typing.overload"} for each in decorators)


def test_no_path_of_somebodys_machine_is_in_the_repository() -> None:
    # Written so that this file does not contain them itself.
    words = ["/" + word for word in ("work/", "home/", "Users/", "farm/")]
    texts = ((path, path.read_text(encoding="utf-8", errors="ignore")) for path in SHIPPED)
    found = [
        f"{name_of(path)}: {word}"
        for path, text in texts
        for word in words
        if word in text and re.search(rf"(?<![\w.\-/:]){word}", text)
    ]
    assert not found


def test_what_is_imported_is_declared() -> None:
    always = {name_in(requirement) for requirement in project()["dependencies"]}
    extras = {
        name_in(requirement)
        for requirements in project()["optional-dependencies"].values()
        for requirement in requirements
    }
    undeclared: dict[str, set[str]] = {}
    for path in SOURCES:
        # What an extra brings is imported inside the function that needs it.
        on_top = third_party(imported(path, inside_functions=False))
        found = third_party(imported(path)) - always - extras
        found |= on_top - always - OPTIONAL.get(path.name, set())
        if found:
            undeclared[name_of(path)] = found
    assert undeclared == {}


def third_party(names: Iterator[str]) -> set[str]:
    """Distributions of imported modules, ours and the standard library's left out."""
    top = {name.split(".")[0] for name in names} - {"shadowprice", *sys.stdlib_module_names}
    return {DISTRIBUTION.get(name, canonicalize_name(name)) for name in top}


def test_no_folder_of_tests_stands_for_a_package_that_is_not_installed() -> None:
    """pytest puts the folder of a test on the path, beside which a folder `ray` would be imported in place of Ray."""
    tests = sorted((ROOT / "tests").rglob("*.py"))
    folders = {name for path in tests for name in path.relative_to(ROOT / "tests").parts[:-1]}
    files = [*SOURCES, *tests]
    top = {name.split(".")[0] for path in files for name in imported(path)}
    assert top & folders - sys.stdlib_module_names == {"support"}


def test_nothing_draws_through_pyplot_or_unpickles() -> None:
    refused = {"matplotlib.pyplot", "pickle", "shelve", "marshal"}
    uses = {name_of(path): set(imported(path)) & refused for path in SOURCES}
    assert {name: found for name, found in uses.items() if found} == {}


VERIFIER = [
    *(PACKAGE / "proofs" / f"{name}.py" for name in ("certificate", "run_speed")),
    *sorted((PACKAGE / "proofs" / "verification").glob("[a-z]*.py")),
]


def test_the_verifier_imports_instances_and_errors_only() -> None:
    # What is taken from the package of proofs itself, test_trusted_code.py says.
    parts = {"shadowprice.proofs", "shadowprice.proofs.verification"} | {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in VERIFIER
    }
    allowed = ("shadowprice.instances.", "shadowprice.errors")
    others = {
        name_of(path): name
        for path in VERIFIER
        for name in imported(path)
        if name.startswith("shadowprice") and name not in parts and not name.startswith(allowed)
    }
    assert VERIFIER
    assert others == {}


@pytest.mark.parametrize(
    ("name", "extras"), [("demo", []), ("test", ["test"]), ("dev", ["dev"]), ("docs", ["docs"])]
)
def test_the_exact_versions_are_ones_that_pyproject_allows(name: str, extras: list[str]) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    lines = [Requirement(line) for line in text.splitlines() if not line.startswith("#")]
    pinned = {canonicalize_name(line.name): line.specifier for line in lines}
    assert [str(line) for line in lines if not re.fullmatch(r"==[\w.]+", str(line.specifier))] == []
    assert len(pinned) == len(lines)
    table = project()
    wanted = list(table["dependencies"])
    while extras:
        several = [Requirement(each) for each in table["optional-dependencies"][extras.pop()]]
        extras += [extra for each in several if each.name == "shadowprice" for extra in each.extras]
        wanted += [str(each) for each in several if each.name != "shadowprice"]
    outside = [
        f"{each}: pinned at {pinned.get(canonicalize_name(each.name), 'nothing')}"
        for each in map(Requirement, wanted)
        if not any(
            each.specifier.contains(pin.version)
            for pin in pinned.get(canonicalize_name(each.name), ())
        )
    ]
    assert outside == [], "`make lock` writes the versions anew"


def test_the_examples_in_docstrings_hold() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(verbose=False)
    report: list[str] = []
    for module in modules():
        for test in finder.find(module):
            if test.examples:  # a run of none looks at all files again
                runner.run(test, out=report.append)
    results = runner.summarize(verbose=False)
    assert results.failed == 0, "".join(report)
    assert results.attempted > 0


def test_the_public_names_exist() -> None:
    names = shadowprice.__all__
    assert len(set(names)) == len(names)
    assert [name for name in names if getattr(shadowprice, name, None) is None] == []
    assert set(names) <= set(dir(shadowprice))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = shadowprice.nothing


def test_a_training_job_does_not_wait_for_the_whole_package() -> None:
    program = "import shadowprice.hosts.job, sys; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_the_package_is_typed_and_versions_agree() -> None:
    assert (PACKAGE / "py.typed").is_file()
    version = project()["version"]
    assert f"version: {version}" in (ROOT / "CITATION.cff").read_text()
    try:
        installed = importlib.metadata.version("shadowprice")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("runs from a source tree that is not installed")
    assert installed == version


# What would hurt a reader; none of it shapes the text of a file.
FILES_IN_A_FOLDER = 22
LINES_IN_A_FILE = 600
LONGER_FILES: dict[str, str] = {}
"""Files beyond that length, each with its reason."""


def test_folders_show_systems() -> None:
    folders = sorted({path.parent for path in SOURCES})
    own = [path for path in SOURCES if path.name != "__init__.py"]
    files = {folder: [path for path in own if path.parent == folder] for folder in folders}
    full = {name_of(folder): len(found) for folder, found in files.items()}
    assert {name: count for name, count in full.items() if count > FILES_IN_A_FOLDER} == {}
    prefixes = {
        name_of(folder): Counter(path.stem.split("_")[0] for path in found if "_" in path.stem[1:])
        for folder, found in files.items()
    }
    shared = {
        name: [prefix for prefix, count in counts.items() if prefix and count >= 4]
        for name, counts in prefixes.items()
    }
    assert {name: found for name, found in shared.items() if found} == {}


def test_long_files_have_a_reason() -> None:
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    beyond = {name for name, count in lines.items() if count > LINES_IN_A_FILE}
    assert beyond == set(LONGER_FILES)


def test_the_formatter_is_not_switched_off() -> None:
    switch = "# fmt" + ":"
    every = [path for path in SHIPPED if path.suffix == ".py"]
    assert [name_of(path) for path in every if switch in path.read_text("utf-8")] == []


def test_class_names_are_unique() -> None:
    homes: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(name_of(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == SAME_NAME


SAME_NAME: dict[str, list[str]] = {}
"""Classes that are meant to have the same name."""

QUESTION_WORDS = {"What", "Who", "Which", "Whether", "Where", "How", "When", "Why"}


def test_docstrings_begin_with_the_noun_or_the_verb() -> None:
    found = [
        f"{name_of(path)}: {text.splitlines()[0]}"
        for path in SOURCES
        for text in docstrings(path)
        if text.split()[0] in QUESTION_WORDS
    ]
    assert found == []


WORDS_THAT_NAME_NOTHING = {"found", "given", "told", "kept", "said", "beside"}
PREPOSITIONS = {"as", "at", "beside", "by", "for", "from", "in", "of", "on", "to", "with"}
OF_A_MODEL = {"models/asrpt.py": {"beside", "beside_it"}}
"""Names of a paper's set: GPUs that stand beside a replica on its node."""


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_that_others_see(path: Path) -> Iterator[str]:
    """Names of a file's classes, functions, parameters, fields, attributes and constants, and of the file itself."""
    yield from path.relative_to(PACKAGE).with_suffix("").parts
    yield from (name for node in tree_of(path).body for name in assigned_in(node))
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (name for each in node.body for name in assigned_in(each))
        if isinstance(node, ast.arg):
            yield node.arg
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def assigned_in(node: ast.AST) -> Iterator[str]:
    """Names that a statement of a module or class assigns to."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def test_participles_name_nothing() -> None:
    """Whatever has a name that others see is named by nouns of the field."""
    named = {
        name_of(path): names
        for path in SOURCES
        if (
            names := {
                name
                for name in names_that_others_see(path)
                if words_of(name) & WORDS_THAT_NAME_NOTHING
            }
            - OF_A_MODEL.get(str(path.relative_to(PACKAGE)), set())
        )
    }
    assert named == {}


MOST_PARTICIPLES = 515
"""Local variables of the package that are named by them still; it only falls."""


def test_fewer_and_fewer_variables_are_named_by_participles() -> None:
    count = sum(
        isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and bool(words_of(node.id) & WORDS_THAT_NAME_NOTHING)
        for path in SOURCES
        for node in nodes_of(path)
    )
    assert count <= MOST_PARTICIPLES


def test_no_module_is_called_by_a_preposition() -> None:
    modules_and_folders = {
        part for path in SOURCES for part in path.relative_to(PACKAGE).with_suffix("").parts
    }
    assert {name for name in modules_and_folders if name.split("_")[0] in PREPOSITIONS} == set()


EARLIER_NAMES = frozenset(
    {
        "Amounts",
        "AmountsBeside",
        "AmountsDemand",
        "AmountsLedger",
        "Attainment",
        "Begun",
        "ByModel",
        "ChosenAmounts",
        "ClassDemands",
        "ConditionEntry",
        "ConditionedHosts",
        "CpusAndMemory",
        "FactorBeside",
        "FixedAmounts",
        "Found",
        "FoundGpu",
        "FoundHosts",
        "FoundNode",
        "FoundRun",
        "Given",
        "GivenInstance",
        "GivenModel",
        "GivenUpError",
        "GrantedAmounts",
        "GraphHosts",
        "HeldAmounts",
        "IN_MODES",
        "JobModes",
        "Kept",
        "Least",
        "LeaseAmounts",
        "Limit",
        "Limited",
        "ModeFamily",
        "Modes",
        "NodeAmounts",
        "OF_MODES",
        "OfModes",
        "OwnLoop",
        "PLANS_SHARE_BESIDE_MODES",
        "PartsHosts",
        "PolicySwitches",
        "PooledGpus",
        "RateBeside",
        "RelaxedJobs",
        "RowAmounts",
        "Run",
        "RunGiven",
        "RunModes",
        "RunSwitches",
        "RunsItself",
        "Said",
        "Semantics",
        "Series",
        "ServiceRule",
        "Silence",
        "Standing",
        "StoodDown",
        "Surroundings",
        "Vertex",
        "WrittenModes",
        "WrittenSwitches",
        "as_known",
        "carried_out",
        "carry_out",
        "carry_out_gangs",
        "carry_out_until",
        "counted_cost",
        "counted_demands",
        "counted_instance",
        "counted_rows",
        "describe_decision",
        "expect_all_complete",
        "expect_together",
        "expect_whole_gpus",
        "held_together",
        "hypothesis_on_runs",
        "kept_jobs",
        "lower_bounds",
        "own_loop",
        "pair_throughputs",
        "refuse_unbounded",
        "repeatable_bounds",
        "run_in_engine",
        "settle",
        "settle_waiting",
        "shared_out",
        "stand_down",
        "stood_down",
        "to_the_end",
        "told_cost",
        "uncovered",
        "warnings_told",
        "why_not",
    }
)
"""Names that something better took the place of, which do not come back; a folder may have one."""


def test_earlier_names_do_not_come_back() -> None:
    back = {
        name_of(path): names
        for path in SOURCES
        if (names := {*names_that_others_see(path)} & EARLIER_NAMES - {*path.parts[:-1]})
    }
    assert back == {}


AMOUNTS_OF_ANY_RESOURCE = {
    # What runs hold of a resource: GPUs, parts of one, CPUs, memory, a quota, what a declared term says.
    "proofs/checker/gangs.py",
    "solvers/placement/cpu_memory.py",
    "solvers/placement/declared.py",
    "solvers/placement/resource.py",
    "solvers/placement/tenant_quotas.py",
    # LB-amount, whose modes are by widths, CPUs and memory; certificates say so, and the library's family of that name.
    "analysis/certificates/modes.py",
    "library/families/amounts.py",
    "proofs/lower_bounds/amounts.py",
    "solvers/offline/modes/amounts.py",
}


def test_cpus_and_memory_are_called_so() -> None:
    """What is of CPUs and memory alone has ``cpu_memory`` in its name; amounts are of any resource."""
    named = {
        str(path.relative_to(PACKAGE))
        for path in SOURCES
        if any("amounts" in name.lower() for name in names_that_others_see(path))
    }
    assert named == AMOUNTS_OF_ANY_RESOURCE


EARLIER_WORDS = {"switch", "switches", "switched", "semantics", "uncovered"}
"""Words for options of a run and for hypotheses that do not hold, which have one word each."""


def test_one_idea_has_one_word() -> None:
    named = {
        name_of(path): names
        for path in SOURCES
        if (
            names := {
                name for name in names_that_others_see(path) if words_of(name) & EARLIER_WORDS
            }
        )
    }
    assert named == {}


RIDDLES = {"Silence", "Surroundings", "stands down", "stand down", "stood down", "says nothing"}


def test_docstrings_have_no_riddles_in_their_first_line() -> None:
    riddles = [
        f"{name_of(path)}: {first}"
        for path in SOURCES
        for text in docstrings(path)
        for first in [text.splitlines()[0]]
        if any(riddle in first for riddle in RIDDLES)
        or first.split()[0].lower().rstrip(",:") in WORDS_THAT_NAME_NOTHING - {"found", "given"}
    ]
    assert riddles == []


def test_types_in_docstrings_can_be_seen_in_their_files() -> None:
    """Of parameters, attributes and errors: a class that has another name now is found."""
    stale = {
        name_of(path): unknown
        for path in SOURCES
        if (unknown := sorted(documented_types(path) - names_in(path) - BUILT_IN))
    }
    assert stale == {}


BUILT_IN = {name for name in dir(builtins) if name[0].isupper()}


def documented_types(path: Path) -> set[str]:
    lines = (re.findall(r"^\w[\w, ]* : (.+)$", text, re.MULTILINE) for text in docstrings(path))
    return {
        name for each in lines for line in each for name in re.findall(r"\b[A-Z][a-z]\w*", line)
    }


def names_in(path: Path) -> set[str]:
    """Names that a file's code uses or defines."""
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names |= {*node.name.split("."), node.asname or node.name}
    return names


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Imports inside functions and those for type checkers count as well."""
    names = {module_of(path) for path in SOURCES}
    graph = networkx.DiGraph()
    for path in SOURCES:
        graph.add_edges_from((module_of(path), name) for name in ours(path, names))
    circles = [sorted(each) for each in networkx.strongly_connected_components(graph)]
    assert [each for each in circles if len(each) > 1] == []


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def ours(path: Path, names: set[str]) -> Iterator[str]:
    """Modules of the package that a file imports, itself left out."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and imported_from(path, node) in names:
            module = imported_from(path, node)
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in names else module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)


def builds_a_model(path: Path) -> bool:
    functions = [node for node in tree_of(path).body if isinstance(node, ast.FunctionDef)]
    return any(node.returns and "ConcreteModel" in ast.unparse(node.returns) for node in functions)


MODELS = [path for path in SOURCES if path.parent.name == "models" and builds_a_model(path)]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_says_what_solves_it_and_what_compares_it_with_an_oracle(path: Path) -> None:
    """``RUNS_IN`` names the module that compiles it, ``REFERENCE`` tests of it or of that module."""
    module = importlib.import_module(module_of(path))
    names = {module_of(each) for each in SOURCES}
    runs_in, tests = module.RUNS_IN, ROOT / module.REFERENCE
    assert module_of(path) in set(ours(ROOT / f"{runs_in.replace('.', '/')}.py", names))
    assert set(ours(tests, names)) & {module_of(path), runs_in}
