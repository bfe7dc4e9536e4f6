"""Notebooks, run in kernels of Jupyter as a reader runs them, several beside one another.

Of each code cell a list of pairs: ``text`` that was printed, ``value`` of the last line, ``html`` of a table, ``svg``
of a figure. Every run starts in an empty folder, so that a notebook needs nothing that lies around it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

Outputs = list[list[tuple[str, str]]]
LIMIT_S = 600
"""How long a cell may run, in seconds."""
_DRAW_THE_SAME_BYTES = """
%matplotlib inline
__import__("matplotlib").rcParams["svg.hashsalt"] = "shadowprice"
__import__("matplotlib_inline.backend_inline").backend_inline.set_matplotlib_formats(
    "svg", bbox_inches="tight", metadata={"Date": None}
)
"""
"""What each kernel runs first; it defines no name, for a notebook could lean on it."""


class NotebookError(Exception):
    """Notebooks that do not run, a line each: file, cell, what it raised."""


def run(paths: Sequence[Path]) -> list[Outputs]:
    """Outputs of all code cells of each notebook.

    Raises
    ------
    NotebookError
        Naming every notebook that fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(_run_all(paths, Path(folder)))
    failed = [str(each) for each in results if isinstance(each, NotebookError)]
    if failed:
        raise NotebookError("\n".join(failed))
    return [each for each in results if not isinstance(each, NotebookError)]


async def _run_all(paths: Iterable[Path], folder: Path) -> list[Outputs | NotebookError]:
    kernels = asyncio.Semaphore(os.cpu_count() or 1)

    async def one(path: Path) -> Outputs | NotebookError:
        async with kernels:
            own = folder / path.stem
            own.mkdir()
            return await _run_one(path, own)

    return await asyncio.gather(*map(one, paths))


async def _run_one(path: Path, folder: Path) -> Outputs | NotebookError:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(_DRAW_THE_SAME_BYTES))
    client = NotebookClient(
        notebook,
        timeout=LIMIT_S,
        resources={"metadata": {"path": str(folder)}},
        coalesce_streams=True,
        extra_arguments=["--log-level=ERROR"],
    )
    try:
        await client.async_execute()
    except CellExecutionError as error:
        return NotebookError(
            f"{path.name}: cell {_failed(notebook)}: {error.ename}: {error.evalue}"
        )
    except (CellTimeoutError, DeadKernelError) as error:
        return NotebookError(f"{path.name}: {str(error).splitlines()[0]}")
    return [list(_shown(cell.outputs)) for cell in notebook.cells[1:] if cell.cell_type == "code"]


def _failed(notebook: Any) -> int:
    """Number of the cell that raised, from 1."""
    return next(
        number
        for number, cell in enumerate(notebook.cells)
        if any(each.output_type == "error" for each in cell.get("outputs", ()))
    )


def _shown(outputs: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """What a page shows of a cell's outputs; a figure that is drawn and returned is shown once."""
    drawn: set[str] = set()
    for each in outputs:
        if each.output_type == "stream":
            if each.name == "stdout":
                yield "text", each.text
            continue
        if (svg := each.data.get("image/svg+xml")) is not None:
            if svg not in drawn:
                yield "svg", svg
            drawn.add(svg)
        elif (html := each.data.get("text/html")) is not None:
            yield "html", html
        else:
            yield "value", each.data["text/plain"]
