"""Requests to a server that speaks the older transport, answered as one of streamable HTTP would answer: 404 for a
session that is over, JSON where the answer is all that is said, else a stream of events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from dataplane.backends.mcp import calls
from dataplane.backends.mcp.answers import Labelled, Opened, TargetFailed
from dataplane.backends.mcp.legacy import server_streams
from dataplane.backends.mcp.legacy.reached import PEER_SECONDS, Far, Gone, Heard, Near, Reached
from dataplane.chain.calls import FOR_EVER, CallAnswer, CallFailed, CallRequest
from dataplane.http.heads import Head
from dataplane.http.sse import Event, write
from dataplane.mcp import messages
from dataplane.mcp.asked import SESSION
from dataplane.mcp.dialogue import Busy
from dataplane.mcp.policies import MCP
from dataplane.mcp.sessions import UpstreamSession
from gatewright.kept_errors import again, kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.mcp.visit import Visit
    from dataplane.mcp.messages import Message
    from dataplane.mcp.plans import TargetPlan
    from dataplane.table.plans import BackendPlan
    from dataplane.upstream.calls import Call

NOT_FOUND: Final = 404
_JSON: Final = b"\r\ncontent-type: application/json\r\n"
_EVENTS: Final = b"\r\ncontent-type: text/event-stream\r\n"
_POSTS: Final = b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"


async def asked(
    visit: Visit, target: TargetPlan, known: UpstreamSession, method: bytes, body: bytes, seconds: float
) -> Opened:
    """As `Upstreams._ask`. Raises `CallFailed`, `TargetFailed`, `Malformed`."""
    try:
        if not known.session_id:
            return await _hello(visit, target, body, seconds)
        reached = _reached(visit, known.session_id)
        if method == b"POST":
            return await _post(visit, target, known, reached, body, seconds)
        if method == b"GET":
            heard = await reached.listen()
            return Opened(HeardCall(heard, None, _Sent()), CallAnswer(200, Head(_EVENTS), b""), target.name)
        await reached.end()
        return _whole(target, 200)
    except Gone:
        return _whole(target, NOT_FOUND)
    except Busy:
        raise TargetFailed(target.name, "it has too many requests to answer") from None


def _reached(visit: Visit, session_id: str) -> Reached:
    """Raises `Gone`."""
    name, _, stream_id = session_id.partition("/")
    holder = visit.x.context.of_kind(MCP).holder
    if name == holder.name:
        stream = holder.of(stream_id)
        if stream is None:
            raise Gone
        return Near(stream)
    peer = holder.peer(name)
    if peer is None:
        raise Gone
    return Far(visit.x, peer, stream_id)


async def found(visit: Visit, target: TargetPlan) -> UpstreamSession | None:
    """The stream that another request of this session has opened instead of the one that was lost; None: there is
    none."""
    assert visit.session is not None  # without one there is nothing to find
    holder, number = visit.x.context.of_kind(MCP).holder, visit.session.number
    stream = holder.of_session(number, target.name)
    if stream is not None:
        return UpstreamSession(target.name, f"{holder.name}/{stream.id}", stream.label)
    for peer in holder.peers():
        answer = await _asked_peer(visit, peer, b"GET", f"{number.hex()}/{target.name}")
        if answer:
            stream_id, _, label = answer.decode("latin-1").partition(" ")
            return UpstreamSession(target.name, f"{peer.key.partition('/')[2]}/{stream_id}", label)
    return None


async def end_session(visit: Visit) -> None:
    """All streams of it, whichever workers opened them."""
    assert visit.session is not None  # it is that which is over
    holder, number = visit.x.context.of_kind(MCP).holder, visit.session.number
    holder.end_session(number)
    for peer in holder.peers():
        await _asked_peer(visit, peer, b"DELETE", number.hex())


async def _asked_peer(visit: Visit, peer: BackendPlan, method: bytes, path: str) -> bytes:
    """What another worker answers; b"" where it does not, or knows nothing."""
    request = CallRequest(method, b"/sessions/" + path.encode())
    call = calls.call(visit.x, peer, request, PEER_SECONDS)
    try:
        answer = await call.head()
        return await call.receive() if answer.status == 200 else b""
    except CallFailed:
        visit.x.context.of_kind(MCP).holder.forget_peer(peer.key.partition("/")[2])
        return b""  # it is gone, or its end is near: what it holds goes with it
    finally:
        call.cancel()


async def _hello(visit: Visit, target: TargetPlan, body: bytes, seconds: float) -> Opened:
    """`initialize`: a stream of its own, which ends where the server does not answer with a result."""
    stream = await server_streams.opened(visit, target)
    if isinstance(stream, Opened):
        return stream
    holder = visit.x.context.of_kind(MCP).holder
    lines = b"%b: %b/%b\r\n" % (SESSION, holder.name.encode(), stream.id.encode())
    sent = _Sent(stream.call.endpoint, lambda: stream.end("it refused initialize"), lines)
    return await _request(visit, target, Near(stream), messages.read(body), body, seconds, sent)


async def _post(
    visit: Visit, target: TargetPlan, known: UpstreamSession, reached: Reached, body: bytes, seconds: float
) -> Opened:
    message = messages.read(body)
    sent = _Sent(pinned=known.endpoint)
    if message.is_request:
        return await _request(visit, target, reached, message, body, seconds, sent)
    sent.begin(visit, target, await reached.note(message), body, seconds)
    assert sent.call is not None  # it has begun
    answer = await sent.call.head()
    if answer.status == NOT_FOUND:
        await reached.end()
    return Opened(sent.call, answer, target.name)


async def _request(
    visit: Visit,
    target: TargetPlan,
    reached: Reached,
    message: Message,
    body: bytes,
    seconds: float,
    sent: _Sent,
) -> Opened:
    """Listen, post, and wait for the first that is said."""
    heard = await reached.ask(message)
    answer = HeardCall(heard, message.request_id, sent)
    try:
        sent.begin(visit, target, heard.endpoint, body, seconds)
        visit.x.work(sent.watch(heard.leave))
        sent.limit(visit, heard.leave, seconds)
        await answer.wait()
    except BaseException:
        answer.cancel()
        raise
    if sent.refused is not None:
        if sent.refused.status == NOT_FOUND:
            await reached.end()
        assert sent.call is not None  # it was refused
        return Opened(sent.call, sent.refused, target.name)
    block = (_JSON if answer.is_whole else _EVENTS) + sent.lines
    return Opened(answer, CallAnswer(200, Head(block), b""), target.name)


class _Sent:
    """A message on its way to where it is posted."""

    def __init__(
        self,
        endpoint: Labelled | None = None,
        failed: Callable[[], None] | None = None,
        lines: bytes = b"",
        pinned: str = "",
    ) -> None:
        """`endpoint`: of the stream that was opened for it, with the header lines of that; `failed`: called when there
        is no result."""
        self.endpoint = endpoint
        self.failed = failed
        self.lines = lines
        self.call: Call | None = None
        self.refused: CallAnswer | None = None
        self.problem: CallFailed | None = None
        self._pinned = pinned if endpoint is None else endpoint.label
        self._late: _Late | None = None

    def begin(self, visit: Visit, target: TargetPlan, path: bytes, body: bytes, seconds: float) -> None:
        """Raises `CallFailed`."""
        plan = calls.plan_of(visit.x, target, self._pinned)
        request = CallRequest(b"POST", path, calls.authority(visit.x, plan), visit.passing + _POSTS, body)
        self.call = calls.call(visit.x, plan, request, seconds)

    async def watch(self, leave: Callable[[], None]) -> None:
        """`leave` is called when it was not taken."""
        assert self.call is not None  # it has begun
        try:
            answer = await self.call.head()
        except CallFailed as error:
            self.problem = kept(error)
        else:
            if answer.status < _WRONG:
                return
            self.refused = answer
        leave()

    def limit(self, visit: Visit, leave: Callable[[], None], seconds: float) -> None:
        """Call `leave` when nothing was said in time."""
        if seconds != FOR_EVER:
            self._late = _Late(self, leave, seconds)
            calls_of = visit.x.context.calls
            calls_of.wake_at(calls_of.clock() + seconds, self._late)

    def said(self) -> None:
        """Something was."""
        if self._late is not None:
            self._late.is_met = True

    def over(self) -> None:
        """It is not waited for any more."""
        self.said()
        if self.call is not None and self.refused is None:
            self.call.cancel()


_WRONG: Final = 300


class _Late:
    """`carriers.Sleeper`."""

    def __init__(self, sent: _Sent, leave: Callable[[], None], seconds: float) -> None:
        self._sent, self._leave, self._seconds = sent, leave, seconds
        self.is_met = False

    def wake(self, now: float) -> None:
        if not self.is_met:
            self._sent.problem = CallFailed("timeout", f"it gave no answer within {self._seconds:g} s")
            self._leave()


class HeardCall:
    """What a stream says to one request, as the answer of a call (`upstreams.Answering`)."""

    def __init__(self, heard: Heard, request_id: messages.Id | None, sent: _Sent) -> None:
        self.endpoint = sent.endpoint
        self.is_whole = False
        """The answer came first: there is nothing else."""
        self._heard, self._sent = heard, sent
        self._request_id = request_id
        self._first: tuple[bytes, bool] | None = None
        self._has_answer = self._has_result = False

    async def wait(self) -> None:
        """For the first that is said. Raises `CallFailed`."""
        self._first = await self._next()
        self.is_whole = self._first is not None and self._first[1]

    async def receive(self) -> bytes:
        said, self._first = self._first, None
        if said is None:
            if not self._has_answer:
                said = await self._next()
            if said is None:
                return b""
        text, self._has_answer = said
        if self._sent.failed is not None:
            self._has_result = messages.read(text).result is not UNSET
        return text if self.is_whole else write(Event(text, b"message"))

    async def _next(self) -> tuple[bytes, bool] | None:
        said = await self._heard.next()
        if said is None and self._sent.problem is not None:
            raise again(self._sent.problem)
        self._sent.said()
        return said

    def cancel(self) -> None:
        self._heard.leave()
        self._sent.over()
        failed, self._sent.failed = self._sent.failed, None
        if failed is not None and not self._has_result:
            failed()

    def __repr__(self) -> str:
        return f"HeardCall({self._heard!r})"


class _Whole:
    """An answer that is made here."""

    endpoint = None

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def receive(self) -> bytes:
        body, self._body = self._body, b""
        return body

    def cancel(self) -> None:
        """No server is asked."""


def _whole(target: TargetPlan, status: int, body: bytes = b"") -> Opened:
    length = b"content-length: %d\r\n" % len(body)
    return Opened(_Whole(body), CallAnswer(status, Head(_JSON + length), b""), target.name)
