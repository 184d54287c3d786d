"""Answers of LLM providers on their way through guards: between the call that brings them, in the API of the
client, and the client. Whole ones are held until they are judged, streams go on text by text.

What is not judged yet waits here, and the provider is stopped while more than a little waits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from dataplane.backends.llm import facts, rejections
from dataplane.backends.llm.guarded_streams import GuardedStream
from dataplane.backends.terminating.contract import MOST_AHEAD
from dataplane.chain.turns import with_pauses
from dataplane.guards.plan import Rejected
from dataplane.guards.values import Phase
from dataplane.http.heads import Head
from dataplane.http.lasting import is_stream
from dataplane.http.messages import UNKNOWN
from dataplane.llm import pieces, texts
from dataplane.llm.heard import Heard
from dataplane.llm.stream_texts import READERS

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from dataplane.backends.llm.facts import Facts
    from dataplane.backends.llm.typing import LlmExchange
    from dataplane.backends.terminating.contract import Passing, Routed
    from dataplane.backends.terminating.terminator import Terminator
    from dataplane.chain.filter import Future
    from dataplane.chain.reply import Reply
    from dataplane.guards.judging import Judge
    from dataplane.http.messages import ResponseHead
    from dataplane.llm.routes import Format

MAX_ANSWER: Final = 4_194_304
"""Bytes of a whole answer that is held to judge it."""
_ERROR: Final = 400
_NO_CONTENT: Final = (204, 304)
_OF_CONTENT: Final = (
    b"content-length",
    b"content-md5",
    b"digest",
    b"content-digest",
    b"repr-digest",
    b"etag",
    b"trailer",
)
"""Header lines about bytes that are written anew."""


class GuardedTaker:
    """`contract.Taker`."""

    is_judged = True

    def __init__(self, out: Terminator, judge: Judge, form: Format, known: Facts, keeps_text: bool) -> None:
        """`form`: in which the client gets the answer. `keeps_text`: somebody asks what a stream has said."""
        self.x: Routed = out.x
        self._out = out
        self._judge = judge
        self._form = form
        self._facts = known
        self._heard = Heard(form, keeps_text)
        self._call: Passing | None = None
        self._head: ResponseHead | None = None
        self._waiting: list[bytes] = []
        self._size = 0
        """Bytes of `_waiting`."""
        self._is_over = False
        """No more comes."""
        self._lost = ""
        """Why the answer broke off."""
        self._reader: Future | None = None
        self._is_passing = False
        """The answer is not judged."""
        self._is_rejected = False
        """The client gets nothing more of the answer, whatever still comes."""
        self._is_finished = False
        """What brings the answer has nothing more to do."""

    # --- `contract.Taker`

    @property
    def trailer_lines(self) -> bytes:
        return self._out.trailer_lines

    def carry(self, call: Passing) -> tuple[bytes, bool]:
        self._call = call
        return self._out.carry(call)

    def take_back(self) -> None:
        self._out.take_back()

    def run(self, served: Awaitable[Reply | None]) -> None:
        self._out.run(served)

    def finish(self) -> None:
        if self._head is None or self._is_passing:
            self._out.finish()
        else:
            self._is_finished = True  # what waits here is still to be given

    def hold_client(self, held: bool) -> None:
        self._out.hold_client(held)

    def pass_interim(self, head: ResponseHead) -> None:
        self._out.pass_interim(head)

    def never_index(self, names: frozenset[bytes]) -> None:
        self._out.never_index(names)

    def pass_head(self, head: ResponseHead, first: bytes, end: bool) -> None:
        self._is_passing = head.status >= _ERROR  # the provider's own error, which has nothing of a model
        if self._is_passing:
            self._out.pass_head(head, first, end)
            return
        self._head = head
        self._waiting, self._size, self._is_over = [first], len(first), end
        self._out.run(self._serve(head))

    def give(self, data: bytes) -> None:
        if self._is_rejected:
            return
        if self._is_passing:
            self._out.give(data)
            return
        self._waiting.append(data)
        self._size += len(data)
        if self._size > MOST_AHEAD and self._call is not None:
            self._call.hold(True)
        self._wake()

    def end(self, trailers: bytes = b"") -> None:
        if not self._is_passing:
            self._is_over = True
            self._wake()
        elif not self._is_rejected:
            self._out.end(trailers)

    def lost(self, cause: str = "reset") -> None:
        if not self._is_passing and self._head is not None:
            self._is_over, self._lost = True, cause
            self._wake()
        elif not self._is_rejected:
            self._out.lost(cause)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- what is judged

    async def _received(self) -> bytes:
        """b"": there is no more."""
        while not self._size and not self._is_over:
            self._reader = self.x.context.make_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data, was_held = b"".join(self._waiting), self._size > MOST_AHEAD
        self._waiting.clear()
        self._size = 0
        if was_held and self._call is not None and not self._out.is_paused:
            self._call.hold(False)
        return data

    async def _serve(self, head: ResponseHead) -> Reply | None:
        lines = Head(head.block, head.low)
        try:
            if lines.is_coded:
                raise self._unreadable("the answer is compressed, which was not asked for")
            if is_stream(lines) and self._form in READERS:
                await self._stream(head)
            else:
                await self._whole(head)
        except Rejected as rejected:
            self._is_rejected = True
            if self._call is not None:
                self._call.cancel()
            return rejections.refused(self._form, Phase.RESPONSE, rejected)
        finally:
            self._is_passing = True  # what still comes is dropped
            if self._is_finished:
                self._out.finish()
        return None

    def _unreadable(self, why: str) -> Rejected:
        return Rejected(self._judge.guards.response[0], why, is_unavailable=True)

    async def _whole(self, head: ResponseHead) -> None:
        data = await self._all()
        if self._lost:
            self._out.lost(self._lost)
            return
        if head.status not in _NO_CONTENT:
            data = await self._judged(data)
        self._begin(head, data, True)

    async def _judged(self, data: bytes) -> bytes:
        try:
            answer = await with_pauses(pieces.decoded(data))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            answer = None
        if type(answer) is not dict:
            raise self._unreadable("the answer is not a JSON object")
        found = await with_pauses(texts.in_answer(answer))
        found.put(await self._judge.texts(found.texts))
        facts.add_answer(self._facts, self._form, answer)
        return msgspec.json.encode(answer)

    async def _all(self) -> bytes:
        memory, parts, size = self.x.context.body_memory, [], 0
        try:
            while data := await self._received():
                if size + len(data) > MAX_ANSWER or not memory.take(len(data), self.x.peer):
                    raise self._unreadable("the answer is larger than may be held to judge it")
                size += len(data)
                parts.append(data)
        finally:
            memory.free(size, self.x.peer)
        return b"".join(parts)

    def _begin(self, head: ResponseHead, data: bytes, end: bool) -> None:
        """The head of the answer, with the first of its content."""
        found = Head(head.block, head.low)
        for name in _OF_CONTENT:
            found.remove(name)
        if end:
            found.set(b"content-length", b"%d" % len(data))
        length = len(data) if end else UNKNOWN
        self._out.pass_head(replace(head, block=found.block, low=found.low, length=length), data, end)

    async def _stream(self, head: ResponseHead) -> None:
        events = GuardedStream(self._form, self._judge, self._judge.guards.response[0])
        try:
            while data := await self._received():
                await self._go_on(head, await events.feed(data))
            await self._go_on(head, await events.end())
        except Rejected as rejected:
            if not self._out.has_begun:
                raise
            self._is_rejected = True
            x: LlmExchange = self.x  # type: ignore[assignment]  # the exchange, of which both are a part
            x.reason, x.detail = rejections.reason(rejected), rejected.detail
            self._out.give(rejections.event(self._form, rejected, events.next_number))
            while await self._received():
                pass  # usage comes at the end, and is read by the call
            self._lost = ""
        facts.add_stream(self._facts, self._heard)
        if self._lost:
            self._out.lost(self._lost)
            return
        if not self._out.has_begun:
            self._begin(head, b"", False)
        self._out.end()

    async def _go_on(self, head: ResponseHead, data: bytes) -> None:
        if not data:
            return
        self._heard.add(data, True)
        if self._out.has_begun:
            self._out.give(data)
        else:
            self._begin(head, data, False)
        await self._out.ready()
