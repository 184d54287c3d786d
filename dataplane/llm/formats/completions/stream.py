"""Streams of Chat Completions. Chunks of other choices than the first are passed over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dataplane.llm import usage
from dataplane.llm.chat import Stop
from dataplane.llm.deltas import (
    Arguments,
    Began,
    Declined,
    Delta,
    Failed,
    Said,
    Stopped,
    Thought,
    ToolBegan,
)
from dataplane.llm.formats.completions import answer
from dataplane.llm.formats.reading import Raw, dicts, encode, part, put, said
from dataplane.llm.formats.streaming import MALFORMED, JsonReader, Writer
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Usage

if TYPE_CHECKING:
    from dataplane.llm.chat import Asked

DONE: Final = b"data: [DONE]\n\n"


def reader() -> Reader:
    return Reader()


def writer(asked: Asked) -> ChunkWriter:
    return ChunkWriter(asked)


class Reader(JsonReader):
    """The end is a `finish_reason`; what the answer cost comes behind it, then `[DONE]`."""

    def __init__(self) -> None:
        super().__init__()
        self._is_named = False
        self._stop: Stop | None = None
        self._usage: Usage = NO_USAGE
        self._tier = ""
        self._index = -1
        """Of the call of a tool that is under way."""
        self._call = ""
        """Its id."""
        self._waiting: dict[int, str] = {}
        """Arguments of calls that have no name yet."""
        self._calls = 0

    def event(self, found: Raw) -> Iterable[Delta]:
        error = found.get("error")
        if error:
            fields = error if type(error) is dict else {"message": error}
            status = fields.get("code")
            return [self.failed(said(fields, "message"), said(fields, "type"), status if type(status) is int else 0)]
        if found.get("usage"):
            report = usage.of_answer(Format.COMPLETIONS, found)
            self._usage = report.usage.over(self._usage)
            self._tier = report.tier or self._tier
        deltas: list[Delta] = []
        if not self._is_named:
            self._is_named = True
            deltas.append(Began(said(found, "id"), said(found, "model"), tier=said(found, "service_tier")))
        choice = next((each for each in dicts(found.get("choices")) if not each.get("index")), None)
        if choice is not None:
            self._choice(choice, deltas)
        return deltas

    def _choice(self, choice: Raw, deltas: list[Delta]) -> None:
        delta = part(choice, "delta")
        for name in answer.THOUGHTS:
            if said(delta, name):
                deltas.append(Thought(said(delta, name)))
                break
        if said(delta, "content"):
            deltas.append(Said(said(delta, "content")))
        if said(delta, "refusal"):
            deltas.append(Declined(said(delta, "refusal")))
        for call in dicts(delta.get("tool_calls")):
            self._tool(call, deltas)
        reason = said(choice, "finish_reason")
        if reason:
            self._stop = answer.stop(reason, self._calls > 0)

    def _tool(self, call: Raw, deltas: list[Delta]) -> None:
        """A piece with a new index, or an id of its own where a server counts none, is the next call."""
        function = part(call, "function")
        index, name, call_id = call.get("index"), said(function, "name"), said(call, "id")
        index = index if type(index) is int else max(self._index, 0)
        arguments = self._waiting.pop(index, "") + said(function, "arguments")
        is_new = index != self._index or (call_id and name and call_id != self._call)
        if not is_new:
            if arguments:
                deltas.append(Arguments(arguments))
        elif index < self._index:
            deltas.append(self.failed("arguments of several tools are mixed", MALFORMED))
        elif not name:
            if len(self._waiting) >= _MANY or len(arguments) > _MUCH:
                deltas.append(self.failed("a call of a tool has no name", MALFORMED))
            self._waiting[index] = arguments
        else:
            self._index, self._call = index, call_id
            deltas.append(ToolBegan(call_id or f"call_{self._calls}", name))
            self._calls += 1
            if arguments:
                deltas.append(Arguments(arguments))

    def done(self) -> Iterable[Delta]:
        """`[DONE]`, or nothing more comes."""
        if self._stop is None:
            return [self.broken()]
        return [Stopped(self._stop, self._usage, tier=self._tier)]


_MANY: Final = 16
_MUCH: Final = 65_536


class ChunkWriter(Writer):
    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._base: Raw = {}
        self._tool = -1
        self._began = NO_USAGE
        self.rows = {
            Began: self._start,
            Said: lambda d: self._chunk({"content": d.text}),
            Declined: lambda d: self._chunk({"refusal": d.text}),
            Thought: lambda d: self._chunk({"reasoning_content": d.text}),
            ToolBegan: self._tool_began,
            Arguments: lambda d: self._called({"function": {"arguments": d.text}}),
            Stopped: self._stopped,
            Failed: self.failure,
        }

    def _start(self, delta: Began) -> bytes:
        asked = self.asked
        self._began = delta.usage
        self._base = {
            "id": delta.id or asked.id,
            "object": "chat.completion.chunk",
            "created": asked.created,
            "model": delta.model or asked.talk.model,
        }
        put(self._base, service_tier=answer.tier(delta.tier))
        return self._chunk({"role": "assistant", "content": "", "refusal": None})

    def _chunk(self, delta: Raw, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _event({**self._base, "choices": [choice]})

    def _tool_began(self, delta: ToolBegan) -> bytes:
        self._tool += 1
        return self._called({"id": delta.id, "type": "function", "function": {"name": delta.name, "arguments": ""}})

    def _called(self, call: Raw) -> bytes:
        return self._chunk({"tool_calls": [{"index": self._tool, **call}]})

    def _stopped(self, delta: Stopped) -> bytes:
        found = self._chunk({}, answer.REASONS[delta.stop])
        if self.asked.talk.wants_usage:
            spent = answer.spent(delta.usage.over(self._began))
            found += _event({**self._base, "choices": [], "usage": spent})
        return found + DONE


def _event(found: Raw) -> bytes:
    return b"data: %b\n\n" % encode(found)
