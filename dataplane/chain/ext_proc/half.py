"""What both halves of an exchange have in common as steps: what the server is shown, and what its answers do.

`phases` has the order of each half.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

from dataplane.chain.calls import CallFailed
from dataplane.chain.ext_proc import content, messages
from dataplane.chain.reply import Reply
from gatewright.wire.external import ext_proc_pb2 as pb

if TYPE_CHECKING:
    from dataplane.chain.ext_proc.messages import Direction
    from dataplane.chain.ext_proc.modes import Way
    from dataplane.chain.ext_proc.session import Session
    from dataplane.exchange import Exchange
    from dataplane.http.heads import Head
    from dataplane.streams import Outlet

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


def _is_pending(future: Any) -> bool:  # Any: a future or None
    return future is not None and not future.done()


def finish(future: Any, value: pb.CommonResponse | Reply) -> bool:  # Any: as `_is_pending`
    """False: nothing waits for it."""
    if not _is_pending(future):
        return False
    future.set_result(value)
    return True
