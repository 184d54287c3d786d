"""MCP servers of the older transport of two endpoints, in memory: a toy of `mcp_toys` behind a stream and a place to
post to. They check what they get: a stream that is there, a POST to where their own stream says.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.carriers import Answer, Request, Response, Run
from tests.carriers.contract import Arrival, Conversation
from tests.fakes.mcp_toys import Client, Toy

EVENTS = Response(200, [("content-type", "text/event-stream; charset=utf-8")])


def event(message: Any, kind: str = "message") -> bytes:
    data = message if isinstance(message, str) else json.dumps(message)
    return f"event: {kind}\ndata: {data}\n\n".encode()


@dataclass
class SseToy:
    """A server. `streams`: those that are open, by the session that their endpoint names."""

    toy: Toy = field(default_factory=lambda: Toy(gives_sessions=False))
    path: str = "/sse"
    endpoint: Callable[[str], str] = "/messages/?session_id={}".format
    streams: dict[str, Arrival] = field(default_factory=dict)
    posted: list[Arrival] = field(default_factory=list)
    holds: bool = False
    """It takes messages, and answers nothing: the test does."""
    made: int = 0

    def take(self, arrival: Arrival) -> None:
        received = arrival.received
        if received.method == "GET":
            assert received.target == self.path and received.headers["accept"] == "text/event-stream"
            self.made += 1
            name = f"s{self.made}"
            arrival.head(EVENTS)
            self.streams[name] = arrival
            arrival.content(event(self.endpoint(name), "endpoint"))
            return
        assert received.method == "POST" and "mcp-session-id" not in received.headers, received
        self.posted.append(arrival)
        where, _, name = received.target.partition("?session_id=")
        stream = self.streams.get(name)
        if stream is None or stream.is_cancelled:
            arrival.answer(Response(404, (), b"Could not find session"))
            return
        assert where == "/messages/" and received.headers["content-type"] == "application/json"
        arrival.answer(Response(202, (), b"Accepted"))
        if not self.holds:
            answer = self.toy(received)
            if answer.body:
                assert isinstance(answer.body, bytes)
                stream.content(event(json.loads(answer.body)))
        else:
            self.toy.got.append(json.loads(received.body))

    @property
    def stream(self) -> Arrival:
        """The newest."""
        return self.streams[f"s{self.made}"]

    def says(self, **message: Any) -> None:
        self.stream.content(event({"jsonrpc": "2.0", **message}))


class SseClient(Client):
    """A client of an endpoint with such servers: `sse` by `HOST:PORT`, beside those that `toys` has."""

    def __init__(
        self, run: Run, sse: dict[str, SseToy], toys: dict[str, Toy] | None = None, path: str = "/mcp"
    ) -> None:
        super().__init__(run, toys or {}, path)
        self.sse = sse
        self._taken: set[int] = set()

    def serve(self) -> None:
        """Whatever has arrived is answered."""
        while waiting := [each for each in self.run.arrivals if id(each) not in self._taken]:
            for each in waiting:
                self._taken.add(id(each))
                server = self.sse.get(each.received.authority)
                if server is not None:
                    server.take(each)
                elif not (each.is_answered or each.is_cancelled):
                    each.answer(self.answering(each.received))

    def begin(self, method: str, *headers: tuple[str, str], body: bytes = b"") -> Conversation:
        session = [("mcp-session-id", self.session)] if self.session else []
        asked = self.run.send(Request(method, self.path, [*headers, *session, *self.headers], body))
        self.serve()
        return asked

    def ask(self, method: str, *headers: tuple[str, str], body: bytes = b"") -> Answer:
        asked = self.begin(method, *headers, body=body)
        assert asked.answer.ended, asked.answer
        return asked.answer
