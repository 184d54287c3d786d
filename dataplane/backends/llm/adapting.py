"""A request whose provider has the API that the client calls, but for something (`llm/dialects`), and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.heads import about
from dataplane.backends.llm.reading import ERROR, Reading
from dataplane.backends.llm.slices import SLICE
from dataplane.backends.terminating.forwarding import Forwarding
from dataplane.chain.calls import CallFailed
from dataplane.http.heads import Head
from dataplane.http.messages import UNKNOWN
from dataplane.llm import errors
from dataplane.llm.dialects import Events, error
from dataplane.llm.formats.contract import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.paths import Dialect
    from dataplane.llm.pieces import Steps
    from dataplane.llm.providers import Place
    from dataplane.llm.routes import Format

EVENTS: Final = b"text/event-stream; charset=utf-8"
FRAMED: Final = b"application/vnd.amazon.eventstream"


class Adapting(Reading):
    """Errors, whole answers of another shape and streams in frames become those of the format; others pass."""

    __slots__ = ("_dialect", "_events", "_reads")
    slice_size = SLICE

    def __init__(
        self,
        out: Taker,
        plan: Any,
        request: CallRequest,
        form: Format,
        known: Facts,
        place: Place,
        dialect: Dialect,
        read: Callable[[bytes, Head], bytes] | None = None,
    ) -> None:
        """`plan`: a BackendPlan. `read`: a whole answer of another shape as the format has it."""
        super().__init__(out, plan, request, form, known, place, form)
        self._dialect = dialect
        self._reads = read
        self._events: Events | None = None

    def accepted(self, head: ResponseHead, first: bytes, end: bool) -> None:
        lines = Head(head.block, head.low)
        is_coded = lines.is_coded
        is_framed = self._dialect.is_framed and (lines.get(b"content-type") or b"").startswith(FRAMED)
        if not is_coded and (head.status >= ERROR or self._reads is not None):
            self._forget()
            self._kept_head = head
            self._take(first, end)
        elif is_framed and not is_coded:
            self._events = Events(self._form)
            super().accepted(about(head, EVENTS, UNKNOWN), first, end)
        else:
            super().accepted(head, first, end)

    def read_slice(self, data: bytes, end: bool) -> None:
        super().read_slice(data if self._events is None else self._events.feed(data), end)

    def _kept_whole(self, head: ResponseHead, data: bytes) -> Steps[None]:
        if head.status >= ERROR:
            body = error(self._dialect, self._form, head.status, data)
            self._taken()
            Forwarding.answered(self, about(head, errors.JSON, len(body)), body, True)
        elif self._reads is None:
            yield from super()._kept_whole(head, data)
        else:
            try:
                body = self._reads(data, Head(head.block, head.low))
            except Unreadable as problem:
                self._unusable(head, str(problem))
                return
            yield from super()._kept_whole(about(head, errors.JSON, len(body)), body)

    def _kept_part(self, head: ResponseHead, data: bytes) -> None:
        if self._reads is None:
            super()._kept_part(head, data)
        else:
            self._unusable(head, "the answer is too large to be translated")

    def _unusable(self, head: ResponseHead, why: str) -> None:
        self._kept_head = head  # the client has nothing of it, and gets an error
        self.fail(CallFailed("invalid", f"{self.where()}: {why}"))
