"""A small MCP server that needs Python alone: tools with a session, answers as JSON.

python examples/mcp/server.py 19501 files read,drop
"""

from __future__ import annotations

import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME, TOOLS = "files", ["read", "drop"]
SESSIONS: set[str] = set()


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            session = uuid.uuid4().hex
            SESSIONS.add(session)
            info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            self.answer(message, {**info, "serverInfo": {"name": NAME, "version": "1"}}, session)
        elif self.headers.get("mcp-session-id") not in SESSIONS:
            self.empty(404)
        elif "id" not in message:
            self.empty(202)
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"path": {"type": "string"}}}
            self.answer(message, {"tools": [{"name": name, "inputSchema": schema} for name in TOOLS]})
        elif method == "tools/call":
            text = f"{NAME}: {params['name']} {params.get('arguments', {}).get('path', '')}".strip()
            self.answer(message, {"content": [{"type": "text", "text": text}]})
        else:
            self.send(message, {"error": {"code": -32601, "message": "Method not found"}})

    def do_GET(self) -> None:
        self.empty(405)

    def do_DELETE(self) -> None:
        SESSIONS.discard(self.headers.get("mcp-session-id", ""))
        self.empty(200)

    def answer(self, message: Any, result: Any, session: str = "") -> None:
        self.send(message, {"result": result}, session)

    def send(self, message: Any, outcome: Any, session: str = "") -> None:
        content = json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if session:
            self.send_header("mcp-session-id", session)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def empty(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """The gateway logs."""


if __name__ == "__main__":
    if len(sys.argv) > 2:
        NAME, TOOLS = sys.argv[2], sys.argv[3].split(",")
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 19501), Server)
    sys.stdout.write(f"MCP server {NAME} on {server.server_address[0]}:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()
