"""Code blocks of a page, run in the order printed, in one directory.

``python docs/run_page.py README.md`` runs a page in a fresh directory, with links to the folders of this checkout;
``--here`` runs it in the current one, ``--ci`` also runs the blocks that are left to CI, and ``--update`` writes what
commands print into the page where it is something else. Blocks by language:

- ``console``: lines that begin ``$ `` are commands for bash, ``> `` continues one; the lines below are what it prints.
  A line ``...`` stands for any lines, ``...`` within a line for any characters; a command without lines below may
  print anything. Lines on how far a command is and how a bound grew depend on the machine, and are left out. A command
  has to end with 0, one that prints a line ``error: ...`` with another status.
- ``python``: a first line ``# name.py`` makes it a file of that name; ``>>>`` makes it an example whose values are
  compared; anything else is run. What a block defines, later blocks of the page see.
- ``yaml`` and ``toml`` with a first line ``# name.yaml`` are files.

A comment ``<!-- not run: REASON -->`` or ``<!-- run by CI: REASON -->`` before a block leaves it out. Other languages
(``text``, ``math`` ...) are no code.
"""

from __future__ import annotations

import argparse
import doctest
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import shadowprice  # noqa: F401 - from where it is installed, not by way of the links of a fresh directory

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = "100"
CODE = ("console", "python")
FILES = ("yaml", "toml")
NO_CODE = ("text", "math", "csv", "json", *FILES)
LIMIT_S = 300
"""How long a command may run, in seconds."""
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<info>.*)$")
MARK = re.compile(r"<!--\s*(not run|run by CI):\s*(.*?)\s*-->", re.DOTALL)
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
"""Blocks of a page, fences included."""
LINK = re.compile(r"(?<!\\)\]\(([^()\s]+)\)")
"""Targets of links and pictures."""
FILE_NAME = re.compile(r"^# ([\w./-]+\.(?:py|yaml|yml|toml))$")


BY_THE_CLOCK = re.compile(
    r"^(?:.*\S so far(?:, about .* left)?|bound [\w-]+: [\d.e+]+ s\b.*"
    r"|bound [\w ]+: at most [\d.e+-]+)\n",
    re.MULTILINE,
)
"""Lines on stderr that depend on how fast the machine is: how far a command is, and how a bound grew."""


class PageError(Exception):
    """A block that does not do what the page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Parameters
    ----------
    page : str
        Name of the page, for messages.
    line : int
        Of its fence, from 1.
    language : str
        First word after the fence, empty if there is none.
    text : str
        Lines between the fences, without their common indent.
    mark : str
        ``not run``, ``run by CI``, or empty.
    reason : str
        After the colon of the mark.
    """

    page: str
    line: int
    language: str
    text: str
    mark: str = ""
    reason: str = ""

    @property
    def file_name(self) -> str | None:
        """Name of the file that it is, if it is one."""
        if self.language not in ("python", *FILES):
            return None
        found = FILE_NAME.match(self.text.partition("\n")[0])
        return None if found is None else found[1]

    def where(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command of a console block, and the lines that it prints according to the page."""

    line: int
    text: str
    printed: tuple[str, ...]


def blocks_of(path: Path) -> Iterator[Block]:
    """Fenced blocks of a Markdown file, directives of MyST (``{name}``) looked into."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    mark = ("", "")
    directives: list[str] = []
    while at < len(lines):
        found = FENCE.match(lines[at])
        if found is None:
            told = MARK.search(" ".join(lines[at : at + 4])) if "<!--" in lines[at] else None
            mark = (told[1], told[2]) if told else mark if not _ends_mark(lines[at]) else ("", "")
            at += 1
            continue
        info = found["info"].strip()
        if info.startswith("{"):
            directives.append(found["fence"])
            at += 1
            continue
        if not info and directives and directives[-1] == found["fence"]:
            directives.pop()
            at += 1
            continue
        end = next(
            (k for k in range(at + 1, len(lines)) if lines[k].strip() == found["fence"]), None
        )
        if end is None:
            raise PageError(f"{path.name}:{at + 1}: block without an end")
        indent = len(found["indent"])
        text = "\n".join(line[indent:] for line in lines[at + 1 : end]) + "\n"
        language = info.split()[0] if info else ""
        yield Block(path.name, at + 1, language, text, *mark)
        mark = ("", "")
        at = end + 1


def _ends_mark(line: str) -> bool:
    """True for a line of text, after which a mark speaks of no later block."""
    return bool(line.strip()) and "-->" not in line


def commands_of(block: Block) -> Iterator[Command]:
    """Commands of a console block."""
    number, text, printed = 0, "", []
    for offset, line in enumerate(block.text.splitlines(), start=1):
        if line.startswith("$ "):
            if text:
                yield Command(number, text, tuple(printed))
            number, text, printed = block.line + offset, line[2:], []
        elif line.startswith("> ") or line == ">":
            text += "\n" + line[2:]
        elif not text:
            raise PageError(f"{block.where()}: a console block begins with '$ ', got {line!r}")
        else:
            printed.append(line.rstrip())
    if text:
        yield Command(number, text, tuple(printed))


def agrees(printed: tuple[str, ...], got: str) -> bool:
    """True if output is what a page says, ``...`` standing for anything."""
    lines = [line.rstrip() for line in got.splitlines()]
    pattern = ""
    for line in _trimmed(printed):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(line).replace(re.escape("..."), ".*?") + "\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _trimmed(lines))) is not None


def _trimmed(lines: tuple[str, ...] | list[str]) -> list[str]:
    """Lines without empty ones at both ends."""
    kept = list(lines)
    while kept and not kept[0].strip():
        kept.pop(0)
    while kept and not kept[-1].strip():
        kept.pop()
    return kept


def run_page(path: Path, folder: Path, *, ci: bool = False, update: bool = False) -> int:
    """Run the blocks of a page in a folder; how many commands and Python blocks were run.

    Parameters
    ----------
    ci : bool
        Run what is left to CI too.
    update : bool
        Write what commands print into the page where it is something else.

    Raises
    ------
    PageError
        Naming page, line, what was expected and what was printed.
    """
    count = 0
    names: dict[str, object] = {"__name__": "page"}
    changed: list[tuple[Command, str]] = []
    try:
        for block in blocks_of(path):
            if block.mark == "not run" or (block.mark == "run by CI" and not ci):
                continue
            if block.file_name is not None:
                (folder / block.file_name).write_text(block.text, encoding="utf-8")
            elif block.language == "console":
                for command in commands_of(block):
                    printed = _run_command(block, command, folder)
                    if _trimmed(command.printed) and not agrees(command.printed, printed):
                        if not update:
                            raise PageError(_difference(block, command, printed))
                        changed.append((command, printed))
                    count += 1
            elif block.language == "python":
                _run_python(block, names, folder)
                count += 1
    finally:
        if changed:
            _write_printed(path, changed)
    return count


def _write_printed(path: Path, changed: list[tuple[Command, str]]) -> None:
    """Replace the lines below commands by what they print."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for command, printed in reversed(changed):
        first = command.line + command.text.count("\n")
        new = _trimmed([line.rstrip() for line in printed.splitlines()])
        lines[first : first + len(command.printed)] = new
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _environment() -> dict[str, str]:
    """Variables of the commands: a screen of one width, no colours, this Python first."""
    own = str(Path(sys.executable).parent)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("SHADOWPRICE_")},
        "PATH": f"{own}{os.pathsep}{os.environ.get('PATH', '')}",
        "COLUMNS": COLUMNS,
        "LINES": "50",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "MPLBACKEND": "Agg",
        "PYTHONWARNINGS": "default",
    }


def _run_command(block: Block, command: Command, folder: Path) -> str:
    told = f"{block.page}:{command.line}: $ {command.text}"
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", command.text],
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as done:
        try:
            got, _ = done.communicate(timeout=LIMIT_S)
        except BaseException as stopped:
            # What bash started holds the pipe too, and would be waited for.
            with suppress(ProcessLookupError):
                os.killpg(done.pid, signal.SIGKILL)
            if not isinstance(stopped, subprocess.TimeoutExpired):
                raise
            so_far = (stopped.output or b"").decode(errors="replace")
            raise PageError(
                f"{told}\nhad not ended after {LIMIT_S} s, and printed\n{so_far}"
            ) from None
    # A page that shows an error expects one; the status is then not 0 either.
    shows_error = any(line.startswith("error:") for line in command.printed)
    if (done.returncode != 0) is not shows_error:
        raise PageError(f"{told}\nended with status {done.returncode} and printed\n{got}")
    return BY_THE_CLOCK.sub("", got)


def _difference(block: Block, command: Command, got: str) -> str:
    """Message on a command that prints something else."""
    expected = "\n".join(command.printed)
    told = f"{block.page}:{command.line}: $ {command.text}"
    return f"{told}\nexpected\n{expected}\ngot\n{got}"


def _run_python(block: Block, names: dict[str, object], folder: Path) -> None:
    before, path = Path.cwd(), list(sys.path)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        if block.text.lstrip().startswith(">>>"):
            _run_examples(block, names)
        else:
            exec(
                compile("\n" * block.line + block.text, block.page, "exec", dont_inherit=True),
                names,
            )
    except PageError:
        raise
    except Exception as error:
        raise PageError(f"{block.where()}: {type(error).__name__}: {error}") from error
    finally:
        os.chdir(before)
        sys.path[:] = path


def _run_examples(block: Block, names: dict[str, object]) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    examples = doctest.DocTestParser().get_doctest(
        block.text, names, block.page, block.page, block.line
    )
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    runner.run(examples, out=said.append, clear_globs=False)
    names.update(examples.globs)
    if runner.failures:
        raise PageError(f"{block.where()}:\n{''.join(said)}")


def fresh_directory(folder: Path) -> Path:
    """A directory like a fresh checkout: its folders are links into this one."""
    for path in ROOT.iterdir():
        hidden = path.name.startswith((".", "_")) or path.name in {"build", "dist"}
        if not hidden and path.suffix != ".egg-info":
            (folder / path.name).symlink_to(path, target_is_directory=path.is_dir())
    return folder


def main() -> int:
    """Run pages that are named."""
    parser = argparse.ArgumentParser(description="Run the code blocks of pages.")
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--here", action="store_true", help="in this directory, not a fresh one")
    parser.add_argument("--ci", action="store_true", help="also what is left to CI")
    parser.add_argument("--update", action="store_true", help="write what is printed into the page")
    given = parser.parse_args()
    how = {"ci": given.ci, "update": given.update}
    for page in given.pages:
        try:
            if given.here:
                count = run_page(page.resolve(), Path.cwd(), **how)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    count = run_page(page.resolve(), fresh_directory(Path(folder)), **how)
        except PageError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        print(f"{page}: {count} commands and blocks did what the page says", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
