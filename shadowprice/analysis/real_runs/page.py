"""A page in one file: it opens in any browser and asks the network for nothing.

What is shown is data of strangers: the templates escape all of it, and a content security policy lets
no script run but plotly's library and the calls that draw its figures, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL)
_TEMPLATES = Environment(
    loader=PackageLoader("shadowprice.analysis.real_runs", "."),
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


def figure_html(name: str, figure: go.Figure) -> Markup:
    """A figure as plotly writes it, with an id and without the library; its data end no element."""
    options = {"responsive": True, "displayModeBar": False}
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=options)
    )


def page(template: str, **given: object) -> str:
    """The page of a template with what is given to it: text, sheets and HTML of figures."""
    library = Markup(get_plotlyjs())
    figures = (each for each in given.values() if isinstance(each, Markup))
    scripts = [library, *(script for each in figures for script in _SCRIPT.findall(each))]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    return _TEMPLATES.get_template(template).render(library=library, policy=policy, **given)


def _hash(script: str) -> str:
    """The script's name in a content security policy."""
    # Browsers read CRLF as LF before they hash.
    digest = hashlib.sha256(script.replace("\r\n", "\n").replace("\r", "\n").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
