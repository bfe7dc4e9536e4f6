"""Run the notebooks that changed since, or whose package did: ``python docs/sphinx_extensions/run_notebooks.py``.

What they gave is kept below ``docs/generated/``, where a build of the site takes it from.
"""

from __future__ import annotations

import sys

import notebook_pages
from notebook_run import NotebookError
from page_files import write_pages


def main() -> int:
    """Run what has to be run; 1 if a notebook fails."""
    try:
        pages = notebook_pages.pages()
    except NotebookError as error:
        print(*(f"error: {line}" for line in str(error).splitlines()), sep="\n", file=sys.stderr)
        return 1
    write_pages(notebook_pages.MADE.parent, pages)
    print(f"{sum(name.endswith('.digest') for name in pages)} notebooks run")
    return 0


if __name__ == "__main__":
    sys.exit(main())
