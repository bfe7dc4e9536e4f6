"""Hosts by name: every package here whose module ``host`` has ``NAME`` and ``open_host`` is one."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Protocol, cast

import shadowprice.execution.hosts
from shadowprice.errors import HostError, InputError
from shadowprice.execution.hosts.protocol import Host


class HostModule(Protocol):
    """Interface of a module that offers a host to be found.

    Attributes
    ----------
    NAME : str
        Name on the command line, the name of its package too.
    """

    NAME: str

    def open_host(self, address: str, state: Path, run_id: str) -> Host:
        """Reach a host; ``address`` is what follows the colon on the command line."""


def host_names() -> tuple[str, ...]:
    """Names of all hosts, in alphabetic order."""
    return tuple(sorted(_modules()))


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
    module = _module(base)
    if module is None:
        raise InputError(f"hosts {base!r}: expected one of {', '.join(host_names())}")
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"state directory {state}: {error.strerror}") from None
    return module.open_host(address, state, run_id)


def _modules() -> dict[str, HostModule]:
    """Modules that are hosts, by name; what a host needs to run is imported when it is opened."""
    found = {name: _module(name) for name in _names()}
    return {name: module for name, module in found.items() if module is not None}


def _module(name: str) -> HostModule | None:
    """The host of this name; no other is imported for it."""
    if name not in _names():
        return None
    module = importlib.import_module(f"{shadowprice.execution.hosts.__name__}.{name}.host")
    return cast(HostModule, module) if getattr(module, "NAME", None) == name else None


def _names() -> list[str]:
    path = shadowprice.execution.hosts.__path__
    return [module.name for module in pkgutil.iter_modules(path) if module.ispkg]
