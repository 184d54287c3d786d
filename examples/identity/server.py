"""A small MCP server on standard input and output. Python alone, nothing to install; the gateway starts it.

Each session has a process of its own. `whoami` answers with its number.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "whoami", "inputSchema": {"type": "object"}},
]


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """None: the method is not known."""
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        info = {"name": "everything", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call" and params.get("name") in ("echo", "whoami"):
        said = str(params.get("arguments", {}).get("text", ""))
        return {"content": [{"type": "text", "text": said if params["name"] == "echo" else f"process {os.getpid()}"}]}
    return {} if method == "ping" else None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue  # a notification
        found = result(message["method"], message.get("params", {}))
        outcome = {"error": {"code": -32601, "message": "Method not found"}} if found is None else {"result": found}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
