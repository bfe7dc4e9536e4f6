"""Downloading a data set: checked, from mirrors where the first address fails, and resumed where it stopped.

What has come so far is kept beside the target, and the next attempt asks for the rest (HTTP ``Range``). A file
is put in place only after its checksum was found right, so that what is there is whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from shadowprice.errors import InputError
from shadowprice.studies.data_sets.catalogue import DATA_SETS, DataSet

if TYPE_CHECKING:
    from requests import Response

FOLDER = "SHADOWPRICE_DATA"
"""Environment variable: the folder of data sets, in place of the user's cache."""

Progress = Callable[[str], None]
"""Told what is being done, a line at a time."""

_ATTEMPTS = 3
_CHUNK = 2**13
"""Bytes at a time; those of one that breaks off are asked for again."""
_TIMEOUT_S = 30.0


class _DownloadError(Exception):
    """A download that stopped; what came is kept."""


def data_set(name: str) -> DataSet:
    """A data set by name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in DATA_SETS:
        raise InputError(f"data set {name!r}: expected one of {', '.join(sorted(DATA_SETS))}")
    return DATA_SETS[name]


def place_of(name: str) -> Path:
    """Path at which a data set is kept, whether it is there or not."""
    found = data_set(name)
    chosen = os.environ.get(FOLDER)
    return (Path(chosen) if chosen else _user_cache()) / found.folder / found.file


def _user_cache() -> Path:
    """The package's folder in the user's cache, where the system has it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "shadowprice"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shadowprice"


def path_of(name: str) -> Path:
    """Path of a data set that is there, downloaded or put there by hand; no network is used.

    Raises
    ------
    InputError
        If it is not there, or is not what was published.
    """
    place, found = place_of(name), data_set(name)
    if not place.is_file():
        raise InputError(
            f"data set {name!r}: is not at {place}; fetch it (`shadowprice data {name}`), or put the file of "
            f"{found.urls[0]} there"
        )
    _check(name, place, found.checksum, f"remove it and fetch {name} again")
    return place


def fetch(name: str, *, file: Path | None = None, progress: Progress | None = None) -> Path:
    """Path of a data set, downloaded if it is not there.

    Parameters
    ----------
    file : Path, optional
        The file, fetched by hand: it is checked and copied, and no network is used.

    Raises
    ------
    InputError
        If the name is unknown, no address can be reached, the bytes are not those that were published, or
        there is another file in its place.
    """
    place, found = place_of(name), data_set(name)
    if file is not None:
        _check(name, file, found.checksum, "expected the file as published")
        _make(place.parent)
        shutil.copyfile(file, place)
    if place.exists():
        return path_of(name)
    _expect_requests(name)
    _make(place.parent)
    partial = place.with_name(place.name + ".partial")
    reasons = []
    for url in found.urls:
        try:
            _from(url, partial, found.checksum, progress or (lambda line: None))
        except _DownloadError as error:
            reasons.append(f"{url}: {error}")
            continue
        partial.replace(place)
        return place
    kept = (
        f"; {partial.stat().st_size} bytes are kept, the same command goes on"
        if partial.exists()
        else ""
    )
    raise InputError(
        f"data set {name!r}: {'; '.join(reasons)}{kept}; or fetch it by hand: `shadowprice data {name} --from FILE`"
    )


def _expect_requests(name: str) -> None:
    """Refuse to download without the package that does."""
    try:
        import requests  # noqa: F401
    except ImportError:
        raise InputError(
            f"data set {name!r}: the package requests, which downloads, is not installed; "
            f"pip install 'shadowprice[data]', or fetch it by hand: `data {name} --from FILE`"
        ) from None


def checksum_of(path: Path, algorithm: str) -> str:
    """Hexadecimal digits of a file's checksum, ``sha256`` or ``git-blob``; O(bytes)."""
    if algorithm == "sha256":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    named = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            named.update(chunk)
    return named.hexdigest()


def _check(name: str, path: Path, checksum: str, advice: str) -> None:
    algorithm, _, expected = checksum.partition(":")
    try:
        digits = checksum_of(path, algorithm)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    if digits != expected:
        raise InputError(
            f"data set {name!r}: {path} has {algorithm} {digits}, expected {expected}; {advice}"
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from error


def _from(url: str, partial: Path, checksum: str, progress: Progress) -> None:
    """Download to the partial file until it is whole; a wrong whole that was resumed is begun again once."""
    algorithm, _, expected = checksum.partition(":")
    for begun_again in (False, True):
        resumed = partial.exists() and partial.stat().st_size > 0
        _until_whole(url, partial, progress)
        digits = checksum_of(partial, algorithm)
        if digits == expected:
            return
        partial.unlink()
        if begun_again or not resumed:
            raise _DownloadError(f"its {algorithm} is {digits}, expected {expected}")
        progress(f"{url}: what was kept does not fit, from the beginning")


def _until_whole(url: str, partial: Path, progress: Progress) -> None:
    """Ask for the rest until all has come, or three attempts in a row bring nothing more."""
    import requests

    left = _ATTEMPTS
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        try:
            return _ask(url, partial, before, progress)
        except requests.HTTPError as error:
            raise _DownloadError(_reason(error)) from error
        except (requests.RequestException, OSError) as error:
            now = partial.stat().st_size if partial.exists() else 0
            left = _ATTEMPTS if now > before else left - 1
            if not left:
                raise _DownloadError(f"stopped after {now} bytes: {_reason(error)}") from error
            progress(f"{url}: stopped after {now} bytes, going on")


def _ask(url: str, partial: Path, have: int, progress: Progress) -> None:
    import requests

    # The bytes themselves: those of a compressed transfer could not be counted on.
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.requested_range_not_satisfiable and have:
            # All of it is here, or more: the checksum says.
            return
        answer.raise_for_status()
        goes_on = have > 0 and _begins_at(answer) == have
        progress(f"{url}: {'from byte ' + str(have) if goes_on else 'from the beginning'}")
        with partial.open("ab" if goes_on else "wb") as file:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
        length = answer.headers.get("Content-Length", "")
        whole = (have if goes_on else 0) + int(length) if length.isdecimal() else None
    if whole is not None and partial.stat().st_size < whole:
        raise requests.ConnectionError(f"{whole} bytes were announced")


def _begins_at(answer: Response) -> int | None:
    """First byte of a partial answer; None of a whole one."""
    if answer.status_code != 206:
        return None
    first = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdecimal() else None


def _reason(error: Exception) -> str:
    """An error on one line, not long; of a connection that failed again and again why it did."""
    cause = getattr(error.args[0] if error.args else None, "reason", None)
    return " ".join(str(cause or error).split())[:200]
