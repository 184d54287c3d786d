"""A message of a client that speaks the older transport: posted to where its stream said, answered with 202 as soon as
rules and guardrails have let it go to a server, and on the stream with what comes of it. It is served as one of
streamable HTTP is, within the session that the stream remembers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from dataplane.backends.mcp.legacy import mail as mails
from dataplane.backends.mcp.legacy.client_streams import PURPOSE, texts
from dataplane.backends.mcp.legacy.reached import Gone
from dataplane.backends.terminating.terminator import give_all
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN
from dataplane.http.sse import EventReader
from dataplane.mcp import accept, endpoints, errors, messages
from dataplane.mcp.asked import SESSION
from dataplane.mcp.messages import INTERNAL_ERROR, INVALID_REQUEST, Malformed
from dataplane.mcp.policies import MCP

if TYPE_CHECKING:
    from dataplane.backends.mcp.legacy.mail import Mail
    from dataplane.backends.mcp.visit import Visit
    from dataplane.backends.terminating.contract import Answer, Pours
    from dataplane.chain.reply import Reply
    from dataplane.mcp.messages import Message

_OK: Final = 200
_ACCEPTED: Final = 202
READY: Final = "notifications/initialized"


def stream_of(visit: Visit) -> bytes | None:
    """What of a POST names a stream; None: it is none of this transport."""
    if visit.head.get(SESSION) is not None:
        return None
    path, _, query = visit.x.asked_target.partition(b"?")
    return endpoints.stream_of(query) if endpoints.is_stream(path) else None


Served = Callable[["Visit", bytes], Awaitable["Reply | None"]]
"""Serves a message, whichever transport brought it (`posts.served`)."""


async def post(visit: Visit, body: bytes, sealed: bytes, served: Served) -> Reply | None:
    if not visit.has_json:
        return errors.refused("McpContentType")
    try:
        message = messages.read(body)
    except Malformed as error:
        return errors.malformed(error)
    content = visit.x.context.of_kind(MCP).sealer.open(sealed.decode("latin-1"), PURPOSE + visit.owner)
    if content is None:
        return errors.refused("McpSessionUnknown")
    name, _, stream_id = content.decode().partition("/")
    try:
        mail = await mails.opened(visit.x, name, stream_id)
    except Gone:
        return errors.refused("McpSessionUnknown")
    except mails.Busy:
        return errors.refused("McpBusy", "as many messages as may be at work")
    try:
        return await _served(visit, mail, message, body, served)
    finally:
        mail.leave()


async def _served(visit: Visit, mail: Mail, message: Message, body: bytes, served: Served) -> Reply | None:
    out = StreamAnswer(visit, visit.out, mail, message)
    visit.out, visit.asking = out, out.taken
    visit.takes_stream = visit.takes_json = True
    visit.session_id = mail.session.encode() or None
    visit.x.work(out.watch())
    try:
        reply = await served(visit, body)
        if reply is not None and not out.refuse(reply):
            return reply
        await out.flush()
        if message.method == READY and out.status == _ACCEPTED:
            await mail.client_is_ready()
        out.taken()
    except Gone:
        out.taken()
    return None


class StreamAnswer:
    """`Answer` to a message that was posted: 202 goes to the `real` one, and what else is said to the stream."""

    is_paused = True
    """The giver waits until the stream has taken it."""

    def __init__(self, visit: Visit, real: Answer, mail: Mail, message: Message) -> None:
        self.has_begun = False
        self.status = 0
        """Of the answer as streamable HTTP would have it."""
        self._x, self._real, self._mail = visit.x, real, mail
        self._most = visit.plan.max_answer
        self._request_id = message.request_id if message.is_request else None
        self._reader: EventReader | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._texts: list[bytes] = []
        """Messages that are not given yet."""
        self._session = ""

    def taken(self) -> None:
        """A server is asked, or all is said: the message needs no further answer."""
        if not self._real.has_begun:
            self._real.whole(_ACCEPTED, b"", b"")

    async def watch(self) -> None:
        """Give up what is done for a client that has left."""
        if await self._mail.gone():
            self._real.give_up()

    def refuse(self, reply: Reply) -> bool:
        """What cannot be served: said on the stream where a request waits for an answer; whether it was."""
        if self._request_id is None:
            return self._real.has_begun
        x = self._x
        x.reason, x.detail = reply.reason, reply.detail
        if _is_error(reply.body, self._request_id):
            self._texts.append(reply.body)
        else:
            text = reply.body.decode("utf-8", "replace")
            self._texts.append(messages.error(self._request_id, INVALID_REQUEST, text))
        return True

    async def flush(self) -> None:
        """Give what is there. Raises `Gone`."""
        if self._session:
            session, self._session = self._session, ""
            await self._mail.begin_session(session)
        while self._texts:
            await self._mail.give(self._texts.pop(0))

    # --- as `Answer`

    def hold(self, size: int) -> bool:
        return self._real.hold(size)

    async def ready(self) -> None:
        await self.flush()

    async def pour(self, call: Pours) -> None:
        await self.ready()
        await give_all(self, call)

    def head(self, status: int, lines: bytes, length: int = UNKNOWN, first: bytes = b"", end: bool = False) -> None:
        self.has_begun, self.status = True, status
        head = Head(b"\r\n" + lines)
        self._session = (head.get(SESSION) or b"").decode("latin-1")
        kind = (head.get(b"content-type") or b"").partition(b";")[0].strip().lower()
        if status == _OK and kind == accept.STREAM:
            self._reader = EventReader(self._most)
        self.give(first)
        if end:
            self.end()

    def whole(self, status: int, lines: bytes, body: bytes) -> None:
        self.head(status, lines, len(body), body, True)

    def give(self, data: bytes) -> None:
        if self._reader is not None:
            self._texts += texts(self._reader, data)
        elif data and self._size <= self._most:
            self._parts.append(data)
            self._size += len(data)

    def end(self, trailers: bytes = b"") -> None:
        if self._reader is not None or self.status == _ACCEPTED:
            return
        body, self._parts = b"".join(self._parts), []
        if self.status == _OK and 0 < self._size <= self._most:
            self._texts.append(body)
        elif self._request_id is not None:
            if not _is_error(body, self._request_id):
                text = f"MCP server answered with status {self.status}"
                body = messages.error(self._request_id, INTERNAL_ERROR, text)
            self._texts.append(body)

    def lost(self, cause: str = "reset") -> None:
        if self._request_id is not None:
            self._texts.append(
                messages.error(self._request_id, INTERNAL_ERROR, "the answer of the MCP server broke off")
            )

    def give_up(self) -> None:
        self._real.give_up()

    def __repr__(self) -> str:
        return f"StreamAnswer({len(self._texts)} messages)"


def _is_error(body: bytes, request_id: messages.Id) -> bool:
    """Whether a body is the JSON-RPC error that answers this request."""
    try:
        found = messages.read(body)
    except Malformed:
        return False
    return found.is_response and found.request_id == request_id
