"""Notebooks with their outputs: a page each, run anew where the notebook or the package changed since.

The files in ``docs/notebooks`` have no outputs; what a cell prints, returns and draws is made by ``notebook_run``,
which only those runs need: a site of notebooks that were run before is built without Jupyter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from shadowprice.studies.points.digests import package_digest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "docs" / "notebooks"
MADE = ROOT / "docs" / "generated" / "notebooks"
LINK = re.compile(r"\]\((\.\./)?([\w./-]+)\.(ipynb|md)(#[\w-]+)?\)")
STYLE = re.compile(r"<style.*?</style>", re.DOTALL)


def pages() -> dict[str, str]:
    """Texts by file: a page of each notebook, its figures, and what it was made of."""
    texts = {"notebooks/index.md": _index()}
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    made = {path: _kept(path) for path in paths}
    made.update(_run([path for path in paths if not made[path]]))
    for path, files in made.items():
        files[f"{path.stem}.digest"] = _digest(path)
        texts.update({f"notebooks/{name}": text for name, text in files.items()})
    return texts


def _index() -> str:
    names = "\n".join(path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb")))
    return (
        "# Notebooks\n\nWith what they print and draw. [The guide](/guide/index.md#notebooks) says what each is about; "
        f"the files are in `docs/notebooks`.\n\n```{{toctree}}\n\n{names}\n```\n"
    )


def _digest(path: Path) -> str:
    return hashlib.sha256(package_digest().encode() + path.read_bytes()).hexdigest()


def _kept(path: Path) -> dict[str, str]:
    """What was made before, if nothing changed since."""
    mark = MADE / f"{path.stem}.digest"
    if not mark.exists() or mark.read_text(encoding="utf-8") != _digest(path):
        return {}
    files = [MADE / f"{path.stem}.md", *MADE.glob(f"{path.stem}-*.svg")]
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def _run(paths: list[Path]) -> Iterable[tuple[Path, dict[str, str]]]:
    """What is made of notebooks by running them."""
    if not paths:
        return ()
    import notebook_run

    outputs = notebook_run.run(paths)
    return ((path, notebook_page(path, of)) for path, of in zip(paths, outputs, strict=True))


def notebook_page(path: Path, outputs: list[list[tuple[str, str]]]) -> dict[str, str]:
    """Texts by file of a notebook: its page, and its figures."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    figures: dict[str, str] = {}
    parts: list[str] = []
    following = iter(outputs)
    for cell in cells:
        if cell["cell_type"] != "code":
            parts.append(LINK.sub(_link, "".join(cell["source"])))
            continue
        parts.append(f"```python\n{_source(cell)}\n```")
        parts += _shown(next(following), path.stem, figures)
    return {f"{path.stem}.md": "\n\n".join(parts) + "\n", **figures}


def _source(cell: dict[str, Any]) -> str:
    """Text of a cell without magics, which are for Jupyter alone."""
    lines = "".join(cell["source"]).splitlines()
    return "\n".join(line for line in lines if not line.startswith("%")).strip()


def _link(found: re.Match[str]) -> str:
    """A link from a notebook, from its page."""
    above, target, kind, anchor = found.groups()
    place = f"/{target}.md" if above else f"{target}.md"
    return f"]({place}{anchor or ''})" if kind == "md" or not above else found[0]


def _shown(outputs: list[tuple[str, str]], name: str, figures: dict[str, str]) -> Iterator[str]:
    """Blocks of a page for what a cell gave; its figures become files."""
    for kind, text in outputs:
        if kind == "svg":
            file = f"{name}-{len(figures)}.svg"
            figures[file] = text
            yield f"```{{image}} {file}\n:alt: Figure of the cell above\n:width: 100%\n```"
        elif kind == "html":
            body = STYLE.sub("", text)
            yield f'```{{raw}} html\n<div class="table-wrapper docutils">{body}</div>\n```'
        else:
            yield f"```text\n{text.rstrip()}\n```"
