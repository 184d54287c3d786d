"""Answers of servers, as they come, and read whole: bounded in size and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from dataplane.chain.calls import FOR_EVER, CallFailed
from dataplane.http.sse import Aside, Event, EventReader, EventTooLarge
from dataplane.mcp import messages
from dataplane.mcp.messages import Beyond, Malformed, Message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from dataplane.chain.calls import CallAnswer
    from dataplane.upstream.calls import HttpCalls

WhatT = TypeVar("WhatT")

TOGETHER: Final = 4
"""Answers of the largest size that are read for one request."""


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
    """What a target answered is not passed on: it is too large, or cannot be read though it may be an answer. Target
    and session go on: this request alone has failed. The text is for the client as well."""


def too_large(target: str, most: int) -> AnswerRefused:
    return AnswerRefused(target, f"its answer has more than {most} bytes (mcp.maxAnswerSize)")


def unreadable(target: str, error: Malformed) -> TargetFailed:
    failure = AnswerRefused if isinstance(error, Beyond) else TargetFailed
    return failure(target, f"its answer is not readable: {error}")


class Labelled(Protocol):
    """An endpoint."""

    @property
    def label(self) -> str: ...


class Answering(Protocol):
    """A call whose answer has begun."""

    @property
    def endpoint(self) -> Labelled | None:
        """Who answers; None: nobody that a session could be pinned to."""
        ...

    async def receive(self) -> bytes:
        """As `chain.calls.Call`."""
        ...

    def cancel(self) -> None: ...


class Opened(NamedTuple):
    """Whoever has it cancels the call in the end."""

    call: Answering
    answer: CallAnswer
    target: str
    """Its name."""
    until: float = FOR_EVER
    """When an answer that is read has to be there whole."""


SLICE: Final = 16_384
"""Bytes of events that are looked at in one turn of the loop: thousands of them may be there at once."""
MANY: Final = 64
"""Events of them: rules may be asked about each."""


def events(reader: EventReader, data: bytes) -> AsyncIterator[Event]:
    """Events that end in `data`, in slices. Raises `EventTooLarge`."""
    return _sliced(reader.feed, data)


def everything(reader: EventReader, data: bytes) -> AsyncIterator[Event | Aside]:
    """The same with what is beside them: comments, by which servers keep a stream alive, and blocks without data."""
    return _sliced(reader.feed_all, data)


async def _sliced(feed: Callable[[bytes], list[WhatT]], data: bytes) -> AsyncIterator[WhatT]:
    for start in range(0, len(data), SLICE):
        for count, each in enumerate(feed(data[start : start + SLICE]), 1):
            yield each
            if not count % MANY:
                await asyncio.sleep(0)
        if len(data) > SLICE:
            await asyncio.sleep(0)


class Deadline:
    """Ends a call whose server takes too long (`carriers.Sleeper`)."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self.is_met = self.has_passed = False

    def wake(self, now: float) -> None:
        if not self.is_met:
            self.has_passed = True
            self._opened.call.cancel()


class Answers:
    """Those that are read for one request: each has its bound, and so have all of them."""

    def __init__(self, calls: HttpCalls, most: int) -> None:
        """`most`: bytes of one answer."""
        self._calls = calls
        self._most = most
        self._left = most * TOGETHER
        """Bytes."""

    async def read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message:
        """The response to a request, read whole, from JSON or a stream of events. Other messages of the stream are left
        out. Raises `TargetFailed`: for what is no answer to this request, for more bytes than are read of one answer,
        or of all of them, and for one that is not there in time."""
        late = Deadline(opened)
        if opened.until != FOR_EVER:
            self._calls.wake_at(opened.until, late)
        try:
            return await self._read(opened, request_id, target)
        except CallFailed as error:
            raise TargetFailed(target, "its answer was not whole in time" if late.has_passed else str(error)) from None
        except EventTooLarge:
            raise too_large(target, self._most) from None
        except Malformed as error:
            raise unreadable(target, error) from None
        finally:
            late.is_met = True

    async def _read(self, opened: Opened, request_id: messages.Id | None, target: str) -> Message:
        """Raises `TargetFailed`, `CallFailed`, `Malformed`, `EventTooLarge`."""
        content_type = (opened.answer.head.get(b"content-type") or b"").lower()
        is_stream = content_type.startswith(b"text/event-stream")
        reader, parts, size = EventReader(self._most), [], 0
        while data := await opened.call.receive():
            size += len(data)
            self._left -= len(data)
            if size > self._most:
                raise too_large(target, self._most)
            if self._left < 0:
                raise AnswerRefused(target, f"all answers have more than {self._most * TOGETHER} bytes")
            if not is_stream:
                parts.append(data)
                continue
            async for event in events(reader, data):
                if not event.data:
                    continue  # the first event of a stream that can be resumed is an id alone (MCP 2025-11-25)
                message = messages.read(event.data)
                if message.is_response and message.request_id == request_id:
                    return message
        if is_stream:
            raise TargetFailed(target, "its stream ended without an answer")
        return _answer(messages.read(b"".join(parts)), request_id, target)


def _answer(message: Message, request_id: messages.Id | None, target: str) -> Message:
    """The response to this request. An error may have no id: its server could not read the request."""
    if message.is_response and message.request_id is None:
        message.id = request_id
    if not message.is_response or message.request_id != request_id:
        raise TargetFailed(target, "it answered what was not asked")
    return message
