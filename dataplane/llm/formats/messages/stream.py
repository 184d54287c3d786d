"""Streams of Messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dataplane.llm import usage
from dataplane.llm.chat import Asked, Origin, Stop
from dataplane.llm.deltas import (
    PART_ENDED,
    Arguments,
    Began,
    Declined,
    Delta,
    Failed,
    Hidden,
    PartEnded,
    Said,
    Signed,
    Stopped,
    Thought,
    ToolBegan,
)
from dataplane.llm.formats import signatures
from dataplane.llm.formats.messages import answer
from dataplane.llm.formats.messages.citations import with_sources
from dataplane.llm.formats.reading import Raw, encode, part, said, written
from dataplane.llm.formats.streaming import MALFORMED, JsonReader, Writer
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Usage

_OWN: Final = Origin.ANTHROPIC


def reader() -> Reader:
    return Reader()


def writer(asked: Asked) -> EventWriter:
    return EventWriter(asked)


class Reader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._stop = Stop.END
        self._sequence = ""
        self._usage: Usage = NO_USAGE
        self._tier = ""
        self._is_read = True
        """The block that is under way is of a kind that other formats have; before the first, what servers say that
        have no beginnings of blocks."""
        self._index: object = None
        """Of that block."""
        self._cited: list[Raw] = []
        self._input = ""
        """Arguments that stand in the beginning of a block, used where no piece of them follows."""
        self._rows = {
            "message_start": self._began,
            "content_block_start": self._block,
            "content_block_delta": self._piece,
            "content_block_stop": self._ended,
            "message_delta": self._stopping,
            "message_stop": self._stopped,
            "error": self._error,
        }

    def event(self, found: Raw) -> Iterable[Delta]:
        row = self._rows.get(said(found, "type"))
        return row(found) if row is not None else ()

    def _began(self, found: Raw) -> Iterable[Delta]:
        message = part(found, "message")
        report = usage.of_answer(Format.MESSAGES, message)
        self._usage, self._tier = report.usage, report.tier
        return [Began(said(message, "id"), report.model, report.usage, report.tier)]

    def _block(self, found: Raw) -> Iterable[Delta]:
        block = part(found, "content_block")
        kind = said(block, "type")
        self._is_read = kind in ("text", "thinking", "tool_use")
        self._index = found.get("index")
        self._cited = []
        if kind == "tool_use":
            self._input = written(block["input"]) if part(block, "input") else ""
            return [ToolBegan(said(block, "id"), said(block, "name"))]
        if kind == "redacted_thinking":
            return [Hidden(said(block, "data"), _OWN)]
        return [Said(said(block, "text"))] if kind == "text" and block.get("text") else ()

    def _piece(self, found: Raw) -> Iterable[Delta]:
        if not self._is_read:
            return ()
        delta = part(found, "delta")
        kind = delta.get("type")
        if kind == "text_delta":
            return [Said(said(delta, "text"))]
        if kind == "input_json_delta":
            if found.get("index") != self._index:
                return [self.failed("arguments of several tools are mixed", MALFORMED)]
            self._input = ""
            return [Arguments(said(delta, "partial_json"))] if delta.get("partial_json") else ()
        if kind == "thinking_delta":
            return [Thought(said(delta, "thinking"))]
        if kind == "signature_delta":
            return [Signed(said(delta, "signature"), _OWN)]
        if kind == "citations_delta" and len(self._cited) < _MANY:
            self._cited.append(part(delta, "citation"))
        return ()

    def _ended(self, found: Raw) -> Iterable[Delta]:
        if not self._is_read:
            return ()
        deltas: list[Delta] = []
        if self._input:
            deltas.append(Arguments(self._input))
            self._input = ""
        sources = with_sources(self._cited)
        if sources:
            deltas.append(Said(sources))
        self._is_read = False
        return [*deltas, PART_ENDED]

    def _stopping(self, found: Raw) -> Iterable[Delta]:
        delta = part(found, "delta")
        self._stop = answer.STOPS.get(said(delta, "stop_reason"), Stop.END)
        self._sequence = said(delta, "stop_sequence")
        self._usage = _later(usage.anthropic(part(found, "usage")), self._usage)
        return ()

    def _stopped(self, found: Raw) -> Iterable[Delta]:
        return [Stopped(self._stop, self._usage, self._sequence, self._tier)]

    def _error(self, found: Raw) -> Iterable[Delta]:
        error = part(found, "error")
        kind = said(error, "type")
        return [self.failed(said(error, "message"), kind, _STATUSES.get(kind, 0))]


_MANY: Final = 256
_STATUSES: Final = {"overloaded_error": 529, "rate_limit_error": 429, "invalid_request_error": 400, "api_error": 500}


def _later(last: Usage, first: Usage) -> Usage:
    """What the end says counts; what it leaves out stands from the beginning."""
    return last.over(first)


class EventWriter(Writer):
    form = Format.MESSAGES

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._index = -1
        self._open = ""
        """Type of the block that is under way; "": none is."""
        self._began = NO_USAGE
        self.rows = {
            Began: self._start,
            Said: lambda d: self._in("text", {"text": "", "citations": None}, {"type": "text_delta", "text": d.text}),
            Declined: lambda d: self._in(
                "text", {"text": "", "citations": None}, {"type": "text_delta", "text": d.text}
            ),
            Thought: lambda d: self._thought({"type": "thinking_delta", "thinking": d.text}),
            Signed: lambda d: self._thought(
                {"type": "signature_delta", "signature": signatures.write(d.signature, d.origin, _OWN)}
            ),
            Hidden: self._hidden,
            ToolBegan: self._tool,
            Arguments: lambda d: self._delta({"type": "input_json_delta", "partial_json": d.text}),
            PartEnded: lambda d: self._close(),
            Stopped: self._stopped,
            Failed: self.failure,
        }

    def _start(self, delta: Began) -> bytes:
        self._began = delta.usage
        message = {
            **answer.head(delta.id or self.asked.id, delta.model or self.asked.talk.model),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**answer.spent(delta.usage), **answer.tier(delta.tier)},
        }
        return _event("message_start", message=message) + _event("ping")

    def _in(self, kind: str, beginning: Raw, delta: Raw) -> bytes:
        """A piece, in a block of its kind: the one that is under way, or a new one."""
        if self._open == kind:
            return self._delta(delta)
        return self._begin(kind, beginning) + self._delta(delta)

    def _thought(self, delta: Raw) -> bytes:
        return self._in("thinking", {"thinking": "", "signature": ""}, delta)

    def _begin(self, kind: str, beginning: Raw) -> bytes:
        closed = self._close()
        self._index += 1
        self._open = kind
        block = {"type": kind, **beginning}
        return closed + _event("content_block_start", index=self._index, content_block=block)

    def _hidden(self, delta: Hidden) -> bytes:
        data = signatures.write(delta.data, delta.origin, _OWN)
        return self._begin("redacted_thinking", {"data": data}) + self._close()

    def _tool(self, delta: ToolBegan) -> bytes:
        return self._begin("tool_use", {"id": delta.id, "name": delta.name, "input": {}})

    def _delta(self, delta: Raw) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _close(self) -> bytes:
        if not self._open:
            return b""
        self._open = ""
        return _event("content_block_stop", index=self._index)

    def _stopped(self, delta: Stopped) -> bytes:
        ending = {"stop_reason": answer.REASONS[delta.stop], "stop_sequence": delta.sequence or None}
        spent = answer.spent(delta.usage.over(self._began))
        return self._close() + _event("message_delta", delta=ending, usage=spent) + _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), encode({"type": kind, **fields}))
