"""What a stream says, piece by piece, in no provider's format; and what it comes to. Pure.

Laws: `Began` is first; parts come one after the other; a part ends by `PartEnded`, by a piece of another kind, or by
the next `ToolBegan`; exactly one `Stopped` or `Failed` is last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from dataplane.llm.chat import Answer, Failure, Origin, Part, Refused, Stop, Text, Thinking, ToolCall
from dataplane.llm.usage import NO_USAGE, Usage


class Began(NamedTuple):
    """`usage`: what is known of it at the beginning: some providers report the input then."""

    id: str
    model: str
    usage: Usage = NO_USAGE
    tier: str = ""


class Said(NamedTuple):
    text: str


class Declined(NamedTuple):
    text: str


class Thought(NamedTuple):
    text: str


class Signed(NamedTuple):
    """Of the thought that is under way, or of one that is not shown."""

    signature: str
    origin: Origin


class Hidden(NamedTuple):
    """A whole redacted thought."""

    data: str
    origin: Origin


class ToolBegan(NamedTuple):
    id: str
    name: str


class Arguments(NamedTuple):
    text: str


class PartEnded(NamedTuple):
    pass


class Stopped(NamedTuple):
    stop: Stop
    usage: Usage = NO_USAGE
    sequence: str = ""
    tier: str = ""


class Failed(NamedTuple):
    failure: Failure


Delta: TypeAlias = (
    "Began | Said | Declined | Thought | Signed | Hidden | ToolBegan | Arguments | PartEnded | Stopped | Failed"
)
PART_ENDED = PartEnded()


class Sum:
    """What deltas come to."""

    def __init__(self) -> None:
        self.id = self.model = self.tier = ""
        self.parts: list[Part] = []
        self.stopped: Stopped | None = None
        self.failed: Failure | None = None
        self._began = NO_USAGE
        self._is_open = False

    def add(self, deltas: Iterable[Delta]) -> None:
        for each in deltas:
            self._add(each)

    def _add(self, delta: Delta) -> None:
        match delta:
            case Began():
                self.id, self.model, self._began = delta.id, delta.model, delta.usage
                self.tier = delta.tier
            case Said():
                self._text(Text(delta.text))
            case Declined():
                self._text(Refused(delta.text))
            case Thought() | Signed():
                self._thought(delta)
            case Hidden():
                self.parts.append(Thinking("", delta.data, delta.origin, True))
                self._is_open = False
            case ToolBegan():
                self.parts.append(ToolCall(delta.id, delta.name, ""))
                self._is_open = True
            case Arguments():
                last = self.parts[-1]
                assert isinstance(last, ToolCall)  # the law
                self.parts[-1] = ToolCall(last.id, last.name, last.arguments + delta.text)
            case PartEnded():
                self._is_open = False
            case Stopped():
                self.stopped = delta
            case Failed():
                self.failed = delta.failure

    def _text(self, piece: Text | Refused) -> None:
        last = self.parts[-1] if self.parts and self._is_open else None
        if isinstance(last, type(piece)):
            self.parts[-1] = type(piece)(last.text + piece.text)
        else:
            self.parts.append(piece)
        self._is_open = True

    def _thought(self, piece: Thought | Signed) -> None:
        last = self.parts[-1] if self.parts and self._is_open else None
        if not isinstance(last, Thinking):
            last = Thinking("")
            self.parts.append(last)
        if isinstance(piece, Thought):
            self.parts[-1] = Thinking(last.text + piece.text, last.signature, last.origin)
        else:
            self.parts[-1] = Thinking(last.text, last.signature + piece.signature, piece.origin)
        self._is_open = True

    def answer(self) -> Answer:
        """Of a stream that has stopped."""
        stopped = self.stopped
        assert stopped is not None
        usage = stopped.usage.over(self._began)
        return Answer(
            self.id, self.model, tuple(self.parts), stopped.stop, stopped.sequence, usage, stopped.tier or self.tier
        )
