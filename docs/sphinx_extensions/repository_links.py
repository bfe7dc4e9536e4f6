"""Links of pages to files of the repository, and the marks of blocks that no test runs.

Pages are read in the repository too, where a link to a folder opens it. The site has no folders: there such a
link is its text. A comment ``<!-- not run: REASON -->`` before a block is what the tests of the pages read; the
site shows it above the block.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NOT_RUN = re.compile(r"^\s*not run: (.*?)\s*$", re.DOTALL)
FOLDER_LINK = re.compile(r"\[([^\]]*)\]\((\.\.?/[^)#\s]*)\)")


def without_folder_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace links to folders of the repository by their text."""
    here = Path(str(app.env.doc2path(docname))).parent

    def replaced(found: re.Match[str]) -> str:
        return found[1] if (here / found[2]).is_dir() else found[0]

    source[0] = FOLDER_LINK.sub(replaced, source[0])


class MarksOfBlocks(SphinxTransform):
    """Show why a block is not run by the tests."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Turn marks into lines of text."""
        for node in list(self.document.findall(nodes.comment)):
            if found := NOT_RUN.match(node.astext()):
                text = f"Not run by the tests: {' '.join(found[1].split())}."
                node.replace_self(nodes.paragraph("", "", nodes.emphasis(text, text)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register both."""
    app.connect("source-read", without_folder_links)
    app.add_transform(MarksOfBlocks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
