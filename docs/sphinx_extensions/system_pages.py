"""What the pages of systems include: published numbers beside ours, and the figures, by system.

Files begin with an underscore: they are parts of pages, see ``exclude_patterns``.
"""

from __future__ import annotations

from gallery_pages import FOLDER, grid, published_table, shown_figures

import build_reproduction

SYSTEMS = {
    "hadar": ("Hadar", "HadarE"),
    "asrpt": ("A-SRPT",),
    "synergy": ("Synergy",),
    "tiresias": ("Tiresias",),
    "gandiva": ("Gandiva",),
    "gavel": ("Gavel",),
    "pollux": ("Pollux",),
}
"""Pages of systems, and the systems that each is about."""


def pages() -> dict[str, str]:
    """Texts by file: numbers and figures of each page of ``docs/systems``."""
    published = build_reproduction.entries(FOLDER)
    figures = shown_figures()
    texts = {}
    for name, systems in SYSTEMS.items():
        parts = []
        for system in systems:
            mine = [entry for entry in published if entry.published.system == system]
            if mine:
                verdicts = build_reproduction.counts(mine)[system]
                parts.append(f"**{system}**: {build_reproduction.in_words(verdicts)}.\n")
                parts.append(published_table(mine))
        if not parts:
            parts.append("No number of the evaluation is known to us.\n")
        texts[f"systems/_{name}_numbers.md"] = "\n".join(parts)
        mine = [shown for shown in figures if shown.system in systems]
        texts[f"systems/_{name}_figures.md"] = grid(mine, "/generated/gallery/")
    return texts
