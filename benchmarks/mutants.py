"""How many small faults in the code the tests notice: a mutation run over sampled mutants.

A mutant is a copy of the package with one small fault: a comparison that is off at its boundary, a
dropped term, a constant off by one, a check that returns True. The tests of its file run against
it; a mutant that they let pass *survives* and is either killed by a new test or explained in
``mutants.toml``, which also says which tests go with which files.

Examples
--------
::

    python benchmarks/mutants.py --sample 12 --seed 14 --jobs 2 --results mutants.jsonl
    python benchmarks/mutants.py shadowprice/proofs/lower_bounds/lp.py --sample 100
    python benchmarks/mutants.py --list shadowprice/proofs/lower_bounds/lp.py

A run can be stopped and started again: mutants that are in the results already are not run again
unless their file, or for survivors a test, has changed.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import multiprocessing
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from itertools import count, zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = ROOT / "benchmarks" / "mutants.toml"

# Hypothesis the same for all mutants, without the time that a smaller example would take.
PROFILE = """\
from hypothesis import HealthCheck, Phase, settings

def pytest_configure(config):
    settings.register_profile(
        "mutation", max_examples=20, deadline=None, derandomize=True, database=None,
        phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")
"""

# What the tests of a mutant may take: so many times as long as without a fault, and at least.
PATIENCE, LEAST_S = 5.0, 30.0
BASELINE_S = 1800.0


@dataclass(frozen=True)
class Mutant:
    """A fault in a file.

    Parameters
    ----------
    file : str
        Relative to the repository.
    line, column : int
        Where it begins, from 1 and from 0.
    start, end : int
        Bytes of the file that are replaced.
    function : str
        Dotted name of the function or class it is in, empty for the module.
    operator : str
        Kind of fault.
    before, after : str
        What is replaced by what.
    """

    file: str
    line: int
    column: int
    start: int
    end: int
    function: str
    operator: str
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """The file with the fault."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        def line(text: str) -> str:
            return " ".join(text.split())

        place = f"{self.file}:{self.line}"
        return f"{place} {self.function}: {line(self.before)}  ->  {line(self.after)}"


# Faults.

_BOUNDARY: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE,),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE,),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_SWAPPED = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "any": "all",
    "all": "any",
    "floor": "ceil",
    "ceil": "floor",
}
# Said for readers and libraries; the value is the same without them where nothing is wrong.
_ASIDE = {"strict", "kw_only", "frozen", "eq", "slots", "repr", "compare", "init", "copy"}


class Faults(ast.NodeVisitor):
    """All faults of a file, in order of their places."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.data = file, source.encode()
        lengths = [len(line) for line in self.data.splitlines(keepends=True)]
        self.begins = [0]
        for length in lengths:
            self.begins.append(self.begins[-1] + length)
        self.inside: list[str] = []
        self.returns_bool: list[bool] = []
        self.found: list[Mutant] = []

    def of(self, node: ast.AST) -> tuple[int, int]:
        begin = self.begins[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = self.begins[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return begin, end

    def fault(self, node: ast.AST, operator: str, after: ast.AST | str) -> None:
        text = after if isinstance(after, str) else f"({ast.unparse(after)})"
        start, end = self.of(node)
        before = self.data[start:end].decode()
        if "".join(text.split()) in ("".join(before.split()), f"({''.join(before.split())})"):
            return
        mutant = Mutant(
            self.file,
            node.lineno,
            node.col_offset,
            start,
            end,  # type: ignore[attr-defined]
            ".".join(self.inside),
            operator,
            before,
            text,
        )
        self.found.append(mutant)

    # Where nothing is to be broken: messages, types, decorators, documentation.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *node.kw_defaults):
            if default is not None:
                self.visit(default)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _ASIDE:
            self.visit(node.value)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.inside.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.inside.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.inside.append(node.name)
        self.returns_bool.append(node.returns is not None and ast.unparse(node.returns) == "bool")
        self.visit(node.args)
        for statement in node.body:
            self.visit(statement)
        self.returns_bool.pop()
        self.inside.pop()

    # Statements.

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        if self.returns_bool and self.returns_bool[-1]:
            self.fault(node, "return a constant", "return True")
            self.fault(node, "return a constant", "return False")
        else:
            self.fault(node, "return nothing", "return None")
        self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.fault(node, "drop a statement", "pass")
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.fault(node, "drop an error", "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.fault(node, "drop a statement", "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self.fault(node, "drop a statement", "pass")

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.fault(node, "drop a statement", "pass")
        self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            self.fault(node, "drop a statement", "pass")
        self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self.fault(node.test, "a condition that always holds", "True")
        self.fault(node.test, "a condition that never holds", "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self.fault(node.test, "a condition that never holds", "False")
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self.fault(condition, "a condition that always holds", "True")
        self.generic_visit(node)

    # Expressions.

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.fault(node, "a condition that always holds", node.body)
        self.fault(node, "a condition that never holds", node.orelse)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.fault(node, "and for or", ast.BoolOp(other, node.values))
        for k in range(len(node.values)):
            rest = node.values[:k] + node.values[k + 1 :]
            left = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            self.fault(node, "drop a condition", left)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self.fault(node, "drop a sign", node.operand)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = (node.left, *node.comparators)
        names = any(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in sides)
        for k, operator in enumerate(node.ops):
            # The order of names means nothing.
            for other in _BOUNDARY[type(operator)][: 1 if names else None]:
                ops = [*node.ops[:k], other(), *node.ops[k + 1 :]]
                changed = ast.Compare(node.left, ops, node.comparators)
                self.fault(node, "a comparison off at its boundary", changed)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        swapped = {
            ast.Add: ast.Sub(),
            ast.Sub: ast.Add(),
            ast.BitAnd: ast.BitOr(),
            ast.BitOr: ast.BitAnd(),
        }.get(type(node.op))
        if swapped is not None:
            self.fault(node, "another sign", ast.BinOp(node.left, swapped, node.right))
        if not isinstance(node.op, ast.MatMult):
            self.fault(node, "drop a term", node.left)
        if isinstance(node.op, ast.Add | ast.Mult | ast.BitAnd | ast.BitOr):
            self.fault(node, "drop a term", node.right)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self.fault(node, "another constant", str(not value))
        elif isinstance(value, int):
            self.fault(node, "another constant", f"({value + 1})")
            self.fault(node, "another constant", f"({value - 1})")
        elif isinstance(value, float):
            larger = value * 1000 if 0 < abs(value) <= 1e-3 else value + 1
            self.fault(node, "another constant", f"({larger!r})")
            self.fault(node, "another constant", "(0.0)")

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in _SWAPPED:
            self.fault(node, "the other end", _SWAPPED[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in _SWAPPED:
            end = self.of(node)[1]
            name = ast.Name(node.attr)
            name.lineno = name.end_lineno = node.end_lineno or node.lineno
            name.end_col_offset = node.end_col_offset or 0
            name.col_offset = name.end_col_offset - len(node.attr)
            assert self.data[end - len(node.attr) : end].decode() == node.attr
            self.fault(name, "the other end", _SWAPPED[node.attr])
        self.generic_visit(node)


def faults_of(file: str, source: str) -> list[Mutant]:
    """All faults of a file, in the order of their places; with some it is no Python."""
    faults = Faults(file, source)
    faults.visit(ast.parse(source))
    return sorted(faults.found, key=lambda each: (each.start, each.end, each.operator, each.after))


def compiles(mutant: Mutant, source: bytes) -> bool:
    """True if the file is Python with the fault."""
    try:
        compile(mutant.applied(source), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def mutants_of(file: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places."""
    return [each for each in faults_of(file, source) if compiles(each, source.encode())]


def sampled(mutants: Sequence[Mutant], size: int, seed: int) -> list[Mutant]:
    """Some mutants of a file: every kind of fault once before any kind twice, otherwise at random.

    A larger sample takes the same ones and more.
    """
    if not mutants:
        return []
    shuffled = list(mutants)
    random.Random(f"{seed}:{mutants[0].file}").shuffle(shuffled)
    met: dict[str, int] = defaultdict(int)
    turns = []
    for mutant in shuffled:
        turns.append(met[mutant.operator])
        met[mutant.operator] += 1
    order = sorted(range(len(shuffled)), key=lambda k: turns[k])
    return [shuffled[k] for k in order[:size]]


# Which tests, and which survivors are known.


@dataclass(frozen=True)
class Plan:
    """What is mutated and what has to notice.

    Parameters
    ----------
    tests : mapping of str to tuple of str
        Test files by file, in the order in which they run.
    preload : tuple of str
        Modules loaded once for all runs of tests, which are forks.
    explained : mapping
        Why a mutant may survive, by file, function, before and after.
    exempt : mapping of str to str
        Why a file has no tests here.
    """

    tests: Mapping[str, tuple[str, ...]]
    preload: tuple[str, ...]
    explained: Mapping[tuple[str, str, str, str], str]
    exempt: Mapping[str, str]

    @classmethod
    def read(cls, path: Path = CONFIGURATION, root: Path = ROOT) -> Plan:
        """The configuration; patterns of files are looked up, the first that fits counts."""
        text = tomllib.loads(path.read_text(encoding="utf-8"))
        tests: dict[str, tuple[str, ...]] = {}
        for target in text["target"]:
            files = [str(each.relative_to(root)) for each in sorted(root.glob(target["files"]))]
            if not files:
                raise SystemExit(f"{path}: files is {target['files']!r}, which no file fits")
            for test in target["tests"]:
                if not (root / test).is_file():
                    raise SystemExit(f"{path}: tests of {target['files']!r}: there is no {test}")
            for file in files:
                tests.setdefault(file, tuple(target["tests"]))
        explained = {key(each): each["because"] for each in text.get("explained", [])}
        preload, exempt = tuple(text.get("preload", [])), text.get("exempt", {})
        return cls(tests, preload, explained, exempt)


def key(mutant: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What identifies a mutant when lines move."""
    before, after = (" ".join(mutant[name].split()) for name in ("before", "after"))
    return mutant["file"], mutant["function"], before, after


# Running the tests of a mutant.


def digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def copy_tree(target: Path) -> None:
    """The files of the repository, without what is ignored."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, target / name
        if source.is_symlink() or source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy, follow_symlinks=False)
    (target / "mutation_profile.py").write_text(PROFILE, encoding="utf-8")


def run_tests(tree: str, tests: Sequence[str], log: str) -> None:
    """In a process of its own: pytest, as far as the first failure."""
    os.setsid()
    os.chdir(tree)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.path[:0] = [tree]
    os.environ.update(PYTHONPATH=tree, OMP_NUM_THREADS="1", MPLBACKEND="Agg")
    os.environ.pop("CI", None)
    import pytest

    options = ["-x", "-q", "--tb=line", "-rfE", "-p", "no:cacheprovider", "-p", "mutation_profile"]
    code = pytest.main([*options, "-m", "not (slow or gpu or ray or slurm)", *tests])
    sys.stdout.flush()
    os._exit(int(code))


class Tree:
    """A copy of the repository in which one mutant at a time is tested."""

    def __init__(self, folder: Path, preload: Sequence[str]) -> None:
        self.folder = folder
        copy_tree(folder)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(preload))
        self._stamp = time.time() - 10**8

    def outcome(self, tests: Sequence[str], patience_s: float) -> tuple[str, str, float]:
        """``survived``, ``killed`` or ``timeout``; by which test; and how long it took [s]."""
        log, begin = self.folder / "mutation.log", time.monotonic()
        arguments = (str(self.folder), list(tests), str(log))
        process = self._context.Process(target=run_tests, args=arguments)
        process.start()
        process.join(patience_s)
        took_s = time.monotonic() - begin
        if process.is_alive():
            self._kill(process.pid or 0)
            process.join()
            return "timeout", "", took_s
        self._kill(process.pid or 0)
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if process.exitcode == 0:
            return "survived", "", took_s
        if process.exitcode == 5:
            raise SystemExit(f"no tests in {' '.join(tests)}")
        by = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
        told = by.group(1) if by else f"exit code {process.exitcode}: {text[-300:]}"
        return "killed", told, took_s

    def with_fault(
        self, mutant: Mutant, tests: Sequence[str], patience_s: float
    ) -> tuple[str, str, float]:
        path = self.folder / mutant.file
        source = path.read_bytes()
        try:
            self._write(path, mutant.applied(source))
            return self.outcome(tests, patience_s)
        finally:
            self._write(path, source)

    def _write(self, path: Path, data: bytes) -> None:
        """Times differ by seconds, or compiled files would be taken for current."""
        path.write_bytes(data)
        self._stamp += 2
        os.utime(path, (self._stamp, self._stamp))

    @staticmethod
    def _kill(group: int) -> None:
        """The session of the tests, and whatever they have left behind."""
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


# A run.


def chosen(plan: Plan, files: Sequence[str], size: int, seed: int) -> dict[str, list[Mutant]]:
    """The sample, by file."""
    wanted = [file for file in plan.tests if not files or any(fnmatch(file, f) for f in files)]
    unknown = [f for f in files if not any(fnmatch(file, f) for file in plan.tests)]
    if unknown:
        raise SystemExit(f"{unknown[0]}: is no file with tests in {CONFIGURATION.name}")
    samples = {
        file: sampled(mutants_of(file, (ROOT / file).read_text(encoding="utf-8")), size, seed)
        for file in wanted
    }
    return {file: sample for file, sample in samples.items() if sample}


def run(plan: Plan, todo: Sequence[Mutant], results: Path, jobs: int) -> None:
    """Test mutants in several copies of the repository, one line of the results for each."""
    results.parent.mkdir(parents=True, exist_ok=True)
    free: queue.SimpleQueue[Tree] = queue.SimpleQueue()
    lock, done = threading.Lock(), count(1)
    base_s: dict[tuple[str, ...], float] = {}

    def without_fault(tree: Tree, tests: tuple[str, ...]) -> float:
        """Time that tests take where there is no fault [s]; measured when they are first needed."""
        if tests not in base_s:
            outcome, by, took_s = tree.outcome(tests, BASELINE_S)
            if outcome != "survived":
                raise SystemExit(f"{' '.join(tests)}: without a fault {outcome} by {by}")
            base_s[tests] = took_s
        return base_s[tests]

    def with_fault(mutant: Mutant) -> None:
        tests, tree = plan.tests[mutant.file], free.get()
        try:
            patience_s = max(LEAST_S, PATIENCE * without_fault(tree, tests))
            outcome, by, took_s = tree.with_fault(mutant, tests, patience_s)
        finally:
            free.put(tree)
        row = asdict(mutant) | {
            "outcome": outcome,
            "by": by,
            "seconds": round(took_s, 2),
            "source": digest([ROOT / mutant.file]),
            "tests": digest(ROOT / test for test in tests),
        }
        with lock, results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            print(f"{next(done)}/{len(todo)} {outcome:8} {took_s:5.1f} s  {mutant}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        for k in range(jobs):
            free.put(Tree(Path(folder) / str(k), plan.preload))
        list(pool.map(with_fault, todo))


def known(plan: Plan, results: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Rows of earlier runs that still say something, by mutant."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    current: dict[str, tuple[str, str]] = {}
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        row = json.loads(line)
        file = row["file"]
        if file not in plan.tests:
            continue
        if file not in current:
            tests = digest(ROOT / test for test in plan.tests[file])
            current[file] = digest([ROOT / file]), tests
        source, tests = current[file]
        if row["source"] == source and (row["outcome"] != "survived" or row["tests"] == tests):
            found[identity(row)] = row
    return found


def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("file", "start", "end", "operator", "after"))


def report(plan: Plan, sample: Mapping[str, list[Mutant]], results: Path) -> Iterator[str]:
    """A table of scores by file, then the survivors that nothing explains."""
    rows = known(plan, results)
    totals, open_ones = [0, 0, 0, 0], []
    yield "| file | mutants | killed | explained | unexplained | score |"
    yield "|---|---|---|---|---|---|"
    for file, mutants in sample.items():
        found = [rows[identity(asdict(each))] for each in mutants if identity(asdict(each)) in rows]
        survivors = [row for row in found if row["outcome"] == "survived"]
        left = [row for row in survivors if key(row) not in plan.explained]
        counts = [len(found), len(found) - len(survivors), len(survivors) - len(left), len(left)]
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        open_ones += left
        yield scores(file, counts)
    yield scores("all", totals)
    for row in open_ones:
        fields = {name: row[name] for name in Mutant.__dataclass_fields__}
        yield f"survived: {Mutant(**fields)}"


def scores(name: str, counts: Sequence[int]) -> str:
    """A line of the table: the score is the share of killed ones, explained ones left aside."""
    made, killed, explained, left = counts
    share = f"{killed / (made - explained):.0%}" if made > explained else "-"
    return f"| {name} | {made} | {killed} | {explained} | {left} | {share} |"


def main() -> None:
    """Read the command line, run what is not known yet, report; exit code 1 for open survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", help="files or patterns; all of mutants.toml if none")
    parser.add_argument("--sample", type=int, default=12, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=ROOT / ".benchmarks" / "mutants.jsonl")
    parser.add_argument("--list", action="store_true", help="print the sample, run nothing")
    parser.add_argument("--report", action="store_true", help="report what is known, run nothing")
    options = parser.parse_args()
    plan = Plan.read()
    sample = chosen(plan, options.files, options.sample, options.seed)
    if options.list:
        print(*(each for mutants in sample.values() for each in mutants), sep="\n")
        return
    rows = known(plan, options.results)
    # The first of every file before the second of any: a run that is stopped says something of all files.
    todo = [
        each
        for turn in zip_longest(*sample.values())
        for each in turn
        if each is not None and identity(asdict(each)) not in rows
    ]
    if todo and not options.report:
        run(plan, todo, options.results, options.jobs)
    lines = list(report(plan, sample, options.results))
    print(*lines, sep="\n")
    sys.exit(any(line.startswith("survived") for line in lines))


if __name__ == "__main__":
    main()
