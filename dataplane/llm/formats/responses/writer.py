"""Streams of Responses, written for a client. Its events repeat what came: texts and items are kept to the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dataplane.llm.chat import Asked, Failure, Origin
from dataplane.llm.deltas import (
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
from dataplane.llm.formats.reading import Raw, encode
from dataplane.llm.formats.responses import answer
from dataplane.llm.formats.streaming import Writer
from dataplane.llm.routes import Format
from dataplane.llm.usage import NO_USAGE

MAX_KEPT: Final = 4_194_304
"""Characters of an answer that are kept to be repeated; a stream with more of them ends with an error."""
KEPT_OF_ITEM: Final = 1_024
"""What each item counts beside its characters."""
_BAD_GATEWAY: Final = 502
_TOO_LARGE: Final = Failed(Failure(_BAD_GATEWAY, "the answer is too large to be translated", "too_large"))


def writer(asked: Asked) -> EventWriter:
    return EventWriter(asked)


class EventWriter(Writer):
    form = Format.RESPONSES

    def __init__(self, asked: Asked) -> None:
        super().__init__(asked)
        self._number = 0
        self._base: Raw = {}
        self._items: list[Raw] = []
        """Those that are complete."""
        self._open = ""
        """Kind of the item that is under way; "": none is."""
        self._texts: list[str] = []
        """Of that item."""
        self._kept = 0
        self._signature: tuple[str, Origin] = ("", Origin.UNSIGNED)
        self._call = ("", "")
        self._began = NO_USAGE
        self._is_over = False
        self.rows = {
            Began: self._start,
            Said: lambda d: self._piece("output_text", d.text),
            Declined: lambda d: self._piece("refusal", d.text),
            Thought: self._thought,
            Signed: self._signed,
            Hidden: self._hidden,
            ToolBegan: self._tool,
            Arguments: self._arguments,
            PartEnded: lambda d: self._close(),
            Stopped: self._stopped,
            Failed: self._failed,
        }

    def give(self, deltas: Iterable[Delta]) -> bytes:
        found = []
        for each in deltas:
            if self._is_over:
                break
            self._kept += sum(len(value) for value in each if isinstance(value, str))
            if self._kept > MAX_KEPT:
                found.append(self._failed(_TOO_LARGE))
                break
            found.append(self.rows[type(each)](each))
        return b"".join(found)

    def number(self) -> int:
        return self._number

    def _event(self, kind: str, **fields: object) -> bytes:
        found = encode({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), found)

    def _of_item(self, kind: str, **fields: object) -> bytes:
        return self._event(kind, item_id=self._id(), output_index=len(self._items), **fields)

    def _id(self) -> str:
        return answer.item_id(self._base["id"], len(self._items))

    # --- beginning and end

    def _start(self, delta: Began) -> bytes:
        self._began = delta.usage
        self._base = answer.response(delta.id or self.asked.id, delta.model, self.asked, [])
        return self._event("response.created", response=self._base) + self._event(
            "response.in_progress", response=self._base
        )

    def _stopped(self, delta: Stopped) -> bytes:
        closed = self._close()
        end = answer.ending(delta.stop, self._items)
        spent = answer.spent(delta.usage.over(self._began))
        whole = {**self._base, "output": self._items, **end, **answer.tier(delta.tier), "usage": spent}
        self._is_over = True
        return closed + self._event(f"response.{end['status']}", response=whole)

    def _failed(self, delta: Failed) -> bytes:
        self._is_over = True
        return self.failure(delta)

    # --- items

    def _begin(self, kind: str, item: Raw) -> bytes:
        self._open, self._texts = kind, []
        self._kept += KEPT_OF_ITEM
        return self._event("response.output_item.added", output_index=len(self._items), item=item)

    def _delta(self, kind: str, text: str, **fields: object) -> bytes:
        self._texts.append(text)
        return self._of_item(kind, delta=text, **fields)

    def _piece(self, kind: str, text: str) -> bytes:
        """Of a message's one part."""
        given = b""
        if self._open != kind:
            given = self._close()
            given += self._begin(kind, answer.message(self._id(), [], "in_progress"))
            given += self._of_item("response.content_part.added", content_index=0, part=_PARTS[kind](""))
        extra: Raw = {"logprobs": []} if kind == "output_text" else {}
        return given + self._delta(f"response.{kind}.delta", text, content_index=0, **extra)

    def _reasoning(self) -> bytes:
        """Begin a thought, where none is under way."""
        if self._open == "reasoning":
            return b""
        closed = self._close()
        return closed + self._begin("reasoning", answer.reasoning(self._id(), "", "", Origin.UNSIGNED))

    def _thought(self, delta: Thought) -> bytes:
        given = self._reasoning()
        if not self._texts:
            part = {"type": "summary_text", "text": ""}
            given += self._of_item("response.reasoning_summary_part.added", summary_index=0, part=part)
        return given + self._delta("response.reasoning_summary_text.delta", delta.text, summary_index=0)

    def _signed(self, delta: Signed) -> bytes:
        given = self._reasoning()
        self._signature = (self._signature[0] + delta.signature, delta.origin)
        return given

    def _hidden(self, delta: Hidden) -> bytes:
        closed = self._close()
        item = answer.reasoning(self._id(), "", delta.data, delta.origin, True)
        return closed + self._begin("reasoning", item) + self._item_done(item)

    def _tool(self, delta: ToolBegan) -> bytes:
        closed = self._close()
        self._call = (delta.id, delta.name)
        return closed + self._begin("call", answer.call(self._id(), delta.id, delta.name, "", "in_progress"))

    def _arguments(self, delta: Arguments) -> bytes:
        return self._delta("response.function_call_arguments.delta", delta.text)

    # --- their ends

    def _close(self) -> bytes:
        kind = self._open
        if not kind:
            return b""
        text = "".join(self._texts)
        if kind == "reasoning":
            return self._thought_done(text)
        if kind == "call":
            arguments = text or "{}"
            done = self._of_item("response.function_call_arguments.done", name=self._call[1], arguments=arguments)
            return done + self._item_done(answer.call(self._id(), *self._call, arguments))
        part = _PARTS[kind](text)
        said: Raw = {"text": text, "logprobs": []} if kind == "output_text" else {"refusal": text}
        done = self._of_item(f"response.{kind}.done", content_index=0, **said)
        done += self._of_item("response.content_part.done", content_index=0, part=part)
        return done + self._item_done(answer.message(self._id(), [part]))

    def _thought_done(self, text: str) -> bytes:
        done = b""
        if self._texts:
            done += self._of_item("response.reasoning_summary_text.done", summary_index=0, text=text)
            part = {"type": "summary_text", "text": text}
            done += self._of_item("response.reasoning_summary_part.done", summary_index=0, part=part)
        item = answer.reasoning(self._id(), text, *self._signature)
        self._signature = ("", Origin.UNSIGNED)
        return done + self._item_done(item)

    def _item_done(self, item: Raw) -> bytes:
        done = self._event("response.output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)
        self._open = ""
        return done


_PARTS: Final = {"output_text": answer.output_text, "refusal": answer.refusal}
