"""Streams of generateContent (`alt=sse`): each event is an answer with the next parts; a reason to end is in the
last."""

from __future__ import annotations

from collections.abc import Iterable

from dataplane.llm import usage
from dataplane.llm.chat import Origin, Stop
from dataplane.llm.deltas import PART_ENDED, Arguments, Began, Delta, Said, Signed, Stopped, Thought, ToolBegan
from dataplane.llm.formats.gemini import answer
from dataplane.llm.formats.reading import Raw, dicts, part, said, written
from dataplane.llm.formats.streaming import JsonReader
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE, Usage


def reader() -> Reader:
    return Reader()


class Reader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._is_named = False
        self._id = ""
        self._stop: Stop | None = None
        self._usage: Usage = NO_USAGE
        self._parts = self._calls = 0

    def event(self, found: Raw) -> Iterable[Delta]:
        error = part(found, "error")
        if error:
            code = error.get("code")
            return [self.failed(said(error, "message"), said(error, "status"), code if type(code) is int else 0)]
        report = usage.of_answer(Format.GENERATE_CONTENT, found)
        self._usage = report.usage.over(self._usage)
        deltas: list[Delta] = []
        if not self._is_named:
            self._is_named, self._id = True, said(found, "responseId")
            deltas.append(Began(self._id, report.model))
        candidate = next(dicts(found.get("candidates")), {})
        for each in dicts(part(candidate, "content").get("parts")):
            deltas += self._part(each)
            self._parts += 1
        if candidate.get("finishReason") or answer.blocked(found):
            self._stop = answer.stop(found, candidate, self._calls > 0)
        return deltas

    def _part(self, found: Raw) -> Iterable[Delta]:
        text, signature, call = said(found, "text"), said(found, "thoughtSignature"), part(found, "functionCall")
        if text and found.get("thought") is True:
            yield Thought(text)
        if signature:
            yield Signed(signature, Origin.GOOGLE)
        if call:
            self._calls += 1
            yield ToolBegan(answer.call_id(call, self._id, self._parts), said(call, "name"))
            yield Arguments(written(part(call, "args")))
            yield PART_ENDED
        elif text and found.get("thought") is not True:
            yield Said(text)

    def done(self) -> Iterable[Delta]:
        return [self.broken()] if self._stop is None else [Stopped(self._stop, self._usage)]
