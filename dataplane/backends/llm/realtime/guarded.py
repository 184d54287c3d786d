"""Answers of a realtime session on their way through guards: text by text, as on other streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dataplane.backends.llm.guarded_streams import GuardedStream
from dataplane.http.websocket import TEXT, frame
from dataplane.llm import realtime, stream_texts
from dataplane.llm.routes import Format

if TYPE_CHECKING:
    from dataplane.guards.judging import Judge
    from dataplane.llm.stream_texts import Event


class GuardedMessages(GuardedStream):
    """Events are messages of a WebSocket."""

    def __init__(self, judge: Judge) -> None:
        super().__init__(Format.REALTIME, judge, judge.guards.response[0])

    async def go_on(self, event: Event, raw: bytes) -> bytes:
        """What goes on of an event now, and of those before it. Raises `Rejected`."""
        return raw if stream_texts.says_nothing(event) else await self.judged(event, raw)

    def added(self, event: Event) -> bytes:
        return self.written(b"", {**event, "event_id": realtime.new_id()})

    def written(self, raw: bytes, event: Event) -> bytes:
        return frame(TEXT, msgspec.json.encode(event), False)

    def drop(self, response: str) -> None:
        """Nothing of a response is to be given any more."""
        for key in [key for key in self._tracks if key[stream_texts.RESPONSE] == response]:
            del self._tracks[key]
