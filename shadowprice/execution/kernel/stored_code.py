"""Compiled code in a folder of the user, where it survives installations, checkouts and virtual environments.

numba writes what it compiled next to the source file, by the path of that file: each new environment would compile the
loop again, for ten seconds a rule. Here it is looked up by the contents of the files that it was made of.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile, _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target

from shadowprice.execution.kernel import arrays
from shadowprice.instances import grid
from shadowprice.solvers import index_policy

_UNREAD_S = 90 * 86_400.0
"""Time after which code that nobody read is removed [s]."""


def folder() -> Path:
    """The folder: of the variable NUMBA_CACHE_DIR, else of XDG_CACHE_HOME, else ``~/.cache``."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "shadowprice"
    general = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(general) / "shadowprice" / "compiled"


def sources() -> str:
    """Digest of the files that compiled code is made of, and of what compiles it for which processor."""
    here = Path(arrays.__file__).parent
    others = (Path(str(module.__file__)) for module in (grid, index_policy))
    digest = hashlib.sha256()
    for path in (*sorted(here.glob("*.py")), *others):
        digest.update(path.read_bytes())
    processor = cpu_target.target_context.codegen().magic_tuple()
    versions = (numba.__version__, version("llvmlite"), sys.version_info[:3], processor)
    digest.update(repr(versions).encode())
    return digest.hexdigest()


class StoredCode(_Cache):  # type: ignore[misc]
    """Code of one function in one file, and its index in another.

    Parameters
    ----------
    name : str
        Name of the function.
    digest : str
        What :func:`sources` says.

    Attributes
    ----------
    writable : bool
        Whether the folder can be written; if not, every process compiles.
    """

    def __init__(self, name: str, digest: str) -> None:
        self._base, self._digest, self._path = f"{name}-{digest[:16]}", digest, folder()
        self.writable = _can_be_written(self._path)
        self._file = IndexDataCacheFile(str(self._path), self._base, digest)

    @property
    def cache_path(self) -> str:
        """The folder, for numba."""
        return str(self._path)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code, None if there is none."""
        target_context.refresh()
        data = self._file.load(self._digest) if self.writable else None
        if data is None:
            return None
        os.utime(self._path / f"{self._base}.nbi")
        return CompileResult._rebuild(target_context, *data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write code, and remove what was not read for a long time: that of other versions."""
        if self.writable:
            self._file.save(self._digest, data._reduce())
            for index in self._path.glob("*.nbi"):
                if time.time() - index.stat().st_mtime > _UNREAD_S:
                    for path in self._path.glob(f"{index.stem}.*"):
                        path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Nothing; numba asks for it."""

    def disable(self) -> None:
        """Nothing; numba asks for it."""

    def flush(self) -> None:
        """Forget the code."""
        self._file.flush()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process compiles this function meanwhile: the second one reads what the first wrote."""
        if not self.writable:
            yield
            return
        with (self._path / f"{self._base}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _can_be_written(path: Path) -> bool:
    """True if a file can be made in a folder, which is made if it is not there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return False
    return True
