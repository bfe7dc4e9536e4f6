"""A page in one file: it opens in any browser and asks the network for nothing.

What is shown is data of strangers: all of it is escaped, and a content security policy lets nothing
run but the two scripts of the page, named by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

_STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1a1a1a; font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 34px 0 2px; }
.lead { margin: 0; }
.note { margin: 0 0 8px; color: #555; font-size: 13.5px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; width: 100%; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 1.5px solid #555; }
td { vertical-align: top; border-bottom: 1px solid #e4e4e4; }
td:first-child, th { white-space: nowrap; }
th, td { padding: 4px 12px 4px 0; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
"""

_DRAW = """
for (const data of document.querySelectorAll('script[type="application/json"]')) {
  const figure = JSON.parse(data.textContent);
  Plotly.newPlot(data.dataset.target, figure.data, figure.layout,
                 {responsive: true, displayModeBar: false});
}
"""


def table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, words: int) -> str:
    """A table whose first columns are words and whose others are numbers."""

    def line(tag: str, cells: Sequence[object]) -> str:
        kinds = ["" if place < words else ' class="n"' for place in range(len(cells))]
        made = (f"<{tag}{k}>{text(cell)}</{tag}>" for k, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return (
        f'<div class="wide"><table><thead>{line("th", heads)}</thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def section(title: str, note: str, body: str) -> str:
    """A heading, a note under it, and HTML."""
    said = f'<p class="note">{text(note)}</p>' if note else ""
    return f"<section><h2>{text(title)}</h2>{said}{body}</section>"


def place_of(name: str, figure: go.Figure) -> str:
    """A figure's place and its data, in which no ``<`` can end the element."""
    data = json.dumps(json.loads(figure.to_json())).replace("<", "\\u003c")
    height = int(figure.layout.height)
    return (
        f'<div id="{name}" style="height:{height}px"></div>'
        f'<script type="application/json" data-target="{name}">{data}</script>'
    )


def page(title: str, body: str) -> str:
    """The whole page around HTML."""
    library = get_plotlyjs()
    policy = (
        f"default-src 'none'; script-src {_hash(library)} {_hash(_DRAW)}; "
        "style-src 'unsafe-inline'; img-src data: blob:"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{text(title)}</title>
<style>
{_STYLE}</style>
<script>{library}</script>
</head>
<body>
<main>
{body}
</main>
<script>{_DRAW}</script>
</body>
</html>
"""


def _hash(script: str) -> str:
    """The script's name in a content security policy."""
    # Browsers read CRLF as LF before they hash.
    digest = hashlib.sha256(script.replace("\r\n", "\n").replace("\r", "\n").encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def text(value: object) -> str:
    """Text that stays text wherever in a page it stands."""
    return html.escape(str(value), quote=True)
