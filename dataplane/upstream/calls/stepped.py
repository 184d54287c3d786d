"""Steps of a backend (`BackendPlan.steps`) on what is sent there beside requests: calls, and copies for mirrors.

Steps are written for exchanges, so a call gets a view that is one: its own request and answer, and of the exchange for
whose sake it is made the client, the route and what policies have found out. What steps leave there is the view's.

Content that is sent in parts is not there to be read or replaced: a call whose steps want it fails. An answer whose
steps read it is held, within the memory for all bodies; one that has no end, or too much, has no body for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from dataplane.chain.calls import CallFailed
from dataplane.chain.chain import Waiting, drive
from dataplane.chain.replies import made
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import Peer, ResponseHead
from dataplane.http.rules import WHOLE_BODY
from dataplane.http.statuses import BODILESS, SWITCHING
from dataplane.http.uri import canonical_host
from dataplane.upstream.outgoing import Unfinished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dataplane.carriers import Endpoint, Upstream
    from dataplane.chain.chain import Chain
    from dataplane.exchange import StreamHook
    from dataplane.upstream.lease import BackendPlan
    from dataplane.variables import BackendFacts, Services

_OURSELVES: Final = Peer("")
_OF_REQUEST: Final = ("client", "peer", "bind", "listener", "plan", "table", "policies", "trace", "context", "version")
"""What a view has of the exchange for whose sake a call is made."""


class Stepped(Protocol):
    """What is read of a call, or of a copy (`sending.Sending`): it is the consumer of its answer, too."""

    method: bytes
    target: bytes
    block: bytes
    length: int
    upgrade: bytes
    takes_trailers: bool
    started: float
    is_over: bool
    client: Peer | None
    up: Upstream | None

    @property
    def plan(self) -> BackendPlan: ...

    @property
    def calls(self) -> HasServices: ...

    @property
    def endpoint(self) -> Endpoint | None: ...

    @property
    def never_indexed(self) -> frozenset[bytes]: ...

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None: ...

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None: ...

    def upstream_interim(self, head: ResponseHead) -> None: ...

    def upstream_content(self, data: bytes, end: bool) -> None: ...

    def upstream_trailers(self, lines: bytes) -> None: ...

    def upstream_lost(self, cause: str, stale: bool) -> None: ...

    def upstream_blocked(self) -> None: ...

    def upstream_drained(self) -> None: ...

    def fail(self, error: CallFailed) -> None: ...

    def where(self) -> str: ...


class HasServices(Protocol):
    @property
    def services(self) -> Services | None: ...


class CallExchange(Exchange):
    """A call, or a copy, as steps see it."""

    __slots__ = ("asked", "staged")
    asked: tuple[str, ...]
    """Backends whose steps wait for this call, its own the last: a server that decides may be decided about itself."""
    staged: list[Staged]
    """Stages that its content passes."""

    @property
    def is_for_agent(self) -> bool:
        return False

    def replace_body(self, data: bytes) -> None:
        """As `Exchange.replace_body`."""
        self.body, self.length = data, len(data)
        for name in (b"content-length", b"trailer"):
            self.request.remove(name)
        if self.has_body or data:
            self.has_body = True
            self.request.append(b"content-length: %d\r\n" % len(data))

    def stream_request(self, hook: StreamHook) -> Reply | None:
        """As `Exchange.stream_request`: the content is here whole, and waited for until it has passed."""
        if not self.has_body or self.body is None:
            return None
        place = Staged(self)
        stage = hook(self, place)
        if stage is None:
            return None
        self.staged.append(place)
        data, self.body = self.body, None
        stage.content(data, True)
        return place.reply

    async def passed(self) -> Reply | None:
        """Wait until the content has passed its stages; what one of them answers in place of all else."""
        for place in self.staged:
            reply = await place.whole()
            if reply is not None:
                return reply
        return None


class Staged:
    """`streams.Outlet` of a stage that the whole content of a call passes: it collects what comes of it."""

    def __init__(self, view: CallExchange) -> None:
        self._view = view
        self._parts: list[bytes] = []
        self._size = 0
        self._is_whole = False
        self._waiter: Any = None
        self.reply: Reply | None = None

    def content(self, data: bytes, end: bool) -> None:
        self._size += len(data)
        if self._size > self._view.may_hold(WHOLE_BODY):
            self.answer(made("BodyTooLarge", "what a step of the backend makes of it"))
            return
        self._parts.append(data)
        if end:
            self._is_whole = True
            self._wake()

    def trailers(self, lines: bytes) -> None:
        """A call that is whole has none."""
        self.content(b"", True)

    def answer(self, reply: Reply) -> None:
        self.reply = self.reply or reply
        self._wake()

    def pause(self) -> None:
        """All of it has been given."""

    def resume(self) -> None:
        """The same."""

    async def whole(self) -> Reply | None:
        if not self._is_whole and self.reply is None:
            self._waiter = self._view.context.make_future()
            await self._waiter
        if self.reply is None:
            self._view.replace_body(b"".join(self._parts))
        return self.reply

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def view_of(
    call: Stepped, x: Exchange | None, whole: bytes | None, attributes: Mapping[str, object] | None
) -> CallExchange:
    """`x`: for whose sake; None: for no request's, or for one that may be over. `whole`: all content, None where it is
    sent in parts; `attributes`: as `Exchange.attributes`, where there is no `x`. Raises `Unfinished` for
    one that leads back to a backend whose steps wait for it."""
    asked = x.asked if isinstance(x, CallExchange) else ()
    if call.plan.key in asked:
        raise Unfinished("PolicyUnusable", "its steps lead back to it")
    view = CallExchange(None, call.method, call.target, Head(call.block), call.started)
    view.asked, view.staged = (*asked, call.plan.key), []
    view.path, _, view.query = call.target.partition(b"?")
    view.readings = ()
    view.authority = view.request.get(b"host") or b""
    view.host = canonical_host(view.authority) or b""
    transport = call.plan.transport
    view.scheme = b"https" if transport is not None and transport.tls is not None else b"http"
    view.body, view.has_body, view.length = whole, call.length != 0, call.length
    view.backend_plan = cast("BackendFacts", call.plan)  # the same object: packages below know others of its parts
    if x is None:
        view.client = call.client or _OURSELVES
        view.peer = view.client.address
        assert call.calls.services is not None  # a worker's
        view.context = call.calls.services
        found = attributes
    else:
        for name in _OF_REQUEST:
            setattr(view, name, getattr(x, name))
        found = x.attributes
    view.attributes = dict(found) if found is not None else None
    return view


async def run(chain: Chain, view: CallExchange) -> None:
    """The steps before the call is sent. Raises `Unfinished` where one of them answers, or cannot act."""
    if chain.request is None:
        return
    if chain.takes_body and view.has_body and view.body is None:
        raise Unfinished("PolicyUnusable", "a step of the backend needs content that is sent in parts")
    answer = chain.request(view)
    if isinstance(answer, Waiting):
        answer = await drive(view, chain, answer)
    if answer is None and view.staged:
        answer = await view.passed()
    if answer is not None:
        raise Unfinished(answer.reason, answer.detail or answer.reason, answer)


class Answering:
    """Consumer of a call whose backend has response steps: they run before the call has the answer."""

    __slots__ = (
        "_call",
        "_chain",
        "_claimed",
        "_held",
        "_parts",
        "_view",
        "length",
        "method",
        "takes_trailers",
        "target",
        "upgrade",
    )

    def __init__(self, call: Stepped, chain: Chain, view: CallExchange) -> None:
        self._call, self._chain, self._view = call, chain, view
        self._held: ResponseHead | None = None
        """Of an answer that is held."""
        self._parts: list[bytes] = []
        self._claimed = 0
        """Bytes of the worker's memory that its content takes."""
        self.method, self.target, self.length = call.method, call.target, call.length
        self.upgrade, self.takes_trailers = call.upgrade, call.takes_trailers

    @property
    def never_indexed(self) -> frozenset[bytes]:
        return self._call.never_indexed

    def upstream_never_indexed(self, names: frozenset[bytes]) -> None:
        self._call.upstream_never_indexed(names)

    def upstream_interim(self, head: ResponseHead) -> None:
        self._call.upstream_interim(head)

    def upstream_blocked(self) -> None:
        self._call.upstream_blocked()

    def upstream_drained(self) -> None:
        self._call.upstream_drained()

    def upstream_lost(self, cause: str, stale: bool) -> None:
        self.drop()
        self._call.upstream_lost(cause, stale)

    def upstream_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        if head.status == SWITCHING:
            self._call.upstream_head(head, first, end)
            return
        view = self._view
        view.status, view.response = head.status, Head(head.block, head.low)
        view.endpoint = self._call.endpoint
        if not self._chain.response_body:
            self._respond(head, first, end)
        elif view.method == b"HEAD" or head.status in BODILESS or is_stream(view.response):
            view.response_body = b"" if head.status == 204 else None
            self._respond(head, first, end)
        elif head.length > self._most:
            view.response_body_too_large = True
            self._respond(head, first, end)
        else:
            self._held = head
            self.upstream_content(first, end)

    @property
    def _most(self) -> int:
        return min(self._view.may_hold(WHOLE_BODY), self._chain.response_body)

    def upstream_content(self, data: bytes, end: bool) -> None:
        head = self._held
        if head is None:
            self._call.upstream_content(data, end)
            return
        if data:
            if not self._view.context.body_memory.take(len(data), self._view.peer):
                self._fail("too_large", "there is no memory for an answer that a step of the backend reads")
                return
            self._claimed += len(data)
            self._parts.append(data)
        if self._claimed > self._most:
            self._view.response_body_too_large = True
            self._respond(head, self._taken(), end)
        elif end:
            content = self._view.response_body = self._taken()
            self._respond(head, content, True)

    def upstream_trailers(self, lines: bytes) -> None:
        head = self._held
        if head is not None:
            content = self._view.response_body = self._taken()
            self._respond(head, content, False)
        if not self._call.is_over:
            self._call.upstream_trailers(lines)

    def _taken(self) -> bytes:
        content = b"".join(self._parts)
        self.drop()
        return content

    def drop(self) -> None:
        """What is held is no longer needed, or on its way."""
        self._held = None
        self._parts.clear()
        if self._claimed:
            self._view.context.body_memory.free(self._claimed, self._view.peer)
            self._claimed = 0

    def _respond(self, head: ResponseHead, first: bytes, end: bool) -> None:
        """Run the steps, and give the call what they made of the answer."""
        view = self._view
        try:
            answer: Any = None if self._chain.response is None else self._chain.response(view)
        except Exception as error:  # a bug of a step must end in a failure of this call
            self._fail("invalid", repr(error))
            return
        if answer is not None:
            why = f"{answer.reason} {answer.detail}" if isinstance(answer, Reply) else "a step waits for an answer"
            self._fail("invalid", f"a step of the backend refuses its answer: {why}")
            return
        assert view.response is not None  # it was set with the head
        length, made = head.length, view.response
        if view.response_body_changed:
            first, length = view.response_body or b"", len(view.response_body or b"")
            made.remove(b"content-length")
            made.append(b"content-length: %d\r\n" % length)
            if not end:  # what the endpoint still sends is dropped
                up, self._call.up = self._call.up, None
                if up is not None:
                    up.reset()
                end = True
        line = head.line if view.status == head.status else b"HTTP/1.1 %d " % view.status
        edited = ResponseHead(view.status, line, made.block, made.low, length, head.is_dated)
        self._call.upstream_head(edited, first, end)

    def _fail(self, cause: str, text: str) -> None:
        self.drop()
        self._call.fail(CallFailed(cause, f"{self._call.where()}: {text}"))

    def __repr__(self) -> str:
        return f"Answering({self._call!r})"
