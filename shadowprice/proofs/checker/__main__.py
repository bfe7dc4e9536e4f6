"""``python FOLDER FILE [DIGEST]``, of this folder by itself, and ``python -m`` of it as a part of its package."""

import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

ALONE = "checker"
"""Name of the package that the folder is where it runs by itself."""


def load_alone() -> str:
    """Load this folder as a package; nothing else that lies in it or beside it can be imported."""
    folder = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != folder]
    first, where = folder / "__init__.py", [str(folder)]
    spec = spec_from_file_location(ALONE, first, submodule_search_locations=where)
    if spec is None or spec.loader is None:
        raise ImportError(f"{first}: cannot be loaded")
    sys.modules[ALONE] = package = module_from_spec(spec)
    spec.loader.exec_module(package)
    return ALONE


if __name__ == "__main__":
    sys.exit(import_module(f"{__package__ or load_alone()}.command").main())
