"""Hosts by name: the ``HOST`` of the files of this package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import shadowprice.hosts
from shadowprice.errors import HostError, InputError
from shadowprice.hosts.protocol import Host, HostKind
from shadowprice.instances.offers import Offers


def host_kinds() -> Mapping[str, HostKind]:
    """All kinds of hosts by name; what one needs to run is imported when it is opened."""
    return Offers(shadowprice.hosts, "HOST")


def open_host(name: str, state: Path, run_id: str) -> Host:
    """A host by name, with its address after a colon: ``local:4``, ``ray:127.0.0.1:6379``.

    Parameters
    ----------
    state : Path
        State directory of the run; made if it does not exist.
    run_id : str
        The run's own name; claims on devices bear it.

    Raises
    ------
    InputError
        If there is no host of that name, or it does not understand the address.
    HostError
        If it cannot be reached, or needs what is not installed; the message says what.
    """
    base, _, address = name.partition(":")
    kinds = host_kinds()
    if base not in kinds:
        raise InputError(f"hosts {base!r}: expected one of {', '.join(sorted(kinds))}")
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"state directory {state}: {error.strerror}") from None
    return kinds[base].open_host(address, state, run_id)
