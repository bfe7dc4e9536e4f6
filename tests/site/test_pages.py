"""Pages of README.md and docs/: blocks parse in every run; `make pages` runs them all, in the order printed."""

from __future__ import annotations

import ast
import os
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

import run_page
from run_page import Block, Command, PageError, agrees, blocks_of, commands_of
from shadowprice.cli.app import app
from support.paths import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "generated" not in path.parts),
]
LEAST_REASON = 10


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def shadowprice_words(command: Command) -> list[str] | None:
    """Words after ``shadowprice`` of a command that is nothing else, redirections left out."""
    words = shlex.split(command.text, comments=True) if "<<" not in command.text else []
    if not words or words[0] != "shadowprice":
        return None
    ends = [k for k, word in enumerate(words) if word in {">", "2>", "|", "&&"}]
    return words[1 : ends[0] if ends else len(words)]


@cache
def all_commands() -> Any:
    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Parse a command line as the command would, without running it."""
    command = all_commands()
    context = typer.Context(command, info_name="shadowprice")
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            command.make_context("shadowprice", list(words) or ["--help"], resilient_parsing=True)
            return
        usual = getattr(command, "usual", None)
        if usual and words[0] not in command.commands:
            words = [usual, *words]  # `place FILE` is `place graph FILE`
        _, found, words = command.resolve_command(context, words)
        context = typer.Context(found, info_name=found.name, parent=context)
        command = found
    command.make_context(command.name, list(words), parent=context.parent)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_have_a_language_and_parse(path: Path) -> None:
    for block in blocks_of(path):
        assert block.language in (*run_page.CODE, *run_page.NO_CODE), block.where()
        if block.mark:
            assert len(block.reason) >= LEAST_REASON, f"{block.where()}: say why"
        if block.language == "python" and not block.text.lstrip().startswith(">>>"):
            ast.parse(block.text, filename=block.where())
        if block.language != "console":
            continue
        for command in commands_of(block):
            words = shadowprice_words(command)
            refused = any(line.startswith("error:") for line in command.printed)
            if words is not None and not refused:
                parse(words)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # a command that hangs is named by the limit of its own
@pytest.mark.parametrize("path", [path for path in PAGES if any(blocks_of(path))], ids=name_of)
def test_a_page_does_what_it_says(path: Path, tmp_path: Path) -> None:
    run_page.run_page(path, run_page.fresh_directory(tmp_path))


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_of_a_page_lead_to_files(path: Path) -> None:
    """Also those that only the repository has: folders."""
    prose = run_page.FENCED.sub("", path.read_text(encoding="utf-8"))
    for target in run_page.LINK.findall(prose):
        if "://" not in target and not target.startswith("#"):
            assert (path.parent / target.partition("#")[0]).exists(), f"{name_of(path)}: {target}"


PAGE = """
Text.

```console
$ echo one && echo two
one
...
$ echo three
three
```

<!-- not run: needs what is not here -->
```console
$ false
```

```python
# made.py
VALUE = 3
```

```python
>>> from made import VALUE
>>> VALUE + 1
4
```

```python
assert VALUE == 3
```
"""


def test_a_page_that_is_right_passes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert run_page.run_page(page, tmp_path) == 4


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("$ echo three\nthree", "$ echo three\nfour", "expected\nfour\ngot\nthree"),
        ("one\n...", "...\none", "expected"),
        ("VALUE + 1\n4", "VALUE + 1\n5", "Expected:\n    5"),
        ("assert VALUE == 3", "assert VALUE == 4", "AssertionError"),
        ("$ echo three\n", "$ echo three; false\n", "ended with status 1"),
        ("three\n```", "error: three\n```", "ended with status 0"),
        ("<!-- not run: needs what is not here -->\n", "", "ended with status 1"),
        ("$ echo one", "echo one", "begins with"),
    ],
)
def test_a_page_that_is_wrong_fails(old: str, new: str, message: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert old in PAGE
    page.write_text(PAGE.replace(old, new))
    with pytest.raises(PageError) as raised:
        run_page.run_page(page, tmp_path)
    assert message in str(raised.value)


@pytest.mark.timeout(30)
def test_a_command_that_hangs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what it started holds its output; nothing of it is left."""
    monkeypatch.setattr(run_page, "LIMIT_S", 2)
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo begun; sleep 60 > held | sleep 60; true\n```\n")
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(PageError, match=r"page\.md:2: \$ echo begun.*\n.* 2 s.*\nbegun\n"):
        run_page.run_page(page, tmp_path)
    os.set_blocking(held, True)
    assert os.read(held, 1) == b""  # nobody holds it any more
    os.close(held)


def test_lines_that_depend_on_the_machine_are_left_out(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    told = "bounding: 2 s so far\\nsimulating:  40%%, 12 s so far, about 20 s left\\nbound fluid: 1.5e+06 s\\n"
    page.write_text(f"```console\n$ printf '{told}a bound: 3 s\\n'\na bound: 3 s\n```\n")
    assert run_page.run_page(page, tmp_path) == 1


def test_a_mark_speaks_of_the_next_block_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: a reason -->\ntext between\n```console\n$ true\n```\n")
    (block,) = blocks_of(page)
    assert isinstance(block, Block)
    assert not block.mark


def test_what_is_printed_is_written_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        PAGE.replace("one\n...", "eins").replace("$ echo three\nthree", "$ echo 3\ndrei")
    )
    run_page.run_page(page, tmp_path, update=True)
    text = page.read_text()
    assert "$ echo one && echo two\none\ntwo\n$ echo 3\n3\n```" in text
    assert run_page.run_page(page, tmp_path) == 4


@pytest.mark.parametrize(
    ("printed", "got", "holds"),
    [
        (("a", "...", "c"), "a\nb\nb\nc\n", True),
        (("a", "...", "c"), "a\nc\n", True),
        (("a ... c",), "a b c\n", True),
        (("a ... c",), "a\nc\n", False),
        (("a",), "a\nb\n", False),
        (("(a)",), "(a)\n", True),
        ((), "", True),
    ],
)
def test_three_dots_stand_for_anything(printed: tuple[str, ...], got: str, holds: bool) -> None:
    assert agrees(printed, got) is holds
