"""The two halves of an exchange as steps: what the server is shown of each, in which order, and what its answers do.

The head is shown first and waits for its answer; content that passes in full duplex is shown beside it, for the server
may want all of it before it answers about the head. Content that is shown whole comes behind that answer, which may
change its mode.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain import streaming
from dataplane.chain.calls import CallFailed
from dataplane.chain.ext_proc import content, messages
from dataplane.chain.ext_proc.modes import BUFFERED, DUPLEX, NONE, PARTIAL
from dataplane.chain.reply import Reply
from dataplane.http.body import DESCRIBING, TooLarge
from dataplane.http.statuses import BODILESS, RESET_CONTENT
from gatewright.wire.external import ext_proc_pb2 as pb

if TYPE_CHECKING:
    from dataplane.chain.ext_proc.messages import Direction
    from dataplane.chain.ext_proc.modes import Way
    from dataplane.chain.ext_proc.session import Session
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from dataplane.streams import Outlet

_HTTP_2: Final = b"HTTP/2"
_SHOWN_WHOLE: Final = frozenset((BUFFERED, PARTIAL))
NO_CHANGE: Final = pb.CommonResponse()


class Half(ABC):
    """`session.Half` of one direction."""

    direction: Direction

    def __init__(self, session: Session, make_future: Any, too_large: Reply) -> None:
        self._session = session
        self._make_future = make_future
        self._too_large = too_large
        self._content: content.Content | None = None
        self._headers: Any = None
        """A future: the answer to the head, or the reply that ends the exchange."""
        self._body: Any = None
        """The same of a body that is shown whole."""
        session.halves[self.direction.name] = self

    # --- what each direction has of its own

    @property
    @abstractmethod
    def way(self) -> Way: ...

    @abstractmethod
    def head(self, x: Exchange) -> Head: ...

    @abstractmethod
    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        """The message of its head."""

    # --- as `session.Half`

    def headers_answered(self, common: pb.CommonResponse) -> bool:
        if messages.replaces(common):
            messages.body_of(common, b"")  # raises for one that is streamed, while the failure can still be said
        return finish(self._headers, common)

    def body_answered(self, common: pb.CommonResponse) -> bool:
        if self._content is None or not self._content.answered(common):
            return False
        finish(self._body, common)
        return True

    def trailers_answered(self, mutation: pb.HeaderMutation) -> bool:
        return self._content is not None and self._content.trailers_answered(mutation)

    @property
    def waits(self) -> bool:
        found = self._content
        if _is_pending(self._headers) and (not isinstance(found, content.Duplex) or found.came):
            return True
        return found is not None and found.waits

    @property
    def is_under_way(self) -> bool:
        return _is_pending(self._headers) or (self._content is not None and self._content.is_under_way)

    def over(self, reply: Reply) -> None:
        if finish(self._headers, reply) or finish(self._body, reply):
            if self._content is not None:
                self._content.ended = True  # the step answers
        elif self._content is not None:
            self._content.over(reply)

    def sent(self) -> None:
        if self._content is not None:
            self._content.sent()

    # --- for the steps

    @property
    def failure(self) -> Reply | None:
        """What the exchange ends with, where the call has failed."""
        return self._session.failure

    def ask(self, x: Exchange, end: bool) -> None:
        """Show the head, if it is to be shown."""
        if self.way.headers:
            self._headers = self._make_future()
            self._session.send(self.shown(x, end))
            self._session.moved()

    async def headers(self, x: Exchange) -> pb.CommonResponse | Reply:
        """The answer, carried out."""
        if self._headers is None:
            return NO_CHANGE
        return self._carried_out(x, await self._headers)

    async def whole(self, x: Exchange) -> Reply | None:
        """The answer about a body that is shown whole, carried out."""
        answer = self._carried_out(x, await self._body)
        return answer if isinstance(answer, Reply) else None

    def _carried_out(self, x: Exchange, answer: pb.CommonResponse | Reply) -> pb.CommonResponse | Reply:
        if isinstance(answer, Reply):
            return answer
        pseudo = self.direction.pseudo
        try:
            if messages.changes(answer.header_mutation, pseudo).apply(x, self.head(x), pseudo):
                return answer
            self._session.fail(CallFailed("invalid", "its changes of headers do not fit this message"))
        except CallFailed as error:
            self._session.fail(error)
        return self._session.failure or answer

    def stage(self, x: Exchange, outlet: Outlet) -> content.Content | None:
        """As `Exchange.stream_request` and `stream_response` want it."""
        way = self.way
        self._content = content.made(self._session, self.direction, outlet, way.body, way.trailers, self._too_large)
        if isinstance(self._content, content.Whole):
            self._body = self._make_future()
            self._content.passed = self._passed
        return self._content

    def _passed(self) -> None:
        finish(self._body, NO_CHANGE)

    def replacing(self, data: bytes) -> Any:
        """Makes a stage that gives this in place of the content."""

        def stage(x: Exchange, outlet: Outlet) -> content.Content:
            self._content = content.Replaced(self._session, self.direction, outlet, data)
            return self._content

        return stage

    @property
    def is_shown_whole(self) -> bool:
        return self._body is not None


class RequestHalf(Half):
    direction = messages.REQUEST

    @property
    def way(self) -> Way:
        return self._session.modes.request

    def head(self, x: Exchange) -> Head:
        return x.request

    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        return messages.request_headers(x, end)

    async def run(self, x: Exchange) -> Reply | None:
        session, reply = self._session, None
        self.ask(x, not x.has_body)
        if x.has_body and self.way.body == DUPLEX:
            reply = x.stream_request(self.stage)
        answer = await self.headers(x) if reply is None else reply
        if isinstance(answer, Reply):
            return answer
        if messages.replaces(answer):
            self._replace(x, answer)
            return None
        if not session.is_open:
            return self.failure
        if not x.has_body or self._content is not None or not self._shows_content(x):
            return None
        reply = x.stream_request(self.stage)
        return await self.whole(x) if reply is None and self.is_shown_whole else reply

    def _shows_content(self, x: Exchange) -> bool:
        """Whether there is anything to show: trailers cannot follow a length that HTTP/1 announces."""
        way = self.way
        return way.body != NONE or (way.trailers and (x.length < 0 or x.version == _HTTP_2))

    def _replace(self, x: Exchange, answer: pb.CommonResponse) -> None:
        data = messages.body_of(answer, b"")
        for name in DESCRIBING:
            x.request.remove(name)
        if isinstance(self._content, content.Duplex):
            self._content.replace(data)
        else:
            x.replace_body(data)


class ResponseHalf(Half):
    direction = messages.RESPONSE

    @property
    def way(self) -> Way:
        return self._session.modes.response

    def head(self, x: Exchange) -> Head:
        assert x.response is not None  # `run` has looked
        return x.response

    def shown(self, x: Exchange, end: bool) -> pb.ProcessingRequest:
        return messages.response_headers(x, end)

    async def run(self, x: Exchange) -> Reply | None:
        ends = _has_no_content(x)
        self.ask(x, ends)
        installed = self._installed(x) if not ends and self.way.body == DUPLEX else None
        if isinstance(installed, Reply):
            return installed
        answer = await self.headers(x)
        if isinstance(answer, Reply):
            if isinstance(installed, Coroutine):
                installed.close()  # it was not begun
            return answer
        if messages.replaces(answer):
            return await self._replace(x, answer, installed)
        if self._content is None and not ends and self._session.is_open and self._shows_content(x):
            installed = self._installed(x)
        if isinstance(installed, Reply):
            return installed
        if installed is not None:
            reply = await _ended(installed)
            if reply is not None:
                return reply
        if self.is_shown_whole:
            return await self.whole(x)
        return self.failure if self._content is None else None

    def _installed(self, x: Exchange) -> Awaitable[Reply | None] | Reply | None:
        try:
            return x.stream_response(self.stage)
        except TooLarge:
            return streaming.TOO_LARGE

    def _shows_content(self, x: Exchange) -> bool:
        way = self.way
        return way.body != NONE or (way.trailers and self.head(x).get(b"content-length") is None)

    async def _replace(
        self, x: Exchange, answer: pb.CommonResponse, installed: Awaitable[Reply | None] | None
    ) -> Reply | None:
        data = messages.body_of(answer, b"")
        for name in DESCRIBING:
            self.head(x).remove(name)
        if isinstance(self._content, content.Duplex):
            self._content.replace(data)
        else:
            try:
                found = x.stream_response(self.replacing(data))
            except TooLarge:
                return streaming.TOO_LARGE
            if isinstance(found, Reply):
                return found
            installed = found
        return None if installed is None else await _ended(installed)


async def _ended(installed: Awaitable[Reply | None]) -> Reply | None:
    try:
        return await installed
    except TooLarge:
        return streaming.TOO_LARGE


def _has_no_content(x: Exchange) -> bool:
    assert x.response is not None  # the caller has looked
    if x.method == b"HEAD" or x.status in BODILESS or x.status == RESET_CONTENT:
        return True
    return x.response.get(b"content-length") == b"0"


def _is_pending(future: Any) -> bool:  # Any: a future or None
    return future is not None and not future.done()


def finish(future: Any, value: pb.CommonResponse | Reply) -> bool:  # Any: as `_is_pending`
    """False: nothing waits for it."""
    if not _is_pending(future):
        return False
    future.set_result(value)
    return True
