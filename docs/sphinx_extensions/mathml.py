"""Formulas as MathML, which browsers draw by themselves: no script, no fonts, no network.

docutils translates TeX; what it cannot translate is a warning, hence an error of the build.
"""

from __future__ import annotations

import html
import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

LOGGER = logging.getLogger(__name__)


LABELS = re.compile(r"&&\s*(\([\w ]+\)(?:, \([\w ]+\))*)")
"""Names of constraints at the end of a line, as the models write them."""
DOTS = re.compile(r"\\dots(?![a-z])")


def prepared(tex: str) -> str:
    """A formula in the commands that docutils knows."""
    # GitHub's form of inline formulas has backticks inside the dollars.
    tex = tex.strip().strip("`").strip()
    # About size alone, and another name of the same dots.
    tex = DOTS.sub(r"\\ldots", tex.replace(r"\textstyle", ""))
    tex = LABELS.sub(r"&& \\text{\1}", tex)
    if ("\\\\" in tex or "&" in tex) and r"\begin{" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    return tex


def mathml(tex: str, node: nodes.Node, *, display: bool) -> str:
    """MathML of a formula; of one that cannot be translated its TeX, with a warning."""
    try:
        return str(tex2mathml(prepared(tex), as_block=display))
    except (MathError, ValueError, IndexError, AttributeError) as error:
        LOGGER.warning("formula %r: %s", tex, error, location=node)
        return f"<code>{html.escape(tex)}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula of a sentence."""
    self.body.append(mathml(node.astext(), node, display=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    self.body.append(f'<div class="math">{mathml(node.astext(), node, display=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config["html_math_renderer"] = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
