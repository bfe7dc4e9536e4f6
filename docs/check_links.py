"""Links within a built site: ``python docs/check_links.py build/docs``.

Every ``href`` and ``src`` that names no other site has to lead to a file of the site, and its part after ``#`` to an
element of that page. Nothing may be loaded from elsewhere: no script, style, font or picture.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""Elements whose addresses a browser loads by itself."""
POINTERS = {"canonical", "next", "prev", "search", "index", "genindex", "author"}
"""Relations of ``link`` elements that load nothing."""


@dataclass
class PageLinks(HTMLParser):
    """Anchors of a page, and where its links lead.

    Parameters
    ----------
    anchors : set of str
        Values of ``id`` and ``name``.
    links : list of (str, bool)
        Address, and whether a browser loads it by itself.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[tuple[str, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Prepare the parser."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take anchors and links of an element."""
        values = dict(attrs)
        self.anchors |= {str(values[key]) for key in ("id", "name") if values.get(key)}
        relations = set(str(values.get("rel", "")).split())
        for key in ("href", "src"):
            if values.get(key) is not None:
                loaded = (tag, key) in LOADED and not relations & POINTERS
                self.links.append((str(values[key]), loaded))


def broken(site: Path) -> Iterator[str]:
    """Sentences on links that lead nowhere, by page."""
    pages: dict[Path, PageLinks] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = PageLinks()
        pages[path].feed(path.read_text(encoding="utf-8"))
    for path, page in pages.items():
        where = path.relative_to(site)
        for address, loaded in page.links:
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if loaded:
                    yield f"{where}: loads {address} from elsewhere"
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not target.is_file():
                yield f"{where}: {address} leads to no file"
                continue
            known = pages[target].anchors if target in pages else None
            if parts.fragment and known is not None and unquote(parts.fragment) not in known:
                yield f"{where}: {address} leads to no element of {target.relative_to(site)}"


def main() -> int:
    """Print what is broken; 1 if something is."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs").resolve()
    if not (site / "index.html").is_file():
        print(f"error: {site}: no index.html; `make docs` builds the site", file=sys.stderr)
        return 2
    found = list(dict.fromkeys(broken(site)))
    print(*found, sep="\n", file=sys.stderr)
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages, {len(found)} broken links")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
