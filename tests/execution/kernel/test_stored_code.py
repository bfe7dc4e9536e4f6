"""Compiled code survives: it is read by whoever has the same sources, and by nobody else; once for all processes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core import event

from shadowprice.execution.kernel import arrays, loop, stored_code
from shadowprice.execution.kernel import run as kernel
from shadowprice.execution.kernel.stored_code import StoredCode, folder, sources
from support.paths import ROOT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return tmp_path / "shadowprice"


def twice(digest: str) -> tuple[Any, StoredCode]:
    """A function, compiled anew for each call of this one if its code is not there."""

    def double(number: int) -> int:
        return 2 * number

    dispatcher, stored = njit(double), StoredCode("double", digest)
    dispatcher._cache = stored
    return dispatcher, stored


def compiles(digest: str) -> bool:
    """True if the function has to be compiled; its result is right in any case."""
    dispatcher, _ = twice(digest)
    with event.install_recorder("numba:compile") as recorder:
        assert dispatcher(21) == 42
    return bool(recorder.buffer)


def test_code_is_compiled_once_for_its_sources() -> None:
    assert [compiles(each) for each in ("a" * 64, "a" * 64, "b" * 64, "a" * 64)] == [
        True,
        False,
        True,
        False,
    ]


def test_code_of_other_sources_is_never_read(here: Path) -> None:
    """Not even where the beginnings of the digests, which the names of files have, are the same."""
    assert compiles("a" * 64)
    assert compiles("a" * 63 + "b")


def test_who_waited_reads_what_the_other_compiled(here: Path) -> None:
    script = """
import sys
from numba import njit
from numba.core import event
from shadowprice.execution.kernel.stored_code import StoredCode

def double(number):
    return 2 * number

dispatcher, stored = njit(double), StoredCode("double", "c" * 64)
dispatcher._cache = stored
with event.install_recorder("numba:compile") as recorder, stored.alone():
    dispatcher(21)
print(bool(recorder.buffer))
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].strip() for process in both) == ["False", "True"]


def test_a_folder_that_cannot_be_written_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here.parent.joinpath("shadowprice").write_text("a file")
    assert compiles("a" * 64)
    assert compiles("a" * 64)
    dispatcher, stored = twice("a" * 64)
    with stored.alone(), kernel._announced(stored):
        dispatcher(21)
    assert f"in every process, for {here} cannot be written" in capsys.readouterr().err


def test_what_nobody_read_for_long_is_removed(here: Path) -> None:
    assert compiles("a" * 64)
    old = sorted(here.glob("double-a*"))
    assert len(old) >= 2
    for path in old:
        os.utime(path, (0, 0))
    assert not compiles("a" * 64)  # It is read, and so it stays.
    assert compiles("b" * 64)
    assert sorted(here.glob("double-a*")) == old
    for path in old:
        os.utime(path, (0, 0))
    assert compiles("c" * 64)
    assert not list(here.glob("double-a*"))
    assert not compiles("b" * 64)


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert folder() == tmp_path / "shadowprice"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert folder() == tmp_path / "cache" / "shadowprice" / "compiled"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert folder() == tmp_path / "home" / ".cache" / "shadowprice" / "compiled"


def test_a_changed_file_has_another_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = sources()
    assert before == sources()
    monkeypatch.setattr(stored_code.numba, "__version__", "0.0.1")
    assert sources() != before
    monkeypatch.undo()
    honest = Path.read_bytes
    for name in ("filling.py", "grid.py", "index_policy.py"):
        monkeypatch.setattr(
            Path,
            "read_bytes",
            lambda path, name=name: honest(path) + b"#" * (path.name == name),
        )
        assert sources() != before, name
        monkeypatch.undo()


def test_an_installation_compiles_every_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, bool]] = []

    class Here:
        """A pool of processes that is this one."""

        def __init__(self, *_: object, **__: object) -> None:
            pass

        def __enter__(self) -> Here:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def submit(self, function: Any, *given: Any) -> Future[None]:
            done: Future[None] = Future()
            done.set_result(function(*given))
            return done

    monkeypatch.setattr(kernel, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(kernel, "_loop", lambda *which: asked.append(which))
    kernel.compile_all(1)
    rules = range(arrays.HEAD_BLOCKS, arrays.RELEASES + 1)
    every = {(loop.shared_rule(rule), limited) for rule in rules for limited in (False, True)}
    assert len(asked) == len(set(asked))
    assert set(asked) == every - {(arrays.FILLS, True)}
