"""Opening input files: plain, gzip or xz by their first bytes, with errors a user understands."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

from shadowprice.errors import InputError

MAX_BYTES = 4 * 2**30
"""Largest file read, after decompression."""


def read_bytes(path: str | Path) -> bytes:
    """Contents of a file, decompressed.

    Raises
    ------
    InputError
        If the file is missing, a directory, unreadable, corrupt, or expands beyond 4 GiB.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a directory, expected a file")
    try:
        with path.open("rb") as raw:
            magic = raw.read(6)
            raw.seek(0)
            if magic[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as packed:
                    data = packed.read(MAX_BYTES + 1)
            elif magic == b"\xfd7zXZ\x00":
                with lzma.LZMAFile(raw) as packed:
                    data = packed.read(MAX_BYTES + 1)
            else:
                data = raw.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if len(data) > MAX_BYTES:
        raise InputError(f"{path}: larger than {MAX_BYTES // 2**30} GiB")
    return data


def read_text(path: str | Path, *, keep_line_ends: bool = False) -> str:
    r"""Text of a file in UTF-8, without a byte order mark and with line ends as ``\n``.

    Parameters
    ----------
    keep_line_ends : bool
        Leave ``\r\n`` and ``\r`` as they are, for readers that allow them inside quotes.

    Raises
    ------
    InputError
        Also if the file is empty or not text.
    """
    data = read_bytes(path)
    if b"\x00" in data:
        raise InputError(f"{path}: is not text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: is not UTF-8 text: {error.reason} at byte {error.start}"
        ) from error
    if not text.strip():
        raise InputError(f"{path}: is empty")
    return text if keep_line_ends else text.replace("\r\n", "\n").replace("\r", "\n")
