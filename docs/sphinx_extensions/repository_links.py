"""Links of pages to files of the repository, marks of blocks that no test runs, and long lines of outputs.

Pages are read in the repository too, where a link to a folder opens it, one to a notebook shows it, and one to a file
of a theorem its proof. The site has no folders: there such a link is its text; notebooks and theorems have their pages.
A comment ``<!-- not run: REASON -->`` before a block is what the tests of the pages read; the site shows it above the
block.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import shadowprice.proofs
from build_theorems import theorems

TABLE = re.compile("[│┃┏└]|  {3}")
"""Lines of a table, or columns that spaces align."""
NOT_RUN = re.compile(r"^\s*not run: (.*?)\s*$", re.DOTALL)
FOLDER_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\.?/|notebooks/)[^)#\s]*)\)")


def links_of_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace links to folders by their text, those to notebooks and theorem files by links to their pages."""
    here = Path(str(app.env.doc2path(docname))).parent

    def replaced(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        path = (here / target).resolve()
        if path.is_dir():
            return text
        if path.suffix == ".ipynb" and path.exists():
            return f"[{text}](/generated/notebooks/{path.stem}.md)"
        if name := _theorems().get(path):
            return f"{{ref}}`{text} <theorem-{name}>`" if "`" not in text else found[0]
        return found[0]

    source[0] = FOLDER_LINK.sub(replaced, source[0])


@cache
def _theorems() -> dict[Path, str]:
    """Anchors of theorems by their files."""
    proofs = Path(shadowprice.proofs.__file__).resolve().parent
    return {proofs / f"{each.module.replace('.', '/')}.py": each.anchor for each in theorems()}


class MarksOfBlocks(SphinxTransform):
    """Show why a block is not run by the tests."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Turn marks into lines of text."""
        for node in list(self.document.findall(nodes.comment)):
            if found := NOT_RUN.match(node.astext()):
                text = f"Not run by the tests: {' '.join(found[1].split())}."
                node.replace_self(nodes.paragraph("", "", nodes.emphasis(text, text)))


class LongLines(SphinxTransform):
    """Let outputs without a table break their lines, so that a sentence is read without scrolling."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Give such blocks a class, of which the style sheet knows."""
        for node in self.document.findall(nodes.literal_block):
            if node.get("language") in ("console", "text") and not TABLE.search(node.astext()):
                node["classes"].append("breaks-lines")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all."""
    app.connect("source-read", links_of_the_site)
    app.add_transform(MarksOfBlocks)
    app.add_transform(LongLines)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
