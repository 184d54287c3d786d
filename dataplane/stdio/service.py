"""Streamable HTTP for servers that speak lines: what a worker asks of the Unix socket, said to the process of its
session.

`POST /DIGEST` begins a session with `initialize`, or is a message within one; `GET` is what the server says beside
answers; `DELETE` ends session and process. Statuses are those that a server on the network would give: 404 for a
session that is over, so that its opening is repeated.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

import msgspec

from dataplane.http.sse import Event, write
from dataplane.mcp import messages
from dataplane.mcp.dialogue import Busy
from dataplane.mcp.messages import Malformed, Message
from dataplane.stdio.answers import Connection, Request
from dataplane.stdio.process import Unread
from dataplane.stdio.sessions import Session, Sessions, Unavailable

SESSION: Final = b"mcp-session-id"
JSON: Final = b"application/json"
MAX_BEHIND: Final = 64
"""Messages that a worker has not taken yet, and for which their server waits."""
MAX_BEHIND_BYTES: Final = 1024 * 1024
"""Bytes of them."""


class _Hearing:
    """`dialogue.Listener`: what is said, until the worker takes it."""

    def __init__(self) -> None:
        self._said: deque[tuple[bytes, bool]] = deque()
        self._bytes = 0
        self._is_over = False
        self._heard = asyncio.Event()

    def hear(self, text: bytes, last: bool) -> None:
        text = text.rstrip(b"\r\n")
        self._said.append((text, last))
        self._bytes += len(text)
        self._heard.set()

    def leave(self) -> None:
        self._is_over = True
        self._heard.set()

    @property
    def is_behind(self) -> bool:
        return len(self._said) >= MAX_BEHIND or self._bytes >= MAX_BEHIND_BYTES

    async def next(self) -> tuple[bytes, bool] | None:
        """None: nothing more will come."""
        while not self._said:
            if self._is_over:
                return None
            self._heard.clear()
            await self._heard.wait()
        text, last = self._said.popleft()
        self._bytes -= len(text)
        return text, last


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
            session = await self._sessions.begin(self._sessions.commands[digest])
        except Unavailable as error:
            out.whole(503, str(error).encode())
            return
        is_open = False
        try:
            lines = b"mcp-session-id: %b\r\n" % session.id.encode()
            is_open = await self._asked(session, message, request.body, out, lines)
        finally:
            if is_open:
                self._sessions.settle(session)
            else:
                self._sessions.end(session)

    async def _post(self, session: Session, body: bytes, out: Connection) -> None:
        try:
            message = messages.read(body)
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
        hearing = _Hearing()
        session.dialogue.ask(message, hearing)
        try:
            session.process.send(_line(body))
            session.room.set()
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
            session.room.set()

    async def _relay(
        self, session: Session, hearing: _Hearing, said: tuple[bytes, bool] | None, out: Connection
    ) -> bytes | None:
        """Until the answer, which is returned; None: there is none."""
        while said is not None:
            text, last = said
            await out.give(write(Event(text, b"message")))
            if last:
                return text
            session.room.set()
            said = await hearing.next()
        return None

    async def _get(self, session: Session, out: Connection) -> None:
        hearing = _Hearing()
        out.begin()
        session.dialogue.open(hearing)
        session.room.set()
        try:
            await self._relay(session, hearing, await hearing.next(), out)
            out.end()
        finally:
            session.dialogue.forget(hearing)
            session.room.set()


def _line(body: bytes) -> bytes:
    """A message without line feeds: in JSON they stand between its parts alone."""
    return msgspec.json.format(body, indent=-1) if b"\n" in body or b"\r" in body else body


def _is_result(text: bytes) -> bool:
    return messages.read(text).result is not msgspec.UNSET
