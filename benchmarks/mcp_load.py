"""What asks MCP servers in the benchmarks: `wrk` with the sessions of many clients, plain connections where one is
enough."""

from __future__ import annotations

import http.client
import json
import socket
import time
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.load import Answers, LoadFailed, Shape
from benchmarks.machine import run_folder
from benchmarks.proxies import HOST, TARGET

SESSIONS: Final = 100
"""Of the clients of one load, in turn: what is remembered of one request says little of the next."""
HEADERS: Final = {
    "Host": HOST,
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
HELLO: Final = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}},
    "clientInfo": {"name": "bench-client", "version": "1.0"},
}
ARGUMENTS: Final = {"query": "annual report", "limit": 10, "since": "2026-01-01T00:00:00Z"}


def message(method: str, params: Any = None, request_id: int | None = 1) -> str:
    found: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if request_id is not None:
        found["id"] = request_id
    if params is not None:
        found["params"] = params
    return json.dumps(found)


def call(tool: str) -> str:
    token = {"_meta": {"progressToken": 1}} if tool.endswith("events") else {}
    return message("tools/call", {"name": tool, "arguments": ARGUMENTS, **token})


class Client:
    """One connection that stays."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self.session = ""

    def begin(self) -> str:
        """`initialize`, and what follows it: the session's id, "" where there are none."""
        self._ask(message("initialize", HELLO))
        self._ask(message("notifications/initialized", request_id=None))
        return self.session

    def result(self, method: str) -> Any:
        return json.loads(self._ask(message(method)))["result"]

    def timed(self, method: str) -> float:
        """Seconds until the whole answer is here."""
        text, began = message(method), time.perf_counter()
        self._ask(text)
        return time.perf_counter() - began

    def _ask(self, text: str) -> bytes:
        headers = HEADERS | ({"Mcp-Session-Id": self.session} if self.session else {})
        self._connection.request("POST", TARGET, text, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status not in (200, 202):
            raise LoadFailed(f"{text[:60]}: {answer.status} {content[:200]!r}")
        self.session = self.session or answer.headers.get("mcp-session-id", "")
        return content

    def close(self) -> None:
        self._connection.close()


def listening(port: int, session: str) -> socket.socket:
    """The stream of what a server has to say, open: a connection on which nothing comes."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items() if name != "Content-Type")
    named = f"Mcp-Session-Id: {session}\r\n" if session else ""
    client = socket.create_connection(("127.0.0.1", port), 20)
    client.sendall(f"GET {TARGET} HTTP/1.1\r\n{lines}{named}\r\n".encode())
    answer = client.recv(4096)
    if b" 200 " not in answer[:20]:
        raise LoadFailed(f"GET: {answer[:200]!r}")
    return client


@dataclass(frozen=True, slots=True)
class Calls:
    """`tools/call` of one tool over so many connections, each with its own id, in sessions of SESSIONS clients."""

    tool: str
    connections: int
    sessions: bool = True

    def run(self, port: int, seconds: int) -> Answers:
        found: list[str] = []
        for _ in range(SESSIONS if self.sessions else 0):
            client = Client(port)
            found.append(client.begin())
            client.close()
        path = run_folder() / "mcp_calls.lua"
        path.write_text(_script(call(self.tool), found))
        own = tuple(f"{name}: {value}" for name, value in HEADERS.items())
        return Shape(TARGET, self.connections, headers=own, script=path).run(port, seconds)


def _script(body: str, sessions: list[str]) -> str:
    before, _, after = body.partition('"id": 1,')
    names = ", ".join(json.dumps(each) for each in sessions)
    return f"""
local sessions, number = {{{names}}}, 0
wrk.method = "POST"
request = function()
  number = number + 1
  if #sessions > 0 then wrk.headers["Mcp-Session-Id"] = sessions[number % #sessions + 1] end
  wrk.body = {json.dumps(before)} .. '"id": ' .. number .. {json.dumps("," + after)}
  return wrk.format()
end
"""
