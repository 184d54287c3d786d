"""OpenAI's realtime API, by the environment of the SDKs (`llm-python`): it takes events by the types that `openai`
publishes, and answers by theirs. `loopback/test_llm_realtime_sdk` starts it. It prints its port; `GET /seen` has what
was wrong with what it got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from aiohttp import WSMsgType, web
from llm_sdk_provider import KEY, TEXT, WORDS, problems
from openai.types.realtime import RealtimeServerEvent
from openai.types.realtime.realtime_client_event_param import RealtimeClientEventParam
from pydantic import TypeAdapter
from web_apps import serve_until_left

Event = dict[str, Any]
ASKED: TypeAdapter[Any] = TypeAdapter(RealtimeClientEventParam)
ANSWERED: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
USAGE = {
    "total_tokens": 15,
    "input_tokens": 10,
    "output_tokens": 5,
    "input_token_details": {"text_tokens": 10, "audio_tokens": 0, "cached_tokens": 3},
    "output_token_details": {"text_tokens": 5, "audio_tokens": 0},
}


class Provider:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "wrong key", "code": "invalid_api_key"}}, status=401)
        socket = web.WebSocketResponse(protocols=("realtime",), compress=False)
        await socket.prepare(request)
        talk = Talk(request.query["model"])
        await self.say(socket, talk.session("session.created"))
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                event = json.loads(message.data)
                wrong = problems(ASKED, event)
                self.seen.append({"model": talk.model, "type": event.get("type"), "problems": wrong})
                for answer in talk.answers(event):
                    await self.say(socket, answer)
        return socket

    @staticmethod
    async def say(socket: web.WebSocketResponse, event: Event) -> None:
        ANSWERED.validate_python(event)
        await socket.send_str(json.dumps(event))

    async def report(self, _: web.Request) -> web.Response:
        seen, self.seen = self.seen, []
        return web.json_response(seen)


class Talk:
    """One session."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._number = 0

    def _event(self, kind: str, **fields: Any) -> Event:
        self._number += 1
        return {"type": kind, "event_id": f"event_{self._number}", **fields}

    def session(self, kind: str) -> Event:
        return self._event(kind, session={"type": "realtime", "model": self.model, "output_modalities": ["text"]})

    def answers(self, event: Event) -> Iterator[Event]:
        kind = event["type"]
        if kind == "session.update":
            yield self.session("session.updated")
        elif kind == "conversation.item.create":
            item = {"id": "item_user", "object": "realtime.item", "status": "completed", **event["item"]}
            yield self._event("conversation.item.added", item=item, previous_item_id=None)
            yield self._event("conversation.item.done", item=item, previous_item_id=None)
        elif kind == "response.create":
            yield from self._response()

    def _response(self) -> Iterator[Event]:
        made = {"id": "resp_1", "object": "realtime.response", "output_modalities": ["text"]}
        at = {"response_id": "resp_1", "output_index": 0}
        part = {**at, "item_id": "item_1", "content_index": 0}
        item = {"id": "item_1", "object": "realtime.item", "type": "message", "role": "assistant"}
        whole = {**item, "status": "completed", "content": [{"type": "output_text", "text": TEXT}]}
        yield self._event("response.created", response={**made, "status": "in_progress", "output": []})
        yield self._event("response.output_item.added", **at, item={**item, "status": "in_progress", "content": []})
        yield self._event("response.content_part.added", **part, part={"type": "text", "text": ""})
        for word in WORDS:
            yield self._event("response.output_text.delta", **part, delta=word)
        yield self._event("response.output_text.done", **part, text=TEXT)
        yield self._event("response.content_part.done", **part, part={"type": "text", "text": TEXT})
        yield self._event("response.output_item.done", **at, item=whole)
        yield self._event("response.done", response={**made, "status": "completed", "output": [whole], "usage": USAGE})


async def main() -> None:
    provider, app = Provider(), web.Application()
    app.router.add_get("/v1/realtime", provider.serve)
    app.router.add_get("/seen", provider.report)
    await serve_until_left(app)


if __name__ == "__main__":
    asyncio.run(main())
