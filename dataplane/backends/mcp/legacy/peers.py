"""What other workers of the proxy ask of the streams that this one holds.

`/servers/ID`: `POST` with the envelope of a message gives what is said to it, for a request as a stream of events whose
last has the type `last`; `GET` what is said beside answers; `DELETE` ends it. 404: there is no such stream.

`/sessions/NUMBER/TARGET`: `GET` gives the id of the stream that a session has here with a target, and the endpoint that
is pinned; `DELETE` of `/sessions/NUMBER` ends all of its streams.

`/clients/ID`: `GET` gives the session of a client's stream in a header, and lasts until the client leaves; `POST` a
message for the client; `PUT` of `/session` and `/ready` what becomes of the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp.legacy import mail as mails
from dataplane.backends.mcp.legacy.mail import NearMail
from dataplane.backends.mcp.legacy.reached import ENDPOINT, LAST
from dataplane.http.sse import Event, write
from dataplane.mcp import messages
from dataplane.mcp.dialogue import Busy
from dataplane.mcp.messages import Malformed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from dataplane.backends.mcp.legacy.client_streams import ClientStream
    from dataplane.backends.mcp.legacy.holder import Holder
    from dataplane.backends.mcp.legacy.server_streams import ServerStream
    from dataplane.local_http import Connection, Handler, Request
    from dataplane.mcp.hearing import Hearing


def serve(holder: Holder[ServerStream, ClientStream]) -> Handler:
    """What answers other workers of the streams that `holder` has."""
    return Peers(holder).serve


class Peers:
    def __init__(self, holder: Holder[ServerStream, ClientStream]) -> None:
        self._holder = holder

    async def serve(self, request: Request, out: Connection) -> None:
        kind, _, rest = request.path.removeprefix(b"/").decode("latin-1").partition("/")
        if kind == "servers":
            await self._server(request, out, rest)
        elif kind == "sessions":
            self._session(request, out, rest)
        elif kind == "clients":
            await self._client(request, out, rest)
        else:
            out.whole(404, b"not found")

    async def _server(self, request: Request, out: Connection, stream_id: str) -> None:
        stream = self._holder.of(stream_id)
        handler = _SERVERS.get(request.method)
        if stream is None or handler is None:
            out.whole(404, b"no such stream")
        else:
            await handler(stream, request, out)

    async def _client(self, request: Request, out: Connection, rest: str) -> None:
        stream_id, _, part = rest.partition("/")
        stream = self._holder.client(stream_id)
        handler = _CLIENTS.get((request.method, part))
        if stream is None or handler is None:
            out.whole(404, b"no such stream")
        else:
            await handler(stream, request, out)

    def _session(self, request: Request, out: Connection, rest: str) -> None:
        number, _, target = rest.partition("/")
        if request.method == b"DELETE":
            self._holder.end_session(bytes.fromhex(number))
            out.whole(200)
            return
        stream = self._holder.of_session(bytes.fromhex(number), target)
        if stream is None:
            out.whole(404, b"no such session")
        else:
            out.whole(200, f"{stream.id} {stream.label}".encode())


async def _post(stream: ServerStream, request: Request, out: Connection) -> None:
    try:
        message = messages.read(request.body)
        if message.is_request:
            await _said(stream, stream.ask(message), out)
            return
        stream.note(message)
        out.whole(202, lines=_lines(stream))
    except Malformed:
        out.whole(400, b"refused")
    except Busy:
        out.whole(503, b"busy")


async def _get(stream: ServerStream, request: Request, out: Connection) -> None:
    await _said(stream, stream.open(), out)


async def _delete(stream: ServerStream, request: Request, out: Connection) -> None:
    stream.end("its session was ended")
    out.whole(200)


_SERVERS: Final[dict[bytes, Callable[[ServerStream, Request, Connection], Awaitable[None]]]] = {
    b"POST": _post,
    b"GET": _get,
    b"DELETE": _delete,
}


async def _said(stream: ServerStream, hearing: Hearing, out: Connection) -> None:
    out.begin(_lines(stream))
    last = False
    try:
        while not last and (said := await hearing.next()) is not None:
            text, last = said
            await out.give(write(Event(text, LAST if last else b"message")))
            stream.may_read.set()
        if not last and stream.is_over:
            out.abort()  # what was asked will not be answered
        else:
            out.end()
    finally:
        stream.leave(hearing)


def _lines(stream: ServerStream) -> bytes:
    return b"%b: %b\r\n" % (ENDPOINT, stream.endpoint)


# --- streams of clients


async def _enter(stream: ClientStream, request: Request, out: Connection) -> None:
    try:
        near = NearMail(stream)
    except mails.Busy:
        out.whole(503, b"busy")
        return
    try:
        out.begin(b"%b: %b\r\n" % (mails.SESSION, stream.session.encode()))
        await near.gone()
        out.end()
    finally:
        near.leave()


async def _give(stream: ClientStream, request: Request, out: Connection) -> None:
    await stream.give(request.body)
    out.whole(200)


async def _begin_session(stream: ClientStream, request: Request, out: Connection) -> None:
    stream.begin_session(request.body.decode())
    out.whole(200)


async def _client_is_ready(stream: ClientStream, request: Request, out: Connection) -> None:
    stream.client_is_ready()
    out.whole(200)


_CLIENTS: Final[dict[tuple[bytes, str], Callable[[ClientStream, Request, Connection], Awaitable[None]]]] = {
    (b"GET", ""): _enter,
    (b"POST", ""): _give,
    (b"PUT", "session"): _begin_session,
    (b"PUT", "ready"): _client_is_ready,
}
