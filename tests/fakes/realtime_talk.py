"""Realtime sessions in a proxy in memory: the client and the provider are `websockets` without its sockets."""

from __future__ import annotations

import json
from typing import Any

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from tests.fakes.llm_toys import text
from tests.fakes.memory_proxy import MemoryProxy

CUSTOM = "custom: {formats: [{type: Realtime}]}, host: 127.0.0.1, port: 9001"
PATH = "/v1/realtime?model=gpt-realtime"
USAGE = {
    "total_tokens": 30,
    "input_tokens": 20,
    "output_tokens": 10,
    "input_token_details": {
        "text_tokens": 5,
        "audio_tokens": 15,
        "cached_tokens": 8,
        "cached_tokens_details": {"text_tokens": 2, "audio_tokens": 6},
    },
    "output_token_details": {"text_tokens": 4, "audio_tokens": 6},
}
Event = dict[str, Any]


def config(policy: str = "", policies: str = "", provider: str = CUSTOM) -> str:
    return text(provider, policy, policies)


def done(number: int = 1, usage: object = USAGE, output: tuple[Event, ...] = ()) -> Event:
    response = {"id": f"r{number}", "object": "realtime.response", "status": "completed", "usage": usage}
    return {"type": "response.done", "event_id": f"d{number}", "response": {**response, "output": [*output]}}


def created(number: int = 1) -> Event:
    return {"type": "response.created", "event_id": f"c{number}", "response": {"id": f"r{number}"}}


def piece(said: str, number: int = 1, kind: str = "output_text") -> Event:
    places = {"response_id": f"r{number}", "item_id": f"i{number}", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", "event_id": "p", **places, "delta": said}


class Talk:
    """One session. `open`: the provider switches; else the client has its answer in `answer`."""

    def __init__(
        self,
        file: str = "",
        path: str = PATH,
        headers: tuple[tuple[str, str], ...] = (),
        proxy: MemoryProxy | None = None,
        opens: bool = True,
        extensions: bool = False,
    ) -> None:
        self.proxy = proxy or MemoryProxy(file or config())
        self.client = ClientProtocol(parse_uri(f"ws://a{path}"), max_size=1 << 26)
        asked = self.client.connect()
        for name, value in headers:
            asked.headers[name] = value
        if extensions:
            asked.headers["Sec-WebSocket-Extensions"] = "permessage-deflate; client_max_window_bits"
        self.end = self.proxy.connect()
        self.server = ServerProtocol(max_size=1 << 26)
        self.client.send_request(asked)
        self._to_proxy()
        self.request = b""
        if opens:
            self.open()
        else:
            self._from_proxy()

    @property
    def answer(self) -> Response:
        refused = self.client.handshake_exc
        if isinstance(refused, InvalidStatus):
            return refused.response
        (found,) = [each for each in self.client.events_received() if isinstance(each, Response)]
        return found

    def open(self) -> None:
        self.upstream = self.proxy.upstream
        self.request = self.upstream.take()
        self.server.receive_data(self.request)
        (asked,) = self.server.events_received()
        self.server.send_response(self.server.accept(asked))  # type: ignore[arg-type]  # the request
        self._from_server()
        self._from_proxy()
        assert self.answer.status_code == 101

    def _to_proxy(self) -> None:
        data = b"".join(self.client.data_to_send())
        if data:
            self.end.send(data)

    def _from_server(self) -> None:
        for data in self.server.data_to_send():
            if data:
                self.upstream.answer(data)

    def _from_proxy(self) -> None:
        data = self.end.take()
        if data:
            self.client.receive_data(data)

    def ask(self, *events: Event | str | bytes) -> list[Event]:
        """What the provider gets of it."""
        for event in events:
            if isinstance(event, bytes):
                self.client.send_binary(event)
            else:
                self.client.send_text((event if isinstance(event, str) else json.dumps(event)).encode())
        self._to_proxy()
        return self.arrived()

    def arrived(self) -> list[Event]:
        self.server.receive_data(self.upstream.take())
        return _texts(self.server.events_received())

    def say(self, *events: Event) -> list[Event]:
        """What the client gets of it."""
        for event in events:
            self.server.send_text(json.dumps(event).encode())
        self._from_server()
        return self.got()

    def got(self) -> list[Event]:
        self._from_proxy()
        return _texts(self.client.events_received())

    @property
    def code(self) -> int | None:
        """Of the close frame that the client has got."""
        found = self.client.close_rcvd
        return None if found is None else found.code

    def leave(self) -> None:
        """In good order."""
        self.client.send_close(1000)
        self._to_proxy()
        self.arrived()
        self._from_server()
        self._from_proxy()
        self._to_proxy()
        self.lose_provider()
        self._from_proxy()
        self.lose()

    def lose_provider(self) -> None:
        if self.upstream.open:
            self.upstream.lose()

    def lose(self) -> None:
        if self.end.open:
            self.end.lose()

    @property
    def line(self) -> str:
        (found,) = self.proxy.log_lines()
        return found


def _texts(events: list[Any]) -> list[Event]:
    return [json.loads(each.data) for each in events if isinstance(each, Frame) and each.opcode is Opcode.TEXT]
