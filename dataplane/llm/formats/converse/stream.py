"""Streams of Converse: messages of AWS's event stream (`aws_events`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dataplane.llm import usage
from dataplane.llm.aws_events import Frame, Frames, NoFrame
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.deltas import PART_ENDED, Arguments, Began, Delta, Hidden, Said, Signed, Stopped, Thought, ToolBegan
from dataplane.llm.formats.converse import answer
from dataplane.llm.formats.reading import Raw, part, said
from dataplane.llm.formats.streaming import MALFORMED, Reading
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Usage

STATUSES: Final = {
    "internalServerException": 500,
    "modelStreamErrorException": 424,
    "validationException": 400,
    "throttlingException": 429,
    "serviceUnavailableException": 503,
}


def failure(frame: Frame) -> tuple[int, str]:
    """Status (0: none that is known) and message of a message that is no event."""
    found = usage.parsed(frame.payload)
    values = found if type(found) is dict else {}
    text = said(values, "message") or said(values, "originalMessage") or frame.said or frame.name
    return STATUSES.get(frame.name, 0), text


def reader() -> Reader:
    return Reader()


class Reader(Reading):
    """The end is `messageStop`; what it cost comes behind it."""

    def __init__(self) -> None:
        super().__init__()
        self._frames = Frames()
        self._stop: Stop | None = None
        self._usage: Usage = NO_USAGE
        self._index: object = None
        """Of the block that has begun last."""
        self._rows: dict[str, Callable[[Raw], Iterable[Delta]]] = {
            "messageStart": lambda e: [Began("", "")],
            "contentBlockStart": self._block,
            "contentBlockDelta": self._piece,
            "contentBlockStop": lambda e: [PART_ENDED],
            "messageStop": self._stopping,
            "metadata": self._metadata,
        }

    def feed(self, data: bytes) -> list[Delta]:
        found: list[Delta] = []
        if self.is_over:
            return found
        try:
            for frame in self._frames.feed(data):
                found += self._taken(self._frame(frame))
                if self.is_over:
                    break
        except NoFrame as error:
            found += self._taken([self.failed(str(error), MALFORMED)])
        return found

    def _frame(self, frame: Frame) -> Iterable[Delta]:
        if frame.kind != "event":
            status, message = failure(frame)
            return [self.failed(message, frame.name, status)]
        row = self._rows.get(frame.name)
        return self._object(frame.payload, row) if row is not None else ()

    def _block(self, found: Raw) -> Iterable[Delta]:
        call = part(part(found, "start"), "toolUse")
        self._index = found.get("contentBlockIndex")
        return [ToolBegan(said(call, "toolUseId"), said(call, "name"))] if call else ()

    def _piece(self, found: Raw) -> Iterable[Delta]:
        delta = part(found, "delta")
        if delta.get("text"):
            return [Said(said(delta, "text"))]
        if part(delta, "toolUse"):
            if found.get("contentBlockIndex") != self._index:
                return [self.failed("arguments of several tools are mixed", MALFORMED)]
            return [Arguments(said(part(delta, "toolUse"), "input"))]
        thought = part(delta, "reasoningContent")
        if thought.get("text"):
            return [Thought(said(thought, "text"))]
        if thought.get("signature"):
            return [Signed(said(thought, "signature"), Origin.ANTHROPIC)]
        return [Hidden(said(thought, "redactedContent"), Origin.ANTHROPIC)] if thought.get("redactedContent") else ()

    def _stopping(self, found: Raw) -> Iterable[Delta]:
        self._stop = answer.STOPS.get(said(found, "stopReason"), Stop.END)
        return ()

    def _metadata(self, found: Raw) -> Iterable[Delta]:
        self._usage = usage.of_answer(Format.CONVERSE, found).usage
        return self.done()

    def done(self) -> Iterable[Delta]:
        return [self.broken()] if self._stop is None else [Stopped(self._stop, self._usage)]
