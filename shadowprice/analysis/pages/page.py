"""Pages in one file: they open in any browser and ask the network for nothing.

What is shown is data of strangers: the templates escape all of it, and a content security policy lets no script run
but a library that is given and the calls that draw its figures, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

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

    def kind(self, column: int) -> str:
        """The attributes of a column's cells."""
        return Markup("") if column < self.words else Markup(' class="n"')


def page(
    template: str, *, library: Markup | None = None, made_by: str = "", **given: object
) -> str:
    """The page of a template with what is given to it: text, sheets and HTML of figures.

    Parameters
    ----------
    template : str
        Path of a file in the package's ``analysis``, which extends ``pages/page.html.j2``.
    library : Markup, optional
        Script that figures call; without one no script runs.
    made_by : str
        What made it, for its foot, where more than this package's version is known.
    """
    figures = (each for each in given.values() if isinstance(each, Markup))
    scripts = [script for each in figures for script in _SCRIPT.findall(each)]
    allowed = [_hash(each) for each in ([] if library is None else [library, *scripts])]
    policy = (
        f"default-src 'none'; script-src {' '.join(allowed) or NOBODY}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    found = _TEMPLATES.get_template(template)
    told = made_by or f"Made by shadowprice {__version__}."
    return found.render(library=library, policy=policy, made_by=told, **given)


def _hash(script: str) -> str:
    """The script's name in a content security policy."""
    # Browsers read CRLF as LF before they hash.
    digest = hashlib.sha256(script.replace("\r\n", "\n").replace("\r", "\n").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
