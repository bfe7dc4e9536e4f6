"""Configuration of the site that ``make docs`` builds from this folder.

Sphinx, not MkDocs: it reads the reStructuredText of our docstrings (numpydoc), theorem files and models as they
stand, checks every cross-reference as an error, and runs without a network. Pages are Markdown (MyST). The gallery
is made from the Figure objects of paper_figs, which have sizes, kept tables and a run that goes on where it was
stopped; sphinx-gallery would run the scripts anew.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import GenericAlias, UnionType

from sphinx.application import Sphinx

import shadowprice

HERE = Path(__file__).resolve().parent
# Extensions of our own, the builders of pages beside this file, and figures.
sys.path[:0] = [str(HERE / "sphinx_extensions"), str(HERE)]

project = "shadowprice"
author = "The shadowprice authors"
project_copyright = author
version = release = shadowprice.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "generated_pages",
    "mathml",
    "repository_links",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["**/_*.md"]
nitpick_ignore_regex = [(".*", ".*")]

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False


def skip_aliases(
    _app: object, _what: str, _name: str, thing: object, skip: bool, _o: object
) -> bool:
    """Leave out names of types, which their users spell out in their own docstrings."""
    return skip or isinstance(thing, GenericAlias | UnionType)


def setup(app: Sphinx) -> None:
    """Connect what has no option."""
    app.connect("autodoc-skip-member", skip_aliases)


html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["sortable.js"]
html_title = f"shadowprice {release}"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
# Prompts and outputs of console blocks are not copied.
copybutton_prompt_text = r"^(\$ |> |>>> |\.\.\. )"
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
