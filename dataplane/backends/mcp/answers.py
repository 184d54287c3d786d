"""Answers of servers, as they come, and read whole: bounded in size and in time."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from dataplane.backends.mcp.memory_queue import NoMemory
from dataplane.backends.terminating.pump import EventPump
from dataplane.chain.calls import FOR_EVER, CallFailed
from dataplane.http.sse import EventTooLarge
from dataplane.mcp import messages
from dataplane.mcp.messages import Beyond, Malformed, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dataplane.backends.mcp.memory_queue import Claim
    from dataplane.chain.calls import CallAnswer
    from dataplane.upstream.calls import HttpCalls

COPIES: Final = 3
"""Of an answer that is read whole: as it came, what it is taken apart to, and what is made of that for the client. It
takes memory for so many."""
TOGETHER: Final = 4
"""Answers of the largest size that are read for one request."""
PAUSE: Final = 1.0
"""Seconds between two looks at a deadline while an answer waits for memory."""


class TargetFailed(Exception):
    """A target gave no answer. The text is for the log. `is_late`: `http.requestTimeout` ended the wait for it."""

    def __init__(self, target: str, text: str, is_late: bool = False) -> None:
        super().__init__(f"{target}: {text}")
        self.target = target
        self.is_late = is_late

    @property
    def reason(self) -> str:
        """Of the answer to the client."""
        return "UpstreamTimeout" if self.is_late else "McpTargetFailed"


class AnswerRefused(TargetFailed):
    """What a target answered is not passed on: it is too large, there is no memory for it, or it cannot be read though
    it may be an answer. Target and session go on: this request alone has failed. The text is for the client as well."""


def too_large(target: str, most: int) -> AnswerRefused:
    return AnswerRefused(target, f"its answer has more than {most} bytes (mcp.maxAnswerSize)")


class Congested(AnswerRefused):
    """There is no memory for an answer, but may be soon: other requests have it."""


async def take_memory(claim: Claim, size: int, target: str, late: ReadDeadline | None = None) -> None:
    """For `size` more bytes of an answer that is read whole, as soon as it is there; `late` waits as well. Raises
    `AnswerRefused`."""
    try:
        if size and not claim.takes(size * COPIES):
            with nullcontext() if late is None else late.paused():
                await claim.wait(size * COPIES)
    except NoMemory as error:
        raise (Congested if error.may_come else AnswerRefused)(target, str(error)) from None


def unreadable(target: str, error: Malformed) -> TargetFailed:
    failure = AnswerRefused if isinstance(error, Beyond) else TargetFailed
    return failure(target, f"its answer is not readable: {error}")


WRONG: Final = (CallFailed, EventTooLarge, Malformed)
"""What may be wrong with an answer that is read: it breaks off, is too large, or is no message."""


def wrong(target: str, most: int, error: Exception) -> TargetFailed:
    """One of `WRONG` as the failure of its target. `most`: bytes that are read."""
    if isinstance(error, Malformed):
        return unreadable(target, error)
    return too_large(target, most) if isinstance(error, EventTooLarge) else TargetFailed(target, str(error))


class Labelled(Protocol):
    """An endpoint."""

    @property
    def label(self) -> str: ...


class Answering(Protocol):
    """A call whose answer has begun."""

    @property
    def endpoint(self) -> Labelled | None:
        """Who answers; None: none that a session could be pinned to."""
        ...

    async def receive(self) -> bytes:
        """As `chain.calls.Call`."""
        ...

    def cancel(self) -> None: ...


class Opened(NamedTuple):
    """Its holder cancels the call in the end."""

    call: Answering
    answer: CallAnswer
    target: str
    """Its name."""
    until: float = FOR_EVER
    """When an answer that is read has to be there whole."""


class Deadline:
    """Ends a call whose server takes too long (`carriers.Sleeper`)."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.is_met = self.has_passed = False

    def wake(self, now: float) -> None:
        if not self.is_met:
            self.has_passed = True
            self._opened.call.cancel()


class ReadDeadline(Deadline):
    """Of an answer that is read. What it waits for memory is no time of its server."""

    def __init__(self, opened: Opened, calls: HttpCalls) -> None:
        super().__init__(opened)
        self._calls = calls
        self._until = opened.until
        self._is_paused = False
        if self._until != FOR_EVER:
            calls.wake_at(self._until, self)

    @contextmanager
    def paused(self) -> Iterator[None]:
        began = self._calls.clock()
        self._is_paused = True
        try:
            yield
        finally:
            self._is_paused = False
            self._until += self._calls.clock() - began

    def wake(self, now: float) -> None:
        if self.is_met or (now >= self._until and not self._is_paused):
            super().wake(now)
        else:
            self._calls.wake_at(max(self._until, now + PAUSE), self)


class Answers:
    """Those that are read for one request: each has its bound, and so have all of them."""

    def __init__(self, calls: HttpCalls, claim: Claim, most: int) -> None:
        """`most`: bytes of one answer."""
        self._calls = calls
        self._claim = claim
        self._most = most
        self._left = most * TOGETHER
        """Bytes."""

    async def read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message:
        """The response to a request, read whole, from JSON or a stream of events. Other messages of the stream are left
        out. Raises `TargetFailed`: for what is no answer to this request, for more bytes than are read of one answer,
        or of all of them, for one that is not there in time, and where there is no memory for it."""
        late = ReadDeadline(opened, self._calls)
        try:
            with self._claim.reading():
                return await self._read(opened, request_id, target, late)
        except WRONG as error:
            if late.has_passed and isinstance(error, CallFailed):
                raise TargetFailed(target, "its answer was not whole in time") from None
            raise wrong(target, self._most, error) from None
        finally:
            late.is_met = True

    async def _read(self, opened: Opened, request_id: messages.Id | None, target: str, late: ReadDeadline) -> Message:
        """Raises `TargetFailed` and `WRONG`."""
        counted = _Counted(self, opened.call, target, late)
        content_type = (opened.answer.head.get(b"content-type") or b"").lower()
        if not content_type.startswith(b"text/event-stream"):
            parts = []
            while data := await counted.receive():
                parts.append(data)
            return _answer(messages.read(b"".join(parts)), request_id, target)
        pump = EventPump(counted, self._most)
        while (event := await pump.event()) is not None:
            if not event.data:
                continue  # the first event of a stream that can be resumed is an id alone (MCP 2025-11-25)
            message = messages.read(event.data)
            if message.is_response and message.request_id == request_id:
                return message
        raise TargetFailed(target, "its stream ended without an answer")

    async def count(self, target: str, size: int, more: int, late: ReadDeadline) -> None:
        """`more` bytes of an answer have come, which has `size` with them. Raises `AnswerRefused`."""
        self._left -= more
        if size > self._most:
            raise too_large(target, self._most)
        if self._left < 0:
            raise AnswerRefused(target, f"all answers have more than {self._most * TOGETHER} bytes")
        await take_memory(self._claim, more, target, late)


class _Counted:
    """A call of which no more is read than `Answers` allow."""

    def __init__(self, answers: Answers, call: Answering, target: str, late: ReadDeadline) -> None:
        self._answers, self._call, self._target, self._late = answers, call, target, late
        self._size = 0

    async def receive(self) -> bytes:
        data = await self._call.receive()
        self._size += len(data)
        await self._answers.count(self._target, self._size, len(data), self._late)
        return data


def _answer(message: Message, request_id: messages.Id | None, target: str) -> Message:
    """The response to this request. An error may have no id: its server could not read the request."""
    if message.is_response and message.request_id is None:
        message.id = request_id
    if not message.is_response or message.request_id != request_id:
        raise TargetFailed(target, "it answered what was not asked")
    return message
