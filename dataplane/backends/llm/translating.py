"""A request on its way to a provider of another API, and its answer, which comes back in the API that the client
called: whole ones and errors when they are here, streams event by event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dataplane.backends.llm.heads import about
from dataplane.backends.llm.reading import ERROR, Reading
from dataplane.backends.llm.slices import SLICE
from dataplane.backends.terminating.forwarding import Forwarding
from dataplane.chain.calls import CallFailed
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN
from dataplane.llm import errors, translation, usage, whole_answers
from dataplane.llm.chat import Asked
from dataplane.llm.deltas import Began, Delta, Failed, PartEnded, Stopped
from dataplane.llm.formats.contract import Unreadable

if TYPE_CHECKING:
    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.terminating.contract import Taker
    from dataplane.chain.calls import CallRequest
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.pieces import Steps
    from dataplane.llm.providers import Place
    from dataplane.llm.translation import Stream, Translated

EVENTS: Final = b"text/event-stream; charset=utf-8"
_NO_TOKEN: Final = (Began, PartEnded, Stopped, Failed)


class Translating(Reading):
    """The answer is read whole; a stream as it comes."""

    __slots__ = ("_asked", "_failed", "_has_stopped", "_made", "_stream", "_usage")
    slice_size = SLICE

    def __init__(
        self,
        out: Taker,
        plan: Any,
        request: CallRequest,
        made: Translated,
        known: Facts,
        place: Place,
        asked: Asked,
    ) -> None:
        """`plan`: a BackendPlan."""
        super().__init__(out, plan, request, made.source, known, place, made.source)
        self._made = made
        self._asked = asked
        self._stream: Stream | None = None
        self._usage = usage.NO_USAGE
        self._has_stopped = False
        self._failed = ""
        """What the stream failed with."""

    def accepted(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._forget()
        lines = Head(head.block, head.low)
        if lines.is_coded:
            self._unusable(head, "the answer is compressed, which was not asked for")
        elif head.status < ERROR and is_stream(lines):
            self.streams()
            self._stream = translation.Stream(self._made, self._asked)
            self._hear(self._made.source)
            Forwarding.answered(self, about(head, EVENTS, UNKNOWN), b"", False)
            self.upstream_content(first, end)
        else:
            self._kept_head = head
            self._take(first, end)

    # --- whole answers

    def _kept_whole(self, head: ResponseHead, data: bytes) -> Steps[None]:
        if head.status >= ERROR:
            body = translation.error(self._made, head.status, data)
        else:
            try:
                found, body = translation.answer(self._made, data, self._asked)
            except Unreadable as error:
                self._unusable(head, str(error))
                return
            self._note(found.usage, found.model, found.tier)
            self._said(self._made.source, (yield from whole_answers.read(body)))
            self._price()
        self._taken()
        Forwarding.answered(self, about(head, errors.JSON, len(body)), body, True)

    def _kept_part(self, head: ResponseHead, data: bytes) -> None:
        self._unusable(head, "the answer is too large to be translated")

    def _unusable(self, head: ResponseHead, why: str) -> None:
        self._kept_head = head  # the client has nothing of it, and gets an error
        self.fail(CallFailed("invalid", f"{self.where()}: {why}"))

    # --- streams

    def upstream_content(self, data: bytes, end: bool) -> None:
        if self._stream is None:
            super().upstream_content(data, end)
        else:
            self.stream_content(data, end)

    def read_slice(self, data: bytes, end: bool) -> None:
        assert self._stream is not None  # whose it is
        given = self._given(*self._stream.feed(data)) if data else b""
        if end:
            given += self._given(*self._stream.end())
        if self.fails_early(self._failed):
            return
        if given or end:
            Forwarding.upstream_content(self, given, end)

    def upstream_trailers(self, lines: bytes) -> None:
        if self._stream is None:
            super().upstream_trailers(lines)
        else:
            self.upstream_content(b"", True)  # trailers are about bytes that the client does not get

    def _given(self, data: bytes, deltas: list[Delta]) -> bytes:
        for each in deltas:
            if not isinstance(each, _NO_TOKEN):
                self._first_token()
            elif isinstance(each, Began):
                self._usage = each.usage
                self._note(each.usage, each.model, each.tier)
            elif isinstance(each, Stopped):
                self._has_stopped = True
                self._note(each.usage.over(self._usage), "", each.tier)
            elif isinstance(each, Failed):
                self._x.detail = self._failed = each.failure.message
        self._listen(data, self._has_token)
        return data

    def _has_usage(self) -> bool:
        return self._has_stopped

    def broke(self, error: CallFailed) -> None:
        stream = self._stream
        if stream is None or not self._is_passing:
            super().broke(error)
            return
        self.out.give(self._given(*stream.end()))
        self._x.detail = str(error)
        self._is_left = True
        self._count()
        self.out.end()
