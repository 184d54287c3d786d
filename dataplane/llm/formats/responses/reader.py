"""Streams of Responses, read from a provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from dataplane.llm import chat, usage
from dataplane.llm.deltas import (
    PART_ENDED,
    Arguments,
    Began,
    Declined,
    Delta,
    Failed,
    Said,
    Signed,
    Stopped,
    Thought,
    ToolBegan,
)
from dataplane.llm.formats.reading import Raw, part, said
from dataplane.llm.formats.responses import answer
from dataplane.llm.formats.streaming import MALFORMED, JsonReader
from dataplane.llm.routes import Format


def reader() -> Reader:
    return Reader()


class Reader(JsonReader):
    def __init__(self) -> None:
        super().__init__()
        self._is_named = False
        self._kinds: set[type] = set()
        """Of parts so far, as far as they decide why it ended."""
        self._item: object = None
        """Index of the call of a tool that is under way."""
        self._has_arguments = self._has_thought = False
        self._rows: dict[str, Callable[[Raw], Iterable[Delta]]] = {
            "response.created": self._began,
            "response.in_progress": self._began,
            "response.output_item.added": self._added,
            "response.output_item.done": self._done,
            "response.output_text.delta": lambda e: [Said(said(e, "delta"))],
            "response.refusal.delta": self._declined,
            "response.reasoning_summary_text.delta": self._thought,
            "response.reasoning_text.delta": self._thought,
            "response.reasoning_summary_part.added": self._summary,
            "response.function_call_arguments.delta": self._arguments,
            "response.completed": self._stopped,
            "response.incomplete": self._stopped,
            "response.failed": self._failed,
            "error": self._error,
        }

    def event(self, found: Raw) -> Iterable[Delta]:
        row = self._rows.get(said(found, "type"))
        return row(found) if row is not None else ()

    def _began(self, found: Raw) -> Iterable[Delta]:
        if self._is_named:
            return ()
        self._is_named = True
        response = part(found, "response")
        return [Began(said(response, "id"), said(response, "model"), tier=said(response, "service_tier"))]

    def _added(self, found: Raw) -> Iterable[Delta]:
        item = part(found, "item")
        self._has_thought = False
        if item.get("type") != "function_call":
            return ()
        self._item, self._has_arguments = found.get("output_index"), False
        self._kinds.add(chat.ToolCall)
        return [ToolBegan(said(item, "call_id"), said(item, "name"))]

    def _arguments(self, found: Raw) -> Iterable[Delta]:
        if self._item is None or found.get("output_index") != self._item:
            return [self.failed("arguments of several tools are mixed", MALFORMED)]
        self._has_arguments = True
        return [Arguments(said(found, "delta"))]

    def _declined(self, found: Raw) -> Iterable[Delta]:
        self._kinds.add(chat.Refused)
        return [Declined(said(found, "delta"))]

    def _thought(self, found: Raw) -> Iterable[Delta]:
        self._has_thought = True
        return [Thought(said(found, "delta"))]

    def _summary(self, found: Raw) -> Iterable[Delta]:
        """Parts of a summary are paragraphs."""
        return [Thought("\n\n")] if self._has_thought else ()

    def _done(self, found: Raw) -> Iterable[Delta]:
        item = part(found, "item")
        if item.get("type") == "function_call":
            missed = said(item, "arguments") if self._item is not None and not self._has_arguments else ""
            self._item = None
            return [Arguments(missed), PART_ENDED] if missed else [PART_ENDED]
        if item.get("type") == "reasoning":
            signature, origin = answer.signature_of(item)
            return [Signed(signature, origin), PART_ENDED] if signature else [PART_ENDED]
        return [PART_ENDED]

    def _stopped(self, found: Raw) -> Iterable[Delta]:
        response = part(found, "response")
        report = usage.of_answer(Format.RESPONSES, response)
        return [*self._began(found), Stopped(answer.stop(response, self._kinds), report.usage, tier=report.tier)]

    def _failed(self, found: Raw) -> Iterable[Delta]:
        return [self._failure(part(part(found, "response"), "error"))]

    def _error(self, found: Raw) -> Iterable[Delta]:
        return [self._failure(part(found, "error") or found)]

    def _failure(self, error: Raw) -> Failed:
        code = said(error, "code")
        return self.failed(said(error, "message"), code, _STATUSES.get(code, 0))


_STATUSES: Final = {"rate_limit_exceeded": 429, "server_error": 500, "invalid_prompt": 400}
