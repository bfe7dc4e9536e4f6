"""Pages in one file: they open in any browser and ask the network for nothing.

What is shown is data of strangers: the templates escape all of it, and a content security policy lets no script run
but a library that is given and the calls that draw its figures, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from shadowprice.version import __version__

NOBODY = "'none'"
"""Source of a content security policy that matches no script."""

_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)


_TEMPLATES = Environment(
    loader=PackageLoader("shadowprice.analysis", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class PagePart(Protocol):
    """Part of a section, as HTML: a table, a list, text, or a figure's markup."""

    def __html__(self) -> str:
        """HTML of the part, all that strangers wrote escaped."""


@dataclass(frozen=True)
class Sheet:
    """A table whose first columns are words and whose others are numbers.

    Parameters
    ----------
    words : int
        How many columns are words.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    words: int

    def __html__(self) -> Markup:
        head = self._cells("th", self.heads)
        rows = _joined(Markup("<tr>{}</tr>\n").format(self._cells("td", row)) for row in self.rows)
        table = (
            '<div class="wide"><table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n'
        )
        return Markup(table).format(head, rows)

    def _cells(self, tag: str, cells: Sequence[object]) -> Markup:
        return _joined(
            Markup(f"<{tag}{{}}>{{}}</{tag}>").format(
                Markup("" if column < self.words else ' class="n"'), cell
            )
            for column, cell in enumerate(cells)
        )


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    sentences: Iterable[str]

    def __html__(self) -> Markup:
        items = _joined(Markup("<li>{}</li>\n").format(each) for each in self.sentences)
        return Markup("<ul>\n{}</ul>").format(items)


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str

    def __html__(self) -> Markup:
        return Markup("<p>{}</p>").format(self.text)


@dataclass(frozen=True)
class Note(Text):
    """A paragraph in small print."""

    def __html__(self) -> Markup:
        return Markup('<p class="note">{}</p>').format(self.text)


@dataclass(frozen=True)
class Typed(Text):
    """Text that stays as it was typed."""

    def __html__(self) -> Markup:
        return Markup("<pre>{}</pre>").format(self.text)


@dataclass(frozen=True)
class Section:
    """A part of a page under a title, with a note below it in small print."""

    title: str
    parts: Sequence[PagePart]
    note: str = ""


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def page(
    title: str,
    lead: str,
    sections: Sequence[Section],
    *,
    library: Markup | None = None,
    made_by: str = "",
) -> str:
    """The page of sections below a title and a sentence.

    Parameters
    ----------
    library : Markup, optional
        Script that figures call; without one no script runs.
    made_by : str
        What made it, for its foot, where more than this package's version is known.
    """
    figures = (part for each in sections for part in each.parts if isinstance(part, Markup))
    scripts = [script for each in figures for script in _SCRIPT.findall(each)]
    allowed = [_hash(each) for each in ([] if library is None else [library, *scripts])]
    policy = (
        f"default-src 'none'; script-src {' '.join(allowed) or NOBODY}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    return _TEMPLATES.get_template("pages/page.html.j2").render(
        title=title,
        lead=lead,
        sections=sections,
        library=library,
        policy=policy,
        made_by=made_by or f"Made by shadowprice {__version__}.",
    )


def _hash(script: str) -> str:
    """The script's name in a content security policy."""
    # Browsers read CRLF as LF before they hash.
    digest = hashlib.sha256(script.replace("\r\n", "\n").replace("\r", "\n").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
