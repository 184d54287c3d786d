"""MCP servers and a client of a page each, for tests in memory: what endpoints answer as a function of what they got.

The servers check what they get: a session that they gave, an Accept header with both types, JSON-RPC. Real ones are in
tests/loopback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataplane.http.sse import EventReader
from tests.carriers import Answer, Received, Request, Response, Run

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MODERN = "2026-07-28"
BOTH = "application/json, text/event-stream"

Json = Any
"""What JSON can be."""


@dataclass
class Toy:
    """A server. `tools` by name; `streams`: it answers requests with events."""

    tools: Sequence[str] = ("add",)
    resources: Sequence[str] = ()
    page: int = 100
    streams: bool = False
    version: str = "2025-06-18"
    instructions: str = ""
    gives_sessions: bool = True
    down: bool = False
    is_modern: bool = False
    """It knows the revision without sessions, and requests of it alone."""
    sessions: list[str] = field(default_factory=list)
    """Those that are open."""
    got: list[Json] = field(default_factory=list)
    """Messages, in their order."""
    methods: dict[str, Callable[[Json], Json]] = field(default_factory=dict)
    """What further methods answer, of their params; an exception is a JSON-RPC error."""
    _made: int = 0

    def __call__(self, received: Received) -> Response:
        if self.down:
            return Response(503, (), b"down")
        session = received.headers.get("mcp-session-id")
        if received.method == "DELETE":
            self.sessions.remove(str(session))
            return Response(200)
        if received.method == "GET":
            return Response(405)
        assert received.method == "POST" and received.headers["accept"] == BOTH, received
        assert received.headers["content-type"] == "application/json"
        message = json.loads(received.body)
        self.got.append(message)
        if self.is_modern:
            return self._modern(received, message)
        if message.get("method") == "initialize":
            return self._initialized(message)
        if self.gives_sessions and session not in self.sessions:
            return Response(404, (), b"session not found")
        if "id" not in message or "method" not in message:
            return Response(202)
        return self._answered(message, self._result(message))

    def _modern(self, received: Received, message: Json) -> Response:
        method = message["method"]
        assert received.headers["mcp-protocol-version"] == MODERN and received.headers["mcp-method"] == method
        assert received.headers.get("mcp-session-id") is None
        if method == "tools/call":
            assert received.headers["mcp-name"] == message["params"]["name"]
        if method == "server/discover":
            found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}
            return self._answered(message, {"result": found})
        return self._answered(message, self._result(message))

    def _initialized(self, message: Json) -> Response:
        result: Json = {"protocolVersion": self.version, "capabilities": {"tools": {"listChanged": True}}}
        result["serverInfo"] = {"name": "toy", "version": "1"}
        if self.instructions:
            result["instructions"] = self.instructions
        headers = []
        if self.gives_sessions:
            self._made += 1
            self.sessions.append(f"toy-{id(self)}-{self._made}")
            headers = [("mcp-session-id", self.sessions[-1])]
        return self._answered(message, {"result": result}, headers)

    def _result(self, message: Json) -> Json:
        method, params = message["method"], message.get("params", {})
        if method in self.methods:
            try:
                return {"result": self.methods[method](params)}
            except KeyError:
                return {"error": {"code": -32602, "message": "no"}}
        if method == "tools/list":
            return {"result": self._page("tools", [{"name": name, "inputSchema": {}} for name in self.tools], params)}
        if method == "resources/list" and self.resources:
            return {"result": self._page("resources", [{"uri": uri, "name": uri} for uri in self.resources], params)}
        if method == "tools/call" and params["name"] in self.tools:
            text = f"{params['name']}({json.dumps(params.get('arguments', {}))})"
            return {"result": {"content": [{"type": "text", "text": text}]}}
        if method == "resources/read" and params["uri"] in self.resources:
            return {"result": {"contents": [{"uri": params["uri"], "text": "content"}]}}
        if method in ("ping", "logging/setLevel", "resources/subscribe"):
            return {"result": {}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def _page(self, name: str, items: list[Json], params: Json) -> Json:
        start = int(params.get("cursor", "0"))
        result: Json = {name: items[start : start + self.page]}
        if start + self.page < len(items):
            result["nextCursor"] = str(start + self.page)
        return result

    def _answered(self, message: Json, result: Json, headers: Sequence[tuple[str, str]] = ()) -> Response:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], **result})
        if self.streams:
            event = f"event: message\ndata: {body}\n\n".encode()
            return Response(200, [("content-type", "text/event-stream"), *headers], [event])
        return Response(200, [("content-type", "application/json"), *headers], body.encode())

    def methods_got(self) -> list[str]:
        """Of requests and notifications."""
        return [message["method"] for message in self.got if "method" in message]


class Client:
    """A client of an endpoint: it keeps its session. `toys` by `HOST:PORT`."""

    def __init__(self, run: Run, toys: dict[str, Toy], path: str = "/mcp") -> None:
        self.run, self.toys, self.path = run, toys, path
        self.session = ""
        self.headers: list[tuple[str, str]] = []
        self.number = 0

    def answering(self, received: Received) -> Response:
        return self.toys[received.authority](received)

    def ask(self, method: str, *headers: tuple[str, str], body: bytes = b"") -> Answer:
        session = [("mcp-session-id", self.session)] if self.session else []
        before = len(self.run.arrivals)  # streams may be open beside
        asked = self.run.send(Request(method, self.path, [*headers, *session, *self.headers], body))
        while waiting := [each for each in self.run.arrivals[before:] if not (each.is_answered or each.is_cancelled)]:
            for each in waiting:
                each.answer(self.answering(each.received))
        assert asked.answer.ended, asked.answer
        return asked.answer

    def post(self, message: Json, accept: str = BOTH, content_type: str = "application/json") -> Answer:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.ask("POST", ("accept", accept), ("content-type", content_type), body=body)

    def request(self, method: str, params: Json = None) -> Answer:
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method}
        return self.post(message if params is None else {**message, "params": params})

    def initialize(self) -> Json:
        answer = self.request("initialize", HELLO)
        assert answer.status == 200, answer
        self.session = answer.headers.get("mcp-session-id") or ""
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return response(answer)["result"]

    def result(self, method: str, params: Json = None) -> Json:
        answer = self.request(method, params)
        found = response(answer)
        assert answer.status == 200 and "result" in found, answer
        return found["result"]

    def error(self, method: str, params: Json = None) -> tuple[int, int, str]:
        """Status, code and text of a JSON-RPC error."""
        answer = self.request(method, params)
        error = response(answer)["error"]
        assert answer.status is not None
        return answer.status, error["code"], error["message"]

    def all(self, method: str, field: str) -> list[Json]:
        """A list, page by page."""
        result = self.result(method)
        found = list(result[field])
        while "nextCursor" in result:
            result = self.result(method, {"cursor": result["nextCursor"]})
            found += result[field]
        return found

    def names(self) -> list[str]:
        """Of all tools."""
        return [tool["name"] for tool in self.all("tools/list", "tools")]


def messages(answer: Answer) -> list[Json]:
    """Those of an answer, whichever form it has."""
    assert answer.ended, answer
    if answer.headers["content-type"] == "application/json":
        return [json.loads(answer.body)]
    assert answer.headers["content-type"] == "text/event-stream", answer
    return [json.loads(event.data) for event in EventReader().feed(answer.body)]


def response(answer: Answer) -> Json:
    """The last one of it."""
    return messages(answer)[-1]
