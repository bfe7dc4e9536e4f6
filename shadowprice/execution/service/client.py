"""Client of a service: HTTP on its Unix socket, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shadowprice.errors import HostError, InputError
from shadowprice.instances.documents.plain_yaml import parse, read_small

SOCKET = "service.sock"
"""Name of the socket in the state directory of a service."""
TIMEOUT_S = 60.0


class _UnixConnection(http.client.HTTPConnection):
    """HTTP to a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        """Connect."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(str(self._path))


class ServiceClient:
    """A user's end of a service.

    Parameters
    ----------
    path : Path
        The service's socket, or the state directory that has it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path / SOCKET if path.is_dir() else path

    def submit(self, jobs: Path, request: str | None = None) -> list[str]:
        """Queue all jobs of a job file, or none; returns their names.

        Parameters
        ----------
        request : str, optional
            The same again, after an answer that was lost, queues nothing a second time; a new one if
            not given.

        Raises
        ------
        InputError
            If the file cannot be read, or the service refuses it.
        HostError
            If the service does not answer.
        """
        document = parse(read_small(jobs), str(jobs))
        asked = {
            "document": document,
            "folder": os.path.abspath(jobs.parent),
            "request": request or uuid.uuid4().hex,
        }
        return list(self._ask("POST", "/v1/jobs", asked)["jobs"])

    def state(self) -> dict[str, Any]:
        """Jobs, nodes, prices and last events."""
        return self._ask("GET", "/v1/state")

    def job(self, name: str) -> dict[str, Any]:
        """One of the user's jobs, and why it waits."""
        return self._ask("GET", f"/v1/jobs/{quote(name, safe='')}")

    def output(self, name: str) -> str:
        """Last lines that a job of the user wrote."""
        return self._read("GET", f"/v1/jobs/{quote(name, safe='')}/output").decode()

    def cancel(self, names: list[str]) -> None:
        """Cancel jobs of the user: all of them, or none."""
        self._ask("POST", "/v1/cancel", {"jobs": names})

    def make_token(self) -> dict[str, Any]:
        """A new token of the user, until when it is valid, and the address of the page with it."""
        return self._ask("POST", "/v1/tokens", {})

    def drop_tokens(self) -> None:
        """Let no token of the user mean anything."""
        self._ask("DELETE", "/v1/tokens")

    def _ask(self, method: str, where: str, body: object = None) -> dict[str, Any]:
        found = json.loads(self._read(method, where, body))
        assert isinstance(found, dict)
        return found

    def _read(self, method: str, where: str, body: object = None) -> bytes:
        connection = _UnixConnection(self.path)
        try:
            sent = None if body is None else json.dumps(body, allow_nan=False)
            connection.request(method, where, sent, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
        except ValueError as error:  # a date of YAML, say, that is no JSON
            raise InputError(f"the job file cannot be sent: {error}") from error
        except PermissionError as error:
            raise HostError(
                f"{self.path}: the service lets only its owner in; it is started with --user and a --socket "
                "that others may reach"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise HostError(
                f"{self.path}: no service answers ({error}); `shadowprice serve` starts one"
            ) from error
        finally:
            connection.close()
        if answer.status < 400:
            return data
        raise _refusal(answer.status, data)


def _refusal(status: int, data: bytes) -> InputError | HostError:
    """A refusal of the service as the error that it is."""
    try:
        said = str(json.loads(data)["error"])
    except (ValueError, LookupError, TypeError):
        said = f"the service answers {status}"
    return HostError(said) if status >= 500 else InputError(said)
