"""A small A2A agent that needs Python alone: a card, JSON-RPC and REST of version 0.3, whole answers and events.

python examples/a2a/agent.py 19400
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CARD = {
    "name": "greeter",
    "description": "Greets whoever writes to it.",
    "version": "1.0.0",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [{"id": "greet", "name": "greet", "description": "Greets.", "tags": ["text"]}],
}
TASKS: dict[str, dict[str, Any]] = {}


class Agent(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path in ("/.well-known/agent-card.json", "/.well-known/agent.json"):
            here = f"http://{self.headers['host']}"
            interfaces = [{"url": f"{here}/rpc", "transport": "JSONRPC"}, {"url": here, "transport": "HTTP+JSON"}]
            self.answer({**CARD, "url": f"{here}/rpc", "additionalInterfaces": interfaces})
        elif self.path.startswith("/v1/tasks/") and (task := TASKS.get(self.path.rpartition("/")[2])):
            self.answer(task)
        else:
            self.answer({"error": "not found"}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/v1/message:send":
            self.answer({"task": made(body["message"], "completed")})
            return
        method, params, number = body["method"], body.get("params", {}), body["id"]
        if method == "message/send":
            self.answer(result(number, made(params["message"], "completed")))
        elif method == "message/stream":
            self.events(number, made(params["message"], "working"))
        elif method in ("tasks/get", "tasks/cancel") and (task := TASKS.get(params["id"])):
            self.answer(result(number, task))
        else:
            self.answer({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "method not found"}})

    def answer(self, value: Any, status: int = 200) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def events(self, number: Any, task: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        update = {"taskId": task["id"], "contextId": task["contextId"], "kind": "status-update", "final": True}
        for value in (task, {**update, "status": {"state": "completed"}}):
            self.wfile.write(f"data: {json.dumps(result(number, value))}\n\n".encode())
        task["status"] = {"state": "completed"}
        self.close_connection = True

    def log_message(self, format: str, *arguments: Any) -> None:
        """The gateway logs."""


def result(number: Any, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": value}


def made(message: dict[str, Any], state: str) -> dict[str, Any]:
    text = " ".join(part.get("text", "") for part in message["parts"])
    number = f"task-{len(TASKS) + 1}"
    artifact = {"artifactId": "greeting", "parts": [{"kind": "text", "text": f"hello, {text}"}]}
    TASKS[number] = {
        "kind": "task",
        "id": number,
        "contextId": "context-1",
        "status": {"state": state},
        "artifacts": [artifact],
    }
    return TASKS[number]


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 19400), Agent)
    sys.stdout.write(f"agent on {server.server_address[0]}:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
