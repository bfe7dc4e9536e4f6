"""HTTP of a service: on a Unix socket for the users of this machine, on loopback for who has a token.

The kernel says who opened a Unix socket (``SO_PEERCRED``); on loopback a token says it. aiohttp is used
since it gives the socket of a request away, bounds what it reads, and outlives bad clients.

All of the ledger is read and written in one thread of its own, so that requests neither wait for each
other's sockets nor for the driver.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import socket
import stat
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from shadowprice.analysis.service.prometheus import CONTENT_TYPE, exposition
from shadowprice.analysis.service.snapshot import ServiceReader, for_user, why
from shadowprice.errors import HostError, InputError, ShadowpriceError
from shadowprice.execution.hosts.lease_files import read_text_tail
from shadowprice.execution.service.queue import JobQueue
from shadowprice.execution.service.users import Access, NotAllowedError, User

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
TOKEN_DAYS = 30
MOST_BYTES = 16 << 20
"""Of a request: a job file of ten thousand jobs has some 5 MB."""
SNAPSHOT_S = 0.5
"""For so long a snapshot serves all who ask [s]."""
OUTPUT_CHARACTERS = 20_000

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_FILES = {"/": "index.html", "/page.js": "page.js", "/page.css": "page.css"}
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


class ServiceServer:
    """The HTTP server of a service; a context in which it answers.

    Parameters
    ----------
    state : Path
        State directory, whose ledger is there.
    access : Access
        Who may do what.
    path : Path
        Of the Unix socket; one that nobody answers at is replaced.
    port : int, optional
        On loopback; 0 for any that is free, none if not given.

    Attributes
    ----------
    port : int or None
        The port that it listens on.

    Raises
    ------
    InputError
        If the socket cannot be made there, or the port is taken.
    """

    def __init__(self, state: Path, access: Access, path: Path, port: int | None = None) -> None:
        self.state, self.access, self.path, self.port = state, access, path, port
        self._worker = ThreadPoolExecutor(1, "service-ledger")
        self._thread = threading.Thread(target=self._run, name="service-http", daemon=True)
        self._sockets: list[socket.socket] = []
        self._began = threading.Event()
        self._failure: BaseException | None = None
        self._snapshot: dict[str, Any] | None = None
        self._snapshot_until_s = 0.0

    def __enter__(self) -> ServiceServer:
        """Listen; the sockets are made here, where who calls sees what goes wrong."""
        try:
            self._sockets.append(_unix_socket(self.path, shared=self.access.shared))
            if self.port is not None:
                loopback = socket.create_server((LOOPBACK, self.port))
                self._sockets.append(loopback)
                self.port = loopback.getsockname()[1]
            self.queue: JobQueue = self._worker.submit(JobQueue, self.state, self.access).result()
            self.reader: ServiceReader = self._worker.submit(ServiceReader, self.state).result()
        except (OSError, InputError) as error:
            self._close_sockets()
            self._worker.shutdown()
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"service: cannot listen at {self.path} or port {self.port}: {error.strerror or error}"
            ) from error
        self._loop = asyncio.new_event_loop()
        self._thread.start()
        self._began.wait()
        if self._failure is not None:
            self.__exit__()
            raise HostError(f"service: the server does not start: {self._failure}")
        return self

    def __exit__(self, *_: object) -> None:
        """Answer nobody any more."""
        if self._failure is None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._worker.submit(self.queue.close)
        self._worker.submit(self.reader.close)
        self._worker.shutdown()
        self._close_sockets()
        self.path.unlink(missing_ok=True)

    def _close_sockets(self) -> None:
        for each in self._sockets:
            each.close()

    def _run(self) -> None:
        """Thread of the server."""
        try:
            self._serve()
        except Exception as error:
            self._failure = error
        finally:
            self._began.set()

    def _serve(self) -> None:
        """Answer until the loop is stopped."""
        loop = self._loop
        asyncio.set_event_loop(loop)
        application = web.Application(middlewares=[self._answered], client_max_size=MOST_BYTES)
        application.add_routes(self._routes())
        runner = web.AppRunner(application, handle_signals=False, access_log=None)
        loop.run_until_complete(runner.setup())
        for each in self._sockets:
            loop.run_until_complete(web.SockSite(runner, each).start())
        tidy = loop.create_task(self._tidy())
        loop.call_soon(self._began.set)
        try:
            loop.run_forever()
        finally:
            tidy.cancel()
            loop.run_until_complete(asyncio.wait_for(runner.cleanup(), 5.0))
            loop.close()

    async def _tidy(self) -> None:
        """Overwrite what jobs that are over need no more."""
        while True:
            await asyncio.sleep(10.0)
            try:
                await self._in_ledger(self.queue.forget_secrets)
            except ShadowpriceError:
                continue  # the disk is full, say: the driver says so

    def _routes(self) -> list[web.RouteDef]:
        known = self._for_user
        return [
            *(web.get(path, self._file) for path in _FILES),
            web.get("/v1/state", known(self._state)),
            web.get("/v1/jobs/{name}", known(self._job)),
            web.get("/v1/jobs/{name}/output", known(self._output)),
            web.post("/v1/jobs", known(self._submit)),
            web.post("/v1/cancel", known(self._cancel)),
            web.post("/v1/tokens", known(self._make_token)),
            web.delete("/v1/tokens", known(self._drop_tokens)),
            web.get("/metrics", known(self._metrics)),
        ]

    def _for_user(
        self, handler: Callable[[web.Request, User], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """A handler that is called only for users who are let in."""

        async def handle(request: web.Request) -> web.Response:
            user = await self._who(request)
            self.access.weight(user)
            return await handler(request, user)

        return handle

    async def _in_ledger(self, ask: Callable[..., T], *arguments: object) -> T:
        return await self._loop.run_in_executor(self._worker, ask, *arguments)

    @web.middleware
    async def _answered(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Answer of a handler, or what is wrong, as JSON."""
        try:
            answer = await handler(request)
        except NotAllowedError as error:
            answer = _wrong(403, error)
        except InputError as error:
            answer = _wrong(400, error)
        except HostError as error:
            answer = _wrong(503, error)
        except web.HTTPException as error:
            answer = _wrong(error.status, error.reason)
        answer.headers.update(_HEADERS)
        return answer

    async def _who(self, request: web.Request) -> User:
        """The user who asks.

        Raises
        ------
        NotAllowedError
            If nobody knows, or a page of another origin asks through somebody's browser.
        """
        connection = (
            None if request.transport is None else request.transport.get_extra_info("socket")
        )
        if connection is None:
            raise NotAllowedError("the connection is closed")
        if connection.family == socket.AF_UNIX:
            return User.at(connection)
        if request.host not in (f"{LOOPBACK}:{self.port}", f"localhost:{self.port}"):
            raise NotAllowedError(f"host is {request.host!r}, expected {LOOPBACK}:{self.port}")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        known = None
        if scheme.lower() == "bearer" and token:
            known = await self._in_ledger(self.queue.ledger.token, _digest(token.strip()))
        if known is None or known["until_unix"] < time.time():
            raise web.HTTPUnauthorized(
                reason="expected a token that is valid: `shadowprice queue token` makes one"
            )
        return User(known["uid"], known["user"])

    async def _file(self, request: web.Request) -> web.Response:
        name = _FILES[request.path]
        text = (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")
        return web.Response(
            text=text, content_type=_TYPES[name.rpartition(".")[2]], charset="utf-8"
        )

    async def _state(self, request: web.Request, user: User) -> web.Response:
        now = await self._in_ledger(self._now)
        owner = self.access.owns(user)
        if not owner:
            now = for_user(now, user.name)
        return _json(now | {"you": {"user": user.name, "owner": owner}})

    def _now(self) -> dict[str, Any]:
        """Snapshot of now, or of a moment ago."""
        if self._snapshot is None or time.monotonic() >= self._snapshot_until_s:
            self._snapshot = self.reader.snapshot()
            for job in self._snapshot["jobs"]:
                job["because"] = why(job)
            self._snapshot_until_s = time.monotonic() + SNAPSHOT_S
        return self._snapshot

    async def _job(self, request: web.Request, user: User) -> web.Response:
        return _json(await self._in_ledger(self._own_job, user, request.match_info["name"]))

    def _own_job(self, user: User, name: str) -> dict[str, Any]:
        row = self.queue.own(user, name)
        about = next((job for job in self._now()["jobs"] if job["name"] == name), None)
        told = {
            key: row[key] for key in ("name", "state", "step", "iterations", "gpus", "user", "why")
        }
        told |= about or {"devices": []}
        return told | {"because": why(told), "submitted": self.queue.document(name)}

    async def _output(self, request: web.Request, user: User) -> web.Response:
        text = await self._in_ledger(self._tail, user, request.match_info["name"])
        return web.Response(text=text, content_type="text/plain", charset="utf-8")

    def _tail(self, user: User, name: str) -> str:
        """Last lines that a job of the user wrote, of its last lease."""
        row = self.queue.own(user, name)
        lease = self.state / "jobs" / str(row["name"]) / "leases" / f"e{row['epoch']}-r0"
        return read_text_tail(lease / "output.log", OUTPUT_CHARACTERS)

    async def _submit(self, request: web.Request, user: User) -> web.Response:
        given = await _body(request, "document", "folder", "request")
        document, folder, asked = given["document"], given["folder"], given["request"]
        if not isinstance(folder, str) or not folder.startswith("/") or "\0" in folder:
            raise InputError(f"folder is {folder!r}, expected an absolute path")
        if not isinstance(asked, str) or not 0 < len(asked) <= 64:
            raise InputError("request is none, expected a text of 1 to 64 letters")
        names = await self._in_ledger(self.queue.submit, user, document, Path(folder), asked)
        self._snapshot = None
        return _json({"jobs": names}, 201)

    async def _cancel(self, request: web.Request, user: User) -> web.Response:
        names = (await _body(request, "jobs"))["jobs"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise InputError("jobs is no list of names, expected one")
        await self._in_ledger(self.queue.cancel, user, names)
        return _json({"cancelled": names})

    async def _make_token(self, request: web.Request, user: User) -> web.Response:
        if self.port is None:
            raise InputError("this service has no port; its owner starts it with --http PORT")
        token = secrets.token_urlsafe(32)
        until = time.time() + TOKEN_DAYS * 86400.0
        await self._in_ledger(
            self.queue.ledger.add_token, _digest(token), user.uid, user.name, until
        )
        page = f"http://{LOOPBACK}:{self.port}/#{token}"
        return _json({"token": token, "until_unix": until, "page": page}, 201)

    async def _drop_tokens(self, request: web.Request, user: User) -> web.Response:
        await self._in_ledger(self.queue.ledger.drop_tokens, user.uid)
        return _json({})

    async def _metrics(self, request: web.Request, user: User) -> web.Response:
        body = await self._in_ledger(exposition, self.reader)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


async def _body(request: web.Request, *keys: str) -> dict[str, Any]:
    """The JSON object of a request, with these keys."""
    try:
        given = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is no JSON: {error}") from error
    if not isinstance(given, dict) or given.keys() != set(keys):
        raise InputError(f"the request is no JSON object, expected one with {', '.join(keys)}")
    return given


def _json(record: object, status: int = 200) -> web.Response:
    return web.json_response(record, status=status)


def _wrong(status: int, error: object) -> web.Response:
    return web.json_response({"error": str(error)}, status=status)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _unix_socket(path: Path, *, shared: bool) -> socket.socket:
    """A socket that listens at a path: for its owner alone, or for all, who are told apart later.

    Raises
    ------
    InputError
        If another service listens there, or there is something else.
    OSError
        If it cannot be made.
    """
    if len(os.fsencode(path)) > 100:
        raise InputError(f"--socket {path}: expected a path of at most 100 bytes")
    if os.path.lexists(path):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise InputError(f"--socket {path}: there is something else, expected nothing")
        with socket.socket(socket.AF_UNIX) as other:
            try:
                other.connect(str(path))
            except OSError:
                path.unlink()  # nobody answers: of a service that was killed
            else:
                raise InputError(f"--socket {path}: another service listens there")
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(before)
    if shared:
        path.chmod(0o666)
    listening.listen(128)
    return listening
