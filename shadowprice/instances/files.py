"""Opening input files: plain, gzip or xz by their first bytes, with errors a user understands."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import lzma
import math
import tarfile
import tomllib
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from shadowprice.errors import InputError
from shadowprice.instances.entries import shown

MAX_BYTES = 4 * 2**30
"""Largest file read, after decompression."""


def expect_file(path: str | Path) -> None:
    """Refuse a path at which there is no file.

    Raises
    ------
    InputError
        If it is missing, or a directory.
    """
    if Path(path).is_dir():
        raise InputError(f"{path}: is a directory, expected a file")
    if not Path(path).exists():
        raise InputError(f"{path}: no such file")


def read_bytes(path: str | Path, *, limit_bytes: int = MAX_BYTES) -> bytes:
    """Contents of a file, decompressed; of a tar archive those of the one file in it.

    Parameters
    ----------
    limit_bytes : int
        Largest size after decompression.

    Raises
    ------
    InputError
        If the file is missing, a directory, unreadable, corrupt, or expands beyond the limit.
    """
    path = Path(path)
    expect_file(path)
    try:
        with path.open("rb") as raw:
            magic = raw.read(6)
            raw.seek(0)
            if magic[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as packed:
                    data = packed.read(limit_bytes + 1)
            elif magic == b"\xfd7zXZ\x00":
                with lzma.LZMAFile(raw) as packed:
                    data = packed.read(limit_bytes + 1)
            else:
                data = raw.read(limit_bytes + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    if len(data) > limit_bytes:
        raise InputError(f"{path}: larger than {limit_bytes // 2**20:,} MiB")
    if data[257:262] == b"ustar":
        return _only_member(data, path)
    if data[:4] == b"PK\x03\x04":
        raise InputError(f"{path}: is an archive; unpack it and name one of its files")
    return data


def _only_member(data: bytes, path: Path) -> bytes:
    """Contents of the one file in a tar archive."""
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [member for member in archive if member.isfile()]
            names = ", ".join(member.name for member in members[:5]) + ", ..." * (len(members) > 5)
            found = archive.extractfile(members[0]) if len(members) == 1 else None
            if found is not None:
                return found.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    raise InputError(
        f"{path}: is an archive of {names or 'nothing'}; unpack it and name one of its files"
    )


def read_text(
    path: str | Path, *, keep_line_ends: bool = False, limit_bytes: int = MAX_BYTES
) -> str:
    r"""Text of a file in UTF-8, without a byte order mark and with line ends as ``\n``.

    Parameters
    ----------
    keep_line_ends : bool
        Leave ``\r\n`` and ``\r`` as they are, for readers that allow them inside quotes.
    limit_bytes : int
        Largest size after decompression.

    Raises
    ------
    InputError
        Also if the file is empty or not text.
    """
    data = read_bytes(path, limit_bytes=limit_bytes)
    expect_no_utf16(data, path)
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


def expect_no_utf16(data: bytes, path: str | Path) -> None:
    """Refuse text in UTF-16, as spreadsheets save "Unicode text".

    Raises
    ------
    InputError
        Naming the encoding.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: is UTF-16 text, expected UTF-8: save it as UTF-8")


def read_json(path: str | Path) -> Any:
    """Contents of a JSON file; see :func:`parse_json` and :func:`read_bytes`.

    Raises
    ------
    InputError
        Naming the file and what is wrong with it.
    """
    return parse_json(read_text(path), str(path))


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Contents of a TOML text.

    Raises
    ------
    InputError
        Naming the source and what is wrong with the text.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{source}: is not TOML: {error}") from error


def parse_json(text: str, source: str) -> Any:
    """Contents of a JSON text, by the standard: NaN, infinities and repeated keys are refused.

    Raises
    ------
    InputError
        Naming the source and what is wrong with the text.
    """

    def refuse(constant: str) -> NoReturn:
        raise InputError(f"{source}: is not JSON: {constant} is no number of it")

    def real(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise InputError(f"{source}: {shown(digits)}, expected a number below 1.8e308")
        return value

    def entries(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            raise InputError(f"{source}: entry {shown(twice)} is there twice, expected it once")
        return found

    try:
        return json.loads(text, parse_constant=refuse, parse_float=real, object_pairs_hook=entries)
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        # ValueError: also whole numbers of thousands of digits.
        raise InputError(f"{source}: is not JSON: {error}") from error


def absolute(path: str, folder: Path) -> str:
    """A path that is relative to a folder, as an absolute one; ``~`` is the user's own folder."""
    return str((folder / Path(path).expanduser()).absolute())
