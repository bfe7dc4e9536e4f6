"""Pages made of what the package says of itself, written to ``docs/generated/`` before a build.

Figures, theorems, models, commands and public names each have one list, in the package; the pages follow it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import command_pages
import gallery_pages
import library_pages
import notebook_pages
import reference_pages
import system_pages
import theory_pages
from page_files import Pages, write_pages
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
MAKERS: tuple[Callable[[], Pages], ...] = (
    command_pages.pages,
    gallery_pages.pages,
    library_pages.pages,
    notebook_pages.pages,
    reference_pages.pages,
    system_pages.pages,
    theory_pages.pages,
)


def generate(app: Sphinx) -> None:
    """Write all generated pages and pictures; remove what is no longer made."""
    folder = Path(app.srcdir) / "generated"
    pages: dict[str, str] = {}
    for maker in MAKERS:
        pages.update(maker())
    write_pages(folder, pages)
    drawn = gallery_pages.draw_pictures(folder / "gallery")
    kept = {folder / name for name in pages} | set(drawn)
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink()
    LOGGER.info("%d pages and %d pictures are generated", len(pages), len(drawn))


def setup(app: Sphinx) -> dict[str, Any]:
    """Generate when a builder is ready, before it looks for pages."""
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
