"""Stands in for an MCP server behind the gateway. Python alone, nothing to install.

    python examples/identity/backend.py 19300

It greets (`initialize`) with a session, and refuses clients that cannot read a stream of events, as MCP servers do.
"""

from __future__ import annotations

import json
import secrets
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NOT_ACCEPTABLE = b"Not Acceptable: Client must accept text/event-stream"


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self._accepts_events():
            self._answer(405, b"no stream of the server's own here")

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", "0"))
        body = self.rfile.read(length)
        if not self._accepts_events():
            return
        try:
            call = json.loads(body)
        except ValueError:
            call = None
        if not isinstance(call, dict) or call.get("method") != "initialize":
            self._answer(400, b"only initialize is known here")
            return
        event = f"event: message\ndata: {json.dumps(greeting(call))}\n\n".encode()
        self._answer(200, event, "text/event-stream", {"Mcp-Session-Id": secrets.token_hex(16)})

    def _accepts_events(self) -> bool:
        if "text/event-stream" in self.headers.get("accept", ""):
            return True
        self._answer(406, NOT_ACCEPTABLE)
        return False

    def _answer(
        self, status: int, body: bytes, content_type: str = "text/plain", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": content_type, **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def greeting(call: dict[str, Any]) -> dict[str, Any]:
    """The answer to `initialize`."""
    version = call.get("params", {}).get("protocolVersion", "2025-06-18")
    result = {
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": {"name": "stand-in", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": call.get("id"), "result": result}


def main(port: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", int(port)), Server) as server:
        sys.stderr.write(f"on 127.0.0.1:{port}\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
