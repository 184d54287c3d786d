"""Streamable HTTP for servers that speak lines: what a worker asks of the Unix socket, said to the process of its
session.

`POST /DIGEST` begins a session with `initialize`, or is a message within one; `GET` is what the server says beside
answers; `DELETE` ends session and process. Statuses are those that a server on the network would give: 404 for a
session that is over, so that its opening is repeated.
"""

from __future__ import annotations

import asyncio
import re
from hashlib import blake2b
from typing import Final

import msgspec

from dataplane.http.sse import Event, write
from dataplane.local_http import Connection, Request
from dataplane.mcp import messages
from dataplane.mcp.dialogue import Busy
from dataplane.mcp.hearing import Hearing
from dataplane.mcp.messages import Malformed, Message
from dataplane.stdio.process import Unread
from dataplane.stdio.sessions import Session, Sessions, Unavailable

SESSION: Final = b"mcp-session-id"
CLIENT: Final = b"gatewright-client"
"""Whose session it is, of the worker (`link/sources`): those of a client that has most of them go first."""
JSON: Final = b"application/json"
READY: Final = "notifications/initialized"
"""Ends the beginning of a session (MCP 2025-11-25, "Lifecycle")."""


class Service:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def serve(self, request: Request, out: Connection) -> None:
        digest = request.path.removeprefix(b"/").decode("latin-1")
        command = self._sessions.commands.get(digest)
        if command is None:
            out.whole(404, b"no such server")
            return
        given = request.headers.get(SESSION, b"").decode("latin-1")
        if request.method == b"POST" and not given:
            await self._begin(digest, request, out)
            return
        session = self._sessions.of(digest, given)
        if session is None:
            out.whole(404, b"session not found")
        elif request.method == b"POST":
            await self._post(session, request.body, out)
        elif request.method == b"GET":
            await self._get(session, out)
        elif request.method == b"DELETE":
            self._sessions.end(session)
            out.whole(200)
        else:
            out.whole(405)

    async def _begin(self, digest: str, request: Request, out: Connection) -> None:
        try:
            message = messages.read(request.body)
        except Malformed as error:
            out.whole(400, str(error).encode())
            return
        if message.method != "initialize" or not message.is_request:
            out.whole(400, b"header Mcp-Session-Id is required")
            return
        try:
            session = await self._sessions.begin(
                self._sessions.commands[digest], _digest(message), request.headers.get(CLIENT, b"")
            )
        except Unavailable as error:
            out.whole(503, str(error).encode())
            return
        is_open = False
        try:
            lines = b"mcp-session-id: %b\r\n" % session.id.encode()
            is_open = await self._asked(session, message, request.body, out, lines)
        finally:
            if is_open:
                self._sessions.has_begun(session)
            else:
                self._sessions.end(session)

    async def _post(self, session: Session, body: bytes, out: Connection) -> None:
        try:
            message = messages.read(body)
            if message.method != READY:
                self._sessions.asked(session)
            if message.is_request:
                await self._asked(session, message, body, out)
                return
            session.process.send(_line(body))
            if message.method == "notifications/cancelled":
                session.dialogue.cancel(message)
            out.whole(202)
        except Malformed as error:
            out.whole(400, messages.error(error.request_id, error.code, str(error)), JSON)
        except (Unread, Busy):
            out.whole(503, b"the server does not keep up")

    async def _asked(
        self, session: Session, message: Message, body: bytes, out: Connection, lines: bytes = b""
    ) -> bool:
        """Whether it was answered with a result. Raises `Malformed`, `Busy`, `Unread`."""
        hearing = Hearing(asyncio.get_running_loop().create_future)
        session.dialogue.ask(message, hearing)
        try:
            session.process.send(_line(body))
            session.may_read.set()
            first = await hearing.next()
            if first is not None and first[1]:
                out.whole(200, first[0], JSON, lines)
                return _is_result(first[0])
            if first is None and session.is_over:
                out.whole(502, b"the server ended before it answered")
                return False
            out.begin(lines)
            last = await self._relay(session, hearing, first, out)
            if last is None and session.is_over:
                out.abort()  # what was asked will not be answered
            else:
                out.end()  # answered, or withdrawn by the client
            return last is not None and _is_result(last)
        finally:
            session.dialogue.forget(hearing)
            session.may_read.set()

    async def _relay(
        self, session: Session, hearing: Hearing, said: tuple[bytes, bool] | None, out: Connection
    ) -> bytes | None:
        """Until the answer, which is returned; None: there is none."""
        while said is not None:
            text, last = said
            await out.give(write(Event(text, b"message")))
            if last:
                return text
            session.may_read.set()
            said = await hearing.next()
        return None

    async def _get(self, session: Session, out: Connection) -> None:
        hearing = Hearing(asyncio.get_running_loop().create_future)
        out.begin()
        session.dialogue.open(hearing)
        session.may_read.set()
        try:
            await self._relay(session, hearing, await hearing.next(), out)
            out.end()
        finally:
            session.dialogue.forget(hearing)
            session.may_read.set()


def _digest(message: Message) -> bytes:
    """Of what a client says of itself: those who say the same are one cause of a failure."""
    params = b"" if message.params is msgspec.UNSET else bytes(message.params)
    return blake2b(params, digest_size=16).digest()


def _line(body: bytes) -> bytes:
    """A message without line feeds: in JSON they stand between its parts alone."""
    return _BREAKS.sub(b" ", body)


_BREAKS: Final = re.compile(rb"[\r\n]")


def _is_result(text: bytes) -> bool:
    return messages.read(text).result is not msgspec.UNSET
