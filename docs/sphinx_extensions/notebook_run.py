"""Cells of a notebook, run in the order printed: ``python notebook_run.py NOTEBOOK`` prints their outputs as JSON.

A kernel would do the same; the site needs no more of it than this. Of each code cell a list of pairs: ``text`` that was
printed, ``value`` of the last line, ``html`` of a table, ``svg`` of a figure. Lines that begin with ``%`` are for
Jupyter alone.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

_STYLE: Any = {"svg.hashsalt": "shadowprice"}


def run(notebook: Path) -> list[list[tuple[str, str]]]:
    """Outputs of all code cells."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {"__name__": "__main__"}
    return [
        list(_run_cell(source_of(cell), names)) for cell in cells if cell["cell_type"] == "code"
    ]


def source_of(cell: dict[str, Any]) -> str:
    """Text of a cell without magics."""
    lines = "".join(cell["source"]).splitlines()
    return "\n".join(line for line in lines if not line.startswith("%")).strip()


def _run_cell(source: str, names: dict[str, Any]) -> Iterator[tuple[str, str]]:
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        # The notebooks are ours, and run as any example of the pages.
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    if printed.getvalue():
        yield "text", printed.getvalue()
    if isinstance(value, Figure):
        yield "svg", _svg(value)
        plt.close(value)
    elif value is not None and hasattr(value, "_repr_html_"):
        yield "html", value._repr_html_()
    elif value is not None:
        yield "value", repr(value)
    for number in plt.get_fignums():
        yield "svg", _svg(plt.figure(number))
    plt.close("all")


def _svg(figure: Figure) -> str:
    with mpl.rc_context(_STYLE):
        text = io.StringIO()
        figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    return text.getvalue()


if __name__ == "__main__":
    json.dump(run(Path(sys.argv[1])), sys.stdout)
