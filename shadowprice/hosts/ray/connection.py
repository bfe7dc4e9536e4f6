"""Calls into Ray that always return, and the connection to a cluster.

Ray gives most of its calls no time-out, and a cluster whose head hangs would hang them. Here every
call is made on one thread of its own; who waits for it waits for a bounded time. It is always the
same thread, since the processes of a cluster that Ray starts die with the *thread* that started
them.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, TypeVar

from shadowprice.errors import HostError, InputError

T = TypeVar("T")

CLIENT = "ray://"
"""Beginning of addresses of Ray's client."""

CONNECT_S = 60.0
REACH_S = 5.0
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # A driver that cannot reach the head for this long is ended by Ray, with all that it knows.
    # Ours says so instead, and goes on when the head is back.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "1000000",
    # Of a cluster of its own: Ray's workers, and jobs with them, would get what all others leave.
    "RAY_worker_niceness": "0",
}
"""Environment of the driver, unless the user says otherwise. Token authentication, on by default
from Ray 2.60 (``RAY_AUTH_MODE=token``), is left on: hosts of a cluster share the token's file."""


def import_ray() -> Any:
    """The library.

    Raises
    ------
    HostError
        If it is not installed.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise HostError(
            f"hosts ray: Ray cannot be imported ({error}); install it with pip install "
            "'shadowprice[ray]' or use --hosts local"
        ) from None
    return ray


class RayThread:
    """Makes calls, one after another, on one thread."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._stuck = ""
        threading.Thread(target=self._work, name="ray-calls", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._calls.get()()

    def call(self, what: str, action: Callable[[], T], timeout_s: float) -> T:
        """Run an action; return what it returns, or raise what it raises.

        Parameters
        ----------
        what : str
            What it does, for the message: "list its nodes".

        Raises
        ------
        HostError
            If it has not returned in time, if an earlier one still has not, or if Ray fails.
        """
        if self._stuck:
            raise HostError(f"hosts ray: the cluster hangs: it still does not {self._stuck}")
        answers: queue.SimpleQueue[tuple[T | None, Exception | None]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put((action(), None))
            except Exception as error:
                answers.put((None, error))
            self._stuck = ""

        self._stuck = what
        self._calls.put(work)
        try:
            value, error = answers.get(timeout=timeout_s)
        except queue.Empty:
            raise HostError(
                f"hosts ray: the cluster did not {what} within {timeout_s:g} s; see ray status"
            ) from None
        self._stuck = ""
        if error is not None:
            if isinstance(error, HostError):
                raise error
            from ray.exceptions import RayError

            # What Ray raises when a cluster does not do what it should.
            if not isinstance(error, RayError | OSError | RuntimeError | ValueError):
                raise error
            text = (str(error).strip() or repr(error)).splitlines()[0]
            raise HostError(f"hosts ray: the cluster did not {what}: {text}") from error
        return value  # type: ignore[return-value]


def connect(calls: RayThread, address: str, namespace: str) -> bool:
    """Attach to a cluster, or start one on this machine; whether that is ours to end.

    Parameters
    ----------
    address : str
        HOST:PORT of a cluster. Empty for the one that ``RAY_ADDRESS`` names or that runs on this
        machine; where there is none, one is started for as long as this process lives, which
        listens on the loopback interface only. ``ray://HOST:PORT`` is the port of Ray's client, for drivers
        on a machine that is no node of the cluster.

    Raises
    ------
    InputError
        If the address is no HOST:PORT.
    HostError
        If it cannot be reached, or Ray's client is not installed.
    """
    ray = import_ray()
    if address.startswith(CLIENT):
        _split(address)
        if find_spec("grpc") is None:
            raise HostError(
                f"hosts {address}: Ray's client is not installed; install it with pip install 'ray[client]', or run "
                "this on a node of the cluster with ray:HOST:PORT"
            )
    named = address or os.environ.get("RAY_ADDRESS", "")
    target = "" if named in ("auto", "local") else named
    if target:
        _reach(target)
    if ray.is_initialized():
        connected = str(ray.get_runtime_context().gcs_address)
        if address and address != connected:
            raise HostError(
                f"hosts ray:{address}: this process is connected to the cluster at {connected}"
            )
        return False
    if not target and named != "local":
        running = calls.call("look for itself", _running, REACH_S)
        if running:
            with suppress(HostError):  # it ran, and does not answer any more
                _reach(running)
                target = running
    if target:
        _attach(calls, ray, target, namespace)
    else:
        calls.call("start", lambda: _start(ray, namespace), CONNECT_S)
    return True


def _attach(calls: RayThread, ray: Any, address: str, namespace: str) -> None:
    def attach() -> None:
        # Of the client's, which says less than the error that follows.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Ray Client connection timed out")
            try:
                ray.init(
                    address=address, namespace=namespace, log_to_driver=False, logging_level="ERROR"
                )
            except ConnectionError as error:
                if not address.startswith(CLIENT):
                    raise
                raise HostError(
                    f"hosts {address}: no Ray client is served there ({error}); expected the port that ray start "
                    "--head --ray-client-server-port=PORT names, 10001 if it names none"
                ) from error

    calls.call(f"let this driver in at {address}", attach, CONNECT_S)


def _start(ray: Any, namespace: str) -> None:
    """A cluster of this machine, for this process, on loopback.

    Ray replaces a loopback address by one that others can reach, but on systems where it takes
    clusters of several machines for impossible; this one is to be such a system.
    """
    from ray._private import ray_constants

    ray_constants.ENABLE_RAY_CLUSTER = False
    os.environ[ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR] = "0"
    ray.init(
        address="local",
        namespace=namespace,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )


def _running() -> str:
    """Address of a cluster that runs on this machine, or ran; empty if there is none."""
    from ray._private import services

    try:
        return str(services.get_ray_address_from_environment("auto", None) or "")
    except ConnectionError:
        return ""


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 1 << 16:
        example = "ray://10.0.0.1:10001" if address.startswith(CLIENT) else "10.0.0.1:6379"
        raise InputError(f"hosts {_named(address)}: expected HOST:PORT of the head, {example}")
    return host.strip("[]"), int(port)


def _named(address: str) -> str:
    """An address as users give it."""
    return address if address.startswith(CLIENT) else f"ray:{address}"


def _reach(address: str) -> None:
    """Make sure that something answers: Ray would try again and again."""
    where = _split(address)
    try:
        socket.create_connection(where, timeout=REACH_S).close()
    except OSError as error:
        raise HostError(
            f"hosts {_named(address)}: nothing answers there ({error.strerror or error}); start the "
            "head with ray start --head, or give the address that it prints"
        ) from None
