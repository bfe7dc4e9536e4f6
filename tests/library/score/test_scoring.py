"""Scores of sealed policies: files, commands in other languages, and those that fail or cheat."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from numpy._core import _multiarray_umath
from typer.testing import CliRunner

from shadowprice.cli.panels import register
from shadowprice.errors import InputError, ShadowpriceError
from shadowprice.library.score import scoring, suites
from shadowprice.library.score.cli import COMMANDS
from shadowprice.library.score.evaluation import evaluate
from shadowprice.library.score.record import score_record
from shadowprice.library.score.scoring import score, suite_instances
from shadowprice.solvers.registry import policy as by_name
from support.paths import ROOT
from support.tiny_suites import QUICK, TINY, WHOLE

pytestmark = pytest.mark.usefixtures("drawn_once")

ONE = """
from dataclasses import dataclass
from typing import ClassVar

from shadowprice.solvers.policy import Decision, Knowledge, State


@dataclass(frozen=True)
class Own:
    name: str = "own"
    knows: ClassVar[frozenset[Knowledge]] = frozenset()
    preemptive: ClassVar[bool] = False

    def decide(self, state: State) -> Decision:
        {body}
"""
FIFO = "return Decision(state).start_all()"
CHEAT = """import gc
        from shadowprice.instances.workload import Workload
        work = [each.work for each in gc.get_objects() if isinstance(each, Workload)]
        if work:
            raise SystemExit("cheated")
        return Decision(state).start_all()"""
"""As twelve lines that declare to know nothing would find all run times in the engine's process."""


def policy(folder: Path, body: str) -> str:
    path = folder / "own.py"
    path.write_text(ONE.replace("{body}", body), encoding="utf-8")
    return f"{path}:Own"


def test_a_sealed_policy_scores_as_an_open_one() -> None:
    """But for laws on what a sealed one does not show, such as its index."""
    sealed = score_record(score("las", WHOLE))["score"]
    opened = evaluate(by_name("las"), WHOLE, suite_instances(WHOLE, 0), 0)
    both = sealed, score_record(opened)["score"]
    laws, more = (each.pop("laws") for each in both)
    assert both[0] == both[1]
    assert laws["broken"] == more["broken"] == {}
    assert set(laws["tried"]) < set(more["tried"])


PROGRAM = """
import json, sys
from support import tiny_suites
from shadowprice.library.score.scoring import score
from shadowprice.library.score.record import score_record
print(json.dumps(score_record(score(sys.argv[1], getattr(tiny_suites, sys.argv[2]), seed=2))))
"""


@pytest.mark.parametrize("suite", ["QUICK", pytest.param("WHOLE", marks=pytest.mark.slow)])
def test_two_processes_score_the_same_to_the_last_digit(tmp_path: Path, suite: str) -> None:
    """With other hashes of strings, another number of threads, and loops for the oldest processors."""
    found = []
    features = _multiarray_umath.__cpu_features__
    newer = [each for each in _multiarray_umath.__cpu_dispatch__ if features.get(each)]
    older = {"NPY_DISABLE_CPU_FEATURES": " ".join(newer)}
    if suite == "WHOLE":
        # What is compiled for this processor is compiled anew.
        older |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
        older |= {"NUMBA_CACHE_DIR": str(tmp_path)}
    for seed, threads, other in (("0", "1", {}), ("12345", "4", older)):
        environment = {
            **os.environ,
            **other,
            "PYTHONHASHSEED": seed,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, policy(tmp_path, FIFO), suite],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(json.loads(done.stdout))
    assert found[0]["score"] == found[1]["score"]
    assert found[0]["sha256"] == found[1]["sha256"]


def test_a_cheat_gains_nothing(tmp_path: Path) -> None:
    honest, cheat = (score(policy(tmp_path, body), QUICK) for body in (FIFO, CHEAT))
    assert score_record(honest)["score"] == score_record(cheat)["score"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise RuntimeError('oh')", "RuntimeError"),
        ("while True: pass", "answer"),
        ("import os; os._exit(3)", "own"),
        ("return 7", "own"),
        ("return Decision(state)", "wait"),
    ],
)
def test_one_that_fails_has_a_score_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr(scoring, "LIMITS", scoring.ProcessLimits(decision_s=0.5))
    found = score(policy(tmp_path, body), QUICK)
    assert len(found.lost) == len(found.results)
    assert float(found.combined) == 0.001
    for each in found.results:
        assert each.feedback.startswith("Lost: ")
        assert why in each.feedback
        assert "Traceback" not in each.feedback
        assert "\n" not in each.feedback


def test_one_that_cannot_begin_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def broken(:\n", encoding="utf-8")
    with pytest.raises(ShadowpriceError, match=r"own\.py"):
        score(f"{path}:Own", TINY)
    with pytest.raises(ShadowpriceError, match="nobody"):
        score("nobody", TINY)
    with pytest.raises(InputError, match="seed is -1"):
        score("fifo", TINY, seed=-1)
    with pytest.raises(ShadowpriceError):
        score(["false"], TINY)
    with pytest.raises(InputError, match="no-such-program"):
        score(["no-such-program"], TINY)


AWK = ROOT / "examples" / "sealed" / "first_that_fits.awk"


def awk() -> list[str]:
    """An awk that answers line by line: mawk has to be told."""
    found = shutil.which("mawk") or shutil.which("gawk") or shutil.which("awk")
    if found is None:
        pytest.skip("no awk is installed")
    mawk = "mawk" in str(Path(found).resolve())
    return [found, *(("-W", "interactive") if mawk else ()), "-f", str(AWK)]


def test_a_policy_in_awk_scores_as_the_same_one_of_ours() -> None:
    theirs, ours = score(awk(), TINY_RUNS), score("fifo-skip", TINY_RUNS)
    assert theirs.policy == "first-that-fits"
    assert [each.cost for each in theirs.results] == [each.cost for each in ours.results]
    assert not theirs.lost


TINY_RUNS = replace(TINY, families=(), law_examples=0)
WRONG = """while read -r line; do case "$line" in
*'"hello"'*) echo '{"name":"shell"}';; *'"begin"'*) ;; *) echo 'start all of them';; esac; done"""


def test_a_shell_script_that_answers_wrongly_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "wrong.sh"
    path.write_text(WRONG, encoding="utf-8")
    found = score(["sh", str(path)], QUICK)
    assert len(found.lost) == 2
    assert "start all of them" in found.results[0].feedback


# The command.


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> typer.Typer:
    monkeypatch.setattr(suites, "SUITES", {"v1-online": QUICK})
    app = typer.Typer()
    register(app, COMMANDS)
    app.command("other")(lambda: None)  # One command alone would have no name.
    return app


def test_the_command_prints_and_writes_the_score(program: typer.Typer, tmp_path: Path) -> None:
    page = tmp_path / "score.html"
    done = CliRunner().invoke(program, ["score", "fifo", "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "decisions, " in done.stdout
    assert re.search(r"^Score 0\.\d{6}: at most [\d.]+x the offline optimum", done.stdout, re.M)
    assert "fifo on quick" in page.read_text(encoding="utf-8")
    done = CliRunner().invoke(program, ["score", "fifo", "--json"])
    printed = json.loads(done.stdout)
    assert printed["score"]["policy"] == {"name": "fifo", "knows": [], "preemptive": False}
    assert printed["made_by"]["command"] == "score"
    seal = printed["machine"]["seal"]
    assert seal["enforced"] or seal["missing"]
    done = CliRunner().invoke(program, ["score", "fifo", "--csv"])
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["ratio"] for row in rows] == [
        each["ratio"] for each in printed["score"]["instances"]
    ]
    assert float(rows[0]["largest_ftf"]) > 0


def test_the_command_ends_with_1_where_an_instance_was_lost(
    program: typer.Typer, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.sh"
    path.write_text(WRONG, encoding="utf-8")
    done = CliRunner().invoke(program, ["score", "--command", f"sh '{path}'"])
    assert done.exit_code == 1
    assert "Lost: " in done.stdout
    for words in ([], ["fifo", "--command", "x"], ["--command", "'"], ["--command", " "]):
        done = CliRunner().invoke(program, ["score", *words])
        assert isinstance(done.exception, InputError), words
